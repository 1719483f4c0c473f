"""A table's policies: added, dropped, emptied, shown and taken from a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import (
    DocumentNotFoundError,
    InvalidPolicyError,
    InvalidSettingError,
    PlanOutdatedError,
)
from airflow_hudi_maint.core.maintenance import Workspace
from airflow_hudi_maint.core.model.partition import PartitionSpec
from airflow_hudi_maint.core.model.policy import (
    DEFAULT_POLICY_KEY,
    DEFAULT_VALUE_KEY,
    EXPLICIT_POLICIES_KEY,
    POLICY_KEYS,
    TTLPolicy,
)
from airflow_hudi_maint.core.model.shipped_ttl import DAYS_KEY
from airflow_hudi_maint.core.storage.properties import PROPERTIES_PATH, load_properties
from tests.airflow.tables import TableBuilder
from tests.unit.core.maintenance.two_regions import ALL, EU, FIELDS, US, policies, two_regions

Open = Callable[..., Workspace]


@pytest.fixture
def base_path(tmp_path: Path) -> str:
    return two_regions(tmp_path)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def table(base_path: str, said: list[str]) -> Open:
    return lambda **settings: maintenance.open_workspace(base_path, log=said.append, **settings)


def stored(workspace: Workspace) -> dict[str, str]:
    return {key: one for key, one in load_properties(workspace.table.storage).items() if key in POLICY_KEYS}


def text(workspace: Workspace) -> bytes:
    return workspace.table.storage.read_bytes(PROPERTIES_PATH)


def test_policies_are_kept_in_rfc_65_s_keys(table: Open, said: list[str]) -> None:
    """Explicit ones as a JSON array, the default one in keys of its own; the file says nothing else."""
    changed = maintenance.set_policies(table(), policies(EU, ALL))

    assert {
        EXPLICIT_POLICIES_KEY: json.dumps([EU], separators=(",", ":")),
        DEFAULT_POLICY_KEY: "KEEP_BY_TIME",
        DEFAULT_VALUE_KEY: "20",
    } == stored(table())
    assert ("+ KEEP_BY_TIME 20 on / (default)", "+ KEEP_BY_COUNT 4 on region=eu/") == changed.lines()
    assert "TTL policies written: 2 added, 0 changed, 0 dropped; the table has 2 policies" == said[-1]
    assert ["hoodie.properties"] == [name for name in table().table.storage.names(".hoodie") if "properties" in name]


def test_a_policy_of_the_same_spec_is_replaced_and_the_others_stay(table: Open) -> None:
    """In its place; a second run changes nothing, to the byte."""
    maintenance.set_policies(table(), policies(EU, US, ALL))
    changed = maintenance.set_policy(table(), TTLPolicy.from_json({**EU, "policyValue": 9}))

    assert ("~ KEEP_BY_COUNT 4 on region=eu/ → KEEP_BY_COUNT 9 on region=eu/",) == changed.lines()
    assert [9, 2, 20] == [policy.value for policy in maintenance.show_policies(table()).all()]
    before = text(table())
    again = maintenance.set_policy(table(), TTLPolicy.from_json({**EU, "policyValue": 9}))
    assert (False, before) == (again.is_changed, text(table()))


def test_a_default_replaces_the_default(table: Open) -> None:
    """Whatever the spec of either."""
    maintenance.set_policies(table(), policies(ALL))
    maintenance.set_policies(table(), policies({**ALL, "partitionSpec": "region=*/", "policyValue": 7}))

    assert ["KEEP_BY_TIME 7 on region=*/"] == [str(one) for one in maintenance.show_policies(table()).all()]


def test_somebody_s_own_spelling_stays_when_nothing_changes(base_path: str, table: Open) -> None:
    """JSON with blanks means the same, so the file is left alone."""
    TableBuilder(base_path=base_path).create(**FIELDS, **{EXPLICIT_POLICIES_KEY: f"[ {json.dumps(EU)} ]"})
    before = text(table())

    assert not maintenance.set_policies(table(), policies(EU)).is_changed
    assert before == text(table())


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ({"spec": PartitionSpec.parse("region=eu/")}, ["KEEP_BY_COUNT 2 on region=us/", "KEEP_BY_TIME 20 on /"]),
        ({"default": True}, ["KEEP_BY_COUNT 4 on region=eu/", "KEEP_BY_COUNT 2 on region=us/"]),
        ({"spec": PartitionSpec.parse("region=us/"), "default": True}, ["KEEP_BY_COUNT 4 on region=eu/"]),
        # The default policy is on this spec, but it is dropped by name only.
        (
            {"spec": PartitionSpec.parse("/")},
            ["KEEP_BY_COUNT 4 on region=eu/", "KEEP_BY_COUNT 2 on region=us/", "KEEP_BY_TIME 20 on /"],
        ),
    ],
)
def test_what_is_dropped_is_what_was_named(table: Open, arguments: dict[str, object], left: list[str]) -> None:
    """And a second run has nothing to drop."""
    maintenance.set_policies(table(), policies(EU, US, ALL))
    maintenance.drop_policy(table(), **arguments)  # type: ignore[arg-type]

    assert left == [str(policy) for policy in maintenance.show_policies(table()).all()]
    assert not maintenance.drop_policy(table(), **arguments).is_changed  # type: ignore[arg-type]


def test_the_last_policy_that_goes_leaves_the_file_as_it_was(table: Open) -> None:
    before = text(table())
    maintenance.set_policies(table(), policies(EU, ALL))
    maintenance.empty_policies(table())

    assert before.rstrip() == text(table()).rstrip(), "but for the end of its last line"
    assert maintenance.show_policies(table()).is_empty


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([{**EU, "partitionSpec": "city=*/"}], "names the fields ['city']; the table is partitioned by"),
        ([{**EU, "partitionSpec": "region=*/day=*/"}], "has none below it; shorten the spec"),
        (
            [{**EU, "policy": "KEEP_BY_TIME"}, {**US, "policy": "KEEP_BY_TIME", "partitionSpec": "region=*/day=1/"}],
            "could both win for one partition",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    table: Open, given: list[dict[str, object]], message: str
) -> None:
    """The whole set that would result is checked, also against what the table has."""
    before = text(table())
    with pytest.raises(InvalidPolicyError) as refused:
        maintenance.set_policies(table(), policies(*given))
    assert message in str(refused.value)
    assert before == text(table())


def test_a_policy_that_could_win_against_one_of_the_table_s_is_refused(table: Open) -> None:
    maintenance.set_policies(table(), policies({**EU, "policy": "KEEP_BY_TIME"}))
    before = text(table())
    with pytest.raises(InvalidPolicyError, match="could both win for one partition"):
        maintenance.set_policies(
            table(), policies({"partitionSpec": "region=*/day=1/", "policy": "KEEP_BY_TIME", "policyValue": 1})
        )
    assert before == text(table())


def test_a_table_without_partitions_takes_no_policy(tmp_path: Path) -> None:
    """Nothing of it could ever expire."""
    path = str(tmp_path / "flat")
    TableBuilder(base_path=path).create(hoodie__table__partition__fields="")
    with pytest.raises(InvalidPolicyError, match=r"flat is not partitioned.*KEEP_BY_TIME 20 on /"):
        maintenance.set_policies(maintenance.open_workspace(path), policies(ALL))


@pytest.mark.parametrize("broken", ["[{", '{"a": 1}', json.dumps([{**EU, "policyValue": "many"}]), "[1]"])
def test_broken_policies_stop_a_change_and_can_be_emptied(base_path: str, table: Open, broken: str) -> None:
    """Nothing is added to what cannot be read, and the way out is named; emptying needs no understanding."""
    TableBuilder(base_path=base_path).create(**FIELDS, **{EXPLICIT_POLICIES_KEY: broken})
    before = text(table())
    for change in (
        lambda: maintenance.set_policies(table(), policies(US)),
        lambda: maintenance.drop_policy(table(), default=True),
    ):
        with pytest.raises(InvalidPolicyError, match=f"broken, so nothing.*{EXPLICIT_POLICIES_KEY}.*Empty them first"):
            change()
    with pytest.raises(InvalidPolicyError, match=EXPLICIT_POLICIES_KEY):
        maintenance.show_policies(table())
    assert before == text(table())
    emptied = maintenance.empty_policies(table())
    assert emptied.lines()[0].startswith(f"! {EXPLICIT_POLICIES_KEY}")
    assert {} == stored(table())


def test_policies_that_somebody_adds_meanwhile_are_kept(table: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours are added to theirs, not to what was there before."""
    workspace = table()
    write_new, began = workspace.table.storage.write_new, []

    def racing(path: str, data: bytes) -> bool:
        if not began:
            began.append(path)
            maintenance.set_policies(table(), policies(US))
        return write_new(path, data)

    monkeypatch.setattr(workspace.table.storage, "write_new", racing)
    changed = maintenance.set_policies(workspace, policies(EU))
    assert ["region=us/", "region=eu/"] == [str(one.spec) for one in maintenance.show_policies(table()).explicit]
    assert ("+ KEEP_BY_COUNT 4 on region=eu/",) == changed.lines()


def test_a_policy_that_would_clash_with_one_that_somebody_adds_meanwhile_is_refused(
    table: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fits the table of before; together they could both win."""
    workspace = table()
    write_new, began = workspace.table.storage.write_new, []
    theirs = {"partitionSpec": "region=*/day=1/", "policy": "KEEP_BY_TIME", "policyValue": 1}

    def racing(path: str, data: bytes) -> bool:
        if not began:
            began.append(path)
            maintenance.set_policies(table(), policies(theirs))
        return write_new(path, data)

    monkeypatch.setattr(workspace.table.storage, "write_new", racing)
    with pytest.raises(InvalidPolicyError, match="could both win"):
        maintenance.set_policies(workspace, policies({**EU, "policy": "KEEP_BY_TIME"}))
    assert ["region=*/day=1/"] == [str(one.spec) for one in maintenance.show_policies(table()).all()]
    assert ["hoodie.properties"] == [name for name in table().table.storage.names(".hoodie") if "properties" in name]


def test_a_dry_run_says_the_same_and_writes_nothing(table: Open) -> None:
    before = text(table())
    dry = maintenance.set_policies(table(), policies(EU, ALL), is_dry_run=True)

    assert before == text(table())
    assert "TTL policies would be written: 2 added, 0 changed, 0 dropped; the table has 2 policies then" == str(dry)
    assert dry.lines() == maintenance.set_policies(table(), policies(EU, ALL)).lines()


def test_it_is_said_when_hudi_s_own_settings_begin_or_cease_to_decide(
    base_path: str, table: Open, said: list[str]
) -> None:
    """Emptying can make more expire, not less."""
    TableBuilder(base_path=base_path).create(**FIELDS, **{DAYS_KEY: "30"})
    maintenance.set_policies(table(), policies(EU))
    assert (
        f"Warning: Hudi's own TTL settings do not decide any more: KEEP_BY_TIME 30 on / (default) from {DAYS_KEY}"
        in (said[-1].removesuffix(" (hoodie.properties)"))
    )
    maintenance.empty_policies(table())
    assert said[-1].startswith("Warning: Hudi's own TTL settings decide now that no policy is left: KEEP_BY_TIME 30")


FILE = """
version: 1
policies:
  - {partitionSpec: /, policy: KEEP_BY_TIME, policyValue: 20, default: true}
  - {partitionSpec: region=eu/, policy: KEEP_BY_COUNT, policyValue: 4}
protected: [region=us/day=2026-11-01]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policies.yaml"
    path.write_text(FILE)
    return path


def test_the_policies_of_a_file_become_the_table_s(table: Open, file: Path) -> None:
    """Others go, also broken ones."""
    maintenance.set_policies(table(), policies(US))
    changed = maintenance.apply_policy_file(table(), maintenance.read_policy_file(table(), str(file)))

    assert "- KEEP_BY_COUNT 2 on region=us/" in changed.lines()
    assert ["region=eu/", "/"] == [str(policy.spec) for policy in maintenance.show_policies(table()).all()]
    assert not maintenance.apply_policy_file(table(), maintenance.read_policy_file(table(), str(file))).is_changed


def test_a_file_replaces_broken_policies(base_path: str, table: Open, file: Path) -> None:
    TableBuilder(base_path=base_path).create(**FIELDS, **{EXPLICIT_POLICIES_KEY: "[{"})
    changed = maintenance.apply_policy_file(table(), maintenance.read_policy_file(table(), str(file)))

    assert changed.lines()[0].startswith("! hoodie.partition.ttl.policies is no JSON")
    assert 2 == len(maintenance.show_policies(table()).all())


def test_a_file_is_not_applied_to_other_policies_than_those_that_were_shown(table: Open, file: Path) -> None:
    """Somebody agreed to one difference; another one has to be looked at again."""
    read = maintenance.read_policy_file(table(), str(file))
    shown = maintenance.apply_policy_file(table(), read, is_dry_run=True)
    maintenance.set_policies(table(), policies(US))
    before = text(table())
    with pytest.raises(PlanOutdatedError, match=r"\+ KEEP_BY_COUNT 2 on region=us/.*look at it again"):
        maintenance.apply_policy_file(table(), read, shown=shown)
    assert before == text(table())


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("version: 1\n", InvalidPolicyError, "lacks 'policies'"),
        ("version: 2\npolicies: []\n", InvalidPolicyError, "has the version 2"),
        ("version: 1\npolicies: {a: 1}\n", InvalidPolicyError, "policies is {'a': 1}, no list"),
        (FILE.replace("region=eu/", "city=eu/"), InvalidPolicyError, "the table is partitioned by ['region', 'day']"),
        (FILE.replace("region=us", "city=us"), InvalidSettingError, "city=us/day=2026-11-01"),
        (FILE + "policies: []\n", InvalidPolicyError, "'policies' stands twice"),
        ("a: [", InvalidPolicyError, "is no YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_what_is_wrong(
    table: Open, file: Path, content: str, error: type[Exception], message: str
) -> None:
    file.write_text(content)
    with pytest.raises(error) as refused:
        maintenance.read_policy_file(table(), str(file))
    assert message in str(refused.value)


def test_a_file_that_is_not_there_is_named(table: Open, tmp_path: Path) -> None:
    with pytest.raises(DocumentNotFoundError, match=r"nowhere\.yaml"):
        maintenance.read_policy_file(table(), str(tmp_path / "nowhere.yaml"))


def test_a_file_may_lie_on_other_storage_than_the_table(table: Open) -> None:
    """The table's storage options are not for it."""
    import fsspec

    fsspec.filesystem("memory").pipe_file("/policies/trips.json", b'{"version": 1, "policies": []}')
    workspace = table(storage_options={"auto_mkdir": False})
    assert maintenance.read_policy_file(workspace, "memory://policies/trips.json").policies.is_empty
