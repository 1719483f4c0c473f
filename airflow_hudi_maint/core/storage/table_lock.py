"""Hold the lock file of Hudi's ``FileSystemBasedLockProvider``, so that the table's own writers wait.

The file is created where there is none, and deleted to release it; what stands in it is for people. With an expiry in
minutes (0: never) a file that is older belongs to nobody any more and may be deleted, as Hudi does.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from airflow_hudi_maint.core.errors import InvalidSettingError, PendingActionError, StorageError
from airflow_hudi_maint.core.storage.base_paths import is_below
from airflow_hudi_maint.core.storage.filesystem import Entry, Storage, plain_path
from airflow_hudi_maint.core.storage.remote_files import S3_SCHEMES

LOCK_FILE: Final = "lock"
DEFAULT_LOCK_FOLDER: Final = ".hoodie"
WAIT_SECONDS: Final = 60.0

_POLL_SECONDS = 1.0
_RELEASES = 3
_TRIES_AT_ONCE = 20
_MAKER = "airflow_hudi_maint"
_SHOWN = 200

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TableLock:
    """A lock file, seen from one who wants it.

    ``owner`` names the task that asks; empty for one without a name. A file that the same task left (a try that was
    killed) is taken over, since no two tries of a task run at once. ``clock`` counts seconds since 1970, as the
    storage's modification times do.
    """

    storage: Storage
    path: str
    expire_minutes: int = 0
    owner: str = ""
    wait_seconds: float = WAIT_SECONDS
    poll_seconds: float = _POLL_SECONDS
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    @classmethod
    def open(
        cls,
        table_storage: Storage,
        *,
        folder: str | None,
        expire_minutes: int,
        owner: str = "",
        storage_options: Mapping[str, object] | None = None,
    ) -> TableLock:
        """The lock of a table; ``folder`` is ``hoodie.write.lock.filesystem.path``, None for the table's ``.hoodie``.

        Raises InvalidSettingError for storage where of two who create a file both may succeed, and for S3, where
        Hudi's provider does not start: a lock there would keep nobody away.
        """
        root = table_storage.root
        storage, path = table_storage, f"{DEFAULT_LOCK_FOLDER}/{LOCK_FILE}"
        if folder:
            plain = plain_path(folder)
            if is_below(plain, root=root):
                inside = plain.rstrip("/").removeprefix(root).strip("/")
                path = f"{inside}/{LOCK_FILE}" if inside else LOCK_FILE
            else:
                storage, path = Storage.open(plain, storage_options=storage_options), LOCK_FILE
        if storage.root.partition("://")[0] in S3_SCHEMES:
            msg = (
                f"the lock file {storage.join(path)} keeps nobody away: Hudi's FileSystemBasedLockProvider does not "
                "start on S3. Let the table's writers use StorageBasedLockProvider, DynamoDB or ZooKeeper, or put the "
                "lock file on a file system by hoodie.write.lock.filesystem.path"
            )
            raise InvalidSettingError(msg)
        if not storage.creates_exclusively:
            msg = (
                f"the lock file {storage.join(path)} cannot be held: its storage has no way to create a file that "
                "only one of two succeeds with"
            )
            raise InvalidSettingError(msg)
        return cls(storage=storage, path=path, expire_minutes=expire_minutes, owner=owner)

    @contextmanager
    def held(self) -> Iterator[Callable[[], bool]]:
        """Hold the lock for a block, which gets a function that says whether it is still held.

        Raises PendingActionError when another holds it for longer than ``wait_seconds``, and StorageError; also when
        the file cannot be deleted in the end, since then the table's writers would wait for ever.
        """
        content = self._content()
        try:
            self._acquire(content)
        except Exception:
            with suppress(StorageError):  # it may have been created and the answer lost
                self._release(content)
            raise
        try:
            yield lambda: self._read() == content
        finally:
            self._release(content)

    def clear(self) -> bool:
        """Delete the file if an earlier try of the same task left it, and say whether it did."""
        holder = self._read()
        if holder is None or not self._is_of_an_earlier_try(holder):
            return False
        return self._drop_dead(holder)

    def _content(self) -> bytes:
        created = datetime.fromtimestamp(self.clock(), tz=UTC)
        document = {
            "lockCreateTime": f"{created:%Y-%m-%d %H:%M:%S}.{created.microsecond // 1000:03d}",
            "lockThreadName": f"{self._signature} {self.token}",
            "lockStacksInfo": [],
        }
        return json.dumps(document, indent=2).encode()

    @property
    def _signature(self) -> str:
        return f"{_MAKER} for {self.owner}," if self.owner else _MAKER

    def _acquire(self, content: bytes) -> None:
        waited, at_once = 0.0, _TRIES_AT_ONCE
        while not self.storage.write_new(self.path, content):
            holder = self._read()
            if holder == content:  # written by a request whose answer was lost
                return
            if (holder is None or self._drop_dead(holder)) and at_once:
                at_once -= 1  # not for ever: a link to nothing is there to who creates it, and not to who reads it
                continue
            if waited >= self.wait_seconds:
                raise PendingActionError(self._held_by(holder))
            self.sleep(self.poll_seconds)
            waited += self.poll_seconds

    def _drop_dead(self, holder: bytes) -> bool:
        """Delete the file of a holder that is no more; the look right before narrows a gap that Hudi has, too."""
        found = self._entry()
        if found is None:
            return True
        if not (self._is_expired(found) or self._is_of_an_earlier_try(holder)):
            return False
        if self._read() == holder and self._entry() == found:
            _log.warning("Deleting the dead lock file %s: %s", self.storage.join(self.path), _shown(holder))
            with suppress(FileNotFoundError):
                self.storage.delete(self.path)
        return True

    def _is_expired(self, found: Entry) -> bool:
        if self.expire_minutes <= 0 or found.modified_ns is None:
            return False
        return self.clock() - found.modified_ns / 1e9 > self.expire_minutes * 60

    def _is_of_an_earlier_try(self, holder: bytes) -> bool:
        try:
            name = json.loads(holder)["lockThreadName"]
        except (ValueError, KeyError, TypeError):
            return False
        return bool(self.owner) and str(name).startswith(f"{self._signature} ")

    def _held_by(self, holder: bytes | None) -> str:
        if holder is None:
            return (
                f"The table's lock file {self.storage.join(self.path)} can be neither created nor read: something is "
                "in its place, or others take it again and again. Look at what is there, and try again later"
            )
        found = self._entry()
        age = "" if found is None or found.modified_ns is None else f", {self.clock() - found.modified_ns / 1e9:.0f} s"
        expiry = (
            f"it counts as dead after {self.expire_minutes} minutes"
            if self.expire_minutes
            else "no hoodie.write.lock.filesystem.expire is set, so it never expires"
        )
        return (
            f"The table's lock file {self.storage.join(self.path)} is held{age} by {_shown(holder)}; {expiry}. "
            "Try again later; if no writer is at work, delete the file"
        )

    def _release(self, content: bytes) -> None:
        for attempt in range(1, _RELEASES + 1):
            try:
                if self._read() == content:
                    with suppress(FileNotFoundError):
                        self.storage.delete(self.path)
            except StorageError as error:
                if attempt == _RELEASES:
                    msg = f"The lock file {self.storage.join(self.path)} is ours and could not be deleted: {error}"
                    raise StorageError(f"{msg}. Delete it, or the table's writers wait for it") from error
            else:
                return

    def _read(self) -> bytes | None:
        try:
            return self.storage.read_bytes(self.path)
        except FileNotFoundError:
            return None

    def _entry(self) -> Entry | None:
        folder, _, name = self.path.rpartition("/")
        return next((one for one in self.storage.list(folder) if one.name == name), None)


def _shown(holder: bytes) -> str:
    text = " ".join(holder.decode("utf-8", "replace").split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"
