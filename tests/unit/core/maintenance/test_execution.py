"""Executing a plan: as it was scheduled, refused when it may not be, predicted, verified."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import (
    InvalidSettingError,
    PlanOutdatedError,
    UnknownInstantError,
    VerificationError,
)
from airflow_hudi_maint.core.maintenance import JobControl, StepReported, Workspace
from airflow_hudi_maint.core.model.job import JobRequest
from airflow_hudi_maint.core.model.plan import ClusteringSettings, ExecutionStrategy, Layout
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.scheduler import Scheduler
from airflow_hudi_maint.core.model.verification import VerifySettings
from airflow_hudi_maint.core.planning.execution_settings import ExecutionSettings
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.fake_hudi import DAYS, FakeHudi, rows, three_days_of_rows
from tests.unit.core.maintenance.six_days import NOW, workspace_with
from tests.unit.core.storage.builders import TableBuilder, at

if TYPE_CHECKING:
    import pyarrow as pa

SETTINGS = ClusteringSettings(
    target_file_bytes=1024**2,
    small_file_bytes=64 * 1024,
    max_group_bytes=2 * 1024**2,
    sort_columns=("fare", "trip_id"),
    layout=Layout.ZORDER,
)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return three_days_of_rows(str(tmp_path / "trips"))


def _schedule(workspace: Workspace, settings: ClusteringSettings = SETTINGS) -> tuple[str, str]:
    """Schedule without a JVM; returns the instant and the path of our plan."""
    report = maintenance.schedule_clustering(
        workspace, now=NOW, settings=settings, job=JobControl(), scheduler=Scheduler.NATIVE
    ).report
    (instant,) = report.instants
    assert report.plan_path is not None
    return instant, report.plan_path


def _execute(workspace: Workspace, settings: ExecutionSettings | None = None, **more: object) -> StepReported:
    return maintenance.execute_clustering(
        workspace,
        now=NOW,
        job=JobControl(),
        settings=settings or ExecutionSettings(),
        verify=VerifySettings(keys=True),
        **more,  # type: ignore[arg-type]
    )


def test_a_z_order_is_executed_as_one(table: TableBuilder) -> None:
    """Hudi keeps the layout in no plan, and takes linear unless whoever executes says otherwise: ours is said again."""
    engine = FakeEngine(act=FakeHudi(table))
    workspace = workspace_with(table, engine)
    instant, plan_path = _schedule(workspace)

    report = _execute(workspace, ExecutionSettings(parallelism=4)).report

    assert Outcome.DONE is report.outcome
    (request,) = engine.requests
    options = request.arguments["options_of"][instant]  # type: ignore[call-overload,index]
    assert {
        "hoodie.layout.optimize.strategy": "ZORDER",
        "hoodie.clustering.plan.strategy.sort.columns": "fare,trip_id",
        "hoodie.clustering.execution.strategy.class": ExecutionStrategy.SORT_AND_SIZE.class_name,
        "hoodie.clustering.plan.strategy.target.file.max.bytes": str(1024**2),
    } == options
    assert {"hoodie.clustering.max.parallelism": "4"} == request.arguments["options"]
    assert Path(plan_path).is_file()


def test_the_layout_outlives_our_own_documents(table: TableBuilder) -> None:
    """A plan that we wrote carries it, for when the folder of documents was emptied."""
    engine = FakeEngine(act=FakeHudi(table))
    workspace = workspace_with(table, engine)
    instant, plan_path = _schedule(workspace)
    Path(plan_path).unlink()

    _execute(workspace, instants=[instant])

    options = engine.requests[0].arguments["options_of"][instant]  # type: ignore[call-overload,index]
    assert "ZORDER" == options["hoodie.layout.optimize.strategy"]


def test_a_rewrite_is_verified_and_says_whether_sorting_helped(table: TableBuilder) -> None:
    """Everything passes, the metadata partitions too: this run has seen them before."""
    workspace = workspace_with(table, FakeEngine(act=FakeHudi(table)))
    _schedule(workspace)

    report = _execute(workspace).report

    (verification,) = report.verification
    assert not verification.failed
    assert len(verification.checks) == len([one for one in verification.checks if one.verdict == "passed"])
    assert ["fare", "trip_id"] == [one.column for one in verification.sorting]
    assert "8 of 8 checks passed (full)" in report.message


def test_a_lost_row_fails_the_task_and_a_retry_again(table: TableBuilder) -> None:
    """The instant is completed, so a retry executes nothing; the difference is still there."""
    engine = FakeEngine(act=FakeHudi(table, change=lambda rows: rows.slice(1)))
    workspace = workspace_with(table, engine)
    instant, _ = _schedule(workspace)

    for _ in range(2):
        with pytest.raises(VerificationError, match=r"had 8 rows and has 7 \(1 fewer\)"):
            _execute(workspace, instants=[instant])
    assert 1 == len(engine.requests)


def test_a_metadata_partition_that_went_missing_fails(table: TableBuilder) -> None:
    """A job that drops an index would slow down every reader."""
    hudi = FakeHudi(table)

    def act(request: JobRequest) -> None:
        hudi(request)
        name = ".hoodie/hoodie.properties"
        text = table.storage.read_bytes(name).replace(b"metadata.partitions=files", b"metadata.partitions=")
        table.put(name, text)

    workspace = workspace_with(table, FakeEngine(act=act))
    _schedule(workspace)

    with pytest.raises(VerificationError, match="metadata partitions: files disappeared"):
        _execute(workspace)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (ExecutionSettings(sort_columns=("fare",)), "sort_columns=fare contradicts clustering plan"),
        (ExecutionSettings(layout=Layout.HILBERT), "layout=hilbert contradicts clustering plan"),
        (ExecutionSettings(options={"hoodie.write.table.version": "6"}), "hoodie.write.table.version=6 contradicts"),
        (ExecutionSettings(options={"spark.executor.cores": "2"}), "is no Hudi option"),
    ],
)
def test_what_contradicts_the_plan_or_the_table_starts_nothing(
    table: TableBuilder, asked: ExecutionSettings, words: str
) -> None:
    """The plan stays as it is, for another try."""
    engine = FakeEngine()
    workspace = workspace_with(table, engine)
    _schedule(workspace)

    with pytest.raises(InvalidSettingError, match=words):
        _execute(workspace, asked)
    assert [] == engine.requests


def test_a_plan_that_an_overwrite_overtook_is_refused(table: TableBuilder) -> None:
    """Executing it would bring back the rows that were overwritten."""
    engine = FakeEngine()
    workspace = workspace_with(table, engine)
    instant, _ = _schedule(workspace)
    groups = [f"{DAYS[0]}-{number}-0" for number in (1, 2)]
    overwritten = str(int(instant) + 1000)
    table.commit(overwritten, {DAYS[0]: [("new-0", 100)]}, replaced={DAYS[0]: groups}, operation="INSERT_OVERWRITE")

    with pytest.raises(PlanOutdatedError, match="was replaced or removed; executing it would bring back old rows"):
        _execute(workspace, instants=[instant])
    assert [] == engine.requests


def test_an_input_that_is_no_longer_on_storage_is_refused(table: TableBuilder) -> None:
    """Spark would fail in the middle, with the instant inflight."""
    workspace = workspace_with(table, FakeEngine())
    instant, _ = _schedule(workspace)
    table.remove(f"{DAYS[0]}/{DAYS[0]}-1-0_0-1-2_{at(1)}.parquet")

    with pytest.raises(PlanOutdatedError, match="was replaced or removed"):
        _execute(workspace, instants=[instant])


def test_a_log_file_that_is_gone_outdates_a_plan(tmp_path: Path) -> None:
    """Its updates would be lost for good."""
    table = TableBuilder(base_path=str(tmp_path / "trips"), merge_on_read=True)
    table.commit(at(1), {DAYS[0]: [(f"{DAYS[0]}-1-0", 100)]})
    log = f".{DAYS[0]}-1-0_{at(2)}.log.1_0-1-2"
    one = {
        "partitionPath": DAYS[0],
        "fileId": f"{DAYS[0]}-1-0",
        "dataFilePath": f"/x/{DAYS[0]}-1-0_0-1-2_{at(1)}.parquet",
        "deltaFilePaths": [f"/x/{log}"],
    }
    plan = {"inputGroups": [{"slices": [one], "numOutputFileGroups": 1}]}
    table.pending(at(30), "clustering", {"operationType": "CLUSTER", "clusteringPlan": plan})

    with pytest.raises(PlanOutdatedError, match="lost the log file"):
        _execute(workspace_with(table, FakeEngine()), instants=[at(30)])


def test_a_plan_older_than_the_active_timeline_is_refused(table: TableBuilder) -> None:
    """What replaced its files may be archived: nobody can tell any more."""
    FakeHudi(table).schedule(at(0), DAYS[:1])

    with pytest.raises(PlanOutdatedError, match=rf"{at(0)} is older than the active timeline .* starts at {at(1)}"):
        _execute(workspace_with(table, FakeEngine()), instants=[at(0)])


def test_an_instant_that_is_no_clustering_says_what_it_is(table: TableBuilder) -> None:
    """A commit, an overwrite that completed as a replace commit, and one that is not there."""
    table.commit(at(9), {DAYS[0]: [("n-0", 9)]}, replaced={DAYS[0]: ["x"]}, operation="INSERT_OVERWRITE")
    workspace = workspace_with(table, FakeEngine())

    for instant, words in (
        (at(1), "the timeline has"),
        (at(9), "the timeline has"),
        (at(50), "rolled back, or of another table"),
    ):
        with pytest.raises(UnknownInstantError, match=f"{instant} is no pending clustering of .*{words}"):
            _execute(workspace, instants=[instant])


def test_a_run_is_predicted_by_earlier_ones_and_both_are_kept(table: TableBuilder) -> None:
    """The log says it before the job starts, and the report keeps it; broken reports are passed over."""
    said: list[str] = []
    engine = FakeEngine(act=FakeHudi(table))
    workspace = replace(workspace_with(table, engine), log=said.append)
    past = StepReport(
        step=Step.EXECUTE_CLUSTERING,
        outcome=Outcome.DONE,
        message="",
        base_path=table.base_path,
        base_instant=at(1),
        bytes_before=1024,
        bytes_after=512,
        engine_seconds=30.0,
    )
    workspace.documents.write_kept("reports", stem=f"{at(1)}-execute-clustering", document=past.to_json())
    workspace.documents.write_kept("reports", stem=f"{at(2)}-execute-clustering", document={"kind": "other"})
    _schedule(workspace)

    report = _execute(workspace).report

    assert any("by 1 earlier run of this table" in line for line in said)
    assert report.predicted_seconds is not None
    assert (True, report.bytes_before // 2) == (report.predicted_seconds >= 30.0, report.predicted_bytes_after)
    written = StepReport.from_json(report.to_json(), name="report")
    assert report == written


def test_a_replace_commit_that_says_nothing_is_a_clustering_only_by_its_request(tmp_path: Path) -> None:
    """On table version 6 an overwrite has the same action, and old writers noted no operation."""
    table = TableBuilder(base_path=str(tmp_path / "trips"), version=6)
    table.commit(at(1), {DAYS[0]: [("old-0", rows(1))]})
    table.pending(at(30), "replacecommit")
    table.commit(at(30), {DAYS[0]: [("new-0", rows(2))]}, replaced={DAYS[0]: ["old-0"]}, operation="")
    with pytest.raises(UnknownInstantError, match="is no pending clustering"):
        _execute(workspace_with(table, FakeEngine()), instants=[at(30)])


@pytest.mark.parametrize(
    ("operation", "fails"), [("INSERT_OVERWRITE", True), ("UPSERT", True), ("UPSERT elsewhere", False)]
)
def test_a_write_that_came_while_spark_started_is_found_afterwards(
    table: TableBuilder,
    operation: str,
    fails: bool,  # noqa: FBT001
) -> None:
    """The look before the job did not see it: an overwrite's old rows are back, and an update's new ones are lost."""
    hudi = FakeHudi(table)
    (first, *_) = (one.file_id for one in table.open().view(table.open().timeline()).latest_slices(DAYS[0]))

    def act(request: JobRequest) -> None:
        instant = "20261202000000000"
        if operation == "INSERT_OVERWRITE":
            table.commit(instant, {DAYS[0]: [("new-0", rows(90))]}, replaced={DAYS[0]: [first]}, operation=operation)
        else:
            file_id = first if operation == "UPSERT" else "new-0"
            table.commit(instant, {DAYS[0]: [(file_id, rows(90))]}, operation="UPSERT")
        hudi(request)

    workspace = workspace_with(table, FakeEngine(act=act))
    _schedule(workspace)
    if not fails:
        assert Outcome.DONE is _execute(workspace).report.outcome
        return
    with pytest.raises(
        VerificationError, match=rf"of partition '{DAYS[0]}', was changed by 202612020.* \({operation}\)"
    ):
        _execute(workspace)


def test_what_another_run_did_is_reported_with_its_bytes(table: TableBuilder) -> None:
    """A task that was deferred finds all done when it comes back: predictions rest on what it then reports."""
    workspace = workspace_with(table, FakeEngine(act=FakeHudi(table)))
    instant, _ = _schedule(workspace)
    first = _execute(workspace, instants=[instant]).report

    again = _execute(workspace, instants=[instant]).report

    assert Outcome.ALREADY_DONE is again.outcome
    assert (True, first.bytes_before) == (first.bytes_before > 0, again.bytes_before)


def test_rows_may_come_in_any_order(table: TableBuilder) -> None:
    """A digest of keys knows no order, which is what sorting changes."""

    def reverse(rows: pa.Table) -> pa.Table:
        return rows.take(list(range(len(rows) - 1, -1, -1)))

    workspace = workspace_with(table, FakeEngine(act=FakeHudi(table, change=reverse)))
    _schedule(workspace)
    assert Outcome.DONE is _execute(workspace).report.outcome
