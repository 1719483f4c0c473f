"""Base files, log files and the slices they make up.

Source: Hudi's ``FSUtils`` patterns and ``FileSlice``; see docs/storage.md for what each table version does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_BASE_FILE = re.compile(
    r"(?P<file_id>[^._][^_]*)_(?P<token>\d+-\d+-\d+)_(?P<instant>\d{14}(?:\d{3})?)\.(?P<format>parquet|orc|hfile)"
)
_LOG_FILE = re.compile(
    r"\.(?P<file_id>[^_]+)_(?P<instant>\d{14}(?:\d{3})?)\.(?P<extension>log|archive)\.(?P<version>\d+)"
    r"(?:_(?P<token>\d+-\d+-\d+)(?P<cdc>\.cdc)?)?"
)


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
        match = _BASE_FILE.fullmatch(name)
        if match is None:
            return None
        return cls(name=name, file_id=match["file_id"], instant=match["instant"], bytes=size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A log file of a file group.

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
        """Read a file name; None when it is no log file (change-data files are none either)."""
        match = _LOG_FILE.fullmatch(name)
        if match is None or match["extension"] != "log" or match["cdc"]:
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
