"""What stands at the end of an ORC file, as far as Arrow does not tell: types that it would change, and metadata.

Read by the ORC specification v1: postscript, footer, and their Protocol Buffers messages.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

_MAGIC = b"ORC"
_COMPRESSIONS = ("none", "zlib", "snappy", "lzo", "lz4", "zstd")
_MOST_FOOTER_BYTES = 256 << 20
_KINDS = {13: "uniontype", 16: "varchar", 17: "char"}
"""Types that Arrow reads as others: what it writes would not be what was there."""
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


class BrokenOrcError(ValueError):
    """The end of an ORC file cannot be understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcFooter:
    """``changed_types`` are columns' types that Arrow does not write; ``metadata`` the names of user metadata."""

    compression: str
    block_bytes: int
    row_index_stride: int
    rows: int
    changed_types: tuple[str, ...]
    metadata: tuple[str, ...]
    is_encrypted: bool


def read_orc_footer(file: BinaryIO, *, size: int) -> OrcFooter:
    """Read the footer; raises BrokenOrcError."""
    if size < len(_MAGIC) + 1:
        raise BrokenOrcError("it is too short for an ORC file")
    file.seek(max(0, size - 16 * 1024))
    tail = file.read()
    if tail[-4:-1] != _MAGIC:  # the last field of every postscript
        raise BrokenOrcError("its end is not that of an ORC file: it was cut short, or is none")
    length = tail[-1]
    postscript = dict(_fields(tail[-1 - length : -1]))
    footer_bytes, kind = _number(postscript, 1), _number(postscript, 2)
    if not 0 < footer_bytes <= min(size, _MOST_FOOTER_BYTES) or kind >= len(_COMPRESSIONS):
        raise BrokenOrcError("its postscript makes no sense")
    start = size - 1 - length - footer_bytes
    file.seek(max(0, start))
    packed = file.read(footer_bytes)
    compression = _COMPRESSIONS[kind]
    footer = [*_fields(_unpacked(packed, compression=compression, block_bytes=_number(postscript, 3) or 256 * 1024))]
    types = [[*_fields(value)] for field, value in footer if field == 4 and isinstance(value, bytes)]  # noqa: PLR2004
    metadata = [dict(_fields(value)) for field, value in footer if field == 5 and isinstance(value, bytes)]  # noqa: PLR2004
    numbers = {field: value for field, value in footer if isinstance(value, int)}
    return OrcFooter(
        compression=compression,
        block_bytes=_number(postscript, 3),
        row_index_stride=numbers.get(8, 0),
        rows=numbers.get(6, 0),
        changed_types=tuple(sorted({name for one in types if (name := _changed(one))})),
        metadata=tuple(sorted(_text(one.get(1)) for one in metadata)),
        is_encrypted=any(field == 10 for field, _ in footer),  # noqa: PLR2004
    )


def _changed(fields: list[tuple[int, int | bytes]]) -> str:
    values = dict(fields)
    kind = values.get(1, 0)
    if isinstance(kind, int) and kind in _KINDS:
        return _KINDS[kind]
    return "a type with attributes" if 7 in values else ""  # noqa: PLR2004


def _unpacked(data: bytes, *, compression: str, block_bytes: int) -> bytes:
    """Undo the compression of a footer: chunks behind three bytes of length, whose lowest bit means not compressed."""
    if compression == "none":
        return data
    parts: list[bytes] = []
    at = 0
    while at + 3 <= len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        chunk = data[at + 3 : at + 3 + (head >> 1)]
        at += 3 + (head >> 1)
        parts.append(chunk if head & 1 else _chunk(chunk, compression=compression, block_bytes=block_bytes))
    return b"".join(parts)


def _chunk(data: bytes, *, compression: str, block_bytes: int) -> bytes:
    import pyarrow as pa

    from airflow_hudi_maint.core.merging.text_codecs import lz4_length, snappy_length

    try:
        if compression == "zlib":
            return zlib.decompress(data, wbits=-15)
        if compression == "snappy":
            return bytes(pa.Codec("snappy").decompress(data, decompressed_size=snappy_length(data), asbytes=True))
        if compression == "lz4":
            return bytes(pa.Codec("lz4_raw").decompress(data, decompressed_size=lz4_length(data), asbytes=True))
        if compression == "zstd":
            stream = pa.CompressedInputStream(pa.BufferReader(data), "zstd")
            return bytes(stream.read(block_bytes + 1))
    except (pa.ArrowException, OSError, ValueError, zlib.error) as error:
        raise BrokenOrcError(f"its footer cannot be read: {error}") from error
    raise BrokenOrcError(f"it is compressed with {compression}, which is not read here")


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a Protocol Buffers message, in order."""
    at = 0
    try:
        while at < len(data):
            key, at = _varint(data, at)
            field, wire = key >> 3, key & 7
            if wire == _VARINT:
                value, at = _varint(data, at)
                yield field, value
            elif wire == _LENGTH:
                length, at = _varint(data, at)
                if at + length > len(data):
                    raise BrokenOrcError("its footer is cut short")
                yield field, data[at : at + length]
                at += length
            elif wire in (_FIXED64, _FIXED32):
                at += 8 if wire == _FIXED64 else 4
            else:
                raise BrokenOrcError("its footer makes no sense")
    except IndexError as error:
        raise BrokenOrcError("its footer is cut short") from error


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 the bit that says that more bytes follow
            return value, at
        shift += 7


def _number(fields: dict[int, int | bytes], key: int) -> int:
    value = fields.get(key, 0)
    return value if isinstance(value, int) else 0


def _text(value: int | bytes | None) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else ""
