"""Row groups written by pyarrow, each as a Parquet file of its own in memory, with the settings of the inputs."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import UnreadableFileError
from airflow_hudi_maint.core.merging.parquet_column_settings import ColumnSettings
from airflow_hudi_maint.core.merging.parquet_footer import footer_in, parse_footer, row_groups
from airflow_hudi_maint.core.merging.parquet_physical import PhysicalLeaf, is_flat
from airflow_hudi_maint.core.merging.parquet_sources import MemorySource
from airflow_hudi_maint.core.merging.parquet_survey import DistinctSchema, Survey
from airflow_hudi_maint.core.merging.parquet_types import BOOLEAN, FIXED, INT96, REPEATED, REQUIRED, SchemaNode
from airflow_hudi_maint.core.merging.schemas import UnifiedSchema
from airflow_hudi_maint.core.merging.thrift_compact import Struct

if TYPE_CHECKING:
    import pyarrow as pa

_SAMPLE_ROWS = 8192
_SAMPLE_SHARE = 8
_LEAST_SAMPLE = 512
_DICTIONARY_BYTES = 1024 * 1024
"""A dictionary that grows beyond this is given up by pyarrow's writer, as by others."""
_MANY_DISTINCT = 0.6
_FALSE_POSITIVES = 0.05
_PYARROW_NAMES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_DEFAULT = ColumnSettings(
    codec="snappy",
    has_dictionary=True,
    encoding=None,
    has_statistics=True,
    has_page_index=False,
    has_bloom_filter=False,
    has_second_page_version=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedGroups:
    """What was encoded: the source of the bytes, and its row groups."""

    source: MemorySource
    groups: tuple[Struct, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """Encodes tables of the physical schema. Safe to use from several threads."""

    arrow_schema: pa.Schema
    leaves: tuple[PhysicalLeaf, ...]
    columns: tuple[ColumnSettings, ...]
    names: tuple[str, ...]
    flat: tuple[int | None, ...]
    codec: str | None
    compression_level: int | None
    max_rows: int
    max_bytes: int

    def row_groups(self, tables: Iterable[pa.Table]) -> Iterator[EncodedGroups]:
        """One row group after the other; a new one begins where the next table would go beyond a limit.

        Memory holds the values of one row group and its encoded bytes at a time.
        """
        gathered: list[pa.Table] = []
        rows = size = 0
        for table in tables:
            if gathered and (rows + len(table) > self.max_rows or size + table.nbytes > self.max_bytes):
                yield self._of_all(gathered)
                rows = size = 0
            if len(table):
                gathered.append(table)
                rows, size = rows + len(table), size + table.nbytes
        if gathered:
            yield self._of_all(gathered)

    def encoded(self, table: pa.Table, *, without_statistics: Collection[str] = ()) -> EncodedGroups:
        """One row group of a table."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        options = self._options(table, without_statistics=without_statistics)
        with pq.ParquetWriter(sink, table.schema, **options) as writer:
            writer.write_table(table, row_group_size=len(table))
        data = memoryview(sink.getvalue())
        name = "a row group in memory"
        footer = footer_in(data, name=name)
        groups = tuple(row_groups(parse_footer(footer.data, name=name)))
        source = MemorySource(parts=(data,), name=name, data_ends_at=footer.starts_at)
        return EncodedGroups(source=source, groups=groups)

    def _of_all(self, tables: list[pa.Table]) -> EncodedGroups:
        import pyarrow as pa

        table = pa.concat_tables(tables)
        tables.clear()
        return self.encoded(table)

    def _options(self, table: pa.Table, *, without_statistics: Collection[str]) -> dict[str, Any]:
        tried = [
            column.has_dictionary and (place is None or not _outgrows_dictionary(table.column(place)))
            for column, place in zip(self.columns, self.flat, strict=True)
        ]
        encodings = {
            name: column.encoding for name, column in zip(self.names, self.columns, strict=True) if column.encoding
        }
        pages = sum(column.has_second_page_version for column in self.columns)
        options: dict[str, Any] = {
            "store_schema": False,
            "version": "2.6",
            "use_dictionary": self._chosen(tried),
            "write_statistics": self._chosen(
                [
                    column.has_statistics and name not in without_statistics
                    for name, column in zip(self.names, self.columns, strict=True)
                ]
            ),
            "write_page_index": any(column.has_page_index for column in self.columns),
            "data_page_version": "2.0" if pages * 2 > len(self.columns) else "1.0",
            "compression": self._codecs(),
        }
        if encodings:
            options["column_encoding"] = encodings
        if self.compression_level is not None:
            options["compression_level"] = self.compression_level
        blooms = self.bloom_names()
        if blooms and can_write_bloom_filters():
            options["bloom_filter_options"] = {
                name: {"ndv": max(1, len(table)), "fpp": _FALSE_POSITIVES} for name in blooms
            }
        return options

    def bloom_names(self) -> list[str]:
        """The columns, by their names for pyarrow, that had a Bloom filter."""
        return [
            name
            for name, column, leaf in zip(self.names, self.columns, self.leaves, strict=True)
            if column.has_bloom_filter and leaf.node.physical_type not in (BOOLEAN, INT96)
        ]

    def _chosen(self, flags: Sequence[bool]) -> bool | list[str]:
        if all(flags) or not any(flags):
            return any(flags)
        return [name for name, flag in zip(self.names, flags, strict=True) if flag]

    def _codecs(self) -> str | dict[str, str]:
        if self.codec is not None:
            return self.codec
        codecs = {column.codec for column in self.columns}
        if len(codecs) <= 1:
            return next(iter(codecs), "none")
        return {name: column.codec for name, column in zip(self.names, self.columns, strict=True)}


def encoder_for(
    survey: Survey,
    *,
    schema: UnifiedSchema,
    leaves: tuple[PhysicalLeaf, ...],
    arrow_schema: pa.Schema,
    codec: str | None,
    compression_level: int | None,
    max_rows: int,
    max_bytes: int,
) -> Encoder:
    """An encoder with the settings that each column has in the first file with rows.

    Raises UnreadableFileError for columns that pyarrow would lay out in another way than the inputs do.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, arrow_schema, store_schema=False, version="2.6") as writer:
        writer.write_table(pa.Table.from_batches([], schema=arrow_schema))  # empty_table() would import pandas
    written = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    _check_layout(written, leaves=leaves, columns=schema.root.children)
    return Encoder(
        arrow_schema=arrow_schema,
        leaves=leaves,
        columns=_column_settings(survey, schema),
        names=tuple(written.column(place).path for place in range(len(leaves))),
        flat=tuple(
            place if is_flat(column) else None
            for place, column in enumerate(schema.root.children)
            for _ in column.leaves()
        ),
        codec=codec,
        compression_level=compression_level,
        max_rows=max_rows,
        max_bytes=max_bytes,
    )


def can_write_bloom_filters() -> bool:
    """Whether this release of pyarrow writes Bloom filters."""
    import pyarrow.parquet as pq

    return "bloom_filter_options" in inspect.signature(pq.ParquetWriter.__init__).parameters


def _column_settings(survey: Survey, schema: UnifiedSchema) -> tuple[ColumnSettings, ...]:
    """Of each leaf of the merged schema, from the first distinct schema that has the column and rows."""
    settings: list[ColumnSettings] = []
    own = [_by_column(one) for one in survey.schemas]
    for place, column in enumerate(schema.root.children):
        count = sum(1 for _ in column.leaves())
        found = (
            columns[source]
            for columns, sources in zip(own, schema.sources, strict=True)
            if columns is not None and (source := sources[place]) is not None
        )
        settings.extend(next(found, [_DEFAULT] * count))
    return tuple(settings)


def _by_column(known: DistinctSchema) -> list[list[ColumnSettings]] | None:
    if known.columns is None:
        return None
    columns: list[list[ColumnSettings]] = []
    at = 0
    for column in known.named.root.children:
        count = sum(1 for _ in column.leaves())
        columns.append(list(known.columns[at : at + count]))
        at += count
    return columns


def _check_layout(written: Any, *, leaves: Sequence[PhysicalLeaf], columns: Sequence[SchemaNode]) -> None:  # noqa: ANN401
    """Whether pyarrow stores each leaf as the inputs do: by the same physical type, at the same depths."""
    expected = [depths for column in columns for depths in _depths(column)]
    for place, (leaf, depths) in enumerate(zip(leaves, expected, strict=True)):
        column = written.column(place)
        physical = FIXED if leaf.node.physical_type == INT96 else leaf.node.physical_type
        same_type = column.physical_type == _PYARROW_NAMES[physical or 0]
        if physical == FIXED:
            same_type = same_type and column.length == (
                12 if leaf.node.physical_type == INT96 else leaf.node.type_length
            )
        if not same_type or (column.max_definition_level, column.max_repetition_level) != depths:
            name = b".".join(leaf.path).decode("utf-8", "replace")
            raise UnreadableFileError(
                f"Column {name!r} ({leaf.node}) has a layout that cannot be written again as it is; such files "
                "are merged by method='chunk copy' alone, for which their schemas have to be equal"
            )


def _depths(node: SchemaNode, definition: int = 0, repetition: int = 0) -> Iterator[tuple[int, int]]:
    definition += node.repetition != REQUIRED
    repetition += node.repetition == REPEATED
    if node.physical_type is not None:
        yield definition, repetition
    for child in node.children:
        yield from _depths(child, definition, repetition)


def _outgrows_dictionary(column: pa.ChunkedArray) -> bool:
    """Whether nearly every value of a column is another, so that a dictionary would be begun in vain.

    By the share of repeated values in a sample from the start: among n draws out of N, about n²/2N repeat another. The
    column is written plain at once then, which is what a writer ends with when its dictionary has grown too large.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = len(column)
    count = min(_SAMPLE_ROWS, rows // _SAMPLE_SHARE)
    if count < _LEAST_SAMPLE or pa.types.is_boolean(column.type) or pa.types.is_dictionary(column.type):
        return False
    sample = column.slice(0, count)
    filled = count - sample.null_count
    if filled < _LEAST_SAMPLE:
        return False
    repeated = filled - int(pc.count_distinct(sample).as_py())
    estimate = rows if not repeated else filled * filled / (2 * repeated)
    width = sample.nbytes / count
    return min(estimate, rows) * width > _DICTIONARY_BYTES or estimate > _MANY_DISTINCT * rows
