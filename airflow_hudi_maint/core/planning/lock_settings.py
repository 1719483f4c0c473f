"""Which lock the writers of a table take, by their options, and whether it can be taken without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.planning.write_guard import CONCURRENCY_MODE_KEY, LOCK_PROVIDER_KEY

LOCK_FOLDER_KEY = "hoodie.write.lock.filesystem.path"
LOCK_EXPIRE_KEY = "hoodie.write.lock.filesystem.expire"
FILE_SYSTEM_LOCK = "FileSystemBasedLockProvider"

_OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"
_NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLock:
    """The lock file of the table's writers: its folder (None: the table's ``.hoodie``), and its minutes to expiry.

    Under ``is_optimistic`` concurrency control the loser of a conflict is found at its commit, so a plan may be made
    beside a write; otherwise the lock alone does not allow that.
    """

    folder: str | None
    expire_minutes: int
    is_optimistic: bool


def file_lock(options: Mapping[str, str]) -> FileLock | None:
    """The lock that writers with these options take; None when they take none.

    Raises InvalidSettingError that names a provider whose lock only a JVM can take, or a mode that needs a provider
    and has none.

    >>> file_lock({}) is None
    True
    >>> provider = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    >>> file_lock({"hoodie.write.lock.provider": provider, "hoodie.write.lock.filesystem.expire": "5"}).expire_minutes
    5
    """
    provider = options.get(LOCK_PROVIDER_KEY, "").strip()
    mode = options.get(CONCURRENCY_MODE_KEY, "").strip().upper()
    if not provider:
        if mode in (_OPTIMISTIC, _NON_BLOCKING):
            msg = f"{CONCURRENCY_MODE_KEY}={mode.lower()} names no {LOCK_PROVIDER_KEY}, so no lock can be taken"
            raise InvalidSettingError(msg)
        return None
    name = provider.rpartition(".")[2]
    if name != FILE_SYSTEM_LOCK:
        msg = f"the writers' lock of {name} can be taken by a JVM only ({LOCK_PROVIDER_KEY}={provider})"
        raise InvalidSettingError(msg)
    expire = options.get(LOCK_EXPIRE_KEY, "").strip() or "0"
    if not expire.isdecimal():
        raise InvalidSettingError(f"{LOCK_EXPIRE_KEY}={expire!r} is no number of minutes; 0 is never")
    folder = options.get(LOCK_FOLDER_KEY, "").strip() or None
    return FileLock(folder=folder, expire_minutes=int(expire), is_optimistic=mode == _OPTIMISTIC)
