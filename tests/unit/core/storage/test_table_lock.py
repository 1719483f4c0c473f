"""The lock file of Hudi's file-system lock, taken and given back without a JVM."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError, PendingActionError, StorageError
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.table_lock import TableLock

PATH = ".hoodie/lock"
HUDIS = json.dumps({"lockCreateTime": "x", "lockThreadName": "pool-7", "lockStacksInfo": []}).encode()


@pytest.fixture(params=["file", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    root = str(tmp_path / "trips") if request.param == "file" else f"memory://{tmp_path.name}/trips"
    opened = Storage.open(root)
    opened.write_atomic(".hoodie/hoodie.properties", b"")
    return opened


def _lock(
    storage: Storage,
    *,
    expire_minutes: int = 0,
    owner: str = "",
    wait_seconds: float = 0.0,
    sleep: Callable[[float], None] = lambda _: None,
    clock: Callable[[], float] | None = None,
) -> TableLock:
    given = {} if clock is None else {"clock": clock}
    return TableLock(
        storage=storage,
        path=PATH,
        expire_minutes=expire_minutes,
        owner=owner,
        wait_seconds=wait_seconds,
        sleep=sleep,
        **given,
    )


def _take(lock: TableLock, *, then: Callable[[Callable[[], bool]], None] = lambda _: None) -> None:
    """Hold a lock for as long as ``then`` takes."""
    with lock.held() as still_held:
        then(still_held)


def test_a_held_lock_is_a_file_as_hudi_makes_it_and_is_gone_afterwards(storage: Storage) -> None:
    """At Hudi's default path, with its fields, for as long as the block runs; also when the block fails."""
    lock = TableLock.open(storage, folder=None, expire_minutes=0, owner="nightly.cluster of run r1")

    def look(still_held: Callable[[], bool]) -> None:
        content = json.loads(storage.read_bytes(PATH))
        assert {"lockCreateTime", "lockThreadName", "lockStacksInfo"} == content.keys()
        assert "nightly.cluster of run r1" in content["lockThreadName"]
        assert still_held()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _take(lock, then=look)
    assert "lock" not in storage.names(".hoodie")


def test_a_lock_of_a_writer_is_waited_for_and_then_said_by_name(storage: Storage) -> None:
    """It is never taken away while it has not expired: the error has the file and its holder."""
    storage.write_atomic(PATH, HUDIS)
    slept: list[float] = []

    with pytest.raises(PendingActionError, match=r"\.hoodie/lock is held.*pool-7.*never expires"):
        _take(_lock(storage, wait_seconds=3.0, sleep=slept.append))
    assert ([1.0, 1.0, 1.0], HUDIS) == (slept, storage.read_bytes(PATH))


def test_what_can_be_neither_created_nor_read_is_no_endless_wait(tmp_path: Path) -> None:
    """A link to nothing is in the way of who creates the file, and is not there for who reads it."""
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / ".hoodie" / "lock").symlink_to(tmp_path / "nowhere")
    slept: list[float] = []

    with pytest.raises(PendingActionError, match="can be neither created nor read"):
        _take(_lock(Storage.open(str(tmp_path)), wait_seconds=2.0, sleep=slept.append))
    assert [1.0, 1.0] == slept


def test_a_lock_that_is_given_back_meanwhile_is_taken(storage: Storage) -> None:
    """The next look finds it free."""
    storage.write_atomic(PATH, HUDIS)

    with _lock(storage, wait_seconds=3.0, sleep=lambda _: storage.delete(PATH)).held() as still_held:
        assert still_held()


def test_a_lock_that_expired_is_nobodys(storage: Storage) -> None:
    """Older than the minutes of the writers' setting: deleted and taken; a minute younger, it is waited for."""
    storage.write_atomic(PATH, HUDIS)
    (entry,) = [one for one in storage.list(".hoodie") if one.name == "lock"]
    assert entry.modified_ns is not None
    made = entry.modified_ns / 1e9

    with pytest.raises(PendingActionError, match="dead after 5 minutes"):
        _take(_lock(storage, expire_minutes=5, clock=lambda: made + 299))
    with _lock(storage, expire_minutes=5, clock=lambda: made + 301).held() as still_held:
        assert still_held()
    assert "lock" not in storage.names(".hoodie")


def test_a_lock_that_another_took_over_is_not_released(storage: Storage) -> None:
    """Ours expired and somebody made the file anew: we know that it is no longer held, and leave theirs alone."""
    with _lock(storage).held() as still_held:
        storage.write_atomic(PATH, HUDIS)
        assert not still_held()
    assert HUDIS == storage.read_bytes(PATH)


def test_a_lock_of_an_earlier_try_of_the_same_task_is_taken_over(storage: Storage) -> None:
    """That try was killed while it held the lock; another task's file is not touched."""
    first = _lock(storage, owner="dag.task of run r1").held()
    first.__enter__()

    with pytest.raises(PendingActionError):
        _take(_lock(storage, owner="dag.task of run r2"))
    with _lock(storage, owner="dag.task of run r1").held() as still_held:
        assert still_held()


def test_a_lock_that_cannot_be_deleted_is_an_error(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would stop every writer of the table, so it is tried again, and then said with what to do."""
    tries: list[str] = []

    def fails(path: str) -> None:
        tries.append(path)
        raise StorageError("no")

    with pytest.raises(StorageError, match=r"\.hoodie/lock is ours and could not be deleted.*Delete it"):
        _take(_lock(storage), then=lambda _: monkeypatch.setattr(storage, "delete", fails))
    assert [PATH] * 3 == tries


def test_a_lost_answer_leaves_no_lock(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file was written, and the request failed: it is deleted again."""
    write_new = storage.write_new

    def loses(path: str, data: bytes) -> bool:
        write_new(path, data)
        raise StorageError("lost")

    monkeypatch.setattr(storage, "write_new", loses)
    with pytest.raises(StorageError, match="lost"):
        _take(_lock(storage))
    assert "lock" not in storage.names(".hoodie")


def test_the_folder_of_the_setting_may_lie_anywhere(storage: Storage, tmp_path: Path) -> None:
    """Inside the table by any spelling, or outside of it."""
    inside = TableLock.open(storage, folder=f"{storage.root}/.hoodie/.aux/", expire_minutes=0)
    outside = TableLock.open(storage, folder=f"file://{tmp_path}/locks", expire_minutes=0)

    assert (storage, ".hoodie/.aux/lock") == (inside.storage, inside.path)
    with outside.held():
        assert (tmp_path / "locks" / "lock").exists()


def test_storage_on_which_two_could_hold_it_is_refused(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the file would keep nobody apart."""
    monkeypatch.setattr(Storage, "creates_exclusively", property(lambda _: False))

    with pytest.raises(InvalidSettingError, match="cannot be held"):
        TableLock.open(storage, folder=None, expire_minutes=0)


def test_of_many_at_once_one_holds_it(tmp_path: Path) -> None:
    """Eight threads count up without losing a step; on a disk, since fsspec's memory is not made for threads."""
    storage = Storage.open(str(tmp_path / "trips"))
    storage.write_atomic(".hoodie/hoodie.properties", b"")
    total = 0

    def work() -> None:
        nonlocal total
        for _ in range(5):
            with TableLock(storage=storage, path=PATH, wait_seconds=60.0, poll_seconds=0.001).held():
                seen = total
                threading.Event().wait(0.0005)
                total = seen + 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 40 == total
