"""Orphans: what lies in a partition and is no part of the table, of its past, or of a write in progress."""

from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.orphan import OrphanFile, OrphanReason
from airflow_hudi_maint.core.storage.table import TableView
from tests.unit.core.storage.builders import TableBuilder, at
from tests.unit.core.storage.gathering import ONE, TWO


def _view(builder: TableBuilder) -> TableView:
    table = builder.open()
    return table.view(table.timeline(), listing="directory")


def _names(builder: TableBuilder) -> list[str]:
    return [one.name for one in _view(builder).orphans(ONE)]


def test_file_whose_instant_is_nowhere_is_an_orphan(base_path: str, version: int) -> None:
    """A data file whose instant was rolled back is an orphan: it is listed apart, with its bytes and its instant."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    path = builder.base_file(ONE, "f2-0", at(2), 7)
    builder.rollback(at(3), of=at(2), partitions=[ONE])
    view = _view(builder)

    (found,) = view.orphans(ONE)
    assert found == OrphanFile(
        partition_path=ONE,
        name=path.rpartition("/")[2],
        bytes=7,
        modified_ns=found.modified_ns,
        reason=OrphanReason.UNKNOWN_INSTANT,
        instant=at(2),
    )
    assert [one.file_id for one in view.latest_slices(ONE)] == ["f1-0"]


def test_log_file_and_change_data_of_a_lost_write_are_orphans(base_path: str) -> None:
    """From version 8 a log file has its own instant in its name; so has a change-data file."""
    builder = TableBuilder(base_path=base_path, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    log = builder.log_file(ONE, "f1-0", instant=at(2), base_instant=at(1), size=5)
    builder.put(f"{log}.cdc", b"c")
    builder.commit(at(3), logs={ONE: [("f1-0", at(1), 5)]})

    assert _names(builder) == [log.rpartition("/")[2], f"{log.rpartition('/')[2]}.cdc"]


def test_stranger_is_an_orphan(base_path: str) -> None:
    """A name that no writer of Hudi's gives is an orphan, whatever the timeline says."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.put(f"{ONE}/part-00000.parquet", b"xyz")

    (found,) = _view(builder).orphans(ONE)
    assert (found.name, found.bytes, found.reason, found.instant) == (
        "part-00000.parquet",
        3,
        OrphanReason.UNKNOWN_NAME,
        None,
    )


def test_uncommitted_files_of_a_pending_write_are_none(base_path: str, version: int) -> None:
    """A write in progress looks like a dead one, and Hudi rolls both back by their instant: neither has orphans."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.pending(at(2), "commit")
    builder.base_file(ONE, "f2-0", at(2), 7)

    assert _names(builder) == []


def test_old_versions_replaced_and_archived_files_are_none(base_path: str, version: int) -> None:
    """What the cleaner will take is no orphan, and neither is a file older than the active timeline."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.base_file(ONE, "f0-0", at(1), 10)
    builder.commit(at(2), {ONE: [("f1-0", 10), ("f2-0", 10)]})
    builder.commit(at(3), {ONE: [("f1-0", 10)]})
    builder.commit(at(4), replaced={ONE: ["f2-0"]})

    assert _names(builder) == []


def test_write_that_began_after_the_timeline_was_read_has_none(base_path: str) -> None:
    """Files younger than all that the timeline has seen are left alone: their instant may be there by now."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]}, completion=at(3))
    builder.base_file(ONE, "f2-0", at(4), 7)
    builder.base_file(ONE, "f3-0", at(2), 7)

    assert _names(builder) == ["f3-0_0-1-2_20261130100002000.parquet"]


def test_what_belongs_to_partitions_and_to_hadoop_is_none(base_path: str) -> None:
    """Partition metafiles in any format and Hadoop's checksums are no orphans."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    for name in (".hoodie_partition_metadata.parquet", ".hoodie_partition_metadata.orc", ".f1-0.parquet.crc"):
        builder.put(f"{ONE}/{name}", b"m")

    assert _names(builder) == []


def test_orphans_need_a_directory_listing(base_path: str) -> None:
    """The metadata table does not know orphans, so that a view by it refuses rather than says there are none."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {TWO: [("f1-0", 10)]})
    seen = _view(builder)
    by_metadata = TableView(
        timeline=seen.timeline, plans=seen.plans, history=seen.history, listings=seen.listings, way="metadata"
    )

    with pytest.raises(InvalidSettingError, match="list the table by directory"):
        by_metadata.orphans(TWO)
