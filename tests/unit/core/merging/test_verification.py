"""Each check of a merged file against its inputs finds the fault that it is there for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from airflow_hudi_maint.core.errors import VerificationError
from airflow_hudi_maint.core.merging.verification import verify_orc, verify_parquet
from airflow_hudi_maint.core.storage.filesystem import Storage

FIRST = pa.table({"id": [1, 2], "name": ["a", None], "tags": [["x", "y"], []]})
SECOND = pa.table({"id": [3], "name": ["c"], "tags": [["z"]], "late": [1.5]})
MERGED = pa.concat_tables([FIRST, SECOND], promote_options="default")


def _with(name: str, values: list[Any]) -> pa.Table:
    place = MERGED.schema.get_field_index(name)
    return MERGED.set_column(place, MERGED.schema.field(place), pa.array(values, MERGED.schema.field(place).type))


FAULTS = {
    "a row is lost": (MERGED.slice(0, 2), "2 rows, and its 2 inputs have 3"),
    "a row is doubled": (pa.concat_tables([MERGED, MERGED.slice(2)]), "4 rows, and its 2 inputs have 3"),
    "a column is lost": (MERGED.drop_columns(["late"]), "lacks what its inputs have: column late"),
    "a list is lost": (MERGED.drop_columns(["tags"]), "lacks what its inputs have: column tags"),
    "an element of a list is lost": (_with("tags", [["x"], [], ["z"]]), "has 3 values, and that of its inputs 4"),
    "a value became null": (_with("id", [1, None, 3]), "has 1 nulls"),
    "a null became a value": (_with("name", ["a", "b", "c"]), "has 0 nulls"),
    "a value is another": (_with("id", [1, 2, 4]), "greatest value of column 'id'"),
    "a text is another": (_with("name", ["A", None, "c"]), "least value of column 'name'"),
    "a value fell away where others had none": (_with("late", [None, None, 2.5]), "value of column 'late'"),
}


def _verify(folder: Path, merged: pa.Table) -> None:
    for name, table in (("a.parquet", FIRST), ("b.parquet", SECOND), ("merged.parquet", merged)):
        pq.write_table(table, folder / name)
    verify_parquet(Storage.open(str(folder)), "merged.parquet", inputs=["a.parquet", "b.parquet"])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_parquet_file_is_found(tmp_path: Path, fault: str) -> None:
    merged, message = FAULTS[fault]
    with pytest.raises(VerificationError, match=message):
        _verify(tmp_path, merged)


def test_a_parquet_file_that_is_right_passes(tmp_path: Path) -> None:
    """By columns in another order as well."""
    _verify(tmp_path, MERGED)
    _verify(tmp_path, MERGED.select(["late", "tags", "name", "id"]))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2], "differs from its input"),
        ([1, 2, 3, 3], "more rows than its inputs"),
        ([1, 3, 2], "differs from its input .*a.orc after row 0"),
        ([1, 2, None], "differs from its input .*b.orc after row 2"),
    ],
    ids=["a row is lost", "a row is doubled", "rows changed places", "a value became null"],
)
def test_a_fault_of_an_orc_file_is_found(tmp_path: Path, values: list[int | None], message: str) -> None:
    paths = {"a.orc": [1, 2], "b.orc": [3], "merged.orc": values}
    for name, column in paths.items():
        orc.write_table(pa.table({"id": pa.array(column, pa.int64())}), tmp_path / name)
    sizes = {name: (tmp_path / name).stat().st_size for name in paths}
    with pytest.raises(VerificationError, match=message):
        verify_orc(
            Storage.open(str(tmp_path)),
            "merged.orc",
            size=sizes["merged.orc"],
            inputs=[(name, sizes[name]) for name in ("a.orc", "b.orc")],
        )
