"""When the data of a partition was last changed."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice, LogFile
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.storage.dating import Dating
from airflow_hudi_maint.core.storage.latest_files import LatestFiles
from airflow_hudi_maint.core.storage.statistics import (
    gather_statistics,
)
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.unit.core.storage.builders import TableBuilder, at, parquet
from tests.unit.core.storage.gathering import NOW, ONE, TWO, dates, full, since


def test_clustering_does_not_count_as_a_modification(base_path: str, version: int) -> None:
    """A clustered partition keeps the instant of its last write while that is active."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)], TWO: [("f9-0", 10)]})
    builder.commit(at(2), {ONE: [("f2-0", 10)]})
    first = full(builder)
    builder.commit(at(3), {ONE: [("f3-0", 15)]}, replaced={ONE: ["f1-0", "f2-0"]}, operation="CLUSTER")
    second = since(builder, first)
    assert (second.gathered, dates(second)) == ("incremental", {ONE: at(2), TWO: at(1)})
    builder.commit(at(4), {ONE: [("f4-0", 15)]})
    assert dates(since(builder, second)) == {ONE: at(4), TWO: at(1)}


def test_delete_before_clustering_counts(base_path: str) -> None:
    """A delete leaves no row with its instant, but it changed data: the commit says so, not the footer."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.commit(at(2), {ONE: [("f1-0", 9)]}, operation="DELETE")
    first = full(builder)
    builder.commit(at(3), {ONE: [("f3-0", parquet([at(1)]))]}, replaced={ONE: ["f1-0"]}, operation="CLUSTER")
    assert dates(since(builder, first)) == {ONE: at(2)}


def test_footers_date_a_clustered_partition_whose_writes_are_archived(base_path: str, version: int) -> None:
    """Without active writes the rows' own commit times tell when the data changed last."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(
        at(3), {ONE: [("f3-0", parquet([at(1), at(2), at(1)]))]}, replaced={ONE: ["f1-0"]}, operation="CLUSTER"
    )
    builder.commit(at(4), {TWO: [("f4-0", 15)]})
    assert dates(full(builder)) == {ONE: at(2), TWO: at(4)}


def test_empty_file_of_a_completed_commit_is_broken(base_path: str, version: int) -> None:
    """Read as a record it would say that the commit touched nothing."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    first = full(builder)
    builder.commit(at(2), {TWO: [("f2-0", 20)]})
    done = f"_{at(2)}" if version >= 8 else ""
    builder.put(f"{builder.timeline_folder}/{at(2)}{done}.commit", b"")
    second = since(builder, first)
    assert second.reason == f"instant {at(2)} (commit, completed) cannot be read"
    assert dates(second) == {ONE: at(1), TWO: at(2)}
    table = builder.open()
    with pytest.raises(CorruptTableError, match=rf"{at(2)}{done}\.commit is an empty file of a completed instant"):
        table.commit_metadata_of(table.timeline().completed)


@pytest.mark.parametrize("content", [b"no parquet at all", parquet([], extra={})], ids=["broken", "no rows"])
def test_footer_that_does_not_tell_keeps_the_younger_date(base_path: str, content: bytes) -> None:
    """A file that cannot be dated counts by its own instant: too young a date keeps data."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(3), {ONE: [("f3-0", content)]}, replaced={ONE: ["f1-0"]}, operation="CLUSTER")
    assert dates(full(builder)) == {ONE: at(3)}


def test_earlier_statistics_date_what_is_archived(base_path: str) -> None:
    """When the clustering itself is archived, earlier statistics still know that it changed nothing."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.commit(at(2), {ONE: [("f2-0", 15)]}, replaced={ONE: ["f1-0"]}, operation="CLUSTER")
    first = full(builder)
    assert dates(first) == {ONE: at(1)}
    for instant in (at(1), at(2)):
        builder.archive(instant)
    builder.remove(f"{ONE}/f1-0_0-1-2_{at(1)}.parquet")
    builder.commit(at(5), {TWO: [("f5-0", 15)]})
    second = gather_statistics(builder.open(), now=NOW, previous=first)
    assert (second.gathered, dates(second)) == ("full", {ONE: at(1), TWO: at(5)})


def test_commit_that_was_pending_is_not_known_to_earlier_statistics(base_path: str, version: int) -> None:
    """A commit that completes after statistics and is archived before the next counts, though it is older than they."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.pending(at(2), "commit")
    builder.commit(at(3), {TWO: [("f2-0", 10)]})
    first = full(builder)
    builder.commit(at(2), {ONE: [("f1-0", 11)]}, completion=at(4))
    builder.commit(at(5), {TWO: [("f2-0", 11)]})
    for instant in (at(1), at(2), at(3)):
        builder.archive(instant)
    second = gather_statistics(builder.open(), now=NOW, previous=first)
    assert (second.gathered, dates(second)) == ("full", {ONE: at(2), TWO: at(5)})


@pytest.fixture
def updated_and_archived(tmp_path: Path) -> tuple[TableBuilder, TableStatistics]:
    """A merge-on-read table of version 6 whose delta commit of second 20 is archived, and its statistics of before."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"), version=6, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", 100)], TWO: [("f2-0", 100)]})
    first = full(builder)
    builder.commit(at(20), logs={ONE: [("f1-0", at(1), 50)]})
    builder.commit(at(30), {"day=2026-11-03": [("f3-0", 100)]})
    builder.commit(at(40), {"day=2026-11-03": [("f3-0", 110)]})
    assert dates(full(builder))[ONE] == at(20)
    builder.archive(at(1))
    builder.archive(at(20))
    return builder, first


def modify_log(builder: TableBuilder, *, when: datetime) -> None:
    (log,) = Path(builder.base_path, ONE).glob(".f1-0_*.log.*")
    os.utime(log, (when.timestamp(), when.timestamp()))


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        pytest.param(datetime(2026, 11, 30, 10, 0, 21, tzinfo=UTC), at(21), id="by the file's time"),
        pytest.param(datetime(2026, 11, 30, 11, tzinfo=UTC), at(30), id="by the start of the timeline"),
    ],
)
def test_log_file_whose_delta_commit_is_archived_counts(
    updated_and_archived: tuple[TableBuilder, TableStatistics], when: datetime, expected: str
) -> None:
    """Neither the name nor an active commit tells of the update: the log file's time does, and being archived does."""
    builder, first = updated_and_archived
    modify_log(builder, when=when)
    for previous in (None, first):
        statistics = gather_statistics(builder.open(), now=NOW, previous=previous)
        assert dates(statistics) == {ONE: expected, TWO: at(1), "day=2026-11-03": at(40)}


def test_time_of_a_log_file_is_told_in_the_zone_of_the_table(
    updated_and_archived: tuple[TableBuilder, TableStatistics],
) -> None:
    """Instants are stamped in local time: a file of 9 h 0 min 22 s UTC is one of 10 h 0 min 22 s in Berlin."""
    builder, _ = updated_and_archived
    properties = builder.storage.read_bytes(".hoodie/hoodie.properties")
    builder.put(".hoodie/hoodie.properties", properties.replace(b"timezone=UTC", b"timezone=LOCAL"))
    modify_log(builder, when=datetime(2026, 11, 30, 9, 0, 22, tzinfo=UTC))
    table = HudiTable.open(builder.base_path, local_zone=ZoneInfo("Europe/Berlin"))
    assert dates(gather_statistics(table, now=NOW))[ONE] == at(22)


def test_log_file_without_a_time_counts_by_the_start_of_the_timeline(
    updated_and_archived: tuple[TableBuilder, TableStatistics],
) -> None:
    """Not every storage tells when a file was written."""
    builder, _ = updated_and_archived
    table = builder.open()
    log = LogFile(name="l", file_id="f1-0", instant=at(1), version=1, write_token="", bytes=50)
    base = BaseFile(name="b", file_id="f1-0", instant=at(1), bytes=100)
    one = FileSlice(partition_path=ONE, file_id="f1-0", base_instant=at(1), base_file=base, log_files=(log,))
    files = LatestFiles.of([one])
    assert files is not None
    dating = Dating(table=table, timeline=table.timeline())
    assert dating.resolve({ONE: dating.clues(ONE, files=files)}) == {ONE: at(30)}


def test_log_file_counts_as_a_modification(base_path: str, version: int) -> None:
    """An update that only wrote a log file is a modification, also where its name carries the base instant."""
    builder = TableBuilder(base_path=base_path, version=version, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", 10)], TWO: [("f2-0", 10)]})
    first = full(builder)
    builder.commit(at(2), logs={ONE: [("f1-0", at(1), 5)]})
    second = since(builder, first)
    assert dates(second) == {ONE: at(2), TWO: at(1)}
    builder.commit(at(3), logs={ONE: [("f1-0", at(1), 5)]})
    assert dates(since(builder, second)) == {ONE: at(3), TWO: at(1)}


def test_compaction_does_not_count_as_a_modification(base_path: str, version: int) -> None:
    """The base file of a compaction keeps the instant of the last delta commit."""
    builder = TableBuilder(base_path=base_path, version=version, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.commit(at(2), logs={ONE: [("f1-0", at(1), 5)]})
    first = full(builder)
    builder.commit(at(3), {ONE: [("f1-0", 12)]}, action="commit", operation="COMPACT")
    second = since(builder, first)
    assert dates(second) == {ONE: at(2)}
    builder.commit(at(4), logs={ONE: [("f1-0", at(3), 5)]})
    assert dates(since(builder, second)) == {ONE: at(4)}


def test_commit_on_a_merge_on_read_table_may_be_a_write(base_path: str) -> None:
    """A table that was copy-on-write once has commits that are no compactions."""
    builder = TableBuilder(base_path=base_path, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", 10)]}, action="commit", operation="UPSERT")
    assert dates(full(builder)) == {ONE: at(1)}


def test_rolled_back_write_is_forgotten(base_path: str, version: int) -> None:
    """After the rollback of a write, a clustered partition goes back to the write before."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.commit(at(2), {ONE: [("f2-0", 10)]}, replaced={ONE: ["f1-0"]}, operation="CLUSTER")
    builder.commit(at(3), {ONE: [("f2-0", 11)]})
    first = full(builder)
    assert dates(first) == {ONE: at(3)}
    builder.archive(at(3))
    builder.remove(f"{ONE}/f2-0_0-1-2_{at(3)}.parquet")
    builder.rollback(at(4), of=at(3), partitions=[ONE])
    assert dates(since(builder, first)) == {ONE: at(1)}


def test_commit_that_cannot_be_read_keeps_the_younger_date(base_path: str) -> None:
    """A broken commit may have written the partition that is being dated: it counts."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.commit(at(2), {TWO: [("f2-0", 10)]})
    builder.commit(at(3), {ONE: [("f3-0", 15)]}, replaced={ONE: ["f1-0"]}, operation="CLUSTER")
    builder.put(f".hoodie/timeline/{at(2)}_{at(2)}.commit", b"Obj\x01broken")
    assert dates(full(builder)) == {ONE: at(2), TWO: at(2)}


def test_full_gather_opens_no_commit_that_it_does_not_need() -> None:
    """Names date a plain copy-on-write table: no commit is opened, however many there are."""
    builder = TableBuilder(base_path="memory://unopened/trips")
    for second in range(40):
        builder.commit(at(second), {ONE: [("f1-0", 10)]})
    table = builder.open()
    before = table.storage.requests.reads
    gather_statistics(table, now=NOW)
    assert table.storage.requests.reads == before


def test_log_compaction_does_not_count_as_a_modification(base_path: str, version: int) -> None:
    """It merges log blocks of a slice into one more log file, and completes as a delta commit that changed no row."""
    builder = TableBuilder(base_path=base_path, version=version, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", 10)], TWO: [("f2-0", 10)]})
    builder.commit(at(2), logs={ONE: [("f1-0", at(1), 3)]})
    first = full(builder)
    builder.pending(at(3), "logcompaction")
    builder.commit(at(3), logs={ONE: [("f1-0", at(1), 3)]}, operation="LOG_COMPACT")
    second = since(builder, first)
    assert (second.gathered, dates(second)) == ("incremental", {ONE: at(2), TWO: at(1)})


def test_archived_log_compaction_that_earlier_statistics_saw_does_not_count(base_path: str) -> None:
    """Once archived it looks like any write; statistics that saw it know better."""
    builder = TableBuilder(base_path=base_path, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.commit(at(2), logs={ONE: [("f1-0", at(1), 3)]})
    builder.pending(at(3), "logcompaction")
    builder.commit(at(3), logs={ONE: [("f1-0", at(1), 3)]}, operation="LOG_COMPACT")
    builder.commit(at(4), {TWO: [("f2-0", 10)]})
    first = full(builder)
    builder.archive(at(1))
    builder.archive(at(2))
    builder.archive(at(3))
    table = builder.open()
    assert dates(gather_statistics(table, now=NOW, previous=first, mode="full")) == {ONE: at(2), TWO: at(4)}
