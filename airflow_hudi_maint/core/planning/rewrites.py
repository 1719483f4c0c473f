"""What clustering and small-file compaction share: what rewriting a partition gains, and a budget of groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from airflow_hudi_maint.core.errors import InvalidSettingError, UnknownPartitionError
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.partition import naming_problem
from airflow_hudi_maint.core.model.plan import ClusteringEntry, ClusteringPlan, ClusteringSettings, Decision, PlanBasis
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.clustering_groups import ClusteringGroup, is_small, pack_groups
from airflow_hudi_maint.core.planning.wording import some_of

_RESERVED = (",",)
"""What Hudi's list of selected partitions gives a meaning of its own; it knows no wildcard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A partition as if no plan held any of it: its small files, the groups that Hudi would make, and what holds it."""

    partition_path: str
    file_count: int
    small_file_count: int
    groups: tuple[ClusteringGroup, ...]
    held_by: str | None

    @classmethod
    def of(
        cls, partition_path: str, slices: Sequence[FileSlice], *, settings: ClusteringSettings, held_by: str | None
    ) -> Candidate:
        """Look at a partition's latest slices."""
        pending = sorted({one.pending_instant for one in slices if one.pending_instant})
        return cls(
            partition_path=partition_path,
            file_count=len(slices),
            small_file_count=sum(is_small(one, small_file_bytes=settings.small_file_bytes) for one in slices),
            groups=pack_groups(slices, settings),
            held_by=held_by or (pending[0] if pending else None),
        )

    @property
    def input_file_count(self) -> int:
        """How many files the groups hold."""
        return sum(len(group.slices) for group in self.groups)

    @property
    def output_file_count(self) -> int:
        """How many files the groups make."""
        return sum(group.output_file_count for group in self.groups)

    @property
    def files_removed(self) -> int:
        """How many files fewer there are afterwards."""
        return self.input_file_count - self.output_file_count

    @property
    def input_bytes(self) -> int:
        """The bytes that are read."""
        return sum(group.input_bytes for group in self.groups)


Refusal: TypeAlias = "Callable[[Candidate, ClusteringSettings], str | None]"
"""Says why a partition is not worth rewriting; None when it is."""


def plan_rewrites(
    slices: Mapping[str, Sequence[FileSlice]],
    settings: ClusteringSettings,
    *,
    basis: PlanBasis,
    partitions: Collection[str] | None,
    pending: Mapping[str, str],
    purpose: str,
    refusal: Refusal,
) -> ClusteringPlan:
    """Plan the partitions that ``refusal`` has nothing against, within the settings' budget of groups."""
    candidates = [
        Candidate.of(path, slices[path], settings=settings, held_by=pending.get(path))
        for path in _considered(slices, partitions=partitions)
    ]
    entries: dict[str, ClusteringEntry] = {}
    wanted: list[Candidate] = []
    for candidate in candidates:
        why_not = refusal(candidate, settings)
        blocking = _blocking(candidate)
        if why_not is not None:
            entries[candidate.partition_path] = _left(candidate, Decision.KEEP, reason=why_not)
        elif blocking is not None:
            reason = f"{_gain(candidate, settings)}; blocked{blocking}"
            entries[candidate.partition_path] = _left(candidate, Decision.BLOCKED, reason=reason)
        else:
            wanted.append(candidate)
    planned = {entry.partition_path: entry for entry in _within_budget(wanted, settings, refusal=refusal)}
    entries |= planned
    return ClusteringPlan(
        basis=basis,
        settings=settings,
        entries=tuple(entries[path] for path in sorted(entries)),
        purpose=purpose,
        warnings=_left_out(planned.values(), settings),
    )


def _blocking(candidate: Candidate) -> str | None:
    if candidate.held_by:
        return f" by the pending plan {candidate.held_by}"
    problem = naming_problem(candidate.partition_path, reserved=_RESERVED)
    return problem and f": {problem}, so that it cannot be selected"


def _considered(slices: Mapping[str, Sequence[FileSlice]], *, partitions: Collection[str] | None) -> Sequence[str]:
    if partitions is None:
        return sorted(slices)
    if isinstance(partitions, str) or not partitions:
        raise InvalidSettingError(
            f"partitions={partitions!r} names no partition: pass a list of names, or None for all"
        )
    unknown = set(partitions) - set(slices)
    if unknown:
        raise UnknownPartitionError(
            f"the table has no data in {len(unknown)} of the partitions named: {some_of(unknown)}; "
            f"it has {some_of(slices) if slices else 'none at all'}"
        )
    return sorted(set(partitions))


def _within_budget(
    candidates: Iterable[Candidate], settings: ClusteringSettings, *, refusal: Refusal
) -> Iterable[ClusteringEntry]:
    """Choose the partitions that lose most files first, and pass over those whose groups no longer fit."""
    left = settings.max_groups
    for candidate in sorted(candidates, key=lambda one: (-one.files_removed, one.partition_path)):
        groups = len(candidate.groups)
        if left is None or groups <= left:
            yield _chosen(candidate, settings)
            left = None if left is None else left - groups
            continue
        limit = f"max_groups={settings.max_groups}"
        reason = f"left for the next run: {limit} reached ({counted(groups, 'group')} needed)"
        if left == settings.max_groups:
            # A partition that is larger than the whole budget would never have its turn: it gets a run of its own.
            part = replace(candidate, groups=candidate.groups[:left])
            if refusal(part, settings) is None:
                yield _chosen(part, settings, note=f", the first {counted(left, 'group')} of {groups}: {limit}")
                left = 0
                continue
            reason = f"{limit} is too small: the first {left} of its {groups} groups make no files fewer"
        yield _left(candidate, Decision.KEEP, reason=reason)


def _chosen(candidate: Candidate, settings: ClusteringSettings, *, note: str = "") -> ClusteringEntry:
    return ClusteringEntry(
        partition_path=candidate.partition_path,
        decision=Decision.CLUSTER,
        reason=f"{_gain(candidate, settings)}{note}",
        groups=tuple(group.planned(candidate.partition_path) for group in candidate.groups),
    )


def _left(candidate: Candidate, decision: Decision, *, reason: str) -> ClusteringEntry:
    return ClusteringEntry(
        partition_path=candidate.partition_path,
        decision=decision,
        reason=reason,
        blocked_by=candidate.held_by if decision is Decision.BLOCKED else None,
    )


def _gain(candidate: Candidate, settings: ClusteringSettings) -> str:
    files = counted(candidate.input_file_count, "small file")
    order = f", sorted by {', '.join(settings.sort_columns)}" if settings.sort_columns else ""
    return (
        f"{files} of {human_bytes(candidate.input_bytes)} become {candidate.output_file_count} in "
        f"{counted(len(candidate.groups), 'group')}{order}"
    )


def _left_out(entries: Collection[ClusteringEntry], settings: ClusteringSettings) -> tuple[str, ...]:
    chosen = sum(entry.decision is Decision.CLUSTER for entry in entries)
    if chosen == len(entries):
        return ()
    planned = f"{chosen} of {len(entries)} partitions with small files are planned"
    return (f"{planned}; the rest is left for the next run, because max_groups={settings.max_groups}",)
