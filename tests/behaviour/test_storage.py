"""Storage behaves alike on a local disk, in memory, on S3 and on HDFS."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest

from airflow_hudi_maint.core.storage.filesystem import Storage
from tests.behaviour.conftest import PLACES, Place

pytestmark = pytest.mark.parametrize("place", PLACES, indirect=True)

AWKWARD_NAMES = [
    "with space",
    "city=S%C3%A3o",
    "100%",
    "a+b",
    "key=value",
    "Zürich",
    "日本",
    "t=10:30:00",
    "semi;comma,",
    "(x)&y",
    "'quoted'",
    "..hidden",
]


def test_what_is_written_is_read_back(storage: Storage) -> None:
    """A write makes the folders it needs, a second one replaces the first, and nothing else is left beside it."""
    storage.write_atomic("a/b/c.json", b"one")
    storage.write_atomic("a/b/c.json", b"two")

    assert b"two" == storage.read_bytes("a/b/c.json")
    assert [b"two", b"two"] == storage.read_many(["a/b/c.json", "a/b/c.json"])
    assert ("c.json",) == storage.names("a/b")


def test_what_is_there_is_not_written_as_new(storage: Storage) -> None:
    """Neither the content nor a file beside it changes; an empty file is there, too."""
    assert storage.write_new("a/b/c.json", b"")
    assert not storage.write_new("a/b/c.json", b"two")

    assert b"" == storage.read_bytes("a/b/c.json")
    assert ("c.json",) == storage.names("a/b")
    storage.delete("a/b/c.json")
    assert storage.write_new("a/b/c.json", b"three")
    assert b"three" == storage.read_bytes("a/b/c.json")


def test_an_empty_file_is_a_file(storage: Storage) -> None:
    """Instants in flight are empty files."""
    storage.write_atomic("a/empty", b"")

    assert b"" == storage.read_bytes("a/empty")
    assert [("empty", False, 0)] == [entry[:3] for entry in storage.list("a")]


def test_a_listing_shows_one_level(storage: Storage) -> None:
    """Files come with their sizes and times, folders without, and nothing else is there."""
    before = datetime.now(tz=UTC) - timedelta(seconds=2)  # S3 tells whole seconds
    storage.write_atomic("a/file", b"12345")
    storage.write_atomic("a/folder/below", b"1")
    storage.write_atomic("ab/other", b"1")

    entries = {entry.name: entry for entry in storage.list("a")}
    assert {"file": (False, 5), "folder": (True, 0)} == {
        name: (entry.is_directory, entry.bytes) for name, entry in entries.items()
    }
    modified = entries["file"].modified
    assert modified is not None
    assert before <= modified <= datetime.now(tz=UTC) + timedelta(seconds=2)
    assert entries["folder"].modified is None
    assert {"file", "folder"} == set(storage.names("a"))


def test_the_root_lists_like_any_folder(storage: Storage) -> None:
    """The root is a path of its own."""
    storage.write_atomic("file", b"1")

    assert ["file"] == [entry.name for entry in storage.list("")]


@pytest.mark.parametrize("name", AWKWARD_NAMES)
def test_a_name_is_what_it_says(storage: Storage, name: str) -> None:
    """Neither our own code nor a client takes a character of a partition value for one of a URL."""
    storage.write_atomic(f"{name}/{name}.parquet", b"content")

    assert (name,) == storage.names("")
    assert [f"{name}.parquet"] == [entry.name for entry in storage.list(name)]
    assert {name} == set(storage.list_many([name, f"{name}x"]))
    assert b"content" == storage.read_bytes(f"{name}/{name}.parquet")
    storage.delete(f"{name}/{name}.parquet")
    with pytest.raises(FileNotFoundError):
        storage.read_bytes(f"{name}/{name}.parquet")


def test_what_is_absent_is_said_by_name(storage: Storage) -> None:
    """Whatever is asked of what is not there raises FileNotFoundError with the full path."""
    storage.write_atomic("there", b"1")
    missing = f"{storage.root}/nowhere does not exist"

    for act in (storage.read_bytes, storage.list, storage.names, storage.delete, _tail):
        with pytest.raises(FileNotFoundError) as caught:
            act("nowhere") if act is not _tail else _tail("nowhere", storage)
        assert missing == str(caught.value)
    with pytest.raises(FileNotFoundError):
        storage.read_many(["there", "nowhere"])


def test_a_file_is_no_folder(storage: Storage) -> None:
    """Listing a file is listing something that is not there."""
    storage.write_atomic("a/file", b"1")

    with pytest.raises(FileNotFoundError, match="a/file does not exist"):
        storage.list("a/file")
    assert {"a"} == set(storage.list_many(["a", "a/file"]))


def test_deleting_twice_is_an_error(storage: Storage) -> None:
    """A file is deleted once; what lies beside it stays."""
    storage.write_atomic("folder/a", b"1")
    storage.write_atomic("folder/b", b"1")
    storage.delete("folder/a")

    assert ("b",) == storage.names("folder")
    with pytest.raises(FileNotFoundError, match="folder/a does not exist"):
        storage.delete("folder/a")


def test_a_file_can_be_sought_in(storage: Storage) -> None:
    """Positions, reads across them and the end are those of any file."""
    content = bytes(range(256)) * 1000
    storage.write_atomic("file", content)

    with storage.open_input("file") as file:
        assert content[:10] == file.read(10)
        assert 20 == file.seek(10, io.SEEK_CUR)
        assert content[20:30] == file.read(10)
        assert len(content) - 5 == file.seek(-5, io.SEEK_END)
        assert content[-5:] == file.read(100)
        assert b"" == file.read(1)
        file.seek(0)
        assert content == file.read()
        file.seek(100_000)
        buffer = bytearray(8)
        assert 8 == file.readinto(buffer)  # type: ignore[attr-defined]
        assert content[100_000:100_008] == bytes(buffer)


def test_an_error_of_the_caller_passes_through_an_open_file(storage: Storage) -> None:
    """A file that cannot be understood is no failure of the storage."""
    storage.write_atomic("file", b"not parquet")

    with pytest.raises(KeyError), storage.open_input("file"):
        raise KeyError


def test_requests_are_counted(storage: Storage) -> None:
    """Each listing, read, write and deletion counts, and the difference of two totals is what lies between.

    Remote storage is asked first whether there is something to delete.
    """
    storage.write_atomic("a/file", b"1")
    before = storage.requests.totals
    storage.list_many(["a", "b"])
    storage.names("a")
    storage.read_bytes("a/file")
    storage.delete("a/file")

    between = storage.requests.totals - before
    reads = 1 if storage.is_local else 2
    assert (3, reads, 1, 0) == (between.lists, between.reads, between.writes, between.retries)
    assert f"3 listings, {reads} {'read' if reads == 1 else 'reads'}, 1 write" == str(between)


def test_two_roots_do_not_meet(place: Place) -> None:
    """A table whose name begins with another's is another table."""
    place.open("trips").write_atomic("file", b"1")
    place.open("trips2").write_atomic("other", b"1")

    assert ("file",) == place.open("trips").names("")


def _tail(path: str, storage: Storage) -> None:
    with storage.open_input(path) as file:
        file.seek(-1, io.SEEK_END)
