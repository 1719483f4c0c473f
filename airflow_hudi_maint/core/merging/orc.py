"""Merge ORC files, stripe by stripe through Arrow.

Types that Arrow would write as others (char, varchar, unions, types with attributes) are refused. User metadata in
footers and Bloom filters are not written by Arrow: the names of the first that are lost are told.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from airflow_hudi_maint.core.errors import SchemaConflictError, UnreadableFileError
from airflow_hudi_maint.core.merging.orc_footer import BrokenOrcError, OrcFooter, read_orc_footer
from airflow_hudi_maint.core.model.merge_settings import OnUnreadable
from airflow_hudi_maint.core.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow as pa

WHOLE_BYTES = 64 << 20
_OF_NO_USE = frozenset(("org.apache.spark.version",))
_TRANSACTIONAL = "hive.acid"
_DICTIONARY_SHARE = 0.8
"""Hive's default of orc.dictionary.key.threshold; Arrow's own writes no dictionaries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedOrc:
    """What became of a merge. ``notes`` say what was not kept."""

    rows: int
    bytes: int
    stripes: int
    method: str = "stripe by stripe"
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Surveyed:
    """An input as its footer shows it."""

    path: str
    bytes: int
    footer: OrcFooter
    schema: pa.Schema


@dataclass(kw_only=True)
class _Inputs:
    """Those that can be read, and those that cannot."""

    good: list[_Surveyed] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def merge_orc(
    storage: Storage,
    *,
    inputs: Sequence[tuple[str, int]],
    output: str,
    on_unreadable: OnUnreadable = "fail",
    log: Callable[[str], None] | None = None,
) -> MergedOrc:
    """Write the rows of ``inputs`` (paths and their bytes, in order) to ``output``, a new file.

    Schemas are joined by column name: columns that some lack are null there, and a whole number becomes the wider one.
    Codec, block size and row index stride are those of the first input.

    Raises UnreadableFileError that names the file (or leaves it out), SchemaConflictError with both schemas and files,
    StorageError.
    """
    say = log or (lambda _: None)
    found = _survey(storage, inputs, skips=on_unreadable == "skip", say=say)
    while True:
        if not found.good:
            raise UnreadableFileError(f"None of {len(inputs)} ORC files for {storage.join(output)} can be read")
        schema = unified_schema(storage, [(one.path, one.schema) for one in found.good])
        broken = _write(storage, found.good, output=output, schema=schema)
        if broken is None:
            break
        path, error = broken
        with suppress(FileNotFoundError):
            storage.delete(output)
        _leave_out(storage, found, path, error, skips=on_unreadable == "skip", say=say)
        found.good = [one for one in found.good if one.path != path]
    with _opened(storage, output) as file:
        size = file.seek(0, io.SEEK_END)
        merged = _orc_file(file)
        return MergedOrc(
            rows=int(merged.nrows),
            bytes=size,
            stripes=int(merged.nstripes),
            skipped=tuple(found.skipped),
            notes=_notes(found.good),
        )


def unified_schema(storage: Storage, schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """Join schemas by name; raises SchemaConflictError with both schemas and files."""
    import pyarrow as pa

    columns: dict[str, tuple[pa.DataType, int]] = {}
    for number, (path, schema) in enumerate(schemas):
        if len(set(schema.names)) != len(schema.names):
            raise SchemaConflictError(f"{storage.join(path)} has two columns of one name: {', '.join(schema.names)}")
        for name, type_ in zip(schema.names, schema.types, strict=True):
            known = columns.get(name)
            joined = type_ if known is None else _wider(known[0], type_)
            if joined is None and known is not None:
                other_path, other = schemas[known[1]]
                raise SchemaConflictError(
                    f"Column {name!r} is {type_} in {storage.join(path)} and {known[0]} in {storage.join(other_path)}, "
                    f"which no safe promotion joins. The schemas: {_shown(schema)}; and {_shown(other)}"
                )
            columns[name] = (joined, number if known is None or joined != known[0] else known[1])
    _refuse_names_by_case(storage, columns, schemas=schemas)
    return pa.schema([(name, type_) for name, (type_, _) in columns.items()])


def _refuse_names_by_case(
    storage: Storage, columns: Iterable[str], *, schemas: Sequence[tuple[str, pa.Schema]]
) -> None:
    """Spark and Hive, which heed no case, read such columns as one, and a file that has both not at all."""
    known: dict[str, str] = {}
    for name in columns:
        other = known.setdefault(name.casefold(), name)
        if other == name or any(name in schema.names and other in schema.names for _, schema in schemas):
            continue
        first, second = (
            storage.join(next(path for path, schema in schemas if each in schema.names)) for each in (other, name)
        )
        raise SchemaConflictError(
            f"Column {other!r} of {first} and column {name!r} of {second} differ by case alone: one file with both "
            "cannot be read by Spark or Hive, which take them for one. Rename one of them, or merge these files apart"
        )


def conformed(batch: pa.RecordBatch, *, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a batch with the columns and types of the joined schema."""
    import pyarrow as pa

    columns: list[Any] = []
    for column in schema:
        at = batch.schema.get_field_index(column.name)
        columns.append(pa.nulls(len(batch), column.type) if at < 0 else batch.column(at).cast(column.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def stripes(storage: Storage, path: str, *, size: int) -> Iterator[pa.RecordBatch]:
    """The rows of a file, a stripe at a time; raises UnreadableFileError."""
    import pyarrow as pa

    with _opened(storage, path, size=size) as file:
        try:
            found = _orc_file(file)
            for number in range(found.nstripes):
                yield found.read_stripe(number)
        except (pa.ArrowException, OSError) as error:
            raise UnreadableFileError(f"{storage.join(path)} cannot be read: {error}") from error


def _survey(storage: Storage, inputs: Sequence[tuple[str, int]], *, skips: bool, say: Callable[[str], None]) -> _Inputs:
    import pyarrow as pa

    found = _Inputs()
    for path, size in inputs:
        try:
            with _opened(storage, path, size=size) as file:
                footer = read_orc_footer(file, size=size)
                _refuse_lossy(storage, path, footer=footer)
                file.seek(0)
                schema = _orc_file(file).schema.remove_metadata()
        except SchemaConflictError:
            raise
        except (BrokenOrcError, pa.ArrowException, OSError) as error:
            _leave_out(storage, found, path, error, skips=skips, say=say)
            continue
        found.good.append(_Surveyed(path=path, bytes=size, footer=footer, schema=schema))
    return found


def _refuse_lossy(storage: Storage, path: str, *, footer: OrcFooter) -> None:
    if any(name.startswith(_TRANSACTIONAL) for name in footer.metadata):
        raise SchemaConflictError(f"{storage.join(path)} belongs to a transactional Hive table; compact it with Hive")
    if footer.is_encrypted:
        raise SchemaConflictError(f"{storage.join(path)} is encrypted; merge it with what has its keys")
    if footer.changed_types:
        raise SchemaConflictError(
            f"{storage.join(path)} has {', '.join(footer.changed_types)}, which Arrow would write as another type; "
            "merge it with Spark or Hive, or leave it out by exclude"
        )


def _leave_out(
    storage: Storage, found: _Inputs, path: str, error: Exception, *, skips: bool, say: Callable[[str], None]
) -> None:
    message = f"{storage.join(path)} cannot be merged: {error}"
    if not skips:
        raise UnreadableFileError(f"{message}; on_unreadable='skip' leaves such files where they are") from error
    say(f"{message}; it stays where it is")
    found.skipped.append(path)


def _write(
    storage: Storage, inputs: Sequence[_Surveyed], *, output: str, schema: pa.Schema
) -> tuple[str, UnreadableFileError] | None:
    """Write all rows; the path and error of an input whose stripes turn out to be damaged."""
    import pyarrow as pa
    from pyarrow import orc

    first = inputs[0].footer
    with storage.open_output(output) as sink:
        writer = orc.ORCWriter(
            pa.PythonFile(_Kept(sink), mode="w"),
            compression="uncompressed" if first.compression == "none" else first.compression,
            compression_block_size=first.block_bytes or 256 * 1024,
            row_index_stride=first.row_index_stride or 10_000,
            dictionary_key_size_threshold=_DICTIONARY_SHARE,
        )
        with writer:
            writer.write(schema.empty_table())
            for one in inputs:
                try:
                    for batch in stripes(storage, one.path, size=one.bytes):
                        writer.write(pa.Table.from_batches([conformed(batch, schema=schema)]))
                except UnreadableFileError as error:
                    return one.path, error
    return None


class _Kept:
    """A sink that Arrow may close without closing the file, which is settled by whoever opened it."""

    closed = False

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink

    def write(self, data: Any) -> int:  # noqa: ANN401 a buffer of Arrow's
        return self._sink.write(memoryview(data))

    def tell(self) -> int:
        return self._sink.tell()

    def flush(self) -> None:
        self._sink.flush()

    def close(self) -> None:
        return

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def readable(self) -> bool:
        return False


@contextmanager
def _opened(storage: Storage, path: str, *, size: int | None = None) -> Iterator[BinaryIO]:
    if size is not None and size <= WHOLE_BYTES and not storage.is_local:
        yield io.BytesIO(storage.read_bytes(path))
        return
    with storage.open_input(path) as file:
        yield file


def _orc_file(file: BinaryIO) -> Any:  # noqa: ANN401 Arrow ships no types
    from pyarrow import orc

    return orc.ORCFile(file)


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    from pyarrow import types

    if one == other:
        return one
    if types.is_signed_integer(one) and types.is_signed_integer(other):
        return one if one.bit_width >= other.bit_width else other
    return None


def _notes(inputs: Sequence[_Surveyed]) -> tuple[str, ...]:
    lost: Mapping[str, None] = dict.fromkeys(
        name for one in inputs for name in one.footer.metadata if name not in _OF_NO_USE
    )
    notes = [f"user metadata was not kept: {', '.join(lost)}"] if lost else []
    codecs = sorted({one.footer.compression for one in inputs})
    if len(codecs) > 1:
        notes.append(f"the inputs were compressed with {', '.join(codecs)}; the merged file is with the first's")
    return tuple(notes)


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in schema)
