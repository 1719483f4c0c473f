"""Partition statistics: what a full gather sums up, how they are kept, and that they equal what the JVM sees."""

from __future__ import annotations

import json
import logging
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError, InvalidSettingError, StorageError
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.statistics import (
    gather_statistics,
    newest_statistics,
    prune_statistics,
    write_statistics,
)
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.golden import golden_names, truth, unpack
from tests.unit.core.storage.builders import TableBuilder, at
from tests.unit.core.storage.gathering import NOW, ONE, TWO, dates, full


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
            last_instant=at(2),
            oldest_base_instant=at(1),
            newest_base_instant=at(2),
        ),
        PartitionStatistics(
            partition_path=TWO,
            last_modified_instant=at(2),
            total_bytes=50,
            file_group_count=1,
            log_file_count=0,
            log_file_bytes=0,
            base_file_bytes=(50,),
            last_instant=at(2),
            oldest_base_instant=at(2),
            newest_base_instant=at(2),
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
    document["partitions"][key] = [value]
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
    assert second.gathered == "incremental", second.reason
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
    assert {key: actual[key] for key in ("partitions", "file_bytes", "skew")} == {
        key: example[key] for key in ("partitions", "file_bytes", "skew")
    }
