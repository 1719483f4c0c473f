"""Streams, moves and links: what merges of plain files ask of storage, alike on a local disk, in memory and on S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import StorageError
from airflow_hudi_maint.core.storage.filesystem import Storage
from tests.behaviour.conftest import PLACES, Place

EVERYWHERE = pytest.mark.parametrize("place", PLACES, indirect=True)


@EVERYWHERE
def test_a_stream_is_whole_when_its_block_ends(storage: Storage) -> None:
    with storage.open_output("a/b/out.bin") as output:
        for number in range(3):
            output.write(bytes([number]) * 100_000)

    assert b"".join(bytes([number]) * 100_000 for number in range(3)) == storage.read_bytes("a/b/out.bin")


@EVERYWHERE
def test_what_the_caller_reads_and_does_not_find_is_not_taken_for_the_output(storage: Storage) -> None:
    with pytest.raises(FileNotFoundError, match="missing"), storage.open_output("out.bin"):
        storage.read_bytes("missing")


@EVERYWHERE
@pytest.mark.parametrize("name", ["with space", "city=S%C3%A3o", "100%", "Zürich", "key=value"])
def test_a_moved_file_is_at_its_new_path_alone(storage: Storage, name: str) -> None:
    storage.write_atomic(f"a/{name}", b"12345")
    storage.move(f"a/{name}", f"b/c/{name}.trashed")

    assert b"12345" == storage.read_bytes(f"b/c/{name}.trashed")
    with pytest.raises(FileNotFoundError):
        storage.read_bytes(f"a/{name}")


@EVERYWHERE
def test_a_move_does_not_replace_a_file(storage: Storage) -> None:
    storage.write_atomic("a", b"12345")
    storage.write_atomic("b", b"1")

    with pytest.raises(StorageError):
        storage.move("a", "b")
    assert [b"12345", b"1"] == storage.read_many(["a", "b"])


@EVERYWHERE
def test_moving_what_is_not_there_is_said_by_name(storage: Storage) -> None:
    storage.write_atomic("there", b"1")

    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        storage.move("nowhere", "elsewhere")


@EVERYWHERE
def test_removing_a_folder_that_holds_something_does_nothing(storage: Storage) -> None:
    storage.write_atomic("a/file", b"1")
    storage.remove_folder("a")
    storage.remove_folder("nowhere")

    assert b"1" == storage.read_bytes("a/file")


@EVERYWHERE
def test_a_listing_of_its_own_is_the_same_where_there_are_no_links(storage: Storage) -> None:
    storage.write_atomic("a/file", b"12345")
    storage.write_atomic("a/folder/below", b"1")

    entries, links = storage.list_own("a")
    assert sorted(storage.list("a")) == sorted(entries)
    assert () == links


def test_a_listing_of_its_own_does_not_follow_links(tmp_path: Path) -> None:
    """Neither to files nor to folders nor to nowhere; their names come apart."""
    (tmp_path / "lake/real").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/file").write_bytes(b"1")
    for name, target in (("to-file", "elsewhere/file"), ("to-folder", "elsewhere"), ("to-nowhere", "gone")):
        (tmp_path / "lake" / name).symlink_to(tmp_path / target)

    entries, links = Storage.open(str(tmp_path / "lake")).list_own("")
    assert ["real"] == [entry.name for entry in entries]
    assert ["to-file", "to-folder", "to-nowhere"] == sorted(links)


def test_a_move_to_another_disk_is_a_copy_under_a_hidden_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a partition is a disk of its own, a rename cannot reach the state folder."""
    import errno
    import os

    from airflow_hudi_maint.core.storage import local_files

    real = os.rename
    seen: list[tuple[str, str]] = []

    def rename(source: str, target: str) -> None:
        seen.append((source, target))
        if len(seen) == 1:
            raise OSError(errno.EXDEV, "another device")
        real(source, target)

    storage = Storage.open(str(tmp_path))
    storage.write_atomic("a/file", b"12345")
    modified = storage.list("a")[0].modified_ns
    monkeypatch.setattr(local_files.os, "rename", rename)
    storage.move("a/file", "b/file")

    (entry,) = storage.list("b")
    assert ("file", 5, modified) == (entry.name, entry.bytes, entry.modified_ns)
    assert [] == storage.list("a")
    assert seen[1][0].startswith(f"{tmp_path}/b/.file.")


@pytest.mark.s3
def test_a_move_on_s3_whose_answer_was_lost_is_not_done_twice(s3: object, s3_place: Place) -> None:
    """The deletion is asked again; that the object is gone by then is no error."""
    storage = s3_place.open()
    storage.write_atomic("a", b"12345")
    s3.fail(status=0, code="gone", times=1, verb="DELETE")  # type: ignore[attr-defined]
    storage.move("a", "b")

    assert b"12345" == storage.read_bytes("b")
    assert ("b",) == storage.names("")
