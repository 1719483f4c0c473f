"""Measure a run of the DAG that has nothing to start: CPU of its own work, and JVMs started (none).

    python benchmarks/idle_run_benchmark.py [--table BASE_PATH]

Without a table, one of the demo's shape is written: 36 partitions × 4 files × 4 commits.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NoReturn

from measure import Line, Sample, finish, median_of, report_sample, run_sample
from synthetic_table import write_table

if TYPE_CHECKING:
    from airflow_hudi_maint.core.engines.base import Engine

SCRIPT = Path(__file__).name
NOW = datetime(2026, 11, 30, tzinfo=UTC)
_FAKE_JAVA = '#!/bin/sh\necho "$0 $*" >> "$JAVA_STARTS"\nexit 1\n'
_COMMANDS = ("java", "spark-submit")


def idle_run(base_path: str, *, documents: Path) -> Mapping[str, Any]:
    """Do what the tasks of the DAG do before, and without, an engine call: statistics and the three plans."""
    from airflow_hudi_maint.core import maintenance
    from airflow_hudi_maint.core.model.plan import ClusteringSettings

    workspace = maintenance.open_workspace(base_path, documents_location=str(documents), engine=_no_engine)
    gathered = maintenance.gather_statistics(workspace, now=NOW)
    settings = ClusteringSettings()
    expiry = maintenance.plan_expiry(workspace, now=NOW)
    clustering = maintenance.plan_clustering(workspace, now=NOW, settings=settings)
    small_files = maintenance.plan_small_files(workspace, now=NOW, settings=settings)
    maintenance.gather_statistics(workspace, now=NOW)
    requests = workspace.table.storage.requests
    return {
        "partitions": len(gathered.statistics.partitions),
        "files": gathered.statistics.data_file_count,
        "planned": [len(expiry.plan.entries), len(clustering.plan.entries), len(small_files.plan.entries)],
        "lists": requests.lists,
        "reads": requests.reads,
    }


def _no_engine() -> Engine:
    _fail("An idle run asked for an engine")


def _fail(message: str) -> NoReturn:
    sys.exit(message)


def measure(base_path: str, *, folder: Path, rounds: int) -> list[Line]:
    """Measure idle runs on a table, print the figures and return the lines."""
    starts = folder / "java-starts"
    environment = _recording_java(folder / "java", starts=starts)
    samples = [
        _sample(base_path, folder=folder, number=number, environment=environment) for number in range(rounds + 1)
    ][1:]
    facts = samples[-1].facts
    whole = median(one.facts["process_cpu_seconds"] for one in samples)
    print(f"\n| idle run on {facts['partitions']} partitions, {facts['files']} files | CPU s |\n|---|---:|")
    print(f"| statistics twice and three plans | {median_of(samples, field='cpu_seconds'):.3f} |")
    print(f"| the whole process: the above, start of Python, imports | {whole:.3f} |")
    count = len(starts.read_text().splitlines()) if starts.exists() else 0
    return [
        Line(name="idle run, CPU of the whole process", figure=whole, limit=2, unit="s"),
        Line(name="JVM starts in an idle run", figure=count, limit=0),
    ]


def _sample(base_path: str, *, folder: Path, number: int, environment: Mapping[str, str]) -> Sample:
    documents = folder / f"documents-{number}"
    return run_sample(SCRIPT, "--child", "--table", base_path, "--documents", str(documents), environment=environment)


def _recording_java(home: Path, *, starts: Path) -> Mapping[str, str]:
    """Put a `java` that records each start before every other one."""
    (home / "bin").mkdir(parents=True)
    for name in _COMMANDS:
        command = home / "bin" / name
        command.write_text(_FAKE_JAVA)
        command.chmod(0o755)
    path = f"{home / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    return {"PATH": path, "JAVA_HOME": str(home), "JAVA_STARTS": str(starts)}


def child(base_path: str, *, documents: Path) -> None:
    """Do one run in this process and print what it took."""
    import resource

    def work() -> Mapping[str, Any]:
        facts = idle_run(base_path, documents=documents)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {**facts, "process_cpu_seconds": usage.ru_utime + usage.ru_stime}

    report_sample(work)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", help="base path of a table; it is only read")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--documents", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure, print, and fail when a limit is not kept."""
    chosen = arguments()
    if chosen.child:
        child(chosen.table, documents=chosen.documents)
        return
    with tempfile.TemporaryDirectory(prefix="hudi-bench-") as text:
        folder = Path(text)
        lines = measure(chosen.table or like_the_demo(folder), folder=folder, rounds=chosen.rounds)
    finish(lines)


def like_the_demo(folder: Path) -> str:
    """Write a table of the demo's shape and return its base path."""
    write_table(folder / "table", partitions=36, files=4, commits=4, recent=36)
    return str(folder / "table")


if __name__ == "__main__":
    main()
