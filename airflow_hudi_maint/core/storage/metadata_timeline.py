"""The timeline of the metadata table, and whether it is where the data timeline is.

Each write to a table is also a delta commit of the metadata table under the same requested time, completed first. The
metadata table has instants of its own besides: ``0000…`` when it is made, and its services, whose times are those of
the clock from table version 8 and ``<data instant>NNN`` before.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from airflow_hudi_maint.core.errors import MetadataTableError
from airflow_hudi_maint.core.model.instant import Action, Instant
from airflow_hudi_maint.core.model.timeline import Timeline

_FILE_NAME = re.compile(
    r"(?P<requested>[0-9]{14,20})(?:_(?P<completion>[0-9]{14,20}))?\.(?P<action>[a-z]+)(?:\.(?:requested|inflight))?"
)
_WRITES = frozenset({"deltacommit", "commit", "replacecommit"})
_MADE = "0" * 14
_DATA_DIGITS = 17
_FOLLOWED = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLEAN})
"""Actions that add or delete files and always leave a delta commit. A rollback does not: it may take one away."""


@dataclass(frozen=True, kw_only=True)
class MetadataTimeline:
    """The completed writes of a metadata table: requested times, with the time that orders each, and file names.

    Ordering times are completion times from table version 8 on, and requested times before.
    """

    ordering: Mapping[str, str]
    file_names: Mapping[str, str]
    delta_commits: frozenset[str]

    @classmethod
    def of(cls, names: Iterable[str]) -> MetadataTimeline:
        """Read the file names of the timeline's folder; what is no instant is passed over."""
        ordering: dict[str, str] = {}
        file_names: dict[str, str] = {}
        delta_commits: set[str] = set()
        own: set[str] = set()
        for name in names:
            match = _FILE_NAME.fullmatch(name)
            if match is None:
                continue
            requested, completion, action = match.groups()
            if name.endswith((".requested", ".inflight")):
                own.update({requested} if action == Action.LOG_COMPACTION else ())
            elif action in _WRITES:
                ordering[requested] = completion or requested
                file_names[requested] = name
                delta_commits.update({requested} if action == Action.DELTA_COMMIT else ())
        return cls(ordering=ordering, file_names=file_names, delta_commits=frozenset(delta_commits - own))

    @cached_property
    def data_writes(self) -> frozenset[str]:
        """The delta commits that follow an instant of the data timeline."""
        return frozenset(one for one in self.delta_commits if len(one) <= _DATA_DIGITS and not one.startswith(_MADE))

    @cached_property
    def start(self) -> str:
        """Requested time of the earliest active write; older ones are archived and complete."""
        return min(self.ordering, default="")

    @cached_property
    def made(self) -> str | None:
        """When the table was made, where the table version tells and the instant is still active."""
        times = (ordering for time, ordering in self.ordering.items() if time.startswith(_MADE) and ordering != time)
        return max(times, default=None)

    def is_complete(self, instant_time: str) -> bool:
        """Whether a write is complete."""
        return instant_time in self.ordering or instant_time < self.start

    def ordering_of(self, instant_time: str) -> str:
        """What orders a complete write; an archived one's own time stands in, since both precede what is active."""
        return self.ordering.get(instant_time, instant_time)

    def check_not_behind(self, timeline: Timeline) -> None:
        """Raise MetadataTableError where completed writes of the data timeline are not in the metadata table.

        It is archived no further than the data timeline, so that behind its first delta commit all have to be there.
        What is older was on disk when the metadata table was made.
        """
        done = [one for one in timeline.completed if one.action in _FOLLOWED]
        if not self.data_writes and self.made is None and done:
            msg = f"the metadata table has no delta commit that tells where it is; the table is at {done[-1]}"
            raise MetadataTableError(msg)
        behind = [one.requested_time for one in done if self._is_due(one) and one.requested_time not in self.ordering]
        if behind:
            newest = max(self.data_writes, default=_MADE)
            msg = (
                f"the metadata table is behind: {len(behind)} completed instants of the table are not in it, "
                f"the first is {behind[0]}; its newest is {newest}"
            )
            raise MetadataTableError(msg)

    def newer_than(self, known: Collection[str]) -> frozenset[str]:
        """The delta commits that are newer than every instant of a data timeline, whose requested times are given."""
        newest = max(known, default="")
        return frozenset(one for one in self.data_writes if one > newest)

    def _is_due(self, instant: Instant) -> bool:
        if self.made is not None and instant.completion_time is not None:
            return instant.completion_time > self.made
        return instant.requested_time > min(self.data_writes, default="")
