"""A table on an S3 server, maintained by Spark through s3a with the keys of an Airflow connection."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import fsspec
import pytest

from airflow_hudi_maint.core.engines.local import PARENT_PID_VARIABLE
from airflow_hudi_maint.core.maintenance import Workspace
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.report import StepReport
from airflow_hudi_maint.core.model.verification import Verdict
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.operators.clustering import HudiExecuteClusteringOperator, HudiScheduleClusteringOperator
from airflow_hudi_maint.operators.expiry import HudiExpirePartitionsOperator
from tests.airflow.fakes import context
from tests.s3_server import S3Server, running_s3_server
from tests.spark.s3_writer import s3_writer
from tests.spark.tables import DAYS, rows
from tests.spark.writer import HudiWriter

pytestmark = [pytest.mark.spark, pytest.mark.s3]

KEY = "AKIA-of-the-connection"
SECRET = "zebra-4711-umbrella"  # noqa: S105 of nobody
PARTITIONS = [f"day={day}" for day in DAYS[:3]]
ROWS = sorted(row for commit in (0, 1) for day in DAYS[:3] for row in rows(commit, day=day))
KEEP_TWO = [{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2}]
"""Drops the oldest day."""


@dataclass
class Watch:
    """Looks for the secret where it must not be, again and again while jobs run."""

    work: Path
    jobs: set[str] = field(default_factory=set)
    """Process ids of jobs that were looked at: none means that nothing was watched."""
    command_lines: set[str] = field(default_factory=set)
    environments: set[str] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)
    """Files with the secret below the work folder, by name, with their modes."""
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.2):
            for process in Path("/proc").iterdir():
                if process.name.isdigit():
                    self._look_at_process(process)
            for folder, _, names in os.walk(self.work):
                for path in (Path(folder, name) for name in names):
                    if SECRET.encode() in _content(path):
                        self.files[path.name] = _mode(path)

    def _look_at_process(self, process: Path) -> None:
        command, environment = _content(process / "cmdline"), _content(process / "environ")
        if SECRET.encode() in command:
            self.command_lines.add(command.decode())
        if PARENT_PID_VARIABLE.encode() in environment:
            self.jobs.add(process.name)
            if SECRET.encode() in environment:
                self.environments.add(command.decode())


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # a folder, or gone by now
        return b""


def _mode(path: Path) -> str:
    try:
        return oct(path.stat().st_mode & 0o777)
    except OSError:
        return "gone"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def writer(s3: S3Server) -> Iterator[HudiWriter]:
    """The table's own pipeline, with keys of its own."""
    writer = s3_writer("1.2.0", s3=s3, key_id="AKIA-of-the-writer")
    yield writer
    writer.close()


@pytest.fixture(scope="module")
def bucket(s3: S3Server, writer: HudiWriter) -> str:
    """A table in a bucket of its own: three days of two small files each."""
    bucket = s3.new_bucket()
    for commit in (0, 1):
        writer.insert(f"s3a://{bucket}/trips", [row for day in DAYS[:3] for row in rows(commit, day=day)])
    return bucket


@pytest.fixture
def watch(
    s3: S3Server, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Watch]:
    """The connections ``hudi_s3`` and, with the keys, ``lake``; what runs meanwhile is watched."""
    work = tmp_path / "work"
    work.mkdir()
    lake = {"conn_type": "aws", "login": KEY, "password": SECRET, "extra": {"endpoint_url": s3.url}}
    extra = {"storage_conn_id": "lake", "master": "local[2]", "driver_memory": "1g", "work_dir": str(work)}
    hudi = {"conn_type": "hudi", "host": f"s3://{bucket}/trips", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(lake))
    monkeypatch.setenv("AIRFLOW_CONN_HUDI_S3", json.dumps(hudi))
    caplog.set_level("DEBUG", logger="airflow_hudi_maint")
    caplog.set_level("INFO")
    s3.forget()
    with Watch(work=work) as watch:
        yield watch


def run(cls: Any, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = cls(task_id=cls.__name__, hudi_conn_id="hudi_s3", **arguments).execute(context())
    return result


def schedule(partition: str, *, scheduler: str) -> str:
    """Schedule one partition and return the instant of its plan."""
    result = run(HudiScheduleClusteringOperator, partitions=[partition], scheduler=scheduler, sort_columns=["value"])
    assert (result["outcome"], result["scheduler"]) == ("done", scheduler)
    return str(max(result["instants"]))


def replaced(workspace: Workspace) -> dict[str, tuple[str, ...]]:
    """The completed replace commits, with the partitions of which each replaced file groups."""
    table = workspace.table
    done = [one for one in table.timeline().completed if one.action is Action.REPLACE_COMMIT]
    return {one.requested_time: tuple(sorted(table.commit_metadata(one).replaced)) for one in done}


def assert_kept(watch: Watch, *, bucket: str, s3: S3Server, texts: Sequence[str]) -> None:
    """The secret was in the properties files of jobs, which only this user could read, and nowhere else."""
    assert watch.jobs
    assert set() == watch.command_lines
    assert set() == watch.environments
    assert {"spark.properties": "0o600"} == watch.files
    assert [] == list(watch.work.iterdir())
    lake = fsspec.filesystem("s3", **s3.storage_options, use_listings_cache=False)
    # Without the empty objects that Hadoop puts in the place of folders.
    objects = lake.cat([name for name, one in lake.find(bucket, detail=True).items() if one["size"]])
    assert any("/.airflow_hudi_maint/reports/" in name for name in objects)
    assert [] == [name for name, data in objects.items() if SECRET.encode() in data]
    assert any("Submitted hudi-maint" in text for text in texts)
    assert [] == [text[:200] for text in texts if SECRET in text]


def test_plans_by_us_and_by_hudi_are_executed_through_s3a(
    s3: S3Server,
    bucket: str,
    writer: HudiWriter,
    watch: Watch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One replace commit each, with every row, verified; by the connection's keys, which nobody gets to see."""
    ours = schedule(PARTITIONS[1], scheduler="native")
    theirs = schedule(PARTITIONS[2], scheduler="hudi")
    executed = run(HudiExecuteClusteringOperator, instants=[ours, theirs], verify_keys=True)

    assert ("done", 4, 2) == (executed["outcome"], executed["files_before"], executed["files_after"])
    assert {KEY} == {one.key_id for one in s3.asked()}
    assert ROWS == writer.rows(f"s3a://{bucket}/trips")
    hook = HudiHook("hudi_s3")
    workspace = hook.workspace()
    assert {ours: (PARTITIONS[1],), theirs: (PARTITIONS[2],)} == replaced(workspace)
    report = StepReport.from_json(workspace.documents.read(executed["report_path"]), name="report")
    assert [ours, theirs] == sorted(one.instant for one in report.verification)
    verdicts = {check.verdict for one in report.verification for check in one.checks}
    assert verdicts <= {Verdict.PASSED, Verdict.NOTICED}
    assert () == report.warnings
    shown = [repr(workspace), repr(hook.make_engine()), repr(hook.storage_connection)]
    assert_kept(watch, bucket=bucket, s3=s3, texts=[caplog.text, *capfd.readouterr(), *shown])


def test_a_day_expires_through_s3a(
    s3: S3Server,
    bucket: str,
    writer: HudiWriter,
    watch: Watch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One replace commit more, the other days' rows are all there; named by its other scheme, the table is the same."""
    workspace = HudiHook("hudi_s3").workspace()
    before = replaced(workspace)
    expired = run(HudiExpirePartitionsOperator, base_path=f"s3a://{bucket}/trips", policies=KEEP_TWO)

    assert ("done", 1) == (expired["outcome"], expired["partitions"])
    assert {KEY} == {one.key_id for one in s3.asked()}
    (instant,) = expired["instants"]
    assert {**before, instant: (PARTITIONS[0],)} == replaced(workspace)
    assert [row for row in ROWS if row[1] != DAYS[0]] == writer.rows(f"s3a://{bucket}/trips")
    report = StepReport.from_json(workspace.documents.read(expired["report_path"]), name="report")
    assert (f"s3://{bucket}/trips", ()) == (report.base_path, report.warnings)
    assert_kept(watch, bucket=bucket, s3=s3, texts=[caplog.text, *capfd.readouterr()])
