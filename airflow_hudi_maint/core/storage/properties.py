"""Read a table's ``hoodie.properties``, and change the policy keys in it, the way Hudi does both.

Source: Hudi's ``HoodieTableConfig`` for backup, recovery and checksum.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from airflow_hudi_maint.core.errors import (
    CorruptTableError,
    InvalidSettingError,
    PendingActionError,
    TableNotFoundError,
)
from airflow_hudi_maint.core.model.policy import POLICY_KEYS
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.java_properties import PropertiesFile, parse_properties

__all__ = [
    "BACKUP_PATH",
    "CHECKSUM_KEY",
    "PROPERTIES_PATH",
    "PropertiesFile",
    "change_properties",
    "load_properties",
    "parse_properties",
    "update_properties",
]

PROPERTIES_PATH = ".hoodie/hoodie.properties"
BACKUP_PATH = ".hoodie/hoodie.properties.backup"
CHECKSUM_KEY = "hoodie.table.checksum"

PropertyChange: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, str | None]]
"""From what the file holds to the keys that are to change, with their values; None removes a key."""

_ATTEMPTS = 20
_WAIT_SECONDS = 0.5
_LOOKS_AT_A_DEAD_BACKUP = 5
"""A backup that stands there unchanged for so many looks has no writer any more: two seconds, where Hudi's replacement
takes some tenths of one."""

_log = logging.getLogger(__name__)


def load_properties(storage: Storage) -> dict[str, str]:
    """Read a table's ``hoodie.properties``, or its backup while Hudi replaces the file (or died doing so).

    The backup counts where the file is missing, empty, or fails its checksum.

    Raises TableNotFoundError that says whether the directory, ``.hoodie`` or the file is missing, and
    CorruptTableError for a file that cannot be understood and has no backup.
    """
    return _parse(_present(_read_current(storage), storage=storage), storage=storage).as_dict()


def update_properties(
    storage: Storage,
    *,
    set: Mapping[str, str],  # noqa: A002 the word that goes with remove
    remove: Collection[str] = (),
    wait_seconds: float = _WAIT_SECONDS,
) -> dict[str, str]:
    """Set and remove policy keys whatever they hold, as :func:`change_properties` does."""
    both = sorted(key for key in set if key in remove)
    if both:
        msg = f"{both[0]!r} is to be both set and removed; choose one"
        raise InvalidSettingError(msg)
    wanted: dict[str, str | None] = {**set, **dict.fromkeys(remove)}
    _check_keys(wanted)
    return change_properties(storage, change=lambda _: wanted, wait_seconds=wait_seconds)


def change_properties(
    storage: Storage, *, change: PropertyChange, wait_seconds: float = _WAIT_SECONDS
) -> dict[str, str]:
    """Change policy keys in ``hoodie.properties`` and return what the file holds then.

    As Hudi does it: write the backup, replace the file, delete the backup; a reader finds a whole file at any moment.
    ``change`` gets what the file holds and says which keys are to change; it is called again for what somebody else
    has made of the file meanwhile, and may raise to leave it as it is. Nothing is written when nothing would change.
    The checksum covers the table's name alone and stays.

    Two of us never replace the file at the same time: the backup is created only where there is none (on a local disk,
    in memory and on S3; elsewhere it is looked for first). Hudi deletes a backup that it sees, takes no lock and does
    not look again. So the file and our backup are read right before the file is replaced, and read again after it;
    whatever is not as it was means that Hudi is at work, and another attempt is made. A change by Hudi that falls
    between the last look and the replacement (a millisecond locally) is not seen.

    A backup that a dead writer left is used to mend the file first, once it has not changed for five looks,
    ``wait_seconds`` apart.

    Raises InvalidSettingError for a key that is no policy key, what ``change`` raises, TableNotFoundError,
    CorruptTableError, StorageError, and PendingActionError when the file kept changing for 20 attempts.
    """
    seen: bytes | None = None
    looks = 0
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(wait_seconds)
        backup = _read_or_none(storage, BACKUP_PATH)
        looks = looks + 1 if backup == seen else 1
        seen = backup
        if backup is not None and looks < _LOOKS_AT_A_DEAD_BACKUP:
            continue  # a writer at work removes it soon; a dead one leaves it
        before = _mended(storage, backup=backup)
        file = _parse(before, storage=storage)
        wanted = change(file.as_dict())
        _check_keys(wanted)
        changed = file.with_changes(
            set={key: value for key, value in wanted.items() if value is not None},
            remove=[key for key, value in wanted.items() if value is None],
        )
        after = str(changed).encode("latin-1")
        if after == before or _replace(storage, before=before, after=after):
            return changed.as_dict()
    msg = (
        f"{storage.join(PROPERTIES_PATH)} kept changing for {_ATTEMPTS} attempts, so it was left as it is; "
        f"another writer holds it, or {storage.join(BACKUP_PATH)} comes and goes: try again"
    )
    raise PendingActionError(msg)


def _check_keys(wanted: Mapping[str, str | None]) -> None:
    foreign = sorted(key for key in wanted if key not in POLICY_KEYS)
    if foreign:
        msg = f"{foreign[0]!r} is not written to hoodie.properties; only {', '.join(POLICY_KEYS)} are"
        raise InvalidSettingError(msg)


def _mended(storage: Storage, *, backup: bytes | None) -> bytes:
    """The file's content, mended from a dead writer's backup where Hudi would do so; no backup is left."""
    current = _read_or_none(storage, PROPERTIES_PATH)
    if backup is None:
        return _present(current, storage=storage)
    # Where neither has a right checksum, the file has the better claim: the backup may have been cut short.
    if current and (_is_sound(current) or not _is_sound(backup)):
        mended = current
    else:
        mended = _present(backup or current, storage=storage)
        _log.warning("Restored %s from its backup, which a writer left behind", storage.join(PROPERTIES_PATH))
        storage.write_atomic(PROPERTIES_PATH, mended)
    _delete_backup(storage)
    return mended


def _replace(storage: Storage, *, before: bytes, after: bytes) -> bool:
    """Put ``after`` in the place of ``before``; False when somebody else is at work, or has been."""
    if not storage.write_new(BACKUP_PATH, before):
        return False
    current = _read_or_none(storage, PROPERTIES_PATH)
    if current == before and _is_ours(storage, before):
        storage.write_atomic(PROPERTIES_PATH, after)
        current = _read_or_none(storage, PROPERTIES_PATH)
    is_undisturbed = _is_ours(storage, before)
    if is_undisturbed and current and (current == after or _is_sound(current)):
        # Otherwise the backup stays: it is all that is left, or another writer's, who is at work.
        _delete_backup(storage)
    return is_undisturbed and current == after


def _is_ours(storage: Storage, backup: bytes) -> bool:
    """Whether our backup still stands: Hudi deletes it before it changes the file, and writes one with another date."""
    return _read_or_none(storage, BACKUP_PATH) == backup


def _delete_backup(storage: Storage) -> None:
    try:
        storage.delete(BACKUP_PATH)
    except FileNotFoundError:  # Hudi's own recovery removes any backup that it sees
        return


def _present(data: bytes | None, *, storage: Storage) -> bytes:
    if data is None:
        raise _not_found(storage)
    if not data:
        msg = f"{storage.join(PROPERTIES_PATH)} is empty and has no backup; restore it from a copy of the table"
        raise CorruptTableError(msg)
    return data


def _read_current(storage: Storage) -> bytes | None:
    # The file is read again at the end: Hudi may have put it back and removed the backup between the first two reads.
    first: bytes | None = None
    for path in (PROPERTIES_PATH, BACKUP_PATH, PROPERTIES_PATH):
        data = _read_or_none(storage, path)
        if data and _is_sound(data):
            return data
        first = first or data
    return first


def _read_or_none(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read_bytes(path)
    except FileNotFoundError:
        return None


def _is_sound(data: bytes) -> bool:
    """Whether the checksum is there and right; Hudi takes a file without it for half-written."""
    try:
        properties = parse_properties(data.decode("latin-1"))
    except CorruptTableError:
        return False
    name = f"{properties.get('hoodie.database.name', '')}.{properties.get('hoodie.table.name', '')}"
    return properties.get(CHECKSUM_KEY, "").strip() == str(zlib.crc32(name.encode()))


def _parse(data: bytes, *, storage: Storage) -> PropertiesFile:
    return PropertiesFile.parse(data.decode("latin-1"), name=storage.join(PROPERTIES_PATH))


def _not_found(storage: Storage) -> TableNotFoundError:
    try:
        names = {entry.name for entry in storage.list("")}
    except FileNotFoundError:
        return TableNotFoundError(f"There is no directory {storage.root}; give the base path of a Hudi table")
    if ".hoodie" not in names:
        hint = _what_else(storage, names)
        return TableNotFoundError(f"Table {storage.root} has no .hoodie folder; {hint or 'is it a Hudi table?'}")
    return TableNotFoundError(f"Table {storage.root} has no hoodie.properties; is it a Hudi table?")


def _what_else(storage: Storage, names: Collection[str]) -> str:
    """What a directory without a ``.hoodie`` folder shows itself to be, with what to give instead; empty if nothing."""
    if any(name.startswith(".hoodie_partition_metadata") for name in names):
        return "it is a partition of a Hudi table: give the table's base path, above it"
    if "hoodie.properties" in names:
        return "it is the .hoodie folder of a table: give the folder above it"
    if "_delta_log" in names:
        return "it is a Delta table, and Hudi tables alone are maintained here"
    try:
        below = storage.list("metadata") if "metadata" in names else ()
    except FileNotFoundError:  # a file of that name
        below = ()
    is_iceberg = any(entry.name.endswith(".metadata.json") for entry in below)
    return "it is an Iceberg table, and Hudi tables alone are maintained here" if is_iceberg else ""
