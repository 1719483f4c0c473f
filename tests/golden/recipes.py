"""What is done to each golden table, step by step, by the real Hudi writer.

A recipe is a generator: it yields at each state worth keeping, and the caller takes a copy there. Days are the
partitions, trips the rows; both are few, because every byte here is a byte in the repository.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COPY_ON_WRITE = "COPY_ON_WRITE"
MERGE_ON_READ = "MERGE_ON_READ"
DAYS = ("2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04", "2026-11-05")

# The default bloom filter is sized for 60,000 keys and adds 431 KB to each base file.
_SMALL_FILES = {
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.index.bloom.num_entries": "10",
    "hoodie.index.bloom.fpp": "0.1",
    "hoodie.bloom.index.filter.dynamic.max.entries": "10",
    # The zip compresses a whole file better than Parquet its pages of ten values.
    "hoodie.parquet.compression.codec": "uncompressed",
}
# One file group for each insert and partition, and no table service but those a recipe asks for.
_STEADY = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.compact.inline.max.delta.commits": "100",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.metadata.enable": "false",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
}
METADATA_TABLE = {"hoodie.metadata.enable": "true"}
# Cleaning and archival as early as Hudi allows: archival must keep more commits than cleaning does.
_HOUSEKEEPING = {
    "hoodie.clean.automatic": "true",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.commits.archival.batch": "1",
}
# A check that always fails runs when the data files are written and the commit is not: a writer that died there
# leaves the same files, markers included.
_FAIL_BEFORE_COMMIT = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trips:
    """Rows ``first`` to ``first + count - 1`` of one partition; a later ``version`` of a row replaces an earlier."""

    day: str
    first: int
    count: int
    version: int = 0
    region: str = "eu"

    def values(self) -> Iterator[str]:
        """Yield the rows as SQL values."""
        for number in range(self.first, self.first + self.count):
            fare = 5 + number % 7 + self.version / 4
            yield (
                f"('{self.day}-{number:02}', cast({fare} as double), cast({60 * number} as int),"
                f" cast({1000 * self.version + number} as bigint), '{self.region}', '{self.day}')"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A state worth keeping, and in words what led to it since the stage before."""

    name: str
    done: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A Hudi table that is being written."""

    spark: SparkSession
    name: str
    path: str
    table_type: str
    partition_fields: str = "day"
    options: dict[str, str] = field(default_factory=dict)

    @property
    def is_merge_on_read(self) -> bool:
        """Say whether upserts go to log files."""
        return self.table_type == MERGE_ON_READ

    def insert(self, *trips: Trips) -> None:
        """Commit the rows as new file groups."""
        self._write(self._rows(trips), operation="insert")

    def upsert(self, *trips: Trips) -> None:
        """Commit the rows over those of the same keys."""
        self._write(self._rows(trips), operation="upsert")

    def fail_upsert(self, *trips: Trips) -> None:
        """Write the rows' data files and stop before the commit."""
        try:
            self._write(self._rows(trips), operation="upsert", extra=_FAIL_BEFORE_COMMIT)
        except Py4JJavaError:
            return
        raise RuntimeError(f"the write to {self.name} that was to fail has committed")

    def delete_partition(self, partition: str) -> None:
        """Commit that the partition is empty; its files stay."""
        extra = {"hoodie.datasource.write.partitions.to.delete": partition}
        self._write(self._rows([]), operation="delete_partition", extra=extra)

    def run_clustering(self, *, partition: str, op: str) -> None:
        """Call Hudi's clustering on one partition."""
        self.spark.sql(
            f"CALL run_clustering(path => '{self.path}', op => '{op}', selected_partitions => '{partition}',"
            f" options => '{self._service_options()}')"
        ).collect()

    def schedule_compaction(self) -> None:
        """Write a compaction plan for every file group with log files that is not in another plan."""
        options = f"{self._service_options()},hoodie.compact.inline.max.delta.commits=1"
        planned = self.spark.sql(
            f"CALL run_compaction(path => '{self.path}', op => 'schedule', options => '{options}')"
        ).collect()
        if not planned:
            raise RuntimeError(f"no compaction of {self.name} was planned")

    def _service_options(self) -> str:
        kept = {**_SMALL_FILES, **_STEADY, **self.options}
        kept.pop("hoodie.compact.inline.max.delta.commits")
        return ",".join(f"{key}={value}" for key, value in kept.items())

    def _rows(self, trips: Iterable[Trips]) -> DataFrame:
        values = [value for each in trips for value in each.values()] or list(Trips(day="", first=0, count=1).values())
        columns = "trip_id, fare, seconds, ts, region, day"
        rows = self.spark.sql(f"SELECT * FROM VALUES {', '.join(values)} AS t({columns})").where("day <> ''")
        return rows if "region" in self.partition_fields else rows.drop("region")

    def _write(self, rows: DataFrame, *, operation: str, extra: dict[str, str] | None = None) -> None:
        fields = {
            "hoodie.table.name": self.name,
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": "trip_id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": self.partition_fields,
            "hoodie.datasource.write.hive_style_partitioning": "true",
        }
        options = {**_SMALL_FILES, **_STEADY, **fields, **self.options, **(extra or {})}
        rows.coalesce(1).write.format("hudi").options(**options).mode("append").save(self.path)


def trips(table: Table) -> Iterator[Stage]:
    """Take one table through plain writes, clustering and expiry, to plans that are still pending."""
    yield from _plain(table)
    yield from _clustered(table)
    yield from _pending(table)


def _plain(table: Table) -> Iterator[Stage]:
    table.insert(*(Trips(day=day, first=0, count=4) for day in DAYS[:4]))
    table.insert(*(Trips(day=day, first=4, count=3) for day in (DAYS[0], DAYS[2])))
    table.insert(*(Trips(day=day, first=7, count=2) for day in (DAYS[0], DAYS[2], DAYS[3])))
    table.upsert(
        Trips(day=DAYS[0], first=3, count=2, version=1),
        Trips(day=DAYS[2], first=0, count=1, version=1),
        Trips(day=DAYS[3], first=2, count=1, version=1),
    )
    yield Stage(
        name="plain",
        done=(
            "three inserts (into days 1 to 4, into days 1 and 3, into days 1, 3 and 4), small-file handling off",
            "an upsert of four rows in three days: "
            + ("log files" if table.is_merge_on_read else "new base files of the same file groups"),
        ),
    )


def _clustered(table: Table) -> Iterator[Stage]:
    table.run_clustering(partition=f"day={DAYS[0]}", op="scheduleandexecute")
    table.delete_partition(f"day={DAYS[1]}")
    table.fail_upsert(Trips(day=DAYS[3], first=1, count=1, version=2), Trips(day=DAYS[2], first=20, count=2))
    table.insert(Trips(day=DAYS[4], first=0, count=3))
    yield Stage(
        name="clustered",
        done=(
            "clustering of the first day; the replaced file groups are still on disk",
            "delete_partition of the second day; its files are still on disk",
            "an upsert into the third and fourth day that a pre-commit check stopped after its data files were written",
            "an insert into a fifth day, which rolled the stopped upsert back first",
        ),
    )


def _pending(table: Table) -> Iterator[Stage]:
    table.upsert(Trips(day=DAYS[3], first=2, count=3, version=3))  # the third row is a new one
    done = ["an upsert of three rows of the fourth day, one of them new"]
    if table.is_merge_on_read:
        # Before the clustering plan: 0.15.0 schedules no compaction while an older clustering is pending.
        table.schedule_compaction()
        table.upsert(Trips(day=DAYS[3], first=3, count=2, version=4), Trips(day=DAYS[4], first=1, count=1, version=4))
        done += [
            "a compaction plan of every file group with log files, not executed",
            "after it an upsert of two rows of the fourth day (one in a file group of the plan) and one of the fifth",
        ]
    table.run_clustering(partition=f"day={DAYS[2]}", op="schedule")
    done.append("a clustering plan for the third day's file groups that are in no compaction plan, not executed")
    table.fail_upsert(Trips(day=DAYS[3], first=7, count=1, version=5), Trips(day=DAYS[0], first=30, count=2))
    done.append(
        "an upsert into the first and fourth day that a pre-commit check stopped after its data files were written:"
        " those files, its markers and its inflight instant are there"
    )
    yield Stage(name="pending", done=tuple(done))


def archived(table: Table) -> Iterator[Stage]:
    """Write on until cleaning and archival have taken the beginning of the table's history."""
    table.insert(Trips(day=DAYS[0], first=0, count=4), Trips(day=DAYS[1], first=0, count=4))
    table.insert(Trips(day=DAYS[0], first=4, count=3))
    yield Stage(name="young", done=("an insert into two days and one into the first day",))
    table.run_clustering(partition=f"day={DAYS[0]}", op="scheduleandexecute")
    for version in range(1, 7):
        table.upsert(Trips(day=DAYS[version % 2], first=version % 4, count=2, version=version))
    done = (
        "clustering of the first day",
        "six upserts, in turn into either day, each followed by cleaning (1 commit retained) and archival (2 to 3"
        " commits kept)" + (" and by compaction after every second" if table.is_merge_on_read else ""),
    )
    yield Stage(name="archived", done=done)


def flat(table: Table) -> Iterator[Stage]:
    """Write a table without partitions."""
    table.insert(Trips(day=DAYS[0], first=0, count=4))
    table.insert(Trips(day=DAYS[1], first=0, count=4))
    table.upsert(Trips(day=DAYS[0], first=1, count=1, version=1))
    yield Stage(name="flat", done=("two inserts and an upsert of one row, no partitions",))


def nested(table: Table) -> Iterator[Stage]:
    """Write a table with two partition fields whose values need URL encoding."""
    for first in (0, 3):
        table.insert(
            Trips(day=DAYS[0], first=first, count=3, region="eu"),
            Trips(day=DAYS[1], first=first, count=3, region="us/east 1"),
        )
    table.upsert(Trips(day=DAYS[1], first=1, count=1, version=1, region="us/east 1"))
    yield Stage(name="nested", done=("two inserts into two regions and an upsert of one row, values URL-encoded",))


def bare(table: Table) -> Iterator[Stage]:
    """Write a table whose partition paths are the bare values."""
    table.insert(Trips(day=DAYS[0], first=0, count=3), Trips(day=DAYS[1], first=0, count=3))
    table.upsert(Trips(day=DAYS[1], first=1, count=1, version=1))
    yield Stage(name="bare", done=("an insert into two days and an upsert of one row, no hive-style names",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A way to make one table, the states it yields, and the write options that belong to it."""

    make: Callable[[Table], Iterator[Stage]]
    stages: tuple[str, ...]
    partition_fields: str = "day"
    options: dict[str, str] = field(default_factory=dict)


TRIPS = Recipe(make=trips, stages=("plain", "clustered", "pending"))
ARCHIVED = Recipe(make=archived, stages=("young", "archived"), options=_HOUSEKEEPING)
ARCHIVED_COMPACTED = Recipe(
    make=archived,
    stages=("young", "archived"),
    options={**_HOUSEKEEPING, "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"},
)
FLAT = Recipe(make=flat, stages=("flat",), partition_fields="")
NESTED = Recipe(
    make=nested,
    stages=("nested",),
    partition_fields="region,day",
    options={"hoodie.datasource.write.partitionpath.urlencode": "true"},
)
BARE = Recipe(make=bare, stages=("bare",), options={"hoodie.datasource.write.hive_style_partitioning": "false"})
