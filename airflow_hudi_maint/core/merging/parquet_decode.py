"""Values of input files as Arrow tables of the merged file's physical schema, in small pieces."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from airflow_hudi_maint.core.errors import HudiMaintError, UnreadableFileError
from airflow_hudi_maint.core.merging.parquet_footer import file_metadata, footer_in, footer_of, framed
from airflow_hudi_maint.core.merging.parquet_joint import Piece, WantedColumns, joint_table
from airflow_hudi_maint.core.merging.parquet_physical import with_prefix
from airflow_hudi_maint.core.merging.parquet_steps import OLD_WRITER, GroupRef, Step
from airflow_hudi_maint.core.merging.parquet_survey import InputFile, Survey
from airflow_hudi_maint.core.merging.schemas import UnifiedSchema
from airflow_hudi_maint.core.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import FileMetaData

    from airflow_hudi_maint.core.merging.parquet_splicing import Splice

WHOLE_FILE_BYTES = 16 * 1024 * 1024
"""A file up to this size is read by one request, a larger one in the parts that are needed."""
_TOGETHER_BYTES = 32 * 1024 * 1024
_TOGETHER_ON_DISK_BYTES = 4 * 1024 * 1024
_TOGETHER_FILES = 16
_PIECE_BYTES = 8 * 1024 * 1024
_PIECE_ROWS = 65_536
_STREAM_BYTES = 1024 * 1024


class BrokenInputError(UnreadableFileError):
    """An input turned out to be broken after its footer had been read; ``path`` is relative to the storage."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class _Piece(NamedTuple):
    ref: GroupRef
    data: Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """Decodes row groups of the files of a survey. Safe to use from several threads.

    ``wanted`` are all columns of each distinct schema.
    """

    storage: Storage
    survey: Survey
    schema: UnifiedSchema
    arrow_schema: pa.Schema
    wanted: tuple[WantedColumns, ...]
    piece_rows: int = _PIECE_ROWS

    def tables(self, step: Step, *, splice: Splice | None = None) -> Iterator[pa.Table]:
        """The values of a step, in order, in tables of some megabytes.

        With ``splice`` those of some columns: it is given the others as they are; the files are small then.

        Raises BrokenInputError for a file whose pages cannot be decoded, or whose footer is not the one of before.
        """
        for some in self._together(list(step.by_file())):
            contents = self._contents([self.survey.files[file] for file, _ in some])
            pieces: list[_Piece] = []
            for (_, groups), content in zip(some, contents, strict=True):
                if content is None:
                    yield from self._joined(pieces, splice=splice)
                    pieces = []
                    yield from self._streamed(groups)
                    continue
                metadata = self._metadata(groups, content=content)
                for ref in groups:
                    piece = _Piece(ref, Piece(content, metadata, ref.group))
                    if splice is not None:
                        with self._failures(ref):
                            splice.add(piece.data, values=partial(self._column, piece))
                    if pieces and not self._fits(pieces, piece):
                        yield from self._joined(pieces, splice=splice)
                        pieces = []
                    pieces.append(piece)
            yield from self._joined(pieces, splice=splice)

    def pieces(self, refs: Sequence[GroupRef]) -> list[Piece]:
        """Row groups of small files. Raises as :meth:`tables` does."""
        contents = self.storage.read_many([self.survey.files[ref.file].path for ref in refs])
        return [
            Piece(content, self._metadata([ref], content=content), ref.group)
            for ref, content in zip(refs, contents, strict=True)
        ]

    def decoded_row_bytes(self, ref: GroupRef) -> tuple[float, GroupRef]:
        """How many bytes in memory a row has, by the first ``piece_rows`` of a row group; and that row group."""
        first = next(iter(self.tables(Step(groups=(ref,), is_copy=False))), None)
        return (0.0 if first is None or not len(first) else first.nbytes / len(first)), ref

    def _fits(self, pieces: Sequence[_Piece], piece: _Piece) -> bool:
        """Whether a row group may be read together with others: files of one schema by one writer."""
        files = self.survey.files
        first = pieces[0]
        return (
            sum(one.ref.rows for one in pieces) + piece.ref.rows <= self.piece_rows
            and sum(one.ref.bytes for one in pieces) + piece.ref.bytes <= _PIECE_BYTES
            and files[first.ref.file].schema == files[piece.ref.file].schema
            and first.data.metadata.created_by == piece.data.metadata.created_by
        )

    def _is_small(self, ref: GroupRef) -> bool:
        return ref.rows <= self.piece_rows and ref.bytes <= _PIECE_BYTES

    def _joined(self, pieces: Sequence[_Piece], *, splice: Splice | None) -> Iterator[pa.Table]:
        """The values of row groups that fit together; each by itself where that does not work, or it is large."""
        import pyarrow as pa

        if not pieces:
            return
        ref = pieces[0].ref
        schema = self.survey.files[ref.file].schema
        wanted = self.wanted[schema] if splice is None else splice.wanted
        names = () if splice is None else splice.coded_names
        table = None
        if self._is_small(ref) and not OLD_WRITER.search(str(pieces[0].data.metadata.created_by or "").encode()):
            with suppress(pa.ArrowException, OSError, IndexError):  # found again, file by file, with its name
                table = joint_table([one.data for one in pieces], wanted=wanted, dictionaries=names)
        if table is not None and len(table) == sum(one.ref.rows for one in pieces):
            yield self._aligned(table, schema)
            return
        for one in pieces:
            for found in self._separate(one, columns=None if splice is None else splice.names):
                yield self._aligned(with_dictionaries(found, names), schema)

    def _column(self, piece: _Piece, name: str) -> pa.ChunkedArray:
        import pyarrow as pa

        return pa.concat_tables(list(self._separate(piece, columns=[name]))).column(0)

    def _separate(self, piece: _Piece, *, columns: Sequence[str] | None) -> Iterator[pa.Table]:
        content = piece.data.content
        with self._reader([piece.ref], source=io.BytesIO(content), content=content) as reader:
            yield from self._group_tables(reader, piece.ref, columns=columns)

    def _streamed(self, groups: Sequence[GroupRef]) -> Iterator[pa.Table]:
        """The values of row groups of a large file."""
        file = self.survey.files[groups[0].file]
        with self.storage.open_input(file.path) as source, self._reader(groups, source=source, content=None) as reader:
            for group in groups:
                for table in self._group_tables(reader, group, columns=None):
                    yield self._aligned(table, file.schema)

    def _together(self, files: Sequence[tuple[int, list[GroupRef]]]) -> Iterator[list[tuple[int, list[GroupRef]]]]:
        """Files that are worth one round of requests, or on a disk one call of the decoder."""
        some: list[tuple[int, list[GroupRef]]] = []
        size = 0
        most = _TOGETHER_ON_DISK_BYTES if self.storage.is_local else _TOGETHER_BYTES
        for file, groups in files:
            own = self.survey.files[file].file_bytes
            if some and (len(some) == _TOGETHER_FILES or size + own > most):
                yield some
                some, size = [], 0
            some.append((file, groups))
            size += own
        if some:
            yield some

    def _contents(self, files: Sequence[InputFile]) -> list[bytes | None]:
        """The bytes of small files; None for a large one."""
        small = [file.path for file in files if file.file_bytes <= WHOLE_FILE_BYTES]
        read = iter(self.storage.read_many(small))
        return [next(read) if file.file_bytes <= WHOLE_FILE_BYTES else None for file in files]

    def _metadata(self, groups: Sequence[GroupRef], *, content: bytes) -> FileMetaData:
        """The footer of a small file, which has to be the one of before."""
        file = self.survey.files[groups[0].file]
        with self._failures(groups[0]):
            name = self.storage.join(file.path)
            if file.footer is not None and content.endswith(framed(file.footer.data)):
                _check_unchanged(len(content) == file.file_bytes, name=name)
                return file.footer.metadata
            footer = footer_in(memoryview(content), name=name)
            _check_unchanged(footer.data.startswith(self.survey.schemas[file.schema].prefix), name=name)
            metadata = file_metadata(footer.data)
            _check_rows(metadata, groups, name=name)
            return metadata

    @contextmanager
    def _reader(self, groups: Sequence[GroupRef], *, source: BinaryIO, content: bytes | None) -> Iterator[Any]:
        """A reader of an open file that is the one of before; errors of its block are those of the file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = self.survey.files[groups[0].file]
        with self._failures(groups[0]):
            name = self.storage.join(file.path)
            known = self.survey.schemas[file.schema]
            footer = footer_of(source, name=name)
            _check_unchanged(footer.data.startswith(known.prefix), name=name)
            metadata = with_prefix(footer.data, original=known.prefix, prefix=self.wanted[file.schema].prefix)
            opened = pa.BufferReader(content) if content is not None else pa.PythonFile(source, mode="r")
            reader = pq.ParquetFile(opened, metadata=metadata, pre_buffer=False, buffer_size=_buffer(content))
            _check_rows(metadata, groups, name=name)
            yield reader

    @contextmanager
    def _failures(self, ref: GroupRef) -> Iterator[None]:
        """Errors of the block are those of a file, unless they are the storage's."""
        import pyarrow as pa

        path = self.survey.files[ref.file].path
        try:
            yield
        except UnreadableFileError as error:
            raise BrokenInputError(str(error), path=path) from error
        except (HudiMaintError, MemoryError, FileNotFoundError):
            raise
        except (pa.ArrowException, OSError, IndexError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the storage; pyarrow's own have no number
            raise BrokenInputError(f"{self.storage.join(path)} cannot be decoded: {error}", path=path) from error

    def _group_tables(
        self,
        reader: Any,  # noqa: ANN401 pyarrow has no types
        group: GroupRef,
        *,
        columns: Sequence[str] | None,
    ) -> Iterator[pa.Table]:
        import pyarrow as pa

        if self._is_small(group):
            yield reader.read_row_groups([group.group], columns=columns, use_threads=False)
            return
        groups = [group.group]
        for batch in reader.iter_batches(
            batch_size=self.piece_rows, row_groups=groups, columns=columns, use_threads=False
        ):
            yield pa.Table.from_batches([batch])

    def _aligned(self, table: pa.Table, schema: int) -> pa.Table:
        """The columns of the merged file: in its order, widened, null where the file lacks them."""
        import pyarrow as pa

        if self.schema.is_same[schema]:
            return table
        columns = []
        for place, field in zip(self.schema.sources[schema], self.arrow_schema, strict=True):
            if place is None:
                columns.append(pa.nulls(len(table), field.type))
                continue
            column = table.column(place)
            columns.append(column if column.type == field.type else column.cast(field.type))
        return pa.Table.from_arrays(columns, schema=self.arrow_schema)


def with_dictionaries(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The same values, some columns as Arrow's dictionaries."""
    for name in names:
        place = table.schema.get_field_index(name)
        column = table.column(place).dictionary_encode()
        table = table.set_column(place, table.schema.field(place).with_type(column.type), column)
    return table


def column_names(places: Sequence[int | None]) -> list[int]:
    """What the columns of a file are called: the places of those that they become in the merged file."""
    names: Mapping[int, int] = {place: name for name, place in enumerate(places) if place is not None}
    return [names[place] for place in range(len(names))]


def _buffer(content: bytes | None) -> int:
    return 0 if content is not None else _STREAM_BYTES


def _check_rows(metadata: FileMetaData, groups: Sequence[GroupRef], *, name: str) -> None:
    for one in groups:
        _check_unchanged(metadata.row_group(one.group).num_rows == one.rows, name=name)


def _check_unchanged(is_same: bool, *, name: str) -> None:  # noqa: FBT001 a condition
    if not is_same:
        raise UnreadableFileError(f"{name} was replaced while it was merged")
