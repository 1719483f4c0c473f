"""Files on a disk of this machine, by full paths.

Listing goes by ``os.scandir``: fsspec's own spends most of its time on details that nobody reads here, and a table has
tens of thousands of entries.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress

from airflow_hudi_maint.core.storage.entries import Entry, Listing


def list_folder(full: str) -> Listing:
    """List one directory level, in no order."""
    entries: Listing = []
    # The hot loop of a full gather: a named tuple's own constructor would be a tenth of it.
    append, entry = entries.append, tuple.__new__
    with os.scandir(full) as found:
        for one in found:
            if one.is_dir():
                append(entry(Entry, (one.name, True, 0, None)))
                continue
            try:
                status = one.stat()
            except FileNotFoundError:  # deleted while it was listed, as the cleaner does
                continue
            append(entry(Entry, (one.name, False, status.st_size, status.st_mtime_ns)))
    return entries


def read(full: str) -> bytes:
    """Read a whole file."""
    with open(full, "rb") as file:
        return file.read()


def write(full: str, data: bytes) -> None:
    """Write a whole file so that a reader sees the old content or the new, by a temporary name and a rename."""
    folder, _, name = full.rpartition("/")
    os.makedirs(folder, exist_ok=True)
    temporary = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
    try:
        _write_exclusively(temporary, data)
        _drop_checksum(full)
        os.replace(temporary, full)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def write_new(full: str, data: bytes) -> bool:
    """Write a whole file unless there is one, and say whether it was written; a reader may see a part."""
    os.makedirs(full.rpartition("/")[0], exist_ok=True)
    try:
        _write_exclusively(full, data)
    except FileExistsError:
        return False
    _drop_checksum(full)
    return True


def delete(full: str) -> None:
    """Delete a file."""
    _drop_checksum(full)
    os.unlink(full)


def _write_exclusively(full: str, data: bytes) -> None:
    with open(full, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _drop_checksum(full: str) -> None:
    """Remove the checksum that Hadoop keeps beside each file that it writes to a local disk.

    It would not fit the new content, and every later read through Hadoop, so every job of Hudi, would fail. Without
    one Hadoop reads unchecked.
    """
    folder, _, name = full.rpartition("/")
    with suppress(FileNotFoundError):
        os.unlink(f"{folder}/.{name}.crc")
