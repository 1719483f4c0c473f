"""Merging keeps every row in its place, whatever the schema and however the files were written."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.merging.parquet_files import (
    METHODS,
    concatenated,
    file_tables,
    merged,
    plain,
    write_options,
    written,
)


@pytest.mark.parametrize("method", METHODS)
@given(tables=file_tables(), options=write_options(), limits=st.sampled_from([(5, 1), (1_000_000, 10**9)]))
def test_a_merged_file_has_the_rows_of_its_inputs_in_order_and_their_schema(
    method: str, tables: list[pa.Table], options: dict[str, Any], limits: tuple[int, int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = written(Path(folder), tables, **options)
        rows, copy_bytes = limits
        found, result = merged(
            Path(folder), names, method=method, row_group_rows=rows, copy_row_group_bytes=copy_bytes, workers=2
        )
        expected = concatenated(Path(folder), names)
        schema = pq.ParquetFile(Path(folder, "merged.parquet")).schema
        first = pq.ParquetFile(Path(folder, names[0])).schema
    assert plain(found).equals(plain(expected))
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert schema.equals(first)
    assert result.rows == len(expected)


@given(tables=file_tables(), options=write_options(), floor=st.sampled_from([1, 200, 500, 10**9]))
def test_copied_and_encoded_row_groups_stand_in_one_file_in_order(
    tables: list[pa.Table], options: dict[str, Any], floor: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = written(Path(folder), tables, **options)
        found, _ = merged(Path(folder), names, copy_row_group_bytes=floor, workers=2)
        expected = concatenated(Path(folder), names)
    assert plain(found).equals(plain(expected))


@given(tables=file_tables(), options=write_options())
def test_merging_a_merged_file_changes_no_row(tables: list[pa.Table], options: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = written(Path(folder), tables, **options)
        once, _ = merged(Path(folder), names)
        Path(folder, "merged.parquet").rename(Path(folder, "once.parquet"))
        twice, _ = merged(Path(folder), ["once.parquet"])
    assert plain(twice).equals(plain(once))
