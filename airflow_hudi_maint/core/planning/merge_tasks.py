"""Share the groups of a merge among the tasks of one Spark job."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def merge_tasks(group_bytes: Sequence[int], *, target_file_bytes: int) -> tuple[tuple[int, ...], ...]:
    """Return, for each task, the numbers of its groups.

    There are as many tasks as merged files of the target size would hold all bytes, rounded up, and never more than
    groups: groups near the target have a task each, tiny ones share theirs. Tasks are evened out by bytes, the largest
    group first, so that none is left alone at the end; the same groups make the same tasks.

    >>> merge_tasks([100, 90, 95], target_file_bytes=100)
    ((0,), (2,), (1,))
    >>> merge_tasks([6, 1, 2, 3], target_file_bytes=6)
    ((0,), (1, 2, 3))

    Raises ValueError for a target below one byte.
    """
    if target_file_bytes < 1:
        raise ValueError(f"target_file_bytes={target_file_bytes}; expected at least 1")
    count = min(len(group_bytes), max(1, -(-sum(group_bytes) // target_file_bytes)))
    tasks: list[list[int]] = [[] for _ in range(count)]
    loads = [(0, 0, number) for number in range(count)]
    for group in sorted(range(len(group_bytes)), key=lambda number: (-group_bytes[number], number)):
        load, groups, task = heapq.heappop(loads)
        tasks[task].append(group)
        heapq.heappush(loads, (load + group_bytes[group], groups + 1, task))
    return tuple(tuple(sorted(task)) for task in tasks)
