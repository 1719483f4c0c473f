"""Run every benchmark and print one table of figures against limits; what `make bench` runs."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path

import expiry_benchmark
import idle_run_benchmark
import listing_benchmark
import many_partitions_benchmark
import statistics_benchmark
from measure import ROOT, print_lines
from synthetic_table import RECENT_PARTITIONS


def main() -> None:
    """Measure all; the exit code is 1 when a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", help="table for the idle run; by default the demo's, or one of its shape")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the table and two rounds: a smoke test, not figures"
    )
    chosen = parser.parse_args()
    rounds = 2 if chosen.quick else chosen.rounds
    sizes = argparse.Namespace(partitions=2000, files=20, commits=500, touched=RECENT_PARTITIONS, rounds=rounds)
    if chosen.quick:
        sizes = argparse.Namespace(partitions=200, files=20, commits=50, touched=8, rounds=rounds)
    print(f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="hudi-bench-") as text:
        folder = Path(text)
        (folder / "idle").mkdir()
        table = chosen.table or _demo_table() or idle_run_benchmark.like_the_demo(folder / "idle")
        lines = statistics_benchmark.measure(sizes, folder=folder)
        lines += idle_run_benchmark.measure(table, folder=folder / "idle", rounds=rounds)
        scale = 10 if chosen.quick else 1
        (folder / "many").mkdir()
        many = argparse.Namespace(partitions=100_000 // scale, files=2, commits=500, rounds=min(rounds, 3))
        lines += many_partitions_benchmark.measure(many, folder=folder / "many")
        lines += expiry_benchmark.measure(partitions=100_000 // scale, many=640_000 // scale, rounds=rounds)
    # Putting files on the server takes most of the time, so this is the short form of the benchmark.
    listed = [50, 200] if chosen.quick else [100, 500]
    lines += listing_benchmark.measure(argparse.Namespace(partitions=listed, files=4, rounds=min(rounds, 3), delay=0))
    print_lines(lines)
    sys.exit(not (chosen.quick or all(one.is_met for one in lines)))


def _demo_table() -> str | None:
    found = sorted(ROOT.glob(".demo/**/flights/.hoodie/hoodie.properties"))
    return str(found[0].parent.parent) if found else None


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
