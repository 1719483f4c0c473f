"""Archive instants of a hand-made table, as the archiver of each timeline layout does: written there, then removed."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro

from airflow_hudi_maint.core.model.instant import Instant, State, parse_instant_file_name
from tests.unit.core.storage.builders import TableBuilder

_STATS = {
    "type": "array",
    "items": {
        "type": "record",
        "name": "HoodieWriteStat",
        "fields": [{"name": "fileId", "type": "string"}, {"name": "path", "type": "string"}],
    },
}
_COMMIT = {
    "type": "record",
    "name": "HoodieCommitMetadata",
    "fields": [
        {"name": "partitionToWriteStats", "type": {"type": "map", "values": _STATS}},
        {"name": "partitionToReplaceFileIds", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
        {"name": "operationType", "type": "string"},
    ],
}
_ROLLBACK = {
    "type": "record",
    "name": "HoodieRollbackMetadata",
    "fields": [
        {"name": "commitsRollback", "type": {"type": "array", "items": "string"}},
        {"name": "partitionMetadata", "type": {"type": "map", "values": {"type": "map", "values": "string"}}},
    ],
}
META_ENTRY = {
    "type": "record",
    "name": "HoodieArchivedMetaEntry",
    "fields": [
        {"name": "hoodieCommitMetadata", "type": ["null", _COMMIT], "default": None},
        {"name": "hoodieReplaceCommitMetadata", "type": ["null", "HoodieCommitMetadata"], "default": None},
        {"name": "hoodieRollbackMetadata", "type": ["null", _ROLLBACK], "default": None},
        *({"name": name, "type": ["null", "string"]} for name in ("commitTime", "actionType", "actionState")),
        {"name": "stateTransitionTime", "type": ["null", "string"], "default": None},
    ],
}
_FIELDS = {
    "commit": "hoodieCommitMetadata",
    "deltacommit": "hoodieCommitMetadata",
    "replacecommit": "hoodieReplaceCommitMetadata",
    "rollback": "hoodieRollbackMetadata",
}


@dataclass(kw_only=True)
class Archiver:
    """Moves instants of a table to its archive; each call of :meth:`archive` writes one more file."""

    builder: TableBuilder
    written: int = 0

    @property
    def folder(self) -> str:
        return ".hoodie/archived" if self.builder.version < 8 else ".hoodie/timeline/history"

    def archive(self, *times: str) -> str:
        """Archive what was requested at these times; the name of the new archive file."""
        names = self.builder.storage.names(self.builder.timeline_folder)
        found = [one for one in map(parse_instant_file_name, names) if one and one.requested_time in times]
        done = sorted((one for one in found if one.is_completed), key=lambda one: one.requested_time)
        contents = [(one, json.loads(self._content(one) or b"{}")) for one in done]
        self.written += 1
        if self.builder.version < 8:
            name = f".commits_.archive.{self.written}_1-0-1"
            self.builder.put(f"{self.folder}/{name}", log_file([_entry(one, record) for one, record in contents]))
        else:
            name = f"{min(times)}_{max(times)}_0.parquet"
            self.builder.put(f"{self.folder}/{name}", history_file([_row(one, record) for one, record in contents]))
            self.write_manifest(self.written, added=name)
        for one in found:
            self.builder.remove(f"{self.builder.timeline_folder}/{one.file_name}")
        return name

    def write_manifest(self, number: int, *, added: str) -> None:
        names = [*(one.name for one in self.builder.open().archive_files()), added] if number > 1 else [added]
        entries = [{"fileName": name, "fileLen": 1} for name in names]
        self.builder.put(f"{self.folder}/manifest_{number}", json.dumps({"files": entries}).encode())
        self.builder.put(f"{self.folder}/_version_", str(number).encode())

    def _content(self, instant: Instant) -> bytes:
        return self.builder.storage.read_bytes(f"{self.builder.timeline_folder}/{instant.file_name}")


def _entry(instant: Instant, record: Mapping[str, Any]) -> dict[str, object]:
    action = str(instant.action)
    return {
        "commitTime": instant.requested_time,
        "actionType": action,
        "actionState": State.COMPLETED.name,
        "stateTransitionTime": instant.requested_time,
        **({_FIELDS[action]: record} if action in _FIELDS else {}),
    }


def _row(instant: Instant, record: Mapping[str, Any]) -> dict[str, object]:
    return {
        "instantTime": instant.requested_time,
        "completionTime": instant.completion_time,
        "action": str(instant.action),
        "metadata": json.dumps(record).encode(),
        "plan": None,
        "version": 1,
    }


def history_file(rows: Sequence[Mapping[str, object]]) -> bytes:
    """A Parquet file of archived instants."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("instantTime", "completionTime", "action")),
            *((name, pa.binary()) for name in ("metadata", "plan")),
            ("version", pa.int32()),
        ]
    )
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([dict(one) for one in rows], schema=schema), buffer)
    return buffer.getvalue()


def log_file(entries: Sequence[Mapping[str, object]], *, schema: Mapping[str, object] = META_ENTRY) -> bytes:
    """A log file of one block of archived states."""
    parsed = fastavro.parse_schema(dict(schema))
    records = []
    for entry in entries:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, dict(entry))
        records.append(stream.getvalue())
    return log_block(records_content(records), header={2: json.dumps(schema).encode()})


def records_content(records: Sequence[bytes]) -> bytes:
    """The content of a block of Avro records."""
    return struct.pack(">ii", 3, len(records)) + b"".join(struct.pack(">i", len(one)) + one for one in records)


def log_block(content: bytes, *, header: Mapping[int, bytes], block_type: int = 3) -> bytes:
    """One block of Hudi's log format."""
    entries = b"".join(struct.pack(">ii", key, len(value)) + value for key, value in header.items())
    inner = struct.pack(">iii", 1, block_type, len(header)) + entries
    inner += struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    size = len(inner) + 8
    return b"#HUDI#" + struct.pack(">q", size) + inner + struct.pack(">q", size + 6)
