from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_hudi_maint.core.storage.partition_metadata import creation_instants
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.golden import unpack


@pytest.mark.parametrize("name", ["v6_mor_plain", "v8_cow_plain", "v9_cow_plain"])
def test_hudi_notes_when_it_creates_a_partition(name: str, tmp_path: Path) -> None:
    """Each partition of the golden tables has the instant of the table's first commit."""
    table = HudiTable.open(str(unpack(name, tmp_path)))
    first = min(one.requested_time for one in table.timeline().completed)
    assert dict.fromkeys(table.partition_paths(), first) == creation_instants(table, partitions=table.partition_paths())


def test_a_metafile_that_does_not_tell_is_left_out(tmp_path: Path) -> None:
    """Missing, empty, or without the key: the partition's creation is not known."""
    folder = unpack("v9_cow_plain", tmp_path)
    table = HudiTable.open(str(folder))
    paths = table.partition_paths()
    (folder / paths[0] / ".hoodie_partition_metadata").unlink()
    (folder / paths[1] / ".hoodie_partition_metadata").write_bytes(b"")
    (folder / paths[2] / ".hoodie_partition_metadata").write_text("#partition metadata\npartitionDepth=1\n")
    assert [paths[3]] == list(creation_instants(table, partitions=paths))


def test_a_metafile_may_be_a_parquet_file(tmp_path: Path) -> None:
    """With the base file's format, the footer has what the properties have."""
    folder = unpack("v9_cow_plain", tmp_path)
    path = HudiTable.open(str(folder)).partition_paths()[0]
    (folder / path / ".hoodie_partition_metadata").unlink()
    schema = pa.schema([pa.field("dummy", pa.binary())], metadata={"commitTime": "20261130010203004"})
    pq.write_table(schema.empty_table(), folder / path / ".hoodie_partition_metadata.parquet")
    properties = folder / ".hoodie" / "hoodie.properties"
    for switch in ("", "hoodie.partition.metafile.use.base.format=true\n"):
        properties.write_text(properties.read_text() + switch)
        table = HudiTable.open(str(folder))
        assert {path: "20261130010203004"} == creation_instants(table, partitions=[path])
