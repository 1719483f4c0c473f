"""Date partitions: which instant was the last that changed a partition's data.

File names tell nearly all of it. Clustering and compaction write files that are younger than their rows, and a log file
of table version 6 does not name its delta commit; then active commits, earlier statistics, and at last the
footers of just those base files and the modification times of just those log files are asked.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import NamedTuple

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.commit import CommitMetadata
from airflow_hudi_maint.core.model.file_slice import LogFile
from airflow_hudi_maint.core.model.instant import Action, Instant, moment_instant
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.archived_rewrites import ArchivedRewrites
from airflow_hudi_maint.core.storage.footers import max_commit_times
from airflow_hudi_maint.core.storage.latest_files import LatestFiles
from airflow_hudi_maint.core.storage.table import HudiTable

COMMIT_ACTIONS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
"""Actions whose completed files hold commit metadata."""

_BATCH = 16
_NEVER = ""

_log = logging.getLogger(__name__)


class Clues(NamedTuple):
    """What the file names of a partition tell about its last modification.

    ``sure`` is the greatest instant that certainly changed data, or ``""``. ``rewritten`` holds the base files whose
    rows are older than the file, by path, with the file's instant. ``undated_logs`` are log files whose names do not
    tell their delta commits. ``newest`` stands in where nothing else tells.
    """

    sure: str
    rewritten: Mapping[str, str]
    undated_logs: tuple[LogFile, ...]
    newest: str

    @property
    def is_open(self) -> bool:
        """Whether more than file names has to be asked."""
        return bool(self.rewritten or self.undated_logs or not self.sure)

    @property
    def last_known(self) -> str:
        """The best answer from file names alone."""
        return self.sure or self.newest


class Dating:
    """Finds the last data-changing instant of partitions, as of one timeline.

    ``earlier`` are statistics of the same table, if there are any. ``last_writes`` holds the last data-changing write
    of each partition since then, and ``rewrites`` the instants since then that only moved rows, when every instant
    since then has been read; None otherwise.
    """

    def __init__(
        self,
        *,
        table: HudiTable,
        timeline: Timeline,
        earlier: TableStatistics | None = None,
        last_writes: Mapping[str, str] | None = None,
        rewrites: frozenset[str] | None = None,
    ) -> None:
        self._table = table
        self._timeline = timeline
        self._earlier = earlier
        self._pending_then = frozenset(() if earlier is None else earlier.watermark.pending)
        self._last_writes = last_writes
        self._names_date_logs = table.config.has_completion_times
        self._suspects = {one.requested_time: one for one in timeline.completed if table.may_rewrite(one)}
        self._rewrites: dict[str, bool] = {}
        archive = ArchivedRewrites(table, until=timeline.start)
        self._is_archived_rewrite = archive.holds if rewrites is None else rewrites.__contains__

    def clues(self, partition_path: str, *, files: LatestFiles) -> Clues:
        """Read the file names of a partition; opens the commits that may be rewrites, each once, and nothing else.

        Archived ones are looked for only where one would decide.
        """
        base_instants = files.base_instants
        rewrites = set(filter(self._is_rewrite, base_instants & self._suspects.keys())) if self._suspects else set()
        rewrites |= self._deciding_archived_rewrites(base_instants - rewrites, partition_path=partition_path)
        written = base_instants - rewrites
        if self._names_date_logs and files.logs:
            written |= {one.instant for one in files.logs} - self._timeline.log_compactions
        dated = self._dated(written, partition_path=partition_path)
        sure = max(dated, default=_NEVER)
        return Clues(
            sure=sure,
            rewritten=_files_of(files, instants=rewrites, partition_path=partition_path) if rewrites else {},
            undated_logs=() if self._names_date_logs else files.logs,
            newest=sure or files.newest,
        )

    def resolve(self, undated: Mapping[str, Clues]) -> dict[str, str]:
        """The last data-changing instant of partitions whose clues are open.

        Asked in this order: earlier statistics and the commits since, where all of those have been read; the active
        timeline, newest commit first and no further back than needed; footers and modification times, for writes that
        are archived. A file whose footer does not tell counts by its own instant.

        The active timeline is not asked where all that is open was rewritten before it: a later write left a file.
        """
        dates = {path: max(clues.sure, self._trusted(path), self._last_write(path)) for path, clues in undated.items()}
        unsettled = {path for path in undated if not self._is_settled(path)}
        written = self._last_active_writes(
            {path: dates[path] for path in unsettled if not self._is_archived_alone(undated[path])}
        )
        dates.update(written)
        unknown = sorted(unsettled - written.keys())
        footers = max_commit_times(
            self._table.storage, paths=[file for path in unknown for file in undated[path].rewritten]
        )
        logs = self._with_times({path: undated[path].undated_logs for path in unknown})
        for path in unknown:
            rewritten = undated[path].rewritten.items()
            logged = self._latest_log_write(logs[path])
            dates[path] = max((dates[path], logged, *(footers[file] or instant for file, instant in rewritten)))
        return {path: date or undated[path].newest for path, date in dates.items()}

    def _with_times(self, logs: Mapping[str, Sequence[LogFile]]) -> dict[str, Sequence[LogFile]]:
        """The log files of partitions; where they came without modification times, with those of the directories.

        The metadata table has none.
        """
        without = sorted(path for path, files in logs.items() if any(one.modified_ns is None for one in files))
        times = {
            (path, entry.name): entry.modified_ns
            for path, entries in self._table.listings(partitions=without)
            for entry in entries
        }
        timed = {
            path: [replace(one, modified_ns=times.get((path, one.name))) for one in logs[path]] for path in without
        }
        return {**logs, **timed}

    def _latest_log_write(self, logs: Sequence[LogFile]) -> str:
        """An instant that no archived delta commit in these log files is younger than.

        A log file was not written before its delta commit was requested, and whatever is archived is older than what
        is active. Where the storage does not tell when it was written, or a copy made it younger, that alone counts.
        """
        if not logs:
            return _NEVER
        written = [one.modified_ns for one in logs if one.modified_ns is not None]
        if len(written) < len(logs):
            return self._timeline.start
        last = datetime.fromtimestamp(max(written) / 1e9, tz=UTC)
        return min(moment_instant(last, zone=self._table.zone), self._timeline.start)

    def _is_rewrite(self, suspect: str) -> bool:
        known = self._rewrites.get(suspect)
        if known is None:
            metadata = decoded_or_none(self._table, self._suspects[suspect])
            known = self._rewrites[suspect] = metadata is not None and metadata.rewrites_only
        return known

    def _deciding_archived_rewrites(self, base_instants: set[str], *, partition_path: str) -> set[str]:
        """The archived rewrites that are younger than any write of the partition, and unknown to earlier statistics."""
        unknown = {one for one in base_instants - self._timeline.completed_times if one < self._timeline.start}
        if unknown and self._row(partition_path) is not None:
            unknown = {one for one in unknown if not self._was_seen(one)}
        if not unknown:
            return set()
        younger_than = max(base_instants - unknown, default=_NEVER)
        candidates = sorted((one for one in unknown if one > younger_than), reverse=True)
        return set(takewhile(self._is_archived_rewrite, candidates))

    def _is_archived_alone(self, clues: Clues) -> bool:
        """Whether all that is open about a partition are files that archived instants rewrote."""
        rewritten = clues.rewritten.values()
        return bool(rewritten) and not clues.undated_logs and self._suspects.keys().isdisjoint(rewritten)

    def _was_seen(self, instant_time: str) -> bool:
        """Whether earlier statistics knew of an instant: what was pending then was not known, even if it is older."""
        return (
            self._earlier is not None
            and instant_time <= self._earlier.as_of_instant
            and instant_time not in self._pending_then
        )

    def _dated(self, base_instants: set[str], *, partition_path: str) -> set[str]:
        """The instants, but not those archived ones of which earlier statistics knew that they only moved rows."""
        row = self._row(partition_path)
        if row is None:
            return base_instants
        archived = {one for one in base_instants - self._timeline.completed_times if self._was_seen(one)}
        return (base_instants - archived) | {min(one, row.last_modified_instant) for one in archived}

    def _row(self, path: str) -> PartitionStatistics | None:
        return None if self._earlier is None else self._earlier.by_path.get(path)

    def _trusted(self, path: str) -> str:
        """What earlier statistics say; nothing when that instant has been rolled back since."""
        row = self._row(path)
        if row is None:
            return _NEVER
        instant = row.last_modified_instant
        is_there = instant in self._timeline.completed_times or instant < self._timeline.start
        return instant if is_there else _NEVER

    def _last_write(self, path: str) -> str:
        return _NEVER if self._last_writes is None else self._last_writes.get(path, _NEVER)

    def _is_settled(self, path: str) -> bool:
        """Whether earlier statistics and the commits since then tell all."""
        if self._last_writes is None:
            return False
        return bool(self._trusted(path)) or (self._row(path) is None and path in self._last_writes)

    def _last_active_writes(self, known: Mapping[str, str]) -> dict[str, str]:
        """The last active data-changing write of each partition, where it is younger than what is known."""
        if not known:
            return {}
        found: dict[str, str] = {}
        waiting = set(known)
        by_date = sorted(known, key=lambda path: known[path])
        newest_first = [one for one in reversed(self._timeline.completed) if one.action in COMMIT_ACTIONS]
        for instant, metadata in decoded_commits(self._table, newest_first):
            while by_date and known[by_date[-1]] >= instant.requested_time:
                waiting.discard(by_date.pop())
            if not waiting:
                break
            if metadata is not None and metadata.rewrites_only:
                continue
            # A commit that cannot be read may have written anywhere: too young a date keeps data, too old costs it.
            touched = waiting if metadata is None else waiting & metadata.written.keys()
            found.update(dict.fromkeys(touched, instant.requested_time))
            waiting -= touched
        return found


def _files_of(files: LatestFiles, *, instants: Collection[str], partition_path: str) -> dict[str, str]:
    prefix = f"{partition_path}/" if partition_path else ""
    return {prefix + name: instant for instant, name, _ in files.bases if instant in instants}


def decoded_commits(
    table: HudiTable, wanted: Sequence[Instant], *, files: bool = False
) -> Iterator[tuple[Instant, CommitMetadata | None]]:
    """Decode commits in the order given, 16 at a time; None, with a warning, for one that is broken.

    Without ``files`` they say which partitions they wrote to, but not which files.
    """
    for start in range(0, len(wanted), _BATCH):
        batch = wanted[start : start + _BATCH]
        decoded: Iterable[CommitMetadata | None]
        try:
            decoded = table.commit_metadata_of(batch, files=files)
        except CorruptTableError:
            decoded = [decoded_or_none(table, one, files=files) for one in batch]
        yield from zip(batch, decoded, strict=True)


def decoded_or_none(table: HudiTable, instant: Instant, *, files: bool = False) -> CommitMetadata | None:
    """Decode a commit; None, with a warning, when it is broken."""
    try:
        (metadata,) = table.commit_metadata_of((instant,), files=files)
    except CorruptTableError as error:
        _log.warning("Instant %s of table %s cannot be read: %s", instant, table.base_path, error)
        return None
    return metadata
