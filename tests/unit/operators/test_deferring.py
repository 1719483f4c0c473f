"""A deferrable step: it leaves its slot while the job runs, and comes back to judge by the timeline."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_hudi_maint.core.engines.base import JobOutcome
from airflow_hudi_maint.core.errors import EngineError, EngineKilledError, InvalidSettingError
from airflow_hudi_maint.core.maintenance import StepReported
from airflow_hudi_maint.core.maintenance.attaching import attach, end_previous, run_or_defer
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobRequest, JobStatus
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.operators.job import JOB_KEY, PLAN_KEY, WAIT_KEY, HudiJobOperator
from airflow_hudi_maint.triggers import job as trigger_module
from airflow_hudi_maint.triggers import settling
from airflow_hudi_maint.triggers.job import HudiJobTrigger
from tests.airflow.fakes import FakeStore, FakeTaskInstance, context
from tests.unit.core.maintenance.fake_engine import FakeEngine

HANDLE = JobHandle(engine="fake", job_id="1", kind="clean")
REQUEST = JobRequest(kind=JobKind.CLEAN, base_path="/lake/t", table_name="t")
ENGINE = FakeEngine()


class FakeDocuments:
    def write_kept(self, *_: Any, **__: Any) -> str:
        return "/lake/report.json"


class FakeWorkspace:
    """As much of a workspace as a job needs."""

    documents = FakeDocuments()

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.lines: list[str] = []

    def log(self, line: str) -> None:
        self.lines.append(line)


class CleanStep(HudiJobOperator):
    """A step with one job, on an engine of the test's."""

    def execute(self, context: Any) -> Any:
        with self.step("Clean"):
            self._workspace = FakeWorkspace(ENGINE)  # type: ignore[assignment]
            job = self.job(context)
            job.on_planned("/lake/plan.json")
            done = attach(self._workspace, ENGINE, job=job)  # type: ignore[arg-type]
            if not done and job.previous is not None:
                end_previous(ENGINE, job.previous, log=self._workspace.log)
            if not done:
                run_or_defer(self._workspace, ENGINE, REQUEST, job=job, probe=None)  # type: ignore[arg-type]
            outcome = Outcome.ALREADY_DONE if done else Outcome.DONE
            report = StepReport(
                step=Step.CLEAN,
                outcome=outcome,
                message="Cleaned",
                base_path="/lake/t",
                base_instant="20260101000000000",
            )
        return self.report(context, StepReported(report=report, path="/lake/report.json"))


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    fresh = FakeEngine(outlives=True, running=True)
    monkeypatch.setitem(globals(), "ENGINE", fresh)
    return fresh


def deferred(store: FakeStore, **arguments: Any) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as raised:
        CleanStep(task_id="step", deferrable=True, base_path="/lake/t", **arguments).execute(context(store=store))
    return raised.value


def test_the_step_defers_over_its_job_and_reports_when_it_comes_back(engine: FakeEngine) -> None:
    """Once submitted, stored, waited for, judged: the second half submits nothing and says that it is done."""
    store = FakeStore()
    left = deferred(store, poll_interval=3)
    assert store[JOB_KEY] == HANDLE.to_json()
    assert store[PLAN_KEY] == "/lake/plan.json"
    trigger = left.trigger
    assert isinstance(trigger, HudiJobTrigger)
    assert (trigger.job, trigger.poll_interval, trigger.deadline) == (HANDLE.to_json(), 3.0, None)
    assert left.method_name == "resume"

    engine.running = False
    again = CleanStep(task_id="step", deferrable=True, base_path="/lake/t")
    result = again.resume(context(store=store), {"status": "succeeded", "message": "ended"}, **(left.kwargs or {}))
    assert result["outcome"] == "done"
    assert "which this task waited for" in result["message"]
    assert len(engine.requests) == 1
    assert store == {}


def test_the_time_limit_goes_with_the_trigger(engine: FakeEngine) -> None:
    """And ends the task with an error that may be retried; the next try knows of the job and goes on with its plan."""
    store = FakeStore()
    left = deferred(store, job_timeout=60)
    deadline = left.trigger.deadline  # type: ignore[attr-defined]
    assert 50 < deadline - time.time() <= 60
    event = {"status": "timeout", "message": "Job 1 ran too long and was killed"}
    with pytest.raises(EngineKilledError, match="raise job_timeout"):
        CleanStep(task_id="step", deferrable=True).resume(context(store=store), event, **(left.kwargs or {}))
    assert (HANDLE.to_json(), "/lake/plan.json") == (store[JOB_KEY], store[PLAN_KEY])


def test_a_task_that_wakes_up_too_early_waits_again(engine: FakeEngine) -> None:
    """The trigger gave up looking; the job still runs, under the same limit."""
    store = FakeStore()
    left = deferred(store, job_timeout=60)
    with pytest.raises(TaskDeferred) as raised:
        CleanStep(task_id="step", deferrable=True, base_path="/lake/t", job_timeout=60).resume(
            context(store=store), {"status": "error", "message": "silent"}, **(left.kwargs or {})
        )
    assert raised.value.trigger.deadline == left.trigger.deadline  # type: ignore[attr-defined]
    assert len(engine.requests) == 1


def test_a_task_whose_triggerer_cannot_see_the_job_waits_by_itself(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deferred again, it would be woken up at once, and again: a worker's slot each time, and no end."""
    store = FakeStore()
    left = deferred(store)
    monkeypatch.setattr("airflow_hudi_maint.core.maintenance.attaching.watch_job", ended)
    result = CleanStep(task_id="step", deferrable=True, base_path="/lake/t").resume(
        context(store=store), {"status": "error", "message": "no such file", "blind": True}, **(left.kwargs or {})
    )
    assert ("done", 1) == (result["outcome"], len(engine.requests))


def test_a_task_that_is_cleared_while_it_is_deferred_ends_its_job_and_begins_anew(engine: FakeEngine) -> None:
    """The triggerer ends it as well, but may come later than the new try: that must not take the job up again."""
    store = FakeStore()
    deferred(store)
    assert store[WAIT_KEY] == HANDLE.job_id
    deferred(store)
    assert len(engine.requests) == 2
    assert store[JOB_KEY]["job_id"] == store[WAIT_KEY] == "2"


def test_a_try_that_dies_before_it_is_deferred_or_after_leaves_its_job_to_the_next(engine: FakeEngine) -> None:
    """Nobody ended it: a worker was lost."""
    store = FakeStore()
    left = deferred(store)
    with pytest.raises(TaskDeferred):  # It wakes up too early, and its worker dies after that.
        CleanStep(task_id="step", deferrable=True, base_path="/lake/t").resume(
            context(store=store), {"status": "error", "message": "silent"}, **(left.kwargs or {})
        )
    del store[WAIT_KEY]
    again = deferred(store)
    assert again.trigger.job == HANDLE.to_json()  # type: ignore[attr-defined]
    assert len(engine.requests) == 1


def ended(engine: FakeEngine, handle: JobHandle, **_: Any) -> JobOutcome:
    return JobOutcome(handle=handle, status=JobStatus.SUCCEEDED, report=None, log_tail="")


class Hook:
    """A hook that makes the test's engine."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    async def aconnect(self) -> None:
        pass

    def make_engine(self) -> FakeEngine:
        return ENGINE


@pytest.fixture
def trigger(monkeypatch: pytest.MonkeyPatch) -> HudiJobTrigger:
    monkeypatch.setattr(trigger_module, "HudiHook", Hook)
    return HudiJobTrigger(hudi_conn_id=None, base_path="/lake/t", job=HANDLE.to_json(), poll_interval=0.01)


async def first_event(trigger: HudiJobTrigger) -> dict[str, Any]:
    payload: dict[str, Any] = (await anext(trigger.run())).payload
    return payload


def test_the_trigger_can_be_made_again(trigger: HudiJobTrigger) -> None:
    """In another triggerer, from plain JSON."""
    path, arguments = trigger.serialize()
    assert path == "airflow_hudi_maint.triggers.job.HudiJobTrigger"
    assert HudiJobTrigger(**arguments).serialize() == (path, arguments)


def test_the_trigger_fires_when_the_job_has_ended(engine: FakeEngine, trigger: HudiJobTrigger) -> None:
    """However it ended: the task judges."""

    async def end_soon() -> dict[str, Any]:
        waiting = asyncio.create_task(first_event(trigger))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        engine.running = False
        return await asyncio.wait_for(waiting, 5)

    assert asyncio.run(end_soon()) == {"status": "succeeded", "message": "Job 1 ended: succeeded"}


def test_the_trigger_kills_a_job_that_runs_too_long(engine: FakeEngine, trigger: HudiJobTrigger) -> None:
    """The deadline is a moment, so a triggerer that starts anew does not begin to count again."""
    trigger.deadline = time.time() - 1
    assert asyncio.run(first_event(trigger))["status"] == "timeout"
    assert not engine.running


def test_a_person_who_ends_the_task_ends_the_job(engine: FakeEngine, trigger: HudiJobTrigger) -> None:
    """A triggerer that stops does not: cleanup leaves the job alone."""

    async def stop() -> None:
        waiting = asyncio.create_task(first_event(trigger))
        await asyncio.sleep(0.03)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        await trigger.cleanup()

    asyncio.run(stop())
    assert engine.running
    asyncio.run(trigger.on_kill())
    assert not engine.running


def test_a_kill_outlives_the_cancelling_of_its_trigger(engine: FakeEngine, trigger: HudiJobTrigger) -> None:
    """Airflow's triggerer cancels a trigger again each second until it is gone, and with it what kills the job."""
    engine.kill = slowly(engine.kill, seconds=0.3)  # type: ignore[method-assign]

    async def stop() -> None:
        killing = asyncio.create_task(trigger.on_kill())
        for _ in range(5):
            await asyncio.sleep(0.02)
            killing.cancel()
        with suppress(asyncio.CancelledError):
            await killing

    asyncio.run(stop())
    assert not engine.running


def slowly(act: Any, *, seconds: float) -> Any:
    def later(*arguments: Any, **more: Any) -> Any:
        time.sleep(seconds)
        return act(*arguments, **more)

    return later


@pytest.mark.parametrize(
    ("state", "goes_on"), [("deferred", True), ("running", True), ("failed", False), ("queued", False), (None, False)]
)
def test_a_trigger_that_another_triggerer_took_over_leaves_the_job_alone(
    engine: FakeEngine, trigger: HudiJobTrigger, monkeypatch: pytest.MonkeyPatch, *, state: str | None, goes_on: bool
) -> None:
    """A triggerer that was silent for a while loses its triggers; Airflow calls that by the same name as a clear."""
    asked: list[dict[str, Any]] = []

    def states(**question: Any) -> dict[str, dict[str, str | None]]:
        asked.append(question)
        return {"run": {"step_3": state}}

    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", states)
    trigger.task_instance = FakeTaskInstance(dag_id="dag", task_id="step", run_id="run", map_index=3)  # type: ignore[assignment]
    asyncio.run(trigger.on_kill())
    assert engine.running is goes_on
    assert asked == [{"dag_id": "dag", "task_ids": ["step"], "run_ids": ["run"], "map_index": 3}]


def test_a_job_is_killed_where_nobody_says_how_the_task_is(
    engine: FakeEngine, trigger: HudiJobTrigger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person who ended a task counts on it."""

    def states(**_: Any) -> None:
        raise RuntimeError("no supervisor")

    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", states)
    trigger.task_instance = FakeTaskInstance()  # type: ignore[assignment]
    asyncio.run(trigger.on_kill())
    assert not engine.running


def test_a_job_that_ends_at_once_wakes_its_task_up_a_little_later(
    engine: FakeEngine, trigger: HudiJobTrigger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow takes a task for lost that runs again before its executor has reported the process that deferred it."""
    monkeypatch.setattr(settling, "SETTLE_SECONDS", 0.2)
    engine.running = False
    started = time.monotonic()
    assert asyncio.run(first_event(trigger))["status"] == "succeeded"
    assert time.monotonic() - started >= 0.2


def test_a_silent_cluster_is_waited_for_and_a_wrong_setting_is_not(
    engine: FakeEngine, trigger: HudiJobTrigger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task is woken up to say what is wrong; it looks by itself."""
    errors: list[Exception] = [InvalidSettingError("no such connection"), EngineError("refused")]

    def status(_: JobHandle) -> JobStatus:
        raise errors.pop()

    monkeypatch.setattr(engine, "status", status)
    assert asyncio.run(first_event(trigger)) == {
        "status": "error",
        "message": "InvalidSettingError: no such connection",
        "blind": True,
    }
    assert errors == []
    monkeypatch.setattr(trigger_module, "SILENT_SECONDS", 0.0)
    errors.append(EngineError("refused"))
    assert asyncio.run(first_event(trigger))["message"] == "EngineError: refused"
