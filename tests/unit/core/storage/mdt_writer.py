"""Write the ``files`` partition of a metadata table: HFiles, log blocks and the timeline beside them.

As Hudi does, but for what no reader needs: the HFiles have no index, and instants say only where they wrote.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from airflow_hudi_maint.core.storage.file_records import ALL_PARTITIONS
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.hfile import DATA_MAGIC, FILE_INFO_MAGIC, GZIP, NONE, TRAILER_BYTES, TRAILER_MAGIC
from airflow_hudi_maint.core.storage.log_blocks import BlockType, HeaderKey

MADE_V6 = "00000000000000010"
MADE = "00000000000000000"
FILES = ".hoodie/metadata/files"

SCHEMA = {
    "type": "record",
    "name": "HoodieMetadataRecord",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        *(
            {"name": f"_hoodie_{name}", "type": ["null", "string"], "default": None}
            for name in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
        ),
        {"name": "key", "type": {"type": "string", "avro.java.string": "String"}},
        {"name": "type", "type": "int"},
        {
            "name": "filesystemMetadata",
            "type": [
                "null",
                {
                    "type": "map",
                    "values": {
                        "type": "record",
                        "name": "HoodieMetadataFileInfo",
                        "fields": [{"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}],
                    },
                    "avro.java.string": "String",
                },
            ],
        },
        {"name": "BloomFilterMetadata", "type": ["null", "bytes"], "default": None},
    ],
}
SCHEMA_TEXT = json.dumps(SCHEMA).encode()

Record = tuple[str, Mapping[str, int | None]]
"""A partition path as Hudi stores it, and the sizes of files by name; None for one that was deleted."""


def hfile(records: Iterable[Record], *, codec: int = GZIP, per_block: int = 100, checksum: int = 0) -> bytes:
    """An HFile of these records, sorted by key."""
    cells = [_cell(path, value) for path, value in sorted((path, _value(files)) for path, files in records)]
    out = io.BytesIO()
    last = 0
    for start in range(0, len(cells), per_block):
        last = out.tell()
        out.write(block(DATA_MAGIC, b"".join(cells[start : start + per_block]), codec=codec, checksum=checksum))
        out.write(block(b"IDXLEAF2", b"no index", codec=codec, checksum=checksum))
    info_at = out.tell()
    pairs = {"schema": SCHEMA_TEXT, "KEY_VALUE_VERSION": b"\x00\x00\x00\x01"}
    message = b"".join(_bytes_field(1, _bytes_field(1, key.encode()) + _bytes_field(2, pairs[key])) for key in pairs)
    out.write(block(FILE_INFO_MAGIC, b"PBUF" + _varint(len(message)) + message, codec=codec, checksum=checksum))
    return out.getvalue() + trailer(file_info=info_at, cells=len(cells), last_block=last, codec=codec)


def trailer(*, file_info: int, cells: int, last_block: int, codec: int, first_block: int = 0) -> bytes:
    fields = {1: file_info, 2: file_info, 7: cells, 9: first_block, 10: last_block, 12: codec}
    message = b"".join(_varint(number << 3) + _varint(value) for number, value in fields.items())
    head = TRAILER_MAGIC + _varint(len(message)) + message
    return head + bytes(TRAILER_BYTES - len(head) - 4) + b"\x00\x00\x00\x03"


def block(magic: bytes, content: bytes, *, codec: int, checksum: int = 0, chunk: int = 16384) -> bytes:
    """A block; ``checksum`` 1 is CRC-32, 0 is Hudi's own writer's: none, with room for it."""
    packer = zlib.compressobj(wbits=31)
    data = packer.compress(content) + packer.flush() if codec == GZIP else content
    checks = -(-(len(data) + 33) // chunk)
    head = struct.pack(">8siiqBii", magic, len(data) + 4 * checks, len(content), -1, checksum, chunk, len(data) + 33)
    whole = head + data
    parts = [whole[start : start + chunk] for start in range(0, len(whole), chunk)]
    return whole + b"".join(struct.pack(">I", zlib.crc32(one) if checksum else 0) for one in parts)


def log_block(kind: BlockType, *, header: Mapping[HeaderKey, str | bytes], content: bytes = b"") -> bytes:
    """A block of a log file."""
    entries = {key: value.encode() if isinstance(value, str) else value for key, value in header.items()}
    packed = struct.pack(">i", len(entries)) + b"".join(
        struct.pack(">ii", key, len(value)) + value for key, value in entries.items()
    )
    body = struct.pack(">ii", 1, kind) + packed + struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    size = len(body) + 8
    return b"#HUDI#" + struct.pack(">q", size) + body + struct.pack(">q", size + 6)


def data_block(instant: str, records: Iterable[Record]) -> bytes:
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: SCHEMA_TEXT}
    return log_block(BlockType.HFILE_DATA, header=header, content=hfile(records))


def rollback_block(instant: str, *, target: str) -> bytes:
    header = {
        HeaderKey.INSTANT_TIME: instant,
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.COMMAND_BLOCK_TYPE: "0",
    }
    return log_block(BlockType.COMMAND, header=header)


def empty_block(instant: str) -> bytes:
    """What Hudi makes a log file with: a delete block without a record."""
    content = b"\x00\x00\x00\x03\x00\x00\x00\x01\x00"
    return log_block(BlockType.DELETE, header={HeaderKey.INSTANT_TIME: instant}, content=content)


def _value(files: Mapping[str, int | None]) -> bytes:
    import fastavro

    infos = {name: {"size": size or 0, "isDeleted": size is None} for name, size in files.items()}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _parsed(), {"key": "", "type": 2, "filesystemMetadata": infos})
    return out.getvalue()


@cache
def _parsed() -> Any:
    import fastavro

    return fastavro.parse_schema(SCHEMA)


def _cell(path: str, value: bytes) -> bytes:
    row = path.encode()
    key = struct.pack(">h", len(row)) + row + b"\x00" + b"\x7f" + b"\xff" * 7 + b"\x04"
    return struct.pack(">ii", len(key), len(value)) + key + value + b"\x00"


def _bytes_field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@dataclass(kw_only=True)
class MetadataWriter:
    """Writes the metadata table of a table step by step, in the manner of its version."""

    storage: Storage
    version: int
    base_instant: str = ""
    log_number: int = 0
    _log: bytes = field(default=b"", repr=False)

    @property
    def timeline_folder(self) -> str:
        return ".hoodie/metadata/.hoodie" if self.version < 8 else ".hoodie/metadata/.hoodie/timeline"

    def make(self, files: Mapping[str, Mapping[str, int]], *, completion: str) -> None:
        """Make the table from what is on disk by then."""
        made = MADE if self.version >= 8 else MADE_V6
        self.base_instant = made
        self.put(f"{FILES}/files-0000-0_0-1-1_{made}.hfile", hfile(everything(files)))
        self.put(self.log_path(made), empty_block(made))
        self.instant(made, completion=completion)

    def write(self, instant: str, changes: Mapping[str, Mapping[str, int | None]], *, completion: str) -> None:
        """Follow an instant of the table: the files that it added (bytes) or deleted (None), by partition path."""
        self.write_log(instant, changes)
        self.instant(instant, completion=completion)

    def write_log(
        self, instant: str, changes: Mapping[str, Mapping[str, int | None]], *, gone: Sequence[str] = ()
    ) -> str:
        """Write the log block of a delta commit, and return its file; ``gone`` are partitions that are no more."""
        listed: dict[str, int | None] = {stored(path): 0 for path in changes if path not in gone}
        listed.update({stored(path): None for path in gone})
        records: list[Record] = [(stored(path), files) for path, files in changes.items()]
        path = self.log_path(instant)
        self.put(path, data_block(instant, [*records, (ALL_PARTITIONS, listed)]))
        return path

    def log_path(self, instant: str) -> str:
        self.log_number += 1
        if self.version < 8:
            return f"{FILES}/.files-0000-0_{self.base_instant}.log.{self.log_number}_0-1-1"
        return f"{FILES}/.files-0000-0_{instant}.log.1_0-1-{self.log_number}"

    def instant(self, instant: str, *, completion: str, action: str = "deltacommit", wrote: bool = True) -> None:
        """Complete an instant of the metadata table."""
        done = f"_{completion}" if self.version >= 8 else ""
        stats = {"files": [{"fileId": "files-0000-0", "path": "files/x"}]} if wrote else {}
        content = {"partitionToWriteStats": stats, "operationType": "UPSERT_PREPPED", "extraMetadata": {}}
        for state in (".requested", ".inflight"):
            self.put(f"{self.timeline_folder}/{instant}.{action}{state}", b"")
        self.put(f"{self.timeline_folder}/{instant}{done}.{action}", json.dumps(content).encode())

    def compact(self, instant: str, files: Mapping[str, Mapping[str, int]], *, completion: str) -> None:
        """Write a new base file of all that is known; ``files`` must be what the readers see."""
        self.base_instant, self.log_number = instant, 0
        self.put(f"{FILES}/files-0000-0_0-1-1_{instant}.hfile", hfile(everything(files), per_block=2))
        self.instant(instant, completion=completion, action="commit")

    def put(self, path: str, content: bytes) -> None:
        self.storage.write_atomic(path, content)

    def remove(self, instant: str) -> None:
        """Take an instant off the timeline, as archival and rollback do."""
        for name in self.storage.names(self.timeline_folder):
            if name.startswith((f"{instant}.", f"{instant}_")):
                self.storage.delete(f"{self.timeline_folder}/{name}")


def everything(files: Mapping[str, Mapping[str, int]]) -> list[Record]:
    """The records of a whole table."""
    records: list[Record] = [(stored(path), names) for path, names in files.items()]
    return [*records, (ALL_PARTITIONS, {stored(path): 0 for path in files})]


def stored(path: str) -> str:
    return path or "."


__all__ = ["GZIP", "NONE", "MetadataWriter", "Record", "data_block", "empty_block", "hfile", "rollback_block"]
