"""The real Hudi writer of the golden tables: inserts, failed upserts, table services and what undoes them.

Days are the partitions, trips the rows; both are few, because every byte here is a byte in the repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

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
_LOG_COMPACTION = {
    "hoodie.log.compaction.enable": "true",
    "hoodie.log.compaction.blocks.threshold": "1",
    "hoodie.table.services.incremental.enabled": "false",
}
_PAYLOAD = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
METADATA_TABLE = {"hoodie.metadata.enable": "true"}
# Cleaning and archival as early as Hudi allows: archival must keep more commits than cleaning does.
HOUSEKEEPING = {
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
    region: str | None = "eu"

    def values(self) -> Iterator[str]:
        """Yield the rows as SQL values."""
        region = "cast(null as string)" if self.region is None else f"'{self.region}'"
        for number in range(self.first, self.first + self.count):
            fare = 5 + number % 7 + self.version / 4
            yield (
                f"('{self.day}-{number:02}', cast({fare} as double), cast({60 * number} as int),"
                f" cast({1000 * self.version + number} as bigint), {region}, '{self.day}')"
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

    def overwrite(self, *trips: Trips) -> None:
        """Commit the rows instead of all that their partitions hold; the files of before stay."""
        self._write(self._rows(trips), operation="insert_overwrite")

    def fail_upsert(self, *trips: Trips) -> None:
        """Write the rows' data files and stop before the commit."""
        self._fail(trips, operation="upsert")

    def fail_overwrite(self, *trips: Trips) -> None:
        """Write the data files of an insert_overwrite and stop before the commit."""
        self._fail(trips, operation="insert_overwrite")

    def _fail(self, trips: Iterable[Trips], *, operation: str) -> None:
        try:
            self._write(self._rows(trips), operation=operation, extra=_FAIL_BEFORE_COMMIT)
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

    def roll_back_last(self) -> None:
        """Roll back the last completed write."""
        with self._client() as client:
            if not client.rollback(self._last_write()):
                raise RuntimeError(f"nothing of {self.name} was rolled back")

    def savepoint(self) -> str:
        """Savepoint the last completed write and return its requested time."""
        last = self._last_write()
        with self._client() as client:
            client.savepoint(last, "golden", "kept")
        return last

    def restore(self, savepoint: str) -> None:
        """Restore the table to a savepoint: every later write is undone."""
        with self._client() as client:
            client.restoreToSavepoint(savepoint)

    def clean(self) -> None:
        """Clean with one commit retained; what a failed write left is rolled back first."""
        with self._client({"hoodie.cleaner.commits.retained": "1"}) as client:
            client.clean()

    def log_compact(self, *, execute: bool) -> None:
        """Join the log files of each slice that has several to one, or plan it only."""
        optional = self._hudi.common.util.Option
        with self._client(_LOG_COMPACTION) as client:
            planned = client.scheduleLogCompaction(optional.empty())
            if not planned.isPresent():
                raise RuntimeError(f"no log compaction of {self.name} was planned")
            if execute:
                self._execute_log_compaction(client, planned.get())

    def _execute_log_compaction(self, client: Any, instant: str) -> None:
        try:
            client.logCompact(instant, True)  # noqa: FBT003 Java has no keywords
        except Py4JError as error:
            if "does not exist" not in str(error):
                raise
            # Up to 1.0 the client executes and the caller commits.
            metadata = client.logCompact(instant).getCommitMetadata().get()
            client.commitLogCompaction(instant, metadata, self._hudi.common.util.Option.empty())

    @property
    def _hudi(self) -> Any:
        return self.spark._jvm.org.apache.hudi

    @contextmanager
    def _client(self, extra: dict[str, str] | None = None) -> Iterator[Any]:
        """Hudi's own write client, for what no procedure of all three releases does by path."""
        options = {**self._write_options("upsert"), **(extra or {})}
        options.setdefault("hoodie.datasource.write.payload.class", _PAYLOAD)
        client = self._hudi.DataSourceUtils.createHoodieClient(self.spark._jsc, None, self.path, self.name, options)
        try:
            yield client
        finally:
            client.close()

    def _last_write(self) -> str:
        hadoop_conf = self.spark._jsc.hadoopConfiguration()
        conf = self._hudi.hadoop.fs.HadoopFSUtils.getStorageConfWithCopy(hadoop_conf)
        builder = self._hudi.common.table.HoodieTableMetaClient.builder()
        meta_client = builder.setConf(conf).setBasePath(self.path).build()
        last = meta_client.getCommitsTimeline().filterCompletedInstants().lastInstant().get()
        # 0.15.0 calls a requested time a timestamp; its instants print as [time__action__state…].
        return str(last.toString()).strip("[=>").split("__")[0]

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
        options = {**self._write_options(operation), **(extra or {})}
        rows.coalesce(1).write.format("hudi").options(**options).mode("append").save(self.path)

    def _write_options(self, operation: str) -> dict[str, str]:
        fields = {
            "hoodie.table.name": self.name,
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": "trip_id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": self.partition_fields,
            "hoodie.datasource.write.hive_style_partitioning": "true",
        }
        return {**_SMALL_FILES, **_STEADY, **fields, **self.options}
