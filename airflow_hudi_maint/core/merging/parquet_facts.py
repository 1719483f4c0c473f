"""What the footers of Parquet files say of their rows, to check a merged file against its inputs.

No value is read. A column is called by its name, or, where it is a group, by that and the place of the leaf in it
(``tags[0]``): the names inside of lists differ between writers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import UnreadableFileError
from airflow_hudi_maint.core.merging.parquet_footer import file_metadata, read_footer
from airflow_hudi_maint.core.storage.filesystem import Storage

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

_NUMBERS = frozenset(("INT32", "INT64", "FLOAT", "DOUBLE", "BOOLEAN"))
_BYTES = frozenset(("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"))
_ORDERED_AS_BYTES = frozenset(("STRING", "ENUM", "JSON", "BSON", "UUID", "NONE"))
_UNSIGNED_BITS = {"INT32": 32, "INT64": 64}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """A leaf column over all row groups.

    ``values`` counts nulls and empty lists, too. ``null_count`` is None where a row group does not tell it, and for
    what is repeated, where writers count differently. ``least`` and ``greatest`` are None where a row group with values
    does not tell both: numbers, or bytes in the order of bytes; decimals as their unscaled numbers.
    """

    values: int
    null_count: int | None
    least: Any = None
    greatest: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFacts:
    """The rows of a file, and its leaf columns."""

    rows: int
    columns: Mapping[str, ColumnFacts]


def parquet_facts(storage: Storage, path: str) -> ParquetFacts:
    """Read the footer of a file. Raises UnreadableFileError where it is none of Parquet."""
    import pyarrow as pa

    footer = read_footer(storage, path=path)
    try:
        metadata = file_metadata(footer.data)
        return ParquetFacts(
            rows=metadata.num_rows,
            columns={name: _column(metadata, place) for place, name in enumerate(_leaf_names(metadata))},
        )
    except (pa.ArrowException, OSError) as error:
        msg = f"{storage.join(path)} has a Parquet footer that cannot be understood: {error}"
        raise UnreadableFileError(msg) from error


def _joined(one: ColumnFacts, other: ColumnFacts) -> ColumnFacts:
    nulls = None if one.null_count is None or other.null_count is None else one.null_count + other.null_count
    values = one.values + other.values
    ranges = [each for each in (one, other) if each.null_count is None or each.null_count < each.values]
    if any(each.least is None for each in ranges) or not ranges:
        return ColumnFacts(values=values, null_count=nulls)
    return ColumnFacts(
        values=values,
        null_count=nulls,
        least=min(each.least for each in ranges),
        greatest=max(each.greatest for each in ranges),
    )


def _leaf_names(metadata: FileMetaData) -> list[str]:
    schema = metadata.schema
    names: list[str] = []
    tops = [schema.column(place) for place in range(len(schema))]
    within: dict[str, int] = {}
    for column in tops:
        top = column.path.split(".")[0]
        is_flat = column.path == column.name and not column.max_repetition_level
        if is_flat:
            names.append(column.name)
            continue
        names.append(f"{top}[{within.get(top, 0)}]")
        within[top] = within.get(top, 0) + 1
    return names


def _column(metadata: FileMetaData, place: int) -> ColumnFacts:
    facts = ColumnFacts(values=0, null_count=0)
    described = metadata.schema.column(place)
    for number in range(metadata.num_row_groups):
        chunk = metadata.row_group(number).column(place)
        facts = _joined(facts, _chunk(chunk, described))
    return facts


def _chunk(chunk: Any, described: Any) -> ColumnFacts:  # noqa: ANN401 pyarrow has no types
    statistics = chunk.statistics
    if statistics is None:
        return ColumnFacts(values=chunk.num_values, null_count=None)
    is_counted = statistics.has_null_count and not described.max_repetition_level
    least = greatest = None
    if statistics.has_min_max:
        least = _value(statistics.min_raw, described)
        greatest = _value(statistics.max_raw, described)
    if least is None or greatest is None or least != least or greatest != greatest:  # noqa: PLR0124 not a number
        least = greatest = None
    return ColumnFacts(
        values=chunk.num_values,
        null_count=statistics.null_count if is_counted else None,
        least=least,
        greatest=greatest,
    )


def _value(raw: Any, described: Any) -> Any:  # noqa: ANN401 a value of any type
    """A stored value so that Python orders it as its type does; None where it cannot."""
    physical, meaning = described.physical_type, described.logical_type.type
    if physical in _UNSIGNED_BITS and meaning == "INT" and "false" in str(described.logical_type).lower():
        return raw % (1 << _UNSIGNED_BITS[physical])
    if physical in _NUMBERS:
        return raw
    if physical in _BYTES:
        data = raw.encode() if isinstance(raw, str) else bytes(raw)
        if meaning == "DECIMAL":
            return int.from_bytes(data, "big", signed=True)
        return data if meaning in _ORDERED_AS_BYTES else None
    return None
