"""What a merge has to know of its inputs before it writes: read from their footers, one after the other.

Only the first few megabytes of footers are kept: a thousand files of ten thousand columns have a gigabyte of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from airflow_hudi_maint.core.errors import UnreadableFileError
from airflow_hudi_maint.core.merging.parquet_column_settings import ColumnSettings, settings_of
from airflow_hudi_maint.core.merging.parquet_footer import (
    COLUMN_ORDERS,
    SCHEMA,
    SORTING_COLUMNS,
    VERSION,
    FooterBytes,
    file_metadata,
    is_encrypted,
    number,
    parse_footer,
    read_footer,
    row_groups,
    schema_prefix,
)
from airflow_hudi_maint.core.merging.parquet_key_values import KeyValueMerge
from airflow_hudi_maint.core.merging.parquet_types import schema_tree
from airflow_hudi_maint.core.merging.schemas import NamedSchema
from airflow_hudi_maint.core.merging.thrift_compact import Struct
from airflow_hudi_maint.core.storage.filesystem import Storage

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

_FOOTERS_AT_ONCE = 64
_KEPT_FOOTER_BYTES = 4 * 1024 * 1024
"""As pyarrow sees them they take several times as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupSize:
    """The rows of a row group, and its bytes before compression."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFooter:
    """A footer, and how pyarrow sees it."""

    data: bytes
    metadata: FileMetaData


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file that will be merged. ``schema`` is the place of its schema among the distinct ones.

    ``footer`` is None where it has to be read again.
    """

    path: str
    schema: int
    file_bytes: int
    groups: tuple[RowGroupSize, ...]
    footer: KeptFooter | None = None

    @property
    def rows(self) -> int:
        """All its rows."""
        return sum(group.rows for group in self.groups)


@dataclass(slots=True, kw_only=True)
class DistinctSchema:
    """A schema that some files have: its first bytes in a footer, and how the first file with rows was written.

    ``column_orders`` is the footer's own list, None where the writer gave none; ``is_sorted`` says that row groups
    claim an order of their rows.
    """

    named: NamedSchema
    prefix: bytes
    version: int
    column_orders: tuple[int, list[Struct]] | None
    columns: tuple[ColumnSettings, ...] | None = None
    is_sorted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """All that was found, in the order of the inputs; ``skipped`` are those that are left out, with the reasons."""

    files: tuple[InputFile, ...]
    schemas: tuple[DistinctSchema, ...]
    key_values: KeyValueMerge
    created_by: tuple[bytes, ...]
    skipped: tuple[tuple[str, str], ...]

    @property
    def rows(self) -> int:
        """The rows that the merged file has to have."""
        return sum(file.rows for file in self.files)


def survey_inputs(
    storage: Storage, *, inputs: Sequence[str], on_unreadable: Literal["fail", "skip"], without: Sequence[str] = ()
) -> Survey:
    """Read the footers of all inputs but those in ``without``.

    Raises UnreadableFileError for the first file that is none of Parquet, unless such are skipped.
    """
    surveyor = _Surveyor(storage)
    skipped: list[tuple[str, str]] = []
    for path, footer in _footers(storage, paths=[path for path in inputs if path not in set(without)]):
        try:
            surveyor.add(path, footer())
        except UnreadableFileError as error:
            if on_unreadable == "fail":
                raise UnreadableFileError(
                    f"{error}. Nothing was written; take the file away, or set on_unreadable='skip'"
                ) from error
            skipped.append((path, str(error)))
    return surveyor.survey(tuple(skipped))


def _footers(storage: Storage, *, paths: Sequence[str]) -> Iterator[tuple[str, Callable[[], FooterBytes]]]:
    """Each footer as a call, so that an unreadable file fails where it is looked at."""

    def fetched(path: str) -> Callable[[], FooterBytes]:
        try:
            footer = read_footer(storage, path=path)
        except UnreadableFileError as error:
            return _raising(error)
        return lambda: footer

    if storage.is_local:
        yield from ((path, fetched(path)) for path in paths)
        return
    for start in range(0, len(paths), _FOOTERS_AT_ONCE):
        some = paths[start : start + _FOOTERS_AT_ONCE]
        yield from zip(some, storage.concurrently(fetched, some), strict=True)


def _raising(error: UnreadableFileError) -> Callable[[], FooterBytes]:
    def fail() -> FooterBytes:
        raise error

    return fail


class _Surveyor:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._files: list[InputFile] = []
        self._schemas: list[DistinctSchema] = []
        self._key_values = KeyValueMerge()
        self._created_by: dict[bytes, None] = {}
        self._footer_bytes = 0

    def survey(self, skipped: tuple[tuple[str, str], ...]) -> Survey:
        return Survey(
            files=tuple(self._files),
            schemas=tuple(self._schemas),
            key_values=self._key_values,
            created_by=tuple(self._created_by),
            skipped=skipped,
        )

    def add(self, path: str, footer: FooterBytes) -> None:
        import pyarrow as pa

        name = self._storage.join(path)
        try:
            metadata = file_metadata(footer.data)
            groups = tuple(
                RowGroupSize(rows=group.num_rows, bytes=group.total_byte_size)
                for group in map(metadata.row_group, range(metadata.num_row_groups))
            )
            key_values = metadata.metadata or {}
            created_by = str(metadata.created_by or "").encode()
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise UnreadableFileError(f"{name} has a Parquet footer that cannot be understood: {error}") from error
        schema = self._schema(footer.data, name=name, has_rows=any(group.rows for group in groups))
        self._footer_bytes += len(footer.data)
        kept = KeptFooter(data=footer.data, metadata=metadata) if self._footer_bytes <= _KEPT_FOOTER_BYTES else None
        self._files.append(
            InputFile(path=path, schema=schema, file_bytes=footer.file_bytes, groups=groups, footer=kept)
        )
        self._key_values.add(key_values, file=name)
        self._created_by[created_by] = None

    def _schema(self, data: bytes, *, name: str, has_rows: bool) -> int:
        for place, known in enumerate(self._schemas):
            if data.startswith(known.prefix):
                if known.columns is None and has_rows:
                    known.columns = settings_of(parse_footer(data, name=name), name=name)
                return place
        prefix, _ = schema_prefix(data, name=name)
        footer = parse_footer(data, name=name)
        if is_encrypted(footer):
            raise UnreadableFileError(f"{name} has encrypted columns; those are not merged")
        root = schema_tree(footer[SCHEMA][1][1], name=name)
        self._schemas.append(
            DistinctSchema(
                named=NamedSchema(file=name, root=root),
                prefix=prefix,
                version=number(footer, VERSION, 2),
                column_orders=footer[COLUMN_ORDERS][1] if COLUMN_ORDERS in footer else None,
                columns=settings_of(footer, name=name) if has_rows else None,
                is_sorted=any(SORTING_COLUMNS in group for group in row_groups(footer)),
            )
        )
        return len(self._schemas) - 1
