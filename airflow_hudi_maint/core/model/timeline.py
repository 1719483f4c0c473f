"""A timeline: the instants of a table, each in its furthest state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from airflow_hudi_maint.core.model.instant import EARLIEST_INSTANT, WRITE_ACTIONS, Action, Instant

_COMPACTIONS = (Action.COMPACTION, Action.LOG_COMPACTION)


def _precedence(instant: Instant) -> tuple[int, str, str]:
    return -instant.state, instant.completion_time or "", instant.file_name


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The active timeline as one listing showed it, in order of requested time.

    One entry per instant and completed action: of several files of an instant only the furthest state counts. An
    instant that was completed twice (two files) is listed once, by its first completion. ``log_compactions`` are the
    requested times of log compactions, pending or not: completed, they look like delta commits.
    """

    instants: tuple[Instant, ...]
    log_compactions: frozenset[str] = frozenset()

    @classmethod
    def of(cls, files: Iterable[Instant]) -> Timeline:
        """Build a timeline from the instants of all its files, in any order."""
        furthest: dict[tuple[str, Action], Instant] = {}
        log_compactions: set[str] = set()
        for instant in files:
            if instant.action is Action.LOG_COMPACTION:
                log_compactions.add(instant.requested_time)
            key = (instant.requested_time, instant.action.completed_as)
            known = furthest.get(key)
            if known is None or _precedence(instant) < _precedence(known):
                furthest[key] = instant
        return cls(
            instants=tuple(sorted(furthest.values(), key=lambda one: (one.requested_time, one.action))),
            log_compactions=frozenset(log_compactions),
        )

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    def __len__(self) -> int:
        return len(self.instants)

    @cached_property
    def completed(self) -> tuple[Instant, ...]:
        """Completed instants, in order of requested time."""
        return tuple(one for one in self.instants if one.is_completed)

    @cached_property
    def pending(self) -> tuple[Instant, ...]:
        """Requested and inflight instants, in order of requested time."""
        return tuple(one for one in self.instants if not one.is_completed)

    @cached_property
    def completed_writes(self) -> tuple[Instant, ...]:
        """Completed instants that may have written data files, in order of requested time."""
        return tuple(one for one in self.completed if one.action in WRITE_ACTIONS)

    @cached_property
    def completed_times(self) -> frozenset[str]:
        """Requested times of the completed instants."""
        return frozenset(one.requested_time for one in self.completed)

    @cached_property
    def start(self) -> str:
        """Requested time of the earliest active write instant; files of older, archived instants are committed.

        Hudi's ``containsOrBeforeTimelineStarts``: completed writes and pending compactions count. Without any, it is
        :data:`EARLIEST_INSTANT`, so that nothing counts as archived. A savepointed instant counts only where all are:
        with ``hoodie.archive.beyond.savepoint`` it stays while younger ones are archived (Hudi's
        ``findFirstNonSavepointCommit``).
        """
        times = [
            one.requested_time
            for one in self.instants
            if one.action in WRITE_ACTIONS and (one.is_completed or one.action in _COMPACTIONS)
        ]
        saved = {one.requested_time for one in self.completed if one.action is Action.SAVEPOINT}
        unsaved = [time for time in times if time not in saved]
        return min(unsaved or times, default=EARLIEST_INSTANT)

    @property
    def last_completed_time(self) -> str:
        """The greatest requested time of a completed instant, or :data:`EARLIEST_INSTANT`."""
        return self.completed[-1].requested_time if self.completed else EARLIEST_INSTANT

    @property
    def last_completion_time(self) -> str | None:
        """The greatest completion time; None where the table version has none or nothing is completed."""
        return max((one.completion_time for one in self.completed if one.completion_time), default=None)

    def find(self, requested_time: str) -> Instant | None:
        """The instant requested at this time (the first by action when several share it), or None."""
        return next((one for one in self.instants if one.requested_time == requested_time), None)
