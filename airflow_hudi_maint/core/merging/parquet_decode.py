"""Values of input files as Arrow tables of the merged file's physical schema, in small pieces."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from airflow_hudi_maint.core.errors import HudiMaintError, UnreadableFileError
from airflow_hudi_maint.core.merging.parquet_footer import footer_of
from airflow_hudi_maint.core.merging.parquet_physical import physical_prefix, with_prefix
from airflow_hudi_maint.core.merging.parquet_steps import GroupRef, Step
from airflow_hudi_maint.core.merging.parquet_survey import InputFile, Survey
from airflow_hudi_maint.core.merging.schemas import UnifiedSchema
from airflow_hudi_maint.core.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_hudi_maint.core.merging.parquet_splicing import Splice

WHOLE_FILE_BYTES = 16 * 1024 * 1024
"""A file up to this size is read by one request, a larger one in the parts that are needed."""
_TOGETHER_BYTES = 32 * 1024 * 1024
_TOGETHER_FILES = 16
_PIECE_BYTES = 8 * 1024 * 1024
_PIECE_ROWS = 65_536
_STREAM_BYTES = 1024 * 1024


class BrokenInputError(UnreadableFileError):
    """An input turned out to be broken after its footer had been read; ``path`` is relative to the storage."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """Decodes row groups of the files of a survey. Safe to use from several threads."""

    storage: Storage
    survey: Survey
    schema: UnifiedSchema
    arrow_schema: pa.Schema
    prefixes: tuple[bytes, ...]
    piece_rows: int = _PIECE_ROWS

    def tables(self, step: Step, *, splice: Splice | None = None) -> Iterator[pa.Table]:
        """The values of a step, in order, in tables of some megabytes.

        With ``splice`` those of some columns: it is given the others as they are; the files are small then.

        Raises BrokenInputError for a file whose pages cannot be decoded, or whose footer is not the one of before.
        """
        for some in self._together(list(step.by_file())):
            contents = self._contents([self.survey.files[file] for file, _ in some])
            for file, groups in some:
                yield from self._file_tables(
                    self.survey.files[file], groups, content=contents.pop(file_path(self, file)), splice=splice
                )

    def opened(self, ref: GroupRef) -> Iterator[tuple[Any, bytes]]:
        """The reader of a small file and its bytes, once, where what is done with them fails as :meth:`tables` does."""
        file = self.survey.files[ref.file]
        content = self.storage.read_bytes(file.path)
        with self._reader(file, [ref], source=io.BytesIO(content), content=content) as reader:
            yield reader, content

    def decoded_row_bytes(self, ref: GroupRef) -> tuple[float, GroupRef]:
        """How many bytes in memory a row has, by the first ``piece_rows`` of a row group; and that row group."""
        first = next(iter(self.tables(Step(groups=(ref,), is_copy=False))), None)
        return (0.0 if first is None or not len(first) else first.nbytes / len(first)), ref

    def _together(self, files: Sequence[tuple[int, list[GroupRef]]]) -> Iterator[list[tuple[int, list[GroupRef]]]]:
        """Files whose reading is worth one round of requests: one on a disk, several elsewhere."""
        some: list[tuple[int, list[GroupRef]]] = []
        size = 0
        for file, groups in files:
            own = self.survey.files[file].file_bytes
            if some and (self.storage.is_local or len(some) == _TOGETHER_FILES or size + own > _TOGETHER_BYTES):
                yield some
                some, size = [], 0
            some.append((file, groups))
            size += own
        if some:
            yield some

    def _contents(self, files: Sequence[InputFile]) -> dict[str, bytes | None]:
        """The bytes of small files; None for a large one."""
        small = [file.path for file in files if file.file_bytes <= WHOLE_FILE_BYTES]
        read: dict[str, bytes | None] = dict(zip(small, self.storage.read_many(small), strict=True))
        return {file.path: read.get(file.path) for file in files}

    def _file_tables(
        self, file: InputFile, groups: Sequence[GroupRef], *, content: bytes | None, splice: Splice | None
    ) -> Iterator[pa.Table]:
        if content is not None:
            names = None if splice is None else splice.names
            with self._reader(file, groups, source=io.BytesIO(content), content=content) as reader:
                for group in groups:
                    if splice is not None:
                        splice.add(reader, group.group, content=content)
                    for table in self._group_tables(reader, group, columns=names):
                        yield self._aligned(table, file.schema)
            return
        with (
            self.storage.open_input(file.path) as source,
            self._reader(file, groups, source=source, content=None) as reader,
        ):
            for group in groups:
                for table in self._group_tables(reader, group, columns=None):
                    yield self._aligned(table, file.schema)

    @contextmanager
    def _reader(
        self, file: InputFile, groups: Sequence[GroupRef], *, source: BinaryIO, content: bytes | None
    ) -> Iterator[Any]:
        """A reader of an open file that is the one of before; errors of its block are those of the file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        name = self.storage.join(file.path)
        known = self.survey.schemas[file.schema]
        try:
            footer = footer_of(source, name=name)
            _check_unchanged(footer.data.startswith(known.prefix), name=name)
            metadata = with_prefix(footer.data, original=known.prefix, prefix=self.prefixes[file.schema])
            opened = pa.BufferReader(content) if content is not None else pa.PythonFile(source, mode="r")
            reader = pq.ParquetFile(opened, metadata=metadata, pre_buffer=False, buffer_size=_buffer(content))
            for group in groups:
                _check_unchanged(metadata.row_group(group.group).num_rows == group.rows, name=name)
            yield reader
        except UnreadableFileError as error:
            raise BrokenInputError(str(error), path=file.path) from error
        except (HudiMaintError, MemoryError, FileNotFoundError):
            raise
        except (pa.ArrowException, OSError, IndexError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the storage; pyarrow's own have no number
            raise BrokenInputError(f"{name} cannot be decoded: {error}", path=file.path) from error

    def _group_tables(
        self,
        reader: Any,  # noqa: ANN401 pyarrow has no types
        group: GroupRef,
        *,
        columns: Sequence[str] | None,
    ) -> Iterator[pa.Table]:
        import pyarrow as pa

        if group.rows <= self.piece_rows and group.bytes <= _PIECE_BYTES:
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


def file_path(decoder: Decoder, file: int) -> str:
    """The path of an input by its place."""
    return decoder.survey.files[file].path


def schema_prefixes(survey: Survey, schema: UnifiedSchema) -> tuple[bytes, ...]:
    """The physical schema of each distinct schema, its columns called as those of the merged file are."""
    prefixes = []
    for known, places in zip(survey.schemas, schema.sources, strict=True):
        names: Mapping[int, int] = {place: name for name, place in enumerate(places) if place is not None}
        columns = known.named.root.children
        prefixes.append(physical_prefix(known.named.root, names=[names[place] for place in range(len(columns))]))
    return tuple(prefixes)


def _buffer(content: bytes | None) -> int:
    return 0 if content is not None else _STREAM_BYTES


def _check_unchanged(is_same: bool, *, name: str) -> None:  # noqa: FBT001 a condition
    if not is_same:
        raise UnreadableFileError(f"{name} was replaced while it was merged")
