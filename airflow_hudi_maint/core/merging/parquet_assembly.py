"""A Parquet file put together from row groups that are encoded already, from other files or from memory.

Column chunks hold no position of their own, so their bytes are copied as they are, and only the footer has to say where
they lie now. Of what stands beside them, Bloom filters and column indexes are copied, too; an offset index has
positions in it and is written again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import BinaryIO, Protocol

from airflow_hudi_maint.core.errors import UnreadableFileError
from airflow_hudi_maint.core.merging.parquet_footer import (
    BLOOM_FILTER_LENGTH,
    BLOOM_FILTER_OFFSET,
    CHUNK_FILE_OFFSET,
    COLUMN_INDEX_LENGTH,
    COLUMN_INDEX_OFFSET,
    COLUMNS,
    DATA_PAGE_OFFSET,
    DICTIONARY_PAGE_OFFSET,
    GROUP_FILE_OFFSET,
    INDEX_PAGE_OFFSET,
    MAGIC,
    META_DATA,
    OFFSET_INDEX_LENGTH,
    OFFSET_INDEX_OFFSET,
    ORDINAL,
    PATH_IN_SCHEMA,
    ROW_COUNT,
    STATISTICS,
    TYPE,
    chunk_range,
    chunks,
    footer_bytes,
    framed,
    number,
)
from airflow_hudi_maint.core.merging.parquet_physical import PhysicalLeaf
from airflow_hudi_maint.core.merging.parquet_types import SchemaNode
from airflow_hudi_maint.core.merging.thrift_compact import (
    BINARY,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    CompactReader,
    Struct,
    ThriftError,
    struct_bytes,
)

_MAX_ORDINAL = 32_767
_GAP_BYTES = 64 * 1024
_META_OFFSETS = (DATA_PAGE_OFFSET, INDEX_PAGE_OFFSET, DICTIONARY_PAGE_OFFSET)
_BLOOM_HEADER_BYTES = 64
_MIN_MAX_FIELDS = (1, 2, 5, 6, 7, 8)
"""Of Statistics: max, min, max_value, min_value, and whether these two are exact."""


class EncodedSource(Protocol):
    """Bytes of a file that row groups are taken from; ``name`` stands in messages."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def data_ends_at(self) -> int:
        """Where the footer begins."""

    def read(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` up to ``end``, exclusively."""

    def copy(self, start: int, end: int, *, output: BinaryIO) -> None:
        """Append such bytes to the output."""


class ParquetAssembly:
    """A file in the making: row groups are appended, then :meth:`finish` writes the footer."""

    def __init__(self, output: BinaryIO, *, leaves: Sequence[PhysicalLeaf]) -> None:
        self._output = output
        self._leaves = leaves
        self._paths = [(LIST, (BINARY, list(leaf.path))) for leaf in leaves]
        self._groups: list[bytes] = []
        self._at = len(MAGIC)
        self.rows = 0
        output.write(MAGIC)

    @property
    def row_groups(self) -> int:
        """How many there are by now."""
        return len(self._groups)

    def append(self, source: EncodedSource, groups: Sequence[Struct], *, is_reencoded: bool = False) -> None:
        """Append row groups of one source, in their order, and what belongs to them; those without rows are left out.

        ``is_reencoded`` says that the values were written by their physical type: statistics that do not hold for the
        real one are dropped. Raises UnreadableFileError for a footer that points outside of its file.
        """
        groups = [group for group in groups if number(group, ROW_COUNT)]
        for some, start, end in _regions(groups, source):
            shift = self._at - start
            source.copy(start, end, output=self._output)
            self._at += end - start
            for group in some:
                self._add(group, source, shift=shift, is_reencoded=is_reencoded)

    def finish(
        self,
        *,
        root: SchemaNode,
        version: int,
        key_values: Mapping[bytes, bytes],
        created_by: bytes,
        column_orders: tuple[int, list[Struct]] | None,
    ) -> int:
        """Write the footer and return the bytes of the whole file."""
        footer = footer_bytes(
            version=version,
            schema=list(root.flat()),
            groups=self._groups,
            rows=self.rows,
            key_values=key_values,
            created_by=created_by,
            column_orders=column_orders,
        )
        self._write(framed(footer))
        return self._at

    def _add(self, group: Struct, source: EncodedSource, *, shift: int, is_reencoded: bool) -> None:
        shifted = [
            self._chunk(chunk, place, shift=shift, is_reencoded=is_reencoded)
            for place, chunk in enumerate(chunks(group))
        ]
        self._carry(shifted, source, shift=shift, is_reencoded=is_reencoded)
        new = {**group, COLUMNS: (LIST, (STRUCT, shifted))}
        if number(group, GROUP_FILE_OFFSET) > 0:
            new[GROUP_FILE_OFFSET] = (I64, number(group, GROUP_FILE_OFFSET) + shift)
        new.pop(ORDINAL, None)
        if len(self._groups) <= _MAX_ORDINAL:
            new[ORDINAL] = (I16, len(self._groups))
        self._groups.append(struct_bytes(new))
        self.rows += number(group, ROW_COUNT)

    def _chunk(self, chunk: Struct, place: int, *, shift: int, is_reencoded: bool) -> Struct:
        leaf = self._leaves[place]
        meta = {**chunk[META_DATA][1], PATH_IN_SCHEMA: self._paths[place]}
        for field in _META_OFFSETS:
            if number(meta, field) > 0:
                meta[field] = (I64, number(meta, field) + shift)
        if is_reencoded:
            meta[TYPE] = (I32, leaf.node.physical_type)
            if STATISTICS in meta and not leaf.has_order:
                told = {field: value for field, value in meta[STATISTICS][1].items() if field not in _MIN_MAX_FIELDS}
                meta[STATISTICS] = (STRUCT, told)
        new = {**chunk, META_DATA: (STRUCT, meta)}
        if number(chunk, CHUNK_FILE_OFFSET) > 0:
            new[CHUNK_FILE_OFFSET] = (I64, number(chunk, CHUNK_FILE_OFFSET) + shift)
        return new

    def _carry(self, shifted: Sequence[Struct], source: EncodedSource, *, shift: int, is_reencoded: bool) -> None:
        """Write the Bloom filters and page indexes of a row group behind it, and say in its chunks where they are."""
        beside = _Beside(source, shifted)
        for chunk in shifted:
            meta = chunk[META_DATA][1]
            bloom = number(meta, BLOOM_FILTER_OFFSET)
            if bloom > 0:
                data = beside.bloom_filter(bloom, length=number(meta, BLOOM_FILTER_LENGTH))
                meta[BLOOM_FILTER_OFFSET], meta[BLOOM_FILTER_LENGTH] = (I64, self._at), (I32, len(data))
                self._write(data)
        for place, chunk in enumerate(shifted):
            if COLUMN_INDEX_OFFSET not in chunk:
                continue
            if is_reencoded and not self._leaves[place].has_order:
                del chunk[COLUMN_INDEX_OFFSET], chunk[COLUMN_INDEX_LENGTH]
                continue
            data = beside.read(number(chunk, COLUMN_INDEX_OFFSET), number(chunk, COLUMN_INDEX_LENGTH))
            chunk[COLUMN_INDEX_OFFSET] = (I64, self._at)
            self._write(data)
        for chunk in shifted:
            if OFFSET_INDEX_OFFSET in chunk:
                data = beside.read(number(chunk, OFFSET_INDEX_OFFSET), number(chunk, OFFSET_INDEX_LENGTH))
                data = _shifted_offset_index(data, shift=shift, name=source.name)
                chunk[OFFSET_INDEX_OFFSET], chunk[OFFSET_INDEX_LENGTH] = (I64, self._at), (I32, len(data))
                self._write(data)

    def _write(self, data: bytes) -> None:
        self._output.write(data)
        self._at += len(data)


class _Beside:
    """Reads what stands beside the chunks of a row group, all at once where it lies together, as writers have it."""

    def __init__(self, source: EncodedSource, columns: Sequence[Struct]) -> None:
        self._source = source
        spans = [span for chunk in columns for span in _spans(chunk)]
        self._start = min((start for start, _ in spans), default=0)
        end = max((end for _, end in spans), default=0)
        dense = spans and end - self._start <= 2 * sum(end - start for start, end in spans) + _GAP_BYTES
        self._kept = self._checked(self._start, end) if dense else b""

    def read(self, start: int, length: int) -> bytes:
        """So many bytes from a position."""
        if self._start <= start and start + length <= self._start + len(self._kept):
            return self._kept[start - self._start : start - self._start + length]
        return self._checked(start, start + length)

    def bloom_filter(self, start: int, *, length: int) -> bytes:
        """A Bloom filter with its header, whose first field is the length of the bits; older footers leave it out."""
        if length > 0:
            return self.read(start, length)
        reader = CompactReader(self._source.read(start, min(start + _BLOOM_HEADER_BYTES, self._source.data_ends_at)))
        try:
            bits = number(reader.struct(), 1)
        except ThriftError as error:
            raise UnreadableFileError(f"{self._source.name} has a Bloom filter that cannot be read: {error}") from error
        return self.read(start, reader.at + bits)

    def _checked(self, start: int, end: int) -> bytes:
        if not len(MAGIC) <= start <= end <= self._source.data_ends_at:
            raise UnreadableFileError(f"{self._source.name} has a footer that points outside of the file")
        return self._source.read(start, end)


def _spans(chunk: Struct) -> list[tuple[int, int]]:
    meta = chunk[META_DATA][1]
    pairs = (
        (number(meta, BLOOM_FILTER_OFFSET), number(meta, BLOOM_FILTER_LENGTH)),
        (number(chunk, COLUMN_INDEX_OFFSET), number(chunk, COLUMN_INDEX_LENGTH)),
        (number(chunk, OFFSET_INDEX_OFFSET), number(chunk, OFFSET_INDEX_LENGTH)),
    )
    return [(start, start + length) for start, length in pairs if start > 0 and length > 0]


def _shifted_offset_index(data: bytes, *, shift: int, name: str) -> bytes:
    try:
        index = CompactReader(data).struct()
        for page in index[1][1][1]:
            page[1] = (I64, page[1][1] + shift)
    except (ThriftError, KeyError, TypeError) as error:
        raise UnreadableFileError(f"{name} has an offset index that cannot be read: {error}") from error
    return struct_bytes(index)


def _regions(groups: Sequence[Struct], source: EncodedSource) -> list[tuple[list[Struct], int, int]]:
    """Row groups that lie one behind the other, with the first byte of the first and the one behind the last."""
    regions: list[tuple[list[Struct], int, int]] = []
    for group in groups:
        try:
            ranges = [chunk_range(chunk) for chunk in chunks(group)]
        except (KeyError, TypeError) as error:
            raise UnreadableFileError(f"{source.name} has a Parquet footer that lacks field {error}") from error
        start = min((one[0] for one in ranges), default=len(MAGIC))  # rows without columns have no bytes
        end = max((one[1] for one in ranges), default=start)
        if not len(MAGIC) <= start <= end <= source.data_ends_at:
            raise UnreadableFileError(f"{source.name} has a footer that points outside of the file")
        if regions and 0 <= start - regions[-1][2] <= _GAP_BYTES:
            before, first, _ = regions.pop()
            regions.append(([*before, group], first, end))
        else:
            regions.append(([group], start, end))
    return regions
