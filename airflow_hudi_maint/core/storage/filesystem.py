"""The one seam to storage: a base path on any file system that fsspec opens.

Local directories take a shorter way through ``os.scandir``: fsspec's own listing spends most of its time on details
that nobody reads here, and a table has tens of thousands of entries.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast

from airflow_hudi_maint.core.errors import InvalidSettingError, StorageError, TerminalError

_POOL_SIZE = 16
_LOCAL_SCHEME = re.compile(r"(?:file|local):(?://(?:localhost(?=/))?)?")


class Entry(NamedTuple):
    """One entry of a directory, a tuple because a listing makes tens of thousands of them.

    ``modified_ns`` counts nanoseconds since 1970 in UTC; None for directories and where the storage does not tell.
    """

    name: str
    is_directory: bool
    bytes: int
    modified_ns: int | None

    @property
    def modified(self) -> datetime | None:
        """When the file was last written, in UTC."""
        return None if self.modified_ns is None else datetime.fromtimestamp(self.modified_ns / 1e9, tz=UTC)


Listing: TypeAlias = list[Entry]
"""One directory level, in no order."""
Contents: TypeAlias = list[bytes]


@dataclass(slots=True)
class RequestCount:
    """How many requests went to storage, by verb."""

    lists: int = 0
    reads: int = 0
    writes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, verb: str) -> None:
        """Count one request; safe from any thread."""
        with self._lock:
            setattr(self, verb, getattr(self, verb) + 1)


class Storage:
    """Files below one root. Paths are relative to it, with forward slashes; ``""`` is the root itself.

    A missing file or directory raises FileNotFoundError; any other failure of the storage raises StorageError, which
    is transient. Safe to use from several threads.
    """

    def __init__(self, *, root: str, file_system: Any, prefix: str) -> None:  # noqa: ANN401 fsspec has no types
        self.root = root
        self.requests = RequestCount()
        self._fs = file_system
        self._prefix = prefix.rstrip("/")
        self._is_local = "file" in _protocols(file_system)

    @classmethod
    def open(cls, url: str, *, storage_options: Mapping[str, object] | None = None) -> Storage:
        """Open a path or URL; ``storage_options`` go to fsspec as they are.

        The root of a local directory is its plain path, however it was spelt: see :func:`plain_path`.

        Raises InvalidSettingError for a relative path, for an unknown scheme, for a file system that does not start
        (its package or library is missing, its server refuses), and for options that it refuses. Nothing is read yet.
        """
        import fsspec

        if not url:
            msg = "The base path is empty; give the table's base path, for example /lake/db/table or s3://lake/db/table"
            raise InvalidSettingError(msg)
        root = plain_path(url)
        if "://" not in root and not os.path.isabs(root):
            msg = (
                f"{url!r} is a relative path, which means another place in each process; give an absolute path or a URL"
            )
            raise InvalidSettingError(msg)
        try:
            file_system, prefix = fsspec.core.url_to_fs(root, use_listings_cache=False, **(storage_options or {}))
        except (ImportError, OSError, ValueError, TypeError) as error:
            msg = f"No file system opens {url!r}: {error}"
            raise InvalidSettingError(msg) from error
        return cls(root=root, file_system=file_system, prefix=str(prefix))

    def __repr__(self) -> str:
        return f"Storage({self.root!r})"

    def join(self, path: str) -> str:
        """The full path, for messages."""
        return f"{self.root}/{path}" if path else self.root

    def list(self, path: str) -> Listing:
        """List one directory level, in no order; FileNotFoundError when there is no such directory."""
        self.requests.add("lists")
        with self._failures(path):
            return self._list_local(path) if self._is_local else self._list_remote(path)

    def names(self, path: str) -> tuple[str, ...]:
        """The names in one directory, in no order: what :meth:`list` shows at a third of the cost, without details."""
        self.requests.add("lists")
        with self._failures(path):
            if self._is_local:
                return tuple(os.listdir(self._full(path)))
            return tuple(entry.name for entry in self._list_remote(path))

    def list_many(self, paths: Sequence[str]) -> dict[str, Listing]:
        """List several directories, concurrently where storage is remote; absent ones are left out."""
        if self._is_local:
            listed: Iterator[Listing | None] = map(self._list_or_none, paths)
        else:
            with ThreadPoolExecutor(max_workers=_POOL_SIZE) as pool:
                listed = iter(tuple(pool.map(self._list_or_none, paths)))
        return {path: entries for path, entries in zip(paths, listed, strict=True) if entries is not None}

    def read_bytes(self, path: str) -> bytes:
        """Read a whole file."""
        self.requests.add("reads")
        with self._failures(path):
            if self._is_local:
                with open(self._full(path), "rb") as file:
                    return file.read()
            return cast("bytes", self._fs.cat_file(self._full(path)))

    def read_many(self, paths: Sequence[str]) -> Contents:
        """Read several files, concurrently where storage is remote, in the order given."""
        if self._is_local or len(paths) < 2:  # noqa: PLR2004 a pool for one file costs more than it saves
            return [self.read_bytes(path) for path in paths]
        with ThreadPoolExecutor(max_workers=_POOL_SIZE) as pool:
            return [*pool.map(self.read_bytes, paths)]

    @contextmanager
    def open_input(self, path: str) -> Iterator[BinaryIO]:
        """Open a file to seek in."""
        self.requests.add("reads")
        with self._failures(path), self._fs.open(self._full(path), "rb") as file:
            yield file

    def write_atomic(self, path: str, data: bytes) -> None:
        """Write a whole file so that a reader sees the old content or the new, never a part.

        Locally by a temporary name and a rename; object stores publish a put at once by themselves.
        """
        self.requests.add("writes")
        full = self._full(path)
        with self._failures(path):
            if not self._is_local:
                self._fs.makedirs(full.rpartition("/")[0], exist_ok=True)
                self._fs.pipe_file(full, data)
                return
            os.makedirs(os.path.dirname(full), exist_ok=True)
            _write_and_rename(full, data)

    def delete(self, path: str) -> None:
        """Delete one file; FileNotFoundError when it is not there."""
        self.requests.add("writes")
        full = self._full(path)
        with self._failures(path):
            if self._is_local:
                _drop_checksum(full)
            self._fs.rm_file(full)

    def _full(self, path: str) -> str:
        return f"{self._prefix}/{path}" if path else self._prefix or "/"

    def _list_or_none(self, path: str) -> Listing | None:
        try:
            return self.list(path)
        except FileNotFoundError:
            return None

    def _list_local(self, path: str) -> Listing:
        entries: Listing = []
        with os.scandir(self._full(path)) as found:
            for one in found:
                try:
                    status = one.stat()
                except FileNotFoundError:  # deleted while it was listed, as the cleaner does
                    continue
                if stat.S_ISDIR(status.st_mode):
                    entries.append(Entry(one.name, True, 0, None))  # noqa: FBT003 by position: this is the hot loop
                else:
                    entries.append(Entry(one.name, False, status.st_size, status.st_mtime_ns))  # noqa: FBT003
        return entries

    def _list_remote(self, path: str) -> Listing:
        full = self._full(path)
        found = self._fs.ls(full, detail=True)
        bare = self._fs._strip_protocol(full).rstrip("/")  # noqa: SLF001 how fsspec itself compares names
        return [_remote_entry(info) for info in found if str(info["name"]).rstrip("/") != bare]

    @contextmanager
    def _failures(self, path: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as error:
            msg = f"{self.join(path)} does not exist"
            raise FileNotFoundError(msg) from error
        except (TerminalError, StorageError):
            raise
        except Exception as error:
            # fsspec back ends raise whatever their client library raises.
            msg = f"Storage failed at {self.join(path)}: {type(error).__name__}: {error}; try again"
            raise StorageError(msg) from error


def plain_path(url: str) -> str:
    """The one spelling of a path or URL: a local one without scheme, none with a slash at its end.

    >>> [plain_path(url) for url in ("/lake/t/", "file:///lake/t", "file:/lake//t", "s3://lake/t/")]
    ['/lake/t', '/lake/t', '/lake/t', 's3://lake/t']
    """
    local = _LOCAL_SCHEME.sub("", url, count=1) if _LOCAL_SCHEME.match(url) else url
    if "://" not in local:
        local = re.sub("/{2,}", "/", local)
    return local if local.endswith("://") else local.rstrip("/") or local


def _protocols(file_system: Any) -> tuple[str, ...]:  # noqa: ANN401 fsspec has no types
    protocol = file_system.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def _remote_entry(info: Mapping[str, Any]) -> Entry:
    is_directory = info["type"] == "directory"
    modified = next(
        (info[key] for key in ("LastModified", "last_modified", "mtime", "modified", "created") if info.get(key)), None
    )
    seconds = modified.timestamp() if isinstance(modified, datetime) else modified
    return Entry(
        name=str(info["name"]).rstrip("/").rpartition("/")[2],
        is_directory=is_directory,
        bytes=0 if is_directory else int(info.get("size") or 0),
        modified_ns=None if is_directory or not isinstance(seconds, int | float) else int(seconds * 1e9),
    )


def _write_and_rename(full: str, data: bytes) -> None:
    folder, _, name = full.rpartition("/")
    temporary = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _drop_checksum(full)
        os.replace(temporary, full)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _drop_checksum(full: str) -> None:
    """Remove the checksum that Hadoop keeps beside each file that it writes to a local disk.

    It would not fit the new content, and every later read through Hadoop, so every job of Hudi, would fail. Without
    one Hadoop reads unchecked.
    """
    folder, _, name = full.rpartition("/")
    with suppress(FileNotFoundError):
        os.unlink(f"{folder}/.{name}.crc")
