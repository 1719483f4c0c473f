"""Compaction around its jobs: what is scheduled, found again, executed and checked."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import (
    BundleError,
    EngineError,
    PendingActionError,
    PlanOutdatedError,
    UnknownInstantError,
    UnknownPartitionError,
    UnsupportedTableError,
    VerificationError,
)
from airflow_hudi_maint.core.maintenance import JobControl, StepReported, Workspace
from airflow_hudi_maint.core.model.compaction_plan import CompactionPlan, CompactionSettings
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobReport, JobRequest
from airflow_hudi_maint.core.model.report import Outcome
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.merge_on_read import (
    FIRST,
    SECOND,
    complete_compaction,
    plan_clustering,
    plan_compaction,
    two_days,
)
from tests.unit.core.maintenance.six_days import NOW, six_days
from tests.unit.core.maintenance.six_days import workspace_with as _workspace
from tests.unit.core.storage.builders import TableBuilder, at

EVERYTHING = CompactionSettings()
HUDI_0_15 = "org.apache.hudi:hudi-spark3.5-bundle_2.12:0.15.0"


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return two_days(tmp_path)


def _schedule(
    workspace: Workspace, *, partitions: Collection[str] | None = None, dry_run: bool = False, **limits: int
) -> StepReported:
    return maintenance.schedule_compaction(
        workspace,
        now=NOW,
        settings=CompactionSettings(**limits),
        job=JobControl(),
        partitions=partitions,
        dry_run=dry_run,
    )


def _hudi_plans(table: TableBuilder, *days: str) -> Callable[[JobRequest], None]:
    return lambda _: plan_compaction(table, at(30), days=days)


def test_hudi_is_asked_for_the_chosen_partitions_and_its_plan_is_compared_with_ours(table: TableBuilder) -> None:
    """A second run finds the pending plan and starts nothing."""
    engine = FakeEngine(act=_hudi_plans(table, FIRST))
    report = _schedule(_workspace(table, engine), partitions=[FIRST]).report
    (request,) = engine.requests
    options = request.arguments["options"]
    assert isinstance(options, dict)
    assert request.kind is JobKind.SCHEDULE_COMPACTION
    assert options["hoodie.compaction.partition.path.regex"] == r"\A(?:day\=2026\-11\-01)\z"
    assert (report.outcome, report.instants, report.warnings) == (Outcome.DONE, (at(30),), ())
    assert (report.partitions, report.files_before, report.bytes_before) == ((FIRST,), 2, 1100)

    idle = FakeEngine()
    again = _schedule(_workspace(table, idle), partitions=[FIRST]).report
    assert (again.outcome, again.instants, idle.requests) == (Outcome.ALREADY_DONE, (at(30),), [])


def test_what_hudi_leaves_out_is_a_warning(table: TableBuilder) -> None:
    """The plan on the timeline is told, and how it differs from the one that was shown."""
    report = _schedule(_workspace(table, FakeEngine(act=_hudi_plans(table, FIRST)))).report
    assert report.outcome is Outcome.DONE
    assert report.warnings == (f"Hudi left out 1 file group of 2 that were planned: '{SECOND}-0'",)


def test_a_plan_whose_maker_died_is_found_and_another_s_is_not_taken(table: TableBuilder) -> None:
    """Hudi wrote the plan, and the step died before it noted that."""

    def plan_and_die(_: JobRequest) -> None:
        plan_compaction(table, at(30), days=[FIRST])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _schedule(_workspace(table, FakeEngine(act=plan_and_die)), partitions=[FIRST])
    plan_compaction(table, at(31), days=[SECOND])  # another writer's

    again = _schedule(_workspace(table, FakeEngine()), partitions=[FIRST]).report
    assert (again.outcome, again.instants) == (Outcome.ALREADY_DONE, (at(30),))


def test_nothing_is_scheduled_beside_a_writer_nor_by_a_dry_run(table: TableBuilder) -> None:
    """A dry run says what a real run would be refused for."""
    table.put(f"{table.timeline_folder}/{at(20)}.deltacommit.inflight", b"")
    engine = FakeEngine()
    report = _schedule(_workspace(table, engine), dry_run=True).report
    assert report.outcome is Outcome.DRY_RUN
    assert [one for one in report.warnings if "another writer is at work" in one]
    with pytest.raises(PendingActionError, match=at(20)):
        _schedule(_workspace(table, engine))
    assert engine.requests == []


def test_limits_that_nothing_reaches_start_no_engine(table: TableBuilder) -> None:
    """The plan says why not."""
    engine = FakeEngine()
    workspace = _workspace(table, engine)
    report = _schedule(workspace, min_log_files=2).report
    assert (report.outcome, engine.requests) == (Outcome.NOTHING_TO_DO, [])
    plan = CompactionPlan.from_json(workspace.documents.read(str(report.plan_path)), name="plan")
    assert {"below min_log_files=2" in entry.reason for entry in plan.entries} == {True}


def test_a_copy_on_write_table_has_nothing_to_compact(tmp_path: Path) -> None:
    """Scheduling and executing skip; only a plan alone is an error."""
    workspace = _workspace(six_days(tmp_path), FakeEngine())
    executed = maintenance.execute_compaction(workspace, now=NOW, job=JobControl())
    for reported in (_schedule(workspace), executed):
        assert reported.report.outcome is Outcome.NOTHING_TO_DO
        assert "copy-on-write table has no log files" in reported.report.message
    with pytest.raises(UnsupportedTableError, match="copy-on-write"):
        maintenance.plan_compaction(workspace, now=NOW, settings=EVERYTHING)


def test_an_old_release_is_not_asked_for_what_it_cannot_do(tmp_path: Path) -> None:
    """Hudi 0.15 would compact every partition; where that is what the plan has, it may."""
    table = two_days(tmp_path, version=6)
    engine = FakeEngine(act=_hudi_plans(table, FIRST, SECOND), bundle=HUDI_0_15)
    workspace = maintenance.open_workspace(table.base_path, engine=lambda: engine, bundle=HUDI_0_15)
    with pytest.raises(BundleError, match="1 file group more than the plan has"):
        _schedule(workspace, partitions=[FIRST])
    assert engine.requests == []
    assert _schedule(workspace).report.outcome is Outcome.DONE


def test_a_job_that_fails_without_a_plan_is_an_error(table: TableBuilder) -> None:
    """One that says it found nothing is none."""
    failed = FakeEngine(answer=JobReport(ok=False, error_class="E", error_message="m"))
    with pytest.raises(EngineError, match="no compaction plan"):
        _schedule(_workspace(table, failed))
    assert _schedule(_workspace(table, FakeEngine())).report.outcome is Outcome.NOTHING_TO_DO


def test_an_unknown_partition_is_named(table: TableBuilder) -> None:
    """Nothing is asked of Hudi."""
    with pytest.raises(UnknownPartitionError, match="day=1999"):
        _schedule(_workspace(table, FakeEngine()), partitions=["day=1999"])


def test_the_oldest_plan_of_ours_is_executed_once(table: TableBuilder) -> None:
    """The report has what the commit wrote; a second run reads the timeline and does nothing."""
    _schedule(_workspace(table, FakeEngine(act=_hudi_plans(table, FIRST))), partitions=[FIRST])
    engine = FakeEngine(act=lambda _: complete_compaction(table, at(30), days=[FIRST]))
    report = maintenance.execute_compaction(_workspace(table, engine), now=NOW, job=JobControl()).report
    assert engine.requests[0].arguments == {"instants": [at(30)]}
    assert (report.outcome, report.instants, report.partitions) == (Outcome.DONE, (at(30),), (FIRST,))
    assert (report.files_before, report.files_after, report.bytes_before) == (2, 1, 1100)
    idle = FakeEngine()
    again = maintenance.execute_compaction(_workspace(table, idle), now=NOW, job=JobControl(), instants=[at(30)])
    assert (again.report.outcome, idle.requests) == (Outcome.ALREADY_DONE, [])
    none = maintenance.execute_compaction(_workspace(table, idle), now=NOW, job=JobControl())
    assert none.report.outcome is Outcome.NOTHING_TO_DO


def test_a_retry_goes_on_with_the_plan_of_its_job_and_takes_no_other(table: TableBuilder) -> None:
    """The first try died after the commit and before its report; meanwhile another plan of ours is pending."""
    _schedule(_workspace(table, FakeEngine(act=_hudi_plans(table, FIRST))), partitions=[FIRST])
    handles: list[JobHandle] = []

    def complete_and_die(_: JobRequest) -> None:
        complete_compaction(table, at(30), days=[FIRST])

    def die(handle: JobHandle) -> None:
        handles.append(handle)

    engine = FakeEngine(act=complete_and_die)
    maintenance.execute_compaction(_workspace(table, engine), now=NOW, job=JobControl(on_submitted=die))
    second = FakeEngine(act=lambda _: plan_compaction(table, at(35), days=[SECOND]))
    _schedule(_workspace(table, second), partitions=[SECOND])
    retry = FakeEngine()
    report = maintenance.execute_compaction(
        _workspace(table, retry), now=NOW, job=JobControl(previous=handles[0])
    ).report
    assert (report.outcome, report.instants, retry.requests) == (Outcome.ALREADY_DONE, (at(30),), [])


def test_log_files_that_came_after_the_plan_are_no_harm(table: TableBuilder) -> None:
    """They lie on the slice that the plan has opened."""
    plan_compaction(table, at(30), days=[FIRST])
    table.commit(at(40), logs={FIRST: [(f"{FIRST}-0", at(30), 7)]})
    engine = FakeEngine(act=lambda _: complete_compaction(table, at(30), days=[FIRST]))
    report = maintenance.execute_compaction(_workspace(table, engine), now=NOW, job=JobControl(), instants=[at(30)])
    assert (report.report.outcome, report.report.files_before) == (Outcome.DONE, 2)


def test_an_overtaken_plan_is_not_executed(table: TableBuilder) -> None:
    """Its file group was replaced since: a base file of it would be of rows that are gone."""
    plan_compaction(table, at(30), days=[FIRST])
    table.commit(at(40), {FIRST: [("new-0", 10)]}, replaced={FIRST: [f"{FIRST}-0"]})
    engine = FakeEngine()
    with pytest.raises(PlanOutdatedError, match="was replaced or removed"):
        maintenance.execute_compaction(_workspace(table, engine), now=NOW, job=JobControl(), instants=[at(30)])
    assert engine.requests == []


def test_a_compaction_that_somebody_else_executes_is_left_alone(table: TableBuilder) -> None:
    """Inflight without a job of ours, or with one that runs."""
    plan_compaction(table, at(30), days=[FIRST])
    cluster = _workspace(table, FakeEngine(outlives=True))
    with pytest.raises(maintenance.JobDeferred):
        maintenance.execute_compaction(cluster, now=NOW, job=JobControl(defer=True), instants=[at(30)])
    with pytest.raises(PendingActionError, match="is being executed by job 1"):
        maintenance.execute_compaction(
            _workspace(table, FakeEngine(running=True)), now=NOW, job=JobControl(), instants=[at(30)]
        )
    plan_compaction(table, at(31), days=[SECOND])
    table.put(f"{table.timeline_folder}/{at(31)}.compaction.inflight", b"")
    with pytest.raises(PendingActionError, match=f"{at(31)} is inflight"):
        maintenance.execute_compaction(_workspace(table, FakeEngine()), now=NOW, job=JobControl(), instants=[at(31)])


def test_a_commit_without_a_file_group_of_the_plan_fails_loudly(table: TableBuilder) -> None:
    """What was planned and what was written are compared."""
    plan_compaction(table, at(30), days=[FIRST, SECOND])
    engine = FakeEngine(act=lambda _: complete_compaction(table, at(30), days=[FIRST]))
    with pytest.raises(VerificationError, match=f"1 file groups where its plan has 2: '{SECOND}-0'"):
        maintenance.execute_compaction(_workspace(table, engine), now=NOW, job=JobControl(), instants=[at(30)])


def test_an_instant_that_is_no_compaction_is_refused(table: TableBuilder) -> None:
    """The message says what it is."""
    plan_clustering(table, at(30), day=FIRST)
    for instant, words in ((at(30), r"clustering, requested"), (at(59), "not on the active timeline")):
        with pytest.raises(UnknownInstantError, match=words):
            maintenance.execute_compaction(
                _workspace(table, FakeEngine()), now=NOW, job=JobControl(), instants=[instant]
            )
