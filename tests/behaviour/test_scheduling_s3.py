"""Clustering plans that we write to a timeline on S3, where Hudi's lock file does not work."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import InvalidSettingError, PendingActionError, StorageAccessError, StorageError
from airflow_hudi_maint.core.maintenance import Workspace
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.model.scheduler import Scheduler
from airflow_hudi_maint.core.storage.clustering_plan import RequestedClustering
from airflow_hudi_maint.core.storage.retries import RetryPolicy
from airflow_hudi_maint.operators.clustering import HudiScheduleClusteringOperator
from tests.airflow.fakes import context
from tests.s3_server import S3Server
from tests.unit.core.maintenance.native import LOCKED, no_engine, schedule
from tests.unit.core.maintenance.six_days import DAYS, six_days
from tests.unit.core.storage.builders import at

pytestmark = pytest.mark.s3

TIMELINE = "db/trips/.hoodie/timeline"
SECRET = "hush-hush-hush"  # noqa: S105 no secret


class S3Table:
    """A table of six days on S3."""

    def __init__(self, s3: S3Server, tmp_path: Path) -> None:
        self.s3 = s3
        self.bucket = s3.new_bucket()
        s3.put_folder(self.bucket, Path(six_days(tmp_path).base_path), prefix="db/trips")
        self.names = self.timeline()
        s3.forget()

    def open(self, *, scheme: str = "s3", write_options: Mapping[str, str] | None = None) -> Workspace:
        return maintenance.open_workspace(
            f"{scheme}://{self.bucket}/db/trips",
            storage_options=self.s3.storage_options,
            engine=no_engine,
            write_options=write_options,
        )

    def timeline(self) -> set[str]:
        """The names on the timeline, as a client of its own sees them."""
        return set(self.open().table.storage.names(".hoodie/timeline"))

    def put(self, name: str, data: bytes = b"") -> None:
        self.s3.put(f"{self.bucket}/{TIMELINE}/{name}", data)

    def puts(self) -> list[tuple[str, bool]]:
        """What was put on the timeline by name, and whether that was only where nothing lay."""
        return [
            (one.path.rpartition("/")[2], one.creates)
            for one in self.s3.asked()
            if one.verb == "PUT" and f"/{TIMELINE}/" in one.path
        ]


@pytest.fixture
def table(s3: S3Server, tmp_path: Path) -> S3Table:
    return S3Table(s3, tmp_path)


@pytest.fixture(autouse=True)
def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_hudi_maint.core.maintenance.native_scheduling._PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(RetryPolicy, "wait_seconds", lambda self, attempt: 0.0)


def test_a_plan_is_put_once_and_names_files_as_spark_reads_them(table: S3Table) -> None:
    """By one put that replaces nothing; the base path is s3:// for us and s3a:// for Hudi."""
    workspace = table.open()
    scheduled = schedule(workspace).report

    (instant,) = scheduled.instants
    name = f"{instant}.clustering.requested"
    assert (Outcome.DONE, "native") == (scheduled.outcome, scheduled.scheduler)
    assert [(name, True)] == table.puts()
    assert {*table.names, name} == table.timeline()
    assert f"s3a://{table.bucket}/db/trips/{DAYS[0]}/".encode() in workspace.table.storage.read_bytes(
        f".hoodie/timeline/{name}"
    )


def test_two_spellings_of_a_table_are_one(table: S3Table) -> None:
    """A plan that was made by s3:// is ours by s3a://, and the documents are the same."""
    first = schedule(table.open()).report
    second = schedule(table.open(scheme="s3a")).report

    assert (Outcome.ALREADY_DONE, first.instants) == (second.outcome, second.instants)
    assert first.base_path == second.base_path == f"s3://{table.bucket}/db/trips"


def test_beside_a_write_nothing_is_put(table: S3Table) -> None:
    """There is no lock to hold, so the timeline has to be quiet."""
    table.put(f"{at(30)}.commit.requested")
    with pytest.raises(PendingActionError, match=f"another writer is inflight: .*{at(30)}"):
        schedule(table.open())
    assert [f"{at(30)}.commit.requested"] == [name for name, creates in table.puts() if not creates]
    assert {*table.names, f"{at(30)}.commit.requested"} == table.timeline()


def test_who_came_meanwhile_makes_the_plan_go(table: S3Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try is withdrawn when a write began between the two looks; after the last nothing of ours is left."""
    workspace = table.open()
    write_new, numbers = workspace.table.storage.write_new, iter(range(40, 50))

    def racing(path: str, data: bytes) -> bool:
        written = write_new(path, data)
        if path.endswith(".clustering.requested"):
            instant = at(next(numbers))
            table.put(f"{instant}.commit.requested")
            table.put(f"{instant}.inflight")
            table.put(f"{instant}_{instant}.commit", b"{}")
        return written

    monkeypatch.setattr(workspace.table.storage, "write_new", racing)
    with pytest.raises(PendingActionError, match="4 times the instant"):
        schedule(workspace)
    assert not any(".clustering." in name for name in table.timeline())


def test_a_lock_file_on_s3_is_none(table: S3Table) -> None:
    """Hudi's provider does not start there, so holding its file would keep nobody away; nor is one left."""
    workspace = table.open(write_options=LOCKED)
    with pytest.raises(InvalidSettingError, match=r"does not start on S3.*StorageBasedLockProvider"):
        schedule(workspace)
    assert table.names == table.timeline()
    assert "lock" not in workspace.table.storage.names(".hoodie")

    rehearsed = schedule(workspace, scheduler=Scheduler.AUTO, dry_run=True).report
    assert "hudi" == rehearsed.scheduler
    assert "does not start on S3" in str(rehearsed.scheduler_reason)


def test_a_store_without_conditional_puts_is_looked_at_before_and_after(table: S3Table, s3: S3Server) -> None:
    """It says that it cannot; then the plan is put where nothing lies, and read back."""
    s3.fail(status=501, code="NotImplemented", within=".clustering.requested", verb="PUT")
    scheduled = schedule(table.open()).report

    name = f"{scheduled.instants[0]}.clustering.requested"
    assert [(name, True), (name, False)] == table.puts()
    read = [one for one in s3.asked() if one.verb == "GET" and one.path.endswith(name)]
    assert read


def test_a_put_that_was_ignored_is_seen(table: S3Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that takes a conditional put for a plain one lets another replace our plan: then it is not ours."""
    workspace = table.open()
    storage = workspace.table.storage
    write_new = storage.write_new
    theirs = RequestedClustering(groups=(), engine_path="s3a://lake", strategy_class="Other").encode(table_version=8)

    def replaced(path: str, data: bytes) -> bool:
        written = write_new(path, data)
        if path.endswith(".clustering.requested"):
            storage.write_atomic(path, theirs)
        return written

    monkeypatch.setattr(storage, "write_new", replaced)
    with pytest.raises(PendingActionError, match="another plan took the instant"):
        schedule(workspace)
    left = [name for name in table.timeline() if ".clustering." in name]
    assert left
    assert {theirs} == {storage.read_bytes(f".hoodie/timeline/{name}") for name in left}


@pytest.mark.parametrize("status", [403, 503])
def test_a_plan_that_could_not_be_put_is_not_there(table: S3Table, s3: S3Server, status: int) -> None:
    """Neither for want of a right, which is said with the endpoint, nor after the last try."""
    workspace = table.open()
    code = "AccessDenied" if status == 403 else "SlowDown"
    s3.fail(status=status, code=code, within=".clustering.requested", verb="PUT", times=99)
    kind = StorageAccessError if status == 403 else StorageError
    with pytest.raises(kind, match=rf"clustering\.requested.*\(endpoint {s3.url}\)"):
        schedule(workspace)
    s3.forget()
    assert table.names == table.timeline()


@pytest.fixture
def connections(table: S3Table, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    lake = {"conn_type": "aws", "login": "AKIA-of-tests", "password": SECRET, "extra": {"endpoint_url": s3.url}}
    hudi = {"conn_type": "hudi", "host": f"s3://{table.bucket}/db/trips", "extra": {"storage_conn_id": "lake"}}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(lake))
    monkeypatch.setenv("AIRFLOW_CONN_HUDI_TEST", json.dumps(hudi))
    return lake


def test_wrong_keys_fail_a_task_for_good_with_what_to_do(
    table: S3Table, s3: S3Server, connections: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Without a retry, without a job and without anything on the table; the message has the endpoint and no key."""
    s3.fail(status=403, code="InvalidAccessKeyId", times=99)
    with pytest.raises(AirflowFailException) as raised:
        HudiScheduleClusteringOperator(task_id="step", hudi_conn_id="hudi_test").execute(context())
    said = str(raised.value)
    assert f"(endpoint {s3.url})" in said
    assert "check the credentials" in said
    assert SECRET not in said + caplog.text
    assert not any(one.verb in ("PUT", "POST", "DELETE") for one in s3.asked())


def test_a_server_that_is_down_is_named_and_the_task_may_be_tried_again(
    table: S3Table, connections: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address comes from the connection, so that is what the message names."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({**connections, "extra": {"endpoint_url": url}}))
    with pytest.raises(StorageError, match=rf"Nobody answers.*\(endpoint {url}\); check endpoint and server"):
        HudiScheduleClusteringOperator(task_id="step", hudi_conn_id="hudi_test").execute(context())
    assert table.names == table.timeline()
