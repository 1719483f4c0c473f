"""The headers of pages, read and written: those of most writers by their bytes, all others as structs of Thrift."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from airflow_hudi_maint.core.merging.thrift_compact import STRUCT, CompactReader, Struct

PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8
DATA_PAGE, DICTIONARY_PAGE = 0, 2
# PageHeader
_KIND, _PLAIN_SIZE, _SIZE, _CHECKSUM, _DATA_HEADER, _DICTIONARY_HEADER = 1, 2, 3, 4, 5, 7

_NUMBER = rb"([\x80-\xff]{0,4}[\x00-\x7f])"
_SIZES = rb"\x15" + _NUMBER + rb"\x15" + _NUMBER
_DICTIONARY = re.compile(rb"\x15\x04" + _SIZES + rb"\x4c\x15" + _NUMBER + rb"\x15" + _NUMBER + rb"[\x11\x12]?\x00\x00")
"""Kind, sizes, then count, encoding and whether it is sorted: no checksum."""
_DATA = re.compile(rb"\x15\x00" + _SIZES + rb"\x2c\x15" + _NUMBER + rb"\x15" + _NUMBER)
"""Kind, sizes, then count and encoding: no checksum; the encodings of levels and statistics may follow."""


class Page(NamedTuple):
    """A page: what its header says, and where its body lies. ``values`` counts nulls, too."""

    kind: int
    values: int
    encoding: int
    plain_bytes: int
    header_bytes: int
    start: int
    end: int


def page_at(content: bytes, at: int, *, end: int) -> Page:
    """The page whose header begins at a position, in a chunk that ends at another.

    Raises ThriftError, KeyError, TypeError, IndexError or ValueError for one that cannot be read or has a checksum.
    """
    found = _DICTIONARY.match(content, at, end)
    if found is not None:
        plain, size, count, encoding = map(_number, found.groups())
        start, kind = found.end(), DICTIONARY_PAGE
    else:
        reader = CompactReader(content, at)
        header = reader.struct()
        kind, plain, size = (header[field][1] for field in (_KIND, _PLAIN_SIZE, _SIZE))
        own: Struct = header[_DICTIONARY_HEADER if kind == DICTIONARY_PAGE else _DATA_HEADER][1]
        count, encoding, start = own[1][1], own[2][1], reader.at
        if _CHECKSUM in header:
            raise ValueError("the page has a checksum")
    if size < 0 or start + size > end:
        raise ValueError("the page ends behind its chunk")
    return Page(kind, count, encoding, plain, start - at, start, start + size)


def dictionary_values(content: bytes, at: int, *, end: int) -> int | None:
    """How many values the dictionary page has that begins at a position; None where another page does.

    Raises as :func:`page_at` does, but not for a checksum.
    """
    found = _DICTIONARY.match(content, at, end)
    if found is not None:
        return _number(found[3])
    header = CompactReader(content, at).struct()
    return int(header[_DICTIONARY_HEADER][1][1][1]) if header[_KIND][1] == DICTIONARY_PAGE else None


def pages_from(content: bytes, at: int, *, end: int) -> Iterator[Page]:
    """All pages up to the end of a chunk. Raises as :func:`page_at` does."""
    while at < end:
        page = page_at(content, at, end=end)
        yield page
        at = page.end


def last_page(content: bytes, at: int, *, end: int) -> Page:
    """A data page, taken for the last of its chunk: what else its header has (statistics) is passed over.

    Raises as :func:`page_at` does.
    """
    found = _DATA.match(content, at, end)
    if found is not None:
        plain, size, count, encoding = map(_number, found.groups())
        least = found.end()
    else:
        reader = CompactReader(content, at)
        header = reader.struct(until=_CHECKSUM)
        own_reader = CompactReader(content, reader.at + 1)
        own = own_reader.struct(until=2)
        if _CHECKSUM in header or header[_KIND][1] != DATA_PAGE:
            raise ValueError("it is no data page, or has a checksum")
        if content[reader.at] != (_DATA_HEADER - _SIZE) << 4 | STRUCT:
            raise ValueError("its header has another field first")
        plain, size, count, encoding = header[_PLAIN_SIZE][1], header[_SIZE][1], own[1][1], own[2][1]
        least = own_reader.at
    start = end - size
    if size < 0 or start < least:
        raise ValueError("it is not the last")
    return Page(DATA_PAGE, count, encoding, plain, start - at, start, end)


def plain_page_header(*, rows: int, plain_bytes: int, size: int) -> bytes:
    """The header of a data page of the first version with plain values, and with levels in runs."""
    sizes = b"\x15\x00\x15" + zigzag(plain_bytes) + b"\x15" + zigzag(size)
    return sizes + b"\x2c\x15" + zigzag(rows) + b"\x15\x00\x15\x06\x15\x06\x00\x00"


def varint(value: int) -> bytes:
    """A number in groups of seven bits, the lowest first; up to three of them without a loop, as most have."""
    if value < 1 << 7:
        return bytes((value,))
    if value < 1 << 14:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 1 << 21:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 seven bits each
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@lru_cache(maxsize=1024)
def zigzag(value: int) -> bytes:
    """A number as Thrift's compact protocol has it, without its header."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


@lru_cache(maxsize=1024)
def _number(data: bytes) -> int:
    value = 0
    for place, byte in enumerate(data):
        value |= (byte & 0x7F) << 7 * place
    return (value >> 1) ^ -(value & 1)
