"""What is checked right before a clustering plan is executed: the instant, its owner, and that its inputs stand."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import PendingActionError, PlanOutdatedError, UnknownInstantError
from airflow_hudi_maint.core.maintenance.ownership import executing_job, is_executed_by_us
from airflow_hudi_maint.core.model.commit import PendingPlan, PlanKind
from airflow_hudi_maint.core.model.instant import State
from airflow_hudi_maint.core.model.job import JobStatus
from airflow_hudi_maint.core.planning.schedule_guard import change_of

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.file_slice import FileSlice
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.storage.table import TableView


def pending_plans_of(
    workspace: Workspace, timeline: Timeline, *, wanted: Sequence[str], done: Collection[str]
) -> tuple[PendingPlan, ...]:
    """The plans of ``wanted`` that are still to execute; ``done`` are those that completed as a clustering.

    Raises UnknownInstantError for an instant that is neither, and PlanOutdatedError for a plan that is older than the
    active timeline.
    """
    pending = {
        plan.instant.requested_time: plan
        for plan in workspace.table.pending_plans(timeline)
        if plan.kind is PlanKind.CLUSTERING
    }
    for instant in wanted:
        if instant not in pending and instant not in done:
            raise UnknownInstantError(
                f"Instant {instant} is no pending clustering of {workspace.table.base_path}: "
                f"{_what_it_is(instant, timeline)}. Schedule clustering again"
            )
    plans = tuple(pending[instant] for instant in wanted if instant in pending)
    for plan in plans:
        if plan.instant.requested_time < timeline.start:
            raise PlanOutdatedError(
                f"Clustering plan {plan.instant.requested_time} is older than the active timeline of "
                f"{workspace.table.base_path}, which starts at {timeline.start}: what replaced or updated its files "
                "since may be archived, so that it cannot be told. Resolve the pending plan and schedule again"
            )
    return plans


def _what_it_is(instant: str, timeline: Timeline) -> str:
    found = timeline.find(instant)
    if found is not None:
        return f"the timeline has {found}"
    if instant < timeline.start:
        return f"it is older than the active timeline, which starts at {timeline.start} (archived, or of another table)"
    return "it is not on the active timeline (rolled back, or of another table)"


def check_not_running(workspace: Workspace, plans: Sequence[PendingPlan]) -> None:
    """Raise PendingActionError for a plan that another job is executing, or may be.

    Hudi begins an execution by rolling back what is inflight: two at once would delete each other's files.
    """
    for plan in plans:
        handle = executing_job(workspace, plan)
        instant = plan.instant.requested_time
        if handle is not None and workspace.engine().status(handle) is JobStatus.RUNNING:
            msg = f"Clustering {instant} is being executed by job {handle.job_id}; try again when it is done"
            raise PendingActionError(msg)
        if plan.instant.state is State.INFLIGHT and not is_executed_by_us(workspace, plan):
            msg = (
                f"Clustering {instant} is inflight, and not by a job of ours: executing it beside its owner would "
                "delete each other's files. Wait until it completes, or have Hudi roll it back"
            )
            raise PendingActionError(msg)


def checked_inputs(view: TableView, plans: Sequence[PendingPlan]) -> tuple[FileSlice, ...]:
    """The latest slices that the plans rewrite.

    Raises PlanOutdatedError when one was replaced, lost a file, or got a newer base file or another log file, since the
    plan was made: Hudi would rewrite the files of the plan and lose what was written since.
    """
    latest = {(path, one.file_id): one for path in view.partition_paths for one in view.merged_slices(path)}
    checked = []
    for plan in plans:
        for one in plan.inputs:
            found = latest.get((one.partition_path, one.file_id))
            change = change_of(one, found)
            if found is None or change:
                msg = (
                    f"Clustering plan {plan.instant.requested_time} is outdated: file group {one.file_id} of partition "
                    f"{one.partition_path!r} {change}; executing it would bring back old rows. Roll the plan back"
                )
                raise PlanOutdatedError(msg)
            checked.append(found)
    return tuple(checked)
