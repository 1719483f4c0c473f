"""Operators that run a Spark job: how it is named, found again after a retry, and killed."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk import conf
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi_maint.core.errors import EngineKilledError
from airflow_hudi_maint.hooks.arguments import as_bool, as_seconds, is_unset
from airflow_hudi_maint.links.report import HudiReportLink
from airflow_hudi_maint.operators.base import HudiTableOperator
from airflow_hudi_maint.operators.job_keeping import JOB_KEY, JobKeepingOperator, application_name
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

PLAN_KEY = "hudi_maint_plan"
"""Key of the path of the plan that the job works on."""

WAIT_KEY = "hudi_maint_wait"
"""Key of the id of the job that the task is deferred over. A try that still finds it was not resumed, but run anew."""


class HudiJobOperator(JobKeepingOperator, HudiTableOperator):
    """Run a step that may start a Spark job.

    The job's handle is stored before the job is watched, so that a retry finds a job that its forerunner left
    running, and goes on with the same plan: a job on a cluster that still runs is waited for, a local one is ended. A
    task that is stopped kills the whole job, within a bounded time.

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
        deferrable: bool | str | None = None,
        poll_interval: object = 15.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.report_path: str | None = None
        self._workspace: Workspace | None = None
        self._control: JobControl | None = None
        self._plan_path: str | None = None
        self._resumed: dict[str, Any] | None = None
        self._waits_here = False

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

        Where the triggerer cannot see the job at all, the task waits by itself: deferred again, it would be woken up at
        once. A job that was killed for its time stays noted, so that the next try goes on with the plan that it made.

        :param event: What the trigger saw.
        :param deferred: The job's handle, the plan that it works on, and when it is too late.
        """
        self._resumed = dict(deferred)
        self._store = context.get("task_state_store")
        self._forget(WAIT_KEY)
        self.log.info("%s", event.get("message"))
        self._waits_here = event.get("blind") is True
        if event.get("status") == "timeout":
            raise EngineKilledError(f"{event.get('message')}; raise job_timeout or give the job less to do")
        return self.execute(context)

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

        previous, plan_path = self._previous(context), self._recall(PLAN_KEY)
        if self._resumed is not None:
            stored, plan_path = self._resumed.get("job"), self._resumed.get("plan_path")
            previous = JobHandle.from_json(stored) if isinstance(stored, dict) else None
        as_seconds("poll_interval", self.poll_interval)  # a wrong one is better heard of before a job is submitted
        self._plan_path = plan_path if isinstance(plan_path, str) else None
        self._control = JobControl(
            application_name=application_name(context, task_id=self.task_id),
            previous=previous,
            on_submitted=self._on_submitted,
            plan_path=plan_path if previous is not None and isinstance(plan_path, str) else None,
            on_planned=self._on_planned,
            timeout_seconds=self._timeout_seconds(),
            defer=self._is_deferrable(),
            resumed=self._resumed is not None,
            given_up=previous is not None and self._resumed is None and self._recall(WAIT_KEY) == previous.job_id,
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
        return self._reachable(hook.make_engine())

    def _on_planned(self, path: str) -> None:
        self._plan_path = path
        self._remember(PLAN_KEY, path)

    def _is_deferrable(self) -> bool:
        if self._waits_here:
            return False
        if is_unset(self.deferrable):
            return bool(conf.getboolean("operators", "default_deferrable", fallback=False))
        return as_bool("deferrable", self.deferrable)

    def _defer(self, handle: JobHandle) -> None:
        """End this run of the task; the triggerer waits for the job."""
        limit = self._timeout_seconds()
        before = None if self._resumed is None else self._resumed.get("deadline")
        same = self._resumed is not None and self._resumed.get("job") == handle.to_json()
        deadline = before if same else (None if limit is None else time.time() + limit)
        job = dict[str, Any](handle.to_json())
        self._remember(WAIT_KEY, handle.job_id)
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
