"""Columns of a row group in the making that take a short way: joined by their pages, or read as dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.merging.parquet_column_ranges import ChunkRange, JoinedRange, range_of
from airflow_hudi_maint.core.merging.parquet_column_settings import CODECS, ColumnSettings
from airflow_hudi_maint.core.merging.parquet_footer import (
    CHUNK_COMPRESSED_SIZE,
    CHUNK_FILE_OFFSET,
    CHUNK_UNCOMPRESSED_SIZE,
    CODEC,
    DATA_PAGE_OFFSET,
    ENCODING_STATS,
    ENCODINGS,
    META_DATA,
    NUM_VALUES,
    PATH_IN_SCHEMA,
    STATISTICS,
    TYPE,
)
from airflow_hudi_maint.core.merging.parquet_page_headers import PLAIN, RLE
from airflow_hudi_maint.core.merging.parquet_pages import PageReader, PageRules, PlainPages, page_count
from airflow_hudi_maint.core.merging.parquet_types import OPTIONAL
from airflow_hudi_maint.core.merging.thrift_compact import BINARY, I32, I64, LIST, STRUCT, Struct

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_hudi_maint.core.merging.parquet_encode import Encoder

_ACCEPTED_MISFITS = 4
_ACCEPTED_SHARE = 0.25
_DICTIONARY_BYTES = 1024 * 1024
"""A dictionary that is larger is given up by pyarrow's writer, as by others."""


class MisfitError(Exception):
    """A column takes no short way after all; its ``place`` among the leaves."""

    def __init__(self, place: int) -> None:
        super().__init__(f"column {place} takes no short way")
        self.place = place


@dataclass(slots=True)
class SplicedColumn:
    """A flat leaf column that is joined by its pages."""

    place: int
    name: str
    reader: PageReader
    settings: ColumnSettings
    parts: list[bytes | memoryview] = field(default_factory=list)
    size: int = 0
    plain_bytes: int = 0
    pages: int = 0
    values: int = 0
    chunks: int = 0
    misfits: int = 0
    range: JoinedRange = field(default_factory=JoinedRange)

    @classmethod
    def of(cls, encoder: Encoder, place: int) -> SplicedColumn:
        """An empty one."""
        node = encoder.leaves[place].node
        rules = PageRules(
            physical_type=node.physical_type or 0,
            is_optional=node.repetition == OPTIONAL,
            codec=encoder.columns[place].codec,
        )
        return cls(place, encoder.names[place], PageReader(rules), encoder.columns[place])

    def add(self, group: Any, *, content: bytes, values: Callable[[str], pa.ChunkedArray] | None) -> bool:  # noqa: ANN401
        """Add the chunk of a row group; False where its values are needed and cannot be had.

        Raises MisfitError where they are needed again and again.
        """
        rows, chunk = group.num_rows, group.column(self.place)
        told = range_of(chunk, is_wanted=self.settings.has_statistics)
        pages = None if told is None else self._pages(chunk, content=content, rows=rows, nulls=told.nulls)
        if pages is None or told is None:
            if values is None:
                return False
            self.misfits += 1
            if self.misfits > max(_ACCEPTED_MISFITS, self.chunks * _ACCEPTED_SHARE):
                raise MisfitError(self.place)
            pages, told = self._written(values(self.name))
        self.parts.extend(pages.data)
        self.size += sum(map(len, pages.data))
        self.plain_bytes, self.pages = self.plain_bytes + pages.plain_bytes, self.pages + pages.count
        self.values += rows
        self.chunks += 1
        self.range.add(told, rows=rows)
        return True

    def chunk(self, *, start: int) -> Struct:
        """The column chunk that begins at a position."""
        rules = self.reader.rules
        meta: Struct = {
            TYPE: (I32, rules.physical_type),
            ENCODINGS: (LIST, (I32, [PLAIN, RLE])),
            PATH_IN_SCHEMA: (LIST, (BINARY, [self.name.encode()])),
            CODEC: (I32, CODECS.index(rules.codec)),
            NUM_VALUES: (I64, self.values),
            CHUNK_UNCOMPRESSED_SIZE: (I64, self.plain_bytes),
            CHUNK_COMPRESSED_SIZE: (I64, self.size),
            DATA_PAGE_OFFSET: (I64, start),
        }
        if self.settings.has_statistics:
            meta[STATISTICS] = (STRUCT, self.range.statistics(rules.physical_type))
        count: Struct = {1: (I32, 0), 2: (I32, PLAIN), 3: (I32, self.pages)}
        meta[ENCODING_STATS] = (LIST, (STRUCT, [count]))
        return {CHUNK_FILE_OFFSET: (I64, 0), META_DATA: (STRUCT, meta)}

    def _pages(self, chunk: Any, *, content: bytes, rows: int, nulls: int) -> PlainPages | None:  # noqa: ANN401 no types
        codec = self.reader.rules.codec
        if chunk.compression != ("UNCOMPRESSED" if codec == "none" else codec.upper()) or chunk.num_values != rows:
            return None
        start = chunk.data_page_offset
        if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < start:
            start = chunk.dictionary_page_offset
        end = start + chunk.total_compressed_size
        if not 0 <= start < end <= len(content):
            return None
        return self.reader.plain_pages(content, start=start, end=end, rows=rows, nulls=nulls)

    def _written(self, column: pa.ChunkedArray) -> tuple[PlainPages, ChunkRange]:
        """Write the values of one chunk as plain pages, with the range that the writer tells."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        rules = self.reader.rules
        schema = pa.schema([pa.field(self.name, column.type, nullable=rules.is_optional)])
        table = pa.table({self.name: column}, schema=schema)
        sink = pa.BufferOutputStream()
        options: dict[str, Any] = {"use_dictionary": False, "compression": rules.codec, "version": "2.6"}
        with pq.ParquetWriter(sink, table.schema, store_schema=False, **options) as writer:
            writer.write_table(table, row_group_size=len(table))
        data = sink.getvalue()
        chunk = pq.read_metadata(pa.BufferReader(data)).row_group(0).column(0)
        start = chunk.data_page_offset
        body = data[start : start + chunk.total_compressed_size].to_pybytes()
        pages = PlainPages(data=(body,), plain_bytes=chunk.total_uncompressed_size, count=page_count(body))
        return pages, range_of(chunk, is_wanted=True) or JoinedRange.unknown(column.null_count)


@dataclass(slots=True)
class CodedColumn:
    """A flat leaf column of texts or bytes with few values, which are read and written as Arrow's dictionaries.

    Its range is that of the footers: to look for it among all values would take longer than to write them.
    """

    place: int
    name: str
    range: JoinedRange = field(default_factory=JoinedRange)
    is_told: bool = True

    @classmethod
    def of(cls, encoder: Encoder, place: int) -> CodedColumn:
        """An empty one."""
        return cls(place, encoder.names[place], is_told=encoder.columns[place].has_statistics)

    def add(self, group: Any) -> None:  # noqa: ANN401 pyarrow has no types
        """Add what a row group tells of its values."""
        told = range_of(group.column(self.place), is_wanted=True)
        if told is None:
            self.is_told = False
        elif self.is_told:
            self.range.add(told, rows=group.num_rows)

    def unified(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """The column with one dictionary. Raises MisfitError where that would be given up for its size."""
        import pyarrow as pa

        if column.num_chunks > 1:
            column = pa.chunked_array([column.unify_dictionaries().combine_chunks()])
        if not isinstance(column.chunk(0), pa.DictionaryArray) or column.chunk(0).dictionary.nbytes > _DICTIONARY_BYTES:
            raise MisfitError(self.place)
        self.is_told = self.is_told and self.range.is_known and self.range.nulls == column.null_count
        return column

    def described(self, chunk: Struct, *, physical_type: int) -> Struct:
        """The encoded chunk with the range of the footers, where all of them tell it."""
        if not self.is_told:
            return chunk
        meta = {**chunk[META_DATA][1], STATISTICS: (STRUCT, self.range.statistics(physical_type))}
        return {**chunk, META_DATA: (STRUCT, meta)}
