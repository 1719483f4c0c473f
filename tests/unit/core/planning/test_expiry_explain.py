from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import InvalidPolicyError, UnknownPartitionError
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.planning.expiry_explain import explain
from tests.unit.core.planning.builders import expiry, partition, policies

SCHEME = PartitionScheme(fields=("region", "day"), hive_style=True)
BY = policies(
    "default / KEEP_BY_TIME 30",
    "region=*/ KEEP_BY_COUNT 3",
    "region=eu/ KEEP_BY_COUNT 1",
    "region=us/day=1/ KEEP_BY_TIME 2",
)


def test_it_names_the_winner_the_losers_and_the_others() -> None:
    """Each policy has its sentence: which decides, which lose and why, which do not cover the partition."""
    assert (
        "KEEP_BY_COUNT 1 on region=eu/ decides (argument)",
        "KEEP_BY_COUNT 3 on region=*/ loses: its spec names fewer values (0 against 1) (argument)",
        "KEEP_BY_TIME 30 on / (default) loses: an explicit policy beats the default one (argument)",
        "KEEP_BY_TIME 2 on region=us/day=1/ does not cover it: its spec asks for region=us, which is 'eu' (argument)",
    ) == explain("region=eu/day=7", BY, scheme=SCHEME).lines()


def test_a_plan_adds_what_was_decided() -> None:
    """With a plan, the decision and its reason follow the winner, and why it stays where one would expect it to go."""
    rows = [
        partition("region=eu/day=1"),
        partition("region=eu/day=2", modified="20260101000000000"),
        partition("region=us/day=2"),
    ]
    plan = expiry(*rows, by=BY, fields=("region", "day"))
    lines = explain("region=eu/day=2/", BY, scheme=SCHEME, plan=plan).lines()
    assert "keep: kept: newest 1 of 2 values of day under region=eu/" == lines[1]
    assert lines[2].startswith(
        "why not: modified 333.0 days ago, kept 30 days, but KEEP_BY_TIME 30 on / (default) loses"
    )
    with pytest.raises(
        UnknownPartitionError, match=r"no partition 'region=eu/day=9'; partitions look like 'region=eu/day=1'"
    ):
        explain("region=eu/day=9", BY, scheme=SCHEME, plan=plan)


def test_what_no_policy_reaches_says_so() -> None:
    """Without a winner, or with a path that is none of the table's, the explanation says that."""
    nothing = policies("region=eu/ KEEP_BY_COUNT 1")
    assert "no policy covers it" == explain("region=us/day=1", nothing, scheme=SCHEME).lines()[0]
    assert "does not fit the partition fields" in explain("2026-11-30", nothing, scheme=SCHEME).lines()[0]


def test_policies_that_do_not_fit_are_refused() -> None:
    """An explanation rests on policies that could be applied."""
    with pytest.raises(InvalidPolicyError, match="argument: policy KEEP_BY_TIME 1 on city"):
        explain("region=us/day=1", policies("city=x/ KEEP_BY_TIME 1"), scheme=SCHEME)
