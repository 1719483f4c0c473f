"""Plan the compaction of a merge-on-read table, and know which pending compactions are ours."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from airflow_hudi_maint.core.errors import HudiMaintError, UnsupportedTableError
from airflow_hudi_maint.core.maintenance.ownership import noted_instants, record_ours
from airflow_hudi_maint.core.model.commit import PendingPlan, PlanKind
from airflow_hudi_maint.core.model.compaction_plan import CompactionPlan, CompactionSettings
from airflow_hudi_maint.core.model.instant import State
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.compaction import delta_commits_since_compaction
from airflow_hudi_maint.core.planning.compaction import plan_compaction as plan_compaction_slices
from airflow_hudi_maint.core.storage.changes import watermark_of

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.document import JsonObject
    from airflow_hudi_maint.core.model.timeline import Timeline

_FOLDER: Final = "scheduled"
_ASKED: Final = "compaction.json"
"""Beside the notes of ownership.py, and named otherwise: at most one is there."""


@dataclass(frozen=True, kw_only=True)
class PlannedCompaction:
    """A compaction plan of ours (not yet Hudi's), and the file that holds it."""

    plan: CompactionPlan
    path: str


def plan_compaction(
    workspace: Workspace, *, now: datetime, settings: CompactionSettings, partitions: Collection[str] | None = None
) -> PlannedCompaction:
    """Plan which file groups are compacted and write the plan; changes nothing on the table.

    Raises UnsupportedTableError for a copy-on-write table, which has no log files, and UnknownPartitionError for a
    partition that the table lacks.
    """
    table = workspace.table
    if not table.config.is_merge_on_read:
        msg = (
            f"Table {table.base_path} is copy-on-write: it has no log files to compact. Small files are for clustering"
        )
        raise UnsupportedTableError(msg)
    timeline = table.timeline()
    # By directory, whatever the table has: what decides on a rewrite rests on what lies there.
    view = table.view(timeline, listing="directory")
    if partitions is not None:
        table.check_partitions(partitions, known=view.partition_paths)
    plan = plan_compaction_slices(
        view.slices_with_data(named=partitions),
        settings,
        basis=workspace.basis(watermark_of(timeline), now=now),
        delta_commits=delta_commits_since_compaction(timeline),
        partitions=partitions,
    )
    path = workspace.documents.write_kept(
        "plans", stem=f"{plan.basis.base_instant}-compaction", document=plan.to_json()
    )
    workspace.log(describe(plan))
    return PlannedCompaction(plan=plan, path=path)


def describe(plan: CompactionPlan) -> str:
    """Say in one sentence what a plan merges."""
    files = sum(entry.log_file_count for entry in plan.chosen)
    size = human_bytes(sum(entry.log_bytes for entry in plan.chosen))
    return (
        f"Compaction plan on {plan.basis.base_instant}: {len(plan.chosen)} of "
        f"{counted(len(plan.entries), 'partition')}, {counted(files, 'log file')} ({size}) of "
        f"{counted(len(plan.file_groups), 'file group')}"
    )


def record_asked(workspace: Workspace, *, plan_path: str) -> None:
    """Note, before Hudi is asked to schedule, which of our plans that is for."""
    document: JsonObject = {"kind": "asked-compaction", "version": 1, "plan_path": plan_path}
    workspace.documents.write(_FOLDER, name=_ASKED, document=document)


def forget_asked(workspace: Workspace) -> None:
    """Withdraw the note of :func:`record_asked`: what Hudi made of it is known."""
    workspace.documents.delete(_FOLDER, name=_ASKED)


def pending_compactions(workspace: Workspace, timeline: Timeline) -> tuple[PendingPlan, ...]:
    """Every pending compaction, oldest first, whoever made it; log compactions are none."""
    return tuple(one for one in workspace.table.pending_plans(timeline) if one.kind is PlanKind.COMPACTION)


def pending_compactions_of_ours(workspace: Workspace, timeline: Timeline) -> tuple[PendingPlan, ...]:
    """The pending compactions that were made by us, oldest first. One that was not noted yet is noted now."""
    noted = noted_instants(workspace)
    ours = []
    for plan in pending_compactions(workspace, timeline):
        if plan.instant.requested_time in noted:
            ours.append(plan)
        elif plan.instant.state is State.REQUESTED and (plan_path := _origin(workspace, plan)) is not None:
            record_ours(workspace, plan, plan_path=plan_path)
            ours.append(plan)
    return tuple(ours)


def comes_from(plan: PendingPlan, ours: CompactionPlan) -> bool:
    """Whether a pending compaction can be what Hudi made when it was asked for ``ours``.

    It is newer than ours, by what was seen and not by clocks, and holds no partition that ours did not choose. Files
    that were committed while Spark started may be in it, too.
    """
    held = {(one.partition_path, one.file_id) for one in plan.inputs}
    chosen = {entry.partition_path for entry in ours.chosen}
    is_later = plan.instant.requested_time not in ours.basis.watermark.pending
    return is_later and bool(held & ours.file_groups) and plan.partitions <= chosen


def _origin(workspace: Workspace, plan: PendingPlan) -> str | None:
    """The plan of ours that Hudi was asked for last, if this one can come from it: its maker died before it noted."""
    documents = workspace.documents
    if _ASKED not in documents.names(_FOLDER):
        return None
    try:
        asked = documents.read(documents.path(_FOLDER, name=_ASKED))
        plan_path = asked.get("plan_path") if isinstance(asked, Mapping) else None
        if not isinstance(plan_path, str):
            return None
        ours = CompactionPlan.from_json(documents.read(plan_path), name=plan_path)
    except HudiMaintError:  # a document that is broken or gone is no reason to claim a plan
        return None
    return plan_path if comes_from(plan, ours) else None
