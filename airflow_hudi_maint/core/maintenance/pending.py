"""Look at pending plans: how old they are, whose, and whether their inputs are still what they were."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.maintenance.ownership import executing_job, noted_instants, owner_of
from airflow_hudi_maint.core.model.commit import PendingPlan, PlanKind
from airflow_hudi_maint.core.model.file_slice import LogFile
from airflow_hudi_maint.core.model.instant import State, known_moment
from airflow_hudi_maint.core.model.job import JobStatus
from airflow_hudi_maint.core.model.pending_care import Owner, PendingFact
from airflow_hudi_maint.core.model.scheduler import is_native
from airflow_hudi_maint.core.planning.pending_care import PlanCondition
from airflow_hudi_maint.core.storage.health_facts import HEARTBEATS_FOLDER, MARKERS_FOLDER

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.storage.entries import Entry
    from airflow_hudi_maint.core.storage.table import TableView


def read_pending(workspace: Workspace, timeline: Timeline, *, now: datetime) -> tuple[PendingFact, ...]:
    """The pending plans of table services, oldest first, with age and owner: a few listings and no partition.

    A plan is ours when a step of ours noted it. One that a step made right before it died is noted by its retry.
    """
    table = workspace.table
    plans = table.pending_plans(timeline)
    if not plans:
        return ()
    noted = noted_instants(workspace)
    folders = (table.config.timeline_folder, HEARTBEATS_FOLDER)
    markers = [f"{MARKERS_FOLDER}/{one.instant.requested_time}" for one in plans]
    listed = table.storage.list_many([*folders, *markers])
    found = []
    for plan in plans:
        instant = plan.instant.requested_time
        requested = known_moment(instant, zone=table.zone)
        started = _modified(listed.get(table.config.timeline_folder, ()), name=plan.instant.file_name)
        beat = _modified(listed.get(HEARTBEATS_FOLDER, ()), name=instant)
        marked = [one.modified for one in listed.get(f"{MARKERS_FOLDER}/{instant}", ()) if one.modified]
        # A plan may wait for days before its execution starts: a requested one shows no other sign of life.
        signs = [requested, beat, *marked, *([started] if plan.instant.state is State.INFLIGHT else [])]
        last = max((one for one in signs if one is not None), default=None)
        is_ours = instant in noted or is_native(plan.extra_metadata)
        maker = owner_of(workspace, plan) if is_ours else None
        found.append(
            PendingFact(
                plan=plan,
                owner=Owner.OURS if is_ours else Owner.OTHER,
                maker="" if maker is None else str(maker),
                age_seconds=_seconds(requested, now=now),
                idle_seconds=_seconds(last, now=now) if requested else None,
                beat_seconds=_seconds(beat, now=now),
            )
        )
    return tuple(found)


def condition_of(workspace: Workspace, plan: PendingPlan, view: TableView) -> PlanCondition:
    """Look closer at one plan; ``view`` has its partitions, listed by directory."""
    return PlanCondition(
        running_job=_running_job(workspace, plan),
        overtaken=change_of_inputs(plan, view),
        stranded_log=_stranded_log(plan, view),
    )


def change_of_inputs(plan: PendingPlan, view: TableView) -> str:
    """Say what happened to the inputs of a plan since it was made; empty when nothing did.

    A file group that was replaced, or got another base file, must not be rewritten: old rows would come back. Later log
    files are no harm to a compaction, whose slice they lie upon, and would be lost by a clustering.
    """
    latest = {(path, one.file_id): one for path in view.partition_paths for one in view.merged_slices(path)}
    for one in plan.inputs:
        found = latest.get((one.partition_path, one.file_id))
        group = f"file group {one.file_id} of partition {one.partition_path!r}"
        if found is None:
            return f"{group} was replaced or removed"
        base = found.base_file.name if found.base_file else ""
        if base != one.base_file_name:
            return f"{group} has the base file {base!r} now"
        later = {log.name for log in found.log_files} - one.log_file_names
        if later and plan.kind is PlanKind.CLUSTERING:
            return f"{group} got the log file {min(later)!r}"
    return ""


def _stranded_log(plan: PendingPlan, view: TableView) -> str:
    """A log file whose base instant is this compaction. Since version 8 a log file is named by its own delta commit."""
    if plan.kind is not PlanKind.COMPACTION or view.history.has_completion_times:
        return ""
    names = (entry.name for path in view.partition_paths for entry in view.listings[path] if not entry.is_directory)
    logs = (LogFile.parse(name, size_bytes=0) for name in names)
    return min((one.name for one in logs if one and one.instant == plan.instant.requested_time), default="")


def _running_job(workspace: Workspace, plan: PendingPlan) -> str:
    handle = executing_job(workspace, plan)
    if handle is None or workspace.engine().status(handle) is not JobStatus.RUNNING:
        return ""
    return handle.job_id


def _modified(entries: Iterable[Entry], *, name: str) -> datetime | None:
    return next((one.modified for one in entries if one.name == name), None)


def _seconds(moment: datetime | None, *, now: datetime) -> float | None:
    return None if moment is None else round((now - moment).total_seconds(), 3)
