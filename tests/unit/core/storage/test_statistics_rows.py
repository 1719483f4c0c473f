"""What a row tells beside bytes and files: instants, pending plans, and records where they are known exactly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics
from airflow_hudi_maint.core.storage import record_counts
from airflow_hudi_maint.core.storage.statistics import gather_statistics
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.golden import golden_names, truth, unpack
from tests.unit.core.storage.builders import TableBuilder, at, parquet
from tests.unit.core.storage.gathering import NOW, ONE, TWO, full, since


def rows(statistics: TableStatistics) -> Mapping[str, PartitionStatistics]:
    return statistics.by_path


def clustering_plan(*file_ids: str, partition: str) -> dict[str, object]:
    slices = [
        {"partitionPath": partition, "fileId": one, "dataFilePath": "x", "deltaFilePaths": []} for one in file_ids
    ]
    return {"clusteringPlan": {"inputGroups": [{"slices": slices, "numOutputFileGroups": 1}]}}


def test_clustering_is_the_last_instant_but_no_modification(base_path: str, version: int) -> None:
    """The last instant of any kind is the clustering, the last that changed data is the write before it."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)], TWO: [("f9-0", 10)]})
    first = full(builder)
    builder.commit(at(3), {ONE: [("f3-0", 15)]}, replaced={ONE: ["f1-0"]}, operation="CLUSTER")
    row = rows(since(builder, first))[ONE]
    assert (row.last_modified_instant, row.last_instant) == (at(1), at(3))
    assert (row.oldest_base_instant, row.newest_base_instant) == (at(3), at(3))


def test_delta_commit_is_the_last_instant(base_path: str, version: int) -> None:
    """Also where the name of its log file carries the base instant; base instants are those of base files."""
    builder = TableBuilder(base_path=base_path, version=version, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.commit(at(2), {ONE: [("f2-0", 10)]})
    first = full(builder)
    builder.commit(at(4), logs={ONE: [("f1-0", at(1), 5)]})
    row = rows(since(builder, first))[ONE]
    assert (row.last_instant, row.oldest_base_instant, row.newest_base_instant) == (at(4), at(1), at(2))


def test_partition_of_log_files_alone_has_no_base_instant(base_path: str) -> None:
    """Some indexes let Hudi insert into log files."""
    builder = TableBuilder(base_path=base_path, merge_on_read=True)
    builder.metafile(ONE)
    builder.commit(at(1), logs={ONE: [("f1-0", at(1), 5)]})
    (row,) = full(builder).partitions
    assert (row.last_instant, row.oldest_base_instant, row.newest_base_instant) == (at(1), None, None)


def test_plan_that_was_made_since_marks_partitions_that_nobody_touched(base_path: str, version: int) -> None:
    """A plan is no completed instant, so rows that are taken over are marked, and unmarked when it is gone."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)], TWO: [("f2-0", 10)]})
    first = full(builder)
    builder.pending(at(3), "replacecommit", clustering_plan("f1-0", partition=ONE))
    builder.pending(at(4), "replacecommit", clustering_plan("f7-0", partition=ONE))
    second = since(builder, first)
    assert (second.reason, rows(second)[ONE].pending_instant) == (f"nothing new since {at(1)}", at(3))
    assert rows(second)[TWO].pending_instant is None
    builder.archive(at(3))
    builder.archive(at(4))
    assert rows(gather_statistics(builder.open(), now=NOW, previous=second))[ONE].pending_instant is None


def test_records_are_counted_where_commits_and_footers_tell(base_path: str) -> None:
    """Commits tell of the files that they wrote, footers of files whose commits are archived or silent."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", parquet([at(1), at(1)]))], TWO: [("f2-0", parquet([at(1)]))]})
    builder.commit(at(2), {ONE: [("f3-0", 7)]})
    done = f"{builder.timeline_folder}/{at(2)}_{at(2)}.commit"
    content = json.loads(builder.storage.read_bytes(done))
    content["partitionToWriteStats"][ONE][0]["numWrites"] = 40
    builder.put(done, json.dumps(content).encode())
    found = {
        source: {
            row.partition_path: row.record_count
            for row in gather_statistics(builder.open(), now=NOW, record_source=source).partitions
        }
        for source in ("known", "commits", "footers")
    }
    assert found == {
        "known": {ONE: None, TWO: None},
        "commits": {ONE: None, TWO: None},
        "footers": {ONE: 42, TWO: 1},
    }


def test_file_that_does_not_tell_leaves_its_partition_uncounted(base_path: str) -> None:
    """Never an estimate: a footer that is broken, or a log file, leaves no count; the table then has none either."""
    builder = TableBuilder(base_path=base_path, merge_on_read=True)
    builder.commit(at(1), {ONE: [("f1-0", parquet([at(1)]))], TWO: [("f2-0", b"broken")], "day=3": [("f3-0", 1)]})
    builder.commit(at(2), logs={"day=3": [("f3-0", at(1), 5)]})
    statistics = gather_statistics(builder.open(), now=NOW, record_source="footers")
    assert [row.record_count for row in statistics.partitions] == [1, None, None]
    assert (statistics.record_count, statistics.totals()["records"]) == (None, None)


def test_known_records_stay_where_nothing_was_touched(base_path: str) -> None:
    """An incremental gather takes counts over, and does not guess at what was written since."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", parquet([at(1)] * 3))], TWO: [("f2-0", parquet([at(1)]))]})
    first = gather_statistics(builder.open(), now=NOW, record_source="footers")
    assert first.record_count == 4
    builder.commit(at(2), {TWO: [("f2-0", parquet([at(1), at(2)]))]})
    second = gather_statistics(builder.open(), now=NOW, previous=first)
    assert {path: row.record_count for path, row in rows(second).items()} == {ONE: 3, TWO: None}
    third = gather_statistics(builder.open(), now=NOW, previous=first, record_source="footers")
    assert {path: row.record_count for path, row in rows(third).items()} == {ONE: 3, TWO: 2}


@pytest.mark.parametrize("limit", ["FEW_COMMITS", "FEW_FILES"])
def test_many_commits_or_files_are_not_read_by_themselves(
    base_path: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading commits is for tables where it costs next to nothing; else only what is known is told."""
    builder = TableBuilder(base_path=base_path)
    for number in (1, 2, 3):
        builder.commit(at(number), {f"day=2026-11-0{number}": [(f"f{number}-0", 10)]})
    done = f"{builder.timeline_folder}/{at(1)}_{at(1)}.commit"
    content = json.loads(builder.storage.read_bytes(done))
    content["partitionToWriteStats"]["day=2026-11-01"][0]["numWrites"] = 40
    builder.put(done, json.dumps(content).encode())
    few = gather_statistics(builder.open(), now=NOW, record_source="auto")
    monkeypatch.setattr(record_counts, limit, 2)
    many = gather_statistics(builder.open(), now=NOW, record_source="auto")
    assert ([40, None, None], [None] * 3) == (
        [row.record_count for row in few.partitions],
        [row.record_count for row in many.partitions],
    )


def test_unknown_source_of_records_is_refused() -> None:
    """Before anything is read."""
    builder = TableBuilder(base_path="memory://records/trips")
    with pytest.raises(InvalidSettingError, match="record_source 'guess' is unknown; expected one of auto"):
        gather_statistics(builder.open(), now=NOW, record_source="guess")


@pytest.mark.parametrize("source", ["auto", "commits", "footers"])
@pytest.mark.parametrize("name", golden_names())
def test_records_are_those_that_spark_counts(name: str, source: str, tmp_path: Path) -> None:
    """Every count of records equals the rows that Spark reads; on copy-on-write tables footers tell all of them."""
    table = HudiTable.open(str(unpack(name, tmp_path)))
    statistics = gather_statistics(table, now=NOW, record_source=source)
    expected = truth(name)["rows"]["by_partition"]
    known = {row.partition_path: row.record_count for row in statistics.partitions if row.record_count is not None}
    assert known == {path: expected.get(path, 0) for path in known}
    if source == "footers":
        assert known.keys() >= {row.partition_path for row in statistics.partitions if not row.log_file_count}


def test_document_of_version_1_is_read_without_what_it_lacks() -> None:
    """Rows of the first version are objects, and know neither records nor the last instant of any kind."""
    row = {
        "relative_path": ONE,
        "last_modified_instant": at(1),
        "total_bytes": 410,
        "file_groups": 2,
        "data_files": 2,
        "small_files": 2,
        "log_files": 0,
        "log_bytes": 0,
        "data_file_bytes": [100, 310],
    }
    builder = TableBuilder(base_path="memory://version-1/trips")
    builder.commit(at(1), {ONE: [("f1-0", 100), ("f2-0", 310)]})
    young = full(builder)
    document = {**young.to_json(), "version": 1, "partitions": [row]}
    old = TableStatistics.from_json(document, name="s.json")
    unknown = dict.fromkeys(("last_instant", "record_count", "oldest_base_instant", "newest_base_instant"))
    assert old == replace(young, partitions=(replace(young.partitions[0], **unknown),))  # type: ignore[arg-type]
    assert old.by_path[ONE].pending_instant is None
