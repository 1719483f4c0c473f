"""The local engine and the job scripts with real Spark and Hudi, on tables of an old and a newer version."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from airflow_hudi_maint.core.engines.base import run_job
from airflow_hudi_maint.core.engines.local import LocalSparkEngine
from airflow_hudi_maint.core.model.document import Json
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobReport, JobRequest, JobStatus
from tests.waiting import eventually

pytestmark = pytest.mark.spark

SECRET = "hunter2-of-s3"  # noqa: S105
KEEP_VERSION = {"hoodie.write.auto.upgrade": "false", "hoodie.metadata.index.column.stats.enable": "false"}

WRITE_TABLES = """
    import json, sys
    from pathlib import Path
    from pyspark.sql import SparkSession

    request = json.loads(Path(sys.argv[1]).read_text())
    spark = SparkSession.builder.getOrCreate()
    rows = [(f"k{n}", n, "it's" if n % 2 else "b", 9 + n % 3, 1.5 * n) for n in range(12)]
    trips = spark.createDataFrame(rows, ["id", "ts", "city", "month", "fare"]).coalesce(1)

    def insert(name, version, *, fields, hive):
        trips.write.format("hudi").options(**{
            **request["write_options"],
            "hoodie.table.name": "trips",
            "hoodie.write.table.version": str(version),
            "hoodie.write.complex.keygen.validation.enable": "false",
            "hoodie.datasource.write.operation": "insert",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": fields,
            "hoodie.datasource.write.hive_style_partitioning": hive,
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.index.bloom.num_entries": "10",
        }).mode("append").save(request["base_path"] + "/" + name)

    insert("v6", 6, fields="city,month", hive="false")
    for _ in range(2):
        insert("v8", 8, fields="month", hive="true")
    spark.stop()
    report = {"version": 1, "ok": True, "rows": [], "seconds": 0}
    Path(sys.argv[2]).write_text(json.dumps(report))
"""


def engine(**more: object) -> LocalSparkEngine:
    return LocalSparkEngine(
        master="local[2]",
        driver_memory="1g",
        spark_conf={"spark.hadoop.fs.s3a.secret.key": SECRET, "spark.sql.shuffle.partitions": "2"},
        **more,  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write both tables in one session, through the engine itself."""
    root = tmp_path_factory.mktemp("tables")
    (root / "delete_partitions.py").write_text(textwrap.dedent(WRITE_TABLES), encoding="utf-8")
    request = JobRequest(
        kind=JobKind.DELETE_PARTITIONS, base_path=str(root), table_name="trips", write_options=KEEP_VERSION
    )
    outcome = run_job(
        engine(jobs_dir=root),
        request,
        on_submitted=lambda _: None,
        log=print,
        interval_seconds=0.5,
        timeout_seconds=600,
    )
    assert outcome.status is JobStatus.SUCCEEDED, outcome.log_tail
    return root


def run(table: Path, kind: JobKind, *, version: int, **arguments: Json) -> JobReport:
    request = JobRequest(
        kind=kind,
        base_path=str(table),
        table_name="trips",
        write_options={**KEEP_VERSION, "hoodie.write.table.version": str(version)},
        arguments=arguments,
    )
    outcome = run_job(
        engine(), request, on_submitted=lambda _: None, log=print, interval_seconds=0.5, timeout_seconds=600
    )
    assert outcome.report is not None, outcome.log_tail
    assert outcome.report.ok, outcome.report.error_message
    assert outcome.report.hudi_version == "1.2.0"
    return outcome.report


def properties(table: Path) -> dict[str, str]:
    lines = (table / ".hoodie" / "hoodie.properties").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def timeline(table: Path) -> set[str]:
    folder = table / ".hoodie"
    folder = folder / "timeline" if (folder / "timeline").is_dir() else folder
    return {path.name for path in folder.iterdir() if path.is_file() and not path.name.endswith(".crc")}


def base_files(partition: Path) -> dict[str, str]:
    """Return the base files of a partition by the id of their file group."""
    return {path.name.split("_")[0]: path.name for path in partition.glob("*.parquet")}


def test_partitions_of_two_levels_are_dropped_from_a_version_6_table(tables: Path) -> None:
    """One replace commit holds the file groups of these partitions and no other; properties and version stay."""
    table = tables / "v6"
    before = properties(table)
    earlier = timeline(table)
    run(
        table,
        JobKind.DELETE_PARTITIONS,
        version=6,
        partitions=["it's/10", "b/9"],
        record_key_fields=["id"],
        ordering_fields=["ts"],
        partition_fields=["city", "month"],
        hive_style=False,
        url_encode=False,
        table_type="COPY_ON_WRITE",
        keygenerator="org.apache.hudi.keygen.ComplexKeyGenerator",
    )
    (commit,) = (name for name in timeline(table) - earlier if name.endswith(".replacecommit"))
    document = json.loads((table / ".hoodie" / commit).read_text(encoding="utf-8"))
    replaced = {name: set(groups) for name, groups in document["partitionToReplaceFileIds"].items()}
    assert replaced == {name: set(base_files(table / name)) for name in ("it's/10", "b/9")}
    assert document["operationType"] == "DELETE_PARTITION"
    assert properties(table) == before
    assert before["hoodie.table.version"] == "6"


def test_a_plan_is_written_and_executed_by_name_on_a_version_8_table(tables: Path) -> None:
    """Scheduling leaves one requested instant; executing it makes one file of two in each chosen partition only."""
    table = tables / "v8"
    before = properties(table)
    earlier = timeline(table)
    report = run(
        table,
        JobKind.SCHEDULE_CLUSTERING,
        version=8,
        partitions=["month=9", "month=10"],
        sort_columns=["city", "fare"],
        layout="linear",
        options={"hoodie.clustering.plan.strategy.max.num.groups": "50"},
    )
    assert report.rows == ()  # Hudi answers with no row though it wrote a plan.
    (requested,) = timeline(table) - earlier
    instant, _, state = requested.partition(".")
    assert state == "clustering.requested"
    report = run(table, JobKind.EXECUTE_CLUSTERING, version=8, instants=[instant])
    assert [(row["timestamp"], row["state"]) for row in report.rows] == [(instant, "COMPLETED")]
    assert [name for name in timeline(table) if name.startswith(f"{instant}_") and name.endswith(".replacecommit")]
    written = {
        month: [name for name in base_files(table / month).values() if f"_{instant}." in name]
        for month in ("month=9", "month=10", "month=11")
    }
    assert {month: len(names) for month, names in written.items()} == {"month=9": 1, "month=10": 1, "month=11": 0}
    assert properties(table) == before
    assert before["hoodie.table.version"] == "8"


def command_lines(handle: JobHandle) -> list[str]:
    """Return the command lines of the living processes in the job's session."""
    leader = handle.job_id.split(":")[0]
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            stat = (process / "stat").read_text(encoding="utf-8", errors="replace")
            line = (process / "cmdline").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        fields = stat[stat.rindex(")") + 2 :].split()
        if fields[3] == leader and fields[0] != "Z":
            lines.append(line.replace("\0", " "))
    return lines


def in_a_stage(spark: LocalSparkEngine, handle: JobHandle) -> bool:
    progress = spark.progress(handle)
    return progress is not None and progress.active_stages > 0


def java_runs(handle: JobHandle) -> bool:
    return any("org.apache.spark.deploy.SparkSubmit" in line for line in command_lines(handle))


LONG_JOB = """
    import sys
    sys.path.insert(0, {jobs!r})
    import session

    def forever(spark, request):
        spark.range(0, 10**15, 1, 2).selectExpr("sum(hash(id))").collect()
        return []

    session.main("delete_partitions", job=forever)
"""


@pytest.fixture
def long_job(tmp_path: Path) -> Path:
    """Return a folder with a job whose one Spark stage does not end."""
    jobs = str(LocalSparkEngine().jobs_dir)
    (tmp_path / "delete_partitions.py").write_text(textwrap.dedent(LONG_JOB.format(jobs=jobs)), encoding="utf-8")
    return tmp_path


def test_kill_ends_the_jvm_and_no_secret_was_on_its_command_line(long_job: Path) -> None:
    """In the middle of a stage: progress is seen, the setting is on no command line, and kill leaves no Java."""
    spark = engine(jobs_dir=long_job)
    request = JobRequest(kind=JobKind.DELETE_PARTITIONS, base_path="/lake/trips", table_name="trips")
    handle = spark.submit(request)
    try:
        assert eventually(lambda: in_a_stage(spark, handle), seconds=180)
        lines = command_lines(handle)
        assert java_runs(handle)
        assert not [line for line in lines if SECRET in line]
        started = time.monotonic()
        spark.kill(handle, timeout_seconds=20.0)
        assert time.monotonic() - started < 21.0
        assert command_lines(handle) == []
        assert spark.status(handle) is JobStatus.KILLED
    finally:
        spark.kill(handle)
        spark.close(handle)


def test_a_worker_killed_outright_leaves_no_jvm(long_job: Path) -> None:
    """When the process that submitted the job is gone without a word, the job and its Java follow it."""
    code = """
        import sys, time
        from pathlib import Path
        from airflow_hudi_maint.core.engines.local import LocalSparkEngine
        from airflow_hudi_maint.core.model.job import JobKind, JobRequest
        engine = LocalSparkEngine(jobs_dir=Path(sys.argv[1]), master="local[2]", driver_memory="1g")
        request = JobRequest(kind=JobKind.DELETE_PARTITIONS, base_path="/lake/trips", table_name="trips")
        print(engine.submit(request).job_id, flush=True)
        time.sleep(600)
    """
    spark = engine(jobs_dir=long_job)
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(long_job)], stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        handle = JobHandle(engine="local", job_id=worker.stdout.readline().strip())
        try:
            assert eventually(lambda: in_a_stage(spark, handle), seconds=180)
            worker.send_signal(signal.SIGKILL)
            assert eventually(lambda: command_lines(handle) == [], seconds=30)
            assert spark.status(handle) is JobStatus.LOST
        finally:
            worker.kill()
            spark.kill(handle)
            spark.close(handle)
