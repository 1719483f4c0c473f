"""What only texts in footers tell of columns is true of all rows of a merged file, or the files are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_hudi_maint.core.errors import SchemaConflictError
from airflow_hudi_maint.core.merging.orc import unified_schema
from airflow_hudi_maint.core.merging.parquet import merge_parquet
from airflow_hudi_maint.core.storage.filesystem import Storage


def _merged(folder: Path, *columns: pa.Array, **options: Any) -> pa.Table:
    names = [f"{number}.parquet" for number in range(len(columns))]
    for name, column in zip(names, columns, strict=True):
        pq.write_table(pa.table({"a": column}), folder / name, **options)
    merge_parquet(Storage.open(str(folder)), inputs=names, output="out.staged")
    return pq.ParquetFile(folder / "out.staged").read()


_CONFLICTS = {
    "durations of two units": (pa.array([1], pa.duration("us")), pa.array([1], pa.duration("s"))),
    "a duration and a number": (pa.array([1], pa.duration("us")), pa.array([1], pa.int64())),
    "a number and a duration": (pa.array([1], pa.int64()), pa.array([1], pa.duration("us"))),
    "lists of two sizes": (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), pa.array([[1]], pa.list_(pa.int64(), 1))),
    "a list of a fixed size and any": (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), pa.array([[1]])),
    "durations within": (
        pa.array([{"x": 1}], pa.struct([("x", pa.duration("us"))])),
        pa.array([{"x": 1}], pa.struct([("x", pa.duration("ms"))])),
    ),
}


@pytest.mark.parametrize("case", _CONFLICTS)
def test_types_that_parquet_stores_alike_are_not_taken_for_one(tmp_path: Path, case: str) -> None:
    """A second would become a microsecond, and a file with lists of a wrong size is read by nobody."""
    with pytest.raises(SchemaConflictError, match="Parquet stores both alike"):
        _merged(tmp_path, *_CONFLICTS[case])
    assert not (tmp_path / "out.staged").exists() or not (tmp_path / "out.staged").stat().st_size


def test_a_duration_beside_a_file_without_arrows_schema_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.duration("us"))}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet", store_schema=False)
    with pytest.raises(SchemaConflictError, match=r"not said to be so in .*1\.parquet"):
        merge_parquet(Storage.open(str(tmp_path)), inputs=["0.parquet", "1.parquet"], output="out.staged")


def test_equal_durations_and_sizes_stay(tmp_path: Path) -> None:
    column = pa.array([[1, 2]], pa.list_(pa.duration("s"), 2))
    assert _merged(tmp_path, column, column).column("a").to_pylist() == column.to_pylist() * 2


@pytest.mark.parametrize("shape", ["flat", "in a list"])
def test_a_dictionary_has_room_for_the_values_of_all_files(tmp_path: Path, shape: str) -> None:
    """Each file's hundred values fit into eight bits, and those of four do not: Arrow could read none of them."""
    columns: list[pa.Array] = []
    for file in range(4):
        words = [f"{file}-{number}" for number in range(100)]
        column = pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), words)
        columns.append(pa.ListArray.from_arrays(list(range(101)), column) if shape == "in a list" else column)
    merged = _merged(tmp_path, *columns).column("a")

    assert merged.to_pylist() == [value for column in columns for value in column.to_pylist()]


def test_texts_lists_and_dictionaries_of_other_widths_are_the_same(tmp_path: Path) -> None:
    found = _merged(tmp_path, pa.array(["x"]).dictionary_encode(), pa.array(["y"], pa.large_string()), pa.array(["z"]))
    assert found.column("a").to_pylist() == ["x", "y", "z"]


def test_names_that_differ_by_case_alone_are_refused(tmp_path: Path) -> None:
    """Spark reads each of the files, and would not read one with both."""
    for name, column in (("0.parquet", "id"), ("1.parquet", "ID")):
        pq.write_table(pa.table({column: [1]}), tmp_path / name)
    with pytest.raises(SchemaConflictError, match=r"'id' of .*0.parquet and column 'ID' of .*1.parquet differ by case"):
        merge_parquet(Storage.open(str(tmp_path)), inputs=["0.parquet", "1.parquet"], output="out.staged")
    storage = Storage.open(str(tmp_path))
    of_orc = [("a.orc", pa.schema([("id", pa.int64())])), ("b.orc", pa.schema([("ID", pa.int64())]))]
    with pytest.raises(SchemaConflictError, match=r"'id' of .*a.orc and column 'ID' of .*b.orc differ by case"):
        unified_schema(storage, of_orc)


def _numbered(name: str, number: int) -> pa.Table:
    field = pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)})
    return pa.table({name: [1]}, schema=pa.schema([field]))


@pytest.mark.parametrize(
    ("second", "message"),
    [(("b", 7), "have one field id"), (("a", 8), "field id 7.*field id 8")],
    ids=["a column was renamed", "a column has two ids"],
)
def test_field_ids_that_contradict_each_other_are_refused_and_shown(
    tmp_path: Path, second: tuple[str, int], message: str
) -> None:
    pq.write_table(_numbered("a", 7), tmp_path / "0.parquet")
    pq.write_table(_numbered(*second), tmp_path / "1.parquet")
    with pytest.raises(SchemaConflictError, match=message):
        merge_parquet(Storage.open(str(tmp_path)), inputs=["0.parquet", "1.parquet"], output="out.staged")
