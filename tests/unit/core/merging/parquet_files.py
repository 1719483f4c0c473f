"""Parquet files for the tests of merging, and what merging them has to give."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from airflow_hudi_maint.core.merging.parquet import MergedParquet, ParquetMergeSettings, merge_parquet
from airflow_hudi_maint.core.storage.filesystem import Storage

METHODS = ("chunk copy", "re-encode")


def written(folder: Path, tables: Sequence[pa.Table], **options: Any) -> list[str]:
    """Write each table as a file and return the names, in order."""
    names = [f"part-{number:04}.parquet" for number in range(len(tables))]
    for name, table in zip(names, tables, strict=True):
        pq.write_table(table, folder / name, **options)
    return names


def merged(folder: Path, names: Sequence[str], **settings: Any) -> tuple[pa.Table, MergedParquet]:
    """Merge files and read what came out, by pyarrow."""
    output = folder / "merged.parquet"
    output.unlink(missing_ok=True)
    with Storage.open(str(folder)) as storage:
        result = merge_parquet(
            storage, inputs=names, output="merged.parquet", settings=ParquetMergeSettings(**settings)
        )
    assert result.bytes == output.stat().st_size
    assert result.row_groups == pq.ParquetFile(output).num_row_groups
    return pq.ParquetFile(output).read(), result


def concatenated(folder: Path, names: Sequence[str]) -> pa.Table:
    """All rows of files, in order, as pyarrow reads them one by one."""
    return pa.concat_tables([pq.ParquetFile(folder / name).read() for name in names])


def plain(table: pa.Table) -> pa.Table:
    """The values themselves: Arrow holds equal texts for different where their dictionaries differ."""
    schema = pa.schema(
        [
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in table.schema
        ]
    )
    return table.cast(schema)


_TEXTS = st.text(max_size=6)
_TYPES: Mapping[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint16(): st.integers(0, 2**16 - 1),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): _TEXTS,
    pa.large_string(): _TEXTS,
    pa.binary(): st.binary(max_size=6),
    pa.binary(4): st.binary(min_size=4, max_size=4),
    pa.date32(): st.dates(),
    pa.time64("us"): st.times(),
    pa.timestamp("ms"): st.datetimes().map(lambda one: one.replace(microsecond=one.microsecond // 1000 * 1000)),
    pa.timestamp("us", "Europe/Berlin"): st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2090, 1, 1)).map(  # noqa: DTZ001
        lambda one: one.replace(tzinfo=dt.UTC)
    ),
    pa.decimal128(7, 2): st.integers(-(10**7) + 1, 10**7 - 1).map(lambda one: Decimal(one).scaleb(-2)),
    pa.decimal128(30, 5): st.integers(-(10**25), 10**25).map(lambda one: Decimal(one).scaleb(-5)),
    pa.dictionary(pa.int32(), pa.string()): st.sampled_from(["red", "green", "blue"]),
    pa.list_(pa.int32()): st.lists(st.none() | st.integers(0, 9), max_size=3),
    pa.list_(pa.list_(pa.string())): st.lists(st.none() | st.lists(_TEXTS, max_size=2), max_size=2),
    pa.map_(pa.string(), pa.int64()): st.dictionaries(_TEXTS, st.none() | st.integers(0, 9), max_size=2).map(
        lambda one: [*one.items()]
    ),
    pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]): st.fixed_dictionaries(
        {"a": st.none() | st.integers(0, 9), "b": st.none() | st.lists(st.none() | _TEXTS, max_size=2)}
    ),
}


@st.composite
def file_tables(draw: st.DrawFn) -> list[pa.Table]:
    """Tables of one schema of one to five columns of any type, up to 30 rows each, some without rows."""
    types = draw(st.lists(st.sampled_from([*_TYPES]), min_size=1, max_size=5))
    nullable = [draw(st.booleans()) for _ in types]
    schema = pa.schema(
        [
            pa.field(f"column {place}", kind, null)
            for place, (kind, null) in enumerate(zip(types, nullable, strict=True))
        ]
    )
    tables = []
    for _ in range(draw(st.integers(1, 4))):
        rows = draw(st.integers(0, 30))
        columns = [
            pa.array(
                draw(st.lists((st.none() | _TYPES[kind]) if null else _TYPES[kind], min_size=rows, max_size=rows)), kind
            )
            for kind, null in zip(types, nullable, strict=True)
        ]
        tables.append(pa.Table.from_arrays(columns, schema=schema))
    return tables


@st.composite
def write_options(draw: st.DrawFn) -> dict[str, Any]:
    """Ways in which a file may have been written."""
    return {
        "row_group_size": draw(st.sampled_from([1, 7, 1000])),
        "compression": draw(st.sampled_from(["none", "snappy", "gzip", "zstd", "lz4", "brotli"])),
        "use_dictionary": draw(st.booleans()),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "write_statistics": draw(st.booleans()),
        "write_page_index": draw(st.booleans()),
        "store_schema": draw(st.booleans()),
        "use_compliant_nested_type": draw(st.booleans()),
        "version": draw(st.sampled_from(["1.0", "2.6"])),
        "data_page_size": draw(st.sampled_from([16, 1024 * 1024])),
    }
