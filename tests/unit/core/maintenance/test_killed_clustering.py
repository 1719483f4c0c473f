"""Clustering that is killed at each point of its way, in each way, and the retry: one replace commit, the same rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import EngineError, InvalidSettingError
from airflow_hudi_maint.core.maintenance import JobControl, Workspace
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobReport, JobStatus
from airflow_hudi_maint.core.model.plan import ClusteringSettings
from airflow_hudi_maint.core.model.report import Outcome, StepReport
from airflow_hudi_maint.core.model.scheduler import Scheduler
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.fake_hudi import DAYS, FakeHudi, three_days_of_rows
from tests.unit.core.maintenance.six_days import NOW, workspace_with
from tests.unit.core.storage.builders import TableBuilder, at

SETTINGS = ClusteringSettings(target_file_bytes=1024**2, small_file_bytes=64 * 1024, max_group_bytes=2 * 1024**2)


class Point(StrEnum):
    """How far the instant has come."""

    REQUESTED = "requested"
    REWRITING = "in the middle of the rewrite"
    WRITTEN = "after the data files"
    COMMITTED = "after the commit"


class Way(StrEnum):
    """What is killed."""

    JOB = "the job"
    WORKER = "the worker"
    GROUP = "both"


class Killed(BaseException):
    """The end of a worker, which no except clause of a step may take for an error."""


@dataclass
class DyingHudi(FakeHudi):
    """A Hudi that gets as far as the point, and no further."""

    point: Point = Point.COMMITTED

    def execute(self, instant: str) -> None:
        if self.point is Point.REQUESTED:
            return
        super().execute(instant)
        if self.point is Point.COMMITTED:
            return
        self.executed.clear()
        self.table.remove(f"{self.table.timeline_folder}/{instant}_{instant}.replacecommit")
        if self.point is Point.REWRITING:
            self.table.remove(f"{DAYS[-1]}/{DAYS[-1]}-{instant}-c_0-1-2_{instant}.parquet")


@dataclass
class DyingEngine(FakeEngine):
    """An engine whose job was killed, which the worker sees, or not any more."""

    way: Way = Way.JOB

    def status(self, handle: JobHandle) -> JobStatus:
        if self.way is Way.JOB:
            return JobStatus.KILLED
        raise Killed

    def report(self, handle: JobHandle) -> JobReport | None:
        return None


@dataclass
class Step:
    """A task's step over its tries: it remembers what the operator does, and returns the instants it is about."""

    run: Callable[[Workspace, JobControl], StepReport]
    workspace: Callable[[FakeEngine], Workspace]
    handle: JobHandle | None = None
    plan_path: str | None = None

    def attempt(self, engine: FakeEngine) -> StepReport:
        def remember(handle: JobHandle) -> None:
            self.handle = handle

        def planned(path: str) -> None:
            self.plan_path = path

        job = JobControl(
            previous=self.handle,
            plan_path=self.plan_path if self.handle else None,
            on_submitted=remember,
            on_planned=planned,
        )
        return self.run(self.workspace(engine), job)


def _execute(workspace: Workspace, job: JobControl) -> StepReport:
    """Execute the oldest plan of ours, whichever that is."""
    return maintenance.execute_clustering(workspace, now=NOW, job=job).report


def _cluster(scheduler: Scheduler) -> Callable[[Workspace, JobControl], StepReport]:
    def run(workspace: Workspace, job: JobControl) -> StepReport:
        return maintenance.cluster(workspace, now=NOW, settings=SETTINGS, job=job, scheduler=scheduler).report

    return run


def _schedule(workspace: Workspace, *partitions: str) -> str:
    reported = maintenance.schedule_clustering(
        workspace,
        now=NOW,
        settings=SETTINGS,
        job=JobControl(),
        scheduler=Scheduler.NATIVE,
        partitions=partitions or None,
    )
    return reported.report.instants[-1]


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return three_days_of_rows(str(tmp_path / "trips"))


def _keys(table: TableBuilder) -> list[str]:
    """The record keys that a reader of the table sees."""
    view = table.open().view(table.open().timeline())
    files = [
        Path(table.base_path) / path / one.base_file.name
        for path in view.partition_paths
        for one in view.latest_slices(path)
        if one.base_file
    ]
    return sorted(key for file in files for key in pq.read_table(file)["_hoodie_record_key"].to_pylist())


def _replace_commits(table: TableBuilder) -> list[str]:
    timeline = table.open().timeline()
    return [one.requested_time for one in timeline.completed if one.action is Action.REPLACE_COMMIT]


STEPS = {
    "execute": _execute,
    "cluster natively": _cluster(Scheduler.NATIVE),
    "cluster by Hudi": _cluster(Scheduler.HUDI),
}


@pytest.mark.parametrize("way", list(Way), ids=lambda one: f"kill {one}")
@pytest.mark.parametrize("point", list(Point), ids=str)
@pytest.mark.parametrize("name", list(STEPS))
def test_a_retry_ends_with_one_replace_commit_and_the_same_rows(
    table: TableBuilder, name: str, point: Point, way: Way
) -> None:
    """Killed anywhere: the retry finishes the plan that was begun, or finds that it is done, and makes no other."""
    if name == "execute":
        _schedule(workspace_with(table, FakeEngine()))
    before = _keys(table)
    step = Step(run=STEPS[name], workspace=lambda engine: workspace_with(table, engine))
    dying = DyingEngine(act=DyingHudi(table, point=point), way=way)
    survives = way is Way.JOB and point is Point.COMMITTED
    if survives:
        assert any("ended badly" in one for one in step.attempt(dying).warnings)
    else:
        with pytest.raises(EngineError if way is Way.JOB else Killed):
            step.attempt(dying)
    assert before == _keys(table)
    (instant,) = [one.requested_time for one in table.open().timeline() if one.action is not Action.COMMIT]

    # A job that outlived its worker is ended first; one that was killed with it is gone.
    retry = FakeEngine(act=(second := FakeHudi(table, planned_at=at(50))), running=way is Way.WORKER)
    report = step.attempt(retry)

    done = point is Point.COMMITTED
    assert (Outcome.ALREADY_DONE if done else Outcome.DONE, (instant,)) == (report.outcome, report.instants)
    assert ([] if done else [instant]) == second.executed
    assert [] == [one for one in retry.requests if one.kind is not JobKind.EXECUTE_CLUSTERING]
    assert [instant] == _replace_commits(table)
    assert () == table.open().timeline().pending
    assert before == _keys(table)
    assert not report.verification[0].failed


@pytest.mark.parametrize("name", ["execute", "cluster natively"])
def test_a_retry_after_the_commit_takes_no_other_plan_instead(table: TableBuilder, name: str) -> None:
    """It was not told an instant, and another plan of ours is pending by now: it reports the one that its job made."""
    first = _schedule(workspace_with(table, FakeEngine()), DAYS[0])
    step = Step(run=STEPS[name], workspace=lambda engine: workspace_with(table, engine))
    with pytest.raises(Killed):
        step.attempt(DyingEngine(act=DyingHudi(table), way=Way.WORKER))
    done = _replace_commits(table)
    assert first in done
    table.commit(at(58), {DAYS[0]: [("late-0", b""), ("later-0", b"")]})
    FakeHudi(table).schedule(at(59), DAYS[1:2])
    retry = FakeEngine()

    report = step.attempt(retry)

    assert (Outcome.ALREADY_DONE, tuple(done), []) == (report.outcome, report.instants, retry.requests)


def test_a_deferred_execution_of_the_oldest_plan_reports_that_plan(table: TableBuilder) -> None:
    """It comes back when its job has ended, and the oldest pending plan is another one by then."""
    first = _schedule(workspace_with(table, FakeEngine()), DAYS[0])
    second = _schedule(workspace_with(table, FakeEngine()), DAYS[1])
    engine = FakeEngine(act=FakeHudi(table), outlives=True)
    handles: list[JobHandle] = []
    leaving = JobControl(on_submitted=handles.append, defer=True)
    with pytest.raises(maintenance.JobDeferred):
        maintenance.execute_clustering(workspace_with(table, engine), now=NOW, job=leaving)

    back = JobControl(previous=handles[0], resumed=True, defer=True)
    report = maintenance.execute_clustering(workspace_with(table, engine), now=NOW, job=back).report

    assert ((first,), 1) == (report.instants, len(engine.requests))
    assert [second] == [one.requested_time for one in table.open().timeline().pending]


@dataclass
class OtherEngine(FakeEngine):
    """An engine that did not write the handles that it is asked about."""

    def status(self, handle: JobHandle) -> JobStatus:
        if handle.engine != self.name:
            raise InvalidSettingError(f"Job {handle.job_id} was given to the engine {handle.engine!r}")
        return super().status(handle)


def test_a_plan_whose_job_failed_is_executed_on_another_engine(table: TableBuilder) -> None:
    """The job is known to have ended, so its engine, which the connection names no more, is not asked about it."""
    instant = _schedule(workspace_with(table, FakeEngine()))
    with pytest.raises(EngineError):
        _execute(workspace_with(table, DyingEngine(act=DyingHudi(table, point=Point.REWRITING))), JobControl())

    other = OtherEngine(act=FakeHudi(table), name="other")
    report = _execute(workspace_with(table, other), JobControl())

    assert (Outcome.DONE, (instant,)) == (report.outcome, report.instants)


@pytest.mark.parametrize("point", [Point.REQUESTED, Point.REWRITING, Point.WRITTEN], ids=str)
def test_the_next_run_finishes_what_a_task_without_retries_left(table: TableBuilder, point: Point) -> None:
    """Hudi made the plan, and everything was killed at once: nobody noted the plan, and only what was asked for."""
    before = _keys(table)
    with pytest.raises(Killed):
        _cluster(Scheduler.HUDI)(
            workspace_with(table, DyingEngine(act=DyingHudi(table, point=point), way=Way.GROUP)), JobControl()
        )

    engine = FakeEngine(act=FakeHudi(table, planned_at=at(50)))
    report = _cluster(Scheduler.HUDI)(workspace_with(table, engine), JobControl())

    assert (Outcome.DONE, (at(40),), [at(40)]) == (report.outcome, report.instants, _replace_commits(table))
    assert () == table.open().timeline().pending
    assert before == _keys(table)


def test_a_plan_that_its_application_is_about_to_execute_is_no_elses(table: TableBuilder) -> None:
    """Between the two halves of one application the plan is only requested; another task must not execute it, too."""
    first = FakeEngine(act=DyingHudi(table, point=Point.REQUESTED), outlives=True, running=True)
    with pytest.raises(maintenance.JobDeferred):
        _cluster(Scheduler.HUDI)(workspace_with(table, first), JobControl(defer=True))
    second = FakeEngine(running=True)

    executed = _execute(workspace_with(table, second), JobControl())
    clustered = _cluster(Scheduler.HUDI)(workspace_with(table, second), JobControl())

    assert [Outcome.NOTHING_TO_DO] * 2 == [executed.outcome, clustered.outcome]
    assert [] == second.requests
    assert [at(40)] == [one.requested_time for one in table.open().timeline().pending]
