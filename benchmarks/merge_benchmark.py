"""Measure merging plain Parquet files against other ways to do it, and reading many files against reading one.

python benchmarks/merge_benchmark.py [--rounds 5 --peers VENV --spark --memory --out FOLDER]

DuckDB and Polars are no dependencies: --peers names a virtual environment that has them, and is made with them where it
is absent. --spark adds Spark's coalesce, where pyspark and Java are installed. --memory merges 4 GB, ten minutes or so.

All take turns, each in a process of its own whose imports are not counted, but for Spark. A ratio is taken within a
round, between neighbours, and its median over the rounds counts, by wall seconds; that of the CPU seconds of all
threads stands beside, since wall seconds say little on a machine that others use, too. A process that reads has read
the same once before.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from measure import ROOT, Line, Sample, finish
from merge_inputs import write_inputs

_WORK = Path(__file__).with_name("merge_work.py")
_PEERS = ("duckdb", "polars", "pyarrow")
_LARGE_BYTES = 4 * 10**9


def main() -> None:
    """Write the inputs, let all take turns, and print the figures beside their limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.out) as scratch:
        finish(_measured(Path(scratch), given))


def _measured(folder: Path, given: argparse.Namespace) -> list[Line]:
    for shape in ("small", "wide", "large"):
        write_inputs(folder / shape, shape=shape)
    peer = _peer_python(given.peers)
    peers = ["DuckDB", "Polars"] if peer else []
    works = ["ours", *peers, "pyarrow dataset", "pyarrow files", "cat"]
    python = {"DuckDB": peer, "Polars": peer}
    small = _rounds(folder, "small", works=works, rounds=given.rounds, python=python)
    wide = _rounds(folder, "wide", works=works, rounds=given.rounds, python=python)
    copies = ["ours", "cat and sync", "ours, not synced", "cat"]
    large = _rounds(folder, "large", works=copies, rounds=given.rounds * 2)
    lines = [
        _line("chunk copy, synced: cat over ours", large["cat"], large["ours"], at_least=0.6),
        _line("chunk copy, both synced: cat over ours", large["cat and sync"], large["ours"], at_least=0.6),
        _line("chunk copy, neither synced: cat over ours", large["cat"], large["ours, not synced"], at_least=0.6),
    ]
    for shape, found in (("small", small), ("wide", wide)):
        if peer:
            lines.append(_line(f"{shape} files: DuckDB over ours", found["DuckDB"], found["ours"], at_least=1.3))
    if given.spark:
        spark = _rounds(folder, "small", works=["Spark"], rounds=1)
        lines.append(_line("small files: Spark over ours", spark["Spark"], small["ours"], at_least=5))
    lines += _reading(folder, rounds=given.rounds)
    if given.memory:
        lines.append(_memory(folder))
    return lines


def _reading(folder: Path, *, rounds: int) -> list[Line]:
    _run("ours", folder / "small", folder / "merged")
    lines = []
    for work, least in (("read one", 10.0), ("read all", 2.0)):
        pairs = [
            (_run(work, folder / "small", folder / "none"), _run(work, folder / "merged", folder / "none"))
            for _ in range(rounds)
        ]
        many, one = ([pair[side] for pair in pairs] for side in (0, 1))
        _print(f"{work}, 600 files", many)
        _print(f"{work}, merged", one)
        lines.append(_line(f"{work}: 600 files over the merged one", many, one, at_least=least))
    return lines


def _memory(folder: Path) -> Line:
    size = sum(one.stat().st_size for one in (folder / "small").iterdir())
    write_inputs(folder / "4 GB", shape="small", repeats=-(-_LARGE_BYTES // size))
    found = _run("ours", folder / "4 GB", folder / "out")
    _print("4 GB in small files", [found])
    return Line(name="peak memory at 4 GB", figure=found.peak_bytes / 2**20, limit=512, unit="MiB")


def _rounds(
    folder: Path, shape: str, *, works: Sequence[str], rounds: int, python: dict[str, Path | None] | None = None
) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {work: [] for work in works}
    for _ in range(rounds):
        for work in works:
            samples[work].append(_run(work, folder / shape, folder / "out", python=(python or {}).get(work)))
    print(f"\n{shape}")
    for work, found in samples.items():
        _print(work, found)
    return samples


def _print(work: str, samples: Sequence[Sample]) -> None:
    wall, cpu = ([getattr(one, field) for one in samples] for field in ("wall_seconds", "cpu_seconds"))
    peak = max(one.peak_bytes for one in samples) / 2**20
    facts = ", ".join(f"{key} {value}" for key, value in samples[-1].facts.items())
    seconds = " | ".join(f"{median(one):.3f} s (least {min(one):.3f})" for one in (wall, cpu))
    print(f"| {work} | {seconds} | {peak:,.0f} MiB | {facts} |", flush=True)


def _line(name: str, above: Sequence[Sample], below: Sequence[Sample], *, at_least: float) -> Line:
    """A ratio, turned over, since a line is met when its figure is not above the limit."""
    pairs = list(zip(above, below, strict=False))
    found = median(one.wall_seconds / other.wall_seconds for one, other in pairs)
    cpu = median(one.cpu_seconds / other.cpu_seconds for one, other in pairs)
    text = f"{name}: {found:.2f} (CPU {cpu:.2f}), at least {at_least:g}; the limit over it"
    return Line(name=text, figure=at_least / found, limit=1)


def _run(work: str, folder: Path, output: Path, *, python: Path | None = None) -> Sample:
    shutil.rmtree(output, ignore_errors=True)
    if output.is_file() and not work.startswith("read"):
        output.unlink()
    ended = subprocess.run(
        [str(python or sys.executable), str(_WORK), work, str(folder), str(output)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        sys.exit(f"{work} failed:\n{ended.stderr}")
    return Sample(**json.loads(ended.stdout.splitlines()[-1]))


def _peer_python(venv: Path | None) -> Path | None:
    if venv is None:
        return None
    python = venv / "bin" / "python"
    if not python.is_file():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *_PEERS], check=True)
    return python


if __name__ == "__main__":
    main()
