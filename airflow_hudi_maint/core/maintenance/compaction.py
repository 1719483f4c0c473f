"""Put a compaction plan on the timeline of a merge-on-read table."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.engines.bundle import bundle_version
from airflow_hudi_maint.core.errors import BundleError, EngineError
from airflow_hudi_maint.core.maintenance.compaction_planning import (
    PlannedCompaction,
    comes_from,
    describe,
    forget_asked,
    pending_compactions,
    pending_compactions_of_ours,
    plan_compaction,
    record_asked,
)
from airflow_hudi_maint.core.maintenance.ownership import record_ours
from airflow_hudi_maint.core.maintenance.steps import (
    StepJob,
    StepReported,
    check_writable,
    objections,
    run_step_job,
    settle_previous,
    write_step_report,
)
from airflow_hudi_maint.core.model.commit import PendingPlan
from airflow_hudi_maint.core.model.compaction_plan import CompactionPlan, CompactionSettings
from airflow_hudi_maint.core.model.job import JobKind
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import counted
from airflow_hudi_maint.core.planning.compaction import compaction_options, takes_partitions
from airflow_hudi_maint.core.planning.wording import some_of

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.scheduler import PlanOwner

NO_LOG_FILES = "a copy-on-write table has no log files to compact"


def schedule_compaction(
    workspace: Workspace,
    *,
    now: datetime,
    settings: CompactionSettings,
    job: JobControl,
    partitions: Collection[str] | None = None,
    owner: PlanOwner | None = None,
    dry_run: bool = False,
) -> StepReported:
    """Have Hudi put a compaction plan on the timeline; the report's ``instants`` are the plans of ours to execute.

    A second run returns the pending plan that the first one made and schedules only what no plan holds. On a
    copy-on-write table there is nothing to do. A pending compaction stops no writer. ``owner`` is the task that asks,
    noted with the plan.

    Raises PendingActionError (a live writer), BundleError, EngineError or what :func:`plan_compaction` raises.
    """
    settle_previous(workspace, job)
    if not workspace.table.config.is_merge_on_read:
        return _nothing(workspace, message=f"Nothing to compact: {NO_LOG_FILES}")
    ours = pending_compactions_of_ours(workspace, workspace.table.timeline())
    forget_asked(workspace)
    planned = plan_compaction(workspace, now=now, settings=settings, partitions=partitions)
    run = _Scheduling(workspace=workspace, planned=planned, ours=ours, owner=owner)
    if dry_run:
        return run.rehearse()
    if planned.plan.chosen:
        return run.apply(job)
    if ours:
        names = ", ".join(plan.instant.requested_time for plan in ours)
        return run.report(Outcome.ALREADY_DONE, f"Already scheduled and pending: {names}")
    return run.report(Outcome.NOTHING_TO_DO, f"Nothing to compact: {describe(planned.plan)}")


def _nothing(workspace: Workspace, *, message: str) -> StepReported:
    return write_step_report(
        workspace,
        StepReport(
            step=Step.SCHEDULE_COMPACTION,
            outcome=Outcome.NOTHING_TO_DO,
            message=message,
            base_path=workspace.table.base_path,
            base_instant=workspace.table.timeline().last_completed_time,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class _Scheduling:
    """One application of a compaction plan: from ours to Hudi's."""

    workspace: Workspace
    planned: PlannedCompaction
    ours: tuple[PendingPlan, ...]
    owner: PlanOwner | None

    @property
    def plan(self) -> CompactionPlan:
        return self.planned.plan

    def rehearse(self) -> StepReported:
        timeline = self.workspace.table.timeline()
        checks = (lambda: check_writable(self.workspace, timeline=timeline), self._check_expressible)
        warnings = objections(*checks) if self.plan.chosen else ()
        return self.report(Outcome.DRY_RUN, f"Dry run, nothing was scheduled: {describe(self.plan)}", warnings=warnings)

    def apply(self, job: JobControl) -> StepReported:
        self._check_expressible()
        table = self.workspace.table
        timeline = table.timeline()
        known = {plan.instant.requested_time for plan in table.pending_plans(timeline)}
        step_job = StepJob(
            kind=JobKind.SCHEDULE_COMPACTION,
            arguments={"options": dict(self._options())},
            # Hudi may find nothing to do, so a missing plan alone is no failure; _made() tells the two apart.
            completed=lambda _: True,
        )
        record_asked(self.workspace, plan_path=self.planned.path)
        outcome, warnings = run_step_job(self.workspace, step_job, timeline=timeline, job=job)
        made = self._made(known=known)
        if not made and not (outcome.report and outcome.report.ok):
            msg = (
                f"Scheduling failed, and no compaction plan is on the timeline of {table.base_path}. "
                f"Last lines of the job's log:\n{outcome.log_tail}"
            )
            raise EngineError(msg)
        for one in made:
            record_ours(self.workspace, one, plan_path=self.planned.path, owner=self.owner)
        forget_asked(self.workspace)
        return self._done(made, warnings=warnings, engine_seconds=outcome.seconds)

    def _made(self, *, known: Collection[str]) -> tuple[PendingPlan, ...]:
        pending = pending_compactions(self.workspace, self.workspace.table.timeline())
        return tuple(
            plan for plan in pending if plan.instant.requested_time not in known and comes_from(plan, self.plan)
        )

    def _done(self, made: tuple[PendingPlan, ...], *, warnings: tuple[str, ...], engine_seconds: float) -> StepReported:
        if not made and not self.ours:
            return self.report(
                Outcome.NOTHING_TO_DO, "Hudi found nothing to compact in the chosen partitions", warnings=warnings
            )
        inputs = [one for plan in made for one in plan.inputs]
        names = ", ".join(plan.instant.requested_time for plan in made) or "no new plan"
        logs = sum(len(one.log_file_names) for one in inputs)
        message = f"Scheduled {names}: {counted(logs, 'log file')} of {counted(len(inputs), 'file group')}"
        warnings += _difference(made, self.plan)
        return self.report(Outcome.DONE, message, made=made, warnings=warnings, engine_seconds=engine_seconds)

    def _check_expressible(self) -> None:
        """Raise BundleError when this release of Hudi would plan something else, for it takes no partitions."""
        release = bundle_version(self.workspace.bundle)
        if takes_partitions(release):
            return
        left = [entry for entry in self._considered_by_hudi() if entry not in self.plan.file_groups]
        settings = self.plan.settings
        if left or (settings.min_log_files > 1 and settings.min_log_bytes > 0):
            msg = (
                f"Hudi {'.'.join(map(str, release))} cannot be told which partitions to compact, nor two limits at "
                f"once: it would compact {counted(len(left), 'file group')} more than the plan has. Use a bundle of "
                "Hudi 1.1 or later, or leave out partitions, min_log_ratio, max_input_bytes and one of min_log_files "
                "and min_log_bytes"
            )
            raise BundleError(msg)

    def _considered_by_hudi(self) -> set[tuple[str, str]]:
        """The file groups that reach the limits of a single file group, wherever they lie, and that no plan holds."""
        table, settings = self.workspace.table, self.plan.settings
        view = table.view(table.timeline(), listing="directory")
        return {
            (path, one.file_id)
            for path in view.partition_paths
            for one in view.merged_slices(path)
            if one.log_files and not one.pending_instant
            if len(one.log_files) >= settings.min_log_files and one.log_bytes >= settings.min_log_bytes
        }

    def _options(self) -> dict[str, str]:
        return compaction_options(
            self.plan,
            release=bundle_version(self.workspace.bundle),
            is_partitioned=any(entry.partition_path for entry in self.plan.chosen),
        )

    def report(
        self,
        outcome: Outcome,
        message: str,
        *,
        made: tuple[PendingPlan, ...] = (),
        warnings: tuple[str, ...] = (),
        engine_seconds: float = 0.0,
    ) -> StepReported:
        files = sum(
            entry.log_file_count + sum(bool(one.base_bytes) for one in entry.inputs) for entry in self.plan.chosen
        )
        size = sum(entry.input_bytes for entry in self.plan.chosen)
        return write_step_report(
            self.workspace,
            StepReport(
                step=Step.SCHEDULE_COMPACTION,
                outcome=outcome,
                message=message,
                base_path=self.plan.basis.base_path,
                base_instant=self.plan.basis.base_instant,
                plan_path=self.planned.path,
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


def _difference(made: tuple[PendingPlan, ...], ours: CompactionPlan) -> tuple[str, ...]:
    """How Hudi's plan differs from ours, by file groups; nothing when it does not."""
    held = {(one.partition_path, one.file_id) for plan in made for one in plan.inputs}
    left, more = ours.file_groups - held, held - ours.file_groups
    texts = (
        (left, f"Hudi left out {counted(len(left), 'file group')} of {len(ours.file_groups)} that were planned"),
        (more, f"Hudi's plan has {counted(len(more), 'file group')} more than ours, which got log files meanwhile"),
    )
    return tuple(f"{text}: {some_of(file_id for _, file_id in groups)}" for groups, text in texts if groups)
