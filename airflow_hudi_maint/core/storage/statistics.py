"""Gather partition statistics, in full or since earlier ones, and keep them as documents.

What may be left out of an incremental gather, and how a partition is dated, is told in docs/statistics.md.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from airflow_hudi_maint.core.errors import CorruptTableError, InvalidSettingError
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.instant import WRITE_ACTIONS, Action, Instant
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics, Watermark
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.dating import COMMIT_ACTIONS, Clues, Dating, decoded_commits
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.table import HudiTable

MODES = ("auto", "full", "incremental")
DEFAULT_SMALL_FILE_BYTES = 100 * 1024 * 1024
DEFAULT_KEPT_STATISTICS = 30

_FILE_NAME = re.compile(r"\d{14}(?:\d{3})?\.json")

_log = logging.getLogger(__name__)


def gather_statistics(
    table: HudiTable,
    *,
    now: datetime,
    previous: TableStatistics | None = None,
    small_file_bytes: int = DEFAULT_SMALL_FILE_BYTES,
    mode: str = "auto",
) -> TableStatistics:
    """Sum up the latest file slices of every partition, as of the last completed instant.

    ``auto`` and ``incremental`` list only the partitions that instants since ``previous`` touched, and the whole table
    where that cannot be trusted to be complete; ``reason`` in the result says which and why. ``full`` lists the
    whole table; ``previous`` then only helps to date partitions whose history is archived.

    Reads only. A commit that completes meanwhile is left to the next gather. On merge-on-read tables of version 6, log
    bytes of a delta commit in flight may be counted already.

    Raises InvalidSettingError for an unknown mode or a limit below 1, CorruptTableError for a broken instant that
    decides which files count, and StorageError.
    """
    if mode not in MODES:
        raise InvalidSettingError(f"mode {mode!r} is unknown; expected one of {', '.join(MODES)}")
    if small_file_bytes < 1:
        raise InvalidSettingError(f"small_file_bytes={small_file_bytes}; expected at least 1")
    timeline = table.timeline()
    rows = _gather(table, timeline=timeline, previous=previous, mode=mode)
    return TableStatistics(
        base_path=table.base_path,
        table_name=table.config.name,
        table_version=table.config.table_version,
        table_type=str(table.config.table_type),
        watermark=watermark_of(timeline),
        gathered=rows.gathered,
        reason=rows.reason,
        gathered_at=now.astimezone(UTC).isoformat(),
        small_file_bytes=small_file_bytes,
        partitions=tuple(sorted(rows.rows, key=lambda row: row.partition_path)),
    )


def watermark_of(timeline: Timeline) -> Watermark:
    """How far a reader of this timeline has seen."""
    return Watermark(
        requested_time=timeline.last_completed_time,
        completion_time=timeline.last_completion_time,
        pending=tuple(one.requested_time for one in timeline.pending),
        seen=tuple(dict.fromkeys(one.requested_time for one in timeline.completed)),
    )


def instants_since(timeline: Timeline, *, watermark: Watermark) -> tuple[Instant, ...]:
    """The completed instants that a reader with this watermark has not seen, in order of requested time.

    No clock is asked: a writer's may be behind another's, and an hour repeats when summer time ends. Only a watermark
    that does not tell what it has seen is compared with; an instant that was pending then counts in any case.
    """
    seen, pending = frozenset(watermark.seen), frozenset(watermark.pending)

    def is_new(one: Instant) -> bool:
        if seen:
            return one.requested_time not in seen
        if one.requested_time in pending:
            return True
        if watermark.completion_time is not None and one.completion_time is not None:
            return one.completion_time > watermark.completion_time
        return one.requested_time > watermark.requested_time

    return tuple(filter(is_new, timeline.completed))


def write_statistics(documents: DocumentStore, *, statistics: TableStatistics) -> str:
    """Write ``<instant>.json`` and return its full path; statistics as of the same instant are replaced."""
    return documents.write("statistics", name=f"{statistics.as_of_instant}.json", document=statistics.to_json())


def newest_statistics(documents: DocumentStore) -> TableStatistics | None:
    """Read the newest statistics; a broken file is skipped with a warning, and the one before is read."""
    for name in reversed(_statistics_names(documents)):
        path = documents.path("statistics", name=name)
        try:
            return TableStatistics.from_json(documents.read(path), name=path)
        except FileNotFoundError:  # pruned by another gatherer
            continue
        except CorruptTableError as error:
            _log.warning("Skipped broken statistics: %s", error)
    return None


def prune_statistics(documents: DocumentStore, *, keep: int = DEFAULT_KEPT_STATISTICS) -> tuple[str, ...]:
    """Delete all but the newest ``keep`` statistics files and return the names of the deleted ones.

    Raises InvalidSettingError for ``keep`` below 1: the newest file always stays.
    """
    if keep < 1:
        raise InvalidSettingError(f"keep {keep} statistics files; the newest one always stays, so expected at least 1")
    old = _statistics_names(documents)[:-keep]
    for name in old:
        documents.delete("statistics", name=name)
    return old


def _statistics_names(documents: DocumentStore) -> tuple[str, ...]:
    return tuple(name for name in documents.names("statistics") if _FILE_NAME.fullmatch(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gathered:
    """The rows in no order, how they were gathered, and why so."""

    rows: Sequence[PartitionStatistics]
    gathered: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changes:
    """What happened since earlier statistics: partitions to list again, and the last data-changing write of each."""

    earlier: TableStatistics
    partitions: frozenset[str]
    last_writes: Mapping[str, str]
    reason: str


def _gather(table: HudiTable, *, timeline: Timeline, previous: TableStatistics | None, mode: str) -> _Gathered:
    changes = "it was asked for" if mode == "full" else _changes_since(previous, table=table, timeline=timeline)
    if isinstance(changes, str):
        earlier = None if previous is None or _foreign(previous, table=table) else previous
        dating = Dating(table=table, timeline=timeline, earlier=earlier)
        rows = _rows(table, timeline=timeline, partitions=None, dating=dating)
        return _Gathered(rows=rows, gathered="full", reason=changes)
    earlier, touched = changes.earlier, changes.partitions
    dating = Dating(table=table, timeline=timeline, earlier=earlier, last_writes=changes.last_writes)
    kept = [row for row in earlier.partitions if row.partition_path not in touched]
    renewed = _rows(table, timeline=timeline, partitions=touched, dating=dating)
    return _Gathered(rows=kept + renewed, gathered="incremental", reason=changes.reason)


def _foreign(previous: TableStatistics, *, table: HudiTable) -> str | None:
    then = (previous.base_path, previous.table_name, previous.table_version, previous.table_type)
    config = table.config
    here = (table.base_path, config.name, config.table_version, str(config.table_type))
    if then == here:
        return None
    return f"the earlier statistics are of another table: {_described(*then)}; this one is {_described(*here)}"


def _described(base_path: str, name: str, version: int, table_type: str) -> str:
    return f"{name!r} at {base_path}, version {version}, {table_type}"


def _changes_since(previous: TableStatistics | None, *, table: HudiTable, timeline: Timeline) -> _Changes | str:
    """What changed since ``previous``, or why that cannot be told."""
    if previous is None:
        return "there are no earlier statistics"
    reason = _foreign(previous, table=table) or out_of_reach(timeline, watermark=previous.watermark)
    if reason:
        return reason
    new = instants_since(timeline, watermark=previous.watermark)
    partitions: set[str] = set()
    last_writes: dict[str, str] = {}
    for instant, metadata in decoded_commits(table, [one for one in new if one.action in COMMIT_ACTIONS]):
        if metadata is None:
            return f"instant {instant} cannot be read"
        partitions |= metadata.touched_partitions
        if not metadata.rewrites_only:
            last_writes.update(dict.fromkeys(metadata.written, instant.requested_time))
    for instant in new:
        if instant.action in (Action.ROLLBACK, Action.RESTORE):
            rolled_back = _rolled_back(instant, table=table, watermark=previous.watermark)
            if isinstance(rolled_back, str):
                return rolled_back
            partitions |= rolled_back
    as_of = previous.as_of_instant
    text = (
        f"{len(new)} instants since {as_of} touched {len(partitions)} partitions"
        if new
        else f"nothing new since {as_of}"
    )
    return _Changes(earlier=previous, partitions=frozenset(partitions), last_writes=last_writes, reason=text)


def out_of_reach(timeline: Timeline, *, watermark: Watermark) -> str | None:
    """Why instants since the watermark may be missing from the active timeline; None when all are there.

    Hudi archives the oldest commits first, so nothing is missing behind a commit that is still active and not younger
    than the watermark nor than any instant that was pending then and is gone. A savepointed commit says nothing: it
    may stay while younger ones are archived.
    """
    active = {one.requested_time for one in timeline}
    saved = {one.requested_time for one in timeline.completed if one.action is Action.SAVEPOINT}
    writes = {one.requested_time for one in timeline.completed if one.action in WRITE_ACTIONS}
    oldest = min(writes - saved or writes, default=None)
    needed = min((watermark.requested_time, *(one for one in watermark.pending if one not in active)))
    if oldest is None:
        return "no completed commit is active"
    if oldest > needed:
        return f"the active timeline starts at {oldest} and no longer reaches back to {needed}"
    return None


def _rolled_back(instant: Instant, *, table: HudiTable, watermark: Watermark) -> frozenset[str] | str:
    """The partitions that a rollback took files from, or why they do not tell all that it changed."""
    if instant.action is Action.RESTORE:
        return f"instant {instant} restored the table to an earlier state"
    try:
        rollback = table.rollback_metadata(instant)
    except CorruptTableError:
        return f"instant {instant} cannot be read"
    # Rolling back a completed replace commit brings file groups back in partitions that lost no file.
    seen = [one for one in rollback.undone if one <= watermark.requested_time and one not in watermark.pending]
    return f"instant {instant} rolled back {seen[0]}, which was complete" if seen else rollback.partitions


def _rows(
    table: HudiTable, *, timeline: Timeline, partitions: Collection[str] | None, dating: Dating
) -> list[PartitionStatistics]:
    if partitions is not None and not partitions:
        return []
    view = table.view(timeline, partitions=partitions)
    rows: list[PartitionStatistics] = []
    undated: dict[str, Clues] = {}
    for path in view.partition_paths:
        slices = view.merged_slices(path)
        if not slices:
            continue
        clues = dating.clues(path, slices=slices)
        if clues.is_open:
            undated[path] = clues
        rows.append(_row(path, slices=slices, last_modified=clues.last_known))
    dates = dating.resolve(undated)
    return [
        replace(row, last_modified_instant=dates[row.partition_path]) if row.partition_path in dates else row
        for row in rows
    ]


def _row(path: str, *, slices: Sequence[FileSlice], last_modified: str) -> PartitionStatistics:
    sizes = sorted(one.base_file.bytes for one in slices if one.base_file is not None)
    log_files = [log_file.bytes for one in slices if one.log_files for log_file in one.log_files]
    return PartitionStatistics(
        partition_path=path,
        last_modified_instant=last_modified,
        total_bytes=sum(sizes) + sum(log_files),
        file_group_count=len(slices),
        log_file_count=len(log_files),
        log_file_bytes=sum(log_files),
        base_file_bytes=tuple(sizes),
    )
