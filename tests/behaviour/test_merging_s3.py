"""Merges of plain files on S3: moves are copies and deletions there, and a kill may fall between the two."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_hudi_maint.core.errors import PendingActionError, StorageError, UnsupportedTableError
from airflow_hudi_maint.core.maintenance.merge_workspace import MergeWorkspace, open_merge_workspace
from airflow_hudi_maint.core.maintenance.merging import current_files, merge_small_files, undo_merge
from airflow_hudi_maint.core.model.merge_plan import MERGE_STATE_FOLDER
from airflow_hudi_maint.core.model.merge_settings import MergeSettings
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.merge_lease import holding_lease
from tests.behaviour.conftest import AT_ONCE, Place
from tests.property.faulty_files import Deaths, Died, DyingClient
from tests.s3_server import S3Server

pytestmark = pytest.mark.s3

SETTINGS = MergeSettings(min_age_seconds=0, csv_header="no", parallel_groups=1)
NOW = datetime.now(tz=UTC) + timedelta(hours=1)
FILES = {"day=1/ü a%.csv": b"1", "day=1/b.csv": b"2\n", "day=1/c.csv": b"3\n"}
ROWS = b"2\n3\n1"


def opened(place: Place) -> MergeWorkspace:
    workspace = open_merge_workspace(place.url, storage_options=place.options, log=lambda _: None)
    for path, data in FILES.items():
        workspace.storage.write_atomic(path, data)
    return workspace


def new_place(s3: S3Server) -> Place:
    return Place(kind="s3", url=f"s3://{s3.new_bucket()}/lake", options=s3.storage_options)


@contextmanager
def dying(workspace: MergeWorkspace, deaths: Deaths) -> Iterator[MergeWorkspace]:
    """A workspace whose client dies at a call; s3fs's own retries and ours see nothing of it."""
    storage = workspace.storage
    client = DyingClient(storage._fs, deaths)  # noqa: SLF001 what a test puts between
    fake = Storage(root=storage.root, file_system=client, prefix=storage._prefix, concurrency=1, retry=AT_ONCE)  # noqa: SLF001
    yield replace(workspace, storage=fake, documents=DocumentStore(fake, folder=MERGE_STATE_FOLDER))


def content(workspace: MergeWorkspace) -> bytes:
    names = current_files(workspace, directory="day=1")
    return b"".join(_read(workspace, names))


def _read(workspace: MergeWorkspace, names: tuple[str, ...]) -> list[bytes]:
    return [workspace.storage.read_bytes(f"day=1/{name}") for name in names]


def test_a_directory_on_s3_is_merged_and_undone(s3: S3Server) -> None:
    workspace = opened(new_place(s3))
    report = merge_small_files(workspace, now=NOW, settings=SETTINGS).report

    (entry,) = workspace.storage.list("day=1")
    assert ROWS == workspace.storage.read_bytes(f"day=1/{entry.name}")
    assert 3 == report.files_before
    assert 0 == merge_small_files(workspace, now=NOW, settings=SETTINGS).report.files_before
    undo_merge(workspace, now=NOW, run=report.run)
    assert FILES == {
        f"day=1/{one.name}": workspace.storage.read_bytes(f"day=1/{one.name}")
        for one in workspace.storage.list("day=1")
    }


def test_a_merge_that_dies_at_some_calls_ends_in_the_same_rows(s3: S3Server) -> None:
    """Every fifth call of the second half, which has the copies and deletions of the swap."""
    deaths = Deaths()
    with dying(opened(new_place(s3)), deaths) as workspace:
        merge_small_files(workspace, now=NOW, settings=SETTINGS)
    calls = deaths.calls
    assert 40 < calls
    for at in range(calls // 2, calls, 5):
        workspace = opened(new_place(s3))
        with dying(workspace, Deaths(at)) as doomed, pytest.raises(Died):
            merge_small_files(doomed, now=NOW, settings=SETTINGS)
        assert ROWS == content(workspace), f"by the journal, after call {at}"
        merge_small_files(workspace, now=NOW, settings=SETTINGS)
        assert ROWS == content(workspace), f"after call {at} and another run"
        assert 1 == len(workspace.storage.list("day=1"))


def test_throttling_and_broken_connections_are_waited_out(s3: S3Server) -> None:
    workspace = opened(new_place(s3))
    for verb in ("PUT", "GET", "DELETE"):
        s3.fail(status=503, code="SlowDown", times=1, verb=verb)
    s3.fail(status=0, code="gone", times=1, verb="DELETE", within="day%3D1")
    merge_small_files(workspace, now=NOW, settings=SETTINGS)

    assert ROWS == content(workspace)


def test_a_copy_that_is_refused_loses_nothing(s3: S3Server) -> None:
    """A swap that cannot publish turns back; the next run merges."""
    workspace = opened(new_place(s3))
    s3.fail(status=500, code="InternalError", times=40, verb="PUT", within="-merged-")
    with dying(workspace, Deaths()) as quick, pytest.raises(StorageError, match="staged"):
        merge_small_files(quick, now=NOW, settings=SETTINGS)
    assert 3 == len(workspace.storage.list("day=1"))
    s3.forget()
    merge_small_files(workspace, now=NOW, settings=SETTINGS)
    assert ROWS == content(workspace)


def test_one_run_at_a_time_holds_the_lease(s3: S3Server) -> None:
    place = new_place(s3)
    workspace = opened(place)
    with holding_lease(workspace.storage, run="live"), pytest.raises(PendingActionError, match="run live"):
        merge_small_files(workspace, now=NOW, settings=SETTINGS)


def test_a_prefix_within_a_table_is_refused(s3: S3Server) -> None:
    place = new_place(s3)
    place.open().write_atomic(".hoodie/hoodie.properties", b"x")

    with pytest.raises(UnsupportedTableError, match="a Hudi table"):
        open_merge_workspace(f"{place.url}/day=1", storage_options=place.options)


def test_a_look_at_neighbours_costs_what_they_do(s3: S3Server) -> None:
    """Not what the directory holds: a swap looks several times, and there may be a hundred swaps in one directory."""
    bucket = s3.new_bucket()
    s3.put_empty(bucket, [f"lake/f{number:05}.csv" for number in range(4500)])
    storage = Storage.open(f"s3://{bucket}/lake", storage_options=s3.storage_options)
    wanted = [f"f{number:05}.csv" for number in range(3200, 3300)]

    lists = storage.requests.lists
    assert sorted(storage.look("", [*wanted, "f03250-merged-0.csv"])) == wanted
    assert storage.requests.lists - lists == 1
    assert storage.look("day=1", wanted) == {}
    assert storage.look("", []) == {}
    (first, last) = ("f00000.csv", "f04499.csv")
    assert sorted(storage.look("", [last, first, "g.csv"])) == [first, last]


def test_keys_that_no_disk_has_are_left_alone(s3: S3Server) -> None:
    """Folder markers, keys with two slashes, and keys that differ by case or by how an accent is written."""
    bucket = s3.new_bucket()
    keys = ["lake/", "lake/day=1/", "lake//a.csv", "lake//b.csv", "lake/day=1//a.csv"]
    for key in keys:
        s3.put(f"{bucket}/{key}", b"" if key.endswith("/") else b"9\n")
    place = Place(kind="s3", url=f"s3://{bucket}/lake", options=s3.storage_options)
    workspace = open_merge_workspace(place.url, storage_options=place.options, log=lambda _: None)
    names = ["A+b.csv", "a+b.csv", "\u00e9.csv", "e\u0301.csv", "a b%20.csv"]
    for number, name in enumerate(sorted(names)):
        workspace.storage.write_atomic(f"day=1/{name}", f"{number}\n".encode())
    report = merge_small_files(workspace, now=NOW, settings=SETTINGS).report

    assert report.files_before == len(names)
    assert content(workspace) == b"0\n1\n2\n3\n4\n"
