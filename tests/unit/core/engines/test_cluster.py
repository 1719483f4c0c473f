"""What holds for every cluster: one job of a name at a time, found again by its handle, its notes or its name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from airflow_hudi_maint.core.engines.base import run_job
from airflow_hudi_maint.core.engines.cluster import ClusterEngine, Submission
from airflow_hudi_maint.core.engines.cluster_settings import ClusterSettings, JarsBy
from airflow_hudi_maint.core.engines.java import JavaInstallation
from airflow_hudi_maint.core.engines.pyspark_install import PysparkInstallation
from airflow_hudi_maint.core.engines.spark_submit import SparkSubmitEngine
from airflow_hudi_maint.core.errors import (
    EngineError,
    EngineKilledError,
    InvalidSettingError,
    PendingActionError,
    StorageError,
)
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobRequest, JobStatus
from airflow_hudi_maint.core.storage.job_exchange import StorageExchange
from tests.unit.core.engines.conftest import fake_java
from tests.unit.core.engines.rest_server import running_rest_server

SECRET = "hush-hush-hush"  # noqa: S105
JAR = "hudi-spark3.5-bundle_2.12-1.2.0.jar"


@dataclass
class FakeManager:
    """A cluster in memory; ``states`` of its applications can be set, and errors of the next looks."""

    states: dict[str, JobStatus] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    submissions: list[Submission] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    obeys: bool = True

    def submit(self, submission: Submission) -> str:
        self.submissions.append(submission)
        job_id = f"driver-{len(self.submissions)}"
        self.states[job_id], self.names[job_id] = JobStatus.RUNNING, submission.application_name
        return job_id

    def state(self, job_id: str) -> JobStatus:
        if self.errors:
            raise self.errors.pop()
        return self.states.get(job_id, JobStatus.LOST)

    def find(self, application_name: str) -> str | None:
        live = (one for one, name in self.names.items() if name == application_name)
        return next((one for one in live if self.states.get(one) is JobStatus.RUNNING), None)

    def kill(self, job_id: str) -> None:
        if self.obeys:
            self.states[job_id] = JobStatus.KILLED

    def log_tail(self, job_id: str, *, lines: int) -> str:
        return f"log of {job_id}"


def engine(manager: FakeManager, table: Path) -> ClusterEngine:
    def settings(_: JobRequest) -> tuple[Mapping[str, str], Mapping[str, str]]:
        return {"spark.x": "y"}, {"spark.x.secret": SECRET}

    return ClusterEngine(
        name="spark_submit",
        bundle="b",
        manager=manager,
        exchange=lambda: StorageExchange.open(str(table)),
        settings=settings,
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "trips" / ".hoodie").mkdir(parents=True)
    return tmp_path / "trips"


def request(table: Path, name: str = "hudi-maint-a") -> JobRequest:
    return JobRequest(kind=JobKind.CLEAN, base_path=str(table), table_name="trips", name=name)


def folder(table: Path, name: str = "hudi-maint-a") -> Path:
    return table / ".hoodie/.airflow_hudi_maint/jobs" / name / "clean"


def report(table: Path, **fields: object) -> None:
    document = {"version": 1, "ok": True, "rows": [], "seconds": 2.0, **fields}
    (folder(table) / "report.json").write_text(json.dumps(document), encoding="utf-8")


def test_a_job_gets_all_it_needs_and_secrets_apart(table: Path) -> None:
    """What may be seen is in the settings; the jobs lie on the table's storage under a name of their content."""
    manager = FakeManager()
    engine(manager, table).submit(request(table))
    one = manager.submissions[0]
    assert one.settings == {"spark.x": "y", "spark.app.name": "hudi-maint-a"}
    assert one.payload["settings"] == {"spark.x.secret": SECRET}
    assert one.payload["folder"] == str(folder(table))
    assert one.payload["claim"] == json.loads((folder(table) / "claim.json").read_text())["claim"]
    assert SECRET not in repr(one)
    assert Path(one.code().archive).read_bytes() == one.packed.archive
    assert SECRET not in "".join(path.read_text(errors="replace") for path in table.rglob("*") if path.is_file())


def test_a_job_that_runs_is_attached_to(table: Path) -> None:
    """By what was noted at its submission, by its name where the note is gone, and by no other's name."""
    manager = FakeManager()
    first = engine(manager, table).submit(request(table))
    assert engine(manager, table).submit(request(table)) == first
    (folder(table) / "submission.json").unlink()
    assert engine(manager, table).submit(request(table)) == first
    assert len(manager.submissions) == 1
    assert engine(manager, table).submit(request(table, "hudi-maint-b")) != first


def test_a_job_that_has_ended_is_not_attached_to(table: Path) -> None:
    """The next one has a claim of its own and none of the old one's report."""
    manager = FakeManager()
    first = engine(manager, table).submit(request(table))
    report(table)
    manager.states["driver-1"] = JobStatus.SUCCEEDED
    second = engine(manager, table).submit(request(table))
    assert second != first
    assert engine(manager, table).report(second) is None
    assert manager.submissions[0].payload["claim"] != manager.submissions[1].payload["claim"]


def test_a_stored_handle_is_enough(table: Path) -> None:
    """Another process reads status, report and log by it, and ends the job."""
    manager = FakeManager()
    stored = JobHandle.from_json(engine(manager, table).submit(request(table)).to_json())
    later = engine(manager, table)
    assert later.status(stored) is JobStatus.RUNNING
    report(table)
    found = later.report(stored)
    assert found is not None
    assert found.ok
    assert later.log_tail(stored) == "log of driver-1"
    later.kill(stored)
    assert later.status(stored) is JobStatus.KILLED
    later.close(stored)
    later.close(stored)
    assert sorted(path.name for path in folder(table).iterdir()) == ["claim.json"]


def test_a_lost_job_is_judged_by_its_report(table: Path) -> None:
    """A master that was started anew knows nothing of it; without a report it is lost."""
    manager = FakeManager()
    handle = engine(manager, table).submit(request(table))
    manager.states.clear()
    assert engine(manager, table).status(handle) is JobStatus.LOST
    report(table, ok=False)
    assert engine(manager, table).status(handle) is JobStatus.FAILED
    report(table)
    assert engine(manager, table).status(handle) is JobStatus.SUCCEEDED


def test_a_job_whose_driver_is_forgotten_runs_while_its_application_does(table: Path) -> None:
    """So after the restart of a master, which keeps applications."""
    manager = FakeManager()
    handle = engine(manager, table).submit(request(table))
    manager.states = {"app-1": JobStatus.RUNNING}
    manager.names = {"app-1": "hudi-maint-a"}
    assert engine(manager, table).status(handle) is JobStatus.RUNNING
    engine(manager, table).kill(handle)
    assert manager.states == {"app-1": JobStatus.KILLED}


def test_a_cluster_that_is_silent_for_a_moment_is_borne_with(table: Path) -> None:
    """The job goes on meanwhile; the log says that nothing was heard."""
    manager, lines = FakeManager(), list[str]()
    one = engine(manager, table)

    def submitted(_: JobHandle) -> None:
        manager.errors = [EngineError("refused"), EngineError("refused")]
        manager.states["driver-1"] = JobStatus.SUCCEEDED

    outcome = run_job(one, request(table), on_submitted=submitted, log=lines.append, interval_seconds=0.01)
    assert outcome.status is JobStatus.SUCCEEDED
    assert len([line for line in lines if line.startswith("No answer for")]) == 2


def test_progress_that_is_out_of_reach_ends_no_job(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage that hiccups while a stage is looked up: the job works on, and so does the wait for it."""
    manager, lines = FakeManager(), list[str]()
    one = engine(manager, table)
    read, hiccups = StorageExchange.read, iter([StorageError("slow down"), ConnectionResetError("reset")])

    def unreliable(self: StorageExchange, path: str) -> bytes | None:
        if path.endswith("progress.json"):
            manager.states["driver-1"] = JobStatus.RUNNING if (error := next(hiccups, None)) else JobStatus.SUCCEEDED
            if error:
                raise error
        return read(self, path)

    monkeypatch.setattr(StorageExchange, "read", unreliable)
    outcome = run_job(
        one,
        request(table),
        on_submitted=lambda _: None,
        log=lines.append,
        interval_seconds=0.01,
        report_every_seconds=0.0,
    )
    assert outcome.status is JobStatus.SUCCEEDED
    assert next(hiccups, None) is None


def test_a_job_whose_folder_takes_no_note_is_ended(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could leave no report there either, and nobody would have its handle."""
    manager = FakeManager()
    write = StorageExchange.write

    def full(self: StorageExchange, path: str, data: bytes) -> None:
        if path.endswith("submission.json"):
            raise StorageError("no space left")
        write(self, path, data)

    monkeypatch.setattr(StorageExchange, "write", full)
    with pytest.raises(StorageError, match="no space left"):
        engine(manager, table).submit(request(table))
    assert manager.states == {"driver-1": JobStatus.KILLED}


def test_of_two_tries_at_once_the_one_with_the_later_claim_goes_on(table: Path) -> None:
    """Submitting takes a while. The other one's job is ended, and the folder is left as its owner has it."""
    manager = FakeManager()
    submit = manager.submit

    def slow(submission: Submission) -> str:
        (folder(table) / "claim.json").write_text('{"version": 1, "claim": "of another"}', encoding="utf-8")
        (folder(table) / "submission.json").write_text('{"version": 1, "id": "driver-9"}', encoding="utf-8")
        return submit(submission)

    manager.submit = slow  # type: ignore[method-assign]
    with pytest.raises(PendingActionError, match="Another try of hudi-maint-a was submitted at the same moment"):
        engine(manager, table).submit(request(table))
    assert manager.states == {"driver-1": JobStatus.KILLED}
    assert json.loads((folder(table) / "submission.json").read_text())["id"] == "driver-9"


@pytest.mark.parametrize("name", ["Überflüge/Nacht", "a b", "..", ".hidden", "x" * 400, "-" * 3, "a\nb", "../../etc"])
def test_a_name_with_odd_characters_is_one_that_storage_and_cluster_take(table: Path, name: str) -> None:
    """Two names that differ stay different, and the folder stays where it belongs."""
    manager = FakeManager()
    handle = engine(manager, table).submit(request(table, name))
    assert engine(manager, table).submit(request(table, name)) == handle
    other = engine(manager, table).submit(request(table, name.replace("Ü", "O").replace(" ", "-") + "!"))
    assert other != handle
    (one, two) = manager.submissions
    for submission in (one, two):
        assert re.fullmatch(r"[\w+-][\w.+-]{0,199}", submission.application_name, re.ASCII)
    found = sorted(path.parent.name for path in (table / ".hoodie/.airflow_hudi_maint/jobs").glob("*/clean"))
    assert found == sorted((one.application_name, two.application_name))
    assert engine(manager, table).status(handle) is JobStatus.RUNNING


def test_a_job_that_does_not_end_is_said_not_to(table: Path) -> None:
    """Within the time given."""
    manager = FakeManager(obeys=False)
    handle = engine(manager, table).submit(request(table))
    with pytest.raises(EngineKilledError, match="did not end within"):
        engine(manager, table).kill(handle, timeout_seconds=0.1)


@pytest.mark.parametrize("job_id", ["", "driver-1", "driver-1 ../../x", "driver-1 a/b/c"])
def test_a_handle_that_says_nothing_touches_nothing(table: Path, job_id: str) -> None:
    """It is of a lost job, as with the local engine."""
    one, handle = engine(FakeManager(), table), JobHandle(engine="spark_submit", job_id=job_id)
    assert one.status(handle) is JobStatus.LOST
    assert one.report(handle) is None
    one.kill(handle)
    one.close(handle)
    with pytest.raises(InvalidSettingError, match="was given to the engine 'livy'"):
        one.status(replace(handle, engine="livy"))


def settings(
    tmp_path: Path, path: str, *, jars_by: JarsBy, bundle: str | None = None, **more: object
) -> ClusterSettings:
    jar = tmp_path / JAR
    jar.touch()
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True, exist_ok=True)
    spark = PysparkInstallation(home=home, version="3.5.9")
    return ClusterSettings(
        master="spark://m:7077",
        bundle=bundle or str(jar),
        jars_by=jars_by,
        find_spark=lambda: (JavaInstallation(home=tmp_path, major=17, source="test"), spark),
        **more,  # type: ignore[arg-type]
    )


def test_jars_go_where_the_cluster_looks_for_them(tmp_path: Path) -> None:
    """At the same path on each node, uploaded by spark-submit, or resolved by Livy's own."""
    jar = str(tmp_path / JAR)
    asked = JobRequest(kind=JobKind.CLEAN, base_path="/lake/t", table_name="t")
    names = ("spark.driver.extraClassPath", "spark.executor.extraClassPath", "spark.jars", "spark.jars.packages")

    def found(**more: object) -> list[str | None]:
        seen, _ = settings(tmp_path, "/lake/t", **more).of(asked)  # type: ignore[arg-type]
        return [seen.get(name) for name in names]

    assert found(jars_by=JarsBy.PATH) == [jar, jar, None, None]
    assert found(jars_by=JarsBy.UPLOAD) == [JAR, JAR, jar, None]
    coordinate = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
    assert found(jars_by=JarsBy.RESOLVING, bundle=coordinate) == [None, None, None, coordinate]
    assert found(jars_by=JarsBy.PATH, bundle=f"local:/opt/{JAR}") == [f"/opt/{JAR}", f"/opt/{JAR}", None, None]
    assert found(jars_by=JarsBy.UPLOAD, bundle=f"hdfs://nn/{JAR}") == [None, None, f"hdfs://nn/{JAR}", None]


def test_secrets_of_a_cluster_job_are_apart(tmp_path: Path) -> None:
    """Keys of the storage, and what the user's own settings have; Livy's engine leaves the storage's keys out."""
    more = {
        "storage_options": {"key": "AKIA", "secret": SECRET, "endpoint_url": "http://minio:9000"},
        "spark_conf": {"spark.x.token": SECRET},
        "packages": ("local:/opt/hadoop-aws.jar",),
        "time_zone": "Europe/Berlin",
    }
    asked = JobRequest(kind=JobKind.CLEAN, base_path="s3a://lake/t", table_name="t")
    seen, secret = settings(tmp_path, "s3a://lake/t", jars_by=JarsBy.RESOLVING, **more).of(asked)
    assert sorted(secret) == ["spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.secret.key", "spark.x.token"]
    assert SECRET not in str(seen)
    assert seen["spark.hadoop.fs.s3a.endpoint"] == "http://minio:9000"
    assert seen["spark.driver.extraJavaOptions"] == "-Duser.timezone=Europe/Berlin"
    _, secret = settings(tmp_path, "s3a://lake/t", jars_by=JarsBy.RESOLVING, keeps_secrets=False, **more).of(asked)
    assert list(secret) == ["spark.x.token"]


def test_masters_without_a_cluster_mode_here_are_refused(table: Path) -> None:
    """And YARN without an address to ask."""
    exchange = lambda: StorageExchange.open(str(table))  # noqa: E731
    with pytest.raises(InvalidSettingError, match="Cluster mode is there for masters spark://… and yarn"):
        SparkSubmitEngine(master="k8s://https://k", deploy_mode="cluster", exchange=exchange).submit(request(table))
    with pytest.raises(InvalidSettingError, match="needs rest_url"):
        SparkSubmitEngine(master="yarn", deploy_mode="cluster", exchange=exchange).submit(request(table))


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_a_master_that_is_down_is_a_clear_error(table: Path, mode: str) -> None:
    """Before anything is started, and soon."""
    one = SparkSubmitEngine(
        master="spark://127.0.0.1:9",
        deploy_mode=mode,  # type: ignore[arg-type]
        bundle=f"local:/opt/{JAR}",
        rest_url="http://127.0.0.1:9",
        ui_url="http://127.0.0.1:9",
        exchange=lambda: StorageExchange.open(str(table)),
    )
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:9.*refused"):
        one.submit(request(table))


def test_the_python_of_a_cluster_need_not_be_on_this_machine(table: Path, tmp_path: Path) -> None:
    """It is named to the cluster; jars are found with the Python of here."""
    jar = tmp_path / JAR
    jar.touch()
    with running_rest_server() as server:
        server.routes["GET /json/"] = {"status": "ALIVE", "activeapps": []}
        server.routes["POST /v1/submissions/create"] = {"success": True, "submissionId": "driver-1"}
        SparkSubmitEngine(
            master="spark://m:7077",
            deploy_mode="cluster",
            bundle=str(jar),
            python="/nowhere/python",
            java_home=str(fake_java(tmp_path / "java", version='openjdk version "17.0.9"')),
            rest_url=server.url,
            ui_url=server.url,
            exchange=lambda: StorageExchange.open(str(table)),
        ).submit(request(table))
    body = server.asked[-1][2]
    assert body["sparkProperties"]["spark.pyspark.python"] == "/nowhere/python"
    assert body["sparkProperties"]["spark.driver.extraClassPath"] == str(jar)
