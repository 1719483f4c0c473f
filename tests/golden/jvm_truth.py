"""Ask the JVM that wrote a Hudi table what it makes of it.

Everything goes through Hudi's own classes by py4j, with directory listing instead of the metadata table, so that the
answer is the reference a Python reader is held to. The tables are tiny: one call for each slice does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JavaObject = Any


class HudiJvm:
    """One table as Hudi's own classes see it; the three Hudi versions differ only inside this class."""

    def __init__(self, spark: SparkSession, base_path: str, *, hudi_version: str) -> None:
        """Open the table from its files; nothing is cached from an earlier look."""
        self._jvm: JavaObject = spark._jvm
        self._hudi = self._jvm.org.apache.hudi
        self._spark = spark
        self.base_path = base_path
        self._hudi_version = tuple(int(part) for part in hudi_version.split("."))
        hadoop_conf = spark._jsc.hadoopConfiguration()
        self._conf = self._hudi.hadoop.fs.HadoopFSUtils.getStorageConfWithCopy(hadoop_conf)
        table = self._hudi.common.table.HoodieTableMetaClient
        self._meta_client = table.builder().setConf(self._conf).setBasePath(base_path).build()
        self._engine = self._hudi.common.engine.HoodieLocalEngineContext(self._conf)

    def table(self) -> dict[str, Any]:
        """Return the facts of hoodie.properties that decide how the table is read."""
        config = self._meta_client.getTableConfig()
        properties = config.getProps()
        fields = config.getPartitionFields()
        return {
            "name": config.getTableName(),
            "type": config.getTableType().toString(),
            "version": config.getTableVersion().versionCode(),
            "base_path": self.base_path,
            "partition_fields": list(fields.get()) if fields.isPresent() else [],
            "hive_style": str(properties.get("hoodie.datasource.write.hive_style_partitioning")) == "true",
            "url_encoded": str(properties.get("hoodie.datasource.write.partitionpath.urlencode")) == "true",
            "hudi_version": ".".join(str(part) for part in self._hudi_version),
            "metadata_partitions": sorted(config.getMetadataPartitions()),
        }

    def timeline(self) -> list[dict[str, str | None]]:
        """Return the instants of the active timeline in their order, each in its last state."""
        return [
            {
                "requested": self._requested_time(instant),
                "action": instant.getAction(),
                "state": instant.getState().toString(),
                "completed": self._completion_time(instant) if instant.isCompleted() else None,
            }
            for instant in self._meta_client.getActiveTimeline().getInstants()
        ]

    def last_completed_instant(self) -> str:
        """Return the requested time of the last completed instant that wrote data."""
        timeline = self._meta_client.getCommitsTimeline().filterCompletedInstants()
        return self._requested_time(timeline.lastInstant().get())

    def partitions(self, *, by_metadata_table: bool = False) -> dict[str, dict[str, list[dict[str, Any]]]]:
        """Return, for each partition Hudi lists, its latest slices and its merged slices."""
        view = self._file_system_view(by_metadata_table=by_metadata_table)
        last_instant = self.last_completed_instant()
        return {
            partition: {
                "latest": _slices(view.getLatestFileSlices(partition)),
                "merged": _slices(view.getLatestMergedFileSlicesBeforeOrOn(partition, last_instant)),
            }
            for partition in sorted(self._partition_paths(by_metadata_table=by_metadata_table))
        }

    def metadata_view(self) -> dict[str, Any] | None:
        """Return the partitions that the metadata table shows otherwise than listing does, and how.

        None for a partition that it does not know, and for a table without metadata table.
        """
        if "files" not in self.table()["metadata_partitions"]:
            return None
        listed, seen = self.partitions(), self.partitions(by_metadata_table=True)
        paths = sorted(listed.keys() | seen.keys())
        return {path: seen.get(path) for path in paths if seen.get(path) != listed.get(path)}

    def pending_clustering(self) -> list[dict[str, Any]]:
        """Return each pending clustering plan with the file groups it takes, group by group."""
        plans = self._hudi.common.util.ClusteringUtils.getAllPendingClusteringPlans(self._meta_client)
        return [
            {
                "instant": self._requested_time(pair.getLeft()),
                "input_groups": [
                    [{"partition": s.getPartitionPath(), "file_id": s.getFileId()} for s in _each(group.getSlices())]
                    for group in _each(pair.getRight().getInputGroups())
                ],
            }
            for pair in _each(plans)
        ]

    def pending_compaction(self) -> list[dict[str, Any]]:
        """Return each pending compaction plan with its operations."""
        plans = self._hudi.common.util.CompactionUtils.getAllPendingCompactionPlans(self._meta_client)
        return [
            {
                "instant": self._requested_time(pair.getLeft()),
                "operations": [_operation(operation) for operation in _each(pair.getRight().getOperations())],
            }
            for pair in _each(plans)
        ]

    def rows(self) -> dict[str, Any]:
        """Return the rows of a snapshot read, in all and by partition, as Spark counts them."""
        snapshot = self._spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(self.base_path)
        counted = snapshot.groupBy("_hoodie_partition_path").count().collect()
        by_partition = {str(row[0]): int(row[1]) for row in sorted(counted)}
        return {"total": sum(by_partition.values()), "by_partition": by_partition}

    def _partition_paths(self, *, by_metadata_table: bool) -> list[str]:
        utils = self._hudi.common.fs.FSUtils
        listing = self._metadata_config(enabled=by_metadata_table)
        if self._hudi_version < (1, 1):
            storage = self._meta_client.getStorage()
            return list(utils.getAllPartitionPaths(self._engine, storage, listing, self.base_path))
        return list(utils.getAllPartitionPaths(self._engine, self._meta_client, listing))

    def _requested_time(self, instant: JavaObject) -> str:
        # 1.0 gave the two times of an instant their names; before, they were a timestamp and a state transition.
        return str(instant.requestedTime() if self._hudi_version >= (1,) else instant.getTimestamp())

    def _completion_time(self, instant: JavaObject) -> str:
        return str(instant.getCompletionTime() if self._hudi_version >= (1,) else instant.getStateTransitionTime())

    def _metadata_config(self, *, enabled: bool) -> JavaObject:
        return self._hudi.common.config.HoodieMetadataConfig.newBuilder().enable(enabled).build()

    def _file_system_view(self, *, by_metadata_table: bool) -> JavaObject:
        # As Hudi's own query side does. Its shorter constructor leaves pending compactions out of the timeline, and
        # with them the log files written since.
        timeline = self._meta_client.getCommitsAndCompactionTimeline().filterCompletedAndCompactionInstants()
        manager = self._hudi.common.table.view.FileSystemViewManager
        return manager.createInMemoryFileSystemViewWithTimeline(
            self._engine, self._meta_client, self._metadata_config(enabled=by_metadata_table), timeline
        )


def _each(elements: JavaObject) -> Iterator[JavaObject]:
    # py4j's own iteration ends on NoSuchElementException, which the arrays of old Avro versions do not raise.
    iterator = elements.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _slices(stream: JavaObject) -> list[dict[str, Any]]:
    return sorted((_slice(file_slice) for file_slice in _each(stream)), key=lambda found: found["file_id"])


def _slice(file_slice: JavaObject) -> dict[str, Any]:
    base = file_slice.getBaseFile()
    logs = [{"name": log.getFileName(), "bytes": log.getFileSize()} for log in _each(file_slice.getLogFiles())]
    return {
        "file_id": file_slice.getFileId(),
        "base_instant": file_slice.getBaseInstantTime(),
        "base_file": {"name": base.get().getFileName(), "bytes": base.get().getFileSize()}
        if base.isPresent()
        else None,
        "log_files": sorted(logs, key=lambda log: str(log["name"])),
    }


def _operation(operation: JavaObject) -> dict[str, Any]:
    return {
        "partition": operation.getPartitionPath(),
        "file_id": operation.getFileId(),
        "base_instant": operation.getBaseInstantTime(),
        "base_file": operation.getDataFilePath(),
        "log_files": sorted(_each(operation.getDeltaFilePaths())),
    }
