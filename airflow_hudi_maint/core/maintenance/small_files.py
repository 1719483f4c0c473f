"""Compact small files: on merge-on-read compact log files first, then rewrite where it is worthwhile."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.maintenance.clustering_checks import known_version
from airflow_hudi_maint.core.maintenance.clustering_planning import PlannedClustering, plan_small_files
from airflow_hudi_maint.core.maintenance.compaction import schedule_compaction
from airflow_hudi_maint.core.maintenance.compaction_execution import execute_compaction
from airflow_hudi_maint.core.maintenance.compaction_planning import pending_compactions_of_ours
from airflow_hudi_maint.core.maintenance.execution import execute_clustering
from airflow_hudi_maint.core.maintenance.ownership import forget_asked
from airflow_hudi_maint.core.maintenance.scheduling import plans_of_ours, schedule_planned
from airflow_hudi_maint.core.maintenance.steps import StepReported, settle_previous, write_step_report
from airflow_hudi_maint.core.model.compaction_plan import CompactionSettings
from airflow_hudi_maint.core.model.plan import ClusteringSettings, ExecutionStrategy
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.scheduler import Scheduler
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.model.verification import VerifySettings
from airflow_hudi_maint.core.planning.compaction import takes_partitions
from airflow_hudi_maint.core.planning.execution_settings import ExecutionSettings
from airflow_hudi_maint.core.planning.small_file_copying import (
    DEFAULT_MIN_ROW_GROUP_BYTES,
    CopyChoice,
    cannot_copy,
    choose_copying,
)
from airflow_hudi_maint.core.planning.small_files import Worthwhile
from airflow_hudi_maint.core.storage.copied_files import copied_files

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.plan import ClusteringPlan
    from airflow_hudi_maint.core.model.scheduler import PlanOwner

_DEFAULT = Worthwhile()
_VERIFIED = VerifySettings()
_AS_PLANNED = ExecutionSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallFileSettings:
    """How small files are rewritten, beside their sizes.

    ``execution`` None chooses: files are copied without decoding where Hudi can and their row groups have at least
    ``min_row_group_bytes`` on average, and decoded and encoded again elsewhere. ``compacts_first`` False leaves file
    groups with log files alone. ``scheduler`` is as for clustering, ``verify`` how the rewrite is
    verified, and ``executing`` what its execution is given beside.
    """

    worthwhile: Worthwhile = _DEFAULT
    execution: ExecutionStrategy | None = None
    min_row_group_bytes: int = DEFAULT_MIN_ROW_GROUP_BYTES
    compacts_first: bool = True
    scheduler: Scheduler = Scheduler.AUTO
    verify: VerifySettings = _VERIFIED
    executing: ExecutionSettings = _AS_PLANNED


_BY_DEFAULT = SmallFileSettings()


def compact_small_files(
    workspace: Workspace,
    *,
    now: datetime,
    settings: ClusteringSettings,
    job: JobControl,
    partitions: Collection[str] | None = None,
    how: SmallFileSettings = _BY_DEFAULT,
    dry_run: bool = False,
    owner: PlanOwner | None = None,
) -> StepReported:
    """Rewrite small files into larger ones where that is worthwhile: compaction, then clustering without a sort.

    On merge-on-read the log files of the file groups that are rewritten are compacted first. What is rewritten is
    verified, as every rewrite is, and the report says how many files were foretold and how many came.

    A second run finds nothing and starts no Spark; a retry goes on with the plans of the try before. Raises as
    :func:`schedule_clustering`, :func:`schedule_compaction` and :func:`execute_clustering` do.
    """
    settle_previous(workspace, job)
    run = _Run(workspace=workspace, now=now, settings=settings, job=job, partitions=partitions, how=how)
    ours = plans_of_ours(workspace, owner=owner, now=now, dry_run=dry_run)
    if not dry_run:
        forget_asked(workspace)
    before = () if dry_run else run.compact_log_files()
    planned, choice = run.plan(after_compaction=not dry_run)
    scheduled = schedule_planned(
        workspace, planned, ours=ours, job=job, dry_run=dry_run, scheduler=how.scheduler, owner=owner, now=now
    )
    steps = (*before, scheduled.report)
    if scheduled.report.outcome in (Outcome.DRY_RUN, Outcome.NOTHING_TO_DO):
        return _as_compaction(workspace, steps, choice=choice)
    executed = execute_clustering(
        workspace,
        now=now,
        job=job,
        instants=scheduled.report.instants,
        settings=how.executing,
        verify=how.verify,
    )
    foretold = planned.plan if planned.plan.chosen else None
    return _as_compaction(workspace, (*steps, executed.report), choice=choice, foretold=foretold)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One compaction of small files."""

    workspace: Workspace
    now: datetime
    settings: ClusteringSettings
    job: JobControl
    partitions: Collection[str] | None
    how: SmallFileSettings

    def compact_log_files(self) -> tuple[StepReport, ...]:
        """Compact the log files of the partitions that are worth rewriting; nothing on copy-on-write."""
        if not self.workspace.table.config.is_merge_on_read or not self.how.compacts_first:
            return ()
        pending = pending_compactions_of_ours(self.workspace, self.workspace.table.timeline())
        done = [self._execute([plan.instant.requested_time for plan in pending])] if pending else []
        wanted = self._with_log_files()
        if not wanted:
            return tuple(done)
        version = known_version(self.workspace)
        if version is not None and not takes_partitions(version):
            self.workspace.log(
                f"Warning: {counted(len(wanted), 'partition')} with log files cannot be compacted first: this bundle's "
                "Hudi cannot be told which to compact. Compact the table (HudiScheduleCompactionOperator), or use a "
                "bundle of Hudi 1.0 or later"
            )
            return tuple(done)
        scheduled = schedule_compaction(
            self.workspace, now=self.now, settings=CompactionSettings(), job=self.job, partitions=wanted
        )
        if scheduled.report.outcome is Outcome.NOTHING_TO_DO:
            return (*done, scheduled.report)
        return (*done, scheduled.report, self._execute(scheduled.report.instants))

    def _execute(self, instants: Sequence[str]) -> StepReport:
        return execute_compaction(self.workspace, now=self.now, job=self.job, instants=tuple(instants)).report

    def _with_log_files(self) -> tuple[str, ...]:
        planned = self._plan(self.settings, takes_log_files=True)
        return tuple(
            entry.partition_path
            for entry in planned.plan.chosen
            if any(one.log_file_names for group in entry.groups for one in group.inputs)
        )

    def plan(self, *, after_compaction: bool) -> tuple[PlannedClustering, CopyChoice]:
        """Plan the rewrite, and choose how files are rewritten; a plan of nothing needs no choice."""
        takes_log_files = not after_compaction and self.how.compacts_first
        if self.how.execution is not None:
            choice = CopyChoice(strategy=self.how.execution, reason="as asked for")
            return self._plan(choice.settings(self.settings), takes_log_files=takes_log_files), choice
        planned = self._plan(self.settings, takes_log_files=takes_log_files)
        choice = self._choice(planned.plan)
        if choice.copies:
            planned = self._plan(choice.settings(self.settings), takes_log_files=takes_log_files)
        return planned, choice

    def _plan(self, settings: ClusteringSettings, *, takes_log_files: bool) -> PlannedClustering:
        worthwhile = replace(self.how.worthwhile, takes_log_files=takes_log_files)
        return plan_small_files(
            self.workspace, now=self.now, settings=settings, partitions=self.partitions, worthwhile=worthwhile
        )

    def _choice(self, plan: ClusteringPlan) -> CopyChoice:
        paths = [
            f"{entry.partition_path}/{one.base_file_name}" if entry.partition_path else one.base_file_name
            for entry in plan.chosen
            for group in entry.groups
            for one in group.inputs
        ]
        table = self.workspace.table
        obstacle = cannot_copy(
            is_merge_on_read=table.config.is_merge_on_read,
            version=known_version(self.workspace),
            file_count=len(paths),
        )
        if obstacle is not None or not paths:
            return CopyChoice(strategy=ExecutionStrategy.SORT_AND_SIZE, reason=obstacle or "there is no file to copy")
        found = copied_files(table.storage, paths=paths)
        return choose_copying(found, min_row_group_bytes=self.how.min_row_group_bytes)


def _as_compaction(
    workspace: Workspace,
    reports: Sequence[StepReport],
    *,
    choice: CopyChoice,
    foretold: ClusteringPlan | None = None,
) -> StepReported:
    """The last step's report under the name that users know, with what the earlier ones said and did."""
    *before, last = reports
    compacted = [one for one in before if one.step is Step.EXECUTE_COMPACTION]
    outcome = last.outcome
    if outcome is Outcome.NOTHING_TO_DO and compacted:
        outcome = Outcome.DONE
    merged = replace(
        last,
        step=Step.COMPACT_SMALL_FILES,
        outcome=outcome,
        message=_message(last, compacted=compacted, choice=choice, foretold=foretold),
        plan_path=next((one.plan_path for one in before if one.step is Step.SCHEDULE_CLUSTERING), last.plan_path),
        instants=(*(instant for one in compacted for instant in one.instants), *last.instants),
        partitions=tuple(sorted({path for one in (*compacted, last) for path in one.partitions})),
        engine_seconds=sum(one.engine_seconds for one in reports),
        warnings=tuple(dict.fromkeys(warning for one in reports for warning in one.warnings)),
        scheduler=next((one.scheduler for one in before if one.scheduler), last.scheduler),
        scheduler_reason=next((one.scheduler_reason for one in before if one.scheduler_reason), last.scheduler_reason),
        predicted_files_after=None if foretold is None else foretold_files(foretold),
    )
    return write_step_report(workspace, merged)


def foretold_files(plan: ClusteringPlan) -> int:
    """How many files the groups of a plan are to become."""
    return sum(entry.output_file_count for entry in plan.chosen)


def _message(
    last: StepReport, *, compacted: Sequence[StepReport], choice: CopyChoice, foretold: ClusteringPlan | None
) -> str:
    parts = [f"Compacted log files first ({one.message})" for one in compacted]
    parts.append(last.message)
    if last.outcome in (Outcome.DONE, Outcome.DRY_RUN):
        how = "copied without decoding" if choice.copies else "decoded and encoded again"
        parts.append(f"Files are {how}: {choice.reason}")
    if foretold is not None:
        parts.append(
            f"{counted(foretold_files(foretold), 'file')} foretold, {last.files_after:,} came; "
            f"{counted(last.files_before, 'file')} of {human_bytes(last.bytes_before)} before, "
            f"{human_bytes(last.bytes_after)} after"
        )
    return ". ".join(parts)
