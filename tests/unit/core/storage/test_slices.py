"""Which files make up the latest slices, on hand-made tables: the rules that golden tables cannot show one by one."""

from __future__ import annotations

import logging

import pytest

from airflow_hudi_maint.core.errors import UnsupportedTableError
from airflow_hudi_maint.core.storage.footers import max_commit_times
from airflow_hudi_maint.core.storage.table import TableView
from tests.unit.core.storage.builders import TableBuilder, at
from tests.unit.core.storage.gathering import ONE


def _view(builder: TableBuilder) -> TableView:
    table = builder.open()
    return table.view(table.timeline())


def _ids(builder: TableBuilder, partition: str = ONE) -> list[str]:
    return [one.file_id for one in _view(builder).latest_slices(partition)]


@pytest.mark.parametrize("undoing", ["rollback", "restore"])
def test_replaced_file_is_back_when_the_replacing_write_is_undone(base_path: str, version: int, undoing: str) -> None:
    """Undoing a replace commit takes its instant off the timeline: what it replaced counts again, its own no more."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.commit(at(2), {ONE: [("f2-0", 10)]}, replaced={ONE: ["f1-0"]}, operation="INSERT_OVERWRITE")
    assert _ids(builder) == ["f2-0"]

    builder.archive(at(2))
    if undoing == "rollback":
        builder.rollback(at(3), of=at(2), partitions=[ONE])
    else:
        builder.instant(at(3), "restore", {"instantsToRollback": [at(2)]})
    assert _ids(builder) == ["f1-0"]


def test_replaced_in_one_partition_is_not_replaced_in_another(base_path: str) -> None:
    """A file id counts together with its partition."""
    other = "day=2026-11-02"
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)], other: [("f1-0", 10)]})
    builder.commit(at(2), replaced={ONE: ["f1-0"]}, operation="DELETE_PARTITION")

    assert (_ids(builder), _ids(builder, other)) == ([], ["f1-0"])


def test_rows_without_a_value_have_a_partition_of_their_own(base_path: str) -> None:
    """Hudi's name for the partition of rows without value is a partition as any other."""
    path = "day=__HIVE_DEFAULT_PARTITION__"
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {path: [("f1-0", 10)]})

    assert _view(builder).partition_paths == (path,)
    assert _ids(builder, path) == ["f1-0"]


@pytest.mark.parametrize("ending", ["", ".parquet", ".orc"])
def test_metafile_in_any_format_makes_a_partition(base_path: str, ending: str) -> None:
    """A metafile may be in the format of the base files, and is never taken for one."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.remove(f"{ONE}/.hoodie_partition_metadata")
    assert builder.open().partition_paths() == ()

    builder.put(f"{ONE}/.hoodie_partition_metadata{ending}", b"m")
    assert builder.open().partition_paths() == (ONE,)
    assert _ids(builder) == ["f1-0"]


def test_change_data_file_is_a_log_file_of_its_slice(base_path: str, version: int) -> None:
    """Hudi's own view counts a change-data file to the slice that its write made, on copy-on-write tables too."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.commit(at(2), {ONE: [("f1-0", 12)]})
    for second in (1, 2):
        builder.put(f"{ONE}/.f1-0_{at(second)}.log.1_0-1-2.cdc", b"cc")

    (found,) = _view(builder).latest_slices(ONE)
    assert (found.base_instant, found.total_bytes) == (at(2), 14)
    assert [one.name for one in found.log_files] == [f".f1-0_{at(2)}.log.1_0-1-2.cdc"]


@pytest.mark.parametrize("ending", ["orc", "hfile"])
def test_base_files_of_another_format_make_slices(
    base_path: str, ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    """ORC and HFile base files count as Parquet's do; of their footers a warning says that nobody reads them."""
    builder = TableBuilder(base_path=base_path, settings={"hoodie.table.base.file.format": ending.upper()})
    builder.commit(at(1))
    builder.metafile(ONE)
    path = f"{ONE}/f1-0_0-1-2_{at(1)}.{ending}"
    builder.put(path, b"x" * 9)

    (found,) = _view(builder).latest_slices(ONE)
    assert found.base_bytes == 9
    with caplog.at_level(logging.WARNING):
        assert max_commit_times(builder.storage, paths=[path]) == {path: None}
    assert f"read from Parquet only, not from 1 files such as {path}" in caplog.text


def test_base_files_of_an_unknown_format_are_refused_by_name(base_path: str) -> None:
    """Hudi 1.2 can write Lance: such files would be passed over, and every partition would seem to be empty."""
    builder = TableBuilder(base_path=base_path, settings={"hoodie.table.base.file.format": "LANCE"})

    with pytest.raises(UnsupportedTableError, match="format LANCE; expected one of PARQUET, ORC, HFILE"):
        builder.open()


def test_bootstrapped_table_is_refused_by_name(base_path: str) -> None:
    """The base files of a bootstrapped table may lack their rows, so that nothing about their bytes would be true."""
    builder = TableBuilder(base_path=base_path, settings={"hoodie.bootstrap.base.path": "s3://old/trips"})

    with pytest.raises(UnsupportedTableError, match=r"was bootstrapped from s3://old/trips .*write the rows to a new"):
        builder.open()
