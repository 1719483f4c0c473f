"""Write small Hudi tables of version 8 by hand: files with the names and sizes that a writer leaves, and a timeline.

No row is in them; everything that needs no engine works on them as on a real one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import fsspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "trips",
        "fields": [{"name": name, "type": ["null", "string"]} for name in ("trip_id", "day", "city")],
    }
)
PROPERTIES = {
    "hoodie.table.name": "trips",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "8",
    "hoodie.timeline.layout.version": "2",
    "hoodie.table.recordkey.fields": "trip_id",
    "hoodie.table.partition.fields": "day",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.table.create.schema": SCHEMA,
}


def instant_text(moment: datetime) -> str:
    """Return the instant of a moment, in UTC."""
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


@dataclass(kw_only=True)
class TableBuilder:
    """A table at a path or URL; each method adds to it."""

    base_path: str

    def create(self, **properties: str) -> TableBuilder:
        """Write ``hoodie.properties``; double underscores in names stand for dots."""
        given = {name.replace("__", "."): value for name, value in properties.items()}
        lines = (f"{name}={value}" for name, value in {**PROPERTIES, **given}.items())
        self._write(".hoodie/hoodie.properties", "\n".join(lines))
        return self

    def commit(
        self,
        files: Mapping[str, Sequence[int]],
        *,
        at: datetime,
        takes: timedelta = timedelta(seconds=1),
        operation: str = "INSERT",
        action: str = "commit",
        replaced: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """Complete a commit that writes base files of these sizes, by partition path; return its instant.

        ``replaced`` are the file groups that a replace commit takes away, by partition path.
        """
        instant = instant_text(at)
        stats = {
            path: [self._base_file(path, instant, n, size) for n, size in enumerate(sizes)]
            for path, sizes in files.items()
        }
        metadata: dict[str, Any] = {
            "partitionToWriteStats": stats,
            "operationType": operation,
            "extraMetadata": {"schema": SCHEMA},
        }
        if action == "replacecommit":
            metadata["partitionToReplaceFileIds"] = replaced or {path: [] for path in files}
        for state in (
            f"{instant}.{action}.requested",
            f"{instant}.{action}.inflight" if action != "commit" else f"{instant}.inflight",
        ):
            self._write(f".hoodie/timeline/{state}", "")
        self._write(f".hoodie/timeline/{instant}_{instant_text(at + takes)}.{action}", json.dumps(metadata))
        return instant

    def pending(self, *, at: datetime, action: str = "commit") -> str:
        """Leave a requested instant; return it."""
        instant = instant_text(at)
        self._write(f".hoodie/timeline/{instant}.{action}.requested", "")
        return instant

    def _base_file(self, partition: str, instant: str, number: int, size: int) -> dict[str, Any]:
        file_id = f"{number:08d}-0000-0000-0000-{instant[-12:]}-0"
        path = f"{partition}/{file_id}_0-1-{number}_{instant}.parquet"
        self._write(f"{partition}/.hoodie_partition_metadata", f"commitTime={instant}\npartitionDepth=1\n")
        self._write(path, "x" * size)
        return {"fileId": file_id, "path": path, "fileSizeInBytes": size, "numWrites": 1}

    def _write(self, path: str, text: str) -> None:
        file_system, root = fsspec.core.url_to_fs(self.base_path)
        full = f"{root}/{path}"
        file_system.makedirs(full.rpartition("/")[0], exist_ok=True)
        file_system.pipe_file(full, text.encode())


def three_days(base_path: str, **properties: str) -> TableBuilder:
    """Make a table with three partitions of one file each, committed on three days up to yesterday."""
    table = TableBuilder(base_path=base_path).create(**properties)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for days in (3, 2, 1):
        day = today - timedelta(days=days)
        table.commit({f"day={day:%Y-%m-%d}": [1000]}, at=day)
    return table
