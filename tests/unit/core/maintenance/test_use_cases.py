"""The use cases on golden tables, as far as they come without Spark: plans, refusals, and having nothing to do."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.engines.base import Engine
from airflow_hudi_maint.core.errors import (
    BundleError,
    CorruptTableError,
    GuardTrippedError,
    InvalidPolicyError,
    InvalidSettingError,
    PendingActionError,
    PlanOutdatedError,
    StorageError,
    TableNotFoundError,
    UnknownColumnError,
    UnknownInstantError,
    UnknownPartitionError,
    UnsupportedTableError,
)
from airflow_hudi_maint.core.maintenance import JobControl, Workspace
from airflow_hudi_maint.core.model.plan import ClusteringSettings, Decision
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.planning.expiry import ExpiryGuards
from airflow_hudi_maint.core.storage.filesystem import Storage
from tests.golden.golden import truth, unpack

NOW = datetime(2026, 12, 1, tzinfo=UTC)
SMALL = ClusteringSettings(target_file_bytes=1024**2, small_file_bytes=64 * 1024, max_group_bytes=2 * 1024**2)
ANYTHING = ExpiryGuards(max_partition_share=None, max_byte_share=None, max_record_share=None)


class NoEngine:
    """An engine that must not be asked for."""

    def __call__(self) -> Engine:
        pytest.fail("a step that must not run a job asked for an engine")


def _workspace(path: Path, **settings: str) -> Workspace:
    return maintenance.open_workspace(str(path), engine=NoEngine(), timeline_zone="UTC", **settings)  # type: ignore[arg-type]


def _keep(count: int) -> PolicySet:
    return PolicySet.from_json([{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": count}])


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A copy-on-write table of version 9 at rest."""
    return unpack("v9_cow_plain", tmp_path)


@pytest.fixture
def pending(tmp_path: Path) -> Path:
    """One with a pending clustering of day 3, and a write that was left inflight."""
    return unpack("v9_cow_pending", tmp_path)


def test_statistics_are_gathered_once_in_full_and_then_incrementally(plain: Path) -> None:
    """The second run lists nothing but the timeline and the documents, and writes the same rows."""
    first = maintenance.gather_statistics(_workspace(plain), now=NOW)
    workspace = _workspace(plain)
    second = maintenance.gather_statistics(workspace, now=NOW)

    assert ("full", "incremental") == (first.statistics.gathered, second.statistics.gathered)
    assert first.statistics.partitions == second.statistics.partitions
    assert first.path == second.path
    assert workspace.table.storage.requests.lists <= 3


def test_the_limit_of_small_files_is_kept_between_runs(plain: Path) -> None:
    """A later gather without a limit counts with the newest file's, so that before and after compare."""
    maintenance.gather_statistics(_workspace(plain), now=NOW, small_file_bytes=4000)

    assert 4000 == maintenance.gather_statistics(_workspace(plain), now=NOW).statistics.small_file_bytes


def test_a_dry_run_of_expiry_writes_the_plan_and_nothing_else(plain: Path) -> None:
    """The report says what would go; the timeline is as it was."""
    workspace = _workspace(plain)
    before = workspace.table.timeline()

    reported = maintenance.expire_partitions(workspace, now=NOW, job=JobControl(), policies=_keep(2), dry_run=True)

    assert Outcome.DRY_RUN is reported.report.outcome
    assert ("day=2026-11-01", "day=2026-11-02") == reported.report.partitions
    plan = json.loads(Path(str(reported.report.plan_path)).read_text())
    assert ["expire", "expire", "keep", "keep"] == [entry["decision"] for entry in plan["entries"]]
    assert before == workspace.table.timeline()


def test_nothing_to_expire_is_success_without_an_engine(plain: Path) -> None:
    """A policy that keeps everything ends as nothing to do."""
    reported = maintenance.expire_partitions(_workspace(plain), now=NOW, job=JobControl(), policies=_keep(9))

    assert Outcome.NOTHING_TO_DO is reported.report.outcome


def test_a_table_without_policies_expires_nothing_and_says_so(plain: Path) -> None:
    """No policy in the table and none given: every partition is kept, with that reason."""
    planned = maintenance.plan_expiry(_workspace(plain), now=NOW)

    assert {Decision.KEEP} == {entry.decision for entry in planned.plan.entries}
    assert all("no policy" in entry.reason for entry in planned.plan.entries)


def test_a_guard_keeps_the_plan_and_refuses_it(plain: Path) -> None:
    """Three of four partitions are more than half: the error has the figures and the setting; the plan stays."""
    workspace = _workspace(plain)

    with pytest.raises(GuardTrippedError, match="max_partition_share"):
        maintenance.expire_partitions(workspace, now=NOW, job=JobControl(), policies=_keep(1))

    assert 1 == len(workspace.documents.names("plans"))


def test_an_inflight_write_is_not_disturbed(pending: Path) -> None:
    """Another writer's instant and no lock provider: every step that needs the engine refuses, naming the instant."""
    workspace = _workspace(pending)
    inflight = next(one["requested"] for one in truth("v9_cow_pending")["timeline"] if one["state"] == "INFLIGHT")

    with pytest.raises(PendingActionError, match=inflight):
        maintenance.expire_partitions(workspace, now=NOW, job=JobControl(), policies=_keep(2), guards=ANYTHING)
    with pytest.raises(PendingActionError, match=inflight):
        maintenance.schedule_clustering(workspace, now=NOW, settings=SMALL, job=JobControl())


def test_a_partition_that_a_plan_holds_is_blocked_and_named(pending: Path) -> None:
    """Day 3 is in a pending clustering: neither expiry nor clustering takes it, and both say which instant holds it."""
    workspace = _workspace(pending)
    (held,) = truth("v9_cow_pending")["pending_clustering"]

    expiry = maintenance.plan_expiry(workspace, now=NOW, policies=_keep(1), guards=ANYTHING).plan
    clustering = maintenance.plan_clustering(workspace, now=NOW, settings=SMALL).plan

    assert [("day=2026-11-03", held["instant"])] == [(one.partition_path, one.blocked_by) for one in expiry.blocked]
    entries = {entry.partition_path: entry for entry in clustering.entries}
    assert held["instant"] == entries["day=2026-11-03"].blocked_by


def test_somebody_elses_pending_plan_is_not_executed(pending: Path) -> None:
    """Without an instant only plans of ours are executed, and the one that is pending is not."""
    reported = maintenance.execute_clustering(_workspace(pending), now=NOW, job=JobControl())

    assert Outcome.NOTHING_TO_DO is reported.report.outcome


def test_an_instant_that_is_no_clustering_is_not_executed(pending: Path) -> None:
    """A commit's instant, and one that is not there, are refused by name."""
    workspace = _workspace(pending)
    commit = workspace.table.timeline().completed[0].requested_time

    with pytest.raises(UnknownInstantError, match=commit):
        maintenance.execute_clustering(workspace, now=NOW, job=JobControl(), instants=[commit])
    with pytest.raises(UnknownInstantError, match=r"20200101000000000 .* older than the active timeline"):
        maintenance.execute_clustering(workspace, now=NOW, job=JobControl(), instants=["20200101000000000"])


def test_a_plan_for_another_table_is_refused(plain: Path, tmp_path: Path) -> None:
    """A plan that names another base path is not applied, even when the partitions have the same names."""
    path = maintenance.plan_expiry(_workspace(plain), now=NOW, policies=_keep(2)).path
    other = _workspace(unpack("v6_cow_plain", tmp_path))
    copy = other.documents.write("plans", name="1-expiry.json", document=json.loads(Path(path).read_text()))

    with pytest.raises(PlanOutdatedError, match="base path"):
        maintenance.expire_partitions(other, now=NOW, job=JobControl(), plan_path=copy)


def test_a_bundle_that_would_upgrade_the_table_is_refused(tmp_path: Path) -> None:
    """Hudi 1.0 writes version 8 only: on a version-6 table it is refused before anything starts."""
    workspace = _workspace(unpack("v6_cow_plain", tmp_path), bundle="org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2")

    with pytest.raises(BundleError, match="6"):
        maintenance.expire_partitions(workspace, now=NOW, job=JobControl(), policies=_keep(2))


def test_an_unknown_sort_column_is_refused(plain: Path) -> None:
    """The error names the column and comes before any plan."""
    settings = ClusteringSettings(sort_columns=("fare_amuont",))

    with pytest.raises(UnknownColumnError, match="fare_amuont"):
        maintenance.schedule_clustering(_workspace(plain), now=NOW, settings=settings, job=JobControl())


def test_an_unknown_partition_is_refused(plain: Path) -> None:
    """A wildcard is no name, and a value without its field is none either."""
    for name in ("day=*", "2026-11-01"):
        with pytest.raises(UnknownPartitionError, match=name.replace("*", r"\*")):
            maintenance.plan_clustering(_workspace(plain), now=NOW, settings=SMALL, partitions=[name])


def test_sizes_that_contradict_each_other_are_refused() -> None:
    """A target that is not above the small-file limit, or above the group, is refused with both figures."""
    with pytest.raises(InvalidSettingError, match=r"target_file_bytes=100 .*small_file_bytes=100"):
        ClusteringSettings(target_file_bytes=100, small_file_bytes=100, max_group_bytes=1000)
    with pytest.raises(InvalidSettingError, match=r"max_group_bytes=100 .*target_file_bytes=200"):
        ClusteringSettings(target_file_bytes=200, small_file_bytes=100, max_group_bytes=100)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"partitionSpec": "day=*/", "policy": "KEEP_BY_TIME"}, "policyValue"),
        ({"partitionSpec": "day=*/", "policy": "KEEP_BY_TIME", "policyValue": -1}, "-1"),
        ({"partitionSpec": "day=*/", "policy": "KEEP_FOREVER", "policyValue": 1}, "KEEP_FOREVER"),
        ({"partitionSpec": "origin=*/", "policy": "KEEP_BY_TIME", "policyValue": 1}, "origin"),
        ({"partitionSpec": "day=*/", "policy": "KEEP_BY_COUNT", "policyValue": 1}, "sub-partitions"),
    ],
    ids=["no value", "negative", "unknown kind", "unknown field", "nothing below"],
)
def test_a_broken_policy_is_refused_by_its_text(plain: Path, policy: dict[str, object], message: str) -> None:
    """Each error shows what is wrong, and nothing is planned."""
    workspace = _workspace(plain)

    with pytest.raises(InvalidPolicyError, match=message):
        maintenance.plan_expiry(workspace, now=NOW, policies=PolicySet.from_json([policy]))

    assert () == workspace.documents.names("plans")


def test_what_is_no_table_is_said(tmp_path: Path, plain: Path) -> None:
    """No directory, no .hoodie, an unknown version and unreadable properties each have an error of their own."""
    with pytest.raises(TableNotFoundError, match="nowhere"):
        _workspace(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableNotFoundError, match="empty"):
        _workspace(tmp_path / "empty")
    properties = plain / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    for version in (0, 5, 7, 10):
        properties.write_text(text.replace("hoodie.table.version=9", f"hoodie.table.version={version}"))
        with pytest.raises(UnsupportedTableError, match=f"version {version}; versions 6, 8, 9 are maintained"):
            _workspace(plain)
    properties.write_text(text.replace("hoodie.table.version=9", "hoodie.table.version=nine"))
    with pytest.raises(UnsupportedTableError, match="nine"):
        _workspace(plain)


def test_a_broken_replace_commit_stops_planning(tmp_path: Path) -> None:
    """It decides which files count, so no plan is made without it; the error names the file."""
    table = unpack("v9_cow_clustered", tmp_path)
    commit = min((table / ".hoodie" / "timeline").glob("*.replacecommit"))
    commit.write_bytes(commit.read_bytes()[:-30])

    with pytest.raises(CorruptTableError, match=commit.name):
        maintenance.plan_clustering(_workspace(table), now=NOW, settings=SMALL)


def test_a_storage_error_in_the_middle_of_a_listing_loses_nothing(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that cannot be listed fails the gather; no statistics file is written and the next run is right."""
    workspace = _workspace(plain)
    listed = Storage.list

    def failing(self: Storage, path: str) -> object:
        if path == "day=2026-11-03":
            msg = f"Storage failed at {self.join(path)}: connection reset; try again"
            raise StorageError(msg)
        return listed(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "list", failing)
        with pytest.raises(StorageError, match="day=2026-11-03"):
            maintenance.gather_statistics(workspace, now=NOW)
    assert () == workspace.documents.names("statistics")
    assert 4 == len(maintenance.gather_statistics(workspace, now=NOW).statistics.partitions)


@pytest.mark.parametrize(
    ("archive", "message"),
    [("there", r"'day=2026-11-01' .* was changed by 2026"), ("gone", "and the archive lacks 20261130070456403")],
)
def test_a_plan_older_than_the_timeline_is_held_against_the_archive(tmp_path: Path, archive: str, message: str) -> None:
    """What happened between a plan and the start of the active timeline stands in the archive; else the plan goes."""
    young = unpack("v9_cow_young", tmp_path / "a")
    table = tmp_path / "b" / "trips"
    shutil.copytree(young, table)
    planned = maintenance.plan_expiry(_workspace(table), now=NOW, policies=_keep(1), guards=ANYTHING)
    document = json.loads(Path(planned.path).read_text())
    shutil.rmtree(table)
    shutil.copytree(unpack("v9_cow_archived", tmp_path / "c"), table)
    if archive == "gone":
        shutil.rmtree(table / ".hoodie" / "timeline" / "history")
    workspace = _workspace(table)
    path = workspace.documents.write("plans", name="1-expiry.json", document=document)

    with pytest.raises(PlanOutdatedError, match=message):
        maintenance.expire_partitions(workspace, now=NOW, job=JobControl(), plan_path=path, guards=ANYTHING)


def test_days_are_judged_by_the_tables_own_last_write(plain: Path) -> None:
    """A feed that died a year ago expires nothing by time; the wall clock does when it is asked for."""
    by_time = PolicySet.from_json([{"partitionSpec": "day=*/", "policy": "KEEP_BY_TIME", "policyValue": 30}])
    later = NOW + timedelta(days=365)
    wall = ExpiryGuards(max_partition_share=None, max_byte_share=None, clock="wall")

    assert () == maintenance.plan_expiry(_workspace(plain), now=later, policies=by_time).plan.expired
    assert 4 == len(maintenance.plan_expiry(_workspace(plain), now=later, policies=by_time, guards=wall).plan.expired)


def test_a_table_without_a_name_is_refused(plain: Path) -> None:
    """A job needs the table's name, so a table that lost it is refused when it is opened."""
    properties = plain / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.table.name=trips", "hoodie.table.name="))

    with pytest.raises(UnsupportedTableError, match=r"hoodie\.table\.name"):
        _workspace(plain)
