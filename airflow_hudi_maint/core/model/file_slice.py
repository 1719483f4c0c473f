"""Base files, log files and the slices they make up.

Source: Hudi's ``FSUtils`` patterns and ``FileSlice``; see docs/storage.md for what each table version does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

BASE_FILE_NAME = re.compile(
    r"(?P<file_id>[^._][^_]*+)_[0-9]++-[0-9]++-[0-9]++_(?P<instant>[0-9]{14}(?:[0-9]{3})?)\.(?:parquet|orc|hfile)"
)
"""Possessive and by plain ranges, which halves the time: a full gather matches every file of a table."""
_LOG_FILE = re.compile(
    r"\.(?P<file_id>[^_]+)_(?P<instant>\d{14}(?:\d{3})?)\.(?P<extension>log|archive)\.(?P<version>\d+)"
    r"(?:_(?P<token>\d+-\d+-\d+)(?:\.cdc)?)?",
    re.ASCII,
)


def instant_in_file_name(name: str) -> str | None:
    """The requested time in the name of a base file, log file or change-data file; None for any other name.

    >>> instant_in_file_name(".f1-0_20261130053458356.log.1_0-1-2.cdc")
    '20261130053458356'
    """
    match = (_LOG_FILE if name.startswith(".") else BASE_FILE_NAME).fullmatch(name)
    return None if match is None else match["instant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseFile:
    """A columnar file of a file group. ``instant`` is the requested time of the action that wrote it."""

    name: str
    file_id: str
    instant: str
    bytes: int

    @classmethod
    def parse(cls, name: str, *, size_bytes: int) -> BaseFile | None:
        """Read a file name; None when it is no base file."""
        match = BASE_FILE_NAME.fullmatch(name)
        if match is None:
            return None
        return cls(name=name, file_id=match["file_id"], instant=match["instant"], bytes=size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A log file of a file group, or a change-data file (``.cdc``), which Hudi's own view takes for one.

    ``instant`` is the base instant of its slice on table version 6, and the delta commit that wrote it from version 8.
    ``modified_ns`` counts nanoseconds since 1970 in UTC; None where the storage does not tell.
    """

    name: str
    file_id: str
    instant: str
    version: int
    write_token: str
    bytes: int
    modified_ns: int | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, name: str, *, size_bytes: int, modified_ns: int | None = None) -> LogFile | None:
        """Read a file name; None when it is no log file."""
        match = _LOG_FILE.fullmatch(name)
        if match is None or match["extension"] != "log":
            return None
        return cls(
            name=name,
            file_id=match["file_id"],
            instant=match["instant"],
            version=int(match["version"]),
            write_token=match["token"] or "",
            bytes=size_bytes,
            modified_ns=modified_ns,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSlice:
    """One version of a file group: at most one base file and the log files on top of it.

    ``pending_instant`` names the pending clustering or compaction plan that holds the file group, if any.
    """

    partition_path: str
    file_id: str
    base_instant: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...] = ()
    pending_instant: str | None = None

    @property
    def base_bytes(self) -> int:
        """Bytes of the base file, 0 without one."""
        return self.base_file.bytes if self.base_file else 0

    @property
    def log_bytes(self) -> int:
        """Bytes of all log files."""
        return sum(one.bytes for one in self.log_files)

    @property
    def total_bytes(self) -> int:
        """Bytes of base and log files."""
        return self.base_bytes + self.log_bytes
