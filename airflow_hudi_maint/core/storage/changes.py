"""What happened to a table since earlier statistics, from its timeline.

What may be left out of an incremental gather is told in docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.instant import WRITE_ACTIONS, Action, Instant
from airflow_hudi_maint.core.model.statistics import TableStatistics, Watermark
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.dating import COMMIT_ACTIONS, decoded_commits
from airflow_hudi_maint.core.storage.table import HudiTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What happened since earlier statistics: partitions to list again, and the last data-changing write of each."""

    earlier: TableStatistics
    partitions: frozenset[str]
    last_writes: Mapping[str, str]
    reason: str


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


def foreign(previous: TableStatistics, *, table: HudiTable) -> str | None:
    """Why earlier statistics are not of this table; None when they are."""
    then = (previous.base_path, previous.table_name, previous.table_version, previous.table_type)
    config = table.config
    here = (table.base_path, config.name, config.table_version, str(config.table_type))
    if then == here:
        return None
    return f"the earlier statistics are of another table: {_described(*then)}; this one is {_described(*here)}"


def _described(base_path: str, name: str, version: int, table_type: str) -> str:
    return f"{name!r} at {base_path}, version {version}, {table_type}"


def changes_since(previous: TableStatistics | None, *, table: HudiTable, timeline: Timeline) -> Changes | str:
    """What changed since ``previous``, or why that cannot be told."""
    if previous is None:
        return "there are no earlier statistics"
    reason = foreign(previous, table=table) or out_of_reach(timeline, watermark=previous.watermark)
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
    return Changes(earlier=previous, partitions=frozenset(partitions), last_writes=last_writes, reason=text)


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
