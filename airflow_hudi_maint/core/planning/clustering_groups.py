"""The groups that Hudi puts a partition's small files into.

Source: Hudi's ``PartitionAwareClusteringPlanStrategy`` with ``SparkSizeBasedClusteringPlanStrategy``, and
``SparkSingleFileSortPlanStrategy``. ``tests/golden/clustering_plans.json`` holds what three releases planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.plan import ClusteringSettings, ExecutionStrategy, PlannedGroup, PlannedInput

ASSUMED_BASE_FILE_BYTES = 120 * 1024 * 1024
"""What Hudi takes for a slice without base file: the default of ``hoodie.parquet.max.file.size``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringGroup:
    """File slices of one partition that are rewritten together, and how many files that makes.

    ``position`` counts the groups of the partition from 1 on, with those that Hudi drops in the end.
    """

    slices: tuple[FileSlice, ...]
    output_file_count: int
    position: int = 1

    @property
    def packed_bytes(self) -> int:
        """The bytes that Hudi packs by: base files alone."""
        return sum(map(packing_bytes, self.slices))

    @property
    def input_bytes(self) -> int:
        """The bytes that are read: base and log files."""
        return sum(one.total_bytes for one in self.slices)

    @property
    def is_lone(self) -> bool:
        """Whether one file is made of one."""
        return len(self.slices) == self.output_file_count == 1

    def planned(self, partition_path: str) -> PlannedGroup:
        """The group as a plan holds it: files by name."""
        return PlannedGroup(
            partition_path=partition_path,
            inputs=tuple(map(PlannedInput.of, self.slices)),
            output_file_count=self.output_file_count,
        )


def packing_bytes(file_slice: FileSlice) -> int:
    """The size by which Hudi packs a slice: its base file, or an assumed size without one; log files do not count."""
    return file_slice.base_bytes if file_slice.base_file else ASSUMED_BASE_FILE_BYTES


def is_small(file_slice: FileSlice, *, small_file_bytes: int) -> bool:
    """Whether a slice's base file is below the limit; a slice without one is small, whatever its log files hold."""
    return file_slice.base_bytes < small_file_bytes


def pack_groups(slices: Iterable[FileSlice], settings: ClusteringSettings) -> tuple[ClusteringGroup, ...]:
    """Pack the small slices of one partition into groups as Hudi does.

    The largest goes first; a group closes when the next slice would lift it over ``max_group_bytes``, and makes as many
    files as its bytes fill at ``target_file_bytes``, rounded up. Slices of equal size are taken in order of file id,
    where Hudi has no order. Without sort columns a group that makes one file of one is dropped: by 1.2 wherever it
    stands, before that (``keeps_lone_groups``) only the last group, when it holds one slice. With single-file sort
    each small slice is a group.

    >>> from airflow_hudi_maint.core.model.file_slice import BaseFile
    >>> def file_slice(name: str, size: int) -> FileSlice:
    ...     file = BaseFile(name=name, file_id=name, instant="20261130000000000", bytes=size)
    ...     return FileSlice(partition_path="", file_id=name, base_instant=file.instant, base_file=file)
    >>> settings = ClusteringSettings(target_file_bytes=100, small_file_bytes=60, max_group_bytes=120)
    >>> sizes = {"a": 20, "b": 50, "c": 55, "d": 5}
    >>> groups = pack_groups([file_slice(name, size) for name, size in sizes.items()], settings)
    >>> [([one.file_id for one in group.slices], group.output_file_count) for group in groups]
    [(['c', 'b'], 2), (['a', 'd'], 1)]
    """
    small = [one for one in slices if is_small(one, small_file_bytes=settings.small_file_bytes)]
    small.sort(key=lambda each: (-packing_bytes(each), each.file_id))
    if settings.execution_strategy is ExecutionStrategy.SINGLE_FILE_SORT:
        return tuple(
            ClusteringGroup(slices=(one,), output_file_count=1, position=number) for number, one in enumerate(small, 1)
        )
    groups = tuple(_packed(small, settings))
    if settings.sort_columns:
        return groups
    if settings.keeps_lone_groups:
        return groups[:-1] if groups and len(groups[-1].slices) == 1 else groups
    return tuple(group for group in groups if not group.is_lone)


def _packed(small: Iterable[FileSlice], settings: ClusteringSettings) -> Iterator[ClusteringGroup]:
    packed: list[list[FileSlice]] = []
    filled = 0
    for one in small:
        size = packing_bytes(one)
        if not packed or filled + size > settings.max_group_bytes:
            packed.append([])
            filled = 0
        packed[-1].append(one)
        filled += size
    for position, members in enumerate(packed, 1):
        size = sum(map(packing_bytes, members))
        outputs = max(-(-size // settings.target_file_bytes), 1)
        yield ClusteringGroup(slices=tuple(members), output_file_count=outputs, position=position)
