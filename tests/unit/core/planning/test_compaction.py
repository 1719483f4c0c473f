"""Which file groups are compacted, why and why not, and what Hudi is told of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.errors import CorruptTableError, InvalidSettingError, UnknownPartitionError
from airflow_hudi_maint.core.model.compaction_plan import CompactionPlan, CompactionSettings
from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice, LogFile
from airflow_hudi_maint.core.model.instant import Action, Instant, State
from airflow_hudi_maint.core.model.plan_basis import PlanBasis
from airflow_hudi_maint.core.model.statistics import Watermark
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.planning.compaction import (
    compaction_options,
    delta_commits_since_compaction,
    partition_pattern,
    plan_compaction,
)

KIB = 1024
BASE_INSTANT = "20261130100000000"
BASIS = PlanBasis(
    base_path="/lake/trips",
    table_name="trips",
    table_version=9,
    watermark=Watermark(requested_time=BASE_INSTANT, completion_time=None, pending=()),
    created_at="2026-11-30T10:00:00.000+00:00",
)


def _slice(
    path: str, file_id: str, *, base: int = 100 * KIB, logs: tuple[int, ...] = (), held: str | None = None
) -> FileSlice:
    return FileSlice(
        partition_path=path,
        file_id=file_id,
        base_instant=BASE_INSTANT,
        base_file=BaseFile(name=f"{file_id}.parquet", file_id=file_id, instant=BASE_INSTANT, bytes=base)
        if base
        else None,
        log_files=tuple(
            LogFile(
                name=f".{file_id}.log.{number}",
                file_id=file_id,
                instant=BASE_INSTANT,
                version=number,
                write_token="",
                bytes=size,
            )
            for number, size in enumerate(logs, 1)
        ),
        pending_instant=held,
    )


def _plan(
    slices: Mapping[str, list[FileSlice]], *, delta_commits: int = 3, partitions: Any = None, **limits: Any
) -> CompactionPlan:
    return plan_compaction(
        slices, CompactionSettings(**limits), basis=BASIS, delta_commits=delta_commits, partitions=partitions
    )


def _decisions(plan: CompactionPlan) -> dict[str, str]:
    return {entry.partition_path: str(entry.decision) for entry in plan.entries}


TABLE = {
    "day=1": [
        _slice("day=1", "a", logs=(10 * KIB, 20 * KIB)),
        _slice("day=1", "b", logs=(1 * KIB,)),
        _slice("day=1", "c"),
    ],
    "day=2": [_slice("day=2", "d", logs=(90 * KIB,))],
    "day=3": [_slice("day=3", "e")],
    "day=4": [_slice("day=4", "f", logs=(5 * KIB,), held="20261130090000000")],
}


def test_every_file_group_with_a_log_file_is_compacted_by_default() -> None:
    """Each partition says how many log files, of how many bytes, and how that compares with the base files."""
    plan = _plan(TABLE)
    assert {one.partition_path: one.reason for one in plan.entries} == {
        "day=1": "2 file groups with 3 log files of 31 KiB, 0.15 of its base files",
        "day=2": "1 file group with 1 log file of 90 KiB, 0.90 of its base files",
        "day=3": "no log file in 1 file group",
        "day=4": "1 file group due, held by the pending plan 20261130090000000",
    }
    assert _decisions(plan) == {"day=1": "compact", "day=2": "compact", "day=3": "keep", "day=4": "blocked"}
    assert plan.file_groups == {("day=1", "a"), ("day=1", "b"), ("day=2", "d")}


@pytest.mark.parametrize(
    ("limits", "chosen", "reason"),
    [
        ({"min_log_files": 2}, {"a"}, "(1 below the limits)"),
        ({"min_log_bytes": 50 * KIB}, {"d"}, "at most 2 log files and 30 KiB in one"),
        ({"min_log_ratio": 0.5}, {"d"}, "0.15 of its base files, below min_log_ratio=0.5"),
        ({"max_input_bytes": 200 * KIB}, {"d"}, "left for the next run: max_input_bytes=204800 reached"),
        ({"max_input_bytes": 1}, {"d"}, "left for the next run"),
    ],
)
def test_each_limit_leaves_file_groups_out_and_says_so(limits: dict[str, Any], chosen: set[str], reason: str) -> None:
    """Limits of file groups, of partitions and of the whole plan; the first partition always has its turn."""
    plan = _plan(TABLE, **limits)
    assert {file_id for _, file_id in plan.file_groups} == chosen
    assert reason in plan.entries[0].reason
    assert bool(plan.warnings) == ("max_input_bytes" in limits)


def test_too_few_delta_commits_leave_everything() -> None:
    """The limit is on the whole table, and each partition says what it would have."""
    plan = _plan(TABLE, delta_commits=4, min_delta_commits=5)
    assert not plan.chosen
    assert plan.entries[0].reason.endswith("; 4 delta commits since the last compaction, below 5")
    assert _plan(TABLE, delta_commits=5, min_delta_commits=5).chosen


def test_a_file_group_of_log_files_alone_reaches_every_ratio() -> None:
    """There is no base file to compare with."""
    plan = _plan({"day=1": [_slice("day=1", "a", base=0, logs=(1,))]}, min_log_ratio=100)
    assert plan.entries[0].reason == "1 file group with 1 log file of 1 B, without base files"
    assert plan.chosen


def test_only_named_partitions_are_considered() -> None:
    """An unknown name is an error, and no name does not mean every one."""
    assert _decisions(_plan(TABLE, partitions=["day=2"])) == {"day=2": "compact"}
    with pytest.raises(UnknownPartitionError, match="day=9"):
        _plan(TABLE, partitions=["day=9"])
    with pytest.raises(InvalidSettingError, match="names no partition"):
        _plan(TABLE, partitions=[])


@pytest.mark.parametrize(
    "limits",
    [
        {"min_log_files": 0},
        {"min_log_ratio": float("nan")},
        {"min_log_bytes": -1},
        {"max_input_bytes": 0},
        {"min_log_ratio": float("inf")},
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(limits: dict[str, Any]) -> None:
    """The message names it."""
    with pytest.raises(InvalidSettingError, match=next(iter(limits))):
        CompactionSettings(**limits)


def test_a_plan_reads_back_as_it_was_written() -> None:
    """A document that lacks something is refused by its name."""
    plan = _plan(TABLE, min_log_files=2)
    document = plan.to_json()
    assert CompactionPlan.from_json(document, name="x.json") == plan
    with pytest.raises(CorruptTableError, match=r"x\.json"):
        CompactionPlan.from_json({**document, "entries": [{}]}, name="x.json")


def test_hudi_is_told_partitions_and_both_limits_from_1_0_on() -> None:
    """Before, it takes one strategy and plans on the whole table."""
    plan = _plan(TABLE, min_log_files=2, min_log_bytes=7)
    options = compaction_options(plan, release=(1, 2, 0), is_partitioned=True)
    names = [one.rpartition(".")[2] for one in options["hoodie.compaction.strategy"].split(",")]
    assert names == [
        "PartitionRegexBasedCompactionStrategy",
        "LogFileNumBasedCompactionStrategy",
        "LogFileSizeBasedCompactionStrategy",
    ]
    assert options["hoodie.compaction.partition.path.regex"] == r"\A(?:day\=1)\z"
    assert options["hoodie.compaction.logfile.num.threshold"] == "2"
    assert options["hoodie.compaction.logfile.size.threshold"] == "7"
    assert "hoodie.compaction.partition.path.regex" not in compaction_options(
        plan, release=(1, 2, 0), is_partitioned=False
    )
    old = compaction_options(plan, release=(0, 15, 0), is_partitioned=True)
    assert old["hoodie.compaction.strategy"].endswith("strategy.LogFileNumBasedCompactionStrategy")
    assert "hoodie.compaction.partition.path.regex" not in old


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3), st.text(max_size=8))
def test_the_pattern_finds_the_partitions_and_no_other(paths: list[str], other: str) -> None:
    """Whatever characters there are in them: Python takes the same escapes, but for the end of the text."""
    pattern = re.compile(partition_pattern(paths).replace(r"\z", r"\Z"))
    assert all(pattern.search(path) for path in paths)
    assert bool(pattern.search(other)) == (other in paths)


def test_delta_commits_count_from_the_last_compaction_on() -> None:
    """One that was requested before and completed after it counts, a log compaction does not."""

    def completed(requested: str, action: Action, *, completion: str | None = None) -> Instant:
        return Instant(
            requested_time=requested,
            action=action,
            state=State.COMPLETED,
            completion_time=completion or requested,
            file_name=f"{requested}.{action}",
        )

    instants = (
        completed("20261130100000001", Action.DELTA_COMMIT),
        completed("20261130100000002", Action.DELTA_COMMIT, completion="20261130100000009"),
        completed("20261130100000003", Action.COMMIT),
        completed("20261130100000004", Action.DELTA_COMMIT),
        completed("20261130100000005", Action.DELTA_COMMIT),
    )
    timeline = Timeline(instants=instants, log_compactions=frozenset({"20261130100000005"}))
    assert delta_commits_since_compaction(timeline) == 2
    assert delta_commits_since_compaction(Timeline(instants=instants[:2])) == 2
