"""Assemble file slices from a partition's file names, as Hudi's own file-system view does.

Source: ``AbstractTableFileSystemView`` and ``HoodieFileGroup``. What decides is the timeline: which instants are
complete, which file groups were replaced, and which compactions are pending; docs/storage.md tells the rules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from airflow_hudi_maint.core.model.commit import PendingPlan, PlanKind
from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice, LogFile
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.filesystem import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHistory:
    """What the timeline says about files: the input of every slice decision.

    ``completion_times`` maps requested to completion times of writes; of archived ones ``archived_completion`` tells,
    where it is needed. Before table version 8 neither is used: a log file's name carries its base instant instead.
    ``replaced`` holds (partition path, file id) pairs; ``compactions`` and
    ``holders`` map such a pair to the pending compaction, or to any pending plan, that has it as input. ``unfinished``
    are the pending instants that are older than ``timeline_start``.
    """

    committed: frozenset[str]
    timeline_start: str
    has_completion_times: bool
    completion_times: Mapping[str, str]
    replaced: frozenset[tuple[str, str]]
    compactions: Mapping[tuple[str, str], str]
    holders: Mapping[tuple[str, str], str]
    unfinished: frozenset[str] = frozenset()
    archived_completion: Callable[[str], str | None] = field(default=lambda _: None, compare=False)

    @classmethod
    def of(
        cls,
        timeline: Timeline,
        *,
        plans: Iterable[PendingPlan],
        replaced: Iterable[tuple[str, str]],
        has_completion_times: bool,
        archived_completion: Callable[[str], str | None] = lambda _: None,
    ) -> FileHistory:
        """Digest a timeline, its pending plans, and the file groups that its completed replace commits replaced."""
        holders: dict[tuple[str, str], str] = {}
        compactions: dict[tuple[str, str], str] = {}
        completions = {one.requested_time: one.ordering_time for one in timeline.completed_writes}
        for plan in plans:
            for one in plan.inputs:
                holders[one.partition_path, one.file_id] = plan.instant.requested_time
                if plan.kind is PlanKind.COMPACTION:
                    compactions[one.partition_path, one.file_id] = plan.instant.requested_time
        return cls(
            # Writes only: a savepoint has the time of the write that it keeps, and a clean may share one with a write
            # in flight. A pending compaction counts: the slice that it opened is where its group's new logs go.
            committed=frozenset(completions) | frozenset(compactions.values()),
            timeline_start=timeline.start,
            unfinished=frozenset(one.requested_time for one in timeline.pending if one.requested_time < timeline.start),
            has_completion_times=has_completion_times,
            completion_times=completions,
            archived_completion=archived_completion,
            replaced=frozenset(replaced),
            compactions=compactions,
            holders=holders,
        )

    def is_committed(self, instant_time: str) -> bool:
        """Whether files of this instant are part of the table."""
        return instant_time in self.committed or self._is_archived(instant_time)

    def is_complete(self, instant_time: str) -> bool:
        """Whether a log file's delta commit has completed."""
        return instant_time in self.completion_times or self._is_archived(instant_time)

    def completion_of(self, instant_time: str) -> str | None:
        """When a log file's delta commit completed; None while it has not.

        An archived instant's own time stands in where the archive does not tell.
        """
        known = self.completion_times.get(instant_time)
        if known is not None or not self._is_archived(instant_time):
            return known
        return self.archived_completion(instant_time) or instant_time

    def _is_archived(self, instant_time: str) -> bool:
        # A write that began before the first completed one and is still under way is older than the timeline's start.
        return instant_time < self.timeline_start and instant_time not in self.unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSlices:
    """The latest slice of each file group of a partition, in order of file id.

    ``latest`` has a slice without base file where a compaction is pending; ``merged`` joins that to the one before.
    """

    latest: tuple[FileSlice, ...]
    merged: tuple[FileSlice, ...]


def assemble_slices(partition_path: str, entries: Iterable[Entry], *, history: FileHistory) -> PartitionSlices:
    """Work out the latest slices of one partition from its directory listing."""
    bases, logs = _by_file_id(entries)
    latest: list[FileSlice] = []
    merged: list[FileSlice] = []
    for file_id in sorted(bases.keys() | logs.keys()):
        key = (partition_path, file_id)
        if key in history.replaced:
            continue
        if file_id not in logs and key not in history.compactions:
            newest_base = _newest_base(bases[file_id], history=history)
            if newest_base is not None:
                only = _slice_of(newest_base, partition_path=partition_path, holder=history.holders.get(key))
                latest.append(only)
                merged.append(only)
            continue
        group = _FileGroup(partition_path, file_id, history=history)
        newest = group.slices(bases.get(file_id, ()), logs.get(file_id, ()))
        if newest:
            latest.append(newest[-1])
            merged.append(group.merged(newest))
    return PartitionSlices(latest=tuple(latest), merged=tuple(merged))


def _by_file_id(entries: Iterable[Entry]) -> tuple[dict[str, list[BaseFile]], dict[str, list[LogFile]]]:
    """Base and log files of each file group; other files are passed over."""
    bases: dict[str, list[BaseFile]] = defaultdict(list)
    logs: dict[str, list[LogFile]] = defaultdict(list)
    for name, is_directory, size_bytes, modified_ns in entries:
        if is_directory:
            continue
        if name[0] == ".":
            log_file = LogFile.parse(name, size_bytes=size_bytes, modified_ns=modified_ns)
            if log_file is not None:
                logs[log_file.file_id].append(log_file)
            continue
        base_file = BaseFile.parse(name, size_bytes=size_bytes)
        if base_file is not None:
            bases[base_file.file_id].append(base_file)
    return bases, logs


def _newest_base(bases: list[BaseFile], *, history: FileHistory) -> BaseFile | None:
    """The latest base file of a group without logs and compaction: most groups are, so they take this short way."""
    if len(bases) == 1:
        return bases[0] if history.is_committed(bases[0].instant) else None
    committed = (one for one in bases if history.is_committed(one.instant))
    return max(committed, key=lambda one: (one.instant, one.name), default=None)


def _slice_of(base_file: BaseFile, *, partition_path: str, holder: str | None) -> FileSlice:
    return FileSlice(
        partition_path=partition_path,
        file_id=base_file.file_id,
        base_instant=base_file.instant,
        base_file=base_file,
        pending_instant=holder,
    )


class _FileGroup:
    def __init__(self, partition_path: str, file_id: str, *, history: FileHistory) -> None:
        self.partition_path = partition_path
        self.file_id = file_id
        self.history = history
        self.compaction = history.compactions.get((partition_path, file_id))
        self.holder = history.holders.get((partition_path, file_id))

    def slices(self, bases: Iterable[BaseFile], logs: Iterable[LogFile]) -> list[FileSlice]:
        """All committed slices, oldest first."""
        base_files = {one.instant: one for one in sorted(bases, key=lambda one: (one.instant, one.name))}
        keys = set(base_files)
        if self.compaction is not None:
            keys.add(self.compaction)
        log_files: dict[str, list[LogFile]] = defaultdict(list)
        for one in sorted(logs, key=lambda one: (one.instant, one.version, one.write_token)):
            if self._is_visible(one):
                log_files[self._base_instant(one, keys)].append(one)
                keys.update(log_files)
        committed = sorted(filter(self.history.is_committed, keys))
        return [self._slice(instant, base_files.get(instant), log_files.get(instant, ())) for instant in committed]

    def merged(self, slices: list[FileSlice]) -> FileSlice:
        """The latest slice, joined to the one before while its compaction is pending."""
        newest = slices[-1]
        if newest.base_instant != self.compaction or len(slices) == 1:
            return newest
        before = slices[-2]
        return replace(before, log_files=before.log_files + newest.log_files)

    def _slice(self, instant: str, base_file: BaseFile | None, log_files: Iterable[LogFile]) -> FileSlice:
        return FileSlice(
            partition_path=self.partition_path,
            file_id=self.file_id,
            base_instant=instant,
            # A base file of the pending compaction is half-written.
            base_file=None if instant == self.compaction else base_file,
            log_files=tuple(log_files),
            pending_instant=self.holder,
        )

    def _is_visible(self, log_file: LogFile) -> bool:
        # Table version 6: the name does not tell the delta commit; rollbacks neutralise blocks inside the file.
        return not self.history.has_completion_times or self.history.is_complete(log_file.instant)

    def _base_instant(self, log_file: LogFile, keys: set[str]) -> str:
        if not self.history.has_completion_times:
            return log_file.instant
        earlier = sorted(keys)
        position = bisect_right(earlier, log_file.instant)
        if position < len(earlier):
            # A younger base file only: it has the log file's rows if the delta commit completed before it was planned.
            completion = self.history.completion_of(log_file.instant) or log_file.instant
            position = bisect_right(earlier, completion)
        return earlier[position - 1] if position else log_file.instant
