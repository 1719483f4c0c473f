"""Tables that maintenance is tried on: one partitioned by day, one by region and day."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from airflow_hudi_maint.core.model.instant import instant_moment
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.spark.writer import HudiWriter

DAYS = tuple(f"2026-11-0{day}" for day in range(1, 7))
COMMITS = 3
ROWS_A_COMMIT = 10
KEEP_FOUR = PolicySet.from_json([{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 4}])
"""Drops the two oldest days."""

EVERY_INDEX = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
    # Ten rows need no ten file groups.
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "1",
    "hoodie.metadata.index.column.stats.file.group.count": "1",
    "hoodie.metadata.index.bloom.filter.file.group.count": "1",
}
"""A writer's options for every index that the metadata table can hold, and for looking up keys in that of records."""
INDEX_PARTITIONS = {"files", "column_stats", "partition_stats", "bloom_filters", "record_index"}


def rows(commit: int, *, day: str, value: float = 1.0) -> list[list[Any]]:
    """The rows that one commit writes to one day."""
    return [[f"{day}-{commit}-{number}", day, value, commit] for number in range(ROWS_A_COMMIT)]


def make_table(writer: HudiWriter, path: Path, *, table_type: str = "COPY_ON_WRITE", **options: str) -> dict[str, int]:
    """Write the table, with more options if given; returns its rows by partition path."""
    for commit in range(COMMITS):
        writer.insert(
            path,
            [row for day in DAYS for row in rows(commit, day=day)],
            hoodie__datasource__write__table__type=table_type,
            **options,
        )
    return {f"day={day}": COMMITS * ROWS_A_COMMIT for day in DAYS}


class RegionTable:
    """A table of three regions, each with a policy of another kind that drops its oldest day.

    eu and us have three days, ap has two. Two inserts write ten rows each to every day of eu and us; of ap the first
    day is in the first insert, and the second day in the second.
    """

    REGIONS = ("eu", "us", "ap")

    def __init__(self, writer: HudiWriter, path: Path, *, table_type: str, hive_style: bool, indexed: bool) -> None:
        """Describe the table; ``indexed`` gives it every index that there is."""
        self.writer = writer
        self.path = path
        self.hive_style = hive_style
        self.is_merge_on_read = table_type == "MERGE_ON_READ"
        self._options = {
            "hoodie.datasource.write.table.type": table_type,
            "hoodie.datasource.write.partitionpath.field": "region,day",
            "hoodie.datasource.write.hive_style_partitioning": "true" if hive_style else "false",
            # Of Hudi 1.1 and later: no older release wrote keys to this table.
            "hoodie.write.complex.keygen.validation.enable": "false",
            **(EVERY_INDEX if indexed else {}),
        }

    def make(self) -> None:
        """Write the table in two inserts and an upsert of one day that is kept."""
        busy = [(region, day) for region in ("eu", "us") for day in DAYS[:3]]
        for commit in (0, 1):
            here = [*busy, ("ap", DAYS[commit])]
            written = [row for region, day in here for row in self.rows(commit, region=region, day=day)]
            self.writer.write(self.path, written, operation="insert", options=self._options)
        self.upsert(self.rows(0, region="eu", day=DAYS[2], value=2.0))

    def upsert(self, changed: list[list[Any]], **options: str) -> None:
        """Upsert rows, as the table's own pipeline does."""
        self.writer.write(self.path, changed, operation="upsert", options={**self._options, **options})

    @staticmethod
    def rows(commit: int, *, region: str, day: str, value: float = 1.0) -> list[list[Any]]:
        """The rows that one commit writes to one day of a region."""
        return [[f"{region}-{row[0]}", *row[1:], region] for row in rows(commit, day=day, value=value)]

    def partition(self, region: str, day: int) -> str:
        """The path of a region's day, counted from one."""
        value = DAYS[day - 1]
        return f"region={region}/day={value}" if self.hive_style else f"{region}/{value}"

    @property
    def oldest(self) -> list[str]:
        """The partitions that expire, in order of path."""
        return sorted(self.partition(region, 1) for region in self.REGIONS)

    @property
    def kept(self) -> dict[str, int]:
        """The other partitions and their rows."""
        busy = {self.partition(region, day): 2 * ROWS_A_COMMIT for region in ("eu", "us") for day in (2, 3)}
        return {**busy, self.partition("ap", 2): ROWS_A_COMMIT}

    def policies(self) -> PolicySet:
        """One policy a region: by count, by size (what two days take on the disk), and by time."""
        files = [file for day in (2, 3) for file in (self.path / self.partition("us", day)).glob("*.parquet")]
        kinds = {"eu": ("COUNT", 2), "us": ("SIZE", sum(file.stat().st_size for file in files)), "ap": ("TIME", 1)}
        return PolicySet.from_json(
            [
                {"partitionSpec": f"region={region}/", "policy": f"KEEP_BY_{kind}", "policyValue": value}
                for region, (kind, value) in kinds.items()
            ]
        )

    def a_day_between(self, table: HudiTable, statistics: TableStatistics) -> datetime:
        """A moment at which the older day of ap was written more than 24 hours ago, and the newer one less."""
        modified = {row.partition_path: row.last_modified_instant for row in statistics.partitions}
        older, newer = (instant_moment(modified[self.partition("ap", day)], zone=table.zone) for day in (1, 2))
        return older + (newer - older) / 2 + timedelta(days=1)
