"""The table that maintenance is tried on: six days in files of ten rows, three of them a day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow_hudi_maint.core.model.policy import PolicySet
from tests.spark.writer import HudiWriter

DAYS = tuple(f"2026-11-0{day}" for day in range(1, 7))
COMMITS = 3
ROWS_A_COMMIT = 10
KEEP_FOUR = PolicySet.from_json([{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 4}])
"""Drops the two oldest days."""


def rows(commit: int, *, day: str, value: float = 1.0) -> list[list[Any]]:
    """The rows that one commit writes to one day."""
    return [[f"{day}-{commit}-{number}", day, value, commit] for number in range(ROWS_A_COMMIT)]


def make_table(writer: HudiWriter, path: Path, *, table_type: str = "COPY_ON_WRITE") -> dict[str, int]:
    """Write the table; returns its rows by partition path."""
    for commit in range(COMMITS):
        writer.insert(
            path,
            [row for day in DAYS for row in rows(commit, day=day)],
            hoodie__datasource__write__table__type=table_type,
        )
    return {f"day={day}": COMMITS * ROWS_A_COMMIT for day in DAYS}
