"""What a listing of a directory is made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias


class Entry(NamedTuple):
    """One entry of a directory, a tuple because a listing makes tens of thousands of them.

    ``modified_ns`` counts nanoseconds since 1970 in UTC; None for directories and where the storage does not tell.
    """

    name: str
    is_directory: bool
    bytes: int
    modified_ns: int | None

    @property
    def modified(self) -> datetime | None:
        """When the file was last written, in UTC."""
        return None if self.modified_ns is None else datetime.fromtimestamp(self.modified_ns / 1e9, tz=UTC)


Listing: TypeAlias = list[Entry]
"""One directory level, in no order."""
