"""A table of two regions and ten days, for what is done with its policies."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from airflow_hudi_maint.core.model.policy import PolicySet
from tests.airflow.tables import TableBuilder

EU = {"partitionSpec": "region=eu/", "policy": "KEEP_BY_COUNT", "policyValue": 4}
US = {"partitionSpec": "region=us/", "policy": "KEEP_BY_COUNT", "policyValue": 2}
ALL = {"partitionSpec": "/", "policy": "KEEP_BY_TIME", "policyValue": 20, "default": True}
FIELDS = {"hoodie__table__partition__fields": "region,day"}
DAYS = range(1, 29, 3)


def two_regions(tmp_path: Path) -> str:
    """Write the table, from 1 to 28 November 2026, and return its base path."""
    path = str(tmp_path / "trips")
    builder = TableBuilder(base_path=path).create(**FIELDS)
    for number, day in enumerate(DAYS, start=1):
        at = datetime(2026, 11, day, 4, tzinfo=UTC)
        builder.commit({f"region={one}/day=2026-11-{day:02d}": [1000 * number] for one in ("eu", "us")}, at=at)
    return path


def policies(*given: dict[str, object]) -> PolicySet:
    return PolicySet.from_json(given)
