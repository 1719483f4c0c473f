from __future__ import annotations

import datetime as dt
import decimal
import io

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError, StorageError
from airflow_hudi_maint.core.storage import footers
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.retries import RetryPolicy
from tests.unit.core.storage.builders import at, parquet


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> Storage:
    return Storage.open(f"memory://footers-{request.node.name}", retry=RetryPolicy(attempts=1))


def test_greatest_commit_time(storage: Storage) -> None:
    """The greatest commit time is found in any row group."""
    storage.write_atomic("a.parquet", parquet([at(1), at(3), at(2), at(2), at(1)]))
    assert footers.max_commit_time(storage, path="a.parquet") == at(3)


def test_row_groups_without_statistics_are_read(storage: Storage) -> None:
    """A writer may leave the statistics out; then the column itself tells."""
    storage.write_atomic("a.parquet", parquet([at(1), at(3), at(2)], statistics=False))
    assert footers.max_commit_time(storage, path="a.parquet") == at(3)


def test_file_without_rows_or_meta_columns_has_no_commit_time(storage: Storage) -> None:
    """None stands for a file that cannot tell when its rows changed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.table({"fare": [1.0]}), buffer)
    storage.write_atomic("plain.parquet", buffer.getvalue())
    storage.write_atomic("empty.parquet", parquet([]))
    storage.write_atomic("broken.parquet", b"PAR1")
    assert footers.max_commit_time(storage, path="plain.parquet") is None
    assert footers.max_commit_time(storage, path="empty.parquet") is None
    paths = ["plain.parquet", "empty.parquet", "broken.parquet", "absent.parquet"]
    assert footers.max_commit_times(storage, paths=paths) == dict.fromkeys(paths)


def test_columns_and_their_types_in_avro_words(storage: Storage) -> None:
    """Types are named as the table's Avro schema would name them."""
    values = {
        "text": ["a"],
        "count": [1],
        "flag": [True],
        "share": [0.5],
        "raw": [b"x"],
        "day": [dt.date(2026, 11, 30)],
        "moment": [dt.datetime(2026, 11, 30, tzinfo=dt.UTC)],
        "wall": [dt.datetime(2026, 11, 30)],  # noqa: DTZ001 a column of local time
        "price": [decimal.Decimal("1.25")],
        "list": [[1]],
        "place": [{"city": "a"}],
    }
    storage.write_atomic("a.parquet", parquet([at(1)], extra=values))
    columns = footers.footer_columns(storage, path="a.parquet")
    assert {one.name: one.type_name for one in columns} == {
        "_hoodie_commit_time": "string",
        "text": "string",
        "count": "long",
        "flag": "boolean",
        "share": "double",
        "raw": "bytes",
        "day": "date",
        "moment": "timestamp-micros",
        "wall": "local-timestamp-micros",
        "price": "decimal(3,2)",
        "list": "array",
        "place": "record",
    }
    assert footers.avro_schema(storage, path="a.parquet") is None


def test_footer_larger_than_the_first_read(storage: Storage) -> None:
    """A footer with a large Bloom filter takes a second read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    table = pa.table({"_hoodie_commit_time": [at(1)]})
    metadata = {"org.apache.hudi.bloomfilter": "x" * 2_000_000, "parquet.avro.schema": "{}"}
    with pq.ParquetWriter(buffer, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)
    storage.write_atomic("a.parquet", buffer.getvalue())
    assert footers.max_commit_time(storage, path="a.parquet") == at(1)
    assert footers.avro_schema(storage, path="a.parquet") == "{}"


def _broken() -> dict[str, bytes]:
    sound = parquet([at(1)])
    return {
        "empty": b"",
        "magic alone": b"PAR1",
        "text": b"x" * 1000,
        "cut short": sound[:-20],
        "length beyond the file": b"PAR1" + b"\xff\xff\xff\x7fPAR1",
        "negative length": b"PAR1" + b"\xff\xff\xff\xffPAR1",
        "noise in the footer": sound[:-60] + b"\x99" * 52 + sound[-8:],
    }


@pytest.mark.parametrize("content", _broken().values(), ids=_broken())
def test_broken_file_is_named(storage: Storage, content: bytes) -> None:
    """A file that is no Parquet is a terminal error that names it."""
    storage.write_atomic("day=1/a.parquet", content)
    with pytest.raises(CorruptTableError, match=r"day=1/a\.parquet is no Parquet file"):
        footers.max_commit_time(storage, path="day=1/a.parquet")


def test_missing_file_and_failing_storage_are_no_broken_file(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing file stays FileNotFoundError, and a read that fails is worth another try."""
    with pytest.raises(FileNotFoundError):
        footers.max_commit_time(storage, path="a.parquet")
    storage.write_atomic("a.parquet", parquet([at(1)]))

    def failing(*_: object, **__: object) -> None:
        raise ConnectionError("reset by peer")

    monkeypatch.setattr(storage._fs, "info", failing)  # noqa: SLF001 where a network fails
    with pytest.raises(StorageError, match="reset by peer"):
        footers.max_commit_time(storage, path="a.parquet")
