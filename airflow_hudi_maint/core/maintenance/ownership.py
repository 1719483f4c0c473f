"""Which pending clustering plans are ours.

A plan on the timeline does not say who made it, so a small document in our own folder does. A plan that was made just
before its maker died is recognised by what it holds: newer than our last plan, and nothing but file groups of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.commit import PendingPlan, PlanKind
from airflow_hudi_maint.core.model.document import JsonObject
from airflow_hudi_maint.core.model.plan import ClusteringPlan

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.timeline import Timeline

_FOLDER: Final = "scheduled"
_PLAN_SUFFIXES = ("-clustering.json", "-small-files.json")


def record_ours(workspace: Workspace, plan: PendingPlan, *, plan_path: str | None) -> None:
    """Note that a pending plan is ours, and which of our plans it came from."""
    instant = plan.instant.requested_time
    document: JsonObject = {"kind": "scheduled-clustering", "version": 1, "instant": instant, "plan_path": plan_path}
    workspace.documents.write(_FOLDER, name=f"{instant}.json", document=document)


def pending_of_ours(workspace: Workspace, timeline: Timeline) -> tuple[PendingPlan, ...]:
    """Pending clustering plans of ours, oldest first. One that was not noted yet is noted now."""
    noted = set(workspace.documents.names(_FOLDER))
    ours = []
    for plan in workspace.table.pending_plans(timeline):
        if plan.kind is not PlanKind.CLUSTERING:
            continue
        if f"{plan.instant.requested_time}.json" in noted:
            ours.append(plan)
        elif (plan_path := _origin(workspace, plan)) is not None:
            record_ours(workspace, plan, plan_path=plan_path)
            ours.append(plan)
    return tuple(ours)


def _origin(workspace: Workspace, plan: PendingPlan) -> str | None:
    """The newest document of ours that this pending plan can come from, or None."""
    held = {(one.partition_path, one.file_id) for one in plan.inputs}
    for suffix in _PLAN_SUFFIXES:
        path = workspace.documents.newest("plans", suffix=suffix)
        if path is None:
            continue
        try:
            document = ClusteringPlan.from_json(workspace.documents.read(path), name=path)
        except CorruptTableError:  # a broken document of ours is no reason to claim a plan
            continue
        wanted = {(entry.partition_path, file_id) for entry in document.chosen for file_id in entry.file_ids}
        if plan.instant.requested_time > document.basis.base_instant and held and held <= wanted:
            return path
    return None
