from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.expiry_guards import ExpiryGuards
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.planning.expiry_simulation import SimulatedDay, compare_simulations, simulate
from tests.unit.core.planning.builders import NO_LIMITS, partition, policies, statistics

SCHEME = PartitionScheme(fields=("day",), hive_style=True)


def gathered(day: int, *partitions: tuple[str, int]) -> TableStatistics:
    """Statistics that were gathered on a day of November, of partitions with the day of their last change."""
    rows = [partition(path, modified=f"202611{modified:02}060000000", total_bytes=10) for path, modified in partitions]
    return replace(statistics(*rows), gathered_at=f"2026-11-{day:02}T12:00:00+00:00")


HISTORY = (
    gathered(10, ("day=1", 1), ("day=2", 2), ("day=9", 9)),
    gathered(12, ("day=1", 1), ("day=2", 12), ("day=9", 9), ("day=12", 12)),
)


def replay(
    by: PolicySet, *, since: int = 10, until: int | None = None, guards: ExpiryGuards = NO_LIMITS
) -> tuple[SimulatedDay, ...]:
    return simulate(
        HISTORY[::-1],
        by,
        since=date(2026, 11, since),
        until=None if until is None else date(2026, 11, until),
        scheme=SCHEME,
        zone=UTC,
        guards=guards,
    )


def drops(days: tuple[SimulatedDay, ...]) -> dict[int, list[str]]:
    return {one.day.day: [entry.partition_path for entry in one.expired] for one in days}


def test_each_day_drops_what_it_would_have_dropped() -> None:
    """What a day drops is gone on the next, and comes back when it is written anew."""
    days = replay(policies("/ KEEP_BY_COUNT 2"))
    assert {10: ["day=1"], 11: [], 12: ["day=2"]} == drops(days)
    assert "2026-11-10: 1 partition would have expired (10 B), 2 kept" == str(days[0])


def test_days_count_from_the_data_of_that_day() -> None:
    """A day knows only what was gathered by then."""
    assert {10: ["day=1"], 11: [], 12: []} == drops(replay(policies("/ KEEP_BY_TIME 7")))


def test_days_without_statistics_are_left_out() -> None:
    """Before the first statistics nothing is known; after the last, they stand for the days to come."""
    assert [10, 11] == [one.day.day for one in replay(policies("/ KEEP_BY_COUNT 2"), since=1, until=11)]
    assert [13, 14] == [one.day.day for one in replay(policies("/ KEEP_BY_COUNT 2"), since=13, until=14)]
    with pytest.raises(InvalidSettingError, match="no stored statistics"):
        simulate((), PolicySet(), since=date(2026, 11, 1), scheme=SCHEME, zone=UTC)


def test_a_day_that_a_guard_stops_drops_nothing() -> None:
    """It says what would have been refused, and the partitions are still there on the next day."""
    days = replay(policies("/ KEEP_BY_COUNT 1"), guards=replace(NO_LIMITS, max_partitions=1), until=11)
    assert {10: ["day=1", "day=2"], 11: ["day=1", "day=2"]} == drops(days)
    assert "2026-11-10: 2 partitions would have been refused (20 B), 1 kept" == str(days[0])


def test_two_sets_of_policies_are_compared_by_partition() -> None:
    """A partition that both drop on the same day is no difference."""
    before, after = replay(policies("/ KEEP_BY_COUNT 2")), replay(policies("/ KEEP_BY_COUNT 1"))
    found = [(one.partition_path, one.before, one.after) for one in compare_simulations(before, after)]
    assert [("day=2", date(2026, 11, 12), date(2026, 11, 10)), ("day=9", None, date(2026, 11, 12))] == found


def test_growth_is_held_against_the_day_before_that_dropped_something() -> None:
    """As a run is held against the run before it."""
    history = (
        gathered(10, *((f"day={number}", number) for number in range(1, 5))),
        gathered(11, *((f"day={number}", number) for number in range(1, 9))),
    )
    (first, second) = simulate(
        history,
        policies("/ KEEP_BY_COUNT 3"),
        since=date(2026, 11, 10),
        scheme=SCHEME,
        zone=UTC,
        guards=replace(NO_LIMITS, max_growth=3),
    )
    assert (1, ()) == (len(first.expired), first.refused)
    assert (4, 1) == (len(second.expired), len(second.refused))
    assert "4.0 times the 1 partition of the run before" in second.refused[0]
