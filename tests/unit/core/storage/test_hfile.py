"""HFiles are read as HBase and Hudi write them, and broken ones are named."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.storage.file_records import FileRecord, FilesPartition, read_file_records
from airflow_hudi_maint.core.storage.hfile import DATA_MAGIC, GZIP, NONE, TRAILER_BYTES, HFile, crc32c
from tests.golden.golden import unpack
from tests.unit.core.storage.mdt_writer import Record, block, hfile, trailer

RECORDS: list[Record] = [("b", {"x.parquet": 10, "y.parquet": None}), ("a", {}), ("ü%2F", {"z": 2**40})]
READ = [
    FileRecord("a", {}),
    FileRecord("b", {"x.parquet": 10, "y.parquet": None}),
    FileRecord("ü%2F", {"z": 2**40}),
]

OTHER_FILES = json.dumps(
    {"fields": [{"name": "filesystemMetadata", "type": ["null", {"type": "map", "values": {"fields": []}}]}]}
).encode()


def _read(data: bytes) -> list[FileRecord]:
    return list(read_file_records(HFile.open(data, name="t.hfile")))


@pytest.mark.parametrize("codec", [GZIP, NONE])
@pytest.mark.parametrize("checksum", [0, 1])
@pytest.mark.parametrize("per_block", [1, 2, 100])
def test_records_of_all_blocks_are_read(codec: int, checksum: int, per_block: int) -> None:
    """In order of their keys, whatever lies between the data blocks."""
    assert _read(hfile(RECORDS, codec=codec, checksum=checksum, per_block=per_block)) == READ


def test_a_file_without_records_is_read() -> None:
    """A metadata table that was just made has one."""
    assert _read(hfile([])) == []


@pytest.mark.parametrize(("version", "name"), [(6, "v6_mor_flat"), (8, "v8_cow_bare"), (9, "v9_cow_plain")])
def test_hfiles_of_each_release_are_read(version: int, name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """HBase's writer (0.15, 1.0) notes CRC-32C checksums; Hudi's own (1.2) none."""
    (path,) = unpack(name, tmp_path_factory.mktemp("golden")).glob(".hoodie/metadata/files/*.hfile")
    data = path.read_bytes()
    (kind,) = struct.unpack_from(">B", data, 24)
    on_disk, with_header = struct.unpack_from(">i", data, 8)[0], struct.unpack_from(">i", data, 29)[0]
    checksum = struct.unpack_from(">I", data, with_header)[0]

    assert [one.partition_path for one in _read(data)] == ["__all_partitions__"]
    assert on_disk + 33 == with_header + 4
    assert (kind, checksum) == ((0, 0) if version == 9 else (2, crc32c(data[:with_header])))


def test_a_long_block_has_a_checksum_for_each_chunk() -> None:
    """And each is checked."""
    records: list[Record] = [("a", {f"file-{number:06}": number for number in range(3000)})]
    data = hfile(records, codec=NONE, checksum=1)
    assert len(_read(data)[0].files) == 3000
    harmed = bytearray(data)
    harmed[30_000] ^= 1
    with pytest.raises(CorruptTableError, match="does not fit its checksum"):
        _read(bytes(harmed))


def _with_trailer(**fields: int) -> bytes:
    given = {"file_info": 0, "cells": 1, "last_block": 0, "codec": NONE, **fields}
    return block(DATA_MAGIC, b"", codec=NONE) + trailer(**given)


def _with_cell(cell: bytes, *, codec: int = NONE) -> bytes:
    data = hfile([], codec=codec)[:-TRAILER_BYTES]
    body = block(DATA_MAGIC, cell, codec=codec)
    return body + data + trailer(file_info=len(body), cells=1, last_block=0, codec=codec)


def _too_large() -> bytes:
    bomb = zlib.compressobj(wbits=31)
    packed = bomb.compress(bytes(2**20)) + bomb.flush()
    head = struct.pack(">8siiqBii", DATA_MAGIC, len(packed) + 4, 100, -1, 0, 16384, len(packed) + 33)
    return head + packed + bytes(4) + trailer(file_info=0, cells=1, last_block=0, codec=GZIP)


BROKEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "has no trailer in its 0 bytes"),
    "cut": (lambda: hfile(RECORDS)[:-1], "has no trailer"),
    "other version": (lambda: hfile(RECORDS)[:-1] + b"\x02", "is of version 2; expected 3"),
    "other codec": (lambda: _with_trailer(codec=4), "is compressed with HBase's codec 4"),
    "block outside": (lambda: _with_trailer(file_info=9999), "has no block at byte"),
    "no file info": (_with_trailer, "has no file info where its trailer says"),
    "too few records": (lambda: _with_cell(b""), "holds 0 records and its trailer says 1"),
    "cut record": (lambda: _with_cell(b"\x00\x00\x00"), "has a truncated record"),
    "long record": (lambda: _with_cell(struct.pack(">ii", 20, 2**30)), "has a record of 20 and 1073741824 bytes"),
    "negative record": (lambda: _with_cell(struct.pack(">ii", -1, -1)), "has a record of -1 and -1 bytes"),
    "long row": (
        lambda: _with_cell(struct.pack(">iih", 12, 0, 50) + bytes(11)),
        "has a row of 50 bytes in a key of 12",
    ),
    "a deletion": (
        lambda: _with_cell(struct.pack(">iih", 12, 0, 0) + bytes(9) + b"\x08\x00"),
        "has a record of the unknown kind 8",
    ),
    "larger than it says": (_too_large, "has a block at byte 33 that does not unpack to the 100 bytes it says"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_named_with_the_reason(case: str) -> None:
    """No number in it is believed."""
    make, message = BROKEN[case]
    with pytest.raises(CorruptTableError, match=rf"t\.hfile cannot be read: the HFile {message}"):
        _read(make())


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (b"", "is not that of Hudi's metadata records"),
        (b'{"fields": []}', "is not that of Hudi's metadata records"),
        (b'{"fields": [{"name": "x", "type": {"type": "array", "items": "null"}}]}', "is not that of Hudi's"),
        (OTHER_FILES, "has another type for filesystemMetadata"),
    ],
)
def test_a_schema_of_something_else_is_refused(schema: bytes, message: str) -> None:
    """A schema is part of the file, so it is not believed either: it could make reading endless."""
    with pytest.raises(CorruptTableError, match=message):
        list(read_file_records(HFile.open(hfile(RECORDS), name="t.hfile"), schema=schema))


def test_merging_is_hudis() -> None:
    """The greater size of a file counts, a deletion takes it out, and it may come back smaller."""
    files = FilesPartition(name="files")
    files.merge([FileRecord("__all_partitions__", {"a": 0, "b": 0}), FileRecord("a", {"x": 5, "y": 5})])
    files.merge([FileRecord("a", {"x": 3, "y": None, "z": None}), FileRecord("b", {"w": 1})])
    files.merge(
        [FileRecord("a", {"y": 2}), FileRecord("b", {"w": None}), FileRecord("__all_partitions__", {"b": None})]
    )

    assert files.by_partition() == {"a": {"x": 5, "y": 2}}


def test_a_negative_size_is_refused() -> None:
    """It would make sums wrong without a word."""
    with pytest.raises(CorruptTableError, match="record 'a' has a negative size"):
        _read(hfile([("a", {"x": -1})]))
