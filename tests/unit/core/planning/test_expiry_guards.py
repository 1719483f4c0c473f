from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC

import pytest

from airflow_hudi_maint.core.errors import GuardTrippedError, InvalidSettingError
from airflow_hudi_maint.core.model.expiry_guards import ExpiryGuards
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.plan import ExpiryPlan
from airflow_hudi_maint.core.planning.expiry import ExpiryClock, check_guards, guard_problems, plan_expiry
from tests.unit.core.planning.builders import (
    NO_LIMITS,
    NOW,
    basis,
    expired,
    expiry,
    partition,
    policies,
    statistics,
)

DAYS = [partition(f"day={number:02}", total_bytes=10, records=100) for number in range(1, 21)]
KEEP_5 = policies("/ KEEP_BY_COUNT 5")
OLD = "20260101000000000"


def planned(*, previous_expired: int | None = None) -> ExpiryPlan:
    """A plan that drops 15 of 20 partitions."""
    return expiry(*DAYS, by=KEEP_5, fields=("day",), previous_expired=previous_expired)


@pytest.mark.parametrize(
    ("limit", "problem"),
    [
        ({"max_partition_share": 0.7}, "it drops 15 of 20 partitions (75.0%), above max_partition_share=0.7"),
        ({"max_byte_share": 0.7}, "it drops 150 B of 200 B (75.0%), above max_byte_share=0.7"),
        ({"max_record_share": 0.7}, "it drops 1,500 of 2,000 records (75.0%), above max_record_share=0.7"),
        ({"max_partitions": 14}, "it drops 15 partitions, above max_partitions=14"),
        ({"min_partitions_left": 6}, "it leaves 5 partitions, below min_partitions_left=6"),
        ({"max_growth": 3}, "it drops 3.8 times the 4 partitions of the run before (15), above max_growth=3"),
    ],
)
def test_a_guard_says_the_figures_and_the_setting(limit: dict[str, float], problem: str) -> None:
    """Each limit that a plan exceeds is named with what it is held against, and with what would allow it."""
    plan = planned(previous_expired=4)
    guards = replace(NO_LIMITS, **limit)  # type: ignore[arg-type]
    assert (problem,) == guard_problems(plan, guards)
    with pytest.raises(GuardTrippedError, match=r"refused: it .* the plan is at /plans/1\.json"):
        check_guards(plan, guards, path="/plans/1.json")


@pytest.mark.parametrize(
    "limit",
    [
        {"max_partition_share": 0.75},
        {"max_byte_share": 0.75},
        {"max_record_share": 0.75},
        {"max_partitions": 15},
        {"min_partitions_left": 5},
        {"max_growth": 3.75},
    ],
)
def test_exactly_the_limit_is_allowed(limit: dict[str, float]) -> None:
    """A plan at a limit passes."""
    guards = replace(NO_LIMITS, **limit)  # type: ignore[arg-type]
    assert () == guard_problems(planned(previous_expired=4), guards)


def test_a_share_is_no_product_that_rounds() -> None:
    """29 of 100 is exactly 0.29, though 0.29 times 100 is less than 29."""
    rows = [partition(f"day={number:03}", total_bytes=1, records=1) for number in range(100)]
    plan = expiry(*rows, by=policies("/ KEEP_BY_COUNT 71"), fields=("day",))
    guards = replace(NO_LIMITS, max_partition_share=0.29, max_byte_share=0.29, max_record_share=0.29)
    assert () == guard_problems(plan, guards)


def test_growth_needs_a_run_before() -> None:
    """Without a run that dropped something there is nothing to grow from."""
    assert () == guard_problems(planned(), replace(NO_LIMITS, max_growth=1))


def test_records_count_only_where_all_are_known() -> None:
    """One partition whose records are not known switches that guard off."""
    plan = expiry(*DAYS[1:], partition("day=01", total_bytes=10), by=KEEP_5, fields=("day",))
    assert () == guard_problems(plan, replace(NO_LIMITS, max_record_share=0.1))
    assert plan.summary()["expired_records"] is None


def test_a_dead_feed_is_refused_where_days_count_from_now() -> None:
    """Under the wall clock, data that is older than a week means that the feed is dead, unless told otherwise."""
    rows = [partition(f"day={number}", modified=OLD) for number in (1, 2)]
    wall = replace(NO_LIMITS, clock=ExpiryClock.WALL, max_quiet_days="auto")
    plan = expiry(*rows, by=policies("/ KEEP_BY_TIME 30"), fields=("day",), guards=wall)
    assert ["day=1"] == expired(plan)
    (problem,) = guard_problems(plan, wall)
    assert "newest data is 333.0 days old, so its feed looks dead, above max_quiet_days=7" in problem
    assert () == guard_problems(plan, replace(wall, max_quiet_days=333))


def test_a_dead_feed_is_refused_by_the_clock_of_the_plan() -> None:
    """Guards that come later, and say nothing of the clock, do not lift the limit that goes with days from now."""
    rows = [partition(f"day={number}", modified=OLD) for number in (1, 2)]
    wall = replace(NO_LIMITS, clock=ExpiryClock.WALL)
    plan = expiry(*rows, by=policies("/ KEEP_BY_TIME 30"), fields=("day",), guards=wall)
    assert "max_quiet_days=7" in guard_problems(plan, replace(NO_LIMITS, max_quiet_days="auto"))[0]


def test_a_feed_that_nothing_is_known_of_passes_no_limit() -> None:
    """Where no partition tells when it was modified, a limit of quiet days is not met."""
    rows = [partition(f"day={number}", modified="0") for number in (1, 2)]
    plan = expiry(*rows, by=policies("/ KEEP_BY_COUNT 1"), fields=("day",))
    assert "is not known, with max_quiet_days=30" in guard_problems(plan, replace(NO_LIMITS, max_quiet_days=30))[0]
    assert () == guard_problems(plan, NO_LIMITS)


def test_a_dead_feed_is_refused_where_it_is_asked_for() -> None:
    """Measured from the newest data nothing is refused by default; a limit holds for any policy."""
    rows = [partition(f"day={number}", modified=OLD) for number in (1, 2)]
    plan = expiry(*rows, by=policies("/ KEEP_BY_COUNT 1"), fields=("day",))
    assert () == guard_problems(plan, replace(NO_LIMITS, max_quiet_days="auto"))
    assert "max_quiet_days=30" in guard_problems(plan, replace(NO_LIMITS, max_quiet_days=30))[0]


def test_a_clock_behind_the_data_is_refused() -> None:
    """Data from the future means that a clock is wrong, so nothing is dropped by it."""
    rows = [partition("day=1"), partition("day=2", modified="20261130010000000")]
    plan = expiry(*rows, by=policies("/ KEEP_BY_COUNT 1"), fields=("day",))
    (problem,) = guard_problems(plan, replace(NO_LIMITS, max_clock_skew_minutes=59))
    assert "clock is 60.0 minutes behind the table's newest data, above max_clock_skew_minutes=59" in problem
    assert () == guard_problems(plan, replace(NO_LIMITS, max_clock_skew_minutes=60))


def test_a_plan_that_drops_nothing_trips_nothing() -> None:
    """A table with too few partitions is no trouble while none of them goes."""
    plan = expiry(partition("day=1"), by=policies("/ KEEP_BY_COUNT 1"), fields=("day",))
    assert () == guard_problems(plan, ExpiryGuards(min_partitions_left=50, max_quiet_days=0))


def test_a_hold_that_holds_nothing_is_named() -> None:
    """A legal hold that is misspelled protects nothing, and the plan says so."""
    guards = NO_LIMITS.holding_back(legal_hold=["day=01", "day=99"])
    plan = expiry(*DAYS, by=KEEP_5, fields=("day",), guards=guards)
    assert "day=01" not in expired(plan)
    assert ("no partition of the table is under the legal hold 'day=99'; is it spelled right?",) == plan.warnings


@pytest.mark.parametrize(
    ("hold", "scheme", "paths"),
    [
        (
            "region=a%2Fb/day=1",
            PartitionScheme(fields=("region", "day"), hive_style=True),
            ["region=a%2Fb/day=1", "region=a%2Fb/day=2"],
        ),
        (
            "region=a%2Fb/day=1",
            PartitionScheme(fields=("region", "day"), hive_style=True, url_encoded=True),
            ["region=a%2Fb/day=1", "region=a%2Fb/day=2"],
        ),
        ("/eu/1/", PartitionScheme(fields=("region", "day")), ["eu/1", "eu/2"]),
        ("eu/1", PartitionScheme(fields=("region", "day")), ["region=eu/day=1", "region=eu/day=2"]),
        ("region=eu/day=1", PartitionScheme(fields=("region", "day")), ["eu/1", "eu/2"]),
        ("2026/11", PartitionScheme(fields=("day",)), ["2026/11/30", "2026/12/01"]),
    ],
)
def test_a_hold_holds_what_its_text_says_in_either_reading(
    hold: str, scheme: PartitionScheme, paths: list[str]
) -> None:
    """As the path of a partition or folder, letter by letter, and as the values that it names."""
    plan = plan_expiry(
        statistics(*map(partition, paths)),
        policies(f"{''.join(f'{name}=*/' for name in scheme.fields[:-1]) or '/'} KEEP_BY_COUNT 1"),
        scheme=scheme,
        field_types=dict.fromkeys(scheme.fields, "string"),
        pending={},
        basis=basis(),
        zone=UTC,
        now=NOW,
        guards=NO_LIMITS.holding_back(legal_hold=[hold]),
    )
    assert ([], ()) == (expired(plan), plan.warnings)
    assert [paths[0]] == [entry.partition_path for entry in plan.spared]


def test_what_is_held_twice_is_no_spelling_mistake() -> None:
    """A hold that is protected as well, or stands there in two spellings, holds something."""
    guards = NO_LIMITS.holding_back(protected=["day=01"], legal_hold=["day=01", "day=01/"])
    assert () == expiry(*DAYS, by=KEEP_5, fields=("day",), guards=guards).warnings


@pytest.mark.parametrize("text", ["dya=1", "2026-11-30", "day=1/hour=2", "day=", "day=1*", "**"])
def test_a_hold_that_can_hold_nothing_is_refused(text: str) -> None:
    """It shows the text and an example of a right one."""
    with pytest.raises(InvalidSettingError, match=r"legal_hold.*write for example") as raised:
        expiry(*DAYS, by=KEEP_5, fields=("day",), guards=NO_LIMITS.holding_back(legal_hold=[text]))
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ({"max_partition_share": "half"}, "half"),
        ({"max_partition_share": ""}, "max_partition_share=''"),
        ({"max_quiet_days": " "}, "max_quiet_days=' '"),
        ({"max_record_share": 2}, "max_record_share=2"),
        ({"max_partitions": 1.5}, "max_partitions=1.5"),
        ({"max_partitions": True}, "max_partitions=True"),
        ({"min_partitions_left": -1}, "min_partitions_left=-1"),
        ({"max_growth": -1}, "max_growth=-1"),
        ({"max_growth": "fast"}, "fast"),
        ({"max_quiet_days": [1]}, "max_quiet_days=[1]"),
        ({"max_clock_skew_minutes": float("inf")}, "max_clock_skew_minutes=inf"),
        ({"protected": "region=eu/"}, "protected='region=eu/'"),
        ({"legal_hold": [""]}, "legal_hold=''"),
        ({"legal_hold": [7]}, "legal_hold=7"),
        ({"clock": "moon"}, "moon"),
        ({"max_partition_shares": 0.5}, "did you mean 'max_partition_share'?"),
        ([0.5], "[0.5]"),
    ],
)
def test_a_broken_guard_shows_what_is_broken(setting: object, shown: str) -> None:
    """The error shows the offending text."""
    with pytest.raises(InvalidSettingError) as raised:
        ExpiryGuards.from_json(setting, source="the file")
    assert "the file: " in str(raised.value)
    assert shown in str(raised.value)


def test_guards_come_as_templates_give_them() -> None:
    """Digits in a text are numbers; null lifts a limit, also as the text that a template makes of it."""
    given = {
        "max_partition_share": "0.25",
        "max_partitions": "7",
        "min_partitions_left": 2.0,
        "max_byte_share": "None",
        "max_growth": None,
        "clock": "WALL",
        "max_quiet_days": "AUTO",
    }
    expected = ExpiryGuards(
        max_partition_share=0.25,
        max_partitions=7,
        min_partitions_left=2,
        max_byte_share=None,
        max_growth=None,
        clock=ExpiryClock.WALL,
    )
    assert expected == ExpiryGuards.from_json(given)


def test_guards_survive_json() -> None:
    """What is not the default is written, and read again."""
    guards = replace(NO_LIMITS, clock=ExpiryClock.WALL, legal_hold=("day=1",), protected=("day=2/",))
    assert guards == ExpiryGuards.from_json(guards.to_json())
    assert {} == ExpiryGuards().to_json()
    assert {one.name for one in fields(ExpiryGuards)} == set(guards.to_json())
