"""What clustering and small-file compaction share: filter partitions, group their files, and stay within a budget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.partition import naming_problem
from airflow_hudi_maint.core.model.plan import (
    ClusteringEntry,
    ClusteringPlan,
    ClusteringSettings,
    Decision,
    ExecutionStrategy,
    PlanBasis,
)
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.clustering_budget import Budget
from airflow_hudi_maint.core.planning.clustering_candidates import Candidate, PartitionFacts
from airflow_hudi_maint.core.planning.clustering_strategy import Selecting
from airflow_hudi_maint.core.planning.named_partitions import considered

__all__ = ["Candidate", "Refusal", "plan_rewrites"]

_RESERVED = (",",)
"""What Hudi's list of selected partitions gives a meaning of its own; it knows no wildcard."""

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
    selecting: Selecting | None = None,
) -> ClusteringPlan:
    """Plan the partitions that neither the strategy nor ``refusal`` has anything against, within the budget.

    ``selecting`` None looks at every partition, and takes first those that lose most files.
    """
    paths = considered(slices, partitions=partitions)
    entries: dict[str, ClusteringEntry] = {}
    facts = {path: _facts(path, slices[path], settings=settings, selecting=selecting) for path in paths}
    excluded = selecting.excluded(tuple(facts.values())) if selecting else {}
    wanted: list[Candidate] = []
    for path in paths:
        if path in excluded:
            entries[path] = ClusteringEntry(partition_path=path, decision=Decision.KEEP, reason=excluded[path])
            continue
        candidate = Candidate.of(path, slices[path], settings=settings, held_by=pending.get(path), facts=facts[path])
        left = _left_alone(candidate, settings, refusal=refusal)
        if left is None:
            wanted.append(candidate)
        else:
            entries[path] = left
    planned = {
        entry.partition_path: entry for entry in _within_budget(wanted, settings, refusal=refusal, selecting=selecting)
    }
    entries |= planned
    return ClusteringPlan(
        basis=basis,
        settings=settings,
        entries=tuple(entries[path] for path in sorted(entries)),
        purpose=purpose,
        warnings=_left_out(planned.values(), limits=Budget.of(settings, selecting=selecting).limits),
        strategy=selecting.name if selecting else "size_based",
        strategy_options=dict(selecting.options) if selecting else {},
    )


def _facts(
    path: str, slices: Sequence[FileSlice], *, settings: ClusteringSettings, selecting: Selecting | None
) -> PartitionFacts:
    known = selecting.facts.get(path) if selecting else None
    return known or PartitionFacts.of(path, slices, settings=settings)


def _left_alone(candidate: Candidate, settings: ClusteringSettings, *, refusal: Refusal) -> ClusteringEntry | None:
    """The entry of a partition that is not worth it or that something holds; None for one that may be rewritten."""
    why_not = refusal(candidate, settings)
    if why_not is not None:
        return ClusteringEntry(partition_path=candidate.partition_path, decision=Decision.KEEP, reason=why_not)
    blocking = _blocking(candidate)
    if blocking is None:
        return None
    return ClusteringEntry(
        partition_path=candidate.partition_path,
        decision=Decision.BLOCKED,
        reason=f"{_gain(candidate, settings)}; blocked{blocking}",
        blocked_by=candidate.held_by,
    )


def _blocking(candidate: Candidate) -> str | None:
    if candidate.held_by:
        return f" by the pending plan {candidate.held_by}"
    problem = naming_problem(candidate.partition_path, reserved=_RESERVED)
    return problem and f": {problem}, so that it cannot be selected"


def _within_budget(
    candidates: Sequence[Candidate], settings: ClusteringSettings, *, refusal: Refusal, selecting: Selecting | None
) -> Sequence[ClusteringEntry]:
    """Choose in the order of the strategy, and pass over what no longer fits."""
    budget = Budget.of(settings, selecting=selecting)
    entries = []
    for candidate, remark in _ranked(candidates, selecting=selecting):
        granted = budget.grant(candidate, is_worth_it=lambda part: refusal(part, settings) is None)
        told = f"; {remark}" if remark else ""
        if granted.candidate is None:
            entry = ClusteringEntry(
                partition_path=candidate.partition_path, decision=Decision.KEEP, reason=f"{granted.note}{told}"
            )
        else:
            entry = _chosen(granted.candidate, reason=f"{_gain(granted.candidate, settings)}{granted.note}{told}")
        entries.append(entry)
    return entries


def _ranked(candidates: Sequence[Candidate], *, selecting: Selecting | None) -> Sequence[tuple[Candidate, str]]:
    if selecting is not None:
        return selecting.ranked(candidates)
    return [(one, "") for one in sorted(candidates, key=lambda one: (-one.files_removed, one.partition_path))]


def _chosen(candidate: Candidate, *, reason: str) -> ClusteringEntry:
    return ClusteringEntry(
        partition_path=candidate.partition_path,
        decision=Decision.CLUSTER,
        reason=reason,
        groups=tuple(group.planned(candidate.partition_path) for group in candidate.groups),
        group_limit=candidate.group_limit,
    )


def _gain(candidate: Candidate, settings: ClusteringSettings) -> str:
    files = counted(candidate.input_file_count, "small file")
    columns = ", ".join(settings.sort_columns)
    if settings.execution_strategy is ExecutionStrategy.SINGLE_FILE_SORT:
        verb = "is sorted" if candidate.input_file_count == 1 else "are sorted, each for itself,"
        return f"{files} of {human_bytes(candidate.input_bytes)} {verb} by {columns}"
    order = f", sorted by {columns}" if settings.sort_columns else ""
    return (
        f"{files} of {human_bytes(candidate.input_bytes)} become {candidate.output_file_count} in "
        f"{counted(len(candidate.groups), 'group')}{order}"
    )


def _left_out(entries: Collection[ClusteringEntry], *, limits: str) -> tuple[str, ...]:
    chosen = sum(entry.decision is Decision.CLUSTER for entry in entries)
    if chosen == len(entries):
        return ()
    planned = f"{chosen:,} of {counted(len(entries), 'partition')} with small files are planned"
    return (f"{planned}; the rest is left for the next run, because {limits}",)
