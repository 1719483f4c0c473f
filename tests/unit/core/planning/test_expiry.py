from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from airflow_hudi_maint.core.errors import GuardTrippedError, InvalidPolicyError, InvalidSettingError
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.plan import Decision
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.planning.expiry import ExpiryClock, ExpiryGuards, check_guards, plan_expiry
from tests.unit.core.planning.builders import (
    NO_LIMITS,
    NOW,
    basis,
    expired,
    expiry,
    partition,
    policies,
    reasons,
    statistics,
)

OLD = "20260101000000000"
WALL = replace(NO_LIMITS, clock=ExpiryClock.WALL)


def test_every_partition_has_an_entry_in_path_order() -> None:
    """A plan lists all partitions, kept ones too, in the order of their paths."""
    plan = expiry(partition("day=2"), partition("day=1"), partition("odd"), by=PolicySet(), fields=("day",))
    assert [entry.partition_path for entry in plan.entries] == ["day=1", "day=2", "odd"]


def test_an_entry_names_its_policy() -> None:
    """An entry says which policy decided, and whether that is the default one."""
    by = policies("default / KEEP_BY_TIME 30", "day=2/ KEEP_BY_TIME 7")
    plan = expiry(partition("day=1"), partition("day=2"), partition("odd"), by=by, fields=("day",))
    expected = ["KEEP_BY_TIME 30 on / (default)", "KEEP_BY_TIME 7 on day=2/", None]
    assert expected == [entry.policy for entry in plan.entries]


def test_an_entry_carries_figures_of_the_statistics() -> None:
    """Bytes, files and the last modified instant are those of the statistics."""
    entry = expiry(partition("day=1", modified=OLD, total_bytes=7), by=PolicySet(), fields=("day",)).entries[0]
    assert (OLD, 7, 1, 0) == (
        entry.last_modified_instant,
        entry.total_bytes,
        entry.data_file_count,
        entry.log_file_count,
    )


def test_the_wall_clock_counts_days_from_now() -> None:
    """With the wall clock a table without new data expires in the end, but for the newest."""
    rows = (partition("day=1", modified=OLD), partition("day=2", modified=OLD))
    by = policies("/ KEEP_BY_TIME 30")
    assert expired(expiry(*rows, by=by, fields=("day",))) == []
    assert expired(expiry(*rows, by=by, fields=("day",), guards=WALL)) == ["day=1"]


def test_a_quiet_feed_is_named_in_a_warning() -> None:
    """The plan says that ages are not measured from now, and which setting changes that."""
    plan = expiry(partition("day=1", modified=OLD), by=policies("/ KEEP_BY_TIME 30"), fields=("day",))
    expected = (
        "ages are measured from the table's newest data (2026-01-01 00:00 UTC, 333.0 days ago), not from now; "
        "clock=wall measures from now"
    )
    assert (expected,) == plan.warnings


def test_a_quiet_feed_matters_to_no_other_policy() -> None:
    """Nothing is said about ages where no policy goes by time."""
    plan = expiry(partition("day=1", modified=OLD), by=policies("/ KEEP_BY_COUNT 1"), fields=("day",))
    assert plan.warnings == ()


def test_data_from_the_future_is_named_in_a_warning() -> None:
    """When the newest instant is ahead of now, days count from now, and the plan says that a clock is wrong."""
    rows = (partition("day=1", modified="20261130090000000"), partition("day=2", modified="20261029000000000"))
    plan = expiry(*rows, by=policies("/ KEEP_BY_TIME 30"), fields=("day",))
    assert expired(plan) == ["day=2"]
    expected = ("the newest data is 9:00:00 ahead of now: check clocks and the table's time zone",)
    assert expected == plan.warnings


def test_instants_are_read_in_the_tables_zone() -> None:
    """The same digits are another moment in another zone."""
    by = policies("/ KEEP_BY_TIME 1")
    arguments = {
        "scheme": PartitionScheme(fields=("day",), hive_style=True),
        "field_types": {},
        "pending": {},
        "basis": basis(),
        "now": datetime(2026, 11, 30, 23, 59, tzinfo=UTC),
        "guards": WALL,
    }
    rows = statistics(*(partition(f"day={day}", modified="20261130000000000") for day in (1, 2)))
    in_utc = plan_expiry(rows, by, zone=UTC, **arguments)  # type: ignore[arg-type]
    in_tokyo = plan_expiry(rows, by, zone=ZoneInfo("Asia/Tokyo"), **arguments)  # type: ignore[arg-type]
    assert ([], ["day=1"]) == (expired(in_utc), expired(in_tokyo))


def test_an_instant_that_is_no_moment_keeps_its_partition() -> None:
    """A partition of unknown age never expires by time."""
    plan = expiry(partition("day=1", modified="0" * 17), by=policies("/ KEEP_BY_TIME 1"), fields=("day",), guards=WALL)
    assert expired(plan) == []
    assert "its age is not known" in reasons(plan)["day=1"]


def test_now_has_a_zone() -> None:
    """A moment without a zone is refused, since it could be any."""
    with pytest.raises(ValueError, match="no time zone"):
        expiry(by=PolicySet(), now=datetime(2026, 11, 30))  # noqa: DTZ001


def test_a_policy_on_a_table_without_partitions_is_refused() -> None:
    """A table that is not partitioned cannot expire, and the error names the policy."""
    with pytest.raises(InvalidPolicyError, match=r"not partitioned.*KEEP_BY_TIME 1 on /"):
        expiry(partition(""), by=policies("/ KEEP_BY_TIME 1"), fields=())


def test_a_table_without_partitions_keeps_its_data() -> None:
    """Without policies the single partition of such a table is kept."""
    assert reasons(expiry(partition(""), by=PolicySet(), fields=())) == {"": "no policy covers it"}


def test_a_policy_on_another_field_is_refused() -> None:
    """A spec has to name the table's first partition fields."""
    with pytest.raises(InvalidPolicyError, match="month"):
        expiry(by=policies("month=1/ KEEP_BY_TIME 1"), fields=("day",))


def test_two_policies_that_could_both_win_are_refused() -> None:
    """Two explicit policies that name equally many values are refused by name, partitions or not."""
    with pytest.raises(InvalidPolicyError, match=r"user_id=\*/ts=2/' and .*user_id=1/' could both win"):
        expiry(by=policies("user_id=1/ KEEP_BY_COUNT 1", "user_id=*/ts=2/ KEEP_BY_TIME 1"))


def test_values_of_unknown_type_are_named_in_a_warning() -> None:
    """The plan says how values were compared when the schema does not tell."""
    plan = expiry(partition("day=9"), by=policies("/ KEEP_BY_COUNT 1"), fields=("day",), field_types={})
    expected = ("the table's schema does not tell the type of partition field 'day': its values compare as numbers",)
    assert expected == plan.warnings


def test_values_of_another_type_are_named_in_a_warning() -> None:
    """The plan says which values have no place in their field's order."""
    rows = [partition(f"day={value}") for value in (*range(1, 5), *"abcdefg")]
    plan = expiry(*rows, by=policies("/ KEEP_BY_COUNT 3"), fields=("day",), field_types={"day": "int"})
    assert expired(plan) == ["day=1"]
    expected = (
        "partition field 'day' compares as numbers, but 7 of 11 values are none, so these neither expire nor count: "
        "'a', 'b', 'c', 'd', 'e' and 2 more"
    )
    assert (expected,) == plan.warnings


def test_paths_that_do_not_fit_are_named_in_a_warning() -> None:
    """The plan names partitions whose paths the partition fields do not explain."""
    plan = expiry(partition("other"), by=policies("/ KEEP_BY_TIME 1"), fields=("day",))
    expected = "1 partition(s) do not fit the partition fields ['day'] and never expire: 'other'"
    assert expected == plan.warnings[0]


def test_plain_paths_expire_like_hive_style_ones() -> None:
    """A path without field names is read by the order of its fields."""
    plan = plan_expiry(
        statistics(partition("eu/1"), partition("eu/2"), partition("us/1")),
        policies("region=eu/ KEEP_BY_COUNT 1"),
        scheme=PartitionScheme(fields=("region", "day")),
        field_types={"day": "int"},
        pending={},
        basis=basis(),
        zone=UTC,
        now=NOW,
        guards=NO_LIMITS,
    )
    assert expired(plan) == ["eu/1"]


def test_a_blocked_partition_names_its_plan() -> None:
    """A partition that would expire, but is held by a pending plan, stays and names the instant that holds it."""
    rows = (partition("day=1"), partition("day=2"))
    plan = expiry(*rows, by=policies("/ KEEP_BY_COUNT 1"), fields=("day",), pending={"day=1": "20261129000000000"})
    assert [("day=1", "20261129000000000")] == [(entry.partition_path, entry.blocked_by) for entry in plan.blocked]
    assert plan.expired == ()


@pytest.mark.parametrize(
    ("day", "problem"),
    [
        ("a,b", "its name holds ',', which Hudi takes for the end of a name"),
        ("a*", "its name holds '*', which Hudi takes for a wildcard"),
    ],
)
def test_a_partition_that_cannot_be_named_is_blocked(day: str, problem: str) -> None:
    """Hudi is given the partitions in one text: a name that it would read as others stays, and the rest expires."""
    rows = (partition(f"day={day}"), partition("day=b"), partition("day=c"))
    plan = expiry(*rows, by=policies("/ KEEP_BY_COUNT 1"), fields=("day",))
    assert expired(plan) == ["day=b"]
    assert [(f"day={day}", None)] == [(entry.partition_path, entry.blocked_by) for entry in plan.blocked]
    expected = (
        "1st smallest of 3 values of day, 1 kept; "
        f"blocked: {problem}, so that it cannot be dropped by name; delete its rows instead"
    )
    assert expected == plan.blocked[0].reason


def test_a_partition_that_cannot_be_named_and_stays_is_not_blocked() -> None:
    """Its name is no news while it does not expire."""
    plan = expiry(partition("day=a,b"), by=policies("/ KEEP_BY_COUNT 1"), fields=("day",))
    assert [Decision.KEEP] == [entry.decision for entry in plan.entries]


def test_months_as_text_go_in_their_order() -> None:
    """A text field whose values are all whole numbers does not drop months 10 and 11 before month 8."""
    rows = [partition(f"month={value}") for value in (8, 9, 10, 11)]
    plan = expiry(*rows, by=policies("/ KEEP_BY_COUNT 2"), fields=("month",))
    assert expired(plan) == ["month=8", "month=9"]
    assert "'9' goes before '10'" in plan.warnings[0]


@pytest.mark.parametrize("policy", ["/ KEEP_BY_COUNT 1", "/ KEEP_BY_SIZE 1"])
def test_values_in_no_known_order_never_expire_by_it(policy: str) -> None:
    """When no value is of the field's type, nothing expires by count or size, and each reason says why."""
    rows = [partition(f"day={value}") for value in ("30-11-2026", "01-12-2026")]
    plan = expiry(*rows, by=policies(policy), fields=("day",), field_types={"day": "timestamp-micros"})
    assert expired(plan) == []
    assert reasons(plan)["day=01-12-2026"] == "kept: '01-12-2026' has no place among the timestamps of day"


def test_a_hive_style_table_expires_whether_or_not_its_properties_say_so() -> None:
    """Paths that name their fields are hive style, however the switch is written."""
    plan = plan_expiry(
        statistics(*(partition(f"month={month}") for month in (8, 9, 10))),
        policies("/ KEEP_BY_COUNT 1"),
        scheme=PartitionScheme.from_properties({"hoodie.table.partition.fields": "month"}),
        field_types={"month": "int"},
        pending={},
        basis=basis(),
        zone=UTC,
        now=NOW,
        guards=NO_LIMITS,
    )
    assert expired(plan) == ["month=8", "month=9"]


def test_planning_again_gives_the_same_plan() -> None:
    """The same statistics and policies give the same plan, with the types of the schema and without."""
    rows = [partition(f"user_id={user}/ts={ts}") for user in (1, 2) for ts in (9, 10, 11, "x,y")]
    by = policies("user_id=*/ KEEP_BY_COUNT 1")
    for types in ({}, {"user_id": "string", "ts": "int"}):
        assert expiry(*rows, by=by, field_types=types) == expiry(*reversed(rows), by=by, field_types=types)


def test_a_held_partition_that_stays_is_not_blocked() -> None:
    """A pending plan is no news for a partition that does not expire."""
    plan = expiry(partition("day=1"), by=policies("/ KEEP_BY_COUNT 1"), fields=("day",), pending={"day=1": "x"})
    assert [Decision.KEEP] == [entry.decision for entry in plan.entries]


@pytest.mark.parametrize(
    ("guards", "setting"),
    [
        (ExpiryGuards(max_byte_share=None), "2 of 3 partitions (66.7%), above max_partition_share=0.5"),
        (ExpiryGuards(max_partition_share=None), "20 B of 30 B (66.7%), above max_byte_share=0.5"),
    ],
)
def test_a_plan_over_a_limit_is_refused(guards: ExpiryGuards, setting: str) -> None:
    """A tripped guard gives the figures and the setting; the plan is made all the same, with a warning."""
    rows = [partition(f"day={number}", total_bytes=10) for number in (1, 2, 3)]
    plan = expiry(*rows, by=policies("/ KEEP_BY_COUNT 1"), fields=("day",), guards=guards)
    assert expired(plan) == ["day=1", "day=2"]
    assert setting in plan.warnings[-1]
    with pytest.raises(GuardTrippedError) as raised:
        check_guards(plan, guards)
    assert setting in str(raised.value)


def test_a_plan_at_a_limit_is_allowed() -> None:
    """Exactly the share may go."""
    rows = [partition(f"day={number}", total_bytes=10) for number in (1, 2)]
    plan = expiry(*rows, by=policies("/ KEEP_BY_COUNT 1"), fields=("day",), guards=ExpiryGuards())
    check_guards(plan, ExpiryGuards())
    assert plan.warnings == ()


def test_guards_can_be_switched_off() -> None:
    """None is no limit."""
    rows = (partition("day=1", modified=OLD), partition("day=2", modified=OLD))
    plan = expiry(*rows, by=policies("/ KEEP_BY_TIME 1 allowEmptying"), fields=("day",), guards=WALL)
    check_guards(plan, WALL)
    assert len(plan.expired) == 2


@pytest.mark.parametrize(
    "setting",
    [
        {"max_partition_share": 50},
        {"max_byte_share": -0.1},
        {"max_partition_share": True},
        {"max_byte_share": False},
        {"max_byte_share": float("nan")},
        {"clock": "moon"},
    ],
)
def test_guards_that_make_no_sense_are_refused(setting: dict[str, object]) -> None:
    """A share is a number from 0 to 1, and the clocks are known; the error names the setting."""
    with pytest.raises(InvalidSettingError, match=next(iter(setting))):
        ExpiryGuards(**setting)  # type: ignore[arg-type]


def test_the_newest_data_is_not_aged_by_maintenance() -> None:
    """Ages count from the newest data, not from the table's last instant, which each maintenance run moves on."""
    rows = (partition("day=1", modified=OLD), partition("day=2", modified=OLD))
    plan = expiry(*rows, by=policies("/ KEEP_BY_TIME 1"), fields=("day",), now=NOW + timedelta(days=400))
    assert expired(plan) == []
