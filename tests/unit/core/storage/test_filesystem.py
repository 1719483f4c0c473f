"""The storage seam behaves alike on a local disk and on another fsspec file system."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path
from typing import NoReturn

import fsspec
import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError, StorageAccessError, StorageError
from airflow_hudi_maint.core.storage.base_paths import plain_path
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.remote_files import client_options, endpoint_of
from airflow_hudi_maint.core.storage.retries import RetryPolicy


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """An empty root on each implementation."""
    if request.param == "local":
        return Storage.open(str(tmp_path / "root"))
    return Storage.open(f"memory://{uuid.uuid4().hex}/root")


def test_what_is_written_is_read_back(storage: Storage) -> None:
    """A write makes the folders it needs, and a second one replaces the first."""
    storage.write_atomic("a/b/c.json", b"one")
    storage.write_atomic("a/b/c.json", b"two")

    assert storage.read_bytes("a/b/c.json") == b"two"
    assert storage.read_many(["a/b/c.json", "a/b/c.json"]) == [b"two", b"two"]


def test_a_listing_shows_one_level(storage: Storage) -> None:
    """Files come with their sizes and times, folders without, and nothing else is there."""
    storage.write_atomic("a/file", b"12345")
    storage.write_atomic("a/folder/below", b"")

    entries = {entry.name: entry for entry in storage.list("a")}
    assert {"file": (False, 5), "folder": (True, 0)} == {
        name: (entry.is_directory, entry.bytes) for name, entry in entries.items()
    }
    assert entries["file"].modified is not None
    assert entries["folder"].modified is None


def test_what_is_absent_is_said_by_name(storage: Storage) -> None:
    """Reading or listing what is not there raises FileNotFoundError with the full path."""
    storage.write_atomic("there", b"")

    with pytest.raises(FileNotFoundError, match="root/nowhere does not exist"):
        storage.read_bytes("nowhere")
    with pytest.raises(FileNotFoundError, match="root/nowhere does not exist"):
        storage.list("nowhere")


def test_absent_directories_are_left_out_of_many(storage: Storage) -> None:
    """Listing several directories leaves out the ones that vanished."""
    storage.write_atomic("a/file", b"1")

    assert {"a"} == set(storage.list_many(["a", "b"]))


def test_requests_are_counted(storage: Storage) -> None:
    """Each listing, read and write counts once."""
    storage.write_atomic("a/file", b"1")
    storage.list_many(["a", "b"])
    storage.read_bytes("a/file")

    assert (2, 1, 1) == (storage.requests.lists, storage.requests.reads, storage.requests.writes)


def test_deleting_twice_is_an_error(storage: Storage) -> None:
    """A file is deleted once."""
    storage.write_atomic("a", b"1")
    storage.delete("a")

    with pytest.raises(FileNotFoundError, match="root/a does not exist"):
        storage.read_bytes("a")
    with pytest.raises(FileNotFoundError, match="root/a does not exist"):
        storage.delete("a")


def test_an_unknown_scheme_is_refused_by_name() -> None:
    """A URL that no installed file system opens is a setting to correct, not a storage failure."""
    with pytest.raises(InvalidSettingError, match="nosuch://bucket/table"):
        Storage.open("nosuch://bucket/table")
    with pytest.raises(InvalidSettingError, match="base path is empty"):
        Storage.open("")


@pytest.mark.parametrize(
    "spelling", ["{}", "{}/", "file://{}", "file:{}", "file://localhost{}/", "local://{}", "/{}//", "{}/./.", "/.{}"]
)
def test_a_local_directory_has_one_root(spelling: str, tmp_path: Path) -> None:
    """Statistics and plans are compared by base path, so however a directory is spelt, its root is the plain path."""
    storage = Storage.open(spelling.format(tmp_path))
    storage.write_atomic("file", b"1")

    assert str(tmp_path) == storage.root
    assert f"{tmp_path}/file" == storage.join("file")
    assert (tmp_path / "file").exists()


def test_a_url_has_one_root() -> None:
    """A URL keeps its scheme and loses slashes at its end, unless it is nothing else; S3 has one scheme."""
    assert "memory://bucket/table" == Storage.open("memory://bucket/table//").root
    assert "memory://" == Storage.open("memory://").root
    assert ["s3://lake/t"] * 3 == [plain_path(f"{scheme}://lake/t/") for scheme in ("s3", "s3a", "s3n")]
    assert "/" == Storage.open("file:///").root


@pytest.mark.parametrize("path", ["lake/table", "./table", "file:table", "file://lake/table", "file:", "~/table"])
def test_a_relative_path_is_refused(path: str) -> None:
    """A relative path means another directory in each process."""
    with pytest.raises(InvalidSettingError, match="is a relative path"):
        Storage.open(path)


def test_a_path_with_two_dots_is_refused() -> None:
    """Plans and statistics know a table by its path, and behind a link this is another place than it looks."""
    with pytest.raises(InvalidSettingError, match=r"'/lake/old/\.\./trips' has '\.\.' in it"):
        Storage.open("/lake/old/../trips")
    assert "/lake/..hidden" == plain_path("/lake/..hidden")


def test_no_client_keeps_listings_whatever_the_options_say() -> None:
    """A kept listing would hide what was written since; those that have none refuse the option."""
    assert {"use_listings_cache": False} == client_options("gs", {"use_listings_cache": True}, concurrency=4)
    assert {"port": 22} == client_options("sftp", {"port": 22}, concurrency=4)


def test_the_endpoint_is_shown_without_a_password() -> None:
    """It stands in messages; options that name none have none."""
    assert "https://minio:9000" == endpoint_of({"endpoint_url": "https://user:hush@minio:9000"})
    assert "http://minio" == endpoint_of({"client_kwargs": {"endpoint_url": "http://minio"}})
    assert "" == endpoint_of({"key": "k", "client_kwargs": None, "endpoint_url": None})


def test_a_disk_that_is_read_only_is_no_passing_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another try of the task would not help."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EROFS, "Read-only file system")

    storage = Storage.open(str(tmp_path))
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageAccessError, match="Read-only file system"):
        storage.write_atomic("file", b"1")


def test_a_file_system_that_does_not_start_is_a_setting_to_correct() -> None:
    """A file system may look for its library (HDFS) or its server (FTP) when it is opened, and fail."""

    class Unusable(fsspec.AbstractFileSystem):
        protocol = "unusable"

        def __init__(self, **_: object) -> None:
            raise OSError("Unable to load libjvm")

    fsspec.register_implementation("unusable", Unusable, clobber=True)
    with pytest.raises(
        InvalidSettingError, match="No file system opens 'unusable://host/table': Unable to load libjvm"
    ):
        Storage.open("unusable://host/table")


def test_a_failure_of_the_storage_is_transient_and_names_the_path(tmp_path: Path) -> None:
    """Whatever a back end raises in the middle of a listing becomes a StorageError with the path."""

    class Failing(fsspec.AbstractFileSystem):
        protocol = "failing"

        def ls(self, path: str, *, detail: bool = True, **_: object) -> list[object]:
            msg = "connection reset"
            raise ConnectionResetError(msg)

    at_once = RetryPolicy(sleep=lambda _: None)
    storage = Storage(root="failing://bucket", file_system=Failing(), prefix="bucket", retry=at_once)

    with pytest.raises(StorageError, match=r"failing://bucket/day=1: ConnectionResetError: connection reset"):
        storage.list("day=1")
    with pytest.raises(StorageError, match="failing://bucket/day=2"):
        storage.list_many(["day=2"])


def test_a_write_that_fails_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk fails before the rename, the old file is whole and no temporary file stays."""
    storage = Storage.open(str(tmp_path))
    storage.write_atomic("file", b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        storage.write_atomic("file", b"new")

    assert b"old" == storage.read_bytes("file")
    assert ["file"] == [path.name for path in tmp_path.iterdir()]


def test_a_checksum_of_hadoops_does_not_outlive_the_file_that_it_belongs_to(tmp_path: Path) -> None:
    """Hadoop refuses to read a local file whose side file has another checksum: replacing or deleting takes both."""
    storage = Storage.open(str(tmp_path))
    for act in (lambda: storage.write_atomic("file", b"new"), lambda: storage.delete("file")):
        (tmp_path / "file").write_bytes(b"old")
        (tmp_path / ".file.crc").write_bytes(b"crc\0")
        act()

        assert not (tmp_path / ".file.crc").exists()


def test_names_are_those_of_a_listing(storage: Storage) -> None:
    """Names alone are the same as with details, and an absent directory is said by name."""
    storage.write_atomic("a/file", b"1")
    storage.write_atomic("a/folder/below", b"")

    assert {entry.name for entry in storage.list("a")} == set(storage.names("a"))
    with pytest.raises(FileNotFoundError, match="root/nowhere does not exist"):
        storage.names("nowhere")
