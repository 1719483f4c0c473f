"""Short ways to write the facts that health is judged by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_hudi_maint.core.model.commit import PendingPlan, PlanKind, PlannedSlice
from airflow_hudi_maint.core.model.health import HealthSignal
from airflow_hudi_maint.core.model.health_facts import HealthFacts
from airflow_hudi_maint.core.model.instant import Instant, moment_instant, parse_instant_file_name
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics
from airflow_hudi_maint.core.model.table_config import TableConfig
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.planning.health import judge_health
from airflow_hudi_maint.core.planning.health_thresholds import HealthThresholds
from tests.unit.core.planning.builders import partition, statistics

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = 60, 3600, 86_400


def ago(seconds: float) -> str:
    """The instant so long before now."""
    return moment_instant(NOW - timedelta(seconds=seconds), zone=UTC)


def done(seconds: float, action: str = "commit") -> str:
    """The file name of an instant that was requested and completed so long ago."""
    return f"{ago(seconds)}_{ago(seconds)}.{action}"


def requested(seconds: float, action: str = "commit") -> str:
    """The file name of an instant that was requested so long ago and is pending."""
    return f"{ago(seconds)}.{action}.requested"


def timeline(*file_names: str) -> Timeline:
    """The timeline of these files."""
    return Timeline.of(map(instant, file_names))


def instant(file_name: str) -> Instant:
    """The instant of a file name that is one."""
    parsed = parse_instant_file_name(file_name)
    assert parsed is not None
    return parsed


def plan(
    file_name: str, *, kind: PlanKind = PlanKind.CLUSTERING, partitions: Iterable[str] = ("day=1",)
) -> PendingPlan:
    """A pending plan with one file group of each partition."""
    slices = tuple(PlannedSlice(partition_path=path, file_id=f"file-{path}") for path in partitions)
    return PendingPlan(instant=instant(file_name), kind=kind, groups=(slices,), output_file_count=1)


def config(*, version: int = 9, merge_on_read: bool = False, **properties: str) -> TableConfig:
    """A table partitioned by day; double underscores in names stand for dots."""
    given = {name.replace("__", "."): value for name, value in properties.items()}
    return TableConfig.from_properties(
        {
            "hoodie.table.name": "trips",
            "hoodie.table.version": str(version),
            "hoodie.table.type": "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE",
            "hoodie.table.partition.fields": "day",
            "hoodie.table.timeline.timezone": "UTC",
            **given,
        },
        base_path="/lake/trips",
    )


def facts(*file_names: str, **more: Any) -> HealthFacts:
    """A table with this timeline; ``more`` are fields of the facts."""
    given = {"base_path": "/lake/trips", "config": config(), "zone": UTC, "timeline": timeline(*file_names), **more}
    return HealthFacts(**given)


def signal(name: str, seen: HealthFacts, *, thresholds: HealthThresholds | None = None) -> HealthSignal:
    """What is said of one thing."""
    found = judge_health(seen, now=NOW, thresholds=thresholds).signal(name)
    assert found is not None, f"there is no signal {name}"
    return found


def with_files(*partitions: PartitionStatistics, small_file_bytes: int = 100) -> TableStatistics:
    """Statistics of a table with these partitions."""
    return replace(statistics(*partitions), small_file_bytes=small_file_bytes)


def small_files(path: str, count: int) -> PartitionStatistics:
    """A partition with so many base files of one byte, written an hour ago."""
    return replace(
        partition(path, total_bytes=count, modified=ago(HOUR)), base_file_bytes=(1,) * count, file_group_count=count
    )
