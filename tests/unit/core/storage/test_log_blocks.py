"""Hudi's log format is read block by block, and a broken file costs an error that names it."""

from __future__ import annotations

import struct

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.storage.log_blocks import BlockType, HeaderKey, read_log_blocks, read_records
from tests.unit.core.storage.archiving import log_block, records_content

BLOCK = log_block(records_content([b"one", b"", b"three"]), header={0: b"20261130100001000", 2: b"{}", 99: b"?"})


def test_blocks_come_in_order_with_header_and_content() -> None:
    """Type, header and content of each block; a key that is not known is kept by its number."""
    command = log_block(b"", header={0: b"20261130100002000", 1: b"20261130100001000"}, block_type=0)
    first, second = read_log_blocks(BLOCK + command, name="x")
    assert (BlockType.AVRO_DATA, "20261130100001000", b"?") == (
        first.type,
        first.text(HeaderKey.INSTANT_TIME),
        first.header[99],
    )
    assert [b"one", b"", b"three"] == list(read_records(first.content, name="x"))
    assert (BlockType.COMMAND, "20261130100001000", None) == (
        second.type,
        second.text(HeaderKey.TARGET_INSTANT_TIME),
        second.text(HeaderKey.SCHEMA),
    )


def test_an_empty_file_has_no_blocks() -> None:
    """A writer that died before its first block leaves an empty file."""
    assert [] == list(read_log_blocks(b"", name="x"))


@pytest.mark.parametrize("length", range(1, len(BLOCK)))
def test_a_file_cut_anywhere_is_an_error_after_its_whole_blocks(length: int) -> None:
    """Wherever a file is cut, the whole blocks before are yielded and the cut one is named."""
    blocks = read_log_blocks(BLOCK + BLOCK[:length], name="lake/t/x.log")
    assert BlockType.AVRO_DATA is next(blocks).type
    with pytest.raises(CorruptTableError, match=rf"lake/t/x.log cannot be read: the log block at byte {len(BLOCK)} "):
        next(blocks)


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (0, b"#HUDX#", "does not start with #HUDI#"),
        (6, struct.pack(">q", 2**60), f"should go on for {2**60} bytes"),
        (6, struct.pack(">q", -1), "should go on for -1 bytes"),
        (14, struct.pack(">i", 7), "is of format version 7"),
        (18, struct.pack(">i", 12), "is of the unknown type 12"),
        (22, struct.pack(">i", -3), "counts -3 entries"),
        (22, struct.pack(">i", 2**31 - 1), "is truncated"),
        (30, struct.pack(">i", 2**31 - 1), f"is truncated: {2**31 - 1} bytes are due"),
        (len(BLOCK) - 8, struct.pack(">q", 5), "does not end where it says"),
    ],
)
def test_a_number_that_does_not_add_up_is_an_error(at: int, value: bytes, message: str) -> None:
    """Lengths and counts are held against the bytes that are there, before anything is made of them."""
    broken = BLOCK[:at] + value + BLOCK[at + len(value) :]
    with pytest.raises(CorruptTableError, match=message):
        list(read_log_blocks(broken, name="x"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (struct.pack(">ii", 0, 0), "records of version 0"),
        (struct.pack(">ii", 3, 2**31 - 1), "is truncated"),
        (struct.pack(">iii", 3, 1, -1), "is truncated"),
        (struct.pack(">ii", 3, 0) + b"rest", "4 bytes after its last record"),
    ],
)
def test_records_that_do_not_add_up_are_an_error(content: bytes, message: str) -> None:
    """The records of a block fill it exactly."""
    with pytest.raises(CorruptTableError, match=message):
        list(read_records(content, name="x"))
