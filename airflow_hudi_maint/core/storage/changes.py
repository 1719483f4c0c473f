"""What happened to a table since earlier statistics, from its timeline.

What may be left out of an incremental gather is told in docs/statistics.md.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.commit import CommitMetadata, RollbackMetadata
from airflow_hudi_maint.core.model.instant import WRITE_ACTIONS, Action, Instant
from airflow_hudi_maint.core.model.statistics import TableStatistics, Watermark
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.model.units import counted
from airflow_hudi_maint.core.storage.archive import ArchivedInstant
from airflow_hudi_maint.core.storage.dating import COMMIT_ACTIONS, decoded_commits
from airflow_hudi_maint.core.storage.table import HudiTable

_FEWEST_KEPT = 2
"""How many rollbacks at least stay active when others are archived: Hudi keeps ``hoodie.keep.min.commits`` of them."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What happened since earlier statistics: partitions to list again, and the last data-changing write of each.

    ``rewrites`` are the instants since then that only moved rows.
    """

    earlier: TableStatistics
    partitions: frozenset[str]
    last_writes: Mapping[str, str]
    rewrites: frozenset[str]
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
        if one.requested_time in pending:  # also where another action of the same time had been seen
            return True
        if seen:
            return one.requested_time not in seen
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


@dataclass(frozen=True, kw_only=True)
class Unseen:
    """The completed instants that a reader with a watermark has not seen, in order of requested time.

    ``archived`` holds those of them that left the active timeline meanwhile.
    """

    table: HudiTable
    instants: tuple[Instant, ...]
    archived: Mapping[Instant, ArchivedInstant]

    def commits(self) -> Iterator[tuple[Instant, CommitMetadata | None]]:
        """What each commit among them says; None, with a warning, for one that is broken."""
        wanted = [one for one in self.instants if one.action in COMMIT_ACTIONS]
        for one in wanted:
            if one in self.archived:
                yield one, _decoded_or_none(self.archived[one])
        yield from decoded_commits(self.table, [one for one in wanted if one not in self.archived])

    def undone(self) -> frozenset[str]:
        """The requested times of what rollbacks among them undid; a broken one says nothing."""
        found: set[str] = set()
        for one in self.instants:
            if one.action is Action.ROLLBACK:
                with suppress(CorruptTableError):
                    found.update(self.rollback_metadata(one).undone)
        return frozenset(found)

    def rollback_metadata(self, instant: Instant) -> RollbackMetadata:
        """What a rollback among them says."""
        if instant in self.archived:
            return self.archived[instant].rollback_metadata()
        return self.table.rollback_metadata(instant)


def unseen_instants(table: HudiTable, *, timeline: Timeline, watermark: Watermark) -> Unseen | str:
    """What a reader with this watermark has not seen, or why that cannot be told.

    The archive is opened only where the active timeline no longer reaches back or does not explain itself, and no
    further back than needed.
    """
    new = instants_since(timeline, watermark=watermark)
    active_only = Unseen(table=table, instants=new, archived={})
    gap = out_of_reach(timeline, watermark=watermark) or _unexplained(
        active_only, timeline=timeline, watermark=watermark
    )
    if gap is None:
        return active_only
    floor = _floor(timeline, watermark=watermark)
    if floor is None:
        return f"{gap}, and the earlier statistics do not tell where the archive should start"
    active = {(one.requested_time, one.action) for one in timeline.completed}
    try:
        found = {one.instant: one for one in table.archived(since=floor)}
    except CorruptTableError as error:
        return f"{gap}, and the archive cannot be read: {error}"
    archived = {
        key: one
        for key, one in found.items()
        if key.requested_time not in watermark.seen and (key.requested_time, key.action) not in active
    }
    both = sorted((*archived, *new), key=lambda one: (one.requested_time, one.action))
    unseen = Unseen(table=table, instants=tuple(both), archived=archived)
    lost = _gone(timeline, watermark=watermark) - {one.requested_time for one in found} - unseen.undone()
    return f"{gap}, and the archive lacks {min(lost)}" if lost else unseen


def _gone(timeline: Timeline, *, watermark: Watermark) -> frozenset[str]:
    """What was active at the watermark and is not any more: archived, or rolled back.

    While all of it is found, none that came after is missing, since history is archived from its old end on.
    """
    return frozenset((*watermark.seen, *watermark.pending)) - {one.requested_time for one in timeline}


def _unexplained(unseen: Unseen, *, timeline: Timeline, watermark: Watermark) -> str | None:
    """Why a rollback since the watermark may be archived although no commit since then is; None when none is.

    On table version 6 rollbacks are archived by their own number (Hudi's ``TimelineArchiverV1``), and the newest few
    stay. What one undid is gone then without a word. One that undid a write which was never seen matters only for log
    files of that version, which it makes longer.
    """
    if not watermark.seen or any(one.action is Action.RESTORE for one in unseen.instants):
        return None  # a restore takes instants away, and says enough
    oldest = _oldest_write(timeline) or ""
    gone = {one for one in _gone(timeline, watermark=watermark) if one >= oldest}
    gone -= unseen.undone() if gone else frozenset()
    if gone:
        return f"instant {min(gone)} is gone from the active timeline, which does not say why"
    config = unseen.table.config
    rollbacks = [one for one in timeline.completed if one.action is Action.ROLLBACK]
    are_new = set(rollbacks) <= set(unseen.instants) and len(rollbacks) >= _FEWEST_KEPT
    if are_new and config.is_merge_on_read and not config.has_completion_times:
        return f"all {len(rollbacks)} active rollbacks are new, so that others may be archived"
    return None


def _floor(timeline: Timeline, *, watermark: Watermark) -> str | None:
    """The oldest instant that was active at the watermark: what is older had been archived by then.

    Actions that are never archived, and savepointed commits, stay active for years and tell nothing.
    """
    if not watermark.seen:
        return None
    lasting = {one.requested_time for one in timeline.completed if one.action not in WRITE_ACTIONS}
    told = frozenset(watermark.seen) - lasting | _gone(timeline, watermark=watermark)
    return min(told, default=None)


def changes_since(previous: TableStatistics | None, *, table: HudiTable, timeline: Timeline) -> Changes | str:
    """What changed since ``previous``, or why that cannot be told."""
    if previous is None:
        return "there are no earlier statistics"
    reason = foreign(previous, table=table)
    if reason:
        return reason
    unseen = unseen_instants(table, timeline=timeline, watermark=previous.watermark)
    if isinstance(unseen, str):
        return unseen
    touched = _touched(unseen, watermark=previous.watermark)
    if isinstance(touched, str):
        return touched
    reason = _summary(unseen, partitions=len(touched.partitions), as_of=previous.as_of_instant)
    return Changes(
        earlier=previous,
        partitions=touched.partitions,
        last_writes=touched.last_writes,
        rewrites=touched.rewrites,
        reason=reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Touched:
    """As in :class:`Changes`."""

    partitions: frozenset[str]
    last_writes: Mapping[str, str]
    rewrites: frozenset[str]


def _touched(unseen: Unseen, *, watermark: Watermark) -> _Touched | str:
    """What instants did to partitions, or why that cannot be told."""
    partitions: set[str] = set()
    last_writes: dict[str, str] = {}
    rewrites: set[str] = set()
    for instant, metadata in unseen.commits():
        if metadata is None:
            return f"instant {instant} cannot be read"
        partitions |= metadata.touched_partitions
        if metadata.rewrites_only:
            rewrites.add(instant.requested_time)
        else:
            # Archived commits come first and may be the younger ones: a savepoint keeps an old one active.
            last_writes.update(
                {path: max(instant.requested_time, last_writes.get(path, "")) for path in metadata.written}
            )
    for instant in unseen.instants:
        if instant.action in (Action.ROLLBACK, Action.RESTORE):
            rolled_back = _rolled_back(instant, unseen=unseen, watermark=watermark)
            if isinstance(rolled_back, str):
                return rolled_back
            partitions |= rolled_back
    return _Touched(partitions=frozenset(partitions), last_writes=last_writes, rewrites=frozenset(rewrites))


def _summary(unseen: Unseen, *, partitions: int, as_of: str) -> str:
    if not unseen.instants:
        return f"nothing new since {as_of}"
    archived = f", {len(unseen.archived)} of them archived," if unseen.archived else ""
    instants = counted(len(unseen.instants), "instant")
    return f"{instants} since {as_of}{archived} touched {counted(partitions, 'partition')}"


def out_of_reach(timeline: Timeline, *, watermark: Watermark) -> str | None:
    """Why instants since the watermark may be missing from the active timeline; None when all are there.

    Hudi archives the oldest commits first, so nothing is missing behind a commit that is still active and not younger
    than the watermark nor than any instant that was pending then and is gone. A savepointed commit says nothing: it
    may stay while younger ones are archived.
    """
    active = {one.requested_time for one in timeline}
    oldest = _oldest_write(timeline)
    needed = min((watermark.requested_time, *(one for one in watermark.pending if one not in active)))
    if oldest is None:
        return "no completed commit is active"
    if oldest > needed:
        return f"the active timeline starts at {oldest} and no longer reaches back to {needed}"
    return None


def _oldest_write(timeline: Timeline) -> str | None:
    """The requested time of the oldest completed write, savepointed ones apart unless there are no others."""
    saved = {one.requested_time for one in timeline.completed if one.action is Action.SAVEPOINT}
    writes = {one.requested_time for one in timeline.completed_writes}
    return min(writes - saved or writes, default=None)


def _rolled_back(instant: Instant, *, unseen: Unseen, watermark: Watermark) -> frozenset[str] | str:
    """The partitions that a rollback took files from, or why they do not tell all that it changed."""
    if instant.action is Action.RESTORE:
        return f"instant {instant} restored the table to an earlier state"
    try:
        rollback = unseen.rollback_metadata(instant)
    except CorruptTableError:
        return f"instant {instant} cannot be read"
    # Rolling back a completed replace commit brings file groups back in partitions that lost no file.
    seen = [one for one in rollback.undone if one <= watermark.requested_time and one not in watermark.pending]
    return f"instant {instant} rolled back {seen[0]}, which was complete" if seen else rollback.partitions


def _decoded_or_none(archived: ArchivedInstant) -> CommitMetadata | None:
    try:
        return archived.commit_metadata()
    except CorruptTableError as error:
        _log.warning("An archived instant cannot be read: %s", error)
        return None
