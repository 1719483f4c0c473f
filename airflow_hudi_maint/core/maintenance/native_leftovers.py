"""Plans that a scheduling of ours wrote, and did not live to note.

Such a plan names its maker. It was not looked at again after it was written, so that is done now: it stays, or goes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from airflow_hudi_maint.core.maintenance.native_scheduling import clear_lock, input_change
from airflow_hudi_maint.core.maintenance.ownership import noted_instants
from airflow_hudi_maint.core.model.commit import PlanKind
from airflow_hudi_maint.core.model.instant import State, known_moment
from airflow_hudi_maint.core.model.scheduler import PlanOwner, is_native
from airflow_hudi_maint.core.planning.schedule_guard import file_groups_of, overlapping
from airflow_hudi_maint.core.storage.clustering_plan import PlanFile

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.commit import PendingPlan
    from airflow_hudi_maint.core.model.timeline import Timeline

SETTLED_AFTER: Final = timedelta(minutes=10)
"""So old a plan's maker is done with it, or dead."""


def settle_leftovers(
    workspace: Workspace, timeline: Timeline, *, owner: PlanOwner | None, now: datetime
) -> tuple[frozenset[str], bool]:
    """Withdraw the plans without a note that may not stay, and the lock file of a try that died.

    Returns the instants of plans that another task wrote a moment ago and may still be looking at, and whether the
    timeline has changed. A plan may not stay when another plan holds file groups of it, or when an input has changed:
    it was written beside somebody who did not see it.
    """
    clear_lock(workspace, owner=owner)
    plans = workspace.table.pending_plans(timeline)
    noted = noted_instants(workspace)
    at_work: set[str] = set()
    withdrew = False
    for plan in plans:
        instant = plan.instant.requested_time
        if plan.kind is not PlanKind.CLUSTERING or not is_native(plan.extra_metadata) or instant in noted:
            continue
        if not _is_left(workspace, plan, owner=owner, now=now):
            at_work.add(instant)
        elif plan.instant.state is State.REQUESTED:
            others = [one for one in plans if one is not plan]
            problem = _problem(workspace, timeline, plan, others=others)
            if problem:
                workspace.log(f"Withdrawing the clustering plan {instant} that an earlier try left: {problem}")
                _withdraw(workspace, plan)
                withdrew = True
    return frozenset(at_work), withdrew


def _is_left(workspace: Workspace, plan: PendingPlan, *, owner: PlanOwner | None, now: datetime) -> bool:
    """Whether the plan's maker is gone: no two tries of a task run at once, and none takes so long."""
    if owner is not None and PlanOwner.from_metadata(plan.extra_metadata) == owner:
        return True
    made = known_moment(plan.instant.requested_time, zone=workspace.table.zone)
    return made is not None and now - made >= SETTLED_AFTER


def _problem(workspace: Workspace, timeline: Timeline, plan: PendingPlan, *, others: list[PendingPlan]) -> str | None:
    rival = overlapping(others, file_groups=file_groups_of(plan.inputs))
    if rival is not None:
        return f"the plan {rival.instant} holds file groups of it, too"
    return input_change(workspace.table, timeline, inputs=plan.inputs)


def _withdraw(workspace: Workspace, plan: PendingPlan) -> None:
    file = PlanFile(table=workspace.table, requested_time=plan.instant.requested_time)
    data = file.content()
    if data is not None:
        file.withdraw(workspace.table.timeline(), data=data)
