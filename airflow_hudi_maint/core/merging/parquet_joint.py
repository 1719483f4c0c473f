"""Row groups of many small files as one file in memory, so that pyarrow opens and reads one in place of many.

The wanted column chunks lie one behind the other in it, as they are, and a footer over all says where. Chunks that this
cannot say exactly enough are left to pyarrow's reading of their own files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_hudi_maint.core.merging.parquet_footer import MAGIC, framed
from airflow_hudi_maint.core.merging.parquet_page_headers import dictionary_values, varint, zigzag
from airflow_hudi_maint.core.merging.parquet_physical import physical_prefix
from airflow_hudi_maint.core.merging.parquet_types import FIXED, INT96, SchemaNode
from airflow_hudi_maint.core.merging.thrift_compact import STRUCT, ThriftError, list_header

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import FileMetaData

_CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "ZSTD": 6}
"""Pyarrow calls both of the format's LZ4 codecs by one name."""
_ONE_ENCODING, _ONE_NAME, _NO_PLAIN_SIZE = b"\x19\x15\x00", b"\x19\x18\x01c", b"\x16\x00"
"""Fields of a chunk that readers do not go by: pages tell their encoding and size, the schema the names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedColumns:
    """Columns of files with one schema: the first bytes of a footer with them alone, and their leaves' places."""

    prefix: bytes
    leaves: tuple[int, ...]
    types: tuple[int, ...]


class Piece(NamedTuple):
    """A row group: the bytes of its file, its footer, and its place there."""

    content: bytes
    metadata: FileMetaData
    group: int


def wanted_columns(root: SchemaNode, *, names: Sequence[int], without: frozenset[int] = frozenset()) -> WantedColumns:
    """All columns of a schema, called by numbers as :func:`physical_prefix` does, but for those of some leaves."""
    columns: list[SchemaNode] = []
    kept_names: list[int] = []
    leaves: list[int] = []
    types: list[int] = []
    at = 0
    for column, name in zip(root.children, names, strict=True):
        own = [node.physical_type or 0 for _, node in column.leaves()]
        if not without.intersection(range(at, at + len(own))):
            columns.append(column)
            kept_names.append(name)
            leaves.extend(range(at, at + len(own)))
            types.extend(FIXED if one == INT96 else one for one in own)
        at += len(own)
    prefix = physical_prefix(root.with_children(tuple(columns)), names=kept_names)
    return WantedColumns(prefix=prefix, leaves=tuple(leaves), types=tuple(types))


def joint_table(pieces: Sequence[Piece], *, wanted: WantedColumns, dictionaries: Sequence[str] = ()) -> pa.Table | None:
    """The values of row groups of files by one writer; those of ``dictionaries`` as Arrow's dictionaries.

    None, or an error of pyarrow, where one of the files has to be read by itself.
    """
    parts: list[bytes | memoryview] = [MAGIC]
    groups: list[bytes] = []
    starts: list[list[int]] = []
    at, rows = len(MAGIC), 0
    for content, metadata, place in pieces:
        group = metadata.row_group(place)
        written = []
        starts.append([])
        for leaf, type_ in zip(wanted.leaves, wanted.types, strict=True):
            found = _chunk(group.column(leaf), type_=type_, at=at, end=len(content))
            if found is None:
                return None
            data, start, size = found
            written.append(data)
            starts[-1].append(at)
            parts.append(memoryview(content)[start : start + size])
            at += size
        groups.append(_row_group(written, rows=group.num_rows))
        rows += group.num_rows
    writer = str(pieces[0].metadata.created_by or "").encode()
    footer = b"".join(
        [
            *(wanted.prefix, b"\x16", zigzag(rows), b"\x19", list_header(STRUCT, count=len(groups)), *groups),
            *(b"\x28", varint(len(writer)), writer, b"\x00"),
        ]
    )
    parts.append(framed(footer))
    return _table(
        b"".join(parts),
        rows=[one.metadata.row_group(one.group).num_rows for one in pieces],
        starts=starts,
        names=dictionaries,
    )


def _table(
    data: bytes, *, rows: Sequence[int], starts: Sequence[Sequence[int]], names: Sequence[str]
) -> pa.Table | None:
    """All values of a file with row groups of so many rows, whose chunks begin at ``starts``.

    A damaged row group may have other numbers of values than it says. Read by itself, it gives as many as it has rows,
    or fails; read with others, it would move what follows. So that is done for dictionaries alone, which show by their
    chunks where they come from.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    reader = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False, read_dictionary=list(names) or None)
    all_names = reader.schema_arrow.names
    others = [name for name in all_names if name not in names]
    groups = [reader.read_row_groups([place], columns=others, use_threads=False) for place in range(len(rows))]
    if [len(one) for one in groups] != [*rows] and others:
        return None
    table = pa.concat_tables(groups)
    if not names:
        return table
    coded = reader.read(columns=list(names), use_threads=False)
    leaves = [reader.schema.column(place).path for place in range(len(starts[0]))]
    for name, column in zip(coded.column_names, coded.columns, strict=True):
        column.validate(full=True)  # otherwise pyarrow looks at indexes when it decodes them
        leaf = leaves.index(name)
        if not _are_whole(column, rows=rows, data=data, starts=[one[leaf] for one in starts]):
            return None
    sides = [coded if name in names else table for name in all_names]
    fields = [side.schema.field(name) for name, side in zip(all_names, sides, strict=True)]
    columns = [side.column(name) for name, side in zip(all_names, sides, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _are_whole(column: pa.ChunkedArray, *, rows: Sequence[int], data: bytes, starts: Sequence[int]) -> bool:
    """Whether dictionaries are as they were stored, each for the rows of one row group.

    Pyarrow leaves out what comes twice in a dictionary, which moves all behind it to other indexes.
    """
    chunks = iter(column.chunks)
    for count, start in zip(rows, starts, strict=True):
        try:
            stored = dictionary_values(data, start, end=len(data))
        except (ThriftError, KeyError, TypeError, ValueError, IndexError):
            return False
        left = count
        while left > 0:
            one = next(chunks, None)
            if one is None or (stored is not None and len(one.dictionary) != stored):
                return False
            left -= len(one)
        if left:
            return False
    return next(chunks, None) is None


def _chunk(chunk: Any, *, type_: int, at: int, end: int) -> tuple[bytes, int, int] | None:  # noqa: ANN401 no types
    """A column chunk that begins at another position, in a footer; where its bytes are in its file, and how many."""
    codec = _CODECS.get(chunk.compression)
    first, size = chunk.data_page_offset, chunk.total_compressed_size
    start, dictionary = first, b""
    if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < first:
        start = chunk.dictionary_page_offset
        dictionary = b"\x26" + varint(at << 1)
    values = chunk.num_values
    if codec is None or values < 0 or not len(MAGIC) <= start <= first < start + size <= end:
        return None
    data = b"".join(
        [
            *(b"\x26\x00\x1c\x15", zigzag(type_), _ONE_ENCODING, _ONE_NAME, b"\x15", zigzag(codec)),
            *(b"\x16", zigzag(values), _NO_PLAIN_SIZE, b"\x16", varint(size << 1)),
            *(b"\x26", varint(at + first - start << 1), dictionary, b"\x00\x00"),
        ]
    )
    return data, start, size


def _row_group(chunks: Sequence[bytes], *, rows: int) -> bytes:
    header = b"\x19" + list_header(STRUCT, count=len(chunks))
    return b"".join([header, *chunks, b"\x16\x00\x16", zigzag(rows), b"\x00"])
