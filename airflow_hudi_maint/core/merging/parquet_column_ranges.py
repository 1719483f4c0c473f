"""Null counts, minima and maxima of column chunks that become one, as their footers tell them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

from airflow_hudi_maint.core.merging.parquet_types import BYTE_ARRAY, DOUBLE, FLOAT, INT32, INT64
from airflow_hudi_maint.core.merging.thrift_compact import BINARY, I64, Struct

_FORMATS = {INT32: "<i", INT64: "<q", FLOAT: "<f", DOUBLE: "<d"}


class ChunkRange(NamedTuple):
    """What one chunk tells; no least and greatest where it has no values, or does not tell them."""

    nulls: int
    least: Any
    greatest: Any


@dataclass(slots=True)
class JoinedRange:
    """The range of all chunks so far."""

    nulls: int = 0
    least: Any = None
    greatest: Any = None
    is_known: bool = True

    @staticmethod
    def unknown(nulls: int) -> ChunkRange:
        """The range of a chunk that tells none."""
        return ChunkRange(nulls, None, None)

    def add(self, told: ChunkRange, *, rows: int) -> None:
        """Add a chunk of so many rows."""
        self.nulls += told.nulls
        if told.least is None:
            self.is_known = self.is_known and told.nulls == rows
            return
        self.least = told.least if self.least is None else min(self.least, told.least)
        self.greatest = told.greatest if self.greatest is None else max(self.greatest, told.greatest)

    def statistics(self, physical_type: int) -> Struct:
        """The Statistics of the joined chunk; numbers also by the older fields, whose order is the same for them."""
        found: Struct = {3: (I64, self.nulls)}
        if not self.is_known or self.least is None:
            return found
        least, greatest = self.least, self.greatest
        if physical_type in (FLOAT, DOUBLE):  # the format asks for these: the two zeros are equal, and either may occur
            least, greatest = (-0.0 if least == 0 else least), (0.0 if greatest == 0 else greatest)
        least, greatest = (_stored(one, physical_type) for one in (least, greatest))
        if physical_type != BYTE_ARRAY:
            found[1], found[2] = (BINARY, greatest), (BINARY, least)
        found[5], found[6] = (BINARY, greatest), (BINARY, least)
        return dict(sorted(found.items()))


def range_of(chunk: Any, *, is_wanted: bool) -> ChunkRange | None:  # noqa: ANN401 pyarrow has no types
    """What a chunk tells of its values; None where it does not tell enough, so that they have to be looked at."""
    told = chunk.statistics
    if told is None or not told.has_null_count:
        return None
    if not is_wanted or told.null_count == chunk.num_values:
        return ChunkRange(told.null_count, None, None)
    shortened = (getattr(told, "is_min_value_exact", None), getattr(told, "is_max_value_exact", None))
    if not told.has_min_max or False in shortened:
        return None
    least, greatest = _value(told.min_raw), _value(told.max_raw)
    # Some writers tell NaN, which readers pass over: nobody knows the range of the chunk then.
    return ChunkRange(told.null_count, least, greatest) if least <= greatest else None


def _value(raw: Any) -> Any:  # noqa: ANN401 a number or bytes
    return raw.encode() if isinstance(raw, str) else raw


def _stored(value: Any, physical_type: int) -> bytes:  # noqa: ANN401 a number or bytes
    if physical_type == BYTE_ARRAY:
        return bytes(value)
    return struct.pack(_FORMATS[physical_type], value)
