from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.shipped_ttl import (
    CLASS_KEY,
    DAYS_KEY,
    INLINE_KEY,
    SELECTED_KEY,
    TYPE_KEY,
    shipped_policies,
)

SCHEME = PartitionScheme(fields=("region", "day"), hive_style=True)


def read(settings: dict[str, str]) -> PolicySet:
    return shipped_policies(settings, scheme=SCHEME, source="write options")


def test_days_are_a_default_policy_for_the_table() -> None:
    """Hudi's days to retain stand for the whole table, and the source says where they come from."""
    default = read({DAYS_KEY: "30", INLINE_KEY: "true"}).default
    assert default is not None
    assert ("KEEP_BY_TIME 30 on /", f"{DAYS_KEY} (write options)") == (str(default), default.source)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (TYPE_KEY, "KEEP_BY_CREATION_TIME"),
        (CLASS_KEY, "org.apache.hudi.table.action.ttl.strategy.KeepByCreationTimeStrategy"),
    ],
)
def test_the_other_strategy_goes_by_creation(key: str, value: str) -> None:
    """Hudi's second strategy is our clock of that name."""
    assert "KEEP_BY_TIME 30 on / by created" == str(read({DAYS_KEY: "30", key: value}).default)


def test_selected_partitions_have_a_policy_each() -> None:
    """A list of paths reaches those only."""
    found = read({DAYS_KEY: "30", SELECTED_KEY: "region=eu/day=1, region=us/day=2"})
    assert ["region=eu/day=1/", "region=us/day=2/"] == [str(policy.spec) for policy in found.explicit]
    assert found.default is None


@pytest.mark.parametrize("settings", [{}, {DAYS_KEY: "-1"}, {INLINE_KEY: "false"}, {"hoodie.table.name": "x"}])
def test_settings_that_ask_for_nothing_are_none(settings: dict[str, str]) -> None:
    """Hudi's own defaults are no policy."""
    assert read(settings).is_empty


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({INLINE_KEY: "true"}, f"{INLINE_KEY}=true asks for expiry, but {DAYS_KEY} is not set"),
        ({TYPE_KEY: "KEEP_BY_TIME", DAYS_KEY: "-1"}, "nothing would ever expire"),
        ({DAYS_KEY: "0"}, "expected at least 1 (days)"),
        ({DAYS_KEY: "a month"}, "'a month' is no whole number"),
        ({DAYS_KEY: "3", TYPE_KEY: "KEEP_BY_COUNT"}, "KEEP_BY_COUNT is none of Hudi's own strategies"),
        ({DAYS_KEY: "3", CLASS_KEY: "com.example.Mine"}, "com.example.Mine is none"),
        ({DAYS_KEY: "3", SELECTED_KEY: "2026-11-30"}, "names '2026-11-30'"),
        ({DAYS_KEY: "3", SELECTED_KEY: "region=/day=1"}, "names 'region=/day=1'"),
    ],
)
def test_broken_settings_are_refused_by_key(settings: dict[str, str], shown: str) -> None:
    """A strategy without days, by which Hudi drops nothing and says nothing, is an error here."""
    with pytest.raises(InvalidPolicyError, match=r"hoodie\.partition\.ttl\.") as raised:
        read(settings)
    assert "write options" in str(raised.value)
    assert shown in str(raised.value)
