"""Questions that sensors and triggers ask a table's timeline: what is new, and is it quiet?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.instant import (
    WRITE_ACTIONS,
    Instant,
    instant_moment,
    known_moment,
    moment_instant,
    parse_instant_file_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.storage.table import HudiTable

_PENDING_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitQuestion:
    """Which commits are waited for.

    ``since`` is an instant of the table (its requested time) or any text of the same form; None counts every commit of
    the active timeline. ``partition`` None means any. Rewrites (clustering, compaction) change no data and count only
    with ``include_rewrites``.
    """

    since: str | None = None
    partition: str | None = None
    include_rewrites: bool = False

    def __post_init__(self) -> None:
        if self.since is None:
            return
        try:
            instant_moment(self.since, zone=UTC)
        except ValueError as error:
            raise InvalidSettingError(f"since: {error}") from None


def find_commits(table: HudiTable, question: CommitQuestion) -> tuple[Instant, ...]:
    """Return the completed commits, delta commits and replace commits after ``since``, in the order they took effect.

    Commits are ordered by completion time where the table version has it (8 and later), so one that was requested early
    and completed late is not missed. When ``since`` is an instant of the timeline, those that completed after it count;
    when it has been archived, or is no instant of the table, those that completed after that time do. On table version
    6 all is by requested time.

    Commit files are opened only when the question is about a partition or a rewrite has to be told apart.
    """
    timeline = table.timeline()
    bound = _bound(timeline, question.since)
    writes = (one for one in timeline.completed if one.action in WRITE_ACTIONS)
    later = sorted((one for one in writes if one.ordering_time > bound), key=lambda one: one.ordering_time)
    if not later or (question.partition is None and question.include_rewrites):
        return tuple(later)
    return tuple(_matching(table, later, question=question))


def _bound(timeline: Timeline, since: str | None) -> str:
    if since is None:
        return ""
    known = timeline.find(since)
    return known.ordering_time if known is not None and known.is_completed else since


def _matching(table: HudiTable, instants: Sequence[Instant], *, question: CommitQuestion) -> Iterable[Instant]:
    for instant, metadata in zip(instants, table.commit_metadata_of(instants), strict=True):
        wanted = question.include_rewrites or not metadata.rewrites_only
        if wanted and question.partition in (None, *metadata.touched_partitions):
            yield instant


def commits_result(table: HudiTable, instants: Sequence[Instant]) -> dict[str, Any]:
    """Return what a sensor hands on: JSON-native and small; ``last_instant`` is the one to give as ``since`` next."""
    last = instants[-1]
    return {
        "base_path": table.base_path,
        "instants": [one.requested_time for one in instants],
        "last_instant": last.requested_time,
        "last_completion_time": last.completion_time,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """How busy a table is: its pending instants, and since when nothing has completed (None: nothing ever has)."""

    pending: tuple[Instant, ...]
    last_completed_at: datetime | None

    def is_idle(self, *, now: datetime, quiet_for: timedelta) -> bool:
        """Whether nothing is pending and the last completion is at least ``quiet_for`` ago."""
        if self.pending:
            return False
        return self.last_completed_at is None or now - self.last_completed_at >= quiet_for

    def __str__(self) -> str:
        if self.pending:
            shown = ", ".join(map(str, self.pending[:_PENDING_SHOWN]))
            return f"{len(self.pending)} pending: {shown}" + (" …" if len(self.pending) > _PENDING_SHOWN else "")
        return f"nothing pending, last completion at {self.last_completed_at or 'no time'}"


def read_activity(table: HudiTable) -> Activity:
    """Look at the timeline: one listing, no file is opened.

    Table version 6 has no completion times; there the modification times of the timeline's files stand in for them.
    """
    if not table.config.has_completion_times:
        return _activity_by_files(table)
    timeline = table.timeline()
    moments = (known_moment(one.completion_time, zone=table.zone) for one in timeline.completed)
    return Activity(pending=timeline.pending, last_completed_at=max(filter(None, moments), default=None))


def _activity_by_files(table: HudiTable) -> Activity:
    timeline = table.timeline()
    entries = table.storage.list(table.config.timeline_folder)
    written = [one.modified for one in entries if one.modified and parse_instant_file_name(one.name)]
    moments = (known_moment(one.requested_time, zone=table.zone) for one in timeline.completed)
    return Activity(pending=timeline.pending, last_completed_at=max([*written, *filter(None, moments)], default=None))


def idle_result(table: HudiTable, activity: Activity) -> dict[str, Any]:
    """Return what a sensor hands on: JSON-native and small."""
    last = activity.last_completed_at
    return {
        "base_path": table.base_path,
        "last_completed_at": None if last is None else last.isoformat(),
        "last_completed_instant": None if last is None else moment_instant(last, zone=table.zone),
    }
