"""The archive of timeline layout 2 (table versions 8 and 9): Parquet files whose names tell the range that they hold.

``_version_`` names the newest manifest, the manifest names the files, ``<min>_<max>_<level>.parquet`` by the requested
times of their instants. Source: Hudi's ``LSMTimeline``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO

from airflow_hudi_maint.core.errors import CorruptTableError, StorageError
from airflow_hudi_maint.core.model.instant import ACTIONS_BY_NAME, Instant, State
from airflow_hudi_maint.core.storage import instants
from airflow_hudi_maint.core.storage.archive import ArchivedInstant
from airflow_hudi_maint.core.storage.filesystem import Entry, Storage

_FILE_NAME = re.compile(r"([0-9]+)_([0-9]+)_[0-9]\.parquet")
_MANIFEST = re.compile(r"manifest_([0-9]+)")
_VERSION = "_version_"
_INDEX_COLUMNS = ("instantTime", "completionTime", "action")
_WHOLE_BELOW_BYTES = 4 * 1024 * 1024
_MOST_KEPT_BYTES = 32 * 1024 * 1024
_FETCHED_BYTES = 4 * 1024 * 1024
_ROWS_AT_A_TIME = 16
_MOST_TRIES = 2
_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """Where an instant stands: the file and the number of the row in it."""

    file: Entry
    number: int


@dataclass(slots=True, kw_only=True)
class _Cursor:
    """A column of a file that is read forwards; ``start`` is the number of the first of the values at hand."""

    file_name: str
    parts: Iterator[list[list[Any]]]
    start: int = 0
    values: list[Any] = field(default_factory=list)

    def value(self, number: int) -> object:
        """The value in a row that is not before ``start``."""
        while number >= self.start + len(self.values):
            self.start += len(self.values)
            (self.values,) = next(self.parts)
        return self.values[number - self.start]


class HistoryArchive:
    """The archive of a table of version 8 or later.

    Small files of up to 32 MiB together are kept in memory, and some rows of metadata and of plans.
    """

    def __init__(self, *, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._cursors: dict[str, _Cursor] = {}
        self._kept_files: dict[str, bytes] = {}

    def files(self) -> tuple[Entry, ...]:
        """The files of the newest manifest, in order of their ranges."""
        found = self._manifest()
        return tuple(sorted(found, key=lambda one: one.name))

    def instants(self, *, since: str | None = None, until: str | None = None) -> tuple[ArchivedInstant, ...]:
        """See :class:`~airflow_hudi_maint.core.storage.archive.Archive`; opens only files of that range."""
        found: dict[tuple[str, str], ArchivedInstant] = {}
        for file in self.files():
            oldest, newest = self._range(file)
            if (since is None or since <= newest) and (until is None or oldest <= until):
                for one in self._read(file):
                    requested = one.instant.requested_time
                    if (since is None or since <= requested) and (until is None or requested <= until):
                        found[requested, one.instant.action] = one
        return tuple(found[key] for key in sorted(found))

    def _range(self, file: Entry) -> tuple[str, str]:
        match = _FILE_NAME.fullmatch(file.name)
        if match is None:
            msg = f"{self._path(file.name)} is no name of a history file; expected <min>_<max>_<level>.parquet"
            raise CorruptTableError(msg)
        return match[1], match[2]

    def _manifest(self) -> list[Entry]:
        """The entries of the newest manifest; read again when the archiver removed it meanwhile."""
        for _ in range(_MOST_TRIES):
            number = self._newest_version()
            if number is None:
                return []
            path = f"{self._folder}/manifest_{number}"
            try:
                data = self._storage.read_bytes(path)
            except FileNotFoundError:
                continue
            return self._entries(data, name=self._storage.join(path))
        msg = f"{self._storage.join(path)} is missing, though {_VERSION} beside it names it"
        raise CorruptTableError(msg)

    def _newest_version(self) -> int | None:
        """As Hudi finds it: by ``_version_``, which is gone while it is written, else the greatest manifest."""
        path = f"{self._folder}/{_VERSION}"
        try:
            text = self._storage.read_bytes(path).strip()
        except FileNotFoundError:
            text = b""
        if text.isdigit() and len(text) <= _MOST_DIGITS:
            return int(text)
        try:
            names = self._storage.names(self._folder)
        except FileNotFoundError:
            return None
        numbers = [int(match[1]) for match in map(_MANIFEST.fullmatch, names) if match]
        if not numbers and any(map(_FILE_NAME.fullmatch, names)):
            msg = f"{self._storage.join(path)} is missing or holds no number, and there is no manifest beside it"
            raise CorruptTableError(msg)
        return max(numbers, default=None)

    def _entries(self, data: bytes, *, name: str) -> list[Entry]:
        record = instants.decode(data, name=name)
        try:
            return [Entry(str(one["fileName"]), False, int(one["fileLen"]), None) for one in record["files"]]  # noqa: FBT003 a tuple
        except (KeyError, TypeError, ValueError) as error:
            msg = f"{name} is no manifest of archived instants: {error!r}"
            raise CorruptTableError(msg) from error

    def _read(self, file: Entry) -> Iterator[ArchivedInstant]:
        rows = (row for part in self._parts(file, names=_INDEX_COLUMNS) for row in zip(*part, strict=True))
        for number, (requested, completion, action_name) in enumerate(rows):
            action = ACTIONS_BY_NAME.get(action_name)
            if action is None or not isinstance(requested, str):
                continue
            row = _Row(file=file, number=number)
            yield ArchivedInstant(
                instant=Instant(
                    requested_time=requested,
                    action=action.completed_as,
                    state=State.COMPLETED,
                    completion_time=completion,
                    file_name=file.name,
                ),
                name=self._path(file.name),
                _metadata=partial(self._record, row, column="metadata"),
                _plan=partial(self._record, row, column="plan"),
            )

    def _record(self, row: _Row, *, column: str) -> Mapping[str, Any] | None:
        cursor = self._cursors.get(column)
        if cursor is None or cursor.file_name != row.file.name or row.number < cursor.start:
            cursor = _Cursor(file_name=row.file.name, parts=self._parts(row.file, names=(column,)))
            self._cursors[column] = cursor
        data = cursor.value(row.number)
        name = f"row {row.number + 1} of {self._path(row.file.name)}"
        if data is not None and not isinstance(data, bytes):
            raise CorruptTableError(f"{name} has {type(data).__name__} where {column} belongs; expected bytes")
        return instants.decode(data, name=name) if data else None

    def _parts(self, file: Entry, *, names: tuple[str, ...]) -> Iterator[list[list[Any]]]:
        """Columns of a file, some rows at a time; a small file is fetched whole, of a large one only these columns."""
        path = f"{self._folder}/{file.name}"
        data = None if file.bytes > _WHOLE_BELOW_BYTES else self._whole(file.name)
        return _parts_of(self._storage, path=path, data=data, names=names)

    def _whole(self, file_name: str) -> bytes:
        data = self._kept_files.get(file_name)
        if data is None:
            data = _fetched(self._storage, path=f"{self._folder}/{file_name}")
            if len(data) + sum(map(len, self._kept_files.values())) > _MOST_KEPT_BYTES:
                self._kept_files.clear()
            self._kept_files[file_name] = data
        return data

    def _path(self, file_name: str) -> str:
        return self._storage.join(f"{self._folder}/{file_name}")


def _parts_of(storage: Storage, *, path: str, data: bytes | None, names: tuple[str, ...]) -> Iterator[list[list[Any]]]:
    """The columns of a file that is at hand (``data``) or fetched by ranges. No archive is held: it holds this."""
    import pyarrow as pa

    done = 0
    if data is None:
        # A broken file and a failing storage look alike here; read as a whole, they do not.
        with suppress(StorageError, FileNotFoundError, pa.ArrowException), storage.open_input(path) as source:
            for part in _columns(source, names=names):
                yield part
                done += len(part[0])
            return
        data = _fetched(storage, path=path)
    try:
        for part in _columns(io.BytesIO(data), names=names):
            rest = [values[done:] for values in part]
            done = max(0, done - len(part[0]))
            if rest[0]:
                yield rest
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        msg = f"{storage.join(path)} is no history file that can be read: {error}"
        raise CorruptTableError(msg) from error


def _fetched(storage: Storage, *, path: str) -> bytes:
    try:
        return storage.read_bytes(path)
    except FileNotFoundError as error:
        msg = f"{storage.join(path)} is missing, though the manifest of the archive names it"
        raise CorruptTableError(msg) from error


def _columns(source: BinaryIO, *, names: tuple[str, ...]) -> Iterator[list[list[Any]]]:
    """The values of columns, some rows at a time: what a commit of thousands of partitions says has megabytes."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(source, buffer_size=_FETCHED_BYTES)
    for batch in file.iter_batches(batch_size=_ROWS_AT_A_TIME, columns=list(names), use_threads=False):
        yield [batch.column(name).to_pylist() for name in names]
