"""Put a clustering plan on the timeline."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import EngineError, PendingActionError
from airflow_hudi_maint.core.maintenance.clustering_planning import PlannedClustering, describe, plan_clustering
from airflow_hudi_maint.core.maintenance.ownership import (
    forget_asked,
    overlaps,
    pending_of_ours,
    record_asked,
    record_ours,
    stays_within,
)
from airflow_hudi_maint.core.maintenance.steps import (
    StepJob,
    StepReported,
    check_writable,
    objections,
    run_step_job,
    settle_previous,
    write_step_report,
)
from airflow_hudi_maint.core.model.commit import PendingPlan, PlanKind
from airflow_hudi_maint.core.model.job import JobKind
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.planning.clustering import clustering_options

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.document import JsonMapping

_NAMES_SHOWN = 5


def schedule_clustering(
    workspace: Workspace,
    *,
    now: datetime,
    settings: ClusteringSettings,
    job: JobControl,
    partitions: Collection[str] | None = None,
    dry_run: bool = False,
) -> StepReported:
    """Have Hudi put a clustering plan on the timeline; the report's ``instants`` are the plans to execute.

    A second run returns the pending plan that the first one made and schedules only what no plan holds. Until it is
    executed, a pending plan makes upserts to its file groups fail: execute it next.

    Raises PendingActionError (a live writer), BundleError, EngineError or what :func:`plan_clustering` raises.
    """
    settle_previous(workspace, job)
    ours = pending_of_ours(workspace, workspace.table.timeline())
    forget_asked(workspace)
    planned = plan_clustering(workspace, now=now, settings=settings, partitions=partitions)
    return schedule_planned(workspace, planned, ours=ours, job=job, dry_run=dry_run)


def schedule_planned(
    workspace: Workspace, planned: PlannedClustering, *, ours: tuple[PendingPlan, ...], job: JobControl, dry_run: bool
) -> StepReported:
    """Put a plan of ours on the timeline, unless it is a dry run, chooses nothing or is there already as ``ours``."""
    run = _Scheduling(workspace=workspace, plan=planned.plan, path=planned.path, ours=ours)
    if dry_run:
        timeline = workspace.table.timeline()
        warnings = objections(lambda: check_writable(workspace, timeline=timeline)) if planned.plan.chosen else ()
        message = f"Dry run, nothing was scheduled: {describe(planned.plan)}"
        return run.report(Outcome.DRY_RUN, message, warnings=warnings)
    if planned.plan.chosen:
        return run.apply(job)
    if ours:
        names = ", ".join(plan.instant.requested_time for plan in ours)
        return run.report(Outcome.ALREADY_DONE, f"Already scheduled and pending: {names}")
    return run.report(Outcome.NOTHING_TO_DO, f"Nothing to cluster: {describe(planned.plan)}")


@dataclass(frozen=True, kw_only=True)
class _Scheduling:
    """One application of a clustering plan: from ours to Hudi's."""

    workspace: Workspace
    plan: ClusteringPlan
    path: str
    ours: tuple[PendingPlan, ...]

    def apply(self, job: JobControl) -> StepReported:
        table = self.workspace.table
        timeline = table.timeline()
        known = {plan.instant.requested_time for plan in table.pending_plans(timeline)}
        step_job = StepJob(
            kind=JobKind.SCHEDULE_CLUSTERING,
            arguments=self._arguments(),
            # Hudi may find nothing to do, so a missing plan alone is no failure; apply() tells the two apart below.
            completed=lambda _: True,
        )
        record_asked(self.workspace, self.plan, plan_path=self.path)
        outcome, warnings = run_step_job(self.workspace, step_job, timeline=timeline, job=job)
        new = [
            plan
            for plan in table.pending_plans(table.timeline())
            if plan.kind is PlanKind.CLUSTERING and plan.instant.requested_time not in known
        ]
        # Files that were committed while Spark started may be in Hudi's plan, too; other partitions may not.
        made = tuple(plan for plan in new if overlaps(plan, self.plan) and stays_within(plan, self.plan))
        if not made and not (outcome.report and outcome.report.ok):
            msg = (
                f"Scheduling failed, and no clustering plan is on the timeline of {table.base_path}. "
                f"Last lines of the job's log:\n{outcome.log_tail}"
            )
            raise EngineError(msg)
        for one in made:
            record_ours(self.workspace, one, plan_path=self.path)
        forget_asked(self.workspace)
        foreign = next((plan for plan in new if plan not in made and overlaps(plan, self.plan)), None)
        if foreign is not None:
            msg = (
                f"Clustering plan {foreign.instant.requested_time} appeared meanwhile. It holds chosen partitions and "
                "others, so it is not ours: execute or roll it back, then schedule again"
            )
            raise PendingActionError(msg)
        return self._done(made, warnings=warnings, engine_seconds=outcome.seconds)

    def _done(self, made: tuple[PendingPlan, ...], *, warnings: tuple[str, ...], engine_seconds: float) -> StepReported:
        covered = frozenset(path for plan in made for path in plan.partitions)
        missing = sorted(entry.partition_path for entry in self.plan.chosen if entry.partition_path not in covered)
        if missing:
            shown = ", ".join(missing[:_NAMES_SHOWN]) + (" …" if len(missing) > _NAMES_SHOWN else "")
            warnings += (f"Hudi left out {len(missing)} of {len(self.plan.chosen)} chosen partitions: {shown}",)
        if not made and not self.ours:
            return self.report(
                Outcome.NOTHING_TO_DO, "Hudi found nothing to cluster in the chosen partitions", warnings=warnings
            )
        groups = sum(len(plan.groups) for plan in made)
        names = ", ".join(plan.instant.requested_time for plan in made) or "no new plan"
        files = sum(len(plan.inputs) for plan in made)
        message = f"Scheduled {names}: {len(covered)} partitions, {files} files in {groups} groups"
        return self.report(Outcome.DONE, message, made=made, warnings=warnings, engine_seconds=engine_seconds)

    def _arguments(self) -> JsonMapping:
        settings = self.plan.settings
        chosen = [entry.partition_path for entry in self.plan.chosen]
        return {
            # To Hudi no partition means all: right for the one partition of a table without partitions, and only there.
            "partitions": [] if chosen == [""] else chosen,
            "sort_columns": list(settings.sort_columns),
            "layout": str(settings.layout),
            "options": dict(clustering_options(settings, group_count=self.plan.group_count)),
        }

    def report(
        self,
        outcome: Outcome,
        message: str,
        *,
        made: tuple[PendingPlan, ...] = (),
        warnings: tuple[str, ...] = (),
        engine_seconds: float = 0.0,
    ) -> StepReported:
        files = sum(len(entry.file_ids) for entry in self.plan.chosen)
        size = sum(entry.input_bytes for entry in self.plan.chosen)
        return write_step_report(
            self.workspace,
            StepReport(
                step=Step.SCHEDULE_CLUSTERING,
                outcome=outcome,
                message=message,
                base_path=self.plan.basis.base_path,
                base_instant=self.plan.basis.base_instant,
                plan_path=self.path,
                instants=tuple(sorted(one.instant.requested_time for one in (*self.ours, *made))),
                partitions=tuple(entry.partition_path for entry in self.plan.chosen),
                files_before=files,
                files_after=files,
                bytes_before=size,
                bytes_after=size,
                engine_seconds=engine_seconds,
                warnings=(*self.plan.warnings, *warnings),
            ),
        )
