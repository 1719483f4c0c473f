"""Files on a file system of fsspec's that is not the local disk: one call of its client for each verb.

Errors are those of the client; counting, retrying and wording them is :class:`Storage`'s.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, BinaryIO, cast

from airflow_hudi_maint.core.storage.entries import Entry, Listing

S3_SCHEMES = frozenset(("s3", "s3a"))
_OBJECT_STORES = S3_SCHEMES | {"gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci", "tos", "cos", "obs", "memory"}
"""Where a put publishes an object at once, and folders need not be made."""
_WITHOUT_CACHE = frozenset(("sftp", "ssh"))
"""Clients that keep no listings and hand every option on to a library that refuses those it does not know."""
_SECONDS_TO_CONNECT, _SECONDS_OF_SILENCE = 10.0, 60.0
_HADOOP_MARKER = "_$folder$"
_IS_THERE = ("PreconditionFailed", "ConditionalRequestConflict")
_CANNOT_CREATE = ("NotImplemented", "ParamValidationError")
"""A store, or a botocore before 1.35.20, that knows no conditional put."""
_MODIFIED_KEYS = ("LastModified", "last_modified", "mtime", "modified", "updated", "created")

Page = Callable[[Callable[[], Any]], Any]
"""Runs one request: :class:`Storage` counts it and tries it again."""


def client_options(scheme: str, given: Mapping[str, object], *, concurrency: int) -> dict[str, object]:
    """What a client is opened with: what the user says, and what fits the way in which it is used here.

    No client keeps listings: the next look must see what was written since. An S3 client gets a connection for each
    thread and no retries of its own, so that they are counted and do not multiply; and it reads a file by one request,
    where s3fs would ask for its size first.
    """
    if scheme in _WITHOUT_CACHE:
        return dict(given)
    given = {**given, "use_listings_cache": False}
    if scheme not in S3_SCHEMES:
        return given
    settings = given.get("config_kwargs")
    config = {
        "max_pool_connections": concurrency,
        "retries": {"total_max_attempts": 1, "mode": "standard"},
        **(settings if isinstance(settings, Mapping) else {}),
    }
    return {"max_concurrency": 1, **given, "config_kwargs": config}


def endpoint_of(given: Mapping[str, object]) -> str:
    """The address of the server that these options name, without a user and password; empty without one."""
    client = given.get("client_kwargs")
    named = given.get("endpoint_url") or (client.get("endpoint_url") if isinstance(client, Mapping) else None)
    if not isinstance(named, str):
        return ""
    scheme, separator, rest = named.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


class RemoteFiles:
    """The verbs of storage on any file system of fsspec's, by full paths as it writes them."""

    def __init__(self, file_system: Any, *, concurrency: int) -> None:  # noqa: ANN401 fsspec has no types
        self._fs = file_system
        self._is_object_store = not _OBJECT_STORES.isdisjoint(protocols(file_system))
        _prepare_session(file_system, concurrency=concurrency)

    def list(self, full: str, *, page: Page) -> Listing:
        """List one directory level; FileNotFoundError for a file, and for what is not there."""
        found = page(lambda: self._fs.ls(full, detail=True))
        bare = str(self._fs._strip_protocol(full)).strip("/")  # noqa: SLF001 how fsspec itself compares names
        entries = []
        for info in found:
            if str(info["name"]).strip("/") != bare:
                entries.append(_entry(info))
            elif info["type"] != "directory" and not self._is_folder_marker(info):
                raise NotADirectoryError(full)  # a file, listed as itself
        return [entry for entry in entries if not _is_marker(entry)]

    def look(self, full: str, names: Collection[str], *, page: Page) -> Listing:
        """The files of these names in one directory that are there."""
        try:
            return [one for one in self.list(full, page=page) if one.name in names and not one.is_directory]
        except FileNotFoundError:
            return []

    def read(self, full: str) -> bytes:
        """Read a whole file."""
        return cast("bytes", self._fs.cat_file(full))

    def read_range(self, full: str, *, start: int, end: int) -> bytes:
        """Read the bytes from ``start`` up to ``end``, exclusively."""
        return cast("bytes", self._fs.cat_file(full, start=start, end=end))

    def size(self, full: str) -> int:
        """The bytes of a file; FileNotFoundError for a directory."""
        info = self._fs.info(full)
        if info["type"] == "directory":
            raise FileNotFoundError(full)
        return int(info["size"])

    def write(self, full: str, data: bytes) -> None:
        """Write a whole file so that a reader sees the old content or the new."""
        if self._is_object_store:
            self._fs.pipe_file(full, data)
            return
        folder, _, name = full.rpartition("/")
        self._fs.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
        try:
            self._fs.pipe_file(temporary, data)
            self._move(temporary, full)
        except BaseException:
            with suppress(Exception):  # what went wrong before says more
                self._fs.rm_file(temporary)
            raise

    def write_new(self, full: str, data: bytes) -> bool:
        """Write a whole file unless there is one; at once where the client can, else after a look."""
        if "memory" in protocols(self._fs):
            try:
                self._fs.pipe_file(full, data, mode="create")
            except FileExistsError:
                return False
            return True
        if self._fs.exists(full):
            return False
        self.write(full, data)
        return True

    @property
    def creates_exclusively(self) -> bool:
        """Whether of two who create one file at once only one succeeds."""
        return "memory" in protocols(self._fs)

    @property
    def is_object_store(self) -> bool:
        """Whether a move is a copy and a deletion, and a put publishes at once."""
        return self._is_object_store

    def open_output(self, full: str) -> BinaryIO:
        """Open a new file to write; object stores publish it when it is closed."""
        if not self._is_object_store:
            self._fs.makedirs(full.rpartition("/")[0], exist_ok=True)
        return cast("BinaryIO", self._fs.open(full, "wb"))

    def copy(self, source: str, target: str) -> None:
        """Copy an object to where nothing is, or what an earlier try copied."""
        size = int(self._fs.info(source)["size"])
        if self._fs.exists(target) and int(self._fs.info(target)["size"]) != size:
            raise FileExistsError(target)
        self._fs.cp_file(source, target)

    def rename(self, source: str, target: str) -> None:
        """Rename a file to where nothing is."""
        if self._fs.exists(target):
            raise FileExistsError(target)
        self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
        self._move(source, target)

    def remove_folder(self, full: str) -> None:
        """Remove a folder if it is empty."""
        with suppress(Exception):  # what it cannot remove stays, and does no harm
            if not self._fs.ls(full):
                self._fs.rmdir(full)

    def delete(self, full: str) -> None:
        """Delete a file; not every client says when it is not there."""
        self._fs.rm_file(full)

    def _is_folder_marker(self, info: Mapping[str, Any]) -> bool:
        """Whether an entry is the empty object that stands for its folder, as consoles of object stores make them."""
        return self._is_object_store and str(info["name"]).endswith("/")

    def _move(self, source: str, target: str) -> None:
        if "webhdfs" in protocols(self._fs):
            self._move_on_hdfs(source, target)
            return
        try:
            self._fs.mv(source, target)
        except OSError:
            # Some servers do not rename over a file. Without it a reader finds neither for the moment in between.
            if not self._fs.exists(target) or not self._fs.exists(source):
                raise
            self._fs.rm_file(target)
            self._fs.mv(source, target)

    def _move_on_hdfs(self, source: str, target: str) -> None:
        """Rename over a file, which a name node does at once; a HttpFS gateway refuses, and says so in the body."""

        def renamed(**options: str) -> bool:
            answer = self._fs._call("RENAME", method="put", path=source, destination=target, **options)  # noqa: SLF001
            return "false" not in answer.text

        if not renamed(renameoptions="OVERWRITE"):
            self._fs.rm_file(target)
            if not renamed():
                raise FileExistsError(target)


class S3Files(RemoteFiles):
    """The same on S3, listed page by page: s3fs hides the pages, and asks once more about what is not there."""

    @property
    def creates_exclusively(self) -> bool:
        """By a conditional put."""
        return True

    def list(self, full: str, *, page: Page) -> Listing:
        """List what is below a prefix; FileNotFoundError when that is nothing, not even a marker of the folder."""
        entries, is_there = self._between(full, first="", last="", page=page)
        if not entries and not is_there:
            raise FileNotFoundError(full)
        return entries

    def look(self, full: str, names: Collection[str], *, page: Page) -> Listing:
        """The same of some names, from the page of the first to that of the last."""
        if not names:
            return []
        wanted = frozenset(names)
        entries, _ = self._between(full, first=min(wanted), last=max(wanted), page=page)
        return [one for one in entries if one.name in wanted and not one.is_directory]

    def _between(self, full: str, *, first: str, last: str, page: Page) -> tuple[Listing, bool]:
        """The entries from about ``first`` to about ``last`` (empty: all), and whether the folder itself is there."""
        bucket, key, _ = self._fs.split_path(full)
        prefix = f"{key.rstrip('/')}/" if key else ""
        entries: Listing = []
        is_there = not prefix
        for answer in self._pages(bucket, prefix=prefix, page=page, after=first[:-1]):
            for one in answer.get("CommonPrefixes", ()):
                name = one["Prefix"][len(prefix) : -1]
                if name:  # a key with two slashes in a row is below a folder without a name, which nothing can ask for
                    entries.append(Entry(name, True, 0, None))  # noqa: FBT003 by position: a hot loop
            for one in answer.get("Contents", ()):
                is_there = True
                name = one["Key"][len(prefix) :]
                if name and not (name.endswith(_HADOOP_MARKER) and not one["Size"]):
                    modified_ns = int(one["LastModified"].timestamp() * 1e9)
                    entries.append(Entry(name, False, one["Size"], modified_ns))  # noqa: FBT003
            if last and any(one.name > last for one in entries[-1:]):
                break
        return entries, is_there

    def write_new(self, full: str, data: bytes) -> bool:
        """Put an object unless there is one, as S3 and the newer of the stores like it can; else after a look."""
        bucket, key, _ = self._fs.split_path(full)
        try:
            self._fs.call_s3("put_object", Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
        except Exception as error:
            said = f"{type(error).__name__} {error} {error.__cause__!r}"
            if any(one in said for one in _IS_THERE):
                return False
            if any(one in said for one in _CANNOT_CREATE):
                return super().write_new(full, data)
            raise
        return True

    def _pages(self, bucket: str, *, prefix: str, page: Page, after: str = "") -> Iterator[Mapping[str, Any]]:
        asked: dict[str, Any] = {**self._fs.req_kw, "Bucket": bucket, "Prefix": prefix, "Delimiter": "/"}
        if after:
            asked["StartAfter"] = f"{prefix}{after}"
        while True:
            answer = page(lambda: self._fs.call_s3("list_objects_v2", **asked))
            yield answer
            if not answer.get("IsTruncated"):
                return
            asked["ContinuationToken"] = answer["NextContinuationToken"]


def open_remote(file_system: Any, *, concurrency: int) -> RemoteFiles:  # noqa: ANN401 fsspec has no types
    """The verbs for a file system."""
    if hasattr(file_system, "call_s3"):
        file_system.retries = 1  # ours are counted
        return S3Files(file_system, concurrency=concurrency)
    return RemoteFiles(file_system, concurrency=concurrency)


def protocols(file_system: Any) -> tuple[str, ...]:  # noqa: ANN401 fsspec has no types
    """The schemes of a file system."""
    protocol = file_system.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def _entry(info: Mapping[str, Any]) -> Entry:
    is_directory = info["type"] == "directory"
    return Entry(
        name=str(info["name"]).rstrip("/").rpartition("/")[2],
        is_directory=is_directory,
        bytes=0 if is_directory else int(info.get("size") or 0),
        modified_ns=None if is_directory else _modified_ns(info),
    )


def _modified_ns(info: Mapping[str, Any]) -> int | None:
    if info.get("modificationTime"):  # HDFS counts milliseconds
        return int(info["modificationTime"]) * 1_000_000
    modified = next((info[key] for key in _MODIFIED_KEYS if info.get(key)), None)
    if isinstance(modified, str):
        with suppress(ValueError):
            modified = datetime.fromisoformat(modified)
    if isinstance(modified, datetime):
        modified = (modified if modified.tzinfo else modified.replace(tzinfo=UTC)).timestamp()
    return int(modified * 1e9) if isinstance(modified, int | float) else None


def _is_marker(entry: Entry) -> bool:
    """Whether an entry is only Hadoop's sign on an object store that a folder is there."""
    return not entry.is_directory and not entry.bytes and entry.name.endswith(_HADOOP_MARKER)


def _prepare_session(file_system: Any, *, concurrency: int) -> None:  # noqa: ANN401 fsspec has no types
    """Give a client that talks through ``requests`` (WebHDFS) a connection for each thread, and an end to each wait.

    By itself its pool has ten, and it waits for ever for a server that took the request and does not answer.
    """
    session: Any = getattr(file_system, "session", None)
    if not hasattr(session, "mount"):
        return
    from requests.adapters import HTTPAdapter

    class Adapter(HTTPAdapter):
        def send(self, request: Any, **options: Any) -> Any:  # type: ignore[override]  # noqa: ANN401 as it is called
            options["timeout"] = options.get("timeout") or (_SECONDS_TO_CONNECT, _SECONDS_OF_SILENCE)
            return super().send(request, **options)

    for scheme in ("http://", "https://"):
        session.mount(scheme, Adapter(pool_connections=concurrency, pool_maxsize=concurrency))
