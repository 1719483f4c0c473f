"""When partitions will expire: by the planner's own rules, and with exact dates where a policy goes by time."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_hudi_maint.core.model.instant import moment_instant
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.plan import Decision
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.statistics import PartitionStatistics
from airflow_hudi_maint.core.planning.expiry import ExpiryClock, ExpiryGuards, plan_expiry
from airflow_hudi_maint.core.planning.expiry_forecast import ExpiryForecast, Horizon, forecast_expiry

sys.path.insert(0, str(Path(__file__).parent))
from builders import NOW, basis, partition, policies, statistics

SCHEME = PartitionScheme(fields=("region", "day"), hive_style=True)
WALL = ExpiryGuards(clock=ExpiryClock.WALL)
BY_TIME = ("region=*/day=*/ KEEP_BY_TIME 60",)


def aged(path: str, days: float, *, total_bytes: int = 10) -> PartitionStatistics:
    """A partition that was modified so many days before now."""
    return partition(path, modified=moment_instant(NOW - timedelta(days=days), zone=UTC), total_bytes=total_bytes)


def forecast(
    *partitions: PartitionStatistics, by: PolicySet, now: datetime = NOW, guards: ExpiryGuards = WALL, **more: object
) -> ExpiryForecast:
    arguments = {"field_types": {"day": "int"}, "pending": {}, **more}
    return forecast_expiry(
        statistics(*partitions),
        by,
        scheme=SCHEME,
        zone=UTC,
        now=now,
        guards=guards,
        **arguments,  # type: ignore[arg-type]
    )


def horizons(found: ExpiryForecast) -> dict[str, Horizon]:
    return {one.partition_path.removeprefix("region="): one.horizon for one in found.entries}


def test_a_partition_under_keep_by_time_is_due_when_it_is_as_old_as_is_kept() -> None:
    """It goes after that moment: at the moment itself the planner still keeps it."""
    found = forecast(aged("region=eu/day=1", 40), by=policies(*BY_TIME))
    (entry,) = found.entries
    assert entry.due == NOW + timedelta(days=20)
    for moment, decision in ((entry.due, Decision.KEEP), (entry.due + timedelta(milliseconds=1), Decision.EXPIRE)):
        plan = plan_expiry(
            statistics(aged("region=eu/day=1", 40)),
            policies(*BY_TIME),
            scheme=SCHEME,
            field_types={},
            pending={},
            basis=basis(),
            zone=UTC,
            now=moment,
            guards=WALL,
        )
        assert plan.entries[0].decision is decision


@pytest.mark.parametrize(
    ("days", "horizon"),
    [
        (60.1, Horizon.NOW),
        (60, Horizon.WEEK),
        (53, Horizon.WEEK),
        (52.9, Horizon.MONTH),
        (30, Horizon.MONTH),
        (29.9, Horizon.LATER),
        (0, Horizon.LATER),
    ],
)
def test_horizons_end_with_their_last_day(days: float, horizon: Horizon) -> None:
    assert horizons(forecast(aged("region=eu/day=1", days), by=policies(*BY_TIME))) == {"eu/day=1": horizon}


def test_the_sub_partition_that_is_next_to_go_is_named_where_a_group_is_full() -> None:
    by = policies("region=eu/ KEEP_BY_COUNT 2", "region=us/ KEEP_BY_COUNT 3", "region=lab/ KEEP_BY_COUNT 1")
    found = forecast(
        *(aged(f"region=eu/day={day}", 1) for day in (9, 10, 8)),
        *(aged(f"region=us/day={day}", 1) for day in (1, 2)),
        aged("region=lab/day=7", 1),
        by=by,
    )
    assert horizons(found) == {
        "eu/day=8": Horizon.NOW,
        "eu/day=9": Horizon.NEXT,
        "eu/day=10": Horizon.KEPT,
        "us/day=1": Horizon.KEPT,
        "us/day=2": Horizon.KEPT,
        "lab/day=7": Horizon.NEXT,
    }
    assert all(one.due is None for one in found.entries)


def test_the_next_to_go_by_size_is_what_a_tenth_more_bytes_push_out() -> None:
    sizes = {1: 30, 2: 30, 3: 35}
    rows = [aged(f"region=eu/day={day}", 1, total_bytes=size) for day, size in sizes.items()]
    assert horizons(forecast(*rows, by=policies("region=eu/ KEEP_BY_SIZE 100"))) == {
        "eu/day=1": Horizon.NEXT,
        "eu/day=2": Horizon.KEPT,
        "eu/day=3": Horizon.KEPT,
    }
    assert set(horizons(forecast(*rows, by=policies("region=eu/ KEEP_BY_SIZE 200"))).values()) == {Horizon.KEPT}


def test_the_newest_of_a_group_has_no_date() -> None:
    """The planner keeps it however old it gets, so a date would not be true."""
    found = forecast(aged("region=eu/day=1", 9), aged("region=eu/day=2", 8), by=policies("region=*/ KEEP_BY_TIME 30"))
    assert horizons(found) == {"eu/day=1": Horizon.MONTH, "eu/day=2": Horizon.KEPT}
    assert "it is the newest of day" in found.entries[1].reason
    assert found.entries[1].due is None


def test_what_is_blocked_protected_or_without_a_policy_is_told_apart() -> None:
    rows = [aged(f"region={region}/day=1", 99) for region in ("eu", "us", "uk", "za")]
    by = policies(*(f"region={region}/day=*/ KEEP_BY_TIME 60" for region in ("eu", "us", "uk")))
    guards = ExpiryGuards(clock=ExpiryClock.WALL, protected=("region=uk/",))
    found = forecast(*rows, by=by, guards=guards, pending={"region=us/day=1": "20261129000000000"})
    assert horizons(found) == {
        "eu/day=1": Horizon.NOW,
        "us/day=1": Horizon.BLOCKED,
        "uk/day=1": Horizon.KEPT,
        "za/day=1": Horizon.UNCOVERED,
    }


def test_by_the_tables_clock_nothing_expires_now_that_its_newest_data_does_not_let_go() -> None:
    """The date has passed, and it will go as soon as new data comes."""
    rows = (aged("region=eu/day=1", 100), aged("region=eu/day=2", 50))
    found = forecast(*rows, by=policies(*BY_TIME), guards=ExpiryGuards())
    assert horizons(found) == {"eu/day=1": Horizon.WEEK, "eu/day=2": Horizon.MONTH}


def test_dates_go_by_the_clock_of_the_policy() -> None:
    created = {"region=eu/day=1": moment_instant(NOW - timedelta(days=59), zone=UTC)}
    by = policies("region=*/day=*/ KEEP_BY_TIME 60 clock=created")
    (entry,) = forecast(aged("region=eu/day=1", 1), by=by, created=created).entries
    assert (entry.due, entry.horizon) == (NOW + timedelta(days=1), Horizon.WEEK)
    by = policies("region=*/day=*/ KEEP_BY_TIME 10 clock=event_time eventTimePattern=day=%Y-%m-%d")
    (entry,) = forecast(aged("region=eu/day=2026-11-25", 1), by=by).entries
    assert entry.due == datetime(2026, 12, 6, tzinfo=UTC)
    (entry,) = forecast(aged("region=eu/day=soon", 1), by=by).entries
    assert (entry.due, entry.dated, entry.horizon) == (None, None, Horizon.KEPT)


def test_a_policy_of_more_days_than_there_are_dates_is_no_error() -> None:
    (entry,) = forecast(aged("region=eu/day=1", 1), by=policies(f"region=*/day=*/ KEEP_BY_TIME {10**17}")).entries
    assert entry.horizon is Horizon.LATER


def test_totals_and_the_soonest_are_in_the_order_of_time() -> None:
    rows = [aged(f"region=eu/day={day}", day, total_bytes=day) for day in (70, 58, 57, 40, 1)]
    found = forecast(*rows, by=policies(*BY_TIME))
    assert [(one.horizon, one.partitions, one.bytes) for one in found.totals] == [
        (Horizon.NOW, 1, 70),
        (Horizon.WEEK, 2, 115),
        (Horizon.MONTH, 1, 40),
        (Horizon.LATER, 1, 1),
    ]
    assert [one.total_bytes for one in found.soonest(3)] == [70, 58, 57]
