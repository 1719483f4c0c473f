"""Cluster at once: schedule a plan and execute it, in one Spark application."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import EngineError, HudiMaintError, PendingActionError, TerminalError
from airflow_hudi_maint.core.maintenance.clustering_planning import PlannedClustering, describe, plan_clustering
from airflow_hudi_maint.core.maintenance.execution import execute_clustering
from airflow_hudi_maint.core.maintenance.native_scheduling import NativeScheduling
from airflow_hudi_maint.core.maintenance.ownership import (
    comes_from,
    executed_by,
    forget_asked,
    overlaps,
    record_asked,
    record_execution,
    record_ours,
    stays_within,
)
from airflow_hudi_maint.core.maintenance.rewrite_report import Rewrite, predicted, report_rewrite
from airflow_hudi_maint.core.maintenance.scheduling import plans_of_ours, schedule_planned
from airflow_hudi_maint.core.maintenance.steps import (
    StepJob,
    StepReported,
    run_step_job,
    settle_previous,
    write_step_report,
)
from airflow_hudi_maint.core.maintenance.verification import METADATA_PARTITIONS_KEY
from airflow_hudi_maint.core.model.commit import PendingPlan
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.job import JobKind, JobTotals
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.scheduler import PlanOwner, Scheduler
from airflow_hudi_maint.core.model.verification import VerifySettings
from airflow_hudi_maint.core.planning.clustering import clustering_options
from airflow_hudi_maint.core.planning.clustering_strategy_names import DEFAULT_STRATEGY
from airflow_hudi_maint.core.planning.execution_settings import ExecutionSettings, PlannedRewrite

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.engines.base import JobOutcome
    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.document import JsonMapping
    from airflow_hudi_maint.core.model.job import JobHandle
    from airflow_hudi_maint.core.model.timeline import Timeline

_AS_PLANNED = ExecutionSettings()
_BY_DEFAULT = VerifySettings()


def cluster(  # noqa: PLR0913 what scheduling and executing take
    workspace: Workspace,
    *,
    now: datetime,
    settings: ClusteringSettings,
    job: JobControl,
    partitions: Collection[str] | None = None,
    strategy: str = DEFAULT_STRATEGY,
    strategy_options: Mapping[str, object] | None = None,
    scheduler: Scheduler = Scheduler.AUTO,
    owner: PlanOwner | None = None,
    execution: ExecutionSettings = _AS_PLANNED,
    verify: VerifySettings = _BY_DEFAULT,
    dry_run: bool = False,
) -> StepReported:
    """Schedule a clustering plan, execute it and verify the result, in one Spark application.

    The plan is written without a JVM where :func:`schedule_clustering` would do so, and by Hudi in the same application
    that executes it where not. Pending plans of ours are executed as well: a retry finishes what its forerunner began,
    plans nothing beside it, and a second run finds nothing to do.

    Raises as :func:`schedule_clustering` and :func:`execute_clustering` do.
    """
    retried = settle_previous(workspace, job)
    run = _Clustering(
        workspace=workspace, now=now, job=job, scheduler=scheduler, owner=owner, execution=execution, verify=verify
    )
    if retried and (begun := run.begun()):
        return run.execute(begun, plan_path=job.plan_path)
    ours = plans_of_ours(workspace, owner=owner, now=now, dry_run=dry_run)
    if not dry_run:
        forget_asked(workspace)
    planned = plan_clustering(
        workspace,
        now=now,
        settings=settings,
        partitions=partitions,
        strategy=strategy,
        strategy_options=strategy_options,
    )
    if dry_run or not planned.plan.chosen:
        return run.without_scheduling(planned, ours=ours, dry_run=dry_run)
    job.on_planned(planned.path)
    if ours or run.is_native(planned):
        return run.in_two_steps(planned, ours=ours)
    return run.in_one_job(planned)


@dataclass(frozen=True, kw_only=True)
class _Clustering:
    """One synchronous clustering."""

    workspace: Workspace
    now: datetime
    job: JobControl
    scheduler: Scheduler
    owner: PlanOwner | None
    execution: ExecutionSettings
    verify: VerifySettings

    def begun(self) -> tuple[str, ...]:
        """The instants, pending or completed, that an earlier, ended try executed or made of its plan."""
        made = self._made_of(self.job.plan_path) if self.job.plan_path else ()
        return tuple(sorted({*executed_by(self.workspace, self.job.previous), *made}))

    def _made_of(self, plan_path: str) -> tuple[str, ...]:
        """The instants that are what Hudi makes of a plan of ours.

        By what they hold, and by their absence when that plan was made: what died in the middle left no note.
        """
        try:
            ours = ClusteringPlan.from_json(self.workspace.documents.read(plan_path), name=plan_path)
        except TerminalError as error:  # what it made is found among the pending plans, if it was noted
            self.workspace.log(f"Warning: the plan of the try before cannot be read, so this one plans anew: {error}")
            return ()
        timeline = self.workspace.table.timeline()
        found = []
        for instant in timeline:
            if instant.action not in (Action.CLUSTERING, Action.REPLACE_COMMIT):
                continue
            if instant.requested_time <= ours.basis.base_instant:
                continue
            plan = self.workspace.table.instants.clustering_plan(instant)
            if plan is None or not comes_from(plan, ours):
                continue
            found.append(instant.requested_time)
            if not instant.is_completed:
                record_ours(self.workspace, plan, plan_path=plan_path, owner=self.owner)
                record_execution(self.workspace, plan, job=None)
        return tuple(found)

    def execute(
        self, instants: Sequence[str], *, plan_path: str | None, before: StepReport | None = None
    ) -> StepReported:
        """Execute instants and report that as one clustering; ``before`` is what scheduling reported."""
        executed = execute_clustering(
            self.workspace, now=self.now, job=self.job, instants=instants, settings=self.execution, verify=self.verify
        ).report
        scheduled = () if before is None else (before,)
        report = replace(
            executed,
            step=Step.CLUSTER,
            plan_path=plan_path,
            engine_seconds=executed.engine_seconds + sum(one.engine_seconds for one in scheduled),
            warnings=(*(warning for one in scheduled for warning in one.warnings), *executed.warnings),
            scheduler=before.scheduler if before else None,
            scheduler_reason=before.scheduler_reason if before else None,
        )
        return write_step_report(self.workspace, report)

    def without_scheduling(
        self, planned: PlannedClustering, *, ours: Sequence[PendingPlan], dry_run: bool
    ) -> StepReported:
        """Nothing new is scheduled: a dry run, or nothing is chosen; what is pending of ours is executed."""
        if ours and not dry_run:
            return self.execute([one.instant.requested_time for one in ours], plan_path=planned.path)
        if dry_run:
            rehearsed = schedule_planned(
                self.workspace,
                planned,
                ours=tuple(ours),
                job=self.job,
                dry_run=True,
                scheduler=self.scheduler,
                owner=self.owner,
                now=self.now,
            ).report
            return write_step_report(self.workspace, replace(rehearsed, step=Step.CLUSTER))
        return self._nothing(planned, message=f"Nothing to cluster: {describe(planned.plan)}")

    def is_native(self, planned: PlannedClustering) -> bool:
        """Whether the plan is written by us, so that the execution is the only job."""
        if self.scheduler is not Scheduler.AUTO:
            return self.scheduler is Scheduler.NATIVE
        native = NativeScheduling(
            workspace=self.workspace,
            plan=planned.plan,
            plan_path=planned.path,
            now=self.now,
            started=time.monotonic(),
            owner=self.owner,
        )
        return native.objection(self.workspace.table.timeline()) is None

    def in_two_steps(self, planned: PlannedClustering, *, ours: Sequence[PendingPlan]) -> StepReported:
        """Schedule, and then execute all that is pending of ours."""
        scheduled = schedule_planned(
            self.workspace,
            planned,
            ours=tuple(ours),
            job=self.job,
            dry_run=False,
            scheduler=self.scheduler,
            owner=self.owner,
            now=self.now,
        ).report
        if not scheduled.instants:
            return write_step_report(self.workspace, replace(scheduled, step=Step.CLUSTER))
        return self.execute(scheduled.instants, plan_path=planned.path, before=scheduled)

    def in_one_job(self, planned: PlannedClustering) -> StepReported:
        """Let one application ask Hudi for the plan and execute what came of it."""
        table = self.workspace.table
        timeline = table.timeline()
        size = sum(entry.input_bytes for entry in planned.plan.chosen)
        files = sum(len(entry.file_ids) for entry in planned.plan.chosen)
        prediction = predicted(self.workspace, input_bytes=size)
        step_job = StepJob(
            kind=JobKind.CLUSTER,
            arguments=self._arguments(planned.plan),
            completed=lambda fresh: self._is_done(planned.plan, fresh),
            may_do_nothing=True,
            totals=JobTotals(files=files, bytes=size),
        )
        record_asked(self.workspace, planned.plan, plan_path=planned.path)
        outcome, warnings = self._run(step_job, planned=planned, timeline=timeline)
        fresh = table.timeline()
        done = self._made(planned.plan, fresh)
        for plan in done:
            record_ours(self.workspace, plan, plan_path=planned.path, owner=self.owner)
        forget_asked(self.workspace)
        self._refuse_foreign(planned.plan, fresh)
        if not done:
            return self._nothing(planned, message="Hudi found nothing to cluster in the chosen partitions")
        names = tuple(plan.instant.requested_time for plan in done)
        rewrite = Rewrite(
            step=Step.CLUSTER,
            outcome=Outcome.DONE,
            message=f"Scheduled and executed {', '.join(names)}",
            base_instant=planned.plan.basis.base_instant,
            instants=names,
            verify=self.verify,
            bytes_before=size,
            metadata_before=table.config.properties.get(METADATA_PARTITIONS_KEY, ""),
            engine_seconds=outcome.seconds,
            prediction=prediction,
            plan_path=planned.path,
            warnings=(*planned.plan.warnings, *warnings),
        )
        return report_rewrite(self.workspace, rewrite)

    def _run(
        self, step_job: StepJob, *, planned: PlannedClustering, timeline: Timeline
    ) -> tuple[JobOutcome, tuple[str, ...]]:
        """Run the job; when it fails after it scheduled, the plan that is left is noted as ours for the next try."""

        def on_submitted(handle: JobHandle) -> None:
            self.job.on_submitted(handle)
            record_asked(self.workspace, planned.plan, plan_path=planned.path, job=handle)

        job = replace(self.job, on_submitted=on_submitted)
        try:
            return run_step_job(self.workspace, step_job, timeline=timeline, job=job)
        except EngineError:
            self._note_what_is_left(planned)
            raise

    def _note_what_is_left(self, planned: PlannedClustering) -> None:
        try:
            for plan in self._made(planned.plan, self.workspace.table.timeline()):
                record_ours(self.workspace, plan, plan_path=planned.path, owner=self.owner)
                record_execution(self.workspace, plan, job=None)
        except HudiMaintError as error:  # what failed before it has to be heard
            self.workspace.log(f"Warning: what the job left on the timeline was not noted: {error}")

    def _made(self, ours: ClusteringPlan, timeline: Timeline) -> tuple[PendingPlan, ...]:
        """The plans, pending or completed, that Hudi made when it was asked for ours."""
        return tuple(plan for plan in self._new_plans(ours, timeline) if stays_within(plan, ours))

    def _new_plans(self, ours: ClusteringPlan, timeline: Timeline) -> tuple[PendingPlan, ...]:
        """The clusterings that were not there when ours was planned and hold a file group of it."""
        later = (
            one
            for one in timeline
            if one.action in (Action.CLUSTERING, Action.REPLACE_COMMIT) and one.requested_time > ours.basis.base_instant
        )
        plans = (self.workspace.table.instants.clustering_plan(one) for one in later)
        return tuple(plan for plan in plans if plan is not None and overlaps(plan, ours))

    def _is_done(self, ours: ClusteringPlan, timeline: Timeline) -> bool:
        made = self._made(ours, timeline)
        return bool(made) and all(plan.instant.is_completed for plan in made)

    def _refuse_foreign(self, ours: ClusteringPlan, timeline: Timeline) -> None:
        foreign = next((plan for plan in self._new_plans(ours, timeline) if not stays_within(plan, ours)), None)
        if foreign is not None:
            msg = (
                f"Clustering plan {foreign.instant.requested_time} appeared meanwhile. It holds chosen partitions and "
                "others, so it is not ours: execute or roll it back, then cluster again"
            )
            raise PendingActionError(msg)

    def _arguments(self, plan: ClusteringPlan) -> JsonMapping:
        settings = plan.settings
        chosen = [entry.partition_path for entry in plan.chosen]
        rewrite = PlannedRewrite(
            sort_columns=settings.sort_columns,
            layout=settings.layout,
            execution_class=settings.execution_strategy.class_name,
            target_file_bytes=settings.target_file_bytes,
        )
        return {
            # To Hudi no partition means all: right for the one partition of a table without partitions, and only there.
            "partitions": [] if chosen == [""] else chosen,
            "sort_columns": list(settings.sort_columns),
            "layout": str(settings.layout),
            "options": dict(clustering_options(settings, group_count=plan.group_limit)),
            "execute_options": {**self.execution.common_options(), **rewrite.options()},
        }

    def _nothing(self, planned: PlannedClustering, *, message: str) -> StepReported:
        report = StepReport(
            step=Step.CLUSTER,
            outcome=Outcome.NOTHING_TO_DO,
            message=message,
            base_path=self.workspace.table.base_path,
            base_instant=planned.plan.basis.base_instant,
            plan_path=planned.path,
            warnings=planned.plan.warnings,
        )
        return write_step_report(self.workspace, report)
