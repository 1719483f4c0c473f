"""Files in a partition that are no part of the table, and of no write in progress either."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OrphanReason(StrEnum):
    """Why nothing of the table refers to a file."""

    UNKNOWN_INSTANT = "unknown instant"
    """It is named like a base or log file, and its instant is nowhere: rolled back, or never on the timeline."""

    UNKNOWN_NAME = "unknown name"
    """No writer of Hudi's names a file like that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanFile:
    """One orphan. ``instant`` is the requested time that its name says, None for an unknown name.

    ``modified_ns`` counts nanoseconds since 1970 in UTC; None where the storage does not tell.
    """

    partition_path: str
    name: str
    bytes: int
    modified_ns: int | None
    reason: OrphanReason
    instant: str | None
