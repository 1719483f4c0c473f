"""What the next insert's file sizes depend on, read from tables that Hudi wrote."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.storage.copied_files import copied_files
from airflow_hudi_maint.core.storage.sizing import commit_sizes, partition_files, sampled_files
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.golden import unpack


@pytest.fixture
def pending(tmp_path: Path) -> HudiTable:
    """Merge-on-read, with a pending clustering and a pending compaction."""
    return HudiTable.open(str(unpack("v9_mor_pending", tmp_path)))


def test_delta_commits_tell_base_files_from_log_files(tmp_path: Path) -> None:
    """An upsert to log files writes bytes, and no base file that an estimate could rest on."""
    table = HudiTable.open(str(unpack("v9_mor_plain", tmp_path)))
    sizes = commit_sizes(table, table.timeline())
    assert {one.action for one in sizes} == {Action.DELTA_COMMIT}
    inserts = [one for one in sizes if one.operation == "INSERT"]
    upserts = [one for one in sizes if one.operation == "UPSERT"]
    assert all(len(one.base_files) == one.file_count for one in inserts)
    assert [one.base_files for one in upserts] == [()] * len(upserts)
    assert all(one.total_bytes > 0 for one in upserts)


def test_what_pending_plans_hold_is_told_by_kind(pending: HudiTable) -> None:
    view = pending.view(pending.timeline(), listing="directory")
    found = [partition_files(view, path) for path in view.partition_paths]
    assert sum(len(one.clustering) for one in found) > 0
    assert sum(len(one.compaction) for one in found) > 0
    for one in found:
        ids = {each.file_id for each in one.slices}
        assert one.clustering | one.compaction <= ids
        # Replaced file groups lie there until they are cleaned, and stretch the table that decides on the order.
        assert ids <= set(one.listing_order)
        assert one.group_count == one.base_group_count == len(one.listing_order)


def test_a_partition_that_is_not_there_has_no_files(pending: HudiTable) -> None:
    view = pending.view(pending.timeline(), partitions=["day=2030-01-01"])
    assert partition_files(view, "day=2030-01-01").slices == ()


def test_footers_tell_rows_and_filter_and_a_broken_one_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = HudiTable.open(str(unpack("v9_cow_plain", tmp_path)))
    view = table.view(table.timeline(), listing="directory")
    slices = [one for path in view.partition_paths for one in view.latest_slices(path)]
    whole = sampled_files(table, slices)
    assert len(whole) == len(slices)
    assert all(0 < one.filter_bytes < one.file_bytes and one.records > 0 for one in whole)
    broken = slices[0]
    assert broken.base_file
    (Path(table.base_path) / broken.partition_path / broken.base_file.name).write_bytes(b"x")
    with caplog.at_level(logging.WARNING):
        assert len(sampled_files(table, slices)) == len(slices) - 1
        path = f"{broken.partition_path}/{broken.base_file.name}"
        assert copied_files(table.storage, paths=[path]) == (None,)
    assert "no Parquet file that can be read" in caplog.text


def test_files_of_one_writer_have_one_schema_and_one_kind_of_filter(tmp_path: Path) -> None:
    """The schema is compared as text; simple filters, as these are, name no type."""
    table = HudiTable.open(str(unpack("v9_cow_plain", tmp_path)))
    view = table.view(table.timeline(), listing="directory")
    paths = [
        f"{path}/{one.base_file.name}"
        for path in view.partition_paths
        for one in view.latest_slices(path)
        if one.base_file
    ]
    found = copied_files(table.storage, paths=paths)
    assert len({(one.schema, one.filter_type) for one in found if one}) == 1
    assert all(one is not None and one.filter_type == "untyped" and one.row_group_bytes for one in found)
