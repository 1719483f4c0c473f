"""How a task's job is named, found again and killed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi_maint.core.errors import EngineKilledError, PlanOutdatedError, StorageError
from airflow_hudi_maint.core.maintenance import StepReported
from airflow_hudi_maint.core.model.job import JobHandle
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.operators.clustering import HudiExecuteClusteringOperator
from airflow_hudi_maint.operators.job import JOB_KEY, PLAN_KEY, application_name
from airflow_hudi_maint.operators.job_keeping import KILL_SECONDS
from tests.airflow.fakes import FakeStore, FakeTaskInstance, context

HANDLE = JobHandle(engine="local", job_id="1:2:/tmp/job")


@dataclass
class FakeEngine:
    """An engine whose kill takes a while."""

    seconds: float = 0.0
    begun: list[JobHandle] = field(default_factory=list)
    killed: list[JobHandle] = field(default_factory=list)

    def kill(self, handle: JobHandle, *, timeout_seconds: float) -> None:
        assert timeout_seconds <= KILL_SECONDS
        self.begun.append(handle)
        time.sleep(self.seconds)
        self.killed.append(handle)


@dataclass
class FakeHook:
    """Makes the engine that it was given."""

    engine: Any

    def make_engine(self) -> Any:
        return self.engine


def operator(**arguments: Any) -> Any:
    return HudiExecuteClusteringOperator(task_id="execute", **arguments)


def test_a_job_is_named_after_its_task_instance() -> None:
    """Every try has the same name, every task instance another."""
    ti = FakeTaskInstance(dag_id="maintain", run_id="scheduled__2026-11-01T00:00:00+00:00")
    name = application_name(context(ti=ti), task_id="step")
    assert name.startswith("hudi-maint-maintain-step-scheduled__2026-11-01T00-00-00-00-00-")
    assert name == application_name(context(ti=ti), task_id="step")
    mapped = FakeTaskInstance(dag_id="maintain", run_id=ti.run_id, map_index=0)
    assert application_name(context(ti=mapped), task_id="step") != name
    assert len(application_name(context(ti=FakeTaskInstance(dag_id="d" * 300)), task_id="step")) < 120


def test_the_handle_is_stored_before_the_job_is_watched_and_read_by_a_retry() -> None:
    """A second try gets what the first one submitted."""
    store = FakeStore()
    first = operator().job(context(store=store))
    assert first.previous is None
    first.on_submitted(HANDLE)
    assert store[JOB_KEY] == HANDLE.to_json()
    assert operator().job(context(store=store)).previous == HANDLE


def test_a_retry_goes_on_with_the_plan_of_the_job_that_was_submitted() -> None:
    """Without a job nothing was done by the plan, and a newer one is better."""
    store = FakeStore()
    first = operator().job(context(store=store))
    assert first.plan_path is None
    first.on_planned("/lake/plan.json")
    assert store[PLAN_KEY] == "/lake/plan.json"
    assert operator().job(context(store=store)).plan_path is None
    first.on_submitted(HANDLE)
    assert operator().job(context(store=store)).plan_path == "/lake/plan.json"


def test_a_task_that_reports_forgets_its_job_and_its_plan() -> None:
    """A task that is cleared after its success begins anew."""
    store = FakeStore()
    task = operator()
    control = task.job(context(store=store))
    control.on_planned("/lake/plan.json")
    control.on_submitted(HANDLE)
    report = StepReport(
        step=Step.EXPIRE, outcome=Outcome.DONE, message="Dropped", base_path="/lake", base_instant="20260101000000000"
    )
    task.report(context(store=store), StepReported(report=report, path="/lake/report.json"))
    assert store == {}


@pytest.mark.parametrize(
    ("error", "raised", "kept"),
    [
        (PlanOutdatedError("changed since"), AirflowFailException, {JOB_KEY}),
        (StorageError("503"), StorageError, {JOB_KEY, PLAN_KEY}),
    ],
)
def test_a_plan_that_is_refused_for_good_is_forgotten(error: Exception, raised: type, kept: set[str]) -> None:
    """A task that is cleared plans anew instead of being refused for ever; a retry after an outage goes on."""
    store, task = FakeStore(), operator()

    def fail() -> None:
        control = task.job(context(store=store))
        control.on_planned("/lake/plan.json")
        control.on_submitted(HANDLE)
        raise error

    with pytest.raises(raised), task.step("Expire"):
        fail()
    assert set(store) == kept


@pytest.mark.parametrize(("given", "expected"), [(None, None), ("", None), ("90", 90.0)])
def test_a_job_s_time_is_limited_when_asked_for(given: Any, expected: float | None) -> None:
    """Without a limit a job runs as long as it needs."""
    assert operator(job_timeout=given).job(context()).timeout_seconds == expected


def test_on_kill_ends_the_running_job() -> None:
    """The engine is told to end the job that runs now."""
    engine, task = FakeEngine(), operator()
    task.make_engine(FakeHook(engine))
    task.job(context()).on_submitted(HANDLE)
    task.on_kill()
    assert engine.killed == [HANDLE]


def test_on_kill_without_a_job_keeps_one_from_starting() -> None:
    """A task that is stopped while it plans starts no job afterwards."""
    task = operator()
    task.on_kill()
    with pytest.raises(EngineKilledError, match="asked to stop"):
        task.make_engine(FakeHook(FakeEngine()))


def test_a_job_that_was_submitted_while_the_task_was_stopped_is_given_up() -> None:
    """on_kill came before the handle was known: the submission raises, and whoever submitted kills the job."""
    engine, task = FakeEngine(), operator()
    task.make_engine(FakeHook(engine))
    control = task.job(context())
    task.on_kill()
    with pytest.raises(EngineKilledError):
        control.on_submitted(HANDLE)


def test_on_kill_is_bounded_even_when_the_engine_is_not() -> None:
    """Airflow ends the task after 5 seconds, so nobody waits longer."""
    engine, task = FakeEngine(seconds=30), operator()
    task.make_engine(FakeHook(engine))
    task.job(context()).on_submitted(HANDLE)
    started = time.monotonic()
    task.on_kill()
    assert time.monotonic() - started < 5
    assert (engine.begun, engine.killed) == ([HANDLE], []), "the kill was begun and goes on"
