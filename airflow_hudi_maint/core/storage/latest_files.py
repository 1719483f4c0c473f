"""What the latest file slices of a partition are made of: all that statistics sum up.

Most partitions hold base files alone, and then the newest committed one of each file group is all there is to find: no
slice has to be assembled for it, which is most of the cost of a large table. Both ways find the same; a property test
holds them to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple, TypeAlias

from airflow_hudi_maint.core.model.file_slice import BASE_FILE_NAME, FileSlice, LogFile
from airflow_hudi_maint.core.storage.entries import Listing
from airflow_hudi_maint.core.storage.slices import FileHistory, assemble_slices

LatestBase: TypeAlias = tuple[str, str, int]
"""Instant, name and bytes of a base file; a plain tuple, since a table has tens of thousands."""


class LatestFiles(NamedTuple):
    """The files of the latest slices of a partition (merged while a compaction is pending).

    ``base_instants`` are those of ``bases``; ``newest`` is the greatest of all slices, with or without a base file.
    """

    bases: Collection[LatestBase]
    base_instants: set[str]
    logs: tuple[LogFile, ...]
    file_group_count: int
    newest: str

    @classmethod
    def of(cls, slices: Collection[FileSlice]) -> LatestFiles | None:
        """The files of these slices; None without any."""
        if not slices:
            return None
        bases = [one.base_file for one in slices if one.base_file is not None]
        return cls(
            bases=[(one.instant, one.name, one.bytes) for one in bases],
            base_instants={one.instant for one in bases},
            logs=tuple(log_file for one in slices if one.log_files for log_file in one.log_files),
            file_group_count=len(slices),
            newest=max(one.base_instant for one in slices),
        )


class LatestFilesReader:
    """Finds the latest files of one partition after the other, as of one state of the timeline."""

    def __init__(self, history: FileHistory) -> None:
        self._history = history
        self._compacted = frozenset(path for path, _ in history.compactions)
        self._replaced: dict[str, set[str]] = defaultdict(set)
        for path, file_id in history.replaced:
            self._replaced[path].add(file_id)

    def read(self, partition_path: str, entries: Listing) -> LatestFiles | None:
        """The latest files of a partition from its directory listing; None where it has no slice."""
        newest = None if partition_path in self._compacted else self._newest_bases(partition_path, entries)
        if newest is None:
            return LatestFiles.of(assemble_slices(partition_path, entries, history=self._history).merged)
        if not newest:
            return None
        instants = {instant for instant, _, _ in newest.values()}
        return LatestFiles(
            bases=newest.values(), base_instants=instants, logs=(), file_group_count=len(newest), newest=max(instants)
        )

    def _newest_bases(self, partition_path: str, entries: Listing) -> dict[str, LatestBase] | None:
        """The newest committed base file of each file group; None where a log file says that this is not all."""
        committed, start = self._history.committed, self._history.timeline_start
        unfinished = self._history.unfinished
        replaced = self._replaced.get(partition_path, ())
        newest: dict[str, LatestBase] = {}
        fullmatch = BASE_FILE_NAME.fullmatch
        for name, is_directory, size_bytes, _ in entries:
            if name[0] == ".":
                if LogFile.parse(name, size_bytes=size_bytes) is not None and not is_directory:
                    return None
                continue
            match = fullmatch(name)
            if match is None or is_directory:
                continue
            file_id, instant = match.groups()
            if (instant not in committed and (instant >= start or instant in unfinished)) or file_id in replaced:
                continue
            one = (instant, name, size_bytes)
            known = newest.get(file_id)
            if known is None or known < one:
                newest[file_id] = one
        return newest
