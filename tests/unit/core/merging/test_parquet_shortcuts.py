"""Small files read as one, and texts read by their dictionaries: the merged file is that of reading each by itself."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_hudi_maint.core.errors import UnreadableFileError, VerificationError
from airflow_hudi_maint.core.merging import parquet_decode, parquet_survey
from airflow_hudi_maint.core.merging.parquet_joint import joint_table
from airflow_hudi_maint.core.merging.parquet_page_headers import zigzag
from airflow_hudi_maint.core.merging.parquet_spliced_columns import CodedColumn, MisfitError
from tests.unit.core.merging.parquet_files import concatenated, merged, written

ROWS = 2000
FILES = 6


def texts_of(file: int) -> list[str | None]:
    """A text of 30 in each row, those of later files partly others, and some nulls."""
    return [None if one % 37 == 5 else f"town {(file * 7 + one % 30):03}" for one in range(ROWS)]


def tables_of(columns: Sequence[Sequence[Any]], *, type_: pa.DataType | None = None) -> list[pa.Table]:
    kind = pa.array(range(ROWS), pa.int32())
    return [pa.table({"town": pa.array(one, type_ or pa.string()), "kind": kind}) for one in columns]


def required(table: pa.Table) -> pa.Table:
    """The rows without a null, and the column says that it has none."""
    filled = table.filter(pc.is_valid(table.column("town")))
    return filled.cast(pa.schema([pa.field("town", pa.string(), nullable=False), filled.schema.field("kind")]))


def merged_by_dictionaries(folder: Path, names: Sequence[str], *, told: Sequence[bool] = (True,)) -> pa.Table:
    """Merge, where one column has to be written by its dictionary; whether the footers told its range."""
    seen: list[bool] = []
    described = CodedColumn.described

    def spied(column: CodedColumn, chunk: Any, *, physical_type: int) -> Any:
        seen.append(column.is_told)
        return described(column, chunk, physical_type=physical_type)

    with patch.object(CodedColumn, "described", spied):
        table, result = merged(folder, names, method="re-encode")
    assert result.method == "re-encode"
    assert seen == [*told]
    return table


def check(folder: Path, names: Sequence[str], found: pa.Table) -> Any:
    """The rows, the range in the footer, and that there is a dictionary; gives the column's chunk in the footer."""
    expected = concatenated(folder, names)
    assert found == expected
    chunk = pq.read_metadata(folder / "merged.parquet").row_group(0).column(0)
    range_ = pc.min_max(expected.column("town")).as_py()
    told = chunk.statistics
    assert (told.min, told.max, told.null_count) == (*range_.values(), expected.column("town").null_count)
    assert "RLE_DICTIONARY" in chunk.encodings
    return chunk


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "lz4"])
@pytest.mark.parametrize("nullable", [True, False])
def test_few_texts_are_written_by_one_dictionary_with_the_range_of_the_footers(
    tmp_path: Path, codec: str, *, nullable: bool
) -> None:
    tables = tables_of([texts_of(file) for file in range(FILES)])
    if not nullable:
        tables = [required(one) for one in tables]
    names = written(tmp_path, tables, compression=codec)
    if codec == "lz4":  # two codecs have this name to pyarrow, so that each file is read by itself
        found, _ = merged(tmp_path, names, method="re-encode")
    else:
        found = merged_by_dictionaries(tmp_path, names)
    assert check(tmp_path, names, found).compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())


def test_files_without_a_dictionary_a_range_or_a_value_are_joined_with_those_that_have_them(tmp_path: Path) -> None:
    columns = [texts_of(file) for file in range(FILES)]
    columns[2] = [None] * ROWS
    names = written(tmp_path, tables_of(columns))
    pq.write_table(pq.read_table(tmp_path / names[1]), tmp_path / names[1], use_dictionary=False)
    check(tmp_path, names, merged_by_dictionaries(tmp_path, names))

    pq.write_table(pq.read_table(tmp_path / names[4]), tmp_path / names[4], write_statistics=False)
    check(tmp_path, names, merged_by_dictionaries(tmp_path, names, told=[False]))


@pytest.mark.parametrize("options", [{}, {"write_page_checksum": True}])
def test_a_value_that_comes_twice_in_a_dictionary_moves_no_other(tmp_path: Path, options: dict[str, Any]) -> None:
    """Pyarrow leaves out the second when it reads a dictionary, but not when it reads values."""
    texts = pa.array(["town 1", "town 2", "town 3", "nowhere"])
    places = pa.array([one % 3 for one in range(ROWS)], pa.int32())
    town = pa.DictionaryArray.from_arrays(places, texts)  # the last one is of no row, so that no index is too great
    names = written(tmp_path, [pa.table({"town": town})] * FILES, compression="none", store_schema=False, **options)
    for name in names:
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(data.replace(b"\x06\0\0\0town 2", b"\x06\0\0\0town 1", 1))
    expected = concatenated(tmp_path, names)
    assert expected.column("town")[:3].to_pylist() == ["town 1", "town 1", "town 3"]
    assert merged(tmp_path, names, method="re-encode")[0] == expected


def test_dictionaries_whose_pages_have_checksums_are_kept(tmp_path: Path) -> None:
    names = written(tmp_path, tables_of([texts_of(file) for file in range(FILES)]), write_page_checksum=True)
    check(tmp_path, names, merged_by_dictionaries(tmp_path, names))


def test_a_column_without_statistics_gets_none(tmp_path: Path) -> None:
    names = written(tmp_path, tables_of([texts_of(file) for file in range(FILES)]), write_statistics=False)
    assert merged_by_dictionaries(tmp_path, names, told=[False]) == concatenated(tmp_path, names)
    assert pq.read_metadata(tmp_path / "merged.parquet").row_group(0).column(0).statistics is None


def test_a_dictionary_that_grows_too_large_is_given_up(tmp_path: Path) -> None:
    columns = [[f"{file:03}{one % 400:03}" + "x" * 600 for one in range(ROWS)] for file in range(FILES)]
    names = written(tmp_path, tables_of(columns))
    found = merged_by_dictionaries(tmp_path, names, told=[])
    assert found == concatenated(tmp_path, names)


def test_a_column_that_repeats_only_in_files_that_were_not_looked_at_keeps_its_dictionary(tmp_path: Path) -> None:
    """Only the first, the middle and the last of a merge are: the others would end as plain pages, and many times."""
    files = 16
    looked_at = (0, files // 2, files - 1)
    columns = [[file * ROWS + one if file in looked_at else one % 3 for one in range(ROWS)] for file in range(files)]
    names = written(tmp_path, tables_of(columns, type_=pa.int64()))
    found, _ = merged(tmp_path, names, method="re-encode")
    assert found == concatenated(tmp_path, names)
    chunk = pq.read_metadata(tmp_path / "merged.parquet").row_group(0).column(0)
    assert "RLE_DICTIONARY" in chunk.encodings
    assert (chunk.statistics.min, chunk.statistics.max) == (0, files * ROWS - 1)


@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, 700) | st.integers(0, 13_000), value=st.integers(0, 255))
def test_a_damaged_byte_gives_the_same_whether_files_are_read_as_one_or_apart(at: int, value: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = written(folder, tables_of([texts_of(file) for file in range(FILES)]))
        path = folder / names[1]
        data = bytearray(path.read_bytes())
        data[at % len(data)] = value
        path.write_bytes(data)
        together = _outcome(folder, names)
        with patch.object(parquet_decode, "joint_table", lambda *_, **__: None):
            assert _outcome(folder, names) == together


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "compression": "none"}])
def test_a_file_that_counts_its_rows_wrongly_does_not_move_those_of_the_next(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    names = written(tmp_path, tables_of([texts_of(file) for file in range(FILES)]), **options)
    path = tmp_path / names[1]
    whole = path.read_bytes()
    counts = [found.start() for found in re.finditer(re.escape(zigzag(ROWS)), whole)]
    assert len(counts) > 4
    for at in counts:
        for other in (ROWS - 1, ROWS + 8):
            path.write_bytes(whole[:at] + zigzag(other) + whole[at + 2 :])
            together = _outcome(tmp_path, names)
            with patch.object(parquet_decode, "joint_table", lambda *_, **__: None):
                assert _outcome(tmp_path, names) == together


def _outcome(folder: Path, names: Sequence[str]) -> pa.Table | str:
    try:
        return merged(folder, names, method="re-encode")[0]
    except (UnreadableFileError, VerificationError, pa.ArrowException, OSError) as error:
        return type(error).__name__


@pytest.mark.parametrize("failing", [{0, 1, 2}, {1}])
def test_files_that_cannot_be_read_as_one_are_read_apart_and_joined_with_the_others(
    tmp_path: Path, failing: set[int]
) -> None:
    names = written(tmp_path, [required(one) for one in tables_of([texts_of(file) for file in range(FILES)])])
    calls: list[bool] = []

    def flaky(*args: Any, **named: Any) -> pa.Table | None:
        calls.append(len(calls) in failing)
        return None if calls[-1] else joint_table(*args, **named)

    with patch.object(parquet_decode, "joint_table", flaky), patch.object(parquet_decode, "_TOGETHER_FILES", 2):
        check(tmp_path, names, merged_by_dictionaries(tmp_path, names))
    assert calls == [place in failing for place in range(3)]


def test_footers_that_are_not_kept_are_read_again(tmp_path: Path) -> None:
    names = written(tmp_path, tables_of([texts_of(file) for file in range(FILES)]))
    with patch.object(parquet_survey, "_KEPT_FOOTER_BYTES", 0):
        check(tmp_path, names, merged_by_dictionaries(tmp_path, names))


def test_a_column_that_is_no_dictionary_after_all_is_a_misfit() -> None:
    with pytest.raises(MisfitError):
        CodedColumn(0, "c0").unified(pa.chunked_array([pa.array(["a"])]))
