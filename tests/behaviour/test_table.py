"""A table is the same table on a local disk, in memory and on S3, at a price that is known."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from airflow_hudi_maint.core.errors import CorruptTableError, StorageAccessError, TableNotFoundError
from airflow_hudi_maint.core.maintenance import gather_statistics as gather_and_write
from airflow_hudi_maint.core.maintenance import open_workspace
from airflow_hudi_maint.core.model.policy import POLICY_KEYS
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.properties import change_properties, load_properties, update_properties
from airflow_hudi_maint.core.storage.statistics import gather_statistics, newest_statistics, write_statistics
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.behaviour.conftest import TABLE_PLACES, Place
from tests.golden.golden import golden_names, unpack
from tests.s3_server import S3Server
from tests.unit.core.storage.builders import TableBuilder, at

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
TABLES = [
    name
    for name in ("v6_cow_clustered", "v6_mor_archived", "v8_cow_bare", "v8_mor_pending", "v9_cow_flat", "v9_mor_nested")
    if name in golden_names()
]
DAYS = [f"day=2026-11-{day:02}" for day in range(1, 21)]

pytestmark = pytest.mark.parametrize("place", TABLE_PLACES, indirect=True)


@pytest.fixture
def copy(place: Place, request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Put a golden table to the place and return its base path."""

    def put(name: str) -> str:
        local = unpack(name, tmp_path / "golden")
        if place.kind == "file":
            shutil.copytree(local, f"{place.url}/{name}")
        elif place.kind == "memory":
            _put_in_memory(local, f"{place.url}/{name}")
        else:
            server: S3Server = request.getfixturevalue("s3")
            bucket, _, prefix = place.url.removeprefix("s3://").partition("/")
            server.put_folder(bucket, local, prefix=f"{prefix}/{name}")
        return f"{place.url}/{name}"

    return put


@pytest.fixture
def builder(place: Place) -> TableBuilder:
    return TableBuilder(base_path=f"{place.url}/trips", storage_options=place.options)


@pytest.mark.parametrize("name", TABLES)
def test_a_real_table_looks_as_it_does_on_a_local_disk(name: str, place: Place, copy: Any, tmp_path: Path) -> None:
    """Timeline, partitions, slices, pending plans and statistics, by directory and by whatever way is chosen."""
    here = HudiTable.open(str(unpack(name, tmp_path / "here")))
    there = HudiTable.open(copy(name), storage_options=place.options)
    timeline = there.timeline()

    assert here.timeline() == timeline
    assert here.partition_paths() == there.partition_paths()
    assert here.pending_plans(timeline) == there.pending_plans(timeline)
    seen_here, seen_there = here.view(timeline), there.view(timeline)
    assert seen_here.partition_paths == seen_there.partition_paths
    for path in seen_here.partition_paths:
        assert _names(seen_here.merged_slices(path)) == _names(seen_there.merged_slices(path))
    expected = gather_statistics(here, now=NOW, mode="full", listing="directory").partitions
    for listing in ("directory", "auto"):
        assert expected == gather_statistics(there, now=NOW, mode="full", listing=listing).partitions


@pytest.mark.parametrize(("earlier", "later"), [("v9_cow_plain", "v9_cow_pending"), ("v8_mor_plain", "v8_mor_pending")])
def test_statistics_since_earlier_ones_are_those_of_a_full_gather(
    earlier: str, later: str, place: Place, copy: Any
) -> None:
    """From one stage of a real table to a later one."""
    first = gather_statistics(HudiTable.open(copy(earlier), storage_options=place.options), now=NOW)
    table = HudiTable.open(copy(later), storage_options=place.options)
    second = gather_statistics(table, now=NOW, previous=replace(first, base_path=table.base_path))

    assert "incremental" == second.gathered
    assert gather_statistics(table, now=NOW, mode="full").partitions == second.partitions


def test_a_full_gather_lists_each_folder_once(builder: TableBuilder) -> None:
    """The timeline, the root and the partitions: as many listings, and one read for each commit that is needed."""
    builder.commit(at(1), {day: [("f1-0", 10)] for day in DAYS})
    table = builder.open()
    before = table.storage.requests.totals
    gather_statistics(table, now=NOW, mode="full", listing="directory")

    asked = table.storage.requests.totals - before
    assert 1 + 1 + len(DAYS) == asked.lists
    assert 0 == asked.writes == asked.retries
    assert asked.reads <= 1


def test_an_incremental_gather_lists_what_was_touched(builder: TableBuilder) -> None:
    """The timeline and the two partitions that one commit wrote, of twenty; nothing where nothing is new."""
    builder.commit(at(1), {day: [("f1-0", 10)] for day in DAYS})
    first = gather_statistics(builder.open(), now=NOW)
    builder.commit(at(2), {DAYS[1]: [("f1-0", 11)], "day=2026-12-01": [("f9-0", 5)]})
    table = builder.open()
    before = table.storage.requests.totals
    second = gather_statistics(table, now=NOW, previous=first)
    between = table.storage.requests.totals
    gather_statistics(table, now=NOW, previous=second)

    assert (3, 1) == ((between - before).lists, (between - before).reads)
    assert (1, 0) == ((table.storage.requests.totals - between).lists, (table.storage.requests.totals - between).reads)
    assert gather_statistics(table, now=NOW, mode="full").partitions == second.partitions


def test_the_log_line_counts_this_gather_alone(builder: TableBuilder, place: Place) -> None:
    """Two gathers of one workspace say what each asked of storage: the second lists timeline and documents only."""
    builder.commit(at(1), {day: [("f1-0", 10)] for day in DAYS})
    lines: list[str] = []
    workspace = open_workspace(builder.base_path, storage_options=place.options, log=lines.append)
    gather_and_write(workspace, now=NOW)
    gather_and_write(workspace, now=NOW)

    assert 2 == len(lines)
    # Timeline, root and partitions; documents before and after.
    assert f"{1 + 1 + len(DAYS) + 2} listings" in lines[0]
    assert "3 listings, 1 read, 1 write" in lines[1]


def test_a_folder_that_vanishes_while_it_is_listed_is_left_out(builder: TableBuilder) -> None:
    """The cleaner removes the last files of a partition between two listings."""
    builder.commit(at(1), {day: [("f1-0", 10)] for day in DAYS[:2]})
    table = builder.open()

    assert {DAYS[0]} == set(table.storage.list_many([DAYS[0], "day=gone"]))


def test_documents_are_kept(place: Place, builder: TableBuilder) -> None:
    """Statistics and plans are written, read by full path, sorted by name, pruned and deleted."""
    builder.commit(at(1), {DAYS[0]: [("f1-0", 10)]})
    statistics = gather_statistics(builder.open(), now=NOW)
    documents = DocumentStore.open(f"{place.url}/documents of ours", storage_options=place.options)

    assert () == documents.names("statistics")
    assert newest_statistics(documents) is None
    path = write_statistics(documents, statistics=statistics)
    assert f"{place.url}/documents of ours/statistics/{at(1)}.json" == path
    assert statistics == newest_statistics(documents)
    kept = [
        documents.write_kept("plans", stem=f"2026113010000{number}000-expiry", document={"number": number}, keep=2)
        for number in range(3)
    ]
    assert {"number": 2} == documents.read(kept[2])
    assert 2 == len(documents.names("plans"))
    documents.delete("statistics", name=f"{at(1)}.json")
    documents.delete("statistics", name=f"{at(1)}.json")
    assert () == documents.names("statistics")


def test_policies_are_set_in_the_properties(builder: TableBuilder, place: Place) -> None:
    """By backup and replacement: the file holds the change, and no backup is left."""
    key = POLICY_KEYS[0]
    table = builder.open()
    after = update_properties(table.storage, set={key: "v"}, wait_seconds=0)

    assert "v" == after[key] == load_properties(place.open("trips"))[key]
    assert "hoodie.properties.backup" not in builder.storage.names(".hoodie")
    update_properties(table.storage, set={}, remove=[key], wait_seconds=0)
    assert key not in load_properties(place.open("trips"))


def test_of_policies_that_are_added_at_the_same_time_none_is_lost(builder: TableBuilder, place: Place) -> None:
    """Several tasks, each with a client of its own, add a word to one key."""
    key = POLICY_KEYS[0]

    def add(word: str) -> None:
        change_properties(
            place.open("trips"), change=lambda found: {key: f"{found.get(key, '')}{word}"}, wait_seconds=0.1
        )

    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(add, "abcd"))
    assert "abcd" == "".join(sorted(load_properties(builder.storage)[key]))
    assert "hoodie.properties.backup" not in builder.storage.names(".hoodie")


@pytest.mark.parametrize("left", ["nothing", "an empty file", "half a file"])
def test_a_table_is_mended_from_the_backup_that_a_dead_writer_left(builder: TableBuilder, left: str) -> None:
    """A reader takes the backup while the file is missing or broken; the next change restores the file first."""
    storage = builder.storage
    content = storage.read_bytes(".hoodie/hoodie.properties")
    storage.write_atomic(".hoodie/hoodie.properties.backup", content)
    if left == "nothing":
        storage.delete(".hoodie/hoodie.properties")
    else:
        storage.write_atomic(".hoodie/hoodie.properties", b"" if left == "an empty file" else content[:60])

    assert "trips" == builder.open().config.name
    update_properties(storage, set={POLICY_KEYS[0]: "v"}, wait_seconds=0)
    assert "v" == load_properties(storage)[POLICY_KEYS[0]]
    assert "hoodie.properties.backup" not in storage.names(".hoodie")


def test_what_is_no_table_is_told_apart(place: Place) -> None:
    """A missing folder, a folder without a table and a table without its properties are three different errors."""
    with pytest.raises(TableNotFoundError, match="There is no directory"):
        HudiTable.open(f"{place.url}/nowhere", storage_options=place.options)
    place.open("plain").write_atomic("file", b"1")
    with pytest.raises(TableNotFoundError, match=r"has no \.hoodie folder"):
        HudiTable.open(f"{place.url}/plain", storage_options=place.options)
    place.open("half").write_atomic(".hoodie/file", b"1")
    with pytest.raises(TableNotFoundError, match=r"has no hoodie\.properties"):
        HudiTable.open(f"{place.url}/half", storage_options=place.options)
    place.open("empty").write_atomic(".hoodie/hoodie.properties", b"")
    with pytest.raises(CorruptTableError, match="is empty and has no backup"):
        HudiTable.open(f"{place.url}/empty", storage_options=place.options)


def test_a_refusal_is_no_missing_table(place: Place, builder: TableBuilder, request: pytest.FixtureRequest) -> None:
    """Only what the storage says is missing is missing; on storage without rights there is nothing to refuse."""
    if place.kind == "s3":
        request.getfixturevalue("s3").fail(status=403, code="AccessDenied", times=99)
        with pytest.raises(StorageAccessError, match=r"hoodie\.properties is denied"):
            builder.open()
    else:
        assert "trips" == builder.open().config.name


def _names(slices: Any) -> list[tuple[str, str, str | None, tuple[str, ...]]]:
    return [
        (one.file_id, one.base_instant, one.base_file and one.base_file.name, tuple(log.name for log in one.log_files))
        for one in slices
    ]


def _put_in_memory(local: Path, url: str) -> None:
    """Copy a folder with its times of modification."""
    file_system = MemoryFileSystem()
    for path in sorted(local.rglob("*")):
        if path.is_file():
            key = f"/{url.removeprefix('memory://')}/{path.relative_to(local).as_posix()}"
            file_system.pipe_file(key, path.read_bytes())
            moment = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
            MemoryFileSystem.store[key].created = MemoryFileSystem.store[key].modified = moment
