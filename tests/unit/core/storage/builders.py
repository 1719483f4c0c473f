"""Hand-made Hudi tables, small enough to see through: what a test needs on the timeline and in the partitions."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.table import HudiTable

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "trips_record",
        "namespace": "hoodie.trips",
        "fields": [
            {"name": "trip_id", "type": "string"},
            {"name": "fare", "type": ["null", "double"], "default": None},
            {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
        ],
    }
)


def at(second: int, *, minute: int = 0) -> str:
    """An instant of one day, by its minute and second."""
    return f"2026113010{minute:02}{second:02}000"


def parquet(
    commit_times: Sequence[str], *, statistics: bool = True, extra: Mapping[str, Sequence[object]] | None = None
) -> bytes:
    """A base file with one row for each commit time, two rows to a row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Sequence[object]] = {"_hoodie_commit_time": commit_times, **(extra or {})}
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, row_group_size=2, write_statistics=statistics)
    return buffer.getvalue()


def properties_text(settings: Mapping[str, str]) -> str:
    """The text of a properties file with the checksum that Hudi expects."""
    name = f"{settings.get('hoodie.database.name', '')}.{settings['hoodie.table.name']}"
    lines = ["#Updated at 2026-11-30T10:00:00Z", *(f"{key}={value}" for key, value in settings.items())]
    return "\n".join([*lines, f"hoodie.table.checksum={zlib.crc32(name.encode())}", ""])


@dataclass(kw_only=True)
class TableBuilder:
    """Writes a table step by step. A file is ``(file id, content or size in bytes)``."""

    base_path: str
    version: int = 9
    merge_on_read: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.storage = Storage.open(self.base_path, storage_options=self.storage_options)
        settings = {
            "hoodie.table.name": "trips",
            "hoodie.table.type": "MERGE_ON_READ" if self.merge_on_read else "COPY_ON_WRITE",
            "hoodie.table.version": str(self.version),
            "hoodie.table.partition.fields": "day",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.table.timeline.timezone": "UTC",
            **self.settings,
        }
        self.storage.write_atomic(".hoodie/hoodie.properties", properties_text(settings).encode())

    @property
    def timeline_folder(self) -> str:
        return ".hoodie" if self.version < 8 else ".hoodie/timeline"

    def open(self) -> HudiTable:
        return HudiTable.open(self.base_path, storage_options=self.storage_options)

    def commit(
        self,
        instant: str,
        files: Mapping[str, Sequence[tuple[str, bytes | int]]] | None = None,
        *,
        logs: Mapping[str, Sequence[tuple[str, str, int]]] | None = None,
        replaced: Mapping[str, Sequence[str]] | None = None,
        action: str | None = None,
        operation: str = "UPSERT",
        completion: str | None = None,
        schema: str | None = SCHEMA,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        """Complete a write; ``logs`` are (file id, base instant, size); ``completion`` is ``instant`` by default."""
        written: dict[str, list[dict[str, object]]] = {}
        for partition, entries in (files or {}).items():
            for file_id, content in entries:
                path = self.base_file(partition, file_id, instant, content)
                written.setdefault(partition, []).append({"fileId": file_id, "path": path})
        for partition, log_entries in (logs or {}).items():
            for file_id, base_instant, size in log_entries:
                path = self.log_file(partition, file_id, instant=instant, base_instant=base_instant, size=size)
                written.setdefault(partition, []).append({"fileId": file_id, "path": path})
        default = "replacecommit" if replaced is not None else "deltacommit" if self.merge_on_read else "commit"
        metadata = {
            "partitionToWriteStats": written,
            "partitionToReplaceFileIds": dict(replaced or {}),
            "operationType": operation,
            "extraMetadata": {**({"schema": schema} if schema else {}), **(extra or {})},
        }
        self.instant(instant, action or default, metadata, completion=completion)

    def instant(
        self, instant: str, action: str, content: Mapping[str, object], *, completion: str | None = None
    ) -> None:
        """Put a completed instant on the timeline."""
        done = f"_{completion or instant}" if self.version >= 8 else ""
        self.put(f"{self.timeline_folder}/{instant}{done}.{action}", json.dumps(content).encode())

    def pending(self, instant: str, action: str, content: Mapping[str, object] | None = None) -> None:
        """Put a requested instant on the timeline."""
        self.put(
            f"{self.timeline_folder}/{instant}.{action}.requested", json.dumps(content).encode() if content else b""
        )

    def rollback(self, instant: str, *, of: str, partitions: Sequence[str] = ()) -> None:
        """Put a completed rollback on the timeline; the undone files are for the caller to remove."""
        self.instant(
            instant, "rollback", {"commitsRollback": [of], "partitionMetadata": {name: {} for name in partitions}}
        )

    def savepoint(self, instant: str, *, by: str, saved_at: datetime, completion: str) -> None:
        """Put a completed savepoint of an instant on the timeline."""
        saved_ms = int(saved_at.timestamp() * 1000)
        content = {"savepointedBy": by, "savepointedAt": saved_ms, "comments": "", "partitionMetadata": {}}
        self.instant(instant, "savepoint", content, completion=completion)

    def base_file(self, partition: str, file_id: str, instant: str, content: bytes | int) -> str:
        path = f"{partition}/{file_id}_0-1-2_{instant}.parquet" if partition else f"{file_id}_0-1-2_{instant}.parquet"
        self.put(path, b"x" * content if isinstance(content, int) else content)
        self.metafile(partition)
        return path

    def log_file(self, partition: str, file_id: str, *, instant: str, base_instant: str, size: int) -> str:
        name_instant = base_instant if self.version < 8 else instant
        version = 1 + sum(
            entry.name.startswith(f".{file_id}_{name_instant}.log") for entry in self.storage.list(partition)
        )
        name = f".{file_id}_{name_instant}.log.{version}_0-1-2"
        path = f"{partition}/{name}" if partition else name
        self.put(path, b"l" * size)
        return path

    def metafile(self, partition: str) -> None:
        path = f"{partition}/.hoodie_partition_metadata" if partition else ".hoodie_partition_metadata"
        self.put(path, b"commitTime=20261130100000000\npartitionDepth=1\n")

    def put(self, path: str, content: bytes) -> None:
        self.storage.write_atomic(path, content)

    def remove(self, path: str) -> None:
        self.storage.delete(path)

    def archive(self, instant: str) -> None:
        """Take an instant off the active timeline, as the archiver does."""
        for entry in self.storage.list(self.timeline_folder):
            if entry.name.startswith(instant):
                self.storage.delete(f"{self.timeline_folder}/{entry.name}")
