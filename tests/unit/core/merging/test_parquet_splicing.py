"""Columns that are joined by their pages: the merged file is the one that encoding all values again gives."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_hudi_maint.core.errors import UnreadableFileError
from airflow_hudi_maint.core.merging import parquet_shortcuts
from airflow_hudi_maint.core.merging.parquet_footer import (
    META_DATA,
    STATISTICS,
    chunks,
    framed,
    parse_footer,
    read_footer,
    row_groups,
)
from airflow_hudi_maint.core.merging.parquet_pages import PageReader, PageRules
from airflow_hudi_maint.core.merging.parquet_splicing import Splice
from airflow_hudi_maint.core.merging.thrift_compact import BINARY, struct_bytes
from airflow_hudi_maint.core.storage.filesystem import Storage
from tests.unit.core.merging.parquet_files import concatenated, merged, written

ROWS = 4000
FILES = 6
KIND = pa.array(["a", "b"] * (ROWS // 2))


def files_of(column: Callable[[int], pa.Array], *, nullable: bool = True) -> list[pa.Table]:
    """Files of a column and of one that hardly has values."""
    columns = [column(number) for number in range(FILES)]
    schema = pa.schema([pa.field("key", columns[0].type, nullable=nullable), pa.field("kind", pa.string())])
    return [pa.table([one, KIND], schema=schema) for one in columns]


def merged_by_pages(folder: Path, names: Sequence[str], *, columns: int) -> pa.Table:
    """Merge, where so many columns have to be joined by their pages; 0 for none."""
    seen: list[int] = []
    encoded = Splice.encoded

    def spied(splice: Splice, tables: Any) -> Any:
        found = encoded(splice, tables)
        seen.append(len(splice.columns))
        return found

    with patch.object(Splice, "encoded", spied):
        table, result = merged(folder, names, method="re-encode")
    assert result.method == "re-encode"
    assert [one for one in seen if one] == ([columns] if columns else [])
    return table


COLUMNS: dict[str, Callable[[int], pa.Array]] = {
    "int64": lambda number: pa.array(range(number * ROWS, (number + 1) * ROWS)),
    "int32": lambda number: pa.array(range(-number * ROWS, ROWS - number * ROWS), pa.int32()),
    "double": lambda number: pa.array([math.sin(number * ROWS + one) * 1e9 for one in range(ROWS)]),
    "float": lambda number: pa.array([float(number * ROWS + one) for one in range(ROWS)], pa.float32()),
    "timestamp": lambda number: pa.array(range(number * ROWS, (number + 1) * ROWS), pa.timestamp("us", "UTC")),
    "text": lambda number: pa.array([f"{number:04}-{one * 7919 % ROWS:06}" for one in range(ROWS)]),
    "binary": lambda number: pa.array([(number * ROWS + one).to_bytes(9, "little") for one in range(ROWS)]),
}


@pytest.mark.parametrize("codec", ["none", "snappy"])
@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_whose_values_come_once_are_joined_by_their_pages(
    tmp_path: Path, kind: str, codec: str, *, use_dictionary: bool, nullable: bool
) -> None:
    tables = files_of(COLUMNS[kind], nullable=nullable)
    names = written(tmp_path, tables, compression=codec, use_dictionary=use_dictionary)
    assert merged_by_pages(tmp_path, names, columns=1) == concatenated(tmp_path, names)
    chunk = pq.read_metadata(tmp_path / "merged.parquet").row_group(0).column(0)
    whole = pa.chunked_array([one.column("key").chunk(0) for one in tables])
    range_ = pc.min_max(whole).as_py()
    told = chunk.statistics
    found = (told.min, told.max, told.null_count)
    if kind != "binary":
        assert found == (range_["min"], range_["max"], 0)
    assert chunk.num_values == FILES * ROWS


def test_a_file_that_does_not_fit_is_encoded_between_the_pages_of_the_others(tmp_path: Path) -> None:
    def column(number: int) -> pa.Array:
        values: list[int | None] = [number * ROWS + one for one in range(ROWS)]
        if number == 1:
            values[7] = values[9]
        if number == 2:
            values[11] = None
        return pa.array(values)

    names = written(tmp_path, files_of(column))
    pq.write_table(pq.read_table(tmp_path / names[4]), tmp_path / names[4], compression="zstd")
    assert merged_by_pages(tmp_path, names, columns=1) == concatenated(tmp_path, names)
    told = pq.read_metadata(tmp_path / "merged.parquet").row_group(0).column(0).statistics
    assert (told.min, told.max, told.null_count) == (0, FILES * ROWS - 1, 1)


def test_not_a_number_and_both_zeros_leave_a_range_that_holds(tmp_path: Path) -> None:
    def column(number: int) -> pa.Array:
        start = [math.nan, -0.0] if number == 1 else [math.nan, 0.0]
        return pa.array([*start, *(float(number * ROWS + one) for one in range(2, ROWS))])

    names = written(tmp_path, files_of(column))
    table = merged_by_pages(tmp_path, names, columns=1)
    assert table.column("key").cast(pa.float64()).to_pylist().__repr__() == (
        concatenated(tmp_path, names).column("key").to_pylist().__repr__()
    )
    told = pq.read_metadata(tmp_path / "merged.parquet").row_group(0).column(0).statistics
    assert (math.copysign(1, told.min), told.min, told.max) == (-1, 0.0, FILES * ROWS - 1.0)


def with_range(path: Path, *, least: float, greatest: float) -> None:
    """Have a file's footer tell another range of its first column."""
    data = path.read_bytes()
    told = read_footer(Storage.open(str(path.parent)), path=path.name)
    footer = parse_footer(told.data, name=path.name)
    found = chunks(row_groups(footer)[0])[0][META_DATA][1][STATISTICS][1]
    for fields, value in (((2, 6), least), ((1, 5), greatest)):
        found.update({field: (BINARY, struct.pack("<d", value)) for field in fields})
    path.write_bytes(data[: told.starts_at] + framed(struct_bytes(footer)))


@pytest.mark.parametrize("range_", [(math.nan, math.nan), (0.0, math.nan), (math.nan, 0.0), (9.0, -9.0)], ids=str)
def test_a_range_that_is_none_is_not_joined_but_looked_for_among_the_values(
    tmp_path: Path, range_: tuple[float, float]
) -> None:
    """Older writers told NaN. It is neither less nor greater than any other, so that it would hide a whole file."""

    def column(number: int) -> pa.Array:
        values = [number * 1e6 + one for one in range(ROWS)]
        return pa.array([-1e9, 1e9, *values[2:]] if number == 1 else values)

    names = written(tmp_path, files_of(column))
    with_range(tmp_path / names[1], least=range_[0], greatest=range_[1])
    assert merged_by_pages(tmp_path, names, columns=1) == concatenated(tmp_path, names)
    told = pq.read_metadata(tmp_path / "merged.parquet").row_group(0).column(0).statistics
    assert (told.min, told.max) == (-1e9, 1e9)


def test_a_zero_at_the_end_of_a_range_has_the_sign_that_leaves_room_for_the_other(tmp_path: Path) -> None:
    """Some writers tell the zero that they met first: the other one, in another file, would lie outside."""
    names = written(tmp_path, files_of(lambda number: pa.array([number * 1e6 + one for one in range(ROWS)])))
    with_range(tmp_path / names[0], least=0.0, greatest=ROWS - 1.0)
    merged_by_pages(tmp_path, names, columns=1)
    told = pq.read_metadata(tmp_path / "merged.parquet").row_group(0).column(0).statistics
    assert (told.min, math.copysign(1, told.min)) == (0.0, -1)


@pytest.mark.parametrize(
    ("why", "column"),
    [
        ("the same values in each file", lambda _: pa.array(range(ROWS))),
        ("few values", lambda number: pa.array([one % 50 for one in range(number, ROWS + number)])),
        ("texts of several lengths", lambda number: pa.array([f"{number * ROWS + one}" for one in range(ROWS)])),
        ("unsigned", lambda number: pa.array(range(number * ROWS, (number + 1) * ROWS), pa.uint64())),
    ],
)
def test_other_columns_are_encoded_again(tmp_path: Path, why: str, column: Callable[[int], pa.Array]) -> None:
    names = written(tmp_path, files_of(column))
    assert merged_by_pages(tmp_path, names, columns=0) == concatenated(tmp_path, names), why


@pytest.mark.parametrize("options", [{"write_page_index": True}, {"data_page_version": "2.0"}, {"compression": "zstd"}])
def test_page_indexes_other_page_versions_and_other_codecs_have_their_values_encoded(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    names = written(tmp_path, files_of(COLUMNS["int64"]), **options)
    assert merged_by_pages(tmp_path, names, columns=0) == concatenated(tmp_path, names)


def test_a_file_whose_only_columns_hardly_repeat_keeps_one_to_count_rows_by(tmp_path: Path) -> None:
    tables = [one.select(["key"]).append_column("more", one.column("key")) for one in files_of(COLUMNS["text"])]
    names = written(tmp_path, tables)
    assert merged_by_pages(tmp_path, names, columns=1) == concatenated(tmp_path, names)


@pytest.mark.parametrize("at", [5, 200, 3000])
def test_a_damaged_page_is_found_although_its_values_are_not_decoded(tmp_path: Path, at: int) -> None:
    names = written(tmp_path, files_of(COLUMNS["int64"]))
    path = tmp_path / names[2]
    data = bytearray(path.read_bytes())
    data[at : at + 40] = b"\xff" * 40
    path.write_bytes(data)
    with pytest.raises(UnreadableFileError, match=names[2]):
        merged(tmp_path, names, method="re-encode")


@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, 20_000), value=st.integers(0, 255))
def test_any_one_byte_that_is_damaged_gives_the_same_as_decoding_it(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    names = written(folder, files_of(COLUMNS["text"]))
    path = folder / names[1]
    data = bytearray(path.read_bytes())
    data[at % len(data)] = value
    path.write_bytes(data)
    with patch.object(parquet_shortcuts, "_FEWEST_GROUPS", 1_000):
        decoded = _outcome(folder, names)
    assert _outcome(folder, names) == decoded


def _outcome(folder: Path, names: Sequence[str]) -> pa.Table | str:
    try:
        return merged(folder, names, method="re-encode")[0]
    except (UnreadableFileError, pa.ArrowException, OSError) as error:
        return type(error).__name__


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=400), optional=st.booleans(), codec=st.sampled_from(["none", "snappy"]))
def test_bytes_that_are_no_pages_are_told_apart_and_never_raise(data: bytes, *, optional: bool, codec: str) -> None:
    rules = PageRules(physical_type=2, is_optional=optional, codec=codec)
    assert PageReader(rules).plain_pages(data, start=0, end=len(data), rows=10, nulls=0) is None
