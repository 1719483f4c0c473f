"""What footers say of rows, nulls, types and ranges, and a digest of keys, from real Parquet files."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.footer_statistics import facts_of, file_facts
from airflow_hudi_maint.core.storage.key_digest import KeyDigest, key_digest


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> Storage:
    return Storage.open(f"memory://facts-{request.node.name}")


def _put(storage: Storage, columns: dict[str, Any], *, name: str = "a.parquet", **options: Any) -> str:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, **{"row_group_size": 2, **options})
    storage.write_atomic(name, out.getvalue())
    return name


def test_rows_nulls_and_ranges_over_all_row_groups(storage: Storage) -> None:
    """Three rows in two groups; a column without any value has no range, and that is no missing statistic."""
    path = _put(storage, {"city": ["b", None, "a"], "fare": [1.5, 2.5, 0.5], "none": pa.nulls(3, pa.int64())})
    facts = file_facts(storage, path=path, ranged=["city", "fare", "none", "absent"])
    assert (3, {"city": 1, "fare": 0, "none": 3}) == (facts.rows, facts.null_counts)
    assert ({"city": ("a", "b"), "fare": (0.5, 2.5)}, frozenset()) == (facts.ranges, facts.unranged)


def test_missing_statistics_are_told_from_missing_values(storage: Storage) -> None:
    """Neither nulls nor ranges are known of a column whose writer left statistics out."""
    path = _put(storage, {"city": ["b", None, "a"]}, write_statistics=False)
    facts = file_facts(storage, path=path, ranged=["city"])
    assert ({"city": None}, {}, frozenset({"city"})) == (facts.null_counts, facts.ranges, facts.unranged)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**31 - 1], pa.int32()).view(pa.date32()),
        pa.array([2**62], pa.int64()).view(pa.timestamp("us", tz="UTC")),
        pa.Array.from_buffers(pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]),
    ],
    ids=["a day after the year 9999", "a moment after the year 9999", "a text that is no UTF-8"],
)
def test_a_bound_that_python_cannot_hold_is_not_known(storage: Storage, values: pa.Array) -> None:
    """Spark writes them; rows and nulls are told all the same."""
    facts = file_facts(storage, path=_put(storage, {"at": values}), ranged=["at"])
    assert (1, {"at": 0}, {}, frozenset({"at"})) == (facts.rows, facts.null_counts, facts.ranges, facts.unranged)


def test_fields_of_a_record_count_and_elements_of_a_list_do_not(storage: Storage) -> None:
    """Nulls within a list are not of rows; the types are spelt out to the last field."""
    path = _put(
        storage,
        {
            "place": [{"city": "a", "at": {"zip": None}}, {"city": None, "at": {"zip": 1}}],
            "tags": [["x", None], []],
            "marks": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        },
    )
    facts = file_facts(storage, path=path)
    assert {"place.city": 1, "place.at.zip": 1} == facts.null_counts
    assert {
        "place": "record<city:string,at:record<zip:long>>",
        "tags": "array<string>",
        "marks": "map<string,long>",
    } == facts.types


def test_an_old_timestamp_is_a_timestamp(storage: Storage) -> None:
    """INT96, Spark's older form, and microseconds in UTC are one type to a table."""
    moment = [dt.datetime(2026, 11, 30, tzinfo=dt.UTC)]
    old = _put(storage, {"at": moment}, name="old.parquet", use_deprecated_int96_timestamps=True)
    new = _put(storage, {"at": moment}, name="new.parquet", coerce_timestamps="us")
    assert {"at": "timestamp-micros"} == file_facts(storage, path=old).types == file_facts(storage, path=new).types


def test_files_that_are_gone_are_none_and_broken_ones_are_named(storage: Storage) -> None:
    """Cleaned is one thing, torn another."""
    path = _put(storage, {"city": ["a"]})
    found, gone = facts_of(storage, paths=[path, "gone.parquet"])
    assert (1, None) == (found and found.rows, gone)
    storage.write_atomic("torn.parquet", b"PAR1PAR1")
    with pytest.raises(CorruptTableError, match=r"torn.parquet is no Parquet"):
        facts_of(storage, paths=["torn.parquet", path])
    with pytest.raises(CorruptTableError, match=r"torn.parquet is no Parquet"):
        key_digest(storage, path="torn.parquet")


def test_a_digest_knows_no_order_and_no_cut(storage: Storage) -> None:
    """The same keys in one file or in two, in any order; one key more, twice or changed is another digest."""
    keys = [f"k{number}" for number in range(40_000)]

    def digest(name: str, some: list[str | None]) -> KeyDigest:
        found = key_digest(storage, path=_put(storage, {"_hoodie_record_key": some}, name=name, row_group_size=9000))
        assert found is not None
        return found

    whole = digest("whole.parquet", [*keys])
    assert whole == digest("one.parquet", [*reversed(keys[:7])]) + digest("two.parquet", [*keys[7:]])
    assert 40_000 == whole.count
    others = [[*keys[1:]], [*keys, None], [*keys[1:], keys[1]], ["x", *keys[1:]]]
    assert whole not in [digest("other.parquet", some) for some in others]


def test_a_table_without_meta_columns_has_no_digest(storage: Storage) -> None:
    """Its keys are spread over the columns, and which ones is not in the file."""
    assert key_digest(storage, path=_put(storage, {"id": ["a"]})) is None
