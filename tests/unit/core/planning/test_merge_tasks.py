"""How the groups of a merge are shared among the tasks of one Spark job."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.planning.merge_tasks import merge_tasks


def test_groups_near_the_target_have_a_task_each() -> None:
    assert sorted(merge_tasks([100, 100, 100], target_file_bytes=100)) == [(0,), (1,), (2,)]


def test_tiny_groups_share_as_many_tasks_as_their_bytes_fill_files() -> None:
    tasks = merge_tasks([10] * 95, target_file_bytes=100)
    assert len(tasks) == 10
    assert {9, 10} == {len(task) for task in tasks}


def test_groups_without_a_byte_are_one_task_and_no_group_is_none() -> None:
    assert merge_tasks([0, 0], target_file_bytes=100) == ((0, 1),)
    assert merge_tasks([], target_file_bytes=100) == ()


@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(1, 500))
def test_every_group_is_in_one_task_and_no_task_is_empty(sizes: list[int], target: int) -> None:
    tasks = merge_tasks(sizes, target_file_bytes=target)
    assert sorted(number for task in tasks for number in task) == list(range(len(sizes)))
    assert all(tasks)
    assert len(tasks) == min(len(sizes), max(1, -(-sum(sizes) // target)))


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.integers(1, 500))
def test_no_task_has_more_than_an_even_share_and_one_group(sizes: list[int], target: int) -> None:
    tasks = merge_tasks(sizes, target_file_bytes=target)
    share = sum(sizes) / len(tasks)
    assert max(sum(sizes[number] for number in task) for task in tasks) <= share + max(sizes)


def test_a_target_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="target_file_bytes=0"):
        merge_tasks([1], target_file_bytes=0)
