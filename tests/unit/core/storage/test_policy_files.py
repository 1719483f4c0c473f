from __future__ import annotations

from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import DocumentNotFoundError, InvalidPolicyError, InvalidSettingError
from airflow_hudi_maint.core.model.expiry_guards import ExpiryGuards
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.policy_file import PolicyFile
from airflow_hudi_maint.core.storage.policy_files import load_policy_file, parse_policy_file

YAML = """
version: 1
policies:
  - {partitionSpec: region=*/, policy: KEEP_BY_TIME, policyValue: 30, default: true}
  - partitionSpec: region=eu/
    policy: KEEP_BY_TIME
    policyValue: 90
    clock: event_time
    eventTimePattern: day=%Y-%m-%d
guards:
  max_partition_share: 0.2
  max_growth: null
protected: [region=us/]
legal_hold: [region=eu/day=2026-11-30]
"""


def test_a_policy_file_says_policies_guards_and_holds() -> None:
    """YAML gives what it says; the source of each policy is the file."""
    found = parse_policy_file(YAML, name="trips.yaml")
    assert ["KEEP_BY_TIME 90 on region=eu/ by event_time", "KEEP_BY_TIME 30 on region=*/"] == [
        str(policy) for policy in found.policies.all()
    ]
    assert {"trips.yaml"} == {policy.source for policy in found.policies.all()}
    expected = ExpiryGuards(
        max_partition_share=0.2, max_growth=None, protected=("region=us/",), legal_hold=("region=eu/day=2026-11-30",)
    )
    assert expected == found.guards
    found.check(PartitionScheme(fields=("region", "day"), hive_style=True))


def test_a_policy_file_survives_json() -> None:
    """What is read can be written, and read again; JSON is read like YAML."""
    found = parse_policy_file(YAML, name="trips.yaml")
    assert found == PolicyFile.from_json(found.to_json(), name="trips.yaml")
    text = '{"version": 1, "policies": [], "legal_hold": {"file": "holds.txt"}}'
    other = parse_policy_file(text, name="trips.json")
    assert (True, "holds.txt") == (other.policies.is_empty, other.legal_hold_file)
    assert other == PolicyFile.from_json(other.to_json(), name="trips.json")


def test_holds_may_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    """A list of holds, one a line, lies beside the policy file."""
    (tmp_path / "holds.txt").write_text("# of the lawyers\nday=1\n\nday=2  # until May\n")
    (tmp_path / "trips.yml").write_text("{version: 1, policies: [], legal_hold: {file: holds.txt}}")
    assert ("day=1", "day=2") == load_policy_file(str(tmp_path / "trips.yml")).guards.legal_hold
    (tmp_path / "holds.txt").unlink()
    with pytest.raises(DocumentNotFoundError, match=r"holds\.txt, named by .*trips\.yml \(legal_hold\)"):
        load_policy_file(str(tmp_path / "trips.yml"))
    with pytest.raises(DocumentNotFoundError, match="does not exist"):
        load_policy_file(str(tmp_path / "nothing.yml"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "holds None, no policy file"),
        ("[]", "holds [], no policy file"),
        ("version: 2\npolicies: []", "has the version 2"),
        ("version: true\npolicies: []", "has the version True"),
        ("policies: []", "has the version None"),
        ("version: 1", "lacks 'policies'"),
        ("version: 1\npolicies: {}", "policies is {}, no list"),
        ("version: 1\npolicys: []", "unknown key 'policys': []; did you mean 'policies'?"),
        ("version: 1\npolicies: []\nversion: 1", "the key 'version' stands twice in one mapping, again in line 3"),
        ("version: 1\npolicies: [{policy: KEEP_BY_TIME}]", "lacks 'partitionSpec', 'policyValue'"),
        ("version: 1\npolicies: [{partitionSpec: a, policy: KEEP_BY_TIME, policyValue: 1}]", "'a' is not field=value"),
        ("version: 1\npolicies: [{partitionSpec: /, policy: KEEP_BY_TIME, policyvalue: 1}]", "(for 'policyValue'?)"),
        ("version: 1\npolicies: [", "is no YAML"),
        ("version: 1\npolicies: !!python/object:os.system []", "is no YAML"),
    ],
)
def test_a_broken_policy_file_is_refused(text: str, shown: str) -> None:
    """The error names the file and shows the offending text, with an example or the name that was meant."""
    with pytest.raises(InvalidPolicyError, match=r"trips\.yaml") as raised:
        parse_policy_file(text, name="trips.yaml")
    assert shown in str(raised.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("guards: {max_partition_share: 50}", "max_partition_share=50 is no share"),
        ("guards: [1]", "[1] is no object of guards"),
        ("guards: false", "False is no object of guards"),
        ("guards: []", "[] is no object of guards"),
        ("protected: ''", "protected is '', no list of texts"),
        ("legal_hold: {}", "legal_hold is {}; write for example"),
        ("legal_hold: 0", "legal_hold is 0, no list of texts"),
        ("protected: region=eu/", "protected is 'region=eu/', no list of texts"),
        ("legal_hold: [1]", "legal_hold is [1], no list of texts"),
        ("legal_hold: {path: x}", "legal_hold is {'path': 'x'}; write for example"),
    ],
)
def test_broken_guards_and_holds_are_refused(text: str, shown: str) -> None:
    """The error names the file and shows the offending text."""
    with pytest.raises(InvalidSettingError, match=r"trips\.yaml") as raised:
        parse_policy_file(f"version: 1\npolicies: []\n{text}", name="trips.yaml")
    assert shown in str(raised.value)


def test_a_key_that_stands_twice_in_json_is_refused() -> None:
    """JSON would take the last of them silently."""
    with pytest.raises(InvalidPolicyError, match="the key 'policy' stands twice in one object"):
        parse_policy_file('{"version": 1, "policies": [{"policy": 1, "policy": 2}]}', name="trips.json")


@pytest.mark.parametrize(("written", "days"), [("30", 30), ("1_000", 1000), ("'30'", 30), ("010", 10)])
def test_numbers_of_yaml_mean_what_they_look_like(written: str, days: int) -> None:
    """A leading zero makes no octal number."""
    text = f"version: 1\npolicies: [{{partitionSpec: /, policy: KEEP_BY_TIME, policyValue: {written}}}]"
    assert [days] == [policy.value for policy in parse_policy_file(text, name="trips.yaml").policies.all()]


@pytest.mark.parametrize("written", ["1:30", "0x1E", "1e3", "30.0", "thirty", "~"])
def test_odd_numbers_of_yaml_are_refused(written: str) -> None:
    """What YAML would read as another number than a person is no number."""
    text = f"version: 1\npolicies: [{{partitionSpec: /, policy: KEEP_BY_TIME, policyValue: {written}}}]"
    with pytest.raises(InvalidPolicyError, match="is no whole number; write for example 30"):
        parse_policy_file(text, name="trips.yaml")


def test_dates_of_yaml_stay_texts() -> None:
    """A hold that looks like a date is a partition's path."""
    found = parse_policy_file("version: 1\npolicies: []\nlegal_hold: [2026-11-30]", name="trips.yaml")
    assert ("2026-11-30",) == found.guards.legal_hold
