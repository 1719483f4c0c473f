"""Whether a plan that was made may still be put on the timeline, and whether one that was put there may stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from airflow_hudi_maint.core.model.commit import PendingPlan, PlannedSlice
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.instant import Action, Instant
from airflow_hudi_maint.core.model.rewrite_group import PlannedGroup
from airflow_hudi_maint.core.model.timeline import Timeline

FileGroups: TypeAlias = "frozenset[tuple[str, str]]"
"""Partition path and file id of each."""

_HARMLESS = frozenset({Action.CLEAN, Action.SAVEPOINT})
"""A clean takes no latest slice, and a savepoint nothing."""


def planned_slices(groups: Iterable[PlannedGroup]) -> tuple[PlannedSlice, ...]:
    """The inputs of clustering groups, in the form that a plan on the timeline has."""
    return tuple(
        PlannedSlice(
            partition_path=group.partition_path,
            file_id=one.file_id,
            base_file_name=one.base_file_name,
            log_file_names=frozenset(one.log_file_names),
        )
        for group in groups
        for one in group.inputs
    )


def file_groups_of(inputs: Iterable[PlannedSlice]) -> FileGroups:
    """The file groups that a plan's inputs are of."""
    return frozenset((one.partition_path, one.file_id) for one in inputs)


def overlapping(plans: Iterable[PendingPlan], *, file_groups: FileGroups) -> PendingPlan | None:
    """The first pending plan that holds one of the file groups; Hudi fails on a file group in two plans."""
    return next((plan for plan in plans if file_groups_of(plan.inputs) & file_groups), None)


def changed_input(inputs: Iterable[PlannedSlice], latest: Mapping[tuple[str, str], FileSlice]) -> str | None:
    """Say which input is not the latest slice of its file group as it was planned; None when all are.

    ``latest`` are the slices by partition path and file id.
    """
    for one in inputs:
        change = change_of(one, latest.get((one.partition_path, one.file_id)))
        if change:
            return f"file group {one.file_id} of partition {one.partition_path!r} {change}"
    return None


def change_of(planned: PlannedSlice, found: FileSlice | None) -> str:
    """What happened to an input since it was planned; empty when ``found`` is what was planned."""
    if found is None:
        return "was replaced or removed"
    base_file_name = found.base_file.name if found.base_file else ""
    if base_file_name != planned.base_file_name:
        return f"has the base file {base_file_name!r} now"
    names = {log.name for log in found.log_files}
    later, lost = names - planned.log_file_names, planned.log_file_names - names
    if later:
        return f"got the log file {min(later)!r}"
    return f"lost the log file {min(lost)!r}" if lost else ""


def disturbance(
    before: Timeline, after: Timeline, *, plans: Iterable[PendingPlan], own: str, file_groups: FileGroups
) -> str | None:
    """Say what came to the timeline while a plan was written, and forbids it to stay; None for nothing such.

    ``plans`` are the pending plans of both timelines, and ``own`` is the requested time of the plan. Plans for other
    file groups, cleans and savepoints may come; any other write, rollback, restore or index build may not, pending or
    complete: it has not seen the plan, and the plan has not seen it.
    """
    known = {plan.instant.requested_time: plan for plan in plans if plan.instant.requested_time != own}
    rival = overlapping(known.values(), file_groups=file_groups)
    if rival is not None:
        return f"the plan {rival.instant} holds file groups of it"
    for one in appeared(before, after, own=own):
        if one.requested_time not in known and one.action not in _HARMLESS:
            return f"the instant {one} appeared"
    return None


def appeared(before: Timeline, after: Timeline, *, own: str) -> tuple[Instant, ...]:
    """What is on the timeline ``after`` and was not ``before`` in the same state, but for the plan ``own``.

    A write may have taken the same millisecond for its own instant.
    """
    seen = {_key(one) for one in before}
    return tuple(one for one in after if not _is_own(one, own=own) and _key(one) not in seen)


def _is_own(one: Instant, *, own: str) -> bool:
    return one.requested_time == own and one.action.completed_as is Action.REPLACE_COMMIT


def _key(one: Instant) -> tuple[str, Action, bool]:
    return one.requested_time, one.action.completed_as, one.is_completed
