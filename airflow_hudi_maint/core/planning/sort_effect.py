"""Whether sorting helped: how many files of a partition may hold a value, before and after."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

from airflow_hudi_maint.core.model.file_facts import FileFacts
from airflow_hudi_maint.core.model.verification import SortEffect
from airflow_hudi_maint.core.planning.rewrite_checks import PartitionFacts


def sort_effects(partitions: Sequence[PartitionFacts], *, columns: Sequence[str]) -> tuple[SortEffect, ...]:
    """Measure each sort column over the partitions whose files of before and after all tell their ranges.

    A column that no partition tells is left out. Log files do not count: what lies in them has no range.
    """
    found = (_effect(partitions, column=column) for column in columns)
    return tuple(one for one in found if one is not None)


def mean_depth(ranges: Sequence[tuple[Any, Any]]) -> float:
    """Of how many files a value may be in one of: the mean over the least and greatest values of all of them.

    >>> mean_depth([(1, 3), (2, 4)]), mean_depth([(1, 2), (3, 4)])
    (1.5, 1.0)
    """
    if not ranges:
        return 0.0
    starts = sorted(start for start, _ in ranges)
    ends = sorted(end for _, end in ranges)
    points = [point for both in ranges for point in both]
    return sum(bisect_right(starts, point) - bisect_left(ends, point) for point in points) / len(points)


def _effect(partitions: Sequence[PartitionFacts], *, column: str) -> SortEffect | None:
    """Partitions count by their files: by the share of the work that a query has with them."""
    before: list[tuple[int, float]] = []
    after: list[tuple[int, float]] = []
    for one in partitions:
        files = (*one.inputs, *one.outputs)
        if one.lost or not one.inputs or not one.outputs or any(_is_silent(file, column) for file in files):
            continue
        if not _is_of_one_kind(files, column):
            continue
        for found, group in ((before, one.inputs), (after, one.outputs)):
            ranges = [file.ranges[column] for file in group if column in file.ranges]
            if ranges:
                found.append((len(ranges), mean_depth(ranges)))
    if not before or not after:
        return None
    return SortEffect(
        column=column,
        files_before=sum(count for count, _ in before),
        files_after=sum(count for count, _ in after),
        depth_before=_weighted(before),
        depth_after=_weighted(after),
    )


def _is_silent(file: FileFacts, column: str) -> bool:
    return column in file.unranged


def _is_of_one_kind(files: Sequence[FileFacts], column: str) -> bool:
    """Whether the ranges compare: numbers of a column that became a text do not compare with its texts."""
    try:
        sorted(bound for file in files for bound in file.ranges.get(column, ()))  # type: ignore[type-var]
    except TypeError:
        return False
    return True


def _weighted(found: Sequence[tuple[int, float]]) -> float:
    return round(sum(count * depth for count, depth in found) / sum(count for count, _ in found), 3)
