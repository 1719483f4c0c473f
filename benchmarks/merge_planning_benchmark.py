"""Measure plans of merges against the listing that they rest on, and merges of text against `cat`.

python benchmarks/merge_planning_benchmark.py [--files 100000 --texts 2000 --rounds 5]

Listing and planning each begin with the same directory tree, in one process, one after the other. `cat` joins the same
files into one on the same disk. The merge of text is measured without its swap: writing, syncing and verifying.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from measure import ROOT, Line, finish

NOW = datetime(2030, 1, 1, tzinfo=UTC)
_TEXT_BYTES = 100_000
_FILES_PER_DIRECTORY = 1000
_TEXT_WORK = ("cat", "merge", "merge in one thread, as beside another group", "merge, and synced to the disk")
Seconds: TypeAlias = tuple[float, float]
"""Of the wall, and of the CPU of all threads and of processes that ended."""


def measure_planning(*, files: int, rounds: int, folder: Path) -> list[Line]:
    """Measure a listing of all directories, and a plan that lists, groups and is written."""
    from airflow_hudi_maint.core.maintenance.merge_planning import plan_merge
    from airflow_hudi_maint.core.maintenance.merge_workspace import open_merge_workspace
    from airflow_hudi_maint.core.model.merge_settings import MergeSettings
    from airflow_hudi_maint.core.storage.plain_directory import walk

    root = folder / "many"
    for number in range(files):
        path = (
            root
            / f"day={number // _FILES_PER_DIRECTORY}"
            / f"part-{number % _FILES_PER_DIRECTORY:05}-7d1c.snappy.parquet"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    workspace = open_merge_workspace(str(root), log=lambda _: None)
    settings = MergeSettings()
    ratios, listings, plans = [], [], []
    cpu_ratios = []
    for _ in range(rounds):
        listing, listing_cpu = _seconds(lambda: [*walk(workspace.storage)])
        planning, planning_cpu = _seconds(lambda: plan_merge(workspace, now=NOW, settings=settings))
        cpu_ratios.append(planning_cpu / listing_cpu)
        listings.append(listing)
        plans.append(planning)
        ratios.append(planning / listing)
    print(
        f"\n{files:,} files: listing {median(listings):.2f} s, plan {median(plans):.2f} s (medians of {rounds}); "
        f"ratio of their CPU {median(cpu_ratios):.2f}"
    )
    return [Line(name=f"plan over {files:,} files against their listing", figure=median(ratios), limit=2.0, unit="×")]


def measure_text(*, texts: int, rounds: int, folder: Path) -> list[Line]:
    """Measure merges of CSV and JSON lines against `cat` of the same files."""
    lines: list[Line] = []
    for extension in (".csv", ".json"):
        root = folder / extension[1:]
        inputs = write_texts(root, texts=texts, extension=extension)
        samples = [_text_round(root, inputs=inputs, extension=extension) for _ in range(rounds)]
        walls, cpus = (
            [median(one[place] for one in column) for column in zip(*samples, strict=True)] for place in (0, 1)
        )
        print(f"{texts:,} {extension} files of {_TEXT_BYTES // 1000} KB, seconds of wall and (CPU):")
        for name, wall, cpu in zip(_TEXT_WORK, walls, cpus, strict=True):
            print(f"  {name}: {wall:.3f} ({cpu:.3f})")
        for place, name in ((1, ""), (2, " in one thread")):
            share, cpu = (median(one[place][of] / one[0][of] for one in samples) for of in (0, 1))
            print(f"  CPU of a merge{name} over that of cat: {cpu:.2f}")
            line = f"merge and verification of {extension} against cat{name and ','}{name}"
            lines.append(Line(name=line, figure=share, limit=2.0, unit="×"))
    return lines


def _text_round(root: Path, *, inputs: list[tuple[str, int]], extension: str) -> list[Seconds]:
    """Those of each of _TEXT_WORK."""

    def joined(*, one_thread: bool = False) -> Seconds:
        seconds = _seconds(lambda: join(root, inputs=inputs, extension=extension, one_thread=one_thread))
        (root / "out.staged").unlink()
        return seconds

    alone = _seconds(lambda: cat(root, extension=extension))
    (root / "out.cat").unlink()
    with without_sync():
        unsynced = [joined(), joined(one_thread=True)]
    return [alone, *unsynced, joined()]


def join(root: Path, *, inputs: list[tuple[str, int]], extension: str, one_thread: bool = False) -> None:
    """Merge the files as a run of one group does, or of several at a time, and verify the result."""
    from airflow_hudi_maint.core.merging.text import merge_text
    from airflow_hudi_maint.core.merging.text_scan import TextRules
    from airflow_hudi_maint.core.merging.verification import verify_text
    from airflow_hudi_maint.core.model.merge_settings import Codec, FileFormat, FileKind
    from airflow_hudi_maint.core.storage.filesystem import Storage

    csv = extension == ".csv"
    kind = FileKind(format=FileFormat.CSV if csv else FileFormat.JSON, codec=Codec.NONE, extension=extension)
    rules = TextRules(format=kind.format, has_header=csv, quote='"' if csv else "", delimiter="," if csv else None)
    storage = Storage.open(str(root))
    merged = merge_text(
        storage, inputs=inputs, output="out.staged", kind=kind, rules=rules, writes_behind=not one_thread
    )
    verify_text(storage, "out.staged", merged=merged, codec=Codec.NONE)


def write_texts(root: Path, *, texts: int, extension: str) -> list[tuple[str, int]]:
    """Write files of rows that differ; paths and bytes."""
    root.mkdir(parents=True)
    rows = random.Random(7)  # noqa: S311 the same rows each time
    inputs: list[tuple[str, int]] = []
    for number in range(texts):
        lines = ["id,name,price,at\n"] if extension == ".csv" else []
        size = 0
        while size < _TEXT_BYTES:
            key, price = rows.randrange(10**9), rows.random()
            if extension == ".csv":
                lines.append(f'{key},"item {key % 977}, large",{price:.4f},2026-11-30T05:34:58Z\n')
            else:
                lines.append(f'{{"id": {key}, "name": "item {key % 977}", "price": {price:.4f}}}\n')
            size += len(lines[-1])
        data = "".join(lines).encode()
        path = root / f"{number:05}{extension}"
        path.write_bytes(data)
        inputs.append((path.name, len(data)))
    return inputs


def cat(root: Path, *, extension: str) -> None:
    """Join the files as a shell does."""
    command = f"cat *{extension} > out.cat"
    subprocess.run(["sh", "-c", command], cwd=root, check=True)


@contextmanager
def without_sync() -> Iterator[None]:
    """Leave out the wait for the disk, which `cat` does not do either."""
    real: Callable[[int], None] = os.fsync
    os.fsync = lambda _: None  # type: ignore[assignment]
    try:
        yield
    finally:
        os.fsync = real  # type: ignore[assignment]


def measure(chosen: argparse.Namespace) -> list[Line]:
    """Measure both, print the figures and return the lines."""
    with tempfile.TemporaryDirectory(prefix="merge-bench-") as text:
        folder = Path(text)
        lines = measure_planning(files=chosen.files, rounds=chosen.rounds, folder=folder)
        return lines + measure_text(texts=chosen.texts, rounds=chosen.rounds, folder=folder)


def _seconds(work: Callable[[], Any]) -> Seconds:
    started, before = time.perf_counter(), _cpu()
    work()
    return time.perf_counter() - started, _cpu() - before


def _cpu() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usages)


def main() -> None:
    """Measure; the exit code is 1 when a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    finish(measure(parser.parse_args()))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
