"""Read HFiles (version 3 of HBase's format), as the metadata table keeps its records in them.

Layout, all numbers big endian; source: HBase's ``HFileBlock`` and ``FixedFileTrailer``, Hudi's ``HFileReaderImpl``::

    data blocks, index and meta blocks among and after them, the file info, 4,096 bytes of trailer
    block:   magic, int32 bytes on disk after this header, int32 bytes uncompressed, int64 previous block,
             int8 kind of checksum, int32 bytes to a checksum, int32 bytes of header and data; data, checksums
    cell:    int32 key length, int32 value length, key, value, vint (a version number of HBase's)
    key:     int16 row length, row, int8 family length, family, qualifier, int64 time, int8 kind

Hudi's record key is the row. No number is believed before it is held against the bytes that are there, and a block is
decompressed no further than its header says, and never beyond 256 MiB.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, NoReturn

from airflow_hudi_maint.core.errors import CorruptTableError

MAX_BLOCK_BYTES = 256 * 1024 * 1024
"""The largest block that is decompressed: a record of a million file names takes half of it."""

TRAILER_BYTES = 4096
TRAILER_MAGIC = b'TRABLK"$'
DATA_MAGIC = b"DATABLK*"
FILE_INFO_MAGIC = b"FILEINF2"
MAJOR_VERSION = 3
GZIP = 1
NONE = 2

_CRC32 = 1
_CRC32C = 2
_PUT = 4
_HEADER = struct.Struct(">8siiqBii")
_CELL = struct.Struct(">ii")
_ROW = struct.Struct(">h")
_KEY_REST = 10
_CHECKSUM_BYTES = 4
_PROTOBUF_MAGIC = b"PBUF"
_GZIP_WINDOW = 31
_MAX_VARINT_BYTES = 10
_VARINT_LAST = 0x80
_VLONG_ONE_BYTE = 0x90
_VLONG_NEGATIVE = 0x88


class Cell(NamedTuple):
    """One record: Hudi's record key, and its value."""

    key: bytes
    value: bytes


class Trailer(NamedTuple):
    """What is needed of the trailer; offsets count bytes from the start of the file."""

    file_info: int
    load_on_open: int
    cells: int
    first_block: int
    last_block: int
    codec: int


class _Block(NamedTuple):
    magic: bytes
    content: bytes
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HFile:
    """A whole file in memory; ``name`` is for errors. Every method raises CorruptTableError for a broken file."""

    data: bytes
    name: str
    trailer: Trailer

    @classmethod
    def open(cls, data: bytes, *, name: str) -> HFile:
        """Read the trailer."""
        trailer = _read_trailer(data, name=name)
        return cls(data=data, name=name, trailer=trailer)

    def info(self) -> Mapping[str, bytes]:
        """What the writer noted of the file by key; Hudi keeps its Avro schema under ``schema``."""
        block = self._block(self.trailer.file_info)
        if block.magic != FILE_INFO_MAGIC or not block.content.startswith(_PROTOBUF_MAGIC):
            self._fail("has no file info where its trailer says")
        message, _ = _message(block.content, at=len(_PROTOBUF_MAGIC), name=self.name)
        pairs = (_fields(pair, name=self.name) for number, pair in message if number == 1 and isinstance(pair, bytes))
        return {_text(pair.get(1)): _bytes(pair.get(2)) for pair in map(dict, pairs)}

    def cells(self) -> Iterator[Cell]:
        """The records in order of their keys; an error comes when its place is reached."""
        trailer, count, at = self.trailer, 0, self.trailer.first_block
        while trailer.cells and at <= trailer.last_block:
            block = self._block(at)
            at = block.end
            if block.magic == DATA_MAGIC:
                for cell in self._cells_of(block):
                    count += 1
                    yield cell
        if count != trailer.cells:
            self._fail(f"holds {count} records and its trailer says {trailer.cells}")

    def _cells_of(self, block: _Block) -> Iterator[Cell]:
        content, at, size = block.content, 0, len(block.content)
        while at < size:
            if size - at < _CELL.size:
                self._fail("has a truncated record")
            key_bytes, value_bytes = _CELL.unpack_from(content, at)
            key_at = at + _CELL.size
            value_at = key_at + key_bytes
            at = value_at + value_bytes
            if key_bytes < _ROW.size + _KEY_REST or value_bytes < 0 or at >= size:
                self._fail(f"has a record of {key_bytes} and {value_bytes} bytes in a block of {size}")
            (row_bytes,) = _ROW.unpack_from(content, key_at)
            if not 0 <= row_bytes <= key_bytes - _ROW.size - _KEY_REST:
                self._fail(f"has a row of {row_bytes} bytes in a key of {key_bytes}")
            if content[value_at - 1] != _PUT:
                self._fail(f"has a record of the unknown kind {content[value_at - 1]}")
            row_at = key_at + _ROW.size
            yield Cell(content[row_at : row_at + row_bytes], content[value_at:at])
            at += _vlong_bytes(content[at])

    def _block(self, at: int) -> _Block:
        limit = len(self.data) - TRAILER_BYTES
        if not 0 <= at <= limit - _HEADER.size:
            self._fail(f"has no block at byte {at} of {len(self.data)}")
        magic, on_disk, uncompressed, _, checksum, chunk, with_header = _HEADER.unpack_from(self.data, at)
        start, data_end, end = at + _HEADER.size, at + with_header, at + _HEADER.size + on_disk
        if not start <= data_end <= end <= limit:
            self._fail(f"has a block of {on_disk} bytes at byte {at} of {len(self.data)}")
        if not 0 <= uncompressed <= MAX_BLOCK_BYTES:
            self._fail(f"has a block of {uncompressed} uncompressed bytes; expected at most {MAX_BLOCK_BYTES}")
        if self.trailer.codec == GZIP:
            return _Block(magic, self._inflated(start, data_end, uncompressed=uncompressed), end)
        # Gzip has a checksum of its own, which is checked in C.
        self._check(at, data_end, end=end, kind=checksum, chunk=chunk)
        if data_end - start < uncompressed:
            self._fail(f"has a block of {data_end - start} bytes at byte {at} that says {uncompressed}")
        return _Block(magic, self.data[start : start + uncompressed], end)

    def _inflated(self, start: int, end: int, *, uncompressed: int) -> bytes:
        inflater = zlib.decompressobj(wbits=_GZIP_WINDOW)
        try:
            # One byte more than is due brings the end of the stream, and with it the check of its checksum.
            content = inflater.decompress(self.data[start:end], uncompressed + 1)
        except zlib.error as error:
            self._fail(f"has a broken block at byte {start}: {error}")
        if len(content) != uncompressed or not inflater.eof:
            self._fail(f"has a block at byte {start} that does not unpack to the {uncompressed} bytes it says")
        return content

    def _check(self, at: int, data_end: int, *, end: int, kind: int, chunk: int) -> None:
        if kind not in (_CRC32, _CRC32C):  # Hudi's own writer makes none
            return
        if chunk < 1 or (end - data_end) != -(-(data_end - at) // chunk) * _CHECKSUM_BYTES:
            self._fail(f"has {end - data_end} bytes of checksums at byte {data_end}")
        checksum = zlib.crc32 if kind == _CRC32 else crc32c
        for number, start in enumerate(range(at, data_end, chunk)):
            due = self.data[data_end + number * _CHECKSUM_BYTES :][:_CHECKSUM_BYTES]
            if checksum(self.data[start : min(start + chunk, data_end)]).to_bytes(_CHECKSUM_BYTES, "big") != due:
                self._fail(f"has a block at byte {at} that does not fit its checksum")

    def _fail(self, what: str) -> NoReturn:
        _fail(self.name, what)


def _read_trailer(data: bytes, *, name: str) -> Trailer:
    start = len(data) - TRAILER_BYTES
    if start < 0 or data[start : start + len(TRAILER_MAGIC)] != TRAILER_MAGIC:
        _fail(name, f"has no trailer in its {len(data)} bytes")
    if int.from_bytes(data[-3:], "big") != MAJOR_VERSION:
        _fail(name, f"is of version {int.from_bytes(data[-3:], 'big')}; expected {MAJOR_VERSION}")
    message, _ = _message(data[:-4], at=start + len(TRAILER_MAGIC), name=name)
    fields = {number: value for number, value in message if isinstance(value, int)}
    trailer = Trailer(*(fields.get(number, default) for number, default in _TRAILER_FIELDS))
    if trailer.codec not in (GZIP, NONE):
        _fail(name, f"is compressed with HBase's codec {trailer.codec}; GZ ({GZIP}) and NONE ({NONE}) are read")
    return trailer


_TRAILER_FIELDS = ((1, 0), (2, 0), (7, 0), (9, 0), (10, 0), (12, NONE))
"""The field numbers in ``HFile.proto``, in the order of :class:`Trailer`, and what is meant where one is left out."""


def _message(data: bytes, *, at: int, name: str) -> tuple[list[tuple[int, int | bytes]], int]:
    """A protobuf message with its length before it: its fields, and where it ends."""
    size, start = _varint(data, at=at, name=name)
    if size > len(data) - start:
        _fail(name, f"has a message of {size} bytes at byte {at}, and {len(data) - start} are left")
    return _fields(data[start : start + size], name=name), start + size


def _fields(message: bytes, *, name: str) -> list[tuple[int, int | bytes]]:
    """The fields of a protobuf message: varints and bytes, the only kinds that HFiles use."""
    fields: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(message):
        tag, at = _varint(message, at=at, name=name)
        value, at = _varint(message, at=at, name=name)
        kind = tag & 7
        if kind == 0:
            fields.append((tag >> 3, value))
        elif kind == 2 and value <= len(message) - at:  # noqa: PLR2004 protobuf's LEN
            fields.append((tag >> 3, message[at : at + value]))
            at += value
        else:
            _fail(name, f"has a broken message: a field of kind {kind} and {value} bytes")
    return fields


def _varint(data: bytes, *, at: int, name: str) -> tuple[int, int]:
    value = 0
    last = next((n for n, byte in enumerate(data[at : at + _MAX_VARINT_BYTES]) if byte < _VARINT_LAST), None)
    if last is None:
        _fail(name, f"has a broken number at byte {at}")
    for byte in reversed(data[at : at + last + 1]):
        value = value << 7 | byte & 0x7F
    return value, at + last + 1


def _vlong_bytes(first: int) -> int:
    """How many bytes a Hadoop vlong takes that starts with this one."""
    if first < _VARINT_LAST or first >= _VLONG_ONE_BYTE:
        return 1
    return _VLONG_NEGATIVE - first + 1 if first < _VLONG_NEGATIVE else _VLONG_ONE_BYTE - first + 1


def _text(value: int | bytes | None) -> str:
    return _bytes(value).decode("utf-8", errors="replace")


def _bytes(value: int | bytes | None) -> bytes:
    return value if isinstance(value, bytes) else b""


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), HBase's default; only of the rare uncompressed block, so plain Python will do."""
    table, checksum = _crc32c_table(), 0xFFFFFFFF
    for byte in data:
        checksum = table[(checksum ^ byte) & 0xFF] ^ (checksum >> 8)
    return checksum ^ 0xFFFFFFFF


@cache
def _crc32c_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


def _fail(name: str, what: str) -> NoReturn:
    msg = f"{name} cannot be read: the HFile {what}"
    raise CorruptTableError(msg)
