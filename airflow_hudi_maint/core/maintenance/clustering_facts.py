"""What strategies of clustering want to know beside the files: when data of a partition changed, and was rewritten."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.maintenance.statistics import gather_statistics
from airflow_hudi_maint.core.model.commit import Operation
from airflow_hudi_maint.core.model.instant import Action, Instant, known_moment
from airflow_hudi_maint.core.planning.clustering_candidates import PartitionFacts
from airflow_hudi_maint.core.planning.clustering_groups import is_small

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.file_slice import FileSlice
    from airflow_hudi_maint.core.model.plan import ClusteringSettings
    from airflow_hudi_maint.core.model.timeline import Timeline

_log = logging.getLogger(__name__)

_SORT_COLUMNS = "hoodie.clustering.plan.strategy.sort.columns"


def partition_facts(
    workspace: Workspace,
    slices: Mapping[str, Sequence[FileSlice]],
    settings: ClusteringSettings,
    *,
    timeline: Timeline,
    now: datetime,
) -> dict[str, PartitionFacts]:
    """Gather the facts of each partition.

    The last change is that of partition statistics, which are gathered anew (and kept, as always); a file that is
    younger than they are counts as a change. Clusterings are those of the active timeline.
    """
    zone = workspace.table.zone
    statistics = gather_statistics(workspace, now=now).statistics
    changes = {row.partition_path: row.last_modified_instant for row in statistics.partitions}
    clustered = _last_by_partition(workspace, timeline=timeline)
    wanted = ",".join(settings.sort_columns)
    sorts = {one.requested_time for one in _sorting(workspace, clustered.values(), columns=wanted)} if wanted else set()
    facts = {}
    for path, members in slices.items():
        changed = _latest(changes.get(path), members, seen=statistics.as_of_instant)
        last = clustered.get(path)
        small = [one for one in members if is_small(one, small_file_bytes=settings.small_file_bytes)]
        facts[path] = replace(
            PartitionFacts.of(path, members, settings=settings),
            last_change=known_moment(changed, zone=zone),
            last_clustered=known_moment(last.requested_time if last else None, zone=zone),
            last_sorted=known_moment(last.requested_time if last and last.requested_time in sorts else None, zone=zone),
            oldest_small_file=known_moment(min((one.base_instant for one in small), default=None), zone=zone),
        )
    return facts


def _latest(changed: str | None, members: Sequence[FileSlice], *, seen: str) -> str | None:
    younger = [one.base_instant for one in members if one.base_instant > seen]
    return max(filter(None, (changed, *younger)), default=None)


def _last_by_partition(workspace: Workspace, *, timeline: Timeline) -> dict[str, Instant]:
    """The last completed clustering of each partition."""
    table = workspace.table
    replacing = [one for one in timeline.completed if one.action is Action.REPLACE_COMMIT]
    found: dict[str, Instant] = {}
    for instant, metadata in zip(replacing, table.commit_metadata_of(replacing, files=False), strict=True):
        if metadata.operation == Operation.CLUSTER:
            found.update(dict.fromkeys(metadata.touched_partitions, instant))
    return found


def _sorting(workspace: Workspace, clusterings: Iterable[Instant], *, columns: str) -> Iterator[Instant]:
    """Those that sorted by just these columns."""
    for instant in sorted(set(clusterings), key=str):
        try:
            plan = workspace.table.instants.clustering_plan(instant)
        except CorruptTableError as error:
            _log.warning("What %s sorted by is not known: %s", instant, error)
            continue
        if plan is not None and plan.parameters.get(_SORT_COLUMNS) == columns:
            yield instant
