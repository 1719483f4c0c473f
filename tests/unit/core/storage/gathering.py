"""Gather statistics of a hand-made table, in full and since earlier ones."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.storage.statistics import gather_statistics
from tests.unit.core.storage.builders import TableBuilder

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ONE, TWO = "day=2026-11-01", "day=2026-11-02"


def full(builder: TableBuilder) -> TableStatistics:
    return gather_statistics(builder.open(), now=NOW)


def since(builder: TableBuilder, previous: TableStatistics) -> TableStatistics:
    """Gather since ``previous`` and check that a full gather says the same."""
    statistics = gather_statistics(builder.open(), now=NOW, previous=previous)
    assert statistics.partitions == full(builder).partitions
    return statistics


def dates(statistics: TableStatistics) -> dict[str, str]:
    return {row.partition_path: row.last_modified_instant for row in statistics.partitions}
