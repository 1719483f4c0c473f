"""Compact small files: schedule and execute clustering without a sort, where it is worthwhile."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.maintenance.clustering_planning import plan_small_files
from airflow_hudi_maint.core.maintenance.execution import execute_clustering
from airflow_hudi_maint.core.maintenance.ownership import forget_asked, pending_of_ours
from airflow_hudi_maint.core.maintenance.scheduling import schedule_planned
from airflow_hudi_maint.core.maintenance.steps import StepReported, settle_previous, write_step_report
from airflow_hudi_maint.core.model.plan import ClusteringSettings
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.planning.small_files import Worthwhile

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace


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
    scheduled = schedule_planned(workspace, planned, ours=ours, job=job, dry_run=dry_run)
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
