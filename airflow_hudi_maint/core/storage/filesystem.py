"""The one seam to storage: a base path on any file system that fsspec opens.

Local directories are read without fsspec. Other storage is asked from a pool of threads, each request is counted, and
one that fails in passing is tried again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, BinaryIO, Self, TypeAlias, TypeVar, cast

from airflow_hudi_maint.core.errors import InvalidSettingError, StorageAccessError, StorageError, TerminalError
from airflow_hudi_maint.core.model.secrets import redacted, secrets_in, shows_secret
from airflow_hudi_maint.core.storage import local_files
from airflow_hudi_maint.core.storage.base_paths import checked_root, plain_path
from airflow_hudi_maint.core.storage.entries import Entry, Listing
from airflow_hudi_maint.core.storage.range_file import RangeFile
from airflow_hudi_maint.core.storage.remote_files import (
    RemoteFiles,
    client_options,
    endpoint_of,
    open_remote,
    protocols,
)
from airflow_hudi_maint.core.storage.request_count import RequestCount
from airflow_hudi_maint.core.storage.retries import RetryPolicy, is_denied, is_outdated, is_unreached

__all__ = ["DEFAULT_CONCURRENCY", "Contents", "Entry", "Listing", "RequestCount", "Storage", "plain_path"]

DEFAULT_CONCURRENCY = 16
MAX_CONCURRENCY = 256

Contents: TypeAlias = list[bytes]
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Storage:
    """Files below one root. Paths are relative to it, with forward slashes; ``""`` is the root itself.

    A missing file or directory raises FileNotFoundError, one that may not be read StorageAccessError; any other failure
    of the storage raises StorageError, which is transient, after the tries of ``retry`` where storage is remote. Safe
    to use from several threads; :meth:`close` ends its own, and so does losing the last reference to it.
    """

    def __init__(
        self,
        *,
        root: str,
        file_system: Any,  # noqa: ANN401 fsspec has no types
        prefix: str,
        concurrency: int = DEFAULT_CONCURRENCY,
        retry: RetryPolicy | None = None,
        secrets: Iterable[str] = (),
        endpoint: str = "",
    ) -> None:
        self.root = root
        self.requests = RequestCount()
        self.concurrency = concurrency
        self._fs = file_system
        self._prefix = prefix.rstrip("/")
        self._is_local = "file" in protocols(file_system)
        self._remote: RemoteFiles = open_remote(file_system, concurrency=concurrency)
        self._retry = retry or RetryPolicy()
        self._secrets = tuple(secrets)
        self._endpoint = endpoint
        self._pool: ThreadPoolExecutor | None = None
        self._pool_lock = threading.Lock()

    @classmethod
    def open(
        cls,
        url: str,
        *,
        storage_options: Mapping[str, object] | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        retry: RetryPolicy | None = None,
    ) -> Storage:
        """Open a path or URL; ``storage_options`` go to fsspec as they are.

        The root of a local directory is its plain path, however it was spelt: see :func:`plain_path`. At most
        ``concurrency`` requests are under way at a time where storage is remote; ``retry`` None is five tries.

        Raises InvalidSettingError for a root that :func:`checked_root` refuses, for an unknown scheme, for a file
        system that does not start (its package or library is missing, its server refuses), and for options that it
        refuses. Nothing is read yet.
        """
        import fsspec

        root = checked_root(url)
        if not 1 <= concurrency <= MAX_CONCURRENCY:
            raise InvalidSettingError(f"storage_concurrency={concurrency}; expected 1 to {MAX_CONCURRENCY}")
        given = storage_options or {}
        secrets = tuple(secrets_in(given))
        options = client_options(root.partition("://")[0], given, concurrency=concurrency)
        try:
            file_system, prefix = fsspec.core.url_to_fs(root, **options)
        except (ImportError, OSError, ValueError, TypeError) as error:
            msg = f"No file system opens {url!r}: {redacted(str(error), secrets=secrets)}"
            raise InvalidSettingError(msg) from (None if shows_secret(error, secrets=secrets) else error)
        return cls(
            root=root,
            file_system=file_system,
            prefix=str(prefix),
            concurrency=concurrency,
            retry=retry,
            secrets=secrets,
            endpoint=endpoint_of(given),
        )

    def __repr__(self) -> str:
        return f"Storage({self.root!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads; another request starts new ones."""
        with self._pool_lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)

    @property
    def is_local(self) -> bool:
        """Whether the files lie on a disk of this machine, where a listing costs next to nothing."""
        return self._is_local

    @property
    def creates_exclusively(self) -> bool:
        """Whether of two who call :meth:`write_new` for one path at once only one succeeds."""
        return self._is_local or self._remote.creates_exclusively

    def join(self, path: str) -> str:
        """The full path, for messages."""
        return f"{self.root}/{path}" if path else self.root

    def local_path(self, path: str) -> str:
        """The path on this machine's disk, where storage is local."""
        return self._full(path)

    def list(self, path: str) -> Listing:
        """List one directory level, in no order; FileNotFoundError when there is no such directory."""
        if not self._is_local:
            with self._failures(path):
                return self._remote.list(self._full(path), page=self._list_page)
        self.requests.add("lists")
        try:
            return local_files.list_folder(self._full(path))
        except Exception:
            with self._failures(path):  # entered for a failure alone: there may be a hundred thousand directories
                raise

    def list_own(self, path: str) -> tuple[Listing, tuple[str, ...]]:
        """List one directory level without following symbolic links, whose names come apart; only disks have any."""
        if not self._is_local:
            return self.list(path), ()
        self.requests.add("lists")
        with self._failures(path):
            return local_files.list_own(self._full(path))

    def look(self, path: str, names: Collection[str]) -> dict[str, Entry]:
        """Those of the named files of one directory that are there, without links, at the cost of what lies between."""
        full = self._full(path)
        self.requests.add("lists", count=self._is_local)
        with self._failures(path):
            if self._is_local:
                found: Iterable[Entry] = local_files.look(full, names)
            else:
                found = self._remote.look(full, names, page=self._list_page)
            return {entry.name: entry for entry in found}

    def names(self, path: str) -> tuple[str, ...]:
        """The names in one directory, in no order: what :meth:`list` shows at a third of the cost, without details."""
        if not self._is_local:
            return tuple(entry.name for entry in self.list(path))
        self.requests.add("lists")
        with self._failures(path):
            return tuple(os.listdir(self._full(path)))

    def list_many(self, paths: Sequence[str]) -> dict[str, Listing]:
        """List several directories, concurrently where storage is remote; absent ones are left out."""
        listed: Iterable[Listing | None] = (
            map(self._list_or_none, paths) if self._is_local else self.concurrently(self._list_or_none, paths)
        )
        return {path: entries for path, entries in zip(paths, listed, strict=True) if entries is not None}

    def read_bytes(self, path: str) -> bytes:
        """Read a whole file."""
        full = self._full(path)
        with self._failures(path):
            if not self._is_local:
                return self._ask("reads", lambda _: self._remote.read(full))
            self.requests.add("reads")
            return local_files.read(full)

    def read_many(self, paths: Sequence[str]) -> Contents:
        """Read several files, concurrently where storage is remote, in the order given."""
        self.requests.add("expected_reads", count=len(paths))
        if self._is_local:
            return [self.read_bytes(path) for path in paths]
        return [*self.concurrently(self.read_bytes, paths)]

    def concurrently(self, act: Callable[[_Item], _Result], items: Sequence[_Item]) -> tuple[_Result, ...]:
        """Call ``act`` for each item in the threads of this storage and return the results in their order.

        ``act`` may read and list, but not call this method, nor one that reads or lists many: every thread might wait
        for another. The first error is raised, and what has not begun then is left.
        """
        if len(items) < 2 or self.concurrency == 1:  # noqa: PLR2004 a pool for one costs more than it saves
            return tuple(act(item) for item in items)
        return tuple(self._threads().map(act, items))

    @contextmanager
    def open_input(self, path: str) -> Iterator[BinaryIO]:
        """Open a file to seek in. On remote storage only the ranges that are read are fetched, each by one request.

        An error of the caller's own inside the block passes as it is.
        """
        full = self._full(path)
        if self._is_local:
            self.requests.add("reads")
            with self._failures(path, kind=OSError), open(full, "rb") as file:
                yield file
            return

        def fetch(start: int, end: int) -> bytes:
            with self._failures(path):
                return self._ask("reads", lambda _: self._remote.read_range(full, start=start, end=end))

        def size() -> int:
            with self._failures(path):
                return self._ask("reads", lambda _: self._remote.size(full))

        with RangeFile(fetch=fetch, size=size) as remote:
            yield cast("BinaryIO", remote)

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        """Open a new file to write as a stream; it is whole, and on the disk, when the block ends.

        A block that ends by an error leaves nothing or a part, under the name that was given: nobody else's.
        """
        full = self._full(path)
        self.requests.add("writes")
        with self._failures(path):
            file = local_files.open_output(full) if self._is_local else self._remote.open_output(full)
        with file as output:
            try:
                yield output
            except (FileNotFoundError, StorageError, TerminalError):  # of what the caller reads meanwhile
                raise
            except OSError as error:
                raise self._failure(error, path=path) from self._cause(error)
            with self._failures(path):
                if self._is_local:
                    local_files.settle(output)
                else:
                    output.close()

    def permit_as(self, path: str, sources: Sequence[str]) -> None:
        """Let those who may read each of ``sources`` read a file, and no others; only disks know of permissions."""
        if self._is_local:
            with self._failures(path):
                local_files.permit_as(self._full(path), [self._full(one) for one in sources])

    def move(self, source: str, target: str) -> None:
        """Give a file another path below the root: a rename, or on object stores a copy and then a deletion.

        There must be nothing at ``target``. Between the two requests of an object store the file is at both paths.
        FileNotFoundError when there is no ``source``, StorageError when something is at ``target``.
        """
        full, wanted = self._full(source), self._full(target)
        self.requests.add("writes")
        with self._failures(source):
            if self._is_local:
                local_files.move(full, wanted)
            elif self._remote.is_object_store:
                self._ask("writes", lambda _: self._remote.copy(full, wanted))
                self._ask("writes", lambda attempt: self._delete_remote(full, attempt=attempt))
            else:
                self._remote.rename(full, wanted)

    def write_atomic(self, path: str, data: bytes) -> None:
        """Write a whole file so that a reader sees the old content or the new, never a part.

        By a temporary name and a rename, but for object stores, which publish a put at once. A gateway to HDFS and some
        servers do not rename over a file: there, for a moment, a reader may find none.
        """
        full = self._full(path)
        with self._failures(path):
            if not self._is_local:
                self._ask("writes", lambda _: self._remote.write(full, data))
                return
            self.requests.add("writes")
            local_files.write(full, data)

    def write_new(self, path: str, data: bytes) -> bool:
        """Write a whole file unless there is one, and say whether it was written.

        Of several who try at once, one succeeds: on a local disk, in memory and on S3 (:attr:`creates_exclusively`).
        Other storage is asked whether the file is there, and then written to.
        """
        full = self._full(path)
        with self._failures(path):
            if not self._is_local:
                return self._ask("writes", lambda _: self._remote.write_new(full, data))
            self.requests.add("writes")
            return local_files.write_new(full, data)

    def delete(self, path: str) -> None:
        """Delete one file; FileNotFoundError when it is not there."""
        full = self._full(path)
        with self._failures(path):
            if self._is_local:
                self.requests.add("writes")
                local_files.delete(full)
                return
            # S3 and WebHDFS do not say by themselves that there is nothing to delete.
            self._ask("reads", lambda _: self._remote.size(full))
            self._ask("writes", lambda attempt: self._delete_remote(full, attempt=attempt))

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder where storage has such; one that is not empty or not there stays as it is."""
        if self._is_local:
            local_files.remove_folder(self._full(path))
        elif not self._remote.is_object_store:
            self._remote.remove_folder(self._full(path))

    def _full(self, path: str) -> str:
        return f"{self._prefix}/{path}" if path else self._prefix or "/"

    def _threads(self) -> ThreadPoolExecutor:
        with self._pool_lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(max_workers=self.concurrency, thread_name_prefix="hudi-storage")
            return self._pool

    def _ask(self, verb: str, act: Callable[[int], _Result]) -> _Result:
        def counted(attempt: int) -> _Result:
            self.requests.add(verb)
            return act(attempt)

        return self._retry.call(counted, on_retry=lambda: self.requests.add("retries"))

    def _list_page(self, ask: Callable[[], _Result]) -> _Result:
        return self._ask("lists", lambda _: ask())

    def _delete_remote(self, full: str, *, attempt: int) -> None:
        try:
            self._remote.delete(full)
        except FileNotFoundError:
            if not attempt:  # otherwise the try whose answer was lost deleted it
                raise

    def _list_or_none(self, path: str) -> Listing | None:
        try:
            return self.list(path)
        except FileNotFoundError:
            return None

    @contextmanager
    def _failures(self, path: str, *, kind: type[Exception] = Exception) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as error:
            msg = f"{self.join(path)} does not exist"
            raise FileNotFoundError(msg) from self._cause(error)
        except (TerminalError, StorageError):
            raise
        except kind as error:
            # fsspec back ends raise whatever their client library raises.
            raise self._failure(error, path=path) from self._cause(error)

    def _cause(self, error: Exception) -> Exception | None:
        """The error, for the traceback, which shows the texts of causes too; None where one of them has a secret."""
        return None if shows_secret(error, secrets=self._secrets) else error

    def _failure(self, error: Exception, *, path: str) -> StorageAccessError | StorageError:
        where = self.join(path)
        said = f"{type(error).__name__}: {redacted(str(error), secrets=self._secrets)}"
        if self._endpoint:
            said += f" (endpoint {self._endpoint})"
        if is_denied(error):
            return StorageAccessError(
                f"Access to {where} is denied: {said}; check the credentials and what they may do (object "
                "stores also answer so for what is missing, to those who may not list)"
            )
        if is_outdated(error):
            return StorageError(f"The credentials for {where} ran out: {said}; try again with fresh ones")
        if is_unreached(error):
            return StorageError(f"Nobody answers for {where}: {said}; check endpoint and server, then try again")
        return StorageError(f"Storage failed at {where}: {said}; try again")
