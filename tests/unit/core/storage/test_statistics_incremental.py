"""Incremental statistics: what is listed again, and when only a full gather will do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.storage.statistics import (
    gather_statistics,
)
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.unit.core.storage.archiving import Archiver
from tests.unit.core.storage.builders import TableBuilder, at
from tests.unit.core.storage.gathering import NOW, ONE, TWO, dates, full, since


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
    assert (second.gathered, second.reason) == ("incremental", f"1 instant since {at(1)} touched 2 partitions")


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
        f"1 instant since {at(6)} touched 1 partition",
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
    assert (second.gathered, second.reason) == ("incremental", f"1 instant since {at(1)} touched 1 partition")


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
    """When the commits behind the watermark are gone and the archive lacks them, those after may be missing too."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    first = full(builder)
    builder.commit(at(2), {TWO: [("f2-0", 10)]})
    builder.commit(at(3), {ONE: [("f1-0", 12)]})
    builder.archive(at(1))
    builder.archive(at(2))
    second = since(builder, first)
    assert second.reason == (
        f"the active timeline starts at {at(3)} and no longer reaches back to {at(1)}, and the archive lacks {at(1)}"
    )
    assert dates(second) == {ONE: at(3), TWO: at(2)}


def test_archived_instants_are_gathered_incrementally(base_path: str, version: int) -> None:
    """What was archived since stands in the archive: only what it touched is listed, and nothing before is counted."""
    builder = TableBuilder(base_path=base_path, version=version)
    archiver = Archiver(builder=builder)
    builder.commit(at(1), {f"day=2026-10-{day:02}": [("f1-0", 10)] for day in range(1, 21)})
    builder.commit(at(2), {ONE: [("f1-0", 10)], TWO: [("f2-0", 20)]})
    archiver.archive(at(1))
    first = full(builder)
    builder.commit(at(3), {TWO: [("f2-0", 21)]})
    builder.commit(at(4), {TWO: [("f2-0", 22), ("f3-0", 5)]})
    builder.commit(at(5), replaced={ONE: ["f1-0"]}, operation="DELETE_PARTITION")
    archiver.archive(at(2), at(3))
    archiver.archive(at(4))
    table = builder.open()
    second = gather_statistics(table, now=NOW, previous=first)
    assert second.partitions == full(builder).partitions
    assert second.reason == f"3 instants since {at(2)}, 2 of them archived, touched 2 partitions"
    archive_lists = 1 if version < 8 else 0
    assert table.storage.requests.lists == 1 + 2 + archive_lists
    assert since(builder, second).reason == f"nothing new since {at(5)}"


def test_archived_commit_that_was_pending_is_caught(base_path: str, version: int) -> None:
    """A commit that finishes late and is archived at once is older than all that was seen."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.pending(at(1), "commit")
    builder.commit(at(2), {ONE: [("f1-0", 10)]})
    first = full(builder)
    builder.commit(at(1), {TWO: [("f2-0", 20)]}, completion=at(3))
    builder.commit(at(4), {ONE: [("f1-0", 11)]})
    Archiver(builder=builder).archive(at(1), at(2))
    second = since(builder, first)
    assert (second.gathered, dates(second)) == ("incremental", {ONE: at(4), TWO: at(1)})


def test_archived_rollback_lists_its_partitions(base_path: str, version: int) -> None:
    """A write that was in flight, and whose rollback is archived, was undone: it is not missing."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.pending(at(2), "commit")
    first = full(builder)
    builder.archive(at(2))
    builder.rollback(at(3), of=at(2), partitions=[TWO])
    builder.commit(at(4), {ONE: [("f1-0", 11)]})
    Archiver(builder=builder).archive(at(1), at(3))
    second = since(builder, first)
    assert second.reason == f"2 instants since {at(1)}, 1 of them archived, touched 2 partitions"


def test_broken_archive_needs_a_full_gather(base_path: str, version: int) -> None:
    """The reason names the file of the archive that cannot be read."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    first = full(builder)
    builder.commit(at(2), {TWO: [("f2-0", 20)]})
    archiver = Archiver(builder=builder)
    name = archiver.archive(at(1))
    builder.put(f"{archiver.folder}/{name}", b"broken")
    second = since(builder, first)
    assert second.gathered == "full"
    assert f"no longer reaches back to {at(1)}, and the archive cannot be read: " in second.reason
    assert name in second.reason


def test_instant_that_is_active_and_archived_counts_once(base_path: str, version: int) -> None:
    """The archiver writes the archive first and deletes afterwards; one that died in between leaves both."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    first = full(builder)
    builder.commit(at(2), {TWO: [("f2-0", 20)]})
    active = {
        name: builder.storage.read_bytes(f"{builder.timeline_folder}/{name}")
        for name in builder.storage.names(builder.timeline_folder)
        if name.startswith(at(2))
    }
    Archiver(builder=builder).archive(at(1), at(2))
    for name, data in active.items():
        builder.put(f"{builder.timeline_folder}/{name}", data)
    assert since(builder, first).reason == f"1 instant since {at(1)} touched 1 partition"


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
    assert second.reason.startswith(f"the active timeline starts at {at(4)} and no longer reaches back to {at(2)}")
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
