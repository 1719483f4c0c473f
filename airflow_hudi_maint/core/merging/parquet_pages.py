"""Column chunks whose pages can stand behind those of other chunks, with no value decoded and encoded again.

Plain pages can as they are. So can a dictionary whose values come once each and in their order, as that of a column
without repetitions in a small file does: its bytes are those of a plain page, and what stands in the data page is 0, 1,
2 and so on. All is decompressed to see whether it is whole; where anything is in doubt, the values are to be decoded.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_hudi_maint.core.merging.parquet_page_headers import (
    DATA_PAGE,
    DICTIONARY_PAGE,
    PLAIN,
    PLAIN_DICTIONARY,
    RLE_DICTIONARY,
    Page,
    last_page,
    page_at,
    pages_from,
    plain_page_header,
    varint,
)
from airflow_hudi_maint.core.merging.parquet_types import BYTE_ARRAY, DOUBLE, FLOAT, INT32, INT64
from airflow_hudi_maint.core.merging.thrift_compact import ThriftError

if TYPE_CHECKING:
    import pyarrow as pa

_WIDTHS = {INT32: 4, INT64: 8, FLOAT: 4, DOUBLE: 8}
_LENGTH = struct.Struct("<I")
_GROUPS_OF_RUN = 63
"""Of eight values each: what fits behind a run's header of one byte, which is how writers lay them out."""
_MOST_ROWS = 1 << 18
_LONGEST_SHORT_LITERAL = 60

Bytes: TypeAlias = "bytes | memoryview | pa.Buffer"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRules:
    """How a flat column is stored; ``codec`` is "none" or "snappy"."""

    physical_type: int
    is_optional: bool
    codec: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainPages:
    """Data pages with their headers, one behind the other; ``plain_bytes`` are those before compression."""

    data: tuple[bytes | memoryview, ...]
    plain_bytes: int
    count: int


@dataclass(slots=True)
class PageReader:
    """Makes plain pages of the chunks of one column, by their bytes. Not for several threads at a time.

    Files of equally many rows have the same indexes, so that those that were found in order are known again by their
    compressed bytes.
    """

    rules: PageRules
    _codec: pa.Codec | None = field(init=False, default=None)
    _known: tuple[bytes, int, int, bytes] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.rules.codec != "none":
            import pyarrow as pa

            self._codec = pa.Codec(self.rules.codec)

    def plain_pages(self, content: bytes, *, start: int, end: int, rows: int, nulls: int) -> PlainPages | None:
        """The pages of a column chunk, which lies in ``content``, as plain ones; None where values have to be decoded.

        What is returned are views on ``content``.
        """
        try:
            first = page_at(content, start, end=end)
            if first.kind == DICTIONARY_PAGE:
                if nulls or not first.values == rows <= _MOST_ROWS:
                    return None
                return self._of_dictionary(content, first, last_page(content, first.end, end=end), rows=rows)
            pages = [first, *pages_from(content, first.end, end=end)]
        except (ThriftError, KeyError, TypeError, ValueError, IndexError):
            return None
        if not self._are_plain(content, pages, rows=rows, nulls=nulls):
            return None
        plain = sum(page.plain_bytes + page.header_bytes for page in pages)
        return PlainPages(data=(memoryview(content)[start:end],), plain_bytes=plain, count=len(pages))

    def _are_plain(self, content: bytes, pages: list[Page], *, rows: int, nulls: int) -> bool:
        values = counted = 0
        for page in pages:
            if page.kind != DATA_PAGE or page.encoding != PLAIN:
                return False
            body = self._decompressed(content, page)
            found = None if body is None else self._value_count(memoryview(body)[self._levels_end(body) :])
            if found is None:
                return False
            values, counted = values + found, counted + page.values
        return counted == rows and values == rows - nulls

    def _of_dictionary(self, content: bytes, dictionary: Page, indexes: Page, *, rows: int) -> PlainPages | None:
        levels = self._levels_of_counted(content, indexes, rows=rows)
        if levels is None or dictionary.encoding not in (PLAIN, PLAIN_DICTIONARY):
            return None
        values = self._decompressed(content, dictionary)
        if values is None or self._value_count(values) != rows:
            return None
        size = len(values)
        body = self._behind_levels(levels, memoryview(content)[dictionary.start : dictionary.end], size=size)
        if body is None:
            return None
        size += len(levels)
        header = plain_page_header(rows=rows, plain_bytes=size, size=len(body[0]) + len(body[1]))
        return PlainPages(data=(header + body[0], body[1]), plain_bytes=len(header) + size, count=1)

    def _levels_of_counted(self, content: bytes, page: Page, *, rows: int) -> bytes | None:
        """The levels of a data page with the indexes 0, 1, 2 and so on; None for another page."""
        if page.encoding not in (PLAIN_DICTIONARY, RLE_DICTIONARY) or page.values != rows:
            return None
        packed = content[page.start : page.end]
        if self._known is not None and self._known[:3] == (packed, page.plain_bytes, rows):
            return self._known[3]
        body = self._decompressed(content, page)
        if body is None:
            return None
        found, end = bytes(body), self._levels_end(body)
        if end >= len(found) or found[end:] != _counted_up(rows, width=found[end]):
            return None
        self._known = (packed, page.plain_bytes, rows, found[:end])
        return found[:end]

    def _behind_levels(self, levels: bytes, values: memoryview, *, size: int) -> tuple[bytes, memoryview] | None:
        """The levels and then the values, compressed, without compressing the values again.

        Snappy's format is the plain length and then pieces that only look back by distances, so that a literal can
        stand before those of another stream.
        """
        if not levels or self._codec is None:
            return levels, values
        if len(levels) > _LONGEST_SHORT_LITERAL:
            return None
        literal = bytes([(len(levels) - 1) << 2]) + levels
        return varint(size + len(levels)) + literal, values[_snappy_length(values)[1] :]

    def _decompressed(self, content: bytes, page: Page) -> Bytes | None:
        """The plain bytes of a page; None where they are damaged."""
        import pyarrow as pa

        body = memoryview(content)[page.start : page.end]
        if self._codec is None:
            return body if len(body) == page.plain_bytes else None
        if _snappy_length(body)[0] != page.plain_bytes:  # pyarrow does not tell how much it filled of what it was given
            return None
        try:
            return self._codec.decompress(body, page.plain_bytes)
        except (pa.ArrowException, OSError, MemoryError, OverflowError):
            return None

    def _levels_end(self, body: Bytes) -> int:
        """Where the values begin: levels tell nulls where a column may have them; a length stands before them."""
        if not self.rules.is_optional:
            return 0
        if len(body) < _LENGTH.size:
            return len(body)
        return int(_LENGTH.size + _LENGTH.unpack_from(body)[0])

    def _value_count(self, values: Bytes) -> int | None:
        """How many values there are; None where they do not fill the bytes, or are texts of different lengths."""
        width = _WIDTHS.get(self.rules.physical_type)
        if width is not None:
            return None if len(values) % width else len(values) // width
        if len(values) < _LENGTH.size:
            return None if len(values) else 0
        import numpy as np

        length: int = _LENGTH.unpack_from(values)[0]
        width = _LENGTH.size + length
        if len(values) % width:
            return None
        lengths: Any = np.ndarray((len(values) // width,), dtype="<u4", buffer=values, strides=(width,))
        return len(lengths) if bool((lengths == length).all()) else None


def can_be_plain(physical_type: int | None) -> bool:
    """Whether columns of a type are looked at here."""
    return physical_type in _WIDTHS or physical_type == BYTE_ARRAY


def page_count(chunk: bytes) -> int:
    """How many pages a whole column chunk has."""
    return sum(1 for _ in pages_from(chunk, 0, end=len(chunk)))


def _snappy_length(data: memoryview) -> tuple[int, int]:
    """The plain length that stands at the start of a stream, -1 where there is none, and where that ends."""
    value = 0
    for place, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:  # noqa: PLR2004 the length ends there
            return value, place + 1
    return -1, 0


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
