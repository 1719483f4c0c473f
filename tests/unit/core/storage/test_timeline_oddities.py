"""Timelines that are sound and easily read wrongly: shared times, late completions, rollbacks that are archived."""

from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.file_slice import FileSlice
from tests.unit.core.storage.archiving import Archiver
from tests.unit.core.storage.builders import TableBuilder, at
from tests.unit.core.storage.gathering import ONE, TWO, full, since


def latest(builder: TableBuilder) -> FileSlice:
    """The one slice of the first partition."""
    table = builder.open()
    (only,) = table.view(table.timeline()).latest_slices(ONE)
    return only


def test_savepoint_of_a_delta_commit_leaves_its_log_file_where_it_was(base_path: str) -> None:
    """A savepoint has the requested time of the write that it keeps, and a later completion of its own."""
    builder = TableBuilder(base_path=base_path, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", 100)]})
    builder.commit(at(2), logs={ONE: [("f1-0", at(1), 10)]}, completion=at(3))
    builder.commit(at(4), {ONE: [("f1-0", 120)]}, action="commit", operation="COMPACT", completion=at(5))
    builder.instant(at(2), "savepoint", {}, completion=at(6))
    assert (at(4), 0) == (latest(builder).base_instant, latest(builder).log_bytes)


def test_file_of_a_write_in_flight_is_no_part_of_the_table_though_a_clean_has_its_time(base_path: str) -> None:
    """Two writers may begin in the same millisecond."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 100)]})
    builder.instant(at(2), "clean", {})
    builder.pending(at(2), "commit")
    builder.base_file(ONE, "f1-0", at(2), 120)
    assert at(1) == latest(builder).base_instant


def test_late_commit_is_caught_though_a_clean_of_its_time_was_seen(base_path: str, version: int) -> None:
    """Pending instants are told apart from the completed ones that share their time."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 100)]})
    builder.instant(at(2), "clean", {})
    builder.pending(at(2), "commit")
    first = full(builder)
    builder.commit(at(2), {TWO: [("f2-0", 20)]}, completion=at(3))
    assert "incremental" == since(builder, first).gathered


@pytest.mark.parametrize("is_compaction_archived", [True, False])
def test_log_file_that_completed_after_a_compaction_was_planned_lies_on_it(
    base_path: str, *, is_compaction_archived: bool
) -> None:
    """Its delta commit began before the compaction and ended after it, as the archive tells."""
    builder = TableBuilder(base_path=base_path, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", 100)]})
    builder.commit(at(2), logs={ONE: [("f1-0", at(1), 10)]}, completion=at(5))
    builder.commit(at(3), {ONE: [("f1-0", 120)]}, action="commit", operation="COMPACT", completion=at(4))
    builder.commit(at(10), {TWO: [("f2-0", 20)]})
    archived = [at(1), at(2), at(3)] if is_compaction_archived else [at(1), at(2)]
    Archiver(builder=builder).archive(*archived)
    assert (at(3), 10) == (latest(builder).base_instant, latest(builder).log_bytes)


def test_commit_that_was_rolled_back_is_missed_though_the_rollback_is_archived(base_path: str, version: int) -> None:
    """Hudi archives rollbacks by their own number on table version 6, whatever commits are active."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.commit(at(2), {TWO: [("f2-0", 20)]})
    builder.commit(at(3), {ONE: [("f1-0", 30)]})
    first = full(builder)
    builder.remove(f"{ONE}/f1-0_0-1-2_{at(3)}.parquet")
    builder.archive(at(3))
    builder.rollback(at(4), of=at(3), partitions=[ONE])
    Archiver(builder=builder).archive(at(4))
    builder.commit(at(5), {TWO: [("f2-0", 21)]})
    assert f"rolled back {at(3)}, which was complete" in since(builder, first).reason


def test_restore_says_why_instants_are_gone(base_path: str, version: int) -> None:
    """No archive is opened for them."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.commit(at(2), {ONE: [("f1-0", 20)]})
    first = full(builder)
    builder.archive(at(2))
    builder.remove(f"{ONE}/f1-0_0-1-2_{at(2)}.parquet")
    builder.instant(at(3), "restore", {})
    assert f"instant {at(3)} (restore, completed) restored the table" in since(builder, first).reason


def test_clean_that_is_archived_before_its_commits_needs_no_full_gather(base_path: str, version: int) -> None:
    """What is gone without a word is looked for in the archive."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.instant(at(2), "clean", {})
    first = full(builder)
    Archiver(builder=builder).archive(at(2))
    builder.commit(at(3), {TWO: [("f2-0", 20)]})
    assert f"1 instant since {at(2)} touched 1 partition" == since(builder, first).reason


def test_log_file_that_archived_rollbacks_made_longer_is_measured_again(base_path: str) -> None:
    """On version 6 a rollback appends to the log file of a failed write; nobody ever saw that write here."""
    builder = TableBuilder(base_path=base_path, version=6, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", 100)]})
    builder.commit(at(2), logs={ONE: [("f1-0", at(1), 10)]})
    first = full(builder)
    builder.put(f"{ONE}/.f1-0_{at(1)}.log.1_0-1-2", b"l" * 25)
    for second, of in ((12, 11), (14, 13), (16, 15)):
        builder.rollback(at(second), of=at(of), partitions=[ONE] if of == 11 else [])
    Archiver(builder=builder).archive(at(12))
    assert f"3 instants since {at(2)}, 1 of them archived, touched 1 partition" == since(builder, first).reason


@pytest.mark.parametrize("action", ["compaction", "logcompaction"])
def test_plan_of_which_a_dead_writer_left_an_empty_file_is_an_error(base_path: str, action: str) -> None:
    """Taken for a plan without file groups, it would hide the newest log files of those that it holds."""
    builder = TableBuilder(base_path=base_path, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", 100)]})
    builder.pending(at(2), action)
    with pytest.raises(CorruptTableError, match=rf"{at(2)}\.{action}\.requested is an empty file"):
        latest(builder)
