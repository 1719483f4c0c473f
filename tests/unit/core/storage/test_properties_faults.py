"""Changing ``hoodie.properties`` while storage fails, writers die, and others change it as well."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import PendingActionError, StorageError
from airflow_hudi_maint.core.model.policy import DEFAULT_VALUE_KEY, EXPLICIT_POLICIES_KEY
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.properties import (
    BACKUP_PATH,
    PROPERTIES_PATH,
    change_properties,
    load_properties,
    parse_properties,
    update_properties,
)
from tests.unit.core.storage.test_properties import SOUND

VERBS = ("read_bytes", "write_new", "write_atomic", "delete")
CALLS = 10
"""One more than a change makes: six reads, the backup, the file, and the backup's end."""
OLD = parse_properties(SOUND.decode())
NEW = {**OLD, DEFAULT_VALUE_KEY: "9"}


class KilledError(BaseException):
    """The process ends here; nothing runs after it."""


@pytest.fixture(params=["file", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    root = str(tmp_path / "trips") if request.param == "file" else f"memory://{tmp_path.name}/trips"
    opened = Storage.open(root)
    opened.write_atomic(PROPERTIES_PATH, SOUND)
    return opened


def names(storage: Storage) -> set[str]:
    return set(storage.names(".hoodie"))


def counting(
    monkeypatch: pytest.MonkeyPatch, storage: Storage, act: Callable[[int, str, Callable[[], object]], object]
) -> None:
    """Let ``act`` decide about each call: it gets its number from 1 on, its verb, and what makes it."""
    made = 0

    def watched(verb: str, call: Callable[..., object]) -> Callable[..., object]:
        def one(*arguments: object) -> object:
            nonlocal made
            made += 1
            return act(made, verb, lambda: call(*arguments))

        return one

    for verb in VERBS:
        monkeypatch.setattr(storage, verb, watched(verb, getattr(storage, verb)))


@pytest.mark.parametrize("error", [KilledError, StorageError])
@pytest.mark.parametrize("takes_effect", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, CALLS + 1))
def test_a_change_that_dies_anywhere_leaves_the_old_or_the_new(
    storage: Storage,
    at: int,
    takes_effect: bool,  # noqa: FBT001 a parameter of the test
    error: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before or after each single call: a reader finds all of one or of the other, and the next change works."""

    def dies(number: int, _: str, call: Callable[[], object]) -> object:
        if number != at:
            return call()
        if takes_effect:
            with contextlib.suppress(FileNotFoundError):
                call()
        raise error

    with monkeypatch.context() as patched:
        counting(patched, storage, dies)
        if at == CALLS:  # no change makes so many calls: every one of them was tried
            update_properties(storage, set={DEFAULT_VALUE_KEY: "9"})
        else:
            with pytest.raises(error):
                update_properties(storage, set={DEFAULT_VALUE_KEY: "9"})
    assert load_properties(storage) in (OLD, NEW)
    assert NEW == update_properties(storage, set={DEFAULT_VALUE_KEY: "9"}, wait_seconds=0)
    assert NEW == load_properties(storage)
    assert {"hoodie.properties"} == names(storage)


@pytest.mark.parametrize("cut", range(0, len(SOUND), 40))
def test_a_backup_that_was_cut_short_does_no_harm(storage: Storage, cut: int) -> None:
    """Its writer died while writing it, so the file is whole and stays."""
    storage.write_atomic(BACKUP_PATH, SOUND[:cut])

    assert OLD == load_properties(storage)
    assert NEW == update_properties(storage, set={DEFAULT_VALUE_KEY: "9"}, wait_seconds=0)
    assert {"hoodie.properties"} == names(storage)


def test_a_file_without_a_checksum_is_not_given_up_for_a_broken_backup(storage: Storage) -> None:
    """Neither proves to be whole: the file is the one that a writer replaced as a whole."""
    storage.write_atomic(PROPERTIES_PATH, b"hoodie.table.name=trips\n")
    storage.write_atomic(BACKUP_PATH, b"hoodie.tab")
    update_properties(storage, set={DEFAULT_VALUE_KEY: "9"}, wait_seconds=0)

    assert {"hoodie.table.name": "trips", DEFAULT_VALUE_KEY: "9"} == load_properties(storage)


def test_the_backup_of_a_writer_at_work_is_waited_for(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it stands for less than five looks it is somebody's, and what that one writes is kept."""
    storage.write_atomic(BACKUP_PATH, SOUND)
    looks = 0
    read = storage.read_bytes

    def racing(path: str) -> bytes:
        nonlocal looks
        if path == BACKUP_PATH:
            looks += 1
            if looks == 4:
                storage.write_atomic(PROPERTIES_PATH, SOUND + b"theirs=1\n")
                storage.delete(BACKUP_PATH)
        return read(path)

    monkeypatch.setattr(storage, "read_bytes", racing)
    after = update_properties(storage, set={DEFAULT_VALUE_KEY: "9"}, wait_seconds=0)
    assert {**NEW, "theirs": "1"} == after == load_properties(storage)


def test_a_hudi_that_begins_meanwhile_is_given_way(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hudi deletes any backup first, deletes the file, and writes it anew: ours is applied to what it wrote."""
    theirs = SOUND + b"theirs=1\n"

    def hudi(number: int, verb: str, call: Callable[[], object]) -> object:
        result = call()
        if verb == "write_new" and number < 5:  # right after our first backup
            call_delete(BACKUP_PATH)
            call_write(BACKUP_PATH, SOUND.replace(b"Nov 30", b"Dec 01"))
            call_delete(PROPERTIES_PATH)
            started.append(number)
        elif started and verb == "read_bytes" and number > started[0] + 6:
            started.clear()
            call_write(PROPERTIES_PATH, theirs)
            call_delete(BACKUP_PATH)
        return result

    started: list[int] = []
    call_delete, call_write = storage.delete, storage.write_atomic
    counting(monkeypatch, storage, hudi)
    after = update_properties(storage, set={DEFAULT_VALUE_KEY: "9"}, wait_seconds=0)
    monkeypatch.undo()
    assert {**NEW, "theirs": "1"} == after == load_properties(storage)
    assert {"hoodie.properties"} == names(storage)


def test_a_change_that_hudi_writes_over_is_made_again(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hudi read the file before our replacement and writes what it read: its backup gives it away."""
    done = False

    def hudi(_: int, verb: str, call: Callable[[], object]) -> object:
        nonlocal done
        result = call()
        if verb == "write_atomic" and not done:
            done = True
            call_delete(BACKUP_PATH)
            call_write(PROPERTIES_PATH, SOUND + b"theirs=1\n")
        return result

    call_delete, call_write = storage.delete, storage.write_atomic
    counting(monkeypatch, storage, hudi)
    after = update_properties(storage, set={DEFAULT_VALUE_KEY: "9"}, wait_seconds=0)
    assert {**NEW, "theirs": "1"} == after == load_properties(storage)


def test_what_is_asked_for_is_worked_out_again_on_what_somebody_else_wrote(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second look sees their policies, not those of the first."""
    seen: list[str | None] = []

    def change(properties: object) -> dict[str, str | None]:
        assert isinstance(properties, dict)
        seen.append(properties.get(EXPLICIT_POLICIES_KEY))
        return {EXPLICIT_POLICIES_KEY: f"{seen[-1] or ''}+ours"}

    write_new = storage.write_new

    def racing(path: str, data: bytes) -> bool:
        if len(seen) == 1:
            storage.write_atomic(PROPERTIES_PATH, SOUND + f"{EXPLICIT_POLICIES_KEY}=theirs\n".encode())
        return write_new(path, data)

    monkeypatch.setattr(storage, "write_new", racing)
    after = change_properties(storage, change=change, wait_seconds=0)
    assert [None, "theirs"] == seen
    assert "theirs+ours" == after[EXPLICIT_POLICIES_KEY]


def test_of_many_at_once_none_is_lost(storage: Storage) -> None:
    """Tasks of one run set policies of one table: eight threads add a word each, and all are there."""
    failures: list[BaseException] = []

    def add(word: str) -> None:
        def change(properties: object) -> dict[str, str | None]:
            assert isinstance(properties, dict)
            return {EXPLICIT_POLICIES_KEY: f"{properties.get(EXPLICIT_POLICIES_KEY, '')}{word}"}

        try:
            change_properties(storage, change=change, wait_seconds=0.05)
        except BaseException as error:  # noqa: BLE001 shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=add, args=(word,)) for word in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert [] == failures
    assert "abcdefgh" == "".join(sorted(load_properties(storage)[EXPLICIT_POLICIES_KEY]))
    assert {"hoodie.properties"} == names(storage)


def test_a_backup_that_comes_and_goes_ends_in_an_error_that_may_pass(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody is at work all the time: nothing is written."""
    count = 0
    read = storage.read_bytes

    def racing(path: str) -> bytes:
        nonlocal count
        if path == BACKUP_PATH:
            count += 1
            return SOUND + f"#{count}".encode()
        return read(path)

    monkeypatch.setattr(storage, "read_bytes", racing)
    with pytest.raises(PendingActionError, match="comes and goes: try again"):
        update_properties(storage, set={DEFAULT_VALUE_KEY: "9"}, wait_seconds=0)
    assert SOUND == storage.read_bytes(PROPERTIES_PATH)
