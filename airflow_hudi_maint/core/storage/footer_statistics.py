"""What the statistics in the footers of data files say: rows, nulls by column, types, ranges of values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.model.file_facts import Bound, FileFacts
from airflow_hudi_maint.core.storage.footers import avro_type_name, read_footer

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

    from airflow_hudi_maint.core.storage.filesystem import Storage

_INSTANT = "timestamp-micros"


def file_facts(storage: Storage, *, path: str, ranged: Collection[str] = ()) -> FileFacts:
    """Read one footer; ``ranged`` are the columns whose least and greatest values are wanted.

    Raises FileNotFoundError, StorageError, or CorruptTableError for a file that is no Parquet.
    """
    footer = read_footer(storage, path=path)
    leaves = {
        footer.schema.column(number).path: number
        for number in range(len(footer.schema))
        if footer.schema.column(number).max_repetition_level == 0
    }
    ranges = {name: _range(footer, leaves[name]) for name in ranged if name in leaves}
    return FileFacts(
        path=path,
        rows=footer.num_rows,
        null_counts={name: _null_count(footer, number) for name, number in leaves.items()},
        types={field.name: _type_name(field.type) for field in footer.schema.to_arrow_schema()},
        ranges={name: found for name, found in ranges.items() if isinstance(found, tuple)},
        unranged=frozenset(name for name, found in ranges.items() if found is False),
    )


def facts_of(storage: Storage, *, paths: Sequence[str], ranged: Collection[str] = ()) -> tuple[FileFacts | None, ...]:
    """:func:`file_facts` of several files, in the storage's threads and in order; None for one that is not there."""

    def read(path: str) -> FileFacts | None:
        try:
            return file_facts(storage, path=path, ranged=ranged)
        except FileNotFoundError:
            return None

    return storage.concurrently(read, paths)


def _null_count(footer: FileMetaData, number: int) -> int | None:
    total = 0
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(number).statistics
        if statistics is None or not statistics.has_null_count:
            return None
        total += statistics.null_count
    return total


def _range(footer: FileMetaData, number: int) -> tuple[Bound, Bound] | bool:
    """The least and greatest value; True when there is no value at all, False when statistics are missing."""
    least: list[Any] = []
    greatest: list[Any] = []
    for group in range(footer.num_row_groups):
        column = footer.row_group(group).column(number)
        statistics = column.statistics
        if statistics is not None and statistics.has_min_max:
            try:
                least.append(statistics.min)
                greatest.append(statistics.max)
            except (ValueError, OverflowError):  # Spark takes days after the year 9999, and texts that are no UTF-8
                return False
        elif not _is_empty(column, rows=footer.row_group(group).num_rows):
            return False
    return (min(least), max(greatest)) if least else True


def _is_empty(column: Any, *, rows: int) -> bool:  # noqa: ANN401 pyarrow has no types
    statistics = column.statistics
    return not rows or (statistics is not None and statistics.has_null_count and statistics.null_count == rows)


def _type_name(kind: Any) -> str:  # noqa: ANN401 pyarrow has no types
    """The type in Avro's words, nested ones with their fields: what two writers of one table agree on."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        fields = (kind.field(number) for number in range(kind.num_fields))
        return f"record<{','.join(f'{field.name}:{_type_name(field.type)}' for field in fields)}>"
    if pa.types.is_map(kind):
        return f"map<{_type_name(kind.key_type)},{_type_name(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{_type_name(kind.value_type)}>"
    if pa.types.is_timestamp(kind) and kind.unit == "ns" and not kind.tz:
        return _INSTANT  # INT96, the older form of Spark's timestamps
    return avro_type_name(kind)
