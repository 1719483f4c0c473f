"""A table of six days and a workspace without Spark, for what happens between looking and acting."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import Workspace
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.storage.builders import TableBuilder, at

NOW = datetime(2026, 12, 1, tzinfo=UTC)
DAYS = [f"day=2026-11-0{day}" for day in range(1, 7)]


def six_days(tmp_path: Path) -> TableBuilder:
    """Six days of two small files each, written by two commits."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    for number in (1, 2):
        builder.commit(at(number), {day: [(f"{day}-{number}-0", 100)] for day in DAYS})
    return builder


def workspace_with(table: TableBuilder, engine: FakeEngine) -> Workspace:
    return maintenance.open_workspace(table.base_path, engine=lambda: engine)
