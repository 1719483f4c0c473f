"""Gathering while others gather, clean and write; directories of very many entries."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.entries import Entry, Listing
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.latest_files import LatestFilesReader
from airflow_hudi_maint.core.storage.statistics import (
    gather_statistics,
    newest_statistics,
    prune_statistics,
    write_statistics,
)
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.unit.core.storage.builders import TableBuilder, at
from tests.unit.core.storage.gathering import NOW, ONE, TWO, dates, full

_GATHER = """
import sys
from datetime import UTC, datetime
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.statistics import gather_statistics, prune_statistics, write_statistics
from airflow_hudi_maint.core.storage.table import HudiTable

table = HudiTable.open(sys.argv[1])
documents = DocumentStore(table.storage)
sys.stdin.read(1)
for second in range(20):
    statistics = gather_statistics(table, now=datetime(2026, 11, 30, 12, 0, second, tzinfo=UTC))
    write_statistics(documents, statistics=statistics)
    prune_statistics(documents, keep=1)
"""


def test_two_processes_at_once_leave_one_valid_file(tmp_path: Path) -> None:
    """Each writes a whole file of the same name, and no temporary one is left."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(1), {f"day={day}": [("f1-0", 10)] for day in range(50)})
    command = [sys.executable, "-c", _GATHER, builder.base_path]
    both = [subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    for one in both:
        assert one.stdin is not None
        one.stdin.write(b"x")
        one.stdin.flush()
    assert [(one.communicate(timeout=60)[1], one.returncode) for one in both] == [(b"", 0), (b"", 0)]
    documents = DocumentStore(builder.storage)
    assert [one.name for one in Path(documents.location, "statistics").iterdir()] == [f"{at(1)}.json"]
    newest = newest_statistics(documents)
    assert newest is not None
    assert newest.partitions == full(builder).partitions


def test_reader_beside_writers_and_pruners_always_finds_statistics(tmp_path: Path) -> None:
    """Threads that write and prune never leave a reader without a valid file."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    documents = DocumentStore(builder.storage)
    statistics = full(builder)
    write_statistics(documents, statistics=statistics)
    failures: list[BaseException] = []

    def write(seconds: range) -> None:
        try:
            for second in seconds:
                watermark = replace(statistics.watermark, requested_time=at(second))
                write_statistics(documents, statistics=replace(statistics, watermark=watermark))
                prune_statistics(documents)
        except BaseException as error:  # noqa: BLE001 a thread would swallow it
            failures.append(error)

    threads = [threading.Thread(target=write, args=(range(start, 60, 2),)) for start in (2, 3)]
    for thread in threads:
        thread.start()
    seen: list[TableStatistics | None] = []
    while any(thread.is_alive() for thread in threads):
        seen.append(newest_statistics(documents))
    for thread in threads:
        thread.join()
    assert failures == []
    assert all(one is not None and one.partitions == statistics.partitions for one in seen)
    assert documents.names("statistics")[-1] == f"{at(59)}.json"


class _Stale(Storage):
    """A storage whose first listing is older than what lies there."""

    def list(self, path: str) -> Listing:
        stale, self.stale = getattr(self, "stale", None), None
        return stale or super().list(path)


def test_statistics_that_were_pruned_meanwhile_are_looked_for_again(base_path: str) -> None:
    """Between listing and reading, another gatherer may write a newer file and delete every one that was listed."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    statistics = full(builder)
    storage = _Stale.open(base_path)
    write_statistics(DocumentStore(storage), statistics=statistics)
    storage.stale = [Entry(name=f"{at(0)}.json", is_directory=False, bytes=1, modified_ns=None)]  # type: ignore[attr-defined]
    assert newest_statistics(DocumentStore(storage)) == statistics


class _Cleaned(HudiTable):
    """A table all of whose partitions but the first are cleaned away while they are listed."""

    def _walk(self) -> Iterator[tuple[str, Listing]]:
        for number, (path, entries) in enumerate(super()._walk()):
            yield path, entries
            for other in sorted({ONE, TWO} - {path}) if not number else ():
                shutil.rmtree(f"{self.base_path}/{other}")


def test_partition_that_vanishes_while_it_is_listed_has_no_row(tmp_path: Path) -> None:
    """The cleaner removes what nobody reads any more, directory and all, between two listings of a gather."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(1), {ONE: [("f1-0", 10)], TWO: [("f1-0", 10)]})
    (row,) = gather_statistics(_Cleaned.open(builder.base_path), now=NOW).partitions
    assert Path(builder.base_path, row.partition_path).is_dir()
    assert (row.data_file_count, row.total_bytes) == (1, 10)


def test_touched_partition_that_is_gone_has_no_row(base_path: str) -> None:
    """A partition that a new commit touched may be removed before it is listed again."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    first = full(builder)
    builder.commit(at(2), {TWO: [("f2-0", 10)]})
    for entry in builder.storage.list(TWO):
        builder.remove(f"{TWO}/{entry.name}")
    if builder.storage.is_local:
        Path(builder.base_path, TWO).rmdir()
    assert dates(gather_statistics(builder.open(), now=NOW, previous=first)) == {ONE: at(1)}


def test_file_that_vanishes_while_it_is_listed_is_passed_over(tmp_path: Path) -> None:
    """A name whose file is gone when it is looked at (a dangling link stands for it here) is no file."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    Path(builder.base_path, ONE, f"f2-0_0-1-2_{at(1)}.parquet").symlink_to(tmp_path / "nowhere")
    (row,) = full(builder).partitions
    assert (row.data_file_count, row.total_bytes) == (1, 10)


def test_base_file_without_an_instant_counts_where_it_is_archived(base_path: str, version: int) -> None:
    """Older than the active timeline, its commit is archived; younger, it is what a dead writer left."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(5), {ONE: [("f1-0", 10)]})
    builder.base_file(ONE, "f2-0", at(3), 20)
    builder.base_file(ONE, "f3-0", at(7), 40)
    builder.base_file(TWO, "f4-0", at(7), 80)
    (row,) = full(builder).partitions
    assert (row.partition_path, row.total_bytes, row.oldest_base_instant) == (ONE, 30, at(3))


def test_memory_holds_one_partition_at_a_time(tmp_path: Path) -> None:
    """Listings of a table of 10,000 files are not held together: the peak is far below what they would take."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(1), {})
    for day in range(100):
        folder = tmp_path / "trips" / f"day={day}"
        folder.mkdir()
        (folder / ".hoodie_partition_metadata").touch()
        for number in range(100):
            (folder / f"f{number % 10}-0_{number}-1-2_{at(1)}.parquet").touch()
    table = builder.open()
    full(builder)
    tracemalloc.start()
    statistics = gather_statistics(table, now=NOW)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert statistics.data_file_count == 1000
    assert peak < 1024 * 1024


def test_directory_of_very_many_entries_takes_memory_for_its_listing_alone() -> None:
    """A hundred thousand versions of ten file groups: what is found is ten files, and little more is held meanwhile."""
    listing = [
        Entry(name=f"f{n % 10}-0_{n}-1-2_{at(1)}.parquet", is_directory=False, bytes=n, modified_ns=None)
        for n in range(100_000)
    ]
    builder = TableBuilder(base_path="memory://very-many/trips")
    builder.commit(at(1), {})
    table = builder.open()
    reader = LatestFilesReader(table.history(table.timeline(), plans=()))
    tracemalloc.start()
    files = reader.read(ONE, listing)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert files is not None
    assert len(files.bases) == 10
    assert peak < 256 * 1024
