"""Planning an expiry on real tables: clocks that need storage, and where policies come from."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.maintenance.expiry_planning import previous_expired, table_policies
from airflow_hudi_maint.core.maintenance.workspace import Workspace
from airflow_hudi_maint.core.model.expiry_guards import ExpiryGuards
from airflow_hudi_maint.core.model.policy import DEFAULT_POLICY_KEY, DEFAULT_VALUE_KEY, EXPLICIT_POLICIES_KEY, PolicySet
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.shipped_ttl import DAYS_KEY, INLINE_KEY
from tests.golden.golden import unpack

NOW = datetime(2027, 6, 1, tzinfo=UTC)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return unpack("v9_cow_plain", tmp_path)


def workspace(table: Path, **write_options: str) -> Workspace:
    return maintenance.open_workspace(
        str(table),
        timeline_zone="UTC",
        write_options={key.replace("__", "."): one for key, one in write_options.items()},
    )


def add_property(table: Path, line: str) -> None:
    path = table / ".hoodie" / "hoodie.properties"
    path.write_text(f"{path.read_text()}{line}\n")


def test_creation_is_read_only_where_a_policy_goes_by_it(table: Path) -> None:
    """A plan by creation reads the metafiles of the partitions under its policy, and no others."""
    by_creation = {"partitionSpec": "day=2026-11-01/", "policy": "KEEP_BY_TIME", "policyValue": 1, "clock": "created"}
    (table / "day=2026-11-02" / ".hoodie_partition_metadata").write_bytes(b"\xff broken")
    plan = maintenance.plan_expiry(
        workspace(table),
        now=NOW,
        policies=PolicySet.from_json([by_creation]),
        guards=ExpiryGuards.from_json({"clock": "wall"}),
    ).plan
    assert ["day=2026-11-01"] == [entry.partition_path for entry in plan.expired]
    assert plan.expired[0].reason.startswith("created 18")


def test_hudis_own_settings_are_the_default_where_there_is_no_other(table: Path) -> None:
    """The table's properties go before the write options, and RFC-65's keys before both."""
    options = {DAYS_KEY.replace(".", "__"): "9"}
    assert table_policies(workspace(table)).is_empty
    found = table_policies(workspace(table, **options)).default
    assert found is not None
    assert ("KEEP_BY_TIME 9 on /", f"{DAYS_KEY} (write options)") == (str(found), found.source)
    add_property(table, f"{DAYS_KEY}=30")
    found = table_policies(workspace(table, **options)).default
    assert found is not None
    assert ("KEEP_BY_TIME 30 on /", f"{DAYS_KEY} (hoodie.properties)") == (str(found), found.source)
    add_property(table, f'{EXPLICIT_POLICIES_KEY}=[{{"partitionSpec":"/","policy":"KEEP_BY_COUNT","policyValue":3}}]')
    assert ["KEEP_BY_COUNT 3 on /"] == [str(policy) for policy in table_policies(workspace(table)).all()]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (f"{EXPLICIT_POLICIES_KEY}=[{{", EXPLICIT_POLICIES_KEY),
        (
            f'{EXPLICIT_POLICIES_KEY}=[{{"partitionSpec":"/","policy":"KEEP_BY_TIME","policyValue":1,"policyValue":2}}]',
            "the key 'policyValue' stands twice",
        ),
        (f'{EXPLICIT_POLICIES_KEY}=[{{"partitionSpec":"city=x/","policy":"KEEP_BY_TIME","policyValue":1}}]', "city"),
        (f"{INLINE_KEY}=true", f"{INLINE_KEY}=true asks for expiry"),
    ],
)
def test_a_broken_policy_stops_expiry(table: Path, line: str, shown: str) -> None:
    """A default policy beside it does not stand in: the error names the key, and no plan is written."""
    if "inline" not in line:
        add_property(table, f"{DEFAULT_POLICY_KEY}=KEEP_BY_TIME\n{DEFAULT_VALUE_KEY}=1")
    add_property(table, line)
    with pytest.raises(InvalidPolicyError, match="hoodie") as raised:
        maintenance.plan_expiry(workspace(table), now=NOW)
    assert shown in str(raised.value)
    assert not (table / ".hoodie" / ".airflow_hudi_maint" / "plans").exists()


def test_the_run_before_is_the_last_that_dropped_something(table: Path) -> None:
    """Reports of dry runs, of other steps and of runs without work are no measure."""
    documents = workspace(table).documents
    assert None is previous_expired(documents)

    def write(step: Step, outcome: Outcome, *, number: int, partitions: int) -> None:
        report = StepReport(
            step=step,
            outcome=outcome,
            message="",
            base_path="",
            base_instant="",
            partitions=tuple(map(str, range(partitions))),
        )
        documents.write_kept("reports", stem=f"{number}-{step}", document=report.to_json())

    write(Step.EXPIRE, Outcome.DONE, number=1, partitions=3)
    write(Step.EXPIRE, Outcome.DONE, number=2, partitions=4)
    write(Step.EXPIRE, Outcome.DRY_RUN, number=3, partitions=9)
    write(Step.EXPIRE, Outcome.NOTHING_TO_DO, number=4, partitions=0)
    write(Step.EXECUTE_CLUSTERING, Outcome.DONE, number=5, partitions=7)
    assert 4 == previous_expired(documents)
