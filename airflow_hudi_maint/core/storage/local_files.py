"""Files on a disk of this machine, by full paths.

Listing goes by ``os.scandir``: fsspec's own spends most of its time on details that nobody reads here, and a table has
tens of thousands of entries.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from collections.abc import Iterable
from contextlib import suppress
from typing import BinaryIO

from airflow_hudi_maint.core.storage.entries import Entry, Listing

_PIECE_BYTES = 8 << 20
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


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


def list_own(full: str) -> tuple[Listing, tuple[str, ...]]:
    """List one directory level without what symbolic links lead to; the names of the links come apart."""
    entries: Listing = []
    links: list[str] = []
    append, entry = entries.append, tuple.__new__
    with os.scandir(full) as found:
        for one in found:
            if one.is_file(follow_symlinks=False):
                try:
                    status = one.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                append(entry(Entry, (one.name, False, status.st_size, status.st_mtime_ns)))
            elif one.is_dir(follow_symlinks=False):
                append(entry(Entry, (one.name, True, 0, None)))
            elif one.is_symlink():
                links.append(one.name)
    return entries, tuple(links)


def look(full: str, names: Iterable[str]) -> Listing:
    """The files of these names in a directory that are there; neither links nor directories."""
    entries: Listing = []
    for name in names:
        try:
            status = os.lstat(f"{full}/{name}")
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISREG(status.st_mode):
            entries.append(Entry(name, False, status.st_size, status.st_mtime_ns))  # noqa: FBT003 by position
    return entries


def permit_as(full: str, sources: Iterable[str]) -> None:
    """Give a file the permissions that all of the sources grant, and their owner and group where that is allowed."""
    found = [os.lstat(one) for one in sources]
    mode = 0o777
    for one in found:
        mode &= one.st_mode
    owners, groups = {one.st_uid for one in found}, {one.st_gid for one in found}
    owner, group = (owners.pop() if len(owners) == 1 else -1), (groups.pop() if len(groups) == 1 else -1)
    for ids in ((owner, -1), (-1, group)):
        with suppress(PermissionError):  # to give files away is root's alone
            os.chown(full, *ids)
    os.chmod(full, mode)


def open_output(full: str) -> BinaryIO:
    """Open a new file to write; its folders are made."""
    os.makedirs(full.rpartition("/")[0], exist_ok=True)
    return open(full, "xb")


def settle(output: BinaryIO) -> None:
    """Have what was written on the disk."""
    output.flush()
    os.fsync(output.fileno())


def move(source: str, target: str) -> None:
    """Rename a file to where nothing is; on to another disk by a copy under a hidden name."""
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "something is there already", target)
    folder, _, name = target.rpartition("/")
    os.makedirs(folder, exist_ok=True)
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        temporary = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
        try:
            shutil.copy2(source, temporary, follow_symlinks=False)
            with open(temporary, "rb") as copied:
                os.fsync(copied.fileno())
            os.rename(temporary, target)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        os.unlink(source)


def remove_folder(full: str) -> None:
    """Remove a folder if it is empty."""
    with suppress(OSError):
        os.rmdir(full)


def read(full: str) -> bytes:
    """Read a whole file; without a file object, which takes longer to make than a small file to read."""
    number = os.open(full, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        size = os.fstat(number).st_size
        data = os.read(number, size + 1)
        if len(data) == size:
            return data
        pieces = [data]  # it grows, or is too large for one call
        while pieces[-1]:
            pieces.append(os.read(number, _PIECE_BYTES))
        return b"".join(pieces)
    finally:
        os.close(number)


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
    """Write a whole file unless there is one, and say whether it was written; of several one succeeds.

    By a link to a temporary file, so that no reader sees a part; where a disk knows no links, a reader may.
    """
    folder, _, name = full.rpartition("/")
    os.makedirs(folder, exist_ok=True)
    if os.path.lexists(full):
        return False
    temporary = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
    try:
        _write_exclusively(temporary, data)
        _link(temporary, full, data=data)
    except FileExistsError:
        return False
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
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


def _link(source: str, target: str, *, data: bytes) -> None:
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _write_exclusively(target, data)


def _drop_checksum(full: str) -> None:
    """Remove the checksum that Hadoop keeps beside each file that it writes to a local disk.

    It would not fit the new content, and every later read through Hadoop, so every job of Hudi, would fail. Without
    one Hadoop reads unchecked.
    """
    folder, _, name = full.rpartition("/")
    with suppress(FileNotFoundError):
        os.unlink(f"{folder}/.{name}.crc")
