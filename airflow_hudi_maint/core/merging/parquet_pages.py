"""Column chunks whose pages can stand behind those of other chunks, with no value decoded and encoded again.

Plain pages can as they are. So can a dictionary whose values come once each and in their order, as that of a column
without repetitions in a small file does: its bytes are those of a plain page, and what stands in the data page is 0, 1,
2 and so on. All is decompressed to see whether it is whole; where anything is in doubt, the values are to be decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from airflow_hudi_maint.core.merging.parquet_types import BYTE_ARRAY, DOUBLE, FLOAT, INT32, INT64
from airflow_hudi_maint.core.merging.thrift_compact import I32, STRUCT, CompactReader, Struct, ThriftError, struct_bytes

PLAIN, _PLAIN_DICTIONARY, RLE, _RLE_DICTIONARY = 0, 2, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
# PageHeader
_KIND, _PLAIN_SIZE, _SIZE, _CHECKSUM, _DATA_HEADER, _DICTIONARY_HEADER = 1, 2, 3, 4, 5, 7
_WIDTHS = {INT32: 4, INT64: 8, FLOAT: 4, DOUBLE: 8}
_LENGTH = struct.Struct("<I")
_GROUPS_OF_RUN = 63
"""Of eight values each: what fits behind a run's header of one byte, which is how writers lay them out."""
_MOST_ROWS = 1 << 18
_LONGEST_SHORT_LITERAL = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRules:
    """How a flat column is stored; ``codec`` is "none" or "snappy"."""

    physical_type: int
    is_optional: bool
    codec: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainPages:
    """Data pages with their headers, one behind the other; ``plain_bytes`` are those before compression."""

    data: tuple[bytes, ...]
    plain_bytes: int
    count: int

    @property
    def bytes(self) -> int:
        """The bytes as they are written."""
        return sum(map(len, self.data))


def can_be_plain(physical_type: int | None) -> bool:
    """Whether columns of a type are looked at here."""
    return physical_type in _WIDTHS or physical_type == BYTE_ARRAY


def plain_pages(chunk: bytes, *, rules: PageRules, rows: int, nulls: int) -> PlainPages | None:
    """The pages of a column chunk as plain ones, by their bytes; None where the values have to be decoded."""
    try:
        first = _page(chunk, 0)
        if first.kind == _DICTIONARY_PAGE:
            if nulls or not first.count == rows <= _MOST_ROWS:
                return None
            return _of_dictionary(first, _last_page(chunk, first.end), rules=rules, rows=rows)
        pages = [first, *_pages_from(chunk, first.end)]
    except (ThriftError, KeyError, TypeError, ValueError, IndexError):
        return None
    return _verbatim(pages, chunk=chunk, rules=rules, rows=rows, nulls=nulls)


def page_count(chunk: bytes) -> int:
    """How many pages a whole column chunk has."""
    return sum(1 for _ in _pages_from(chunk, 0))


def _verbatim(pages: list[_Page], *, chunk: bytes, rules: PageRules, rows: int, nulls: int) -> PlainPages | None:
    values = counted = 0
    for page in pages:
        if page.kind != _DATA_PAGE or page.encoding != PLAIN:
            return None
        body = _decompressed(page, rules=rules)
        found = None if body is None else _value_count(body[_levels_end(body, rules=rules) :], rules=rules)
        if found is None:
            return None
        values, counted = values + found, counted + page.count
    if counted != rows or values != rows - nulls:
        return None
    plain = sum(page.plain_bytes + page.header_bytes for page in pages)
    return PlainPages(data=(chunk,), plain_bytes=plain, count=len(pages))


@dataclass(frozen=True, slots=True)
class _Page:
    kind: int
    count: int
    encoding: int
    plain_bytes: int
    header_bytes: int
    body: bytes
    end: int


def _page(chunk: bytes, at: int) -> _Page:
    reader = CompactReader(chunk, at)
    found = reader.struct()
    kind, size = found[_KIND][1], found[_SIZE][1]
    own: Struct = found[_DICTIONARY_HEADER if kind == _DICTIONARY_PAGE else _DATA_HEADER][1]
    end = reader.at + size
    if size < 0 or end > len(chunk) or _CHECKSUM in found:
        raise ValueError("the page ends behind its chunk, or has a checksum")
    return _Page(kind, own[1][1], own[2][1], found[_PLAIN_SIZE][1], reader.at - at, chunk[reader.at : end], end)


def _pages_from(chunk: bytes, at: int) -> Iterator[_Page]:
    while at < len(chunk):
        page = _page(chunk, at)
        yield page
        at = page.end


def _last_page(chunk: bytes, at: int) -> _Page:
    """A data page, taken for the last of its chunk: what else its header has (statistics) is passed over."""
    reader = CompactReader(chunk, at)
    found = reader.struct(until=_CHECKSUM)
    own_reader = CompactReader(chunk, reader.at + 1)
    own = own_reader.struct(until=2)
    start = len(chunk) - found[_SIZE][1]
    steps = _DATA_HEADER - _SIZE
    if _CHECKSUM in found or chunk[reader.at] != steps << 4 | STRUCT or start < own_reader.at or found[_SIZE][1] < 0:
        raise ValueError("it is no data page, or not the last")
    return _Page(found[_KIND][1], own[1][1], own[2][1], found[_PLAIN_SIZE][1], start - at, chunk[start:], len(chunk))


def _of_dictionary(dictionary: _Page, indexes: _Page, *, rules: PageRules, rows: int) -> PlainPages | None:
    is_indexes = indexes.kind == _DATA_PAGE and dictionary.encoding in (PLAIN, _PLAIN_DICTIONARY)
    is_indexes = is_indexes and indexes.encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY)
    found = _decompressed(indexes, rules=rules) if is_indexes and indexes.count == rows else None
    end = 0 if found is None else _levels_end(found, rules=rules)
    if found is None or end >= len(found) or found[end:] != _counted_up(rows, width=found[end]):
        return None
    values = _decompressed(dictionary, rules=rules)
    if values is None or _value_count(values, rules=rules) != rows:
        return None
    body = _behind_levels(found[:end], dictionary.body, codec=rules.codec, size=len(values))
    if body is None:
        return None
    header = struct_bytes(
        {
            _KIND: (I32, _DATA_PAGE),
            _PLAIN_SIZE: (I32, end + len(values)),
            _SIZE: (I32, len(body)),
            _DATA_HEADER: (STRUCT, {1: (I32, rows), 2: (I32, PLAIN), 3: (I32, RLE), 4: (I32, RLE)}),
        }
    )
    return PlainPages(data=(header, body), plain_bytes=len(header) + end + len(values), count=1)


def _behind_levels(levels: bytes, values: bytes, *, codec: str, size: int) -> bytes | None:
    """The levels and then the values, compressed, without compressing the values again.

    Snappy's format is the plain length and then pieces that only look back by distances, so that a literal can stand
    before those of another stream.
    """
    if not levels:
        return values
    if codec == "none":
        return levels + values
    if len(levels) > _LONGEST_SHORT_LITERAL:
        return None
    start = next(place for place, byte in enumerate(values) if byte < 0x80) + 1  # noqa: PLR2004 the length ends there
    return _varint(size + len(levels)) + bytes([(len(levels) - 1) << 2]) + levels + values[start:]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 seven bits each
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _decompressed(page: _Page, *, rules: PageRules) -> bytes | None:
    """The plain bytes of a page; None where they are damaged."""
    import pyarrow as pa

    if rules.codec == "none":
        return page.body if len(page.body) == page.plain_bytes else None
    try:
        data: bytes = pa.decompress(page.body, page.plain_bytes, codec=rules.codec, asbytes=True)
    except (pa.ArrowException, OSError, MemoryError, OverflowError):
        return None
    return data if len(data) == page.plain_bytes else None


def _levels_end(body: bytes, *, rules: PageRules) -> int:
    """Where the values begin: levels tell nulls where a column may have them; a length stands before them."""
    if not rules.is_optional:
        return 0
    if len(body) < _LENGTH.size:
        return len(body)
    return int(_LENGTH.size + _LENGTH.unpack_from(body)[0])


def _value_count(values: bytes, *, rules: PageRules) -> int | None:
    """How many values there are; None where they do not fill the bytes, or are texts of different lengths."""
    import numpy as np

    width = _WIDTHS.get(rules.physical_type)
    if width is None:
        if len(values) < _LENGTH.size:
            return None if values else 0
        length: int = _LENGTH.unpack_from(values)[0]
        width = _LENGTH.size + length
        if len(values) % width:
            return None
        lengths: Any = np.ndarray((len(values) // width,), dtype="<u4", buffer=values, strides=(width,))
        return len(lengths) if bool((lengths == length).all()) else None
    return None if len(values) % width else len(values) // width


@lru_cache(maxsize=16)
def _counted_up(rows: int, *, width: int) -> bytes:
    """The indexes 0, 1, 2 and so on as a data page has them: their width in bits, and runs of packed ones."""
    import numpy as np

    if width < (rows - 1).bit_length() or width > 32 or not width:  # noqa: PLR2004 bits of an index
        return b""
    padded = np.zeros(-(-rows // 8) * 8, dtype=np.uint32)
    padded[:rows] = np.arange(rows, dtype=np.uint32)
    bits = (padded[:, None] >> np.arange(width, dtype=np.uint32)) & 1
    packed = np.packbits(bits.astype(np.uint8).reshape(-1), bitorder="little").tobytes()
    parts = [bytes([width])]
    of_run = _GROUPS_OF_RUN * width
    for start in range(0, len(packed), of_run):
        run = packed[start : start + of_run]
        parts += [bytes([len(run) // width << 1 | 1]), run]
    return b"".join(parts)
