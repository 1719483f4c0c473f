"""Operators that run a Spark job: how it is named, found again after a retry, and killed."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk import conf
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi_maint.core.errors import EngineKilledError, HudiMaintError
from airflow_hudi_maint.hooks.arguments import as_bool, as_seconds, is_unset
from airflow_hudi_maint.links.report import HudiReportLink
from airflow_hudi_maint.operators.base import HudiTableOperator
from airflow_hudi_maint.triggers.job import HudiJobTrigger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_hudi_maint.core.engines.base import Engine
    from airflow_hudi_maint.core.maintenance import JobControl, StepReported, Workspace
    from airflow_hudi_maint.core.model.job import JobHandle
    from airflow_hudi_maint.core.model.report import StepReport
    from airflow_hudi_maint.core.model.scheduler import PlanOwner
    from airflow_hudi_maint.hooks.hudi import HudiHook

JOB_KEY = "hudi_maint_job"
"""Key of the job's handle in the task state store; a retry of an older release looks for it, so it never changes."""

PLAN_KEY = "hudi_maint_plan"
"""Key of the path of the plan that the job works on."""

KILL_SECONDS = 4.0
"""Airflow's supervisor ends a task with SIGKILL 5 seconds after it asked it to stop."""

_NAME_LENGTH = 80


class HudiJobOperator(HudiTableOperator):
    """Run a step that may start a Spark job.

    The job's handle is stored before the job is watched, so that a retry finds a job that its forerunner left
    running, and goes on with the same plan: a job on a cluster that still runs is waited for, a local one is ended. A
    task that is stopped kills the whole job, within a bounded time.

    :param job_timeout: Longest time that a job may run, a timedelta or seconds; None for no limit. A job that runs
        longer is killed and the task fails, with its retries. (templated)
    :param deferrable: Whether the task gives its slot back while a job runs on a cluster, and the triggerer waits for
        it; None for Airflow's ``[operators] default_deferrable``. A job that ends with the process that submitted it
        (engine local, client mode) is waited for in the task all the same. (templated)
    :param poll_interval: How often the triggerer asks the cluster, a timedelta or seconds. (templated)
    """

    template_fields: Sequence[str] = (*HudiTableOperator.template_fields, "job_timeout", "deferrable", "poll_interval")
    operator_extra_links = (HudiReportLink(),)

    def __init__(
        self,
        *,
        job_timeout: object = None,
        deferrable: bool | str | None = None,
        poll_interval: object = 15.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job_timeout = job_timeout
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.report_path: str | None = None
        self._engine: Engine | None = None
        self._handle: JobHandle | None = None
        self._stopped = False
        self._store: Any = None
        self._workspace: Workspace | None = None
        self._control: JobControl | None = None
        self._plan_path: str | None = None
        self._resumed: dict[str, Any] | None = None

    @contextmanager
    def step(self, title: str) -> Iterator[HudiHook]:
        """Give the hook as every step does; defer over a job that was submitted. After a final error, forget the plan.

        The task ends here when it is deferred, and :meth:`resume` runs the step again.
        """
        from airflow_hudi_maint.core.maintenance import JobDeferred

        try:
            with super().step(title) as hook:
                yield hook
        except JobDeferred as deferred:
            self._defer(deferred.handle)
        except AirflowFailException:
            # It would be refused again, so a task that is cleared after the cause is mended has to plan anew.
            self._forget(PLAN_KEY)
            raise

    def resume(self, context: Context, event: Mapping[str, Any], deferred: Mapping[str, Any]) -> Any:
        """Go on when the job has ended that was deferred over: run the step again, which judges by the timeline.

        :param event: What the trigger saw.
        :param deferred: The job's handle, the plan that it works on, and when it is too late.
        """
        self._resumed = dict(deferred)
        self.log.info("%s", event.get("message"))
        if event.get("status") == "timeout":
            self._forget_job(context)
            raise EngineKilledError(f"{event.get('message')}; raise job_timeout or give the job less to do")
        return self.execute(context)

    def on_kill(self) -> None:
        """Kill the running job, if any, and let no other start.

        Airflow calls this in a signal handler, while ``execute`` stands still: the work is done in another thread,
        which can take locks that ``execute`` does not hold, and is waited for no longer than Airflow allows.
        """
        self._stopped = True
        engine, handle = self._engine, self._handle
        if engine is None or handle is None:
            return
        killer = threading.Thread(target=self._kill, args=(engine, handle), daemon=True)
        killer.start()
        killer.join(KILL_SECONDS)

    def open(self, hook: HudiHook) -> Workspace:
        """Open the table with an engine that :meth:`on_kill` can reach."""
        self._workspace = hook.workspace(engine=lambda: self.make_engine(hook), log=self.say)
        return self._workspace

    def job(self, context: Context) -> JobControl:
        """Say how a job of this task instance is named, stored and found again.

        Only a try that submitted a job binds the next one to its plan; without a job nothing was done by it, and a new
        plan sees the table as it is now.
        """
        from airflow_hudi_maint.core.maintenance import JobControl
        from airflow_hudi_maint.core.model.job import JobHandle

        self._store = context.get("task_state_store")
        stored, plan_path = self._recall(JOB_KEY), self._recall(PLAN_KEY)
        if self._resumed is not None:
            stored, plan_path = self._resumed.get("job"), self._resumed.get("plan_path")
        previous = JobHandle.from_json(stored) if isinstance(stored, dict) else None
        self._plan_path = plan_path if isinstance(plan_path, str) else None
        self._control = JobControl(
            application_name=application_name(context, task_id=self.task_id),
            previous=previous,
            on_submitted=self._on_submitted,
            plan_path=plan_path if previous is not None and isinstance(plan_path, str) else None,
            on_planned=self._on_planned,
            timeout_seconds=None if is_unset(self.job_timeout) else as_seconds("job_timeout", self.job_timeout),
            defer=self._is_deferrable(),
            resumed=self._resumed is not None,
        )
        return self._control

    def report(self, context: Context, reported: StepReported) -> dict[str, Any]:
        """Hand on what a step reported, and forget its job."""
        from airflow_hudi_maint.core.model.report import Outcome

        reported = self._credited(reported)
        self._handle = None
        self._forget(JOB_KEY)
        self._forget(PLAN_KEY)
        self.report_path = reported.path
        report = reported.report
        idle = report.message if report.outcome is Outcome.NOTHING_TO_DO else None
        return self.hand_on(context, step_result(report, path=reported.path), idle=idle)

    def make_engine(self, hook: HudiHook) -> Engine:
        """Make the engine when a job has to run, and keep it for :meth:`on_kill`."""
        self._refuse_when_stopped()
        self._engine = hook.make_engine()
        return self._engine

    def _on_submitted(self, handle: JobHandle) -> None:
        self._remember(JOB_KEY, dict[str, Any](handle.to_json()))
        self._handle = handle
        self._refuse_when_stopped()

    def _on_planned(self, path: str) -> None:
        self._plan_path = path
        self._remember(PLAN_KEY, path)

    def _is_deferrable(self) -> bool:
        if is_unset(self.deferrable):
            return bool(conf.getboolean("operators", "default_deferrable", fallback=False))
        return as_bool("deferrable", self.deferrable)

    def _defer(self, handle: JobHandle) -> None:
        """End this run of the task; the triggerer waits for the job."""
        limit = None if is_unset(self.job_timeout) else as_seconds("job_timeout", self.job_timeout)
        before = None if self._resumed is None else self._resumed.get("deadline")
        same = self._resumed is not None and self._resumed.get("job") == handle.to_json()
        deadline = before if same else (None if limit is None else time.time() + limit)
        job = dict[str, Any](handle.to_json())
        self.log.info("Deferred while job %s runs", handle.job_id)
        self.defer(
            trigger=HudiJobTrigger(
                hudi_conn_id=self.hudi_conn_id,
                base_path=self.base_path,
                job=job,
                deadline=deadline,
                poll_interval=as_seconds("poll_interval", self.poll_interval),
            ),
            method_name="resume",
            kwargs={"deferred": {"job": job, "plan_path": self._plan_path, "deadline": deadline}},
        )

    def _credited(self, reported: StepReported) -> StepReported:
        """Say of work that this task waited for elsewhere that it is done, not that it had been done already."""
        from airflow_hudi_maint.core.maintenance import credit

        if self._workspace is None or self._control is None:
            return reported
        return credit(self._workspace, reported, job=self._control)

    def _forget_job(self, context: Context) -> None:
        self._store = context.get("task_state_store")
        self._forget(JOB_KEY)

    def _recall(self, key: str) -> Any:
        return None if self._store is None else self._store.get(key)

    def _remember(self, key: str, value: Any) -> None:
        if self._store is not None:
            self._store.set(key, value)

    def _forget(self, key: str) -> None:
        if self._store is not None:
            self._store.delete(key)

    def _refuse_when_stopped(self) -> None:
        if self._stopped:
            raise EngineKilledError(f"{self.task_id} was asked to stop; its job is not run")

    def _kill(self, engine: Engine, handle: JobHandle) -> None:
        # The log may need a lock that the interrupted execute holds, so it comes last.
        try:
            engine.kill(handle, timeout_seconds=KILL_SECONDS)
        except (HudiMaintError, OSError) as error:
            self.log.warning("Job %s was not killed: %s", handle.job_id, error)
        else:
            self.log.info("Killed job %s", handle.job_id)


def step_result(report: StepReport, *, path: str | None) -> dict[str, Any]:
    """Return what a step hands on; lists that can grow with the table are counted."""
    return {
        "step": str(report.step),
        "outcome": str(report.outcome),
        "message": report.message,
        "base_path": report.base_path,
        "instants": list(report.instants),
        "partitions": len(report.partitions),
        "files_before": report.files_before,
        "files_after": report.files_after,
        "bytes_before": report.bytes_before,
        "bytes_after": report.bytes_after,
        "engine_seconds": report.engine_seconds,
        "plan_path": report.plan_path,
        "report_path": path,
        **({} if report.scheduler is None else {"scheduler": report.scheduler}),
    }


def plan_owner(context: Context) -> PlanOwner | None:
    """The task instance as a plan that it makes names it; None outside Airflow."""
    from airflow_hudi_maint.core.model.scheduler import PlanOwner

    ti = context.get("ti")
    if ti is None:
        return None
    map_index = -1 if ti.map_index is None else ti.map_index
    return PlanOwner(dag_id=ti.dag_id, run_id=ti.run_id, task_id=ti.task_id, map_index=map_index)


def application_name(context: Context, *, task_id: str) -> str:
    """Name a job after its task instance: the same in every try, another for every task instance.

    The readable part is cut to what cluster managers show; the digest at its end tells long names apart.
    """
    ti = context.get("ti")
    parts = [task_id] if ti is None else [ti.dag_id, ti.task_id, ti.run_id]
    if ti is not None and ti.map_index is not None and ti.map_index >= 0:
        parts.append(str(ti.map_index))
    text = "/".join(parts)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", "-".join(parts))[:_NAME_LENGTH]
    return f"hudi-maint-{readable}-{digest}"
