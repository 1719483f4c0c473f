"""Clusterings and compactions that are archived, and change no date."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.storage.statistics import gather_statistics
from tests.unit.core.storage.archiving import Archiver
from tests.unit.core.storage.builders import TableBuilder, at, parquet
from tests.unit.core.storage.gathering import NOW, ONE, TWO, dates, full, since

if TYPE_CHECKING:
    import pytest


def _clustered(base_path: str, version: int, *, archived: Sequence[int]) -> TableBuilder:
    """One partition that was written and clustered, another that is written on; the instants at ``archived`` are so."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", parquet([at(1)]))]})
    builder.commit(at(2), {ONE: [("g1-0", parquet([at(1)]))]}, replaced={ONE: ["f1-0"]}, operation="CLUSTER")
    builder.remove(f"{ONE}/f1-0_0-1-2_{at(1)}.parquet")
    builder.commit(at(3), {TWO: [("f2-0", parquet([at(3)]))]})
    builder.commit(at(4), {TWO: [("f2-0", parquet([at(4)]))]})
    Archiver(builder=builder).archive(*map(at, archived))
    return builder


def test_footers_date_what_an_archived_clustering_wrote(base_path: str, version: int) -> None:
    """No earlier statistics are there, and the archive tells that its file only holds older rows."""
    builder = _clustered(base_path, version, archived=(1, 2))
    assert {ONE: at(1), TWO: at(4)} == dates(full(builder))


def test_only_files_of_archived_clusterings_are_opened(base_path: str, version: int) -> None:
    """An archived write dates its files by their names."""
    builder = _clustered(base_path, version, archived=(1, 2, 3))
    table = builder.open()
    before = table.storage.requests.totals
    gather_statistics(table, now=NOW)
    asked = table.storage.requests.totals - before
    # The archive is one file, from version 8 with its version and its manifest; a footer's place asks for the size.
    assert asked.reads == (1 if version < 8 else 3) + (1 if table.storage.is_local else 2)


def test_incremental_gather_through_the_archive_dates_as_a_full_one(base_path: str, version: int) -> None:
    """A clustering since earlier statistics was archived before the next ones."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", parquet([at(1)]))]})
    first = full(builder)
    builder.commit(at(2), {ONE: [("g1-0", parquet([at(1)]))]}, replaced={ONE: ["f1-0"]}, operation="CLUSTER")
    builder.remove(f"{ONE}/f1-0_0-1-2_{at(1)}.parquet")
    builder.commit(at(3), {TWO: [("f2-0", parquet([at(3)]))]})
    Archiver(builder=builder).archive(at(1), at(2))
    second = since(builder, first)
    assert ("incremental", {ONE: at(1), TWO: at(3)}) == (second.gathered, dates(second))


def test_write_after_an_archived_clustering_decides(base_path: str, version: int) -> None:
    """Then neither the archive nor a footer is asked."""
    builder = _clustered(base_path, version, archived=(1, 2))
    builder.commit(at(5), {ONE: [("f3-0", b"no parquet")]})
    table = builder.open()
    before = table.storage.requests.totals
    assert {ONE: at(5), TWO: at(4)} == dates(gather_statistics(table, now=NOW))
    assert 0 == (table.storage.requests.totals - before).reads


def test_archived_compaction_does_not_count(base_path: str) -> None:
    """On a merge-on-read table it is an archived commit; the log files that it merged are cleaned."""
    builder = TableBuilder(base_path=base_path, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", parquet([at(1)]))]})
    builder.commit(at(2), {ONE: [("f1-0", parquet([at(1)]))]}, action="commit", operation="COMPACT")
    builder.commit(at(3), {TWO: [("f2-0", parquet([at(3)]))]})
    Archiver(builder=builder).archive(at(1), at(2))
    assert {ONE: at(1), TWO: at(3)} == dates(full(builder))


def test_archive_that_cannot_be_read_keeps_the_younger_date(
    base_path: str, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Too young a date keeps data; it is said once, not for each partition."""
    builder = _clustered(base_path, version, archived=(1, 2))
    folder = ".hoodie/archived" if version < 8 else ".hoodie/timeline/history"
    (name,) = [one.name for one in builder.open().archive_files()]
    builder.put(f"{folder}/{name}", b"broken")
    assert {ONE: at(2), TWO: at(4)} == dates(gather_statistics(builder.open(), now=NOW))
    assert 1 == caplog.text.count("The archive does not tell whether")
