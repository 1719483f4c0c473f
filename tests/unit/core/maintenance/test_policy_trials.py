"""A table's policies, explained and tried out on what was gathered."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import (
    InvalidSettingError,
)
from airflow_hudi_maint.core.maintenance import Workspace
from tests.airflow.tables import TableBuilder
from tests.unit.core.maintenance.two_regions import ALL, EU, US, policies, two_regions

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


NOW = datetime(2026, 11, 30, tzinfo=UTC)


def test_a_partition_is_explained_with_its_decision(table: Open) -> None:
    maintenance.set_policies(table(), policies(EU, US, ALL))
    found = maintenance.explain_partition(table(), "region=eu/day=2026-11-01/", now=NOW)

    ours, default = "hoodie.partition.ttl.policies", "hoodie.partition.ttl.management.default.policy"
    why = "an explicit policy beats the default one"
    assert (
        f"KEEP_BY_COUNT 4 on region=eu/ decides ({ours})",
        "expire: 1st smallest of 10 values of day under region=eu/, 4 kept",
        f"KEEP_BY_TIME 20 on / (default) loses: {why} ({default})",
        f"KEEP_BY_COUNT 2 on region=us/ does not cover it: its spec asks for region=us, which is 'eu' ({ours})",
    ) == found.lines()


def test_a_partition_that_the_table_does_not_have_is_explained_by_its_policies(table: Open) -> None:
    maintenance.set_policies(table(), policies(ALL))
    found = maintenance.explain_partition(table(), "region=de/day=2026-11-01", now=NOW)

    assert (None, "KEEP_BY_TIME 20 on /") == (found.entry, str(found.winner))


def test_stored_statistics_are_replayed_day_by_day(base_path: str, table: Open) -> None:
    """From the day of the instant that they show, though they were gathered again days later."""
    workspace = table()
    maintenance.gather_statistics(workspace, now=datetime(2026, 11, 28, 12, tzinfo=UTC))
    maintenance.gather_statistics(workspace, now=datetime(2026, 12, 2, tzinfo=UTC))
    builder = TableBuilder(base_path=base_path)
    builder.commit({"region=eu/day=2026-12-03": [5000]}, at=datetime(2026, 12, 3, 4, tzinfo=UTC))
    maintenance.gather_statistics(table(), now=datetime(2026, 12, 3, 5, tzinfo=UTC))
    days = maintenance.replay_statistics(table()).run(
        policies({**EU, "policyValue": 9}), since=date(2026, 11, 20), until=date(2026, 12, 4)
    )

    assert date(2026, 11, 28) == days[0].day, "nothing is known of earlier days"
    dropped = {str(day.day): [entry.partition_path for entry in day.expired] for day in days if day.expired}
    assert {
        "2026-11-28": ["region=eu/day=2026-11-01"],
        "2026-12-03": ["region=eu/day=2026-11-04"],
    } == dropped


def test_broken_statistics_are_left_out_of_a_replay(table: Open, said: list[str]) -> None:
    workspace = table()
    maintenance.gather_statistics(workspace, now=NOW)
    workspace.documents.storage.write_atomic(f"{workspace.documents.folder}/statistics/20261101000000000.json", b"{")

    assert 1 == len(maintenance.replay_statistics(workspace).history)
    assert "Warning: left out" in said[-1]


def test_a_table_without_statistics_says_so(table: Open) -> None:
    with pytest.raises(InvalidSettingError, match="there are no stored statistics to replay"):
        maintenance.replay_statistics(table()).run(policies(EU), since=date(2026, 11, 1), until=date(2026, 11, 2))
