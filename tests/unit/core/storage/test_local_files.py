"""Files that are created on a disk of this machine: whole, and by one of several."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from airflow_hudi_maint.core.storage import local_files


def test_a_new_file_is_never_seen_in_part(tmp_path: Path) -> None:
    """A reader that looks all the time finds nothing, or all of it; no other name is left behind."""
    full, data = tmp_path / "new", b"x" * 4_000_000
    seen: set[int] = set()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            if full.exists():
                seen.add(full.stat().st_size)

    reader = threading.Thread(target=look)
    reader.start()
    assert local_files.write_new(str(full), data)
    done.set()
    reader.join()
    assert seen <= {len(data)}
    assert not local_files.write_new(str(full), b"other")
    assert ["new"] == [one.name for one in tmp_path.iterdir()]
    assert data == full.read_bytes()


def test_of_several_one_creates_the_file(tmp_path: Path) -> None:
    """The others are told that it is there."""
    full = str(tmp_path / "new")
    start = threading.Barrier(8)
    wrote: list[int] = []

    def create(number: int) -> None:
        start.wait()
        if local_files.write_new(full, b"%d" % number):
            wrote.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = wrote
    assert b"%d" % winner == local_files.read(full)
    assert ["new"] == [one.name for one in tmp_path.iterdir()]


def test_a_disk_without_links_still_creates_exclusively(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some mounted file systems know none; another failure is not hidden."""
    full = tmp_path / "new"

    def refuses(code: int) -> None:
        def link(*_: object) -> None:
            raise OSError(code, "no links here")

        monkeypatch.setattr(os, "link", link)

    refuses(errno.EOPNOTSUPP)
    assert local_files.write_new(str(full), b"one")
    assert not local_files.write_new(str(full), b"two")
    assert b"one" == full.read_bytes()
    refuses(errno.ENOSPC)
    with pytest.raises(OSError, match="no links here"):
        local_files.write_new(str(tmp_path / "other"), b"")
    assert ["new"] == [one.name for one in tmp_path.iterdir()]


@pytest.mark.parametrize("size", [0, 1, 4096, 9 << 20])
def test_a_file_that_grows_or_is_read_in_parts_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """The kernel may give less than was asked for; a size is of the moment before."""
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    assert local_files.read(str(tmp_path / "file")) == data
    real = os.read
    monkeypatch.setattr(os, "read", lambda number, count: real(number, min(count, 1 << 20)))
    assert local_files.read(str(tmp_path / "file")) == data
    monkeypatch.setattr(os, "read", real)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", lambda _: os.stat_result((0,) * 10))
        assert local_files.read(str(tmp_path / "file")) == data


def test_a_directory_or_a_missing_file_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        local_files.read(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        local_files.read(str(tmp_path / "nowhere"))
