from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.partition import PartitionScheme, PartitionSpec
from airflow_hudi_maint.core.model.policy import (
    DEFAULT_FIELDS_KEY,
    DEFAULT_POLICY_KEY,
    DEFAULT_VALUE_KEY,
    EXPLICIT_POLICIES_KEY,
    POLICY_KEYS,
    PolicyKind,
    PolicySet,
    TTLPolicy,
)
from airflow_hudi_maint.core.model.shipped_ttl import SHIPPED_KEYS

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
        ({DEFAULT_POLICY_KEY: "KEEP_BY_TIME", DEFAULT_VALUE_KEY: "0"}, "at least 1 (days)"),
        ({DEFAULT_POLICY_KEY: "KEEP_BY_TIME", DEFAULT_VALUE_KEY: "9" * 5000}, "more than 18 digits"),
        ({**RFC_65, DEFAULT_FIELDS_KEY: ","}, "is no list of field names"),
        ({**RFC_65, DEFAULT_FIELDS_KEY: "a,a"}, "names the field 'a' twice"),
        (
            {EXPLICIT_POLICIES_KEY: f'[{{"partitionSpec":"/","policy":"KEEP_BY_TIME","policyValue":{"9" * 5000}}}]'},
            "more than 18 digits",
        ),
        ({EXPLICIT_POLICIES_KEY: "{"}, EXPLICIT_POLICIES_KEY),
        ({EXPLICIT_POLICIES_KEY: "{}"}, "no JSON array"),
        ({EXPLICIT_POLICIES_KEY: "[3]"}, "3 is no policy"),
        ({**RFC_65, EXPLICIT_POLICIES_KEY: '[{"partitionSpec": "a=1/"}]'}, "lacks 'policy', 'policyValue'"),
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
        ([{**GOOD, "partitionSpec": None}], "partitionSpec None is no text"),
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


OPTIONS = [
    {**GOOD, "clock": "created"},
    {**GOOD, "clock": "event_time", "eventTimePattern": "b=%Y-%m"},
    {**GOOD, "clock": "event_time", "eventTimePattern": "b=%Y-%m", "eventTimeZone": "Europe/Berlin"},
    {**GOOD, "policy": "KEEP_BY_COUNT", "expireNullPartitions": True},
    {**GOOD, "policy": "KEEP_BY_SIZE", "allowEmptying": True},
    GOOD,
]


@pytest.mark.parametrize("value", OPTIONS)
def test_our_keys_are_written_only_where_they_are_set(value: dict[str, object]) -> None:
    """RFC-65's object stays as it is without them; with them it is read back as it was."""
    assert value == TTLPolicy.from_json(value).to_json()


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"clock": "moon"}, "clock 'moon' is unknown; write one of last_modified, created, event_time"),
        ({"clock": "created", "policy": "KEEP_BY_COUNT"}, "has the clock 'created', but goes by no time"),
        ({"clock": "event_time"}, "clock 'event_time' needs one, for example"),
        ({"eventTimePattern": "b=%Y"}, "no other clock has one"),
        ({"eventTimeZone": "UTC"}, "eventTimeZone 'UTC' needs an eventTimePattern"),
        ({"clock": "event_time", "eventTimePattern": 7}, "eventTimePattern 7 is no text"),
        ({"clock": "event_time", "eventTimePattern": "b=%Y", "eventTimeZone": 1}, "eventTimeZone 1 is no text"),
        ({"clock": "event_time", "eventTimePattern": "b=%Q"}, "%Q"),
        ({"allowEmptying": "yes"}, "'allowEmptying' is 'yes'"),
        ({"expireNullPartitions": 1}, "'expireNullPartitions' is 1"),
        ({"allowEmpty": True}, "has the unknown 'allowEmpty' (for 'allowEmptying'?)"),
        ({"partitionSpec": "a=1//b=2/"}, "'' is not field=value"),
        ({"partitionSpec": "a=1*/"}, "the star is a part of a text"),
        ({"partitionSpec": "a=1/a=2/"}, "names the field 'a' twice"),
        ({"partitionSpec": 7}, "partitionSpec 7 is no text"),
        ({"policyValue": [3]}, "policyValue [3] is no whole number"),
        ({"policyValue": 3.0}, "policyValue 3.0 is no whole number"),
        ({"policyValue": "３"}, "is no whole number"),  # noqa: RUF001 a digit that is none of ASCII's
    ],
)
def test_a_broken_option_is_refused(change: dict[str, object], shown: str) -> None:
    """The error names the source, and shows the offending text and what would be right."""
    with pytest.raises(InvalidPolicyError, match="the file: ") as raised:
        TTLPolicy.from_json({**GOOD, **change}, source="the file")
    assert shown in str(raised.value)


def test_a_key_that_stands_twice_is_refused() -> None:
    """JSON would take the last one silently, which may keep less than the first."""
    text = '[{"partitionSpec":"a=1/","policy":"KEEP_BY_TIME","policyValue":30,"policyValue":3}]'
    with pytest.raises(InvalidPolicyError, match="the key 'policyValue' stands twice in one object") as raised:
        PolicySet.from_properties({EXPLICIT_POLICIES_KEY: text})
    assert EXPLICIT_POLICIES_KEY in str(raised.value)


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [GOOD, {**GOOD, "partitionSpec": "a=2/"}],
        [{**GOOD, "partitionSpec": "a=*/b=*/", "default": True}],
        [{**GOOD, "partitionSpec": "/", "default": True}, GOOD],
        [{**GOOD, "partitionSpec": "a=9/", "default": True}],
        [{**GOOD, "partitionSpec": "a=*/", "clock": "created", "default": True}, GOOD],
    ],
)
def test_policies_survive_the_tables_properties(entries: list[dict[str, object]]) -> None:
    """What is written to the keys of hoodie.properties is read back; RFC-65's keys hold what they can say."""
    policies = PolicySet.from_json(entries)
    properties = policies.to_properties()
    assert properties.keys() <= set(POLICY_KEYS)
    again = PolicySet.from_properties(properties)
    assert [one.to_json() for one in policies.all()] == [one.to_json() for one in again.all()]
    assert [one.is_default for one in policies.all()] == [one.is_default for one in again.all()]


def test_two_defaults_are_refused() -> None:
    """The array may mark a default only where the keys of the default are not set."""
    text = '[{"partitionSpec":"/","policy":"KEEP_BY_TIME","policyValue":3,"default":true}]'
    with pytest.raises(InvalidPolicyError, match="keep one of them"):
        PolicySet.from_properties({**RFC_65, EXPLICIT_POLICIES_KEY: text})


def test_a_table_does_not_say_where_its_policies_come_from() -> None:
    """A source in the table's properties would be taken for the truth."""
    text = '[{"partitionSpec":"/","policy":"KEEP_BY_TIME","policyValue":3,"source":"the law"}]'
    with pytest.raises(InvalidPolicyError, match="unknown 'source'"):
        PolicySet.from_properties({EXPLICIT_POLICIES_KEY: text})


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({EXPLICIT_POLICIES_KEY: " "}, f"{EXPLICIT_POLICIES_KEY} is blank"),
        ({DEFAULT_FIELDS_KEY: " "}, f"{DEFAULT_FIELDS_KEY}=' ' is no list of field names"),
        ({DEFAULT_FIELDS_KEY: ""}, f"{DEFAULT_FIELDS_KEY}='' is no list of field names"),
        (
            {"hoodie.partition.ttl.polices": "[]"},
            f"hoodie.partition.ttl.polices='[]' looks like {EXPLICIT_POLICIES_KEY!r}",
        ),
    ],
)
def test_a_key_that_is_blank_or_misspelled_does_not_leave_it_to_the_default(change: dict[str, str], shown: str) -> None:
    """What an explicit policy was to keep would expire by another one, or a policy for each value be one for all."""
    with pytest.raises(InvalidPolicyError) as raised:
        PolicySet.from_properties({DEFAULT_POLICY_KEY: "KEEP_BY_COUNT", DEFAULT_VALUE_KEY: "10", **change})
    assert shown in str(raised.value)


def test_hudis_own_keys_are_no_misspelled_ones() -> None:
    """Of the same family, and read elsewhere."""
    keys = (*SHIPPED_KEYS, "hoodie.partition.ttl.strategy.max.delete.partitions")
    assert PolicySet.from_properties(dict.fromkeys(keys, "1")).is_empty


@pytest.mark.parametrize(
    "change",
    [
        {"partitionSpec": "a" * 10_000},
        {"partitionSpec": "a=1/" * 10_000},
        {"clock": "event_time", "eventTimePattern": "%Q" * 10_000},
        {"policy": "x" * 10_000},
    ],
)
def test_an_error_shows_the_beginning_of_a_huge_text(change: dict[str, object]) -> None:
    """It stands in a log and in the Airflow UI."""
    with pytest.raises(InvalidPolicyError) as raised:
        TTLPolicy.from_json({**GOOD, **change})
    assert len(str(raised.value)) < 1000
