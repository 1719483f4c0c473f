"""Measure statistics of a table of very many partitions: gathering, and writing and reading the document.

python benchmarks/many_partitions_benchmark.py [--partitions 100000 --files 2 --commits 500 --rounds 3]
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import Line, Sample, finish, median_of, ratio, report_sample, run_sample
from statistics_benchmark import LOADED, NEW_COMMITS, NOW
from synthetic_table import RECENT_PARTITIONS, add_commits, write_table

if TYPE_CHECKING:
    from airflow_hudi_maint.core.model.statistics import TableStatistics
    from airflow_hudi_maint.core.storage.documents import DocumentStore

SCRIPT = Path(__file__).name
KINDS = ("full", "dump", "write", "load", "read", "incremental")
_ROWS = "rows.json"
_NAMES = {
    "full": "full gather, document written",
    "dump": "bare `json.dumps` of the same rows",
    "write": "statistics to a document",
    "load": "bare `json.loads` of the same rows",
    "read": "a document to statistics",
    "incremental": f"incremental, {NEW_COMMITS} commits, document read and written",
}


def documents_in(folder: Path) -> DocumentStore:
    """Where the statistics of the benchmark lie."""
    from airflow_hudi_maint.core.storage.documents import DocumentStore

    return DocumentStore.open(str(folder / "documents"))


def gather(base: Path, *, folder: Path, mode: str) -> Mapping[str, Any]:
    """Do what the operator's task does: read the newest statistics, gather, and write; count the commits opened."""
    from airflow_hudi_maint.core.storage.statistics import gather_statistics, newest_statistics, write_statistics
    from airflow_hudi_maint.core.storage.table import HudiTable

    opened: list[str] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and str(arguments[0]).endswith("commit"):
            opened.append(str(arguments[0]))

    sys.addaudithook(hook)
    documents = documents_in(folder)
    previous = newest_statistics(documents) if mode == "incremental" else None
    statistics = gather_statistics(HudiTable.open(str(base)), now=NOW, previous=previous)
    if mode == "full":
        write_statistics(documents, statistics=statistics)
    else:
        statistics.to_json()
    return {"gathered": statistics.gathered, "partitions": len(statistics.partitions), "commits": len(opened)}


def rows_of(statistics: TableStatistics) -> list[dict[str, Any]]:
    """One object for each partition, as programs would dump them."""
    columns: Mapping[str, list[Any]] = statistics.to_json()["partitions"]  # type: ignore[assignment]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def child(kind: str, *, base: Path, folder: Path) -> None:
    """Measure one kind of work in this process; imports and what the work starts from come before."""
    for module in LOADED:
        importlib.import_module(module)
    if kind in ("full", "incremental"):
        report_sample(lambda: gather(base, folder=folder, mode=kind))
    elif kind == "load":
        report_sample(lambda: {"rows": len(json.loads((folder / _ROWS).read_bytes()))})
    elif kind == "read":
        report_sample(lambda: {"rows": len(_newest(folder).partitions)})
    else:
        _measure_writing(kind, folder=folder)


def _measure_writing(kind: str, *, folder: Path) -> None:
    from airflow_hudi_maint.core.storage.statistics import write_statistics

    statistics = _newest(folder)
    if kind == "write":
        report_sample(lambda: {"path": write_statistics(documents_in(folder), statistics=statistics)})
        return
    rows = rows_of(statistics)
    report_sample(lambda: {"bytes": (folder / _ROWS).write_bytes(json.dumps(rows).encode())})


def _newest(folder: Path) -> TableStatistics:
    from airflow_hudi_maint.core.storage.statistics import newest_statistics

    statistics = newest_statistics(documents_in(folder))
    if statistics is None:
        sys.exit("There are no statistics yet")
    return statistics


def measure(chosen: argparse.Namespace, *, folder: Path) -> list[Line]:
    """Write a table, measure all kinds of work on it in turn, print the figures and return the lines."""
    base = folder / "table"
    print(f"Writing {chosen.partitions:,} partitions × {chosen.files} files …", file=sys.stderr)
    write_table(base, partitions=chosen.partitions, files=chosen.files, commits=chosen.commits)
    samples: dict[str, list[Sample]] = {kind: [] for kind in KINDS}
    samples["full"].append(_sample("full", base=base, folder=folder))
    add_commits(base, commits=NEW_COMMITS, partitions=RECENT_PARTITIONS, since=chosen.commits)
    for number in range(chosen.rounds + 1):
        for kind in KINDS[1:]:
            one = _sample(kind, base=base, folder=folder)
            if number:  # the first round only warms the page cache
                samples[kind].append(one)
    _print(samples, partitions=chosen.partitions)
    peak = max(one.peak_bytes for kind in ("full", "write", "read", "incremental") for one in samples[kind])
    commits = max(one.facts["commits"] for one in samples["incremental"])
    return [
        Line(name="document written ÷ bare dump of its rows", figure=ratio(samples["write"], samples["dump"]), limit=3),
        Line(name="document read ÷ bare load of its rows", figure=ratio(samples["read"], samples["load"]), limit=3),
        Line(name="commits opened by the incremental gather", figure=commits, limit=NEW_COMMITS),
        Line(name=f"peak memory, {chosen.partitions:,} partitions", figure=peak / 2**20, limit=300, unit="MiB"),
    ]


def _sample(kind: str, *, base: Path, folder: Path) -> Sample:
    return run_sample(SCRIPT, "--child", kind, "--table", str(base), "--folder", str(folder))


def _print(samples: Mapping[str, list[Sample]], *, partitions: int) -> None:
    print(f"\n| {partitions:,} partitions | CPU s | wall s | peak memory |\n|---|---:|---:|---:|")
    for kind, taken in samples.items():
        cpu, wall = median_of(taken, field="cpu_seconds"), median_of(taken, field="wall_seconds")
        print(f"| {_NAMES[kind]} | {cpu:.3f} | {wall:.3f} | {max(one.peak_bytes for one in taken) / 2**20:.0f} MiB |")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=2)
    parser.add_argument("--commits", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--table", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure, print, and fail when a limit is not kept."""
    chosen = arguments()
    if chosen.child:
        child(chosen.child, base=chosen.table, folder=chosen.folder)
        return
    with tempfile.TemporaryDirectory(prefix="hudi-bench-") as folder:
        lines = measure(chosen, folder=Path(folder))
    finish(lines)


if __name__ == "__main__":
    main()
