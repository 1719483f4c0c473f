"""Clustering plans that reach the timeline without a JVM: where that is safe, what they say, and who is in the way."""

from __future__ import annotations

import io
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import fastavro
import fsspec
import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import BundleError, InvalidSettingError, PendingActionError
from airflow_hudi_maint.core.maintenance import Workspace
from airflow_hudi_maint.core.maintenance.ownership import owner_of
from airflow_hudi_maint.core.model.job import JobRequest
from airflow_hudi_maint.core.model.plan import ExecutionStrategy, Layout
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.model.rewrite_group import PlannedGroup, PlannedInput
from airflow_hudi_maint.core.model.scheduler import Scheduler
from airflow_hudi_maint.core.storage.clustering_plan import RequestedClustering
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.native import LOCKED, LOCKS, OWNER, SMALL, names_of, no_engine, schedule, workspace_of
from tests.unit.core.maintenance.six_days import DAYS, six_days
from tests.unit.core.storage.builders import TableBuilder, at


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return six_days(tmp_path)


def test_the_plan_on_the_timeline_is_the_one_that_was_shown(table: TableBuilder) -> None:
    """The same groups, files and counts; the report says that no engine was needed, and why."""
    workspace = workspace_of(table)
    settings = replace(SMALL, sort_columns=("trip_id", "fare"), layout=Layout.ZORDER)
    reported = schedule(workspace, settings=settings)
    shown = workspace.documents.read(reported.report.plan_path or "")
    (plan,) = workspace.table.pending_plans(workspace.table.timeline())

    assert isinstance(shown, dict)
    groups = [
        (entry["partition"], [one["base_file"] for one in group["inputs"]], group["output_files"])
        for entry in shown["entries"]
        for group in entry["groups"]
    ]
    assert groups == [
        (group[0].partition_path, [one.base_file_name for one in group], count)
        for group, count in zip(plan.groups, plan.group_output_file_counts, strict=True)
    ]
    assert 6 == len(groups)
    assert {"hoodie.clustering.plan.strategy.sort.columns": "trip_id,fare"} == plan.parameters
    assert ExecutionStrategy.SORT_AND_SIZE.class_name == plan.strategy_class
    report = reported.report
    assert (Outcome.DONE, "native", 0.0) == (report.outcome, report.scheduler, report.engine_seconds)
    assert "no other writer is inflight" == report.scheduler_reason
    assert report.instants == (plan.instant.requested_time,)
    assert "20261201000000000" <= plan.instant.requested_time < "20261201000100000"


def test_the_plan_says_who_made_it_and_how_rows_are_laid_out(table: TableBuilder) -> None:
    """Dag, run, task, map index, our plan and the layout, which Hudi would take from the options of the execution."""
    workspace = workspace_of(table)
    reported = schedule(workspace, settings=replace(SMALL, sort_columns=("fare",), layout=Layout.HILBERT))
    (plan,) = workspace.table.pending_plans(workspace.table.timeline())

    assert {
        "airflow_hudi_maint.scheduler": "native",
        "airflow_hudi_maint.plan": reported.report.plan_path,
        "airflow_hudi_maint.layout": "hilbert",
        "airflow_hudi_maint.dag_id": "nightly",
        "airflow_hudi_maint.run_id": "r1",
        "airflow_hudi_maint.task_id": "cluster",
        "airflow_hudi_maint.map_index": "3",
    } == plan.extra_metadata


def test_a_second_run_returns_the_pending_plan(table: TableBuilder) -> None:
    """Also another run's, once it is noted: nothing is written twice."""
    first = schedule(workspace_of(table))
    names = names_of(table)
    again = schedule(workspace_of(table), owner=replace(OWNER, run_id="r2"))

    assert (Outcome.ALREADY_DONE, first.report.instants) == (again.report.outcome, again.report.instants)
    assert names == names_of(table)


def test_nothing_eligible_is_success_with_the_reasons(table: TableBuilder) -> None:
    """Neither an engine nor a file on the timeline."""
    names = names_of(table)
    workspace = workspace_of(table)
    reported = schedule(workspace, settings=replace(SMALL, min_input_files=3))
    shown = workspace.documents.read(reported.report.plan_path or "")

    assert isinstance(shown, dict)
    assert Outcome.NOTHING_TO_DO is reported.report.outcome
    assert all("min_input_files=3" in entry["reason"] for entry in shown["entries"])
    assert names == names_of(table)


def test_a_dry_run_says_which_way_would_be_taken(table: TableBuilder) -> None:
    """And leaves the timeline as it is; what speaks against the way that was asked for is a warning."""
    names = names_of(table)
    quiet = schedule(workspace_of(table), scheduler=Scheduler.AUTO, dry_run=True).report
    table.pending(at(30), "commit")
    busy = schedule(workspace_of(table), scheduler=Scheduler.AUTO, dry_run=True).report
    refused = schedule(workspace_of(table), dry_run=True).report

    assert ["native", "hudi", None] == [one.scheduler for one in (quiet, busy, refused)]
    assert at(30) in (busy.scheduler_reason or "")
    assert any("scheduler=native" in one and at(30) in one for one in refused.warnings)
    assert names | {f"{at(30)}.commit.requested"} == names_of(table)


@pytest.mark.parametrize(
    "provider", ["InProcessLockProvider", "ZookeeperBasedLockProvider", "StorageBasedLockProvider"]
)
def test_auto_leaves_the_plan_to_hudi_where_only_a_jvm_can_take_the_lock(table: TableBuilder, provider: str) -> None:
    """``native`` refuses by the provider's name; ``auto`` asks Hudi, and the report says why."""
    options = {**LOCKED, "hoodie.write.lock.provider": f"{LOCKS}.{provider}"}
    with pytest.raises(InvalidSettingError, match=f"scheduler=native.*{provider}"):
        schedule(workspace_of(table, write_options=options))

    engine = FakeEngine()
    workspace = maintenance.open_workspace(table.base_path, engine=lambda: engine, write_options=options)
    report = schedule(workspace, scheduler=Scheduler.AUTO).report
    assert 1 == len(engine.requests)
    assert "hudi" == report.scheduler
    assert provider in (report.scheduler_reason or "")


@pytest.mark.parametrize(
    "inflight",
    ["commit.requested", "inflight", "replacecommit.requested", "rollback.requested", "restore.inflight"],
)
@pytest.mark.parametrize("scheduler", [Scheduler.AUTO, Scheduler.NATIVE])
def test_beside_a_writer_nothing_is_written(table: TableBuilder, inflight: str, scheduler: Scheduler) -> None:
    """Without a lock a pending write, rollback or restore is in the way, and named."""
    table.put(f"{table.timeline_folder}/{at(30)}.{inflight}", b"")
    names = names_of(table)

    with pytest.raises(PendingActionError, match=at(30)):
        schedule(workspace_of(table), scheduler=scheduler)
    assert names == names_of(table)


def test_a_plan_that_hudi_made_has_its_owner_in_our_note(table: TableBuilder) -> None:
    """Hudi's procedure takes no extra metadata, so the note has the task; the options have the strategy's class."""
    settings = replace(SMALL, sort_columns=("fare",), execution_strategy=ExecutionStrategy.SINGLE_FILE_SORT)

    def act(_: JobRequest) -> None:
        groups = tuple(PlannedGroup(partition_path=DAYS[0], inputs=(one,), output_file_count=1) for one in inputs)
        plan = RequestedClustering(groups=groups, engine_path=table.base_path, strategy_class="x")
        table.put(f"{table.timeline_folder}/{at(30)}.clustering.requested", plan.encode(table_version=9))

    view = table.open().view(table.open().timeline())
    inputs = [PlannedInput.of(one) for one in view.merged_slices(DAYS[0])]
    engine = FakeEngine(act=act)
    workspace = maintenance.open_workspace(table.base_path, engine=lambda: engine)
    report = schedule(workspace, scheduler=Scheduler.HUDI, settings=settings).report
    (plan,) = workspace.table.pending_plans(workspace.table.timeline())

    assert ((at(30),), "hudi", "it was asked for") == (report.instants, report.scheduler, report.scheduler_reason)
    assert OWNER == owner_of(workspace, plan)
    options = engine.requests[0].arguments["options"]
    assert isinstance(options, dict)
    assert settings.execution_strategy.class_name == options["hoodie.clustering.execution.strategy.class"]
    assert options["hoodie.clustering.plan.strategy.class"].endswith("SparkSingleFileSortPlanStrategy")


def test_beside_a_writer_a_plan_is_written_under_the_lock_file(table: TableBuilder) -> None:
    """With optimistic concurrency control the loser is found at its commit; the lock is free again afterwards."""
    table.pending(at(30), "commit")
    report = schedule(workspace_of(table, write_options=LOCKED), scheduler=Scheduler.AUTO).report

    assert (Outcome.DONE, "native") == (report.outcome, report.scheduler)
    assert "lock file" in (report.scheduler_reason or "")
    assert "lock" not in table.storage.names(".hoodie")


def test_a_lock_alone_allows_no_plan_beside_a_writer(table: TableBuilder) -> None:
    """A single writer that names a provider does not look for conflicts."""
    table.pending(at(30), "commit")
    options = {"hoodie.write.lock.provider": LOCKED["hoodie.write.lock.provider"]}

    with pytest.raises(PendingActionError, match=at(30)):
        schedule(workspace_of(table, write_options=options))


def test_the_lock_of_a_writer_is_waited_for(table: TableBuilder) -> None:
    """Nothing is on the timeline while the writer holds it."""
    table.put(".hoodie/lock", b"{}")
    names = names_of(table)
    seen: list[set[str]] = []

    def release() -> None:
        time.sleep(0.3)
        seen.append(names_of(table))
        table.remove(".hoodie/lock")

    writer = threading.Thread(target=release)
    writer.start()
    report = schedule(workspace_of(table, write_options=LOCKED)).report
    writer.join()

    assert [names] == seen
    assert Outcome.DONE is report.outcome


def test_a_plan_of_a_restored_or_indexing_table_is_refused_under_the_lock_too(table: TableBuilder) -> None:
    """Nothing may be written beside those."""
    table.pending(at(30), "indexing")

    with pytest.raises(PendingActionError, match=at(30)):
        schedule(workspace_of(table, write_options=LOCKED))


def test_a_bundle_that_cannot_execute_the_plan_is_refused_first(table: TableBuilder) -> None:
    """No plan is left on the timeline that nobody here can execute."""
    names = names_of(table)
    workspace = maintenance.open_workspace(
        table.base_path, engine=no_engine, bundle="org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2"
    )

    with pytest.raises(BundleError):
        schedule(workspace)
    assert names == names_of(table)


def test_a_clock_behind_the_table_is_refused(table: TableBuilder) -> None:
    """A plan must be newer than the files that it rewrites."""
    table.commit(at(59, minute=59), {"day=2026-12-31": [("late", 100)]})

    with pytest.raises(InvalidSettingError, match="timeline_zone"):
        schedule(workspace_of(table), now=datetime(2026, 11, 30, 9, 0, tzinfo=UTC))


def test_a_clock_that_is_a_little_behind_counts_on(table: TableBuilder) -> None:
    """The instant is the newest and one millisecond."""
    report = schedule(workspace_of(table), now=datetime(2026, 11, 30, 9, 59, tzinfo=UTC)).report

    assert (f"{at(2)[:-3]}001",) == report.instants


@pytest.mark.parametrize("version", [6, 8])
def test_tables_of_earlier_versions_get_their_own_file(tmp_path: Path, version: int) -> None:
    """Version 6 has replace commits only, and one folder."""
    builder = TableBuilder(base_path=str(tmp_path / "old"), version=version)
    for number in (1, 2):
        builder.commit(at(number), {DAYS[0]: [(f"f{number}-0", 100)]})
    (instant,) = schedule(workspace_of(builder)).report.instants

    action = "replacecommit" if version == 6 else "clustering"
    assert f"{instant}.{action}.requested" in names_of(builder)


def test_a_plan_on_an_object_store_names_files_as_spark_reads_them(tmp_path: Path) -> None:
    """``s3://`` is ``s3a://`` to Hadoop, and a plan with the other name could not be executed."""
    builder = TableBuilder(base_path=f"memory://{tmp_path.name}/trips")
    for number in (1, 2):
        builder.commit(at(number), {DAYS[0]: [(f"f{number}-0", 100)]})
    # A store in memory under the name of one on S3: nothing but the root differs.
    storage = Storage(root="s3://lake/trips", file_system=fsspec.filesystem("memory"), prefix=f"/{tmp_path.name}/trips")
    table = HudiTable(storage=storage, config=builder.open().config, zone=UTC)
    (instant,) = schedule(Workspace(table=table, documents=DocumentStore(storage), engine=no_engine)).report.instants

    data = builder.storage.read_bytes(f".hoodie/timeline/{instant}.clustering.requested")
    (record,) = fastavro.reader(io.BytesIO(data))
    assert isinstance(record, dict)
    paths = [one["dataFilePath"] for group in record["clusteringPlan"]["inputGroups"] for one in group["slices"]]
    assert {f"s3a://lake/trips/{DAYS[0]}/f{number}-0_0-1-2_{at(number)}.parquet" for number in (1, 2)} == set(paths)


def test_a_path_of_this_process_alone_is_refused(tmp_path: Path) -> None:
    """Spark could read nothing of it, so no plan is made for it."""
    builder = TableBuilder(base_path=f"memory://{tmp_path.name}/trips")
    for number in (1, 2):
        builder.commit(at(number), {DAYS[0]: [(f"f{number}-0", 100)]})

    with pytest.raises(InvalidSettingError, match=r"scheduler=native.*memory://"):
        schedule(workspace_of(builder))
