"""Measure clustering: our steps against the same calls typed into a Spark session that is warm already.

    python benchmarks/clustering_benchmark.py [--bundle JAR --files 10 --rows 60000]

Needs Java, pyspark and a bundle of Hudi's; takes some ten minutes on two cores, and 2 GB of temporary disk.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from statistics import median
from typing import TYPE_CHECKING, Any

from hudi_session import SETTINGS, newest_bundle, session
from measure import Line, finish
from synthetic_table import RECENT_PARTITIONS, write_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hudi_maint.core.maintenance import Workspace
    from airflow_hudi_maint.core.model.plan import ClusteringSettings

CORES = 2
DAYS = 6
WANTED = "dest = 'd042'"
_MIB = 2**20
_WRITER = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.clean.automatic": "false",
}
_EXECUTION = {
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.write.auto.upgrade": "false",
}


@dataclass(frozen=True, kw_only=True)
class Timed:
    """Seconds of a call as its caller sees them, and between the marks that Hudi leaves on the timeline."""

    wall_seconds: float
    timeline_seconds: float


def write_trips(spark: SparkSession, base: Path, *, files: int, rows: int) -> None:
    """Write ``files`` files to each of six days, a commit at a time."""
    for commit in range(files):
        frame = spark.range(commit * rows * DAYS, (commit + 1) * rows * DAYS).selectExpr(
            "cast(id as string) as id",
            f"concat('2026-11-0', 1 + id % {DAYS}) as day",
            "concat('d', lpad(cast(hash(id, 7) % 100 + 100 as string), 3, '0')) as dest",
            "cast(abs(hash(id)) % 5000 as int) as distance",
            "md5(cast(id as string)) as payload",
            f"{commit}L as ts",
        )
        frame.write.format("hudi").options(**_WRITER).mode("append").save(str(base))


def workspace_of(base: Path, *, bundle: str) -> Workspace:
    """Open a table with the embedded engine."""
    from airflow_hudi_maint.core.engines.local import LocalSparkEngine
    from airflow_hudi_maint.core.maintenance import open_workspace

    return open_workspace(
        str(base), bundle=bundle, engine=lambda: LocalSparkEngine(bundle=bundle, master=f"local[{CORES}]")
    )


def scheduled(base: Path, *, bundle: str, settings: ClusteringSettings) -> str:
    """Put a plan on the timeline without a JVM, and return its instant."""
    from airflow_hudi_maint.core.maintenance import JobControl, schedule_clustering
    from airflow_hudi_maint.core.model.scheduler import Scheduler

    reported = schedule_clustering(
        workspace_of(base, bundle=bundle),
        now=datetime.now(UTC),
        settings=settings,
        job=JobControl(),
        scheduler=Scheduler.NATIVE,
    )
    return reported.report.instants[-1]


def timeline_seconds(base: Path, instant: str) -> float:
    """Seconds between the marks `inflight` and `completed` of an instant."""
    timeline = base / ".hoodie" / "timeline"
    begun = timeline / f"{instant}.clustering.inflight"
    ended = next(timeline.glob(f"{instant}_*.replacecommit"))
    return ended.stat().st_mtime - begun.stat().st_mtime


def timed(base: Path, instant: str, call: Callable[[], object]) -> Timed:
    """Time an execution of an instant."""
    begun = time.perf_counter()
    call()
    wall = time.perf_counter() - begun
    return Timed(wall_seconds=wall, timeline_seconds=timeline_seconds(base, instant))


@contextmanager
def settings_of(spark: SparkSession, options: Mapping[str, str]) -> Iterator[None]:
    """Hudi options as settings of the session, for as long as a call takes."""
    for key, value in options.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in options:
            spark.conf.unset(key)


def statement(base: Path, instant: str) -> str:
    """What a person types to execute one plan."""
    return f"CALL run_clustering(path => '{base}', op => 'execute', instants => '{instant}')"


def in_session(spark: SparkSession, base: Path, instant: str) -> Timed:
    """Execute in the warm session."""
    with settings_of(spark, _EXECUTION):
        return timed(base, instant, lambda: spark.sql(statement(base, instant)).collect())


def by_operator(base: Path, instant: str, *, bundle: str) -> Timed:
    """Execute by the operator, in this process as in a worker that has imported it; verification included."""
    os.environ["AIRFLOW_CONN_HUDI_DEFAULT"] = json.dumps(
        {"conn_type": "hudi", "extra": {"bundle": bundle, "master": f"local[{CORES}]"}}
    )
    from airflow_hudi_maint.operators.clustering import HudiExecuteClusteringOperator

    operator = HudiExecuteClusteringOperator(task_id="execute", base_path=str(base), instants=[instant])
    context: Any = {}
    return timed(base, instant, lambda: operator.execute(context))


def by_submit(base: Path, instant: str, *, bundle: str, folder: Path) -> Timed:
    """Execute by spark-submit of a script that does nothing else."""
    from airflow_hudi_maint.core.engines.pyspark_install import find_pyspark

    script = folder / "execute.py"
    lines = ["from pyspark.sql import SparkSession", "spark = SparkSession.builder.getOrCreate()"]
    lines += [f"spark.conf.set({key!r}, {value!r})" for key, value in _EXECUTION.items()]
    script.write_text("\n".join([*lines, f"spark.sql({statement(base, instant)!r}).collect()", "spark.stop()"]))
    settings = {**SETTINGS, "spark.driver.extraClassPath": bundle}
    home = find_pyspark(sys.executable).home
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    command = [str(home / "bin" / "spark-submit"), "--master", f"local[{CORES}]"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    return timed(
        base,
        instant,
        lambda: subprocess.run([*command, str(script)], check=True, capture_output=True, cwd=folder, env=environment),
    )


def base_files(base: Path, *, instant: str | None = None) -> list[Path]:
    """The base files of a table, or those that one instant wrote."""
    return sorted(base.glob(f"day=*/*{instant or ''}.parquet"))


def read_for(files: list[Path]) -> tuple[int, int]:
    """How many files and row groups a query for one destination has to read, by the footers' bounds."""
    import pyarrow.parquet as pq

    read_files = groups = 0
    for file in files:
        footer = pq.ParquetFile(file).metadata
        column = footer.schema.names.index("dest")
        bounds = [footer.row_group(number).column(column).statistics for number in range(footer.num_row_groups)]
        hit = sum(one.min <= "d042" <= one.max for one in bounds)
        groups += hit
        read_files += hit > 0
    return read_files, groups


def query_seconds(spark: SparkSession, base: Path) -> float:
    """The median of five runs of a selective query, the first two apart."""
    runs = []
    for _ in range(5):
        begun = time.perf_counter()
        spark.read.format("hudi").load(str(base)).where(WANTED).selectExpr("sum(distance)").collect()
        runs.append(time.perf_counter() - begun)
    return median(runs[2:])


def measure_rewriting(spark: SparkSession, *, folder: Path, bundle: str, files: int, rows: int) -> list[Line]:
    """Execute one plan in every way, and print what each took."""
    from airflow_hudi_maint.core.model.plan import ClusteringSettings, ExecutionStrategy

    trips = folder / "trips"
    write_trips(spark, trips, files=files, rows=rows)
    size = sum(one.stat().st_size for one in base_files(trips)) / _MIB
    by_dest = ClusteringSettings(
        target_file_bytes=256 * _MIB, small_file_bytes=128 * _MIB, max_group_bytes=512 * _MIB, sort_columns=("dest",)
    )

    def copied(name: str, settings: ClusteringSettings = by_dest) -> tuple[Path, str]:
        base = folder / name
        copytree(trips, base)
        return base, scheduled(base, bundle=bundle, settings=settings)

    in_session(spark, *copied("warm-up"))
    warm_base, warm_instant = copied("warm")
    warm = in_session(spark, warm_base, warm_instant)
    submit = by_submit(*copied("submit"), bundle=bundle, folder=folder)
    operator = by_operator(*copied("operator"), bundle=bundle)
    copy_settings = replace(by_dest, sort_columns=(), execution_strategy=ExecutionStrategy.BINARY_COPY)
    copied_bytes = in_session(spark, *copied("binary-copy", copy_settings))
    begun = time.perf_counter()
    plain = spark.read.parquet(*map(str, base_files(trips))).repartition(DAYS, "day").sortWithinPartitions("dest")
    plain.write.parquet(str(folder / "plain"))
    plain_seconds = time.perf_counter() - begun

    print(f"\n{size:.0f} MiB in {len(base_files(trips))} files of {DAYS} partitions, {Path(bundle).name}")
    print("\n| the same plan, executed | wall s | on the timeline s | MiB/s per core |\n|---|---:|---:|---:|")
    for name, one in (
        ("in a warm session", warm),
        ("by spark-submit", submit),
        ("by the operator", operator),
        ("binary copy, in a warm session", copied_bytes),
    ):
        rate = size / one.timeline_seconds / CORES
        print(f"| {name} | {one.wall_seconds:.1f} | {one.timeline_seconds:.1f} | {rate:.1f} |")
    print(f"| Spark reads, sorts, writes; warm | {plain_seconds:.1f} | | {size / plain_seconds / CORES:.1f} |")

    print(f"\n| query `{WANTED}` | files read | row groups read | s |\n|---|---:|---:|---:|")
    for name, base, found in (
        ("before", trips, base_files(trips)),
        ("sorted", warm_base, base_files(warm_base, instant=warm_instant)),
    ):
        read, groups = read_for(found)
        print(f"| {name} | {read} of {len(found)} | {groups} | {query_seconds(spark, base):.2f} |")
    return [
        Line(name="our execute ÷ warm session, start-up apart", figure=_ratio(operator, warm), limit=1.05),
        Line(name="operator ÷ spark-submit", figure=operator.wall_seconds / submit.wall_seconds, limit=1.1),
    ]


def _ratio(above: Timed, below: Timed) -> float:
    return above.timeline_seconds / below.timeline_seconds


def measure_scheduling(spark: SparkSession, *, folder: Path, bundle: str, rounds: int = 3) -> list[Line]:
    """Schedule over 40,000 slices: natively, and in the warm session."""
    from airflow_hudi_maint.core.model.plan import ClusteringSettings

    base = folder / "large"
    write_table(base, partitions=2000, files=20, commits=500, recent=RECENT_PARTITIONS)
    timeline = base / ".hoodie" / "timeline"
    options = {
        **_EXECUTION,
        "hoodie.table.services.incremental.enabled": "false",
        "hoodie.clustering.plan.strategy.max.num.groups": "100000",
        "hoodie.metadata.enable": "false",
    }

    def once(call: Callable[[], object]) -> float:
        begun = time.perf_counter()
        call()
        seconds = time.perf_counter() - begun
        made = sorted(timeline.glob("*.clustering.requested"))
        if len(made) != 1:
            sys.exit(f"Expected one plan on {timeline}, found {len(made)}")
        made[0].unlink()
        return seconds

    call = f"CALL run_clustering(path => '{base}', op => 'schedule')"
    natively, by_hudi = [], []
    for _ in range(rounds + 1):
        natively.append(once(lambda: scheduled(base, bundle=bundle, settings=ClusteringSettings())))
        with settings_of(spark, options):
            by_hudi.append(once(lambda: spark.sql(call).collect()))
    ours, theirs = median(natively[1:]), median(by_hudi[1:])
    print(f"\n| scheduling over 40,000 slices | wall s |\n|---|---:|\n| natively | {ours:.2f} |")
    print(f"| Hudi, in a warm session | {theirs:.2f} |")
    return [Line(name="native ÷ Hudi's scheduling in a warm session", figure=ours / theirs, limit=0.1)]


def main() -> None:
    """Measure, print, and fail when a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", help="Hudi's Spark bundle; by default the newest that the set-up fetched")
    parser.add_argument("--files", type=int, default=10, help="files in each of the six partitions")
    parser.add_argument("--rows", type=int, default=60_000, help="rows in each file")
    parser.add_argument("--only", choices=("rewriting", "scheduling"))
    chosen = parser.parse_args()
    bundle = chosen.bundle or newest_bundle()
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="hudi-bench-") as text:
        folder = Path(text)
        spark = session(bundle)
        if chosen.only != "rewriting":
            lines += measure_scheduling(spark, folder=folder, bundle=bundle)
        if chosen.only != "scheduling":
            lines += measure_rewriting(spark, folder=folder, bundle=bundle, files=chosen.files, rows=chosen.rows)
        spark.stop()
    finish(lines)


if __name__ == "__main__":
    main()
