"""Inputs as they lie about in the world: broken, empty, mixed, very wide, strangely named."""

from __future__ import annotations

import datetime as dt
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError, SchemaConflictError, UnreadableFileError
from airflow_hudi_maint.core.merging.parquet import ParquetMergeSettings, merge_parquet
from airflow_hudi_maint.core.storage.filesystem import Storage
from tests.unit.core.merging.parquet_files import METHODS, concatenated, merged, written

EACH_METHOD = pytest.mark.parametrize("method", METHODS)


def numbers(start: int, count: int = 10) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count)), "name": [f"n{one}" for one in range(count)]})


def footer_of(folder: Path) -> pq.FileMetaData:
    return pq.read_metadata(folder / "merged.parquet")


@EACH_METHOD
def test_one_truncated_file_among_a_thousand_is_named_and_nothing_is_written(tmp_path: Path, method: str) -> None:
    names = written(tmp_path, [numbers(0)] * 1000)
    broken = tmp_path / names[617]
    broken.write_bytes(broken.read_bytes()[:-100])
    with pytest.raises(UnreadableFileError, match=r"part-0617.parquet .* ends without a Parquet footer"):
        merged(tmp_path, names, method=method)
    assert not (tmp_path / "merged.parquet").exists()


@EACH_METHOD
def test_a_truncated_file_is_left_out_and_named_when_told_to_skip(tmp_path: Path, method: str) -> None:
    names = written(tmp_path, [numbers(start) for start in (0, 10, 20)])
    (tmp_path / names[1]).write_bytes((tmp_path / names[1]).read_bytes()[:-1])
    found, result = merged(tmp_path, names, method=method, on_unreadable="skip")
    assert found.column("id").to_pylist() == [*range(10), *range(20, 30)]
    assert result.skipped == (names[1],)
    assert names[1] in result.notes[0]


def test_a_file_with_broken_pages_is_named_or_left_out(tmp_path: Path) -> None:
    names = written(tmp_path, [numbers(start, 1000) for start in (0, 1000, 2000)], compression="zstd")
    data = bytearray((tmp_path / names[1]).read_bytes())
    data[30:300] = bytes(270)
    (tmp_path / names[1]).write_bytes(data)
    with pytest.raises(UnreadableFileError, match=r"part-0001.parquet cannot be decoded"):
        merged(tmp_path, names, method="re-encode")
    assert not (tmp_path / "merged.parquet").exists()
    found, result = merged(tmp_path, names, method="re-encode", on_unreadable="skip")
    assert found.column("id").to_pylist() == [*range(1000), *range(2000, 3000)]
    assert result.skipped == (names[1],)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1\x00\x00\x00\x00PAR1", b"id,name\n1,a\n" * 50])
def test_a_file_that_is_no_parquet_is_named(tmp_path: Path, content: bytes) -> None:
    names = written(tmp_path, [numbers(0), numbers(10)])
    (tmp_path / names[1]).write_bytes(content)
    with pytest.raises(UnreadableFileError, match=r"part-0001.parquet"):
        merged(tmp_path, names)
    found, result = merged(tmp_path, names, on_unreadable="skip")
    assert (len(found), result.skipped) == (10, (names[1],))


def test_only_broken_files_are_refused_even_when_such_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(UnreadableFileError, match="None of 1 files can be read"):
        merged(tmp_path, ["a"], on_unreadable="skip")


@EACH_METHOD
def test_files_and_row_groups_without_rows_leave_no_trace_but_their_schema(tmp_path: Path, method: str) -> None:
    empty = numbers(0).slice(0, 0)
    names = written(tmp_path, [empty, numbers(0), empty, numbers(10), empty])
    with pq.ParquetWriter(tmp_path / names[2], empty.schema) as writer:
        writer.write_table(numbers(20))
        writer.write_table(empty)
        writer.write_table(numbers(30))
    found, result = merged(tmp_path, names, method=method)
    assert found.equals(concatenated(tmp_path, names))
    assert all(footer_of(tmp_path).row_group(place).num_rows for place in range(result.row_groups))


@EACH_METHOD
def test_files_without_any_row_become_one_without_any(tmp_path: Path, method: str) -> None:
    names = written(tmp_path, [numbers(0, 0), numbers(0, 0)])
    found, result = merged(tmp_path, names, method=method)
    assert found.equals(numbers(0, 0))
    assert result.rows == 0


@EACH_METHOD
def test_names_with_spaces_percent_signs_and_other_scripts_are_read(tmp_path: Path, method: str) -> None:
    names = ["a b.parquet", "a%20b.parquet", "day=1 é.parquet", "行.parquet", "with'quote\".parquet"]
    for place, name in enumerate(names):
        pq.write_table(numbers(place * 10), tmp_path / name)
    found, _ = merged(tmp_path, names, method=method)
    assert found.column("id").to_pylist() == [*range(50)]


@EACH_METHOD
def test_files_of_several_codecs_are_merged(tmp_path: Path, method: str) -> None:
    names = [f"{codec}.parquet" for codec in ("snappy", "gzip", "zstd", "none", "brotli", "lz4")]
    for place, name in enumerate(names):
        pq.write_table(numbers(place * 10), tmp_path / name, compression=name.split(".")[0])
    found, _ = merged(tmp_path, names, method=method)
    assert found.column("id").to_pylist() == [*range(60)]
    codecs = {footer_of(tmp_path).row_group(0).column(place).compression for place in range(2)}
    assert codecs == {"SNAPPY"}


def test_codec_dictionary_statistics_and_page_version_are_kept_by_column(tmp_path: Path) -> None:
    table = pa.table({"a": ["x", "y"] * 50, "b": ["x", "y"] * 50, "c": pa.array(range(100)), "d": [1.5] * 100})
    names = written(
        tmp_path,
        [table, table],
        compression={"a": "zstd", "b": "none", "c": "gzip", "d": "snappy"},
        use_dictionary=["a"],
        write_statistics=["a", "c"],
        column_encoding={"c": "DELTA_BINARY_PACKED", "d": "BYTE_STREAM_SPLIT"},
        data_page_version="2.0",
    )
    merged(tmp_path, names, method="re-encode")
    group = footer_of(tmp_path).row_group(0)
    columns = [group.column(place) for place in range(4)]
    assert [one.compression for one in columns] == ["ZSTD", "UNCOMPRESSED", "GZIP", "SNAPPY"]
    assert [one.has_dictionary_page for one in columns] == [True, False, False, False]
    assert [one.is_stats_set for one in columns] == [True, False, True, False]
    assert "DELTA_BINARY_PACKED" in columns[2].encodings
    assert "BYTE_STREAM_SPLIT" in columns[3].encodings
    assert columns[2].statistics.max == 99


def test_a_codec_that_is_asked_for_is_used_and_forbids_a_copy(tmp_path: Path) -> None:
    names = written(tmp_path, [numbers(0), numbers(10)])
    _, result = merged(tmp_path, names, codec="zstd", copy_row_group_bytes=1)
    assert footer_of(tmp_path).row_group(0).column(0).compression == "ZSTD"
    assert (result.method, result.reason) == ("re-encode", "the codec zstd was asked for")


@EACH_METHOD
def test_int96_timestamps_beyond_the_reach_of_nanoseconds_stay_as_they_are(tmp_path: Path, method: str) -> None:
    far = pa.table({"at": pa.array([dt.datetime(3000, 1, 1), None, dt.datetime(1500, 1, 1)], pa.timestamp("us"))})  # noqa: DTZ001
    names = written(tmp_path, [far, far], use_deprecated_int96_timestamps=True)
    merged(tmp_path, names, method=method)
    found = pq.ParquetFile(tmp_path / "merged.parquet", coerce_int96_timestamp_unit="us").read()
    assert pq.read_schema(tmp_path / "merged.parquet").field("at").type == pa.timestamp("ns")
    assert found.column("at").to_pylist() == far.column("at").to_pylist() * 2
    assert footer_of(tmp_path).schema.column(0).physical_type == "INT96"
    statistics = footer_of(tmp_path).row_group(0).column(0).statistics
    assert statistics is None or not statistics.has_min_max


@EACH_METHOD
def test_field_ids_and_decimals_stored_as_integers_stay(tmp_path: Path, method: str) -> None:
    fields = [
        pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "7"}),
        pa.field("price", pa.decimal128(9, 2), metadata={"PARQUET:field_id": "8"}),
    ]
    table = pa.Table.from_arrays([pa.array([1, 2]), pa.array([None, 5], pa.decimal128(9, 2))], schema=pa.schema(fields))
    names = written(tmp_path, [table, table], store_decimal_as_integer=True)
    found, _ = merged(tmp_path, names, method=method)
    assert found.equals(concatenated(tmp_path, names))
    assert footer_of(tmp_path).schema.column(1).physical_type == "INT32"
    assert found.schema.field("price").metadata[b"PARQUET:field_id"] == b"8"


def test_a_column_of_int32_becomes_int64_and_a_missing_nullable_one_null(tmp_path: Path) -> None:
    one = pa.table({"id": pa.array([1, None], pa.int32()), "name": ["a", "b"]})
    other = pa.table({"city": ["x"], "id": pa.array([2**40], pa.int64())})
    pq.write_table(one, tmp_path / "1")
    pq.write_table(other, tmp_path / "2")
    found, result = merged(tmp_path, ["1", "2"])
    assert found.to_pydict() == {"id": [1, None, 2**40], "name": ["a", "b", None], "city": [None, None, "x"]}
    assert found.schema.equals(pa.schema([("id", pa.int64()), ("name", pa.string()), ("city", pa.string())]))
    assert result.method == "re-encode"
    assert "id: int32 became int64" in result.notes


def test_columns_in_another_order_are_matched_by_name(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "b": ["x", "y"], "c": [[1], None]})
    names = written(tmp_path, [table, table.select(["c", "a", "b"]), table])
    found, result = merged(tmp_path, names, copy_row_group_bytes=1)
    assert found.equals(pa.concat_tables([table] * 3))
    assert "another order" in result.reason
    with pytest.raises(InvalidSettingError, match="another order"):
        merged(tmp_path, names, method="chunk copy")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.int64(), pa.string()),
        (pa.int64(), pa.float64()),
        (pa.int32(), pa.date32()),
        (pa.int8(), pa.int64()),
        (pa.uint32(), pa.int64()),
        (pa.float32(), pa.float64()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us"), pa.timestamp("ms")),
        (pa.decimal128(9, 2), pa.decimal128(10, 2)),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
        (pa.struct([("a", pa.int32())]), pa.struct([("b", pa.int32())])),
        (pa.string(), pa.binary()),
    ],
)
def test_any_other_difference_is_refused_with_both_files_and_both_types(
    tmp_path: Path, one: pa.DataType, other: pa.DataType
) -> None:
    names = []
    for place, kind in enumerate((one, one, other)):
        names += [f"{place}.parquet"]
        pq.write_table(pa.table({"id": [1], "value": pa.nulls(1, kind)}), tmp_path / names[-1])
    with pytest.raises(SchemaConflictError, match=r"Column 'value' is .* in .*/0.parquet and .* in .*/2.parquet"):
        merged(tmp_path, names)
    assert not (tmp_path / "merged.parquet").exists()


def test_a_required_column_that_a_file_lacks_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("key", pa.string(), nullable=False)])
    pq.write_table(pa.table({"id": [1], "key": ["a"]}, schema=schema), tmp_path / "1")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "2")
    with pytest.raises(SchemaConflictError, match=r"'key' is required .* absent"):
        merged(tmp_path, ["1", "2"])


def test_a_name_that_stands_for_two_columns_is_merged_only_where_schemas_are_equal(tmp_path: Path) -> None:
    double = pa.Table.from_arrays([pa.array([1]), pa.array(["a"])], names=["x", "x"])
    names = written(tmp_path, [double, double, pa.table({"y": [1]})])
    for method in METHODS:
        found, _ = merged(tmp_path, names[:2], method=method)
        assert found.equals(pa.concat_tables([double, double]))
    with pytest.raises(SchemaConflictError, match="two columns called 'x'"):
        merged(tmp_path, names)


@EACH_METHOD
def test_ten_thousand_columns_are_merged(tmp_path: Path, method: str) -> None:
    table = pa.table({f"column {place}": pa.array([place, None]) for place in range(10_000)})
    names = written(tmp_path, [table, table])
    found, _ = merged(tmp_path, names, method=method)
    assert found.equals(pa.concat_tables([table, table]))


@EACH_METHOD
def test_page_indexes_and_bloom_filters_lead_to_the_right_pages(tmp_path: Path, method: str) -> None:
    tables = [numbers(start, 3000) for start in (0, 3000, 6000)]
    options = {"bloom_filter_options": {"id": {"ndv": 1000, "fpp": 0.05}}}
    names = written(tmp_path, tables, write_page_index=True, data_page_size=512, row_group_size=1000, **options)
    found, result = merged(tmp_path, names, method=method)
    assert found.equals(pa.concat_tables(tables))
    for place in range(result.row_groups):
        column = footer_of(tmp_path).row_group(place).column(0)
        assert column.has_column_index
        assert column.has_offset_index


@EACH_METHOD
def test_an_old_list_without_the_middle_level_is_kept(tmp_path: Path, method: str) -> None:
    table = pa.table({"tags": pa.array([["a", None], [], None])})
    names = written(tmp_path, [table, table], use_compliant_nested_type=False)
    found, _ = merged(tmp_path, names, method=method)
    assert found.equals(concatenated(tmp_path, names))
    assert footer_of(tmp_path).schema.column(0).path == "tags.list.item"


def test_lists_whose_insides_have_other_names_are_one_type(tmp_path: Path) -> None:
    table = pa.table({"tags": [["a"], None]})
    pq.write_table(table, tmp_path / "1", use_compliant_nested_type=True, store_schema=False)
    pq.write_table(table, tmp_path / "2", use_compliant_nested_type=False, store_schema=False)
    for method in METHODS:
        found, _ = merged(tmp_path, ["1", "2"], method=method)
        assert found.column("tags").to_pylist() == [["a"], None, ["a"], None]


def test_dictionaries_with_nulls_that_differ_by_file_are_joined(tmp_path: Path) -> None:
    tables = [
        pa.table({"color": pa.array(values).dictionary_encode()})
        for values in (["red", None, "blue"], [None, None], ["green", "red"])
    ]
    names = written(tmp_path, tables[:1] + tables[2:])
    found, _ = merged(tmp_path, names, method="re-encode")
    assert found.column("color").to_pylist() == ["red", None, "blue", "green", "red"]
    assert footer_of(tmp_path).row_group(0).column(0).has_dictionary_page


def test_the_range_of_pandas_is_stretched_over_all_rows(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="the index of pandas is what is looked at")
    names = written(tmp_path, [pa.Table.from_pandas(pandas.DataFrame({"id": range(5)}))] * 3)
    merged(tmp_path, names)
    metadata = json.loads(pq.read_schema(tmp_path / "merged.parquet").metadata[b"pandas"])
    assert metadata["index_columns"] == [{"kind": "range", "name": None, "start": 0, "stop": 15, "step": 1}]
    assert [*pq.read_table(tmp_path / "merged.parquet").to_pandas().index] == [*range(15)]


def test_metadata_of_the_first_file_stands_where_files_differ_and_a_note_says_so(tmp_path: Path) -> None:
    for place, text in enumerate(("first", "second")):
        table = numbers(0).replace_schema_metadata({"same": "yes", "origin": text, f"only {place}": "kept"})
        pq.write_table(table, tmp_path / str(place))
    _, result = merged(tmp_path, ["0", "1"])
    found = footer_of(tmp_path).metadata
    kept = {key: value for key, value in found.items() if key != b"ARROW:schema"}
    assert kept == {b"same": b"yes", b"origin": b"first", b"only 0": b"kept", b"only 1": b"kept"}
    assert any("'origin'" in note for note in result.notes)


def test_the_schema_of_spark_is_kept_and_gets_the_columns_that_were_added(tmp_path: Path) -> None:
    for table, fields in (
        (pa.table({"id": pa.array([1], pa.int32())}), [("id", "integer")]),
        (pa.table({"id": [2], "at": ["x"]}), [("id", "long"), ("at", "string")]),
    ):
        described = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields]
        with pq.ParquetWriter(tmp_path / str(len(fields)), table.schema, store_schema=False) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata(
                {"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": described})}
            )
    merged(tmp_path, ["1", "2"])
    found = json.loads(footer_of(tmp_path).metadata[b"org.apache.spark.sql.parquet.row.metadata"])
    assert [(one["name"], one["type"]) for one in found["fields"]] == [("id", "long"), ("at", "string")]


def test_large_row_groups_are_copied_beside_small_ones_that_are_joined(tmp_path: Path) -> None:
    names = written(tmp_path, [numbers(0, 50_000), numbers(50_000, 10), numbers(50_010, 10), numbers(50_020, 50_000)])
    found, result = merged(tmp_path, names, copy_row_group_bytes=10_000)
    assert found.equals(concatenated(tmp_path, names))
    sizes = [footer_of(tmp_path).row_group(place).num_rows for place in range(result.row_groups)]
    assert sizes == [50_000, 20, 50_000]
    assert result.reason == "2 of 4 row groups have less than 0.00953674 MiB; the other 2 were copied as they are"


def test_row_groups_grow_up_to_the_limits(tmp_path: Path) -> None:
    names = written(tmp_path, [numbers(start, 100) for start in range(0, 2000, 100)])
    _, by_rows = merged(tmp_path, names, row_group_rows=1000, workers=1)
    _, by_bytes = merged(tmp_path, names, row_group_bytes=5000, workers=1)
    assert by_rows.row_groups == 2
    assert by_bytes.row_groups > 2


def test_files_in_memory_are_merged_like_those_on_a_disk() -> None:
    with Storage.open("memory://merging-parquet") as storage:
        for place in range(20):
            sink = io.BytesIO()
            pq.write_table(numbers(place * 10), sink)
            storage.write_new(f"day=1/{place:02}.parquet", sink.getvalue())
        inputs = [f"day=1/{place:02}.parquet" for place in range(20)]
        for method in METHODS:
            output = f"day=1/{method}.parquet"
            merge_parquet(storage, inputs=inputs, output=output, settings=ParquetMergeSettings(method=method))
            found = pq.ParquetFile(io.BytesIO(storage.read_bytes(output))).read()
            assert found.column("id").to_pylist() == [*range(200)]


def test_an_output_that_is_there_already_is_left_alone(tmp_path: Path) -> None:
    names = written(tmp_path, [numbers(0)])
    (tmp_path / "merged").write_bytes(b"theirs")
    with Storage.open(str(tmp_path)) as storage, pytest.raises(OSError, match="merged"):
        merge_parquet(storage, inputs=names, output="merged")
    assert (tmp_path / "merged").read_bytes() == b"theirs"


def test_merging_does_not_load_pandas(tmp_path: Path) -> None:
    """It would take longer than merging hundreds of files."""
    names = written(tmp_path, [numbers(0), numbers(10)])
    script = (
        "import sys\n"
        "from airflow_hudi_maint.core.merging.parquet import merge_parquet\n"
        "from airflow_hudi_maint.core.storage.filesystem import Storage\n"
        f"merge_parquet(Storage.open({str(tmp_path)!r}), inputs={names!r}, output='merged')\n"
        "print('pandas' in sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"
