"""Measure gathering statistics: in full and incrementally, against a bare walk of the same tree.

python benchmarks/statistics_benchmark.py [--partitions 2000 --files 20 --commits 500 --rounds 5]
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import Line, Sample, finish, median_of, ratio, report_sample, run_sample
from synthetic_table import RECENT_PARTITIONS, add_commits, write_table

if TYPE_CHECKING:
    from airflow_hudi_maint.core.model.statistics import TableStatistics

SCRIPT = Path(__file__).name
NEW_COMMITS = 10
NOW = datetime(2026, 11, 30, tzinfo=UTC)
LOADED = ("fastavro._read", "fsspec.implementations.local", "airflow_hudi_maint.core.storage.statistics")
KINDS = ("walk", "full", "incremental")


def walk(base: Path) -> Mapping[str, Any]:
    """List every directory and look at every file: the least that a full gather can do."""
    entries, size, pending = 0, 0, [str(base)]
    while pending:
        with os.scandir(pending.pop()) as found:
            for one in found:
                entries += 1
                if one.is_dir():
                    pending.append(one.path)
                else:
                    size += one.stat().st_size
    return {"entries": entries, "bytes": size}


def gather(base: Path, *, previous: Path | None) -> TableStatistics:
    """Open a table and gather its statistics; reading the earlier ones is part of it."""
    from airflow_hudi_maint.core.model.statistics import TableStatistics
    from airflow_hudi_maint.core.storage.statistics import gather_statistics
    from airflow_hudi_maint.core.storage.table import HudiTable

    earlier = TableStatistics.from_json(json.loads(previous.read_text()), name=str(previous)) if previous else None
    return gather_statistics(HudiTable.open(str(base)), now=NOW, previous=earlier)


def child(kind: str, *, base: Path, previous: Path) -> None:
    """Measure one kind of work in this process. Imports come before: a worker has them loaded."""
    for module in LOADED:
        importlib.import_module(module)
    if kind == "walk":
        report_sample(lambda: walk(base))
    elif kind == "listings":
        report_sample(lambda: listings(base, previous=previous))
    else:
        report_sample(lambda: _facts(gather(base, previous=previous if kind == "incremental" else None)))


def listings(base: Path, *, previous: Path) -> Mapping[str, Any]:
    """The directories that an incremental gather lists, by way of Python's own audit events."""
    listed: list[str] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("os.scandir", "os.listdir"):
            listed.append(str(arguments[0]))

    sys.addaudithook(hook)
    facts = _facts(gather(base, previous=previous))
    below = [os.path.relpath(path, base) for path in listed if path.startswith(str(base))]
    return {**facts, "listings": below}


def _facts(statistics: TableStatistics) -> Mapping[str, Any]:
    return {
        "gathered": statistics.gathered,
        "reason": statistics.reason,
        "files": statistics.data_file_count,
        "bytes": statistics.total_bytes,
        "partitions": len(statistics.partitions),
    }


def measure(chosen: argparse.Namespace, *, folder: Path) -> list[Line]:
    """Write a table, measure all kinds of work on it in turn, print the figures and return the lines."""
    base, previous = folder / "table", folder / "previous.json"
    print(
        f"Writing {chosen.partitions:,} partitions × {chosen.files} files × {chosen.commits} commits …", file=sys.stderr
    )
    write_table(base, partitions=chosen.partitions, files=chosen.files, commits=chosen.commits, recent=chosen.touched)
    previous.write_text(json.dumps(gather(base, previous=None).to_json()))
    touched = add_commits(base, commits=NEW_COMMITS, partitions=chosen.touched, since=chosen.commits)
    samples: dict[str, list[Sample]] = {kind: [] for kind in KINDS}
    for number in range(chosen.rounds + 1):
        for kind in KINDS:
            one = run_sample(SCRIPT, "--child", kind, "--table", str(base), "--previous", str(previous))
            if number:  # the first round only warms the page cache
                samples[kind].append(one)
    _check_same(samples)
    counted = run_sample(SCRIPT, "--child", "listings", "--table", str(base), "--previous", str(previous))
    _print_samples(samples)
    return _lines(samples, listings=counted.facts["listings"], touched=touched)


def _check_same(samples: Mapping[str, list[Sample]]) -> None:
    full, incremental = samples["full"][-1].facts, samples["incremental"][-1].facts
    same = ("files", "bytes", "partitions")
    if [full[key] for key in same] != [incremental[key] for key in same] or incremental["gathered"] != "incremental":
        sys.exit(f"The incremental gather is not what the full one is: {incremental} against {full}")


def _print_samples(samples: Mapping[str, list[Sample]]) -> None:
    print("\n| work | CPU s | wall s | peak memory |\n|---|---:|---:|---:|")
    names = {"walk": "bare walk", "full": "full gather", "incremental": f"incremental, {NEW_COMMITS} commits"}
    for kind, taken in samples.items():
        cpu, wall = median_of(taken, field="cpu_seconds"), median_of(taken, field="wall_seconds")
        peak = max(one.peak_bytes for one in taken) / 2**20
        print(f"| {names[kind]} | {cpu:.3f} | {wall:.3f} | {peak:.0f} MiB |")


def _lines(samples: Mapping[str, list[Sample]], *, listings: Iterable[str], touched: frozenset[str]) -> list[Line]:
    data = [path for path in listings if not path.startswith(".hoodie")]
    peak = max(one.peak_bytes for kind in ("full", "incremental") for one in samples[kind])
    return [
        Line(name="full ÷ bare walk, CPU", figure=ratio(samples["full"], samples["walk"]), limit=2),
        Line(name="incremental ÷ full, CPU", figure=ratio(samples["incremental"], samples["full"]), limit=0.2),
        Line(name="partitions listed by the incremental gather", figure=len(data), limit=len(touched)),
        Line(name="listings of partitions without a change", figure=len(set(data) - touched), limit=0),
        Line(name="peak memory", figure=peak / 2**20, limit=150, unit="MiB"),
    ]


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--commits", type=int, default=500)
    parser.add_argument("--touched", type=int, default=RECENT_PARTITIONS, help="partitions that the new commits touch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", choices=(*KINDS, "listings"), help=argparse.SUPPRESS)
    parser.add_argument("--table", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--previous", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure, print, and fail when a limit is not kept."""
    chosen = arguments()
    if chosen.child:
        child(chosen.child, base=chosen.table, previous=chosen.previous)
        return
    with tempfile.TemporaryDirectory(prefix="hudi-bench-") as folder:
        lines = measure(chosen, folder=Path(folder))
    finish(lines)


if __name__ == "__main__":
    main()
