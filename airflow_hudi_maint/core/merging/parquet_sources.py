"""Where encoded row groups come from: a file on storage, or memory."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from airflow_hudi_maint.core.errors import UnreadableFileError

_COPY_BYTES = 8 * 1024 * 1024
_WRITE_BYTES = 512 * 1024
_NO_COPY_IN_KERNEL = frozenset((errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF, errno.EPERM))


@dataclass(slots=True, kw_only=True)
class FileSource:
    """An open file. Between two files on disks of this machine the kernel copies, and no byte comes through here."""

    file: BinaryIO
    name: str
    data_ends_at: int

    def read(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` up to ``end``, exclusively."""
        self.file.seek(start)
        data = self.file.read(end - start)
        if len(data) < end - start:
            raise UnreadableFileError(f"{self.name} became shorter while it was read")
        return data

    def copy(self, start: int, end: int, *, output: BinaryIO) -> None:
        """Append such bytes to the output."""
        start += self._copied_by_kernel(start, end, output=output)
        while start < end:
            data = self.read(start, min(end, start + _COPY_BYTES))
            output.write(data)
            start += len(data)

    def _copied_by_kernel(self, start: int, end: int, *, output: BinaryIO) -> int:
        numbers = _descriptors(self.file, output)
        if numbers is None:
            return 0
        output.flush()
        done = 0
        while start + done < end:
            try:
                count = os.copy_file_range(*numbers, end - start - done, offset_src=start + done)
            except OSError as error:
                if error.errno in _NO_COPY_IN_KERNEL:
                    return done
                raise
            if not count:
                raise UnreadableFileError(f"{self.name} became shorter while it was read")
            done += count
        return done


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySource:
    """An encoded file in memory, in parts that lie one behind the other."""

    parts: tuple[bytes | memoryview, ...]
    name: str
    data_ends_at: int

    def read(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` up to ``end``, exclusively."""
        return b"".join(self._slices(start, end))

    def copy(self, start: int, end: int, *, output: BinaryIO) -> None:
        """Append such bytes to the output, small parts together."""
        waiting: list[bytes | memoryview] = []
        size = 0
        for part in self._slices(start, end):
            waiting.append(part)
            size += len(part)
            if size >= _WRITE_BYTES:
                output.write(waiting[0] if len(waiting) == 1 else b"".join(waiting))
                waiting, size = [], 0
        output.write(b"".join(waiting))

    def _slices(self, start: int, end: int) -> Iterator[bytes | memoryview]:
        at = 0
        for part in self.parts:
            if at >= end:
                return
            if at + len(part) > start:
                is_whole = start <= at and at + len(part) <= end
                yield part if is_whole else memoryview(part)[max(start - at, 0) : end - at]
            at += len(part)


def _descriptors(source: BinaryIO, output: BinaryIO) -> tuple[int, int] | None:
    """The numbers of two real files, None where one of them is none or the system has no such copy."""
    if not hasattr(os, "copy_file_range"):
        return None
    try:
        return source.fileno(), output.fileno()
    except (AttributeError, OSError, io.UnsupportedOperation):
        return None
