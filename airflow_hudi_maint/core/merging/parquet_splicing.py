"""Join the columns of small row groups by their pages where that can be done, and encode the others again.

A column whose values hardly repeat ends as plain pages anyway. Those of the inputs are taken then (``parquet_pages``),
with the ranges of their footers; a chunk that does not fit is decoded and written plain for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.merging.parquet_column_ranges import JoinedRange, range_of
from airflow_hudi_maint.core.merging.parquet_column_settings import CODECS, ColumnSettings
from airflow_hudi_maint.core.merging.parquet_decode import WHOLE_FILE_BYTES, Decoder
from airflow_hudi_maint.core.merging.parquet_encode import EncodedGroups, Encoder
from airflow_hudi_maint.core.merging.parquet_footer import (
    CHUNK_COMPRESSED_SIZE,
    CHUNK_FILE_OFFSET,
    CHUNK_UNCOMPRESSED_SIZE,
    CODEC,
    COLUMNS,
    DATA_PAGE_OFFSET,
    DICTIONARY_PAGE_OFFSET,
    ENCODING_STATS,
    ENCODINGS,
    GROUP_FILE_OFFSET,
    MAGIC,
    META_DATA,
    NUM_VALUES,
    PATH_IN_SCHEMA,
    ROW_COUNT,
    STATISTICS,
    TOTAL_BYTE_SIZE,
    TOTAL_COMPRESSED_SIZE,
    TYPE,
    chunk_range,
    chunks,
    number,
)
from airflow_hudi_maint.core.merging.parquet_pages import (
    PLAIN,
    RLE,
    PageRules,
    PlainPages,
    can_be_plain,
    page_count,
    plain_pages,
)
from airflow_hudi_maint.core.merging.parquet_physical import PhysicalLeaf
from airflow_hudi_maint.core.merging.parquet_sources import MemorySource
from airflow_hudi_maint.core.merging.parquet_steps import OLD_WRITER, Step
from airflow_hudi_maint.core.merging.parquet_types import OPTIONAL
from airflow_hudi_maint.core.merging.thrift_compact import BINARY, I32, I64, LIST, STRUCT, Struct

if TYPE_CHECKING:
    import pyarrow as pa

_FEWEST_GROUPS = 4
_LEAST_PAGE_BYTES = 12 * 1024
"""Smaller pages, before compression, are not worth their headers to readers, nor their handling to this process."""
_MOSTLY_DISTINCT = 0.9


@dataclass(slots=True)
class SplicedColumn:
    """A leaf column in the making."""

    place: int
    name: str
    rules: PageRules
    settings: ColumnSettings
    parts: list[bytes] = field(default_factory=list)
    plain_bytes: int = 0
    pages: int = 0
    values: int = 0
    range: JoinedRange = field(default_factory=JoinedRange)

    def add(self, group: Any, *, content: bytes, column: pa.ChunkedArray | None) -> bool:  # noqa: ANN401 no types
        """Add the chunk of a row group; False where its values are needed and were not given."""
        rows = group.num_rows
        chunk = group.column(self.place)
        told = range_of(chunk, is_wanted=self.settings.has_statistics)
        pages = None if told is None else _pages(chunk, content=content, rules=self.rules, rows=rows, nulls=told.nulls)
        if pages is None or told is None:
            if column is None:
                return False
            pages, told = self._written(column)
        self.parts.extend(pages.data)
        self.plain_bytes, self.pages = self.plain_bytes + pages.plain_bytes, self.pages + pages.count
        self.values += rows
        self.range.add(told, rows=rows)
        return True

    def chunk(self, *, start: int) -> tuple[Struct, int]:
        """The column chunk that begins at a position, and its bytes."""
        size = sum(map(len, self.parts))
        meta: Struct = {
            TYPE: (I32, self.rules.physical_type),
            ENCODINGS: (LIST, (I32, [PLAIN, RLE])),
            PATH_IN_SCHEMA: (LIST, (BINARY, [self.name.encode()])),
            CODEC: (I32, CODECS.index(self.rules.codec)),
            NUM_VALUES: (I64, self.values),
            CHUNK_UNCOMPRESSED_SIZE: (I64, self.plain_bytes),
            CHUNK_COMPRESSED_SIZE: (I64, size),
            DATA_PAGE_OFFSET: (I64, start),
        }
        if self.settings.has_statistics:
            meta[STATISTICS] = (STRUCT, self.range.statistics(self.rules.physical_type))
        count: Struct = {1: (I32, 0), 2: (I32, PLAIN), 3: (I32, self.pages)}
        meta[ENCODING_STATS] = (LIST, (STRUCT, [count]))
        return {CHUNK_FILE_OFFSET: (I64, 0), META_DATA: (STRUCT, meta)}, size

    def _written(self, column: pa.ChunkedArray) -> tuple[PlainPages, Any]:
        """Write the values of one chunk as plain pages, with the range that the writer tells."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({self.name: column}, schema=pa.schema([_field(self.name, column, rules=self.rules)]))
        sink = pa.BufferOutputStream()
        options: dict[str, Any] = {"use_dictionary": False, "compression": self.rules.codec, "version": "2.6"}
        with pq.ParquetWriter(sink, table.schema, store_schema=False, **options) as writer:
            writer.write_table(table, row_group_size=len(table))
        data = sink.getvalue()
        chunk = pq.read_metadata(pa.BufferReader(data)).row_group(0).column(0)
        start = chunk.data_page_offset
        body = data[start : start + chunk.total_compressed_size].to_pybytes()
        pages = PlainPages(data=(body,), plain_bytes=chunk.total_uncompressed_size, count=page_count(body))
        return pages, range_of(chunk, is_wanted=True) or JoinedRange.unknown(column.null_count)


@dataclass(slots=True)
class Splice:
    """The columns of a step that are joined by their pages; the others have ``rest`` as their encoder."""

    columns: list[SplicedColumn]
    rest: Encoder

    @property
    def names(self) -> list[str]:
        """The columns that are decoded."""
        return list(self.rest.arrow_schema.names)

    def add(self, reader: Any, place: int, *, content: bytes) -> None:  # noqa: ANN401 pyarrow has no types
        """Add a row group of an open file; raises what pyarrow does where values must be decoded and cannot."""
        group = reader.metadata.row_group(place)
        for one in self.columns:
            if not one.add(group, content=content, column=None):
                table = reader.read_row_groups([place], columns=[one.name], use_threads=False)
                one.add(group, content=content, column=table.column(0))

    def joined(self, encoded: EncodedGroups) -> EncodedGroups:
        """One row group of the encoded columns and of these."""
        group = encoded.groups[0]
        others = iter(chunks(group))
        mine = {one.place: one for one in self.columns}
        parts: list[bytes | memoryview] = [MAGIC]
        at = len(MAGIC)
        found: list[Struct] = []
        for place in range(len(mine) + len(chunks(group))):
            if place in mine:
                chunk, size = mine[place].chunk(start=at)
                parts.extend(mine[place].parts)
            else:
                chunk, data = _moved(next(others), encoded.source, start=at)
                parts.append(data)
                size = len(data)
            found.append(chunk)
            at += size
        data = memoryview(b"".join(parts))
        whole = {
            **group,
            COLUMNS: (LIST, (STRUCT, found)),
            TOTAL_BYTE_SIZE: (I64, sum(number(one[META_DATA][1], CHUNK_UNCOMPRESSED_SIZE) for one in found)),
            GROUP_FILE_OFFSET: (I64, len(MAGIC)),
            TOTAL_COMPRESSED_SIZE: (I64, at - len(MAGIC)),
        }
        return EncodedGroups(source=MemorySource(data=data, name=encoded.source.name, data_ends_at=at), groups=(whole,))


def encoded_step(step: Step, *, decoder: Decoder, encoder: Encoder) -> Iterator[EncodedGroups]:
    """The row groups of a step, by pages and values together where some columns can be joined, else by values alone."""
    splice = _splice(step, decoder=decoder, encoder=encoder)
    if splice is not None:
        encoded = list(splice.rest.row_groups(decoder.tables(step, splice=splice)))
        if len(encoded) == 1 and len(encoded[0].groups) == 1 and _is_whole(encoded[0].groups[0], splice):
            joined = splice.joined(encoded[0])
            del splice, encoded  # their bytes are in it
            yield joined
            return
        del splice, encoded
    yield from encoder.row_groups(decoder.tables(step))


def _is_whole(group: Struct, splice: Splice) -> bool:
    return all(one.values == number(group, ROW_COUNT) for one in splice.columns)


def _splice(step: Step, *, decoder: Decoder, encoder: Encoder) -> Splice | None:
    """The columns to join, by what some of the row groups have; None for none."""
    possible = [place for place in range(len(encoder.leaves)) if _is_possible(encoder, place)]
    if not possible or not _is_fit(step, decoder=decoder, encoder=encoder):
        return None
    columns = [_column(encoder, place) for place in possible]
    refs = [step.groups[place] for place in sorted({0, len(step.groups) // 2, len(step.groups) - 1})]
    probed: dict[int, list[pa.ChunkedArray]] = {}
    for ref in refs:
        for reader, content in decoder.opened(ref):
            group = reader.metadata.row_group(ref.group)
            columns = [one for one in columns if one.add(group, content=content, column=None)]
            if not columns:
                return None
            table = reader.read_row_groups([ref.group], columns=[one.name for one in columns], use_threads=False)
            for one, values in zip(columns, table.columns, strict=True):
                probed.setdefault(one.place, []).append(values)
    chosen = [one.place for one in columns if _is_worthwhile(one, probed[one.place])]
    if len(chosen) == len(encoder.leaves):  # rows are counted by a column that is encoded
        chosen.pop()
    if not chosen:
        return None
    return Splice([_column(encoder, place) for place in chosen], _without(encoder, set(chosen)))


def _is_fit(step: Step, *, decoder: Decoder, encoder: Encoder) -> bool:
    """Whether the files of a step, and the settings of a merge, leave pages as they are."""
    survey = decoder.survey
    files = [survey.files[one.file] for one in step.groups]
    usual: tuple[int, list[Struct]] = (STRUCT, [{1: (STRUCT, {})} for _ in encoder.leaves])
    return (
        len(step.groups) >= _FEWEST_GROUPS
        and encoder.codec is None
        and encoder.compression_level is None
        and sum(one.rows for one in step.groups) <= encoder.max_rows
        and not any(one.has_page_index or one.has_bloom_filter for one in encoder.columns)
        and all(one.file_bytes <= WHOLE_FILE_BYTES and decoder.schema.is_same[one.schema] for one in files)
        and all(one.column_orders == usual for one in survey.schemas)
        and not any(OLD_WRITER.search(one) for one in survey.created_by)
    )


def _is_possible(encoder: Encoder, place: int) -> bool:
    column, leaf = encoder.columns[place], encoder.leaves[place]
    return (
        encoder.flat[place] is not None
        and column.codec in ("none", "snappy")
        and column.encoding is None
        and not column.has_second_page_version
        and can_be_plain(leaf.node.physical_type)
        and leaf.has_order
        and not _is_unsigned(leaf)
    )


def _is_unsigned(leaf: PhysicalLeaf) -> bool:
    meaning = leaf.node.annotation
    return bool(meaning) and meaning[0] == "integer" and not meaning[2]


def _is_worthwhile(column: SplicedColumn, probed: list[pa.ChunkedArray]) -> bool:
    """Whether its pages are large, and its values hardly come twice, within row groups or across them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.plain_bytes < _LEAST_PAGE_BYTES * column.pages:
        return False
    if not column.settings.has_dictionary:
        return True
    values = pa.chunked_array([chunk for one in probed for chunk in one.chunks], type=probed[0].type)
    return bool(len(values)) and pc.count_distinct(values).as_py() >= _MOSTLY_DISTINCT * len(values)


def _column(encoder: Encoder, place: int) -> SplicedColumn:
    node = encoder.leaves[place].node
    rules = PageRules(
        physical_type=node.physical_type or 0,
        is_optional=node.repetition == OPTIONAL,
        codec=encoder.columns[place].codec,
    )
    return SplicedColumn(place=place, name=encoder.names[place], rules=rules, settings=encoder.columns[place])


def _without(encoder: Encoder, places: set[int]) -> Encoder:
    """The encoder of the other columns; those that are left out are flat, so that each is one leaf."""
    import pyarrow as pa

    kept = [place for place in range(len(encoder.leaves)) if place not in places]
    gone = {encoder.flat[place] for place in places}
    tops = [top for top in range(len(encoder.arrow_schema)) if top not in gone]
    return replace(
        encoder,
        arrow_schema=pa.schema([encoder.arrow_schema.field(top) for top in tops]),
        leaves=tuple(encoder.leaves[place] for place in kept),
        columns=tuple(encoder.columns[place] for place in kept),
        names=tuple(encoder.names[place] for place in kept),
        flat=tuple(None if (top := encoder.flat[place]) is None else tops.index(top) for place in kept),
    )


def _pages(chunk: Any, *, content: bytes, rules: PageRules, rows: int, nulls: int) -> PlainPages | None:  # noqa: ANN401
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < start:
        start = chunk.dictionary_page_offset
    if chunk.compression != ("UNCOMPRESSED" if rules.codec == "none" else rules.codec.upper()):
        return None
    found = plain_pages(content[start : start + chunk.total_compressed_size], rules=rules, rows=rows, nulls=nulls)
    return found if found is not None and chunk.num_values == rows else None


def _moved(chunk: Struct, source: MemorySource, *, start: int) -> tuple[Struct, memoryview]:
    """A chunk that begins elsewhere, and its bytes."""
    first, end = chunk_range(chunk)
    meta = dict(chunk[META_DATA][1])
    for place in (DATA_PAGE_OFFSET, DICTIONARY_PAGE_OFFSET):
        if number(meta, place) > 0:
            meta[place] = (I64, number(meta, place) + start - first)
    return {**chunk, META_DATA: (STRUCT, meta)}, source.data[first:end]


def _field(name: str, column: pa.ChunkedArray, *, rules: PageRules) -> pa.Field:
    import pyarrow as pa

    return pa.field(name, column.type, nullable=rules.is_optional)
