"""What strategies of clustering look at: partitions with what is known of them, and what rewriting one gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.plan import ClusteringSettings, ExecutionStrategy
from airflow_hudi_maint.core.planning.clustering_groups import ClusteringGroup, is_small, pack_groups


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """A partition as a strategy sees it before any group is made. Bytes are of the latest file slices, with log files.

    Moments are aware, and None where they are not known or nobody asked for them. ``last_change`` is when data was
    written last: clustering and compaction do not count. ``last_clustered`` is the last clustering that the active
    timeline has, ``last_sorted`` the last one with the sort columns of the plan, and ``oldest_small_file`` when the
    oldest of the small files was written.
    """

    partition_path: str
    total_bytes: int
    file_count: int
    small_file_count: int
    last_change: datetime | None = None
    last_clustered: datetime | None = None
    last_sorted: datetime | None = None
    oldest_small_file: datetime | None = None

    @classmethod
    def of(cls, partition_path: str, slices: Sequence[FileSlice], *, settings: ClusteringSettings) -> PartitionFacts:
        """What the latest slices of a partition tell alone."""
        return cls(
            partition_path=partition_path,
            total_bytes=sum(one.total_bytes for one in slices),
            file_count=len(slices),
            small_file_count=sum(is_small(one, small_file_bytes=settings.small_file_bytes) for one in slices),
        )

    @property
    def waiting_since(self) -> datetime | None:
        """Since when its small files wait: since its last clustering, or since the oldest of them was written."""
        return self.last_clustered or self.oldest_small_file

    @property
    def is_sorted(self) -> bool:
        """Whether nothing was written since a clustering by the sort columns of the plan."""
        return self.last_sorted is not None and self.last_change is not None and self.last_change <= self.last_sorted


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A partition as if no plan held any of it: its small files, the groups that Hudi would make, and what holds it.

    ``sorts`` says whether the plan has sort columns, ``is_divisible`` whether its first groups may be planned alone.
    """

    partition_path: str
    file_count: int
    small_file_count: int
    groups: tuple[ClusteringGroup, ...]
    held_by: str | None
    facts: PartitionFacts
    sorts: bool = False
    is_divisible: bool = True

    @classmethod
    def of(
        cls,
        partition_path: str,
        slices: Sequence[FileSlice],
        *,
        settings: ClusteringSettings,
        held_by: str | None,
        facts: PartitionFacts | None = None,
    ) -> Candidate:
        """Look at a partition's latest slices."""
        pending = sorted({one.pending_instant for one in slices if one.pending_instant})
        known = facts or PartitionFacts.of(partition_path, slices, settings=settings)
        return cls(
            partition_path=partition_path,
            file_count=known.file_count,
            small_file_count=known.small_file_count,
            groups=pack_groups(slices, settings),
            held_by=held_by or (pending[0] if pending else None),
            facts=known,
            sorts=bool(settings.sort_columns),
            # Hudi takes files for single-file sort in an order of its own, so that the first of them are not known.
            is_divisible=settings.execution_strategy is not ExecutionStrategy.SINGLE_FILE_SORT,
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
    def unsorted_file_count(self) -> int:
        """How many of its files would be sorted that are not yet; without sort columns none."""
        return self.input_file_count if self.sorts and not self.facts.is_sorted else 0

    @property
    def input_bytes(self) -> int:
        """The bytes that are read."""
        return sum(group.input_bytes for group in self.groups)

    @property
    def group_limit(self) -> int:
        """How far Hudi has to count groups to make the last of these."""
        return self.groups[-1].position if self.groups else 0
