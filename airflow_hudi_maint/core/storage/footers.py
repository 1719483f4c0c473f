"""What the footers of Parquet base files say: the schema, how many rows there are, and which instant changed them last.

A footer is fetched as bytes and parsed from memory, so that a failing storage (transient) and a broken file (terminal)
are told apart: every ``path`` is relative to the storage's root, and reading it raises FileNotFoundError, StorageError,
or CorruptTableError that names a file which is no Parquet. Hudi's default Bloom filter alone puts 431 KB into a footer.
"""

from __future__ import annotations

import io
import logging
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.storage.filesystem import Storage

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

COMMIT_TIME_COLUMN = "_hoodie_commit_time"

_AVRO_SCHEMA_KEY = b"parquet.avro.schema"
_MAGIC = b"PAR1"
_TAIL = struct.Struct("<i4s")
_FIRST_READ_BYTES = 512 * 1024

_log = logging.getLogger(__name__)
_Told = TypeVar("_Told")


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterColumn:
    """A top-level column of a Parquet file, its type in Avro's words (``decimal(10,2)``, ``timestamp-micros``)."""

    name: str
    type_name: str
    nullable: bool


def max_commit_time(storage: Storage, *, path: str) -> str | None:
    """The greatest ``_hoodie_commit_time`` of the rows: the last instant that changed one of them.

    From the statistics of the row groups; a row group without them has that one column read. None without rows, and
    for a table that is written without Hudi's meta columns.
    """
    footer = read_footer(storage, path=path)
    index = _leaf_index(footer, column=COMMIT_TIME_COLUMN)
    if index is None:
        return None
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    chunks = [group.column(index).statistics for group in groups if group.num_rows]
    if all(chunk is not None and chunk.has_min_max for chunk in chunks):
        return max((str(chunk.max) for chunk in chunks), default=None)
    return _scanned_max(storage, path=path)


def max_commit_times(storage: Storage, *, paths: Sequence[str]) -> dict[str, str | None]:
    """:func:`max_commit_time` of several files, in the threads of the storage.

    None, with a warning, for a file that is broken, of another format, or was cleaned meanwhile: one of them must not
    stop the rest.
    """
    others = [path for path in paths if not path.endswith(".parquet")]
    if others:
        _log.warning("Commit times are read from Parquet only, not from %d files such as %s", len(others), others[0])

    return _of_many(max_commit_time, storage, paths=paths, what="commit time")


def record_count(storage: Storage, *, path: str) -> int:
    """The number of rows, which every Parquet footer tells exactly."""
    return int(read_footer(storage, path=path).num_rows)


def record_counts(storage: Storage, *, paths: Sequence[str]) -> dict[str, int | None]:
    """:func:`record_count` of several files; None, with a warning, as in :func:`max_commit_times`."""
    return _of_many(record_count, storage, paths=paths, what="number of rows")


def _of_many(
    read: Callable[..., _Told], storage: Storage, *, paths: Sequence[str], what: str
) -> dict[str, _Told | None]:
    def tolerant(path: str) -> _Told | None:
        try:
            return read(storage, path=path)
        except (CorruptTableError, FileNotFoundError) as error:
            _log.warning("No %s from a footer: %s", what, error)
            return None

    return dict(zip(paths, storage.concurrently(tolerant, paths), strict=True))


def avro_schema(storage: Storage, *, path: str) -> str | None:
    """The Avro schema (JSON) that Hudi's writer keeps in the footer; None where a row writer left it out."""
    text: bytes | None = (read_footer(storage, path=path).metadata or {}).get(_AVRO_SCHEMA_KEY)
    return None if text is None else text.decode("utf-8", "replace")


def key_values(storage: Storage, *, path: str) -> dict[str, str]:
    """The texts that the writer put into the footer beside the schema."""
    found: dict[bytes, bytes] = read_footer(storage, path=path).metadata or {}
    return {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in found.items()}


def footer_columns(storage: Storage, *, path: str) -> tuple[FooterColumn, ...]:
    """The top-level columns with their types, from the Parquet schema itself."""
    fields = read_footer(storage, path=path).schema.to_arrow_schema()
    return tuple(
        FooterColumn(name=field.name, type_name=avro_type_name(field.type), nullable=field.nullable) for field in fields
    )


def read_footer(storage: Storage, *, path: str) -> FileMetaData:
    """The whole footer of a Parquet file, as pyarrow has it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = _footer_bytes(storage, path=path)
    try:
        return pq.read_metadata(io.BytesIO(_MAGIC + data))
    except (pa.ArrowException, OSError) as error:
        raise _corrupt(storage, path=path, reason=str(error)) from error


def _footer_bytes(storage: Storage, *, path: str) -> bytes:
    """The footer with its length and magic behind it: all that a reader of metadata needs."""
    with storage.open_input(path) as file:
        size = file.seek(0, io.SEEK_END)
        tail = _read_last(file, count=min(size, _FIRST_READ_BYTES))
        length = _footer_length(tail)
        needed = 0 if length is None else length + _TAIL.size
        if len(tail) < needed <= size - len(_MAGIC):
            tail = _read_last(file, count=needed)
    if length is None or len(tail) < needed:
        raise _corrupt(storage, path=path, reason=f"{size} bytes with no Parquet footer at the end")
    return tail[len(tail) - needed :]


def _read_last(file: Any, *, count: int) -> bytes:  # noqa: ANN401 fsspec's files have no types
    file.seek(-count, io.SEEK_END)
    return bytes(file.read(count))


def _footer_length(tail: bytes) -> int | None:
    if len(tail) < _TAIL.size + len(_MAGIC):
        return None
    length, magic = _TAIL.unpack(tail[-_TAIL.size :])
    return int(length) if magic == _MAGIC and length > 0 else None


def _corrupt(storage: Storage, *, path: str, reason: str) -> CorruptTableError:
    return CorruptTableError(f"{storage.join(path)} is no Parquet file that can be read: {reason}")


def _leaf_index(footer: FileMetaData, *, column: str) -> int | None:
    schema = footer.schema
    return next((number for number in range(len(schema)) if schema.column(number).path == column), None)


def _scanned_max(storage: Storage, *, path: str) -> str | None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with storage.open_input(path) as file:
        data = file.read()
    try:
        column = pq.read_table(io.BytesIO(data), columns=[COMMIT_TIME_COLUMN]).column(0)
    except (pa.ArrowException, OSError) as error:
        raise _corrupt(storage, path=path, reason=str(error)) from error
    greatest = pc.max(column).as_py()
    return None if greatest is None else str(greatest)


def avro_type_name(kind: Any) -> str:  # noqa: ANN401 pyarrow has no types
    """Name an Arrow type as Avro would: ``long``, ``decimal(10,2)``; nested ones by their kind alone."""
    import pyarrow as pa

    tests = (
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_int64, "long"),
        (pa.types.is_integer, "int"),
        (pa.types.is_float64, "double"),
        (pa.types.is_floating, "float"),
        (pa.types.is_date, "date"),
        (pa.types.is_time, "time-millis" if "ms" in str(kind) else "time-micros"),
        (pa.types.is_fixed_size_binary, "fixed"),
        (pa.types.is_string, "string"),
        (pa.types.is_large_string, "string"),
        (pa.types.is_list, "array"),
        (pa.types.is_map, "map"),
        (pa.types.is_struct, "record"),
    )
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        name = "timestamp-millis" if kind.unit == "ms" else "timestamp-micros"
        return name if kind.tz else f"local-{name}"
    return next((name for test, name in tests if test(kind)), "bytes")
