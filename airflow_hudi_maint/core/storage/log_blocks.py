"""Read Hudi's log format: log files of a table and of its metadata table, and the archive of timeline layout 1.

A file is a run of blocks. All numbers are big endian (Hudi's ``HoodieLogFormatWriter``)::

    #HUDI#  int64 size  int32 format version  int32 block type
    header: int32 n, n x (int32 key, int32 length, bytes)
    int64 content length, content
    footer, as the header     int64 size + 6

``size`` counts what follows it. No number is believed before it is held against the bytes that are there, so a broken
file costs an error and no memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NoReturn

from airflow_hudi_maint.core.errors import CorruptTableError

_MAGIC = b"#HUDI#"
_FORMAT_VERSION = 1
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


class BlockType(IntEnum):
    """What a block holds; Hudi's ``HoodieLogBlockType``, by ordinal."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """The keys of a block's header that are read here; Hudi's ``HeaderMetadataType``, by ordinal."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4


_TYPES = {int(one): one for one in BlockType}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBlock:
    """One block; ``header`` is by number, since writers may note keys that are not known here."""

    type: BlockType
    header: Mapping[int, bytes]
    content: bytes

    def text(self, key: HeaderKey) -> str | None:
        """A value of the header as text; None where the writer did not note it."""
        value = self.header.get(key)
        return None if value is None else value.decode("utf-8", errors="replace")


def read_log_blocks(data: bytes, *, name: str) -> Iterator[LogBlock]:
    """Yield the blocks of a file in order; an empty file has none. ``name`` is the file's, for errors.

    Raises CorruptTableError at the first block that is truncated, does not add up, or is of an unknown type or format
    version. The blocks before it have been yielded by then.
    """
    position = 0
    while position < len(data):
        block, position = _block(data, start=position, name=name)
        yield block


def read_records(content: bytes, *, name: str) -> Iterator[bytes]:
    """Yield the records of an AVRO_DATA block, each in Avro's binary form without schema.

    Raises CorruptTableError when the content is truncated or does not add up.
    """
    cursor = _Cursor(data=content, end=len(content), at=0, name=name)
    version = cursor.read_int()
    if version < 1:
        cursor.fail(f"holds records of version {version}; expected 1 or later")
    for _ in range(cursor.read_count()):
        yield cursor.read_bytes(cursor.read_int())
    if cursor.at != cursor.end:
        cursor.fail(f"has {cursor.end - cursor.at} bytes after its last record")


def _block(data: bytes, *, start: int, name: str) -> tuple[LogBlock, int]:
    cursor = _Cursor(data=data, end=len(data), at=start, name=name)
    if cursor.read_bytes(len(_MAGIC)) != _MAGIC:
        cursor.fail("does not start with #HUDI#")
    size = cursor.read_long()
    if not 0 <= size <= cursor.end - cursor.at:
        cursor.fail(f"should go on for {size} bytes and the file for {cursor.end - cursor.at}")
    cursor.end = cursor.at + size
    version, ordinal = cursor.read_int(), cursor.read_int()
    if version != _FORMAT_VERSION:
        cursor.fail(f"is of format version {version}; expected {_FORMAT_VERSION}")
    block_type = _TYPES.get(ordinal)
    if block_type is None:
        cursor.fail(f"is of the unknown type {ordinal}")
    header = cursor.read_map()
    content = cursor.read_bytes(cursor.read_long())
    cursor.read_map()
    if cursor.read_long() != size + len(_MAGIC) or cursor.at != cursor.end:
        cursor.fail("does not end where it says that it does")
    return LogBlock(type=block_type, header=header, content=content), cursor.end


@dataclass(slots=True, kw_only=True)
class _Cursor:
    """A place in a block, which starts at ``start`` and must not reach beyond ``end``."""

    data: bytes
    end: int
    at: int
    name: str
    start: int = -1

    def __post_init__(self) -> None:
        self.start = self.at

    def read_int(self) -> int:
        (value,) = _INT.unpack_from(self.data, self._take(_INT.size))
        return int(value)

    def read_long(self) -> int:
        (value,) = _LONG.unpack_from(self.data, self._take(_LONG.size))
        return int(value)

    def read_bytes(self, count: int) -> bytes:
        at = self._take(count)
        return self.data[at : at + count]

    def read_count(self) -> int:
        count = self.read_int()
        if count < 0:
            self.fail(f"counts {count} entries")
        return count

    def read_map(self) -> dict[int, bytes]:
        # Of an entry, the key is read first.
        return {self.read_int(): self.read_bytes(self.read_int()) for _ in range(self.read_count())}

    def fail(self, what: str) -> NoReturn:
        msg = f"{self.name} cannot be read: the log block at byte {self.start} {what}"
        raise CorruptTableError(msg)

    def _take(self, count: int) -> int:
        if not 0 <= count <= self.end - self.at:
            self.fail(f"is truncated: {count} bytes are due at byte {self.at} and {self.end - self.at} are left")
        at = self.at
        self.at += count
        return at
