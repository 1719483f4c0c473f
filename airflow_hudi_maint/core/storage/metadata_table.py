"""List a table by the ``files`` partition of its metadata table: no directory of data is listed.

The metadata table is itself a merge-on-read table below ``.hoodie/metadata``. Its ``files`` partition is one file
group: an HFile, and log files whose blocks are HFiles, too. Source: Hudi's ``HoodieBackedTableMetadata`` and
``HoodieTableMetadataUtil.getValidInstantTimestamps``; docs/storage.md tells when it is believed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from airflow_hudi_maint.core.errors import CorruptTableError, MetadataTableError
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage import instants
from airflow_hudi_maint.core.storage.entries import Entry, Listing
from airflow_hudi_maint.core.storage.file_records import FileRecord, FilesPartition, read_file_records
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.hfile import HFile
from airflow_hudi_maint.core.storage.log_blocks import BlockType, HeaderKey, LogBlock, read_log_blocks
from airflow_hudi_maint.core.storage.metadata_timeline import MetadataTimeline
from airflow_hudi_maint.core.storage.timeline import TimelineReader

FILES_PARTITION = "files"
FOLDER = ".hoodie/metadata"

_FILES_FOLDER = f"{FOLDER}/{FILES_PARTITION}"
_ATTEMPT = r"[0-9]+-[0-9]+-[0-9]+"
_BASE_FILE = re.compile(rf"(?P<file_id>files-[0-9]{{4}}-[0-9]+)_{_ATTEMPT}_(?P<instant>[0-9]{{14,20}})\.hfile")
_LOG_FILE = re.compile(
    rf"\.(?P<file_id>files-[0-9]{{4}}-[0-9]+)_(?P<instant>[0-9]{{14,20}})\.log\.(?P<version>[0-9]{{1,9}})"
    rf"(?:_(?P<token>{_ATTEMPT}))?"
)
_EMPTY_DELETE = b"\x00\x00\x00\x01\x00"
"""A delete block without records, behind its version: one byte of Avro, an empty array."""
_VERSION_BYTES = 4
_ROLLBACK = "0"


class _LogName(NamedTuple):
    """A log file's name in the order of writing."""

    ordering: str
    instant: str
    version: int
    token: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    """The latest slice of the one file group: its HFile's instant and name, and the names of its logs in order."""

    instant: str
    base_file: str
    log_files: tuple[str, ...]


class MetadataTable:
    """The ``files`` partition of a table's metadata table. ``reader`` reads the data timeline."""

    def __init__(self, *, storage: Storage, reader: TimelineReader, has_completion_times: bool) -> None:
        self._storage = storage
        self._reader = reader
        self._has_completion_times = has_completion_times
        self._timeline_folder = f"{FOLDER}/.hoodie/timeline" if has_completion_times else f"{FOLDER}/.hoodie"

    def listings(
        self, timeline: Timeline, *, partitions: Collection[str] | None = None
    ) -> Iterator[tuple[str, Listing]]:
        """Partitions (None: all) and the files in each, in no order, as of the data timeline ``timeline``.

        The path of a table without partitions is ``""``. Two listings and one read for each of a few files, however
        many partitions there are, all done when this returns. The files have no modification time; those of writes in
        progress and of dead writers are not there.

        Raises MetadataTableError where the metadata table is missing, behind or ahead of the data timeline, or lacks a
        file, CorruptTableError for a broken file, and StorageError.
        """
        folders = self._storage.list_many((self._timeline_folder, _FILES_FOLDER))
        if len(folders) < 2:  # noqa: PLR2004 both folders
            raise MetadataTableError(f"the metadata table has no {' and '.join(self._missing(folders))}")
        known = MetadataTimeline.of(entry.name for entry in folders[self._timeline_folder])
        known.check_not_behind(timeline)
        too_new = self._too_new(known, timeline=timeline)
        file_slice = self._slice(folders[_FILES_FOLDER], known=known)
        base, *logs = self._read(file_slice)
        pending = {one.requested_time for one in timeline.pending}
        blocks = self._blocks(zip(file_slice.log_files, logs, strict=True))
        self._check_complete({instant for instant, _, _ in blocks}, known=known, since=file_slice.instant)
        files = FilesPartition(name=self._storage.join(_FILES_FOLDER))
        files.merge(read_file_records(HFile.open(base, name=self._storage.join(file_slice.base_file))))
        for instant, name, block in blocks:
            if known.is_complete(instant) and instant not in pending and instant not in too_new:
                files.merge(_records(block, name=name))
        listed = files.by_partition()
        wanted = listed if partitions is None else {path: listed[path] for path in {*partitions} & listed.keys()}
        measured = self._measured([path for path, names in wanted.items() if any(map(_is_unmeasured, names.items()))])
        return ((path, _entries(names, measured=measured.get(path, {}))) for path, names in wanted.items())

    def _measured(self, partitions: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        """Bytes of the files in the directories of partitions."""
        listed = self._storage.list_many(sorted(partitions))
        return {path: {entry.name: entry.bytes for entry in entries} for path, entries in listed.items()}

    def _missing(self, folders: Mapping[str, Listing]) -> list[str]:
        return [self._storage.join(one) for one in (self._timeline_folder, _FILES_FOLDER) if one not in folders]

    def _too_new(self, known: MetadataTimeline, *, timeline: Timeline) -> frozenset[str]:
        """Delta commits of instants that began after the data timeline was read: the view is as of that timeline."""
        newer = known.newer_than({one.requested_time for one in timeline})
        if newer:
            now_there = {one.requested_time for one in self._reader.read()}
            ahead = sorted(newer - now_there)
            # An instant that completed and was rolled back since then is one more reason to look at the directories.
            if ahead:
                msg = f"the metadata table is ahead: its delta commit {ahead[-1]} is not on the table's timeline"
                raise MetadataTableError(msg)
        return newer

    def _slice(self, entries: Listing, *, known: MetadataTimeline) -> _Slice:
        names = [entry.name for entry in entries if not entry.is_directory]
        bases = [match for match in map(_BASE_FILE.fullmatch, names) if match]
        logs = [match for match in map(_LOG_FILE.fullmatch, names) if match]
        if len({match["file_id"] for match in (*bases, *logs)}) > 1:
            raise MetadataTableError(f"{self._storage.join(_FILES_FOLDER)} has more than one file group")
        complete = [match for match in bases if known.is_complete(match["instant"])]
        if not complete:
            raise MetadataTableError(f"{self._storage.join(_FILES_FOLDER)} has no base file of a completed instant")
        base = max(complete, key=lambda match: (match["instant"], match[0]))
        ours = sorted(self._log_name(match, known=known) for match in logs)
        log_files = [one.name for one in ours if self._is_above(one, base_instant=base["instant"], known=known)]
        return _Slice(instant=base["instant"], base_file=f"{_FILES_FOLDER}/{base[0]}", log_files=tuple(log_files))

    def _log_name(self, match: re.Match[str], *, known: MetadataTimeline) -> _LogName:
        instant = match["instant"]
        ordering = known.ordering_of(instant) if self._has_completion_times else instant
        return _LogName(ordering, instant, int(match["version"]), match["token"] or "", f"{_FILES_FOLDER}/{match[0]}")

    def _is_above(self, log: _LogName, *, base_instant: str, known: MetadataTimeline) -> bool:
        """Whether a log file is of the latest slice, or of one that a pending compaction opened on it.

        Before table version 8 its name has the base instant; later on, its own instant's completion tells.
        """
        if not self._has_completion_times:
            return log.instant >= base_instant
        return known.is_complete(log.instant) and log.ordering >= base_instant

    def _read(self, file_slice: _Slice) -> list[bytes]:
        try:
            return self._storage.read_many((file_slice.base_file, *file_slice.log_files))
        except FileNotFoundError as error:
            # Cleaned since the listing, or lost.
            raise MetadataTableError(f"a file of the metadata table is missing: {error}") from error

    def _blocks(self, contents: Iterable[tuple[str, bytes]]) -> list[tuple[str, str, LogBlock]]:
        """The data blocks with their instants and file names, in order, without those that were rolled back."""
        blocks: list[tuple[str, str, LogBlock]] = []
        for path, data in contents:
            name = self._storage.join(path)
            for block in read_log_blocks(data, name=name):
                if block.type is BlockType.COMMAND:
                    target = _rolled_back(block, name=name)
                    blocks = [one for one in blocks if one[0] != target]
                else:
                    blocks.append((_text(block, HeaderKey.INSTANT_TIME, name=name), name, block))
        return blocks

    def _check_complete(self, read: set[str], *, known: MetadataTimeline, since: str) -> None:
        """Raise MetadataTableError where a delta commit since the base file wrote to the logs and is not in them."""
        due = (one for one in known.data_writes if known.ordering_of(one) > since)
        for instant in sorted(set(due) - read):
            path = f"{self._timeline_folder}/{known.file_names[instant]}"
            name = self._storage.join(path)
            try:
                data = self._storage.read_bytes(path)
            except FileNotFoundError as error:
                raise MetadataTableError(f"a file of the metadata table is missing: {error}") from error
            written = instants.commit_metadata(instants.decode(data, name=name), name=name).written
            if not data or written.get(FILES_PARTITION):
                raise MetadataTableError(f"the metadata table lacks the log block of its delta commit {instant}")


def _entries(files: Mapping[str, int], *, measured: Mapping[str, int]) -> Listing:
    if not measured:
        return [Entry(name, False, size, None) for name, size in files.items()]  # noqa: FBT003 by position: a hot loop
    sizes = {one[0]: measured.get(one[0], 0) if _is_unmeasured(one) else one[1] for one in files.items()}
    return _entries(sizes, measured={})


def _is_unmeasured(file: tuple[str, int]) -> bool:
    """Whether a size is made up: Hudi 0.15 notes 1 byte for the log file of a failed write when that is rolled back.

    No real log file is so small, since a block alone has more.
    """
    name, size = file
    return size <= 1 and name.startswith(".")


def _records(block: LogBlock, *, name: str) -> Iterable[FileRecord]:
    if HeaderKey.COMPACTED_BLOCK_TIMES in block.header:
        raise MetadataTableError(f"{name} has a log block that log compaction wrote")
    if block.type is BlockType.HFILE_DATA:
        return read_file_records(HFile.open(block.content, name=name), schema=block.header.get(HeaderKey.SCHEMA))
    if block.type is BlockType.DELETE and block.content[_VERSION_BYTES:] == _EMPTY_DELETE:
        return _nothing()
    raise MetadataTableError(
        f"{name} has a log block of the type {block.type.name}; expected {BlockType.HFILE_DATA.name}"
    )


def _nothing() -> Iterator[FileRecord]:
    return iter(())


def _rolled_back(block: LogBlock, *, name: str) -> str:
    """The instant whose blocks a command takes back."""
    command = _text(block, HeaderKey.COMMAND_BLOCK_TYPE, name=name)
    if command != _ROLLBACK:
        raise CorruptTableError(f"{name} cannot be read: a log block has the unknown command {command!r}")
    return _text(block, HeaderKey.TARGET_INSTANT_TIME, name=name)


def _text(block: LogBlock, key: HeaderKey, *, name: str) -> str:
    text = block.text(key)
    if text is None:
        raise CorruptTableError(f"{name} cannot be read: a log block has no {key.name} in its header")
    return text
