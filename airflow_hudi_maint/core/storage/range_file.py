"""A file to seek in, of which only the parts that are asked for are fetched."""

from __future__ import annotations

import io
from collections.abc import Callable

_READ_AHEAD_BYTES = 64 * 1024


class RangeFile(io.RawIOBase):
    """A read-only file over ``fetch(start, end)``, which returns the bytes from ``start`` up to ``end``, exclusively.

    A small read fetches 64 KiB at once and the following ones are served from that; a larger one fetches what it asks
    for. ``size`` is asked once, when it is first needed. Not safe for several threads, like any file.
    """

    def __init__(self, *, fetch: Callable[[int, int], bytes], size: Callable[[], int]) -> None:
        super().__init__()
        self._fetch = fetch
        self._ask_size = size
        self._size: int | None = None
        self._at = 0
        self._kept = b""
        self._kept_from = 0

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def seekable(self) -> bool:
        """Whether it can be sought in: always."""
        return True

    def tell(self) -> int:
        """The position of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to a position; nothing is fetched but, for one from the end, the size."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence)
        self._at = (self._whole_size() if start is None else start) + offset
        if self._at < 0:
            self._at = 0
            msg = f"position {offset} (whence {whence}) is before the start of the file"
            raise ValueError(msg)
        return self._at

    def read(self, count: int | None = -1, /) -> bytes:
        """Read up to ``count`` bytes, fewer at the end of the file only; all that is left for None or -1."""
        size = self._whole_size()
        end = size if count is None or count < 0 else min(size, self._at + count)
        if end <= self._at:
            return b""
        data = self._bytes(self._at, end)
        self._at += len(data)
        return data

    def readall(self) -> bytes:
        """Read all that is left."""
        return self.read()

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Read into a buffer and return how many bytes that were."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _bytes(self, start: int, end: int) -> bytes:
        kept_to = self._kept_from + len(self._kept)
        if not (self._kept_from <= start and end <= kept_to):
            wanted = min(self._whole_size(), max(end, start + _READ_AHEAD_BYTES))
            self._kept, self._kept_from = self._fetch(start, wanted), start
        return self._kept[start - self._kept_from : end - self._kept_from]

    def _whole_size(self) -> int:
        if self._size is None:
            self._size = self._ask_size()
        return self._size
