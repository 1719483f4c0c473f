"""The footer of a Parquet file: read from storage, taken apart, shifted to another place, and written.

Field numbers are those of ``parquet.thrift`` in the Parquet format's repository. What a field means is kept out of the
way wherever it can be: a struct is changed in the few fields that have to change, and all others stay as they are.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from airflow_hudi_maint.core.errors import UnreadableFileError
from airflow_hudi_maint.core.merging.thrift_compact import (
    BINARY,
    I32,
    I64,
    LIST,
    STRUCT,
    CompactReader,
    Struct,
    ThriftError,
    field_header,
    list_header,
    struct_bytes,
)
from airflow_hudi_maint.core.storage.filesystem import Storage

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

MAGIC = b"PAR1"
_ENCRYPTED_MAGIC = b"PARE"
_TAIL = struct.Struct("<I4s")
_FIRST_READ_BYTES = 64 * 1024

# FileMetaData
VERSION, SCHEMA, NUM_ROWS, ROW_GROUPS, KEY_VALUES, CREATED_BY, COLUMN_ORDERS, ENCRYPTION = range(1, 9)
# RowGroup
COLUMNS, TOTAL_BYTE_SIZE, ROW_COUNT, SORTING_COLUMNS, GROUP_FILE_OFFSET, TOTAL_COMPRESSED_SIZE, ORDINAL = range(1, 8)
# ColumnChunk
(FILE_PATH, CHUNK_FILE_OFFSET, META_DATA, OFFSET_INDEX_OFFSET, OFFSET_INDEX_LENGTH, COLUMN_INDEX_OFFSET) = range(1, 7)
COLUMN_INDEX_LENGTH, CRYPTO_METADATA, ENCRYPTED_METADATA = range(7, 10)
# ColumnMetaData
TYPE, ENCODINGS, PATH_IN_SCHEMA, CODEC, NUM_VALUES, CHUNK_UNCOMPRESSED_SIZE, CHUNK_COMPRESSED_SIZE = range(1, 8)
DATA_PAGE_OFFSET, INDEX_PAGE_OFFSET, DICTIONARY_PAGE_OFFSET, STATISTICS, ENCODING_STATS = range(9, 14)
BLOOM_FILTER_OFFSET, BLOOM_FILTER_LENGTH = 14, 15


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterBytes:
    """A footer as it lies in its file: ``data`` without length and magic, and the bytes of the whole file."""

    data: bytes
    file_bytes: int

    @property
    def starts_at(self) -> int:
        """The position of its first byte in the file, which is where everything else has ended."""
        return self.file_bytes - len(self.data) - _TAIL.size


def read_footer(storage: Storage, *, path: str) -> FooterBytes:
    """Read the footer of one file, as a rule by one request.

    Raises UnreadableFileError for a file that ends without one (empty, truncated, of another format) and for an
    encrypted one; FileNotFoundError and StorageError as the storage does.
    """
    with storage.open_input(path) as file:
        return footer_of(file, name=storage.join(path))


def footer_of(file: BinaryIO, *, name: str) -> FooterBytes:
    """Read the footer of an open file; ``name`` stands in messages. Raises as :func:`read_footer` does."""
    size = file.seek(0, io.SEEK_END)
    if not size:
        raise UnreadableFileError(f"{name} is empty: it has no byte, so it is no Parquet file")
    first = min(size, _FIRST_READ_BYTES)
    file.seek(size - first)
    tail = file.read(first)
    length = _footer_length(tail, name=name, size=size)
    if length + _TAIL.size > len(tail):
        file.seek(size - length - _TAIL.size)
        tail = file.read(length + _TAIL.size)
    return FooterBytes(data=tail[-length - _TAIL.size : -_TAIL.size], file_bytes=size)


def footer_in(data: memoryview, *, name: str) -> FooterBytes:
    """The footer of a whole file in memory. Raises as :func:`read_footer` does."""
    size = len(data)
    length = _footer_length(bytes(data[-_TAIL.size - len(MAGIC) :]), name=name, size=size)
    return FooterBytes(data=bytes(data[size - length - _TAIL.size : size - _TAIL.size]), file_bytes=size)


def _footer_length(tail: bytes, *, name: str, size: int) -> int:
    if len(tail) >= _TAIL.size + len(MAGIC):
        length, magic = _TAIL.unpack(tail[-_TAIL.size :])
        if magic == _ENCRYPTED_MAGIC:
            raise UnreadableFileError(f"{name} is a Parquet file with an encrypted footer; those are not merged")
        if magic == MAGIC and 0 < length <= size - _TAIL.size - len(MAGIC):
            return int(length)
    raise UnreadableFileError(f"{name} ({size} bytes) ends without a Parquet footer: it is truncated, or no Parquet")


def parse_footer(data: bytes, *, name: str) -> Struct:
    """Take a footer apart. Raises UnreadableFileError, with ``name``, where it makes no sense."""
    try:
        found = CompactReader(data).struct()
    except ThriftError as error:
        raise UnreadableFileError(f"{name} has a Parquet footer that cannot be understood: {error}") from error
    if SCHEMA not in found or found[SCHEMA][0] != LIST:
        raise UnreadableFileError(f"{name} has a Parquet footer without a schema")
    return found


def schema_prefix(data: bytes, *, name: str) -> tuple[bytes, Struct]:
    """The first bytes of a footer, which hold its version and schema, and what they say.

    Two footers that start with the same such bytes have the same schema, which is much cheaper to find out than by
    taking both apart.
    """
    reader = CompactReader(data)
    try:
        found = reader.struct(until=SCHEMA)
    except ThriftError as error:
        raise UnreadableFileError(f"{name} has a Parquet footer that cannot be understood: {error}") from error
    if SCHEMA not in found or found[SCHEMA][0] != LIST:
        raise UnreadableFileError(f"{name} has a Parquet footer without a schema")
    return data[: reader.at], found


def file_metadata(footer: bytes) -> FileMetaData:
    """A footer as pyarrow sees it. Raises what pyarrow does for one that it does not understand."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.read_metadata(pa.BufferReader(MAGIC + framed(footer)))


def chunks(group: Struct) -> list[Struct]:
    """The column chunks of a row group."""
    return list(group[COLUMNS][1][1])


def row_groups(footer: Struct) -> list[Struct]:
    """The row groups of a footer."""
    return list(footer[ROW_GROUPS][1][1]) if ROW_GROUPS in footer else []


def number(value: Struct, field: int, default: int = 0) -> int:
    """An integer field; ``default`` where it is absent."""
    found = value.get(field)
    return default if found is None else int(found[1])


def chunk_range(chunk: Struct) -> tuple[int, int]:
    """The first byte of a column chunk and the one behind its last.

    A dictionary page comes first where there is one; some writers say 0 for none.
    """
    meta = chunk[META_DATA][1]
    start = number(meta, DATA_PAGE_OFFSET)
    dictionary = number(meta, DICTIONARY_PAGE_OFFSET)
    if 0 < dictionary < start:
        start = dictionary
    return start, start + number(meta, CHUNK_COMPRESSED_SIZE)


def is_encrypted(footer: Struct) -> bool:
    """Whether any column of a file with a plain footer is encrypted."""
    if ENCRYPTION in footer:
        return True
    return any(
        CRYPTO_METADATA in chunk or ENCRYPTED_METADATA in chunk
        for group in row_groups(footer)
        for chunk in chunks(group)
    )


def framed(footer: bytes) -> bytes:
    """A footer with what stands behind it in a file: its length and the magic."""
    return footer + _TAIL.pack(len(footer), MAGIC)


def footer_bytes(
    *,
    version: int,
    schema: Sequence[Struct],
    groups: Sequence[bytes],
    rows: int,
    key_values: Mapping[bytes, bytes],
    created_by: bytes,
    column_orders: tuple[int, list[Struct]] | None,
) -> bytes:
    """Write a footer out of row groups that are written already."""
    parts = [
        field_header(I32, number=VERSION, after=0) + _integer(version),
        field_header(LIST, number=SCHEMA, after=VERSION) + _structs(struct_bytes(one) for one in schema),
        field_header(I64, number=NUM_ROWS, after=SCHEMA) + _integer(rows),
        field_header(LIST, number=ROW_GROUPS, after=NUM_ROWS) + _structs(groups),
    ]
    rest: Struct = {}
    if key_values:
        rest[KEY_VALUES] = (
            LIST,
            (STRUCT, [{1: (BINARY, key), 2: (BINARY, value)} for key, value in key_values.items()]),
        )
    rest[CREATED_BY] = (BINARY, created_by)
    if column_orders is not None:
        rest[COLUMN_ORDERS] = (LIST, column_orders)
    # The fields that follow count on from the row groups: the header of the first is written apart.
    first = min(rest)
    tail = struct_bytes(rest)
    skipped = len(field_header(rest[first][0], number=first, after=0))
    parts.append(field_header(rest[first][0], number=first, after=ROW_GROUPS) + tail[skipped:])
    return b"".join(parts)


def _structs(values: Iterable[bytes]) -> bytes:
    written = list(values)
    return list_header(STRUCT, count=len(written)) + b"".join(written)


def _integer(value: int) -> bytes:
    return struct_bytes({1: (I64, value)})[1:-1]
