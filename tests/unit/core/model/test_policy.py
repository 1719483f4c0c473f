from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.partition import PartitionScheme, PartitionSpec
from airflow_hudi_maint.core.model.policy import (
    DEFAULT_FIELDS_KEY,
    DEFAULT_POLICY_KEY,
    DEFAULT_VALUE_KEY,
    EXPLICIT_POLICIES_KEY,
    PolicyKind,
    PolicySet,
    TTLPolicy,
)

RFC_65 = {
    DEFAULT_POLICY_KEY: "KEEP_BY_TIME",
    DEFAULT_FIELDS_KEY: "user_id",
    DEFAULT_VALUE_KEY: "30",
    EXPLICIT_POLICIES_KEY: (
        '[{"partitionSpec":"user_id=2/","policy":"KEEP_BY_SIZE","policyValue":107374182400},'
        '{"partitionSpec":"user_id=1/","policy":"KEEP_BY_COUNT","policyValue":10},'
        '{"partitionSpec":"user_id=3/","policy":"KEEP_BY_TIME","policyValue":7}]'
    ),
}


def test_the_example_of_rfc_65_is_read() -> None:
    """The keys and the JSON array of the RFC give its four policies."""
    policies = PolicySet.from_properties(RFC_65)
    assert [str(policy) for policy in policies.all()] == [
        "KEEP_BY_SIZE 107374182400 on user_id=2/",
        "KEEP_BY_COUNT 10 on user_id=1/",
        "KEEP_BY_TIME 7 on user_id=3/",
        "KEEP_BY_TIME 30 on user_id=*/",
    ]
    assert policies.default is not None
    assert (policies.default.is_default, policies.default.unit) == (True, "days")


def test_a_table_without_the_keys_has_no_policies() -> None:
    """Absent keys are no error."""
    assert PolicySet.from_properties({}).is_empty


def test_a_default_without_fields_covers_the_table() -> None:
    """Without fields the default policy's spec is the whole table."""
    policies = PolicySet.from_properties({DEFAULT_POLICY_KEY: "KEEP_BY_TIME", DEFAULT_VALUE_KEY: "30"})
    assert policies.default is not None
    assert str(policies.default.spec) == "/"


@pytest.mark.parametrize(
    ("properties", "shown"),
    [
        ({DEFAULT_POLICY_KEY: "KEEP_BY_TIME"}, DEFAULT_VALUE_KEY),
        ({DEFAULT_VALUE_KEY: "3"}, DEFAULT_POLICY_KEY),
        ({DEFAULT_FIELDS_KEY: "a"}, DEFAULT_FIELDS_KEY),
        ({DEFAULT_POLICY_KEY: "KEEP_ALL", DEFAULT_VALUE_KEY: "3"}, "KEEP_ALL"),
        ({DEFAULT_POLICY_KEY: "KEEP_BY_TIME", DEFAULT_VALUE_KEY: "1.5"}, "1.5"),
        ({DEFAULT_POLICY_KEY: "KEEP_BY_TIME", DEFAULT_VALUE_KEY: "0"}, "at least 1 days"),
        ({DEFAULT_POLICY_KEY: "KEEP_BY_TIME", DEFAULT_VALUE_KEY: "9" * 5000}, "more than 18 digits"),
        ({**RFC_65, DEFAULT_FIELDS_KEY: ","}, "has a blank field"),
        ({**RFC_65, DEFAULT_FIELDS_KEY: "a,a"}, "names the field 'a' twice"),
        (
            {EXPLICIT_POLICIES_KEY: f'[{{"partitionSpec":"/","policy":"KEEP_BY_TIME","policyValue":{"9" * 5000}}}]'},
            "more than 18 digits",
        ),
        ({EXPLICIT_POLICIES_KEY: "{"}, EXPLICIT_POLICIES_KEY),
        ({EXPLICIT_POLICIES_KEY: "{}"}, "no JSON array"),
        ({EXPLICIT_POLICIES_KEY: "[3]"}, "3 is no policy"),
        ({**RFC_65, EXPLICIT_POLICIES_KEY: '[{"partitionSpec": "a=1/"}]'}, "lacks ['policy', 'policyValue']"),
    ],
)
def test_a_broken_policy_of_a_table_is_refused(properties: dict[str, str], shown: str) -> None:
    """The error shows the key or the offending text; nothing falls back to another policy."""
    with pytest.raises(InvalidPolicyError) as raised:
        PolicySet.from_properties(properties)
    assert shown in str(raised.value)


GOOD = {"partitionSpec": "a=1/", "policy": "KEEP_BY_TIME", "policyValue": 3}


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([{**GOOD, "policyValue": -3}], "-3"),
        ([{**GOOD, "policyValue": True}], "True"),
        ([{**GOOD, "policyValue": "many"}], "many"),
        ([{**GOOD, "policy": None}], "None"),
        ([{**GOOD, "policyValue": "9" * 5000}], "policyValue 9999999999"),
        ([{**GOOD, "policyValue": 10**5000}], "more than 18 digits"),
        ([{**GOOD, "partitionSpec": "a"}], "'a'"),
        ([{**GOOD, "partitionSpec": ""}], "partitionSpec '' names nothing"),
        ([{**GOOD, "partitionSpec": None}], "'None' is not field=value"),
        ([{**GOOD, "days": 3}], "days"),
        ([{**GOOD, "default": "false"}], "write true or false"),
        ([GOOD, {**GOOD, "policyValue": 4}], "two explicit policies have the partitionSpec 'a=1/'"),
        ([{**GOOD, "default": True}, {**GOOD, "default": True}], "2 policies are marked as the default"),
        (GOOD, "no list of policies"),
        ("a=1/", "no list of policies"),
    ],
)
def test_broken_policies_of_a_caller_are_refused(values: list[object], shown: str) -> None:
    """The error shows the offending text."""
    with pytest.raises(InvalidPolicyError) as raised:
        PolicySet.from_json(values)
    assert shown in str(raised.value)


def test_a_value_may_be_written_as_text() -> None:
    """RFC-65's own SQL writes numbers as text."""
    assert TTLPolicy.from_json({**GOOD, "policyValue": " 30 "}).value == 30
    assert TTLPolicy.from_json({**GOOD, "policyValue": "9" * 18}).value == 10**18 - 1


def test_policies_survive_json() -> None:
    """A set that is written and read again is the same set, with where each policy comes from."""
    policies = PolicySet.from_properties(RFC_65)
    assert policies == PolicySet.from_json(policies.to_json(), source="plan.json")


def test_the_default_policy_knows_that_it_is_one() -> None:
    """A policy that is given as the default is marked as such."""
    policy = TTLPolicy(spec=PartitionSpec(levels=()), kind=PolicyKind.KEEP_BY_TIME, value=1)
    default = PolicySet(default=policy).default
    assert default is not None
    assert default.is_default


@pytest.mark.parametrize("kind", [PolicyKind.KEEP_BY_COUNT, PolicyKind.KEEP_BY_SIZE])
def test_a_policy_that_counts_needs_a_field_below_its_spec(kind: PolicyKind) -> None:
    """A single partition has no sub-partitions to count; by time it is fine."""
    scheme = PartitionScheme(fields=("a",))
    spec = PartitionSpec.parse("a=1/")
    TTLPolicy(spec=spec, kind=PolicyKind.KEEP_BY_TIME, value=1).check(scheme)
    with pytest.raises(InvalidPolicyError, match="use KEEP_BY_TIME"):
        TTLPolicy(spec=spec, kind=kind, value=1).check(scheme)
