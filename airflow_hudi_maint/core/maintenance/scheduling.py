"""Put a clustering plan on the timeline: by Hudi, or without a JVM where that is safe."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import EngineError, PendingActionError
from airflow_hudi_maint.core.maintenance.clustering_planning import PlannedClustering, describe, plan_clustering
from airflow_hudi_maint.core.maintenance.native_leftovers import settle_leftovers
from airflow_hudi_maint.core.maintenance.native_scheduling import NativeScheduling
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
from airflow_hudi_maint.core.model.scheduler import PlanOwner, Scheduler
from airflow_hudi_maint.core.model.units import counted
from airflow_hudi_maint.core.planning.clustering import clustering_options
from airflow_hudi_maint.core.planning.clustering_strategy_names import DEFAULT_STRATEGY

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.document import JsonMapping
    from airflow_hudi_maint.core.model.timeline import Timeline

_NAMES_SHOWN = 5


def schedule_clustering(  # noqa: PLR0913 each is a setting of its own
    workspace: Workspace,
    *,
    now: datetime,
    settings: ClusteringSettings,
    job: JobControl,
    partitions: Collection[str] | None = None,
    dry_run: bool = False,
    scheduler: Scheduler = Scheduler.AUTO,
    owner: PlanOwner | None = None,
    strategy: str = DEFAULT_STRATEGY,
    strategy_options: Mapping[str, object] | None = None,
) -> StepReported:
    """Put a clustering plan on the timeline; the report's ``instants`` are the plans to execute.

    ``scheduler`` says who writes it: Hudi, asked with the partitions by name; this package, exactly as it was shown and
    without a JVM (``native``); or that where it is safe, and else Hudi (``auto``). The report has the way that was
    taken, and why. ``owner`` is noted with the plan.

    A second run returns the pending plan that the first one made and schedules only what no plan holds. Until it is
    executed, a pending plan makes upserts to its file groups fail: execute it next.

    Raises PendingActionError (a live writer, or one that came in between), InvalidSettingError (``native`` where the
    writers' lock cannot be taken), BundleError, EngineError or what :func:`plan_clustering` raises.
    """
    settle_previous(workspace, job)
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
    return schedule_planned(
        workspace, planned, ours=ours, job=job, dry_run=dry_run, scheduler=scheduler, owner=owner, now=now
    )


def plans_of_ours(
    workspace: Workspace, *, owner: PlanOwner | None = None, now: datetime, dry_run: bool = False
) -> tuple[PendingPlan, ...]:
    """The pending plans of ours, once those that a dead try left half-done are seen to (not in a dry run)."""
    timeline = workspace.table.timeline()
    at_work: frozenset[str] = frozenset()
    if not dry_run:
        at_work, withdrew = settle_leftovers(workspace, timeline, owner=owner, now=now)
        timeline = workspace.table.timeline() if withdrew else timeline
    return pending_of_ours(workspace, timeline, leave=at_work)


def schedule_planned(
    workspace: Workspace,
    planned: PlannedClustering,
    *,
    ours: tuple[PendingPlan, ...],
    job: JobControl,
    dry_run: bool,
    scheduler: Scheduler = Scheduler.AUTO,
    owner: PlanOwner | None = None,
    now: datetime | None = None,
) -> StepReported:
    """Put a plan of ours on the timeline, unless it is a dry run, chooses nothing or is there already as ``ours``.

    ``now`` None stands for the moment at which the plan was made.
    """
    native = NativeScheduling(
        workspace=workspace,
        plan=planned.plan,
        plan_path=planned.path,
        now=now or datetime.fromisoformat(planned.plan.basis.created_at),
        started=time.monotonic(),
        owner=owner,
    )
    run = _Scheduling(
        workspace=workspace, plan=planned.plan, path=planned.path, ours=ours, scheduler=scheduler, native=native
    )
    if dry_run:
        return run.rehearse()
    if planned.plan.chosen:
        return run.apply(job)
    if ours:
        names = ", ".join(plan.instant.requested_time for plan in ours)
        return run.report(Outcome.ALREADY_DONE, f"Already scheduled and pending: {names}")
    return run.report(Outcome.NOTHING_TO_DO, f"Nothing to cluster: {describe(planned.plan)}")


@dataclass(frozen=True, kw_only=True)
class _Way:
    """How a plan reaches the timeline, and why so."""

    scheduler: Scheduler
    reason: str


@dataclass(frozen=True, kw_only=True)
class _Scheduling:
    """One application of a clustering plan: from ours to one on the timeline."""

    workspace: Workspace
    plan: ClusteringPlan
    path: str
    ours: tuple[PendingPlan, ...]
    scheduler: Scheduler
    native: NativeScheduling

    def rehearse(self) -> StepReported:
        """Report what would be done, how, and what would be in the way."""
        message = f"Dry run, nothing was scheduled: {describe(self.plan)}"
        if not self.plan.chosen:
            return self.report(Outcome.DRY_RUN, message)
        timeline = self.workspace.table.timeline()
        ways: list[_Way] = []
        warnings = objections(lambda: ways.append(self._way(timeline)))
        warnings += objections(lambda: check_writable(self.workspace, timeline=timeline))
        return self.report(Outcome.DRY_RUN, message, warnings=warnings, way=ways[0] if ways else None)

    def apply(self, job: JobControl) -> StepReported:
        """Put the plan on the timeline."""
        timeline = self.workspace.table.timeline()
        way = self._way(timeline)
        self.workspace.log(f"Scheduling by {way.scheduler}: {way.reason}")
        return self._apply_natively(way) if way.scheduler is Scheduler.NATIVE else self._ask_hudi(job, way=way)

    def _way(self, timeline: Timeline) -> _Way:
        """Choose; raises what is against ``native`` where that was asked for."""
        if self.scheduler is Scheduler.HUDI:
            return _Way(scheduler=Scheduler.HUDI, reason="it was asked for")
        objection = self.native.objection(timeline)
        if objection is None:
            return _Way(scheduler=Scheduler.NATIVE, reason=self.native.reason())
        if self.scheduler is Scheduler.NATIVE:
            msg = f"scheduler={self.scheduler} cannot put a plan on {self.workspace.table.base_path}: {objection}"
            raise type(objection)(msg) from objection
        return _Way(scheduler=Scheduler.HUDI, reason=f"native is not possible: {objection}")

    def _apply_natively(self, way: _Way) -> StepReported:
        made = self.native.schedule()
        record_ours(self.workspace, made, plan_path=self.path, owner=self.native.owner)
        return self._done((made,), warnings=(), engine_seconds=0.0, way=way)

    def _ask_hudi(self, job: JobControl, *, way: _Way) -> StepReported:
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
            record_ours(self.workspace, one, plan_path=self.path, owner=self.native.owner)
        forget_asked(self.workspace)
        foreign = next((plan for plan in new if plan not in made and overlaps(plan, self.plan)), None)
        if foreign is not None:
            msg = (
                f"Clustering plan {foreign.instant.requested_time} appeared meanwhile. It holds chosen partitions and "
                "others, so it is not ours: execute or roll it back, then schedule again"
            )
            raise PendingActionError(msg)
        return self._done(made, warnings=warnings, engine_seconds=outcome.seconds, way=way)

    def _done(
        self, made: tuple[PendingPlan, ...], *, warnings: tuple[str, ...], engine_seconds: float, way: _Way
    ) -> StepReported:
        covered = frozenset(path for plan in made for path in plan.partitions)
        missing = sorted(entry.partition_path for entry in self.plan.chosen if entry.partition_path not in covered)
        if missing:
            shown = ", ".join(missing[:_NAMES_SHOWN]) + (" …" if len(missing) > _NAMES_SHOWN else "")
            warnings += (f"Hudi left out {len(missing)} of {len(self.plan.chosen)} chosen partitions: {shown}",)
        if not made and not self.ours:
            return self.report(
                Outcome.NOTHING_TO_DO,
                "Hudi found nothing to cluster in the chosen partitions",
                warnings=warnings,
                way=way,
            )
        groups = sum(len(plan.groups) for plan in made)
        names = ", ".join(plan.instant.requested_time for plan in made) or "no new plan"
        files = sum(len(plan.inputs) for plan in made)
        what = f"{counted(len(covered), 'partition')}, {counted(files, 'file')} in {counted(groups, 'group')}"
        message = f"Scheduled {names} by {way.scheduler}: {what}"
        return self.report(Outcome.DONE, message, made=made, warnings=warnings, engine_seconds=engine_seconds, way=way)

    def _arguments(self) -> JsonMapping:
        settings = self.plan.settings
        chosen = [entry.partition_path for entry in self.plan.chosen]
        return {
            # To Hudi no partition means all: right for the one partition of a table without partitions, and only there.
            "partitions": [] if chosen == [""] else chosen,
            "sort_columns": list(settings.sort_columns),
            "layout": str(settings.layout),
            "options": dict(clustering_options(settings, group_count=self.plan.group_limit)),
        }

    def report(
        self,
        outcome: Outcome,
        message: str,
        *,
        made: tuple[PendingPlan, ...] = (),
        warnings: tuple[str, ...] = (),
        engine_seconds: float = 0.0,
        way: _Way | None = None,
    ) -> StepReported:
        """Write the report of this step."""
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
                scheduler=None if way is None else str(way.scheduler),
                scheduler_reason=None if way is None else way.reason,
            ),
        )
