"""Plan, schedule and execute clustering; compact small files with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import EngineError, PendingActionError, UnsupportedTableError
from airflow_hudi_maint.core.maintenance.execution import execute_clustering
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
from airflow_hudi_maint.core.model.units import human_bytes
from airflow_hudi_maint.core.planning.clustering import clustering_options
from airflow_hudi_maint.core.planning.clustering import plan_clustering as plan_clustering_slices
from airflow_hudi_maint.core.planning.small_files import Worthwhile, plan_small_file_compaction
from airflow_hudi_maint.core.storage.changes import watermark_of
from airflow_hudi_maint.core.storage.schema import table_schema
from airflow_hudi_maint.core.storage.table import HudiTable

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.document import JsonMapping

_NAMES_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class PlannedClustering:
    """A clustering plan of ours (not yet Hudi's), and the file that holds it."""

    plan: ClusteringPlan
    path: str


def plan_clustering(
    workspace: Workspace, *, now: datetime, settings: ClusteringSettings, partitions: Collection[str] | None = None
) -> PlannedClustering:
    """Plan which partitions are clustered and write the plan; changes nothing on the table.

    Raises UnknownColumnError for a sort column, and UnknownPartitionError for a partition, that the table lacks.
    """
    return _plan(workspace, now=now, settings=settings, partitions=partitions, planner=plan_clustering_slices)


def plan_small_files(
    workspace: Workspace,
    *,
    now: datetime,
    settings: ClusteringSettings,
    partitions: Collection[str] | None = None,
    worthwhile: Worthwhile | None = None,
) -> PlannedClustering:
    """Plan which partitions have small files that are worth rewriting, without a sort; changes nothing on the table."""
    planner = partial(plan_small_file_compaction, worthwhile=worthwhile or Worthwhile())
    return _plan(workspace, now=now, settings=settings, partitions=partitions, planner=planner)


def _plan(
    workspace: Workspace,
    *,
    now: datetime,
    settings: ClusteringSettings,
    partitions: Collection[str] | None,
    planner: Callable[..., ClusteringPlan],
) -> PlannedClustering:
    table = workspace.table
    _check_format(table)
    timeline = table.timeline()
    if settings.sort_columns:
        table_schema(table, timeline=timeline).check_columns(settings.sort_columns)
    view = table.view(timeline)
    if partitions is not None:
        table.check_partitions(partitions, known=view.partition_paths)
    plan = planner(
        {path: view.merged_slices(path) for path in view.partition_paths},
        settings,
        basis=workspace.basis(watermark_of(timeline), now=now),
        partitions=partitions,
    )
    path = workspace.documents.write_kept(
        "plans", stem=f"{plan.basis.base_instant}-{plan.purpose}", document=plan.to_json()
    )
    workspace.log(_describe(plan))
    return PlannedClustering(plan=plan, path=path)


def _check_format(table: HudiTable) -> None:
    if table.config.base_file_format != "PARQUET":
        msg = (
            f"Table {table.base_path} has base files of format {table.config.base_file_format}; only tables of Parquet "
            "files are clustered and have small files rewritten. Statistics and expiry take this table, too"
        )
        raise UnsupportedTableError(msg)


def _describe(plan: ClusteringPlan) -> str:
    files = sum(len(entry.file_ids) for entry in plan.chosen)
    size = sum(entry.input_bytes for entry in plan.chosen)
    outputs = sum(entry.output_file_count for entry in plan.chosen)
    return (
        f"{plan.purpose.capitalize()} plan on {plan.basis.base_instant}: "
        f"{len(plan.chosen)} of {len(plan.entries)} partitions, "
        f"{files} files ({human_bytes(size)}) into about {outputs}, in {plan.group_count} groups"
    )


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
    return _schedule(workspace, planned, ours=ours, job=job, dry_run=dry_run)


def _schedule(
    workspace: Workspace, planned: PlannedClustering, *, ours: tuple[PendingPlan, ...], job: JobControl, dry_run: bool
) -> StepReported:
    run = _Scheduling(workspace=workspace, plan=planned.plan, path=planned.path, ours=ours)
    if dry_run:
        timeline = workspace.table.timeline()
        warnings = objections(lambda: check_writable(workspace, timeline=timeline)) if planned.plan.chosen else ()
        message = f"Dry run, nothing was scheduled: {_describe(planned.plan)}"
        return run.report(Outcome.DRY_RUN, message, warnings=warnings)
    if planned.plan.chosen:
        return run.apply(job)
    if ours:
        names = ", ".join(plan.instant.requested_time for plan in ours)
        return run.report(Outcome.ALREADY_DONE, f"Already scheduled and pending: {names}")
    return run.report(Outcome.NOTHING_TO_DO, f"Nothing to cluster: {_describe(planned.plan)}")


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


def compact_small_files(
    workspace: Workspace,
    *,
    now: datetime,
    settings: ClusteringSettings,
    job: JobControl,
    partitions: Collection[str] | None = None,
    worthwhile: Worthwhile | None = None,
    dry_run: bool = False,
) -> StepReported:
    """Rewrite small files into larger ones: schedule and execute clustering without a sort, where it is worthwhile.

    A second run finds nothing and starts no Spark. Raises as :func:`schedule_clustering` and
    :func:`airflow_hudi_maint.core.maintenance.execute_clustering` do.
    """
    settle_previous(workspace, job)
    ours = pending_of_ours(workspace, workspace.table.timeline())
    forget_asked(workspace)
    planned = plan_small_files(workspace, now=now, settings=settings, partitions=partitions, worthwhile=worthwhile)
    scheduled = _schedule(workspace, planned, ours=ours, job=job, dry_run=dry_run)
    if scheduled.report.outcome in (Outcome.DRY_RUN, Outcome.NOTHING_TO_DO):
        return _as_compaction(workspace, scheduled.report)
    executed = execute_clustering(workspace, now=now, job=job, instants=scheduled.report.instants)
    return _as_compaction(workspace, executed.report, before=(scheduled.report,))


def _as_compaction(workspace: Workspace, report: StepReport, *, before: Sequence[StepReport] = ()) -> StepReported:
    """The last step's report under the name that users know, with what the earlier ones said."""
    compacted = replace(
        report,
        step=Step.COMPACT_SMALL_FILES,
        plan_path=next((one.plan_path for one in before), report.plan_path),
        engine_seconds=report.engine_seconds + sum(one.engine_seconds for one in before),
        warnings=(*(warning for one in before for warning in one.warnings), *report.warnings),
    )
    return write_step_report(workspace, compacted)
