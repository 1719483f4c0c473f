from __future__ import annotations

import json
import logging
import os
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError, InvalidSettingError, StorageError
from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice, LogFile
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.dating import Dating
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.statistics import (
    gather_statistics,
    newest_statistics,
    prune_statistics,
    write_statistics,
)
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.golden import golden_names, truth, unpack
from tests.unit.core.storage.builders import TableBuilder, at, parquet

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ONE, TWO = "day=2026-11-01", "day=2026-11-02"


@pytest.fixture(params=["file", "memory"])
def base_path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "trips") if request.param == "file" else f"memory://{tmp_path.name}/trips"


@pytest.fixture(params=[6, 9])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def full(builder: TableBuilder) -> TableStatistics:
    return gather_statistics(builder.open(), now=NOW)


def since(builder: TableBuilder, previous: TableStatistics) -> TableStatistics:
    """Gather since ``previous`` and check that a full gather says the same."""
    statistics = gather_statistics(builder.open(), now=NOW, previous=previous)
    assert statistics.partitions == full(builder).partitions
    return statistics


def dates(statistics: TableStatistics) -> dict[str, str]:
    return {row.partition_path: row.last_modified_instant for row in statistics.partitions}


# ------------------------------------------------------------------------------------------------ full


def test_row_sums_up_the_latest_slices(base_path: str, version: int) -> None:
    """Only the latest file of each file group counts, and sizes are in ascending order."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 300), ("f2-0", 100)]})
    builder.commit(at(2), {ONE: [("f1-0", 310)], TWO: [("f3-0", 50)]})
    statistics = gather_statistics(builder.open(), now=NOW, small_file_bytes=101)
    assert statistics.partitions == (
        PartitionStatistics(
            partition_path=ONE,
            last_modified_instant=at(2),
            total_bytes=410,
            file_group_count=2,
            log_file_count=0,
            log_file_bytes=0,
            base_file_bytes=(100, 310),
        ),
        PartitionStatistics(
            partition_path=TWO,
            last_modified_instant=at(2),
            total_bytes=50,
            file_group_count=1,
            log_file_count=0,
            log_file_bytes=0,
            base_file_bytes=(50,),
        ),
    )
    assert (statistics.gathered, statistics.reason) == ("full", "there are no earlier statistics")
    assert (statistics.as_of_instant, statistics.small_file_count) == (at(2), 2)
    assert statistics.gathered_at == "2026-11-30T12:00:00+00:00"


def test_table_without_partitions_is_one_row(base_path: str) -> None:
    """The files of a table without partitions lie at its base path, and its row has the empty path."""
    builder = TableBuilder(base_path=base_path, settings={"hoodie.table.partition.fields": ""})
    builder.commit(at(1), {"": [("f1-0", 10)]})
    assert dates(full(builder)) == {"": at(1)}


def test_empty_table_has_no_rows(base_path: str) -> None:
    """A table that nothing was written to yet has statistics without rows."""
    statistics = full(TableBuilder(base_path=base_path))
    assert (statistics.partitions, statistics.as_of_instant) == ((), "0" * 17)


def test_pending_compaction_counts_base_file_and_all_logs(base_path: str, version: int) -> None:
    """While a compaction is pending, a partition weighs what a reader of it reads."""
    builder = TableBuilder(base_path=base_path, version=version, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", 100)]})
    builder.commit(at(2), logs={ONE: [("f1-0", at(1), 7)]})
    operation = {
        "partitionPath": ONE,
        "fileId": "f1-0",
        "dataFilePath": f"f1-0_0-1-2_{at(1)}.parquet",
        "deltaFilePaths": [],
        "baseInstantTime": at(1),
    }
    plan = {"operations": [operation]}
    builder.pending(at(3), "compaction", plan)
    builder.commit(at(4), logs={ONE: [("f1-0", at(3), 5)]})
    (row,) = full(builder).partitions
    assert (row.total_bytes, row.log_file_count, row.log_file_bytes, row.file_group_count) == (112, 2, 12, 1)
    assert row.last_modified_instant == at(4)


@pytest.mark.parametrize(
    ("mode", "limit", "message"),
    [
        ("partial", 100, "mode 'partial' is unknown; expected one of auto, full, incremental"),
        ("full", 0, "small_file_bytes=0; expected at least 1"),
    ],
)
def test_settings_are_checked(mode: str, limit: int, message: str) -> None:
    """An unknown mode and a limit below one byte are refused before anything is read."""
    builder = TableBuilder(base_path="memory://settings/trips")
    with pytest.raises(InvalidSettingError, match=f"^{message}$"):
        gather_statistics(builder.open(), now=NOW, mode=mode, small_file_bytes=limit)


def test_instant_that_vanishes_meanwhile_is_worth_another_try(base_path: str) -> None:
    """The archiver may take a commit between listing and reading: with a fresh timeline nothing is wrong."""

    class Archived(HudiTable):
        def timeline(self) -> Timeline:
            listed = super().timeline()
            builder.archive(at(2))
            return listed

    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)], TWO: [("f2-0", 10)]})
    first = full(builder)
    builder.commit(at(2), replaced={ONE: ["f1-0"]}, operation="DELETE_PARTITION")
    for previous in (None, first):
        with pytest.raises(
            StorageError, match=rf"vanished while it was read.*{at(2)}_{at(2)}\.replacecommit.*try again"
        ):
            gather_statistics(Archived.open(base_path), now=NOW, previous=previous)
        builder.commit(at(2), replaced={ONE: ["f1-0"]}, operation="DELETE_PARTITION")


# ----------------------------------------------------------------------------------------- incremental


def test_only_touched_partitions_are_listed_again() -> None:
    """An incremental gather lists the timeline and the touched partitions, and nothing else."""
    builder = TableBuilder(base_path="memory://listed-again/trips")
    builder.commit(at(1), {f"day=2026-11-{day:02}": [("f1-0", 10)] for day in range(1, 21)})
    first = full(builder)
    builder.commit(at(2), {TWO: [("f1-0", 11)], "day=2026-12-01": [("f9-0", 5)]})
    table = builder.open()
    before = table.storage.requests.lists
    second = gather_statistics(table, now=NOW, previous=first)
    assert table.storage.requests.lists - before == 1 + 2
    assert second.partitions == full(builder).partitions
    assert (second.gathered, second.reason) == ("incremental", f"1 instants since {at(1)} touched 2 partitions")


def test_nothing_new_lists_no_partition() -> None:
    """Without a new instant the earlier rows are taken over after one listing of the timeline."""
    builder = TableBuilder(base_path="memory://nothing-new/trips")
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    first = full(builder)
    table = builder.open()
    before = table.storage.requests.lists
    second = gather_statistics(table, now=NOW, previous=first)
    assert table.storage.requests.lists - before == 1
    assert (second.partitions, second.reason) == (first.partitions, f"nothing new since {at(1)}")


def test_late_commit_is_caught(base_path: str, version: int) -> None:
    """A commit that was pending and completes after younger ones counts in the next gather."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.pending(at(2), "commit")
    builder.commit(at(3), {ONE: [("f1-0", 11)]}, completion=at(4))
    first = full(builder)
    builder.commit(at(2), {TWO: [("f2-0", 20)]}, completion=at(5))
    second = since(builder, first)
    assert (second.gathered, dates(second)) == ("incremental", {ONE: at(3), TWO: at(2)})


def test_pending_commit_that_turns_up_with_an_earlier_completion_is_caught(base_path: str) -> None:
    """The completion file of a commit may become visible after that of one which completed later."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.pending(at(2), "commit")
    builder.commit(at(3), {ONE: [("f1-0", 11)]}, completion=at(5))
    first = full(builder)
    builder.commit(at(2), {TWO: [("f2-0", 20)]}, completion=at(4))
    assert dates(since(builder, first)) == {ONE: at(3), TWO: at(2)}


@pytest.mark.parametrize("completion", [at(5), at(7)])
def test_commit_of_a_clock_that_is_behind_is_caught(base_path: str, version: int, completion: str) -> None:
    """A writer's clock may be behind another's, and an hour repeats when summer time ends."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)], TWO: [("f2-0", 20)]})
    builder.commit(at(6), {ONE: [("f1-0", 11)]})
    first = full(builder)
    builder.commit(at(4), {TWO: [("f2-0", 21)]}, completion=completion)
    second = since(builder, TableStatistics.from_json(first.to_json(), name="s.json"))
    assert (second.reason, dates(second)) == (
        f"1 instants since {at(6)} touched 1 partitions",
        {ONE: at(6), TWO: at(4)},
    )
    assert since(builder, second).reason == f"nothing new since {at(6)}"


def test_watermark_that_does_not_tell_what_it_saw_is_compared_with(base_path: str, version: int) -> None:
    """Statistics without the instants seen still tell what is new, by times and by what was pending."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.pending(at(2), "commit")
    builder.commit(at(3), {ONE: [("f1-0", 11)]}, completion=at(5))
    document = json.loads(json.dumps(full(builder).to_json()))
    del document["as_of"]["seen"]
    first = TableStatistics.from_json(document, name="s.json")
    builder.commit(at(2), {TWO: [("f2-0", 20)]}, completion=at(4))
    builder.commit(at(6), {ONE: [("f1-0", 12)]})
    second = since(builder, first)
    assert (second.reason, dates(second)) == (
        f"2 instants since {at(3)} touched 2 partitions",
        {ONE: at(6), TWO: at(2)},
    )


def test_one_directory_is_one_table_however_it_is_spelt(tmp_path: Path) -> None:
    """Statistics that were gathered by path serve a table that is given as a URL, and the other way round."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    table = HudiTable.open(f"file://{tmp_path}/trips/")
    assert gather_statistics(table, now=NOW, previous=full(builder)).gathered == "incremental"


def test_dropped_partition_drops_out(base_path: str, version: int) -> None:
    """A partition whose file groups are all replaced has no row, though its directory is still there."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)], TWO: [("f2-0", 20)]})
    first = full(builder)
    builder.commit(at(2), replaced={ONE: ["f1-0"]}, operation="DELETE_PARTITION")
    second = since(builder, first)
    assert (second.gathered, dates(second)) == ("incremental", {TWO: at(1)})


def test_rollback_of_a_commit_in_flight_lists_its_partitions(base_path: str, version: int) -> None:
    """Partitions that a rollback took files from are listed again."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.pending(at(2), "commit")
    first = full(builder)
    builder.archive(at(2))
    builder.rollback(at(3), of=at(2), partitions=[TWO])
    second = since(builder, first)
    assert (second.gathered, second.reason) == ("incremental", f"1 instants since {at(1)} touched 1 partitions")


def test_rollback_of_a_complete_commit_needs_a_full_gather(base_path: str, version: int) -> None:
    """A rolled back replace commit brings file groups back in partitions that the rollback does not name."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)], TWO: [("f2-0", 20)]})
    builder.commit(at(2), replaced={ONE: ["f1-0"]}, operation="DELETE_PARTITION")
    first = full(builder)
    assert dates(first) == {TWO: at(1)}
    builder.archive(at(2))
    builder.rollback(at(3), of=at(2))
    second = since(builder, first)
    assert dates(second) == {ONE: at(1), TWO: at(1)}
    assert second.gathered == "full"
    assert second.reason.endswith(f"rolled back {at(2)}, which was complete")


def test_restore_needs_a_full_gather(base_path: str) -> None:
    """After a restore everything is listed."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    first = full(builder)
    builder.instant(at(3), "restore", {"hoodieRestoreMetadata": {}})
    assert (
        since(builder, first).reason == f"instant {at(3)} (restore, completed) restored the table to an earlier state"
    )


def test_archived_history_needs_a_full_gather(base_path: str, version: int) -> None:
    """When the commits behind the watermark are archived, none that came after may be missing."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    first = full(builder)
    builder.commit(at(2), {TWO: [("f2-0", 10)]})
    builder.commit(at(3), {ONE: [("f1-0", 12)]})
    builder.archive(at(1))
    builder.archive(at(2))
    second = since(builder, first)
    assert second.reason == f"the active timeline starts at {at(3)} and no longer reaches back to {at(1)}"
    assert dates(second) == {ONE: at(3), TWO: at(2)}


def test_savepointed_commit_does_not_reach_back(base_path: str, version: int) -> None:
    """With ``hoodie.archive.beyond.savepoint`` an old commit stays while younger ones are archived."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.instant(at(1), "savepoint", {})
    builder.commit(at(2), {TWO: [("f2-0", 10)]})
    first = full(builder)
    builder.commit(at(3), {ONE: [("f1-0", 12)]})
    builder.commit(at(4), {TWO: [("f2-0", 13)]})
    assert since(builder, first).gathered == "incremental"
    builder.archive(at(2))
    builder.archive(at(3))
    second = since(builder, first)
    assert second.reason == f"the active timeline starts at {at(4)} and no longer reaches back to {at(2)}"
    assert dates(second) == {ONE: at(3), TWO: at(4)}


def test_young_table_with_a_savepoint_is_gathered_incrementally(base_path: str) -> None:
    """As long as every commit is savepointed, the first one is where the timeline starts."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.instant(at(1), "savepoint", {})
    assert since(builder, full(builder)).reason == f"nothing new since {at(1)}"


def test_pending_instant_that_is_gone_needs_older_history(base_path: str) -> None:
    """An instant that was pending and is gone may have completed and been archived."""
    builder = TableBuilder(base_path=base_path)
    builder.pending(at(1), "commit")
    builder.commit(at(2), {ONE: [("f1-0", 10)]})
    first = full(builder)
    builder.archive(at(1))
    builder.base_file(TWO, "f2-0", at(1), 20)
    assert f"no longer reaches back to {at(1)}" in since(builder, first).reason


def test_statistics_of_another_table_are_not_used(base_path: str) -> None:
    """Rows of another table, or of this one before an upgrade, are never taken over."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    first = full(builder)
    for foreign in (replace(first, base_path="/lake/other"), replace(first, table_version=8)):
        second = since(builder, foreign)
        assert second.gathered == "full"
        assert second.reason.startswith("the earlier statistics are of another table")


def test_instant_that_cannot_be_read_needs_a_full_gather(
    base_path: str, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A broken new commit does not say which partitions it touched, so all are listed, with a warning."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    first = full(builder)
    builder.commit(at(2), {TWO: [("f2-0", 20)]})
    done = f"_{at(2)}" if version >= 8 else ""
    builder.put(f"{builder.timeline_folder}/{at(2)}{done}.commit", b"{broken")
    second = since(builder, first)
    assert second.reason == f"instant {at(2)} (commit, completed) cannot be read"
    assert dates(second) == {ONE: at(1), TWO: at(2)}
    assert "cannot be decoded" in caplog.text


def test_full_can_be_asked_for(base_path: str) -> None:
    """The mode full lists everything although earlier statistics would do."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    second = gather_statistics(builder.open(), now=NOW, previous=full(builder), mode="full")
    assert (second.gathered, second.reason) == ("full", "it was asked for")


# -------------------------------------------------------------------------------------- last modified


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
    dating = Dating(table=table, timeline=table.timeline())
    assert dating.resolve({ONE: dating.clues(ONE, slices=(one,))}) == {ONE: at(30)}


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


# ------------------------------------------------------------------------------------------ documents


def test_statistics_are_kept_by_instant(base_path: str) -> None:
    """Written statistics read back equal, from a file that is named by their instant."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    statistics = full(builder)
    documents = DocumentStore(builder.storage)
    path = write_statistics(documents, statistics=statistics)
    assert path == f"{builder.storage.root}/.hoodie/.airflow_hudi_maint/statistics/{at(1)}.json"
    assert newest_statistics(documents) == statistics


def test_own_folder_is_no_partition_and_no_instant(base_path: str, version: int) -> None:
    """Statistics that were written change nothing about the table."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    first = full(builder)
    write_statistics(DocumentStore(builder.storage), statistics=first)
    assert full(builder) == first


def test_broken_statistics_are_skipped(base_path: str, caplog: pytest.LogCaptureFixture) -> None:
    """A broken newest file is named in a warning, and the one before is read."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    documents = DocumentStore(builder.storage)
    statistics = full(builder)
    write_statistics(documents, statistics=statistics)
    folder = ".hoodie/.airflow_hudi_maint/statistics"
    builder.put(f"{folder}/{at(8)}.json", b'{"kind": "statistics", "version": 1}')
    builder.put(f"{folder}/{at(9)}.json", b'{"kind": "stat')
    builder.put(f"{folder}/notes.json", b"{}")
    with caplog.at_level(logging.WARNING):
        assert newest_statistics(documents) == statistics
    assert f"{at(8)}.json" in caplog.text
    assert f"{at(9)}.json" in caplog.text


@pytest.mark.parametrize(
    "broken",
    [
        {"as_of": {"requested_time": None, "completion_time": None, "pending": []}},
        {"as_of": {"requested_time": at(9), "completion_time": 3, "pending": []}},
        {"as_of": {"requested_time": at(9), "completion_time": None, "pending": [1]}},
        {"as_of": {"requested_time": at(9), "completion_time": None, "pending": [], "seen": [None]}},
        {"as_of": []},
        {"partitions": [1]},
        {"partitions": None},
    ],
)
def test_statistics_of_wrong_types_are_broken(tmp_path: Path, broken: dict[str, object]) -> None:
    """A document that was written by hand is found out when it is read, not when its values are compared."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    document = {**full(builder).to_json(), **broken}
    with pytest.raises(CorruptTableError, match=r"s\.json is a broken statistics document"):
        TableStatistics.from_json(document, name="s.json")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("relative_path", None),
        ("last_modified_instant", 20261130100001000),
        ("total_bytes", "10"),
        ("file_groups", 1.0),
        ("log_files", None),
        ("log_bytes", True),
        ("data_file_bytes", [10, "20"]),
        ("data_file_bytes", 10),
    ],
)
def test_row_of_wrong_types_is_broken(tmp_path: Path, key: str, value: object) -> None:
    """The same for a row."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    document = json.loads(json.dumps(full(builder).to_json()))
    document["partitions"][0][key] = value
    with pytest.raises(CorruptTableError, match=r"s\.json is a broken statistics document"):
        TableStatistics.from_json(document, name="s.json")


def test_pruning_keeps_the_newest(base_path: str) -> None:
    """Old statistics go by count; the newest file and foreign files stay."""
    builder = TableBuilder(base_path=base_path)
    documents = DocumentStore(builder.storage)
    for second in range(5):
        documents.write("statistics", name=f"{at(second)}.json", document={})
    documents.write("statistics", name="notes.json", document={})
    assert prune_statistics(documents, keep=2) == (f"{at(0)}.json", f"{at(1)}.json", f"{at(2)}.json")
    assert documents.names("statistics") == (f"{at(3)}.json", f"{at(4)}.json", "notes.json")
    assert prune_statistics(documents) == ()
    with pytest.raises(InvalidSettingError, match="keep 0"):
        prune_statistics(documents, keep=0)


# --------------------------------------------------------------------------------------- golden tables


def _expected(name: str) -> dict[str, tuple[int, int, int, tuple[int, ...]]]:
    expected = {}
    for path, slices in truth(name)["partitions"].items():
        merged = slices["merged"]
        sizes = tuple(sorted(one["base_file"]["bytes"] for one in merged if one["base_file"]))
        logs = [log["bytes"] for one in merged for log in one["log_files"]]
        if merged:
            expected[path] = (sum(sizes) + sum(logs), len(merged), len(logs), sizes)
    return expected


@pytest.mark.parametrize("name", golden_names())
def test_statistics_equal_what_the_jvm_sees(name: str, tmp_path: Path) -> None:
    """Bytes, file groups and files of each partition are those of Hudi's own file-system view."""
    statistics = gather_statistics(HudiTable.open(str(unpack(name, tmp_path))), now=NOW)
    actual = {
        row.partition_path: (row.total_bytes, row.file_group_count, row.log_file_count, row.base_file_bytes)
        for row in statistics.partitions
    }
    assert actual == _expected(name)


_STAGES = (("plain", "clustered"), ("clustered", "pending"), ("plain", "pending"), ("young", "archived"))


def _earlier_stages() -> list[tuple[str, str]]:
    names = set(golden_names())
    tables = sorted({name.rpartition("_")[0] for name in names})
    pairs = [(f"{table}_{earlier}", f"{table}_{later}") for table in tables for earlier, later in _STAGES]
    return [pair for pair in pairs if names.issuperset(pair)]


@pytest.mark.parametrize(("earlier", "later"), _earlier_stages())
def test_incremental_equals_full_between_stages(earlier: str, later: str, tmp_path: Path) -> None:
    """From one stage of a real table to a later one, statistics since the first are those of a full gather."""
    first = gather_statistics(HudiTable.open(str(unpack(earlier, tmp_path))), now=NOW)
    table = HudiTable.open(str(unpack(later, tmp_path)))
    second = gather_statistics(table, now=NOW, previous=replace(first, base_path=table.base_path))
    assert second.gathered == ("full" if later.endswith("_archived") else "incremental")
    assert second.partitions == gather_statistics(table, now=NOW).partitions


def test_memory_does_not_grow_with_commits(tmp_path: Path) -> None:
    """A full gather of a table with logs of version 6 decodes commits a few at a time and keeps none."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"), version=6, merge_on_read=True)
    builder.commit(at(0), {f"day={day}": [("f1-0", 1)] for day in range(3)})
    for second in range(1, 50):
        stats = [{"fileId": f"f{n}-0", "path": f"day=1/.f{n}-0_{at(0)}.log.1_0-1-{second}"} for n in range(500)]
        builder.instant(
            at(second), "deltacommit", {"partitionToWriteStats": {"day=1": stats}, "operationType": "UPSERT"}
        )
    builder.log_file("day=2", "f1-0", instant=at(0), base_instant=at(0), size=3)
    table = builder.open()
    tracemalloc.start()
    statistics = gather_statistics(table, now=NOW)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert dates(statistics)["day=2"] == at(0)
    assert peak < 16 * 1024 * 1024


def test_document_is_the_documented_one(tmp_path: Path) -> None:
    """The keys of the JSON are those that docs/statistics.md shows."""
    shown = (Path(__file__).parents[4] / "docs" / "statistics.md").read_text(encoding="utf-8")
    example = json.loads(shown.partition("```json\n")[2].partition("```")[0])
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(2), {"day=2026-11-01": [("f1-0", 100), ("f2-0", 310)]})
    actual = full(builder).to_json()
    assert list(actual) == list(example)
    assert list(actual["as_of"]) == list(example["as_of"])  # type: ignore[arg-type]
    assert actual["totals"] == example["totals"]
    assert actual["partitions"] == example["partitions"]
