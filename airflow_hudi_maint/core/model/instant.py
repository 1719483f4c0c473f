"""Instants: the points of a Hudi timeline, and what their file names say.

Source: Hudi's ``HoodieInstant`` and ``InstantFileNameParserV1``/``V2``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import IntEnum, StrEnum

EARLIEST_INSTANT = "0" * 17
"""Sorts before every instant that a writer can make; stands for "before the first commit"."""

_SHORT_DIGITS = 14
_FULL_DIGITS = 17
_DATE_PARTS = ((0, 4), (4, 6), (6, 8), (8, 10), (10, 12), (12, 14))
_FILE_NAME = re.compile(
    # Three digits more than milliseconds: Hudi before 1.0 stamps table services of the metadata table so.
    r"(?P<requested>[0-9]{14}(?:[0-9]{3}){0,2})"
    r"(?:_(?P<completion>[0-9]{14}(?:[0-9]{3}){0,2}))?"
    r"(?:\.(?P<action>[a-z]+))??"
    r"(?:\.(?P<state>requested|inflight))?"
)


class Action(StrEnum):
    """What an instant does to the table, in the words of its file name."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    REPLACE_COMMIT = "replacecommit"
    CLUSTERING = "clustering"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    INDEXING = "indexing"

    @property
    def completed_as(self) -> Action:
        """The action that stands in the completed file: a compaction completes as a commit, and so on."""
        return _COMPLETED_AS.get(self, self)


ACTIONS_BY_NAME = {str(one): one for one in Action}
"""The actions by the names that Hudi gives them in files."""
_COMPLETED_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}

WRITE_ACTIONS = frozenset(
    {
        Action.COMMIT,
        Action.DELTA_COMMIT,
        Action.REPLACE_COMMIT,
        Action.CLUSTERING,
        Action.COMPACTION,
        Action.LOG_COMPACTION,
    }
)
"""Actions whose completion can add or replace data files."""


class State(IntEnum):
    """How far an instant is; a greater value replaces a smaller one of the same instant."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """One instant in one state, as its file name says.

    ``requested_time`` and ``completion_time`` are Hudi's own texts: 14 or 17 digits in the table's time zone.
    ``completion_time`` is None while pending, and always None on table version 6, whose file names lack it.
    """

    requested_time: str
    action: Action
    state: State
    completion_time: str | None
    file_name: str

    @property
    def is_completed(self) -> bool:
        """Whether the timeline says that this instant's action took effect."""
        return self.state is State.COMPLETED

    @property
    def ordering_time(self) -> str:
        """When it took effect where the table version tells, else when it was requested."""
        return self.completion_time or self.requested_time

    def __str__(self) -> str:
        return f"{self.requested_time} ({self.action}, {self.state.name.lower()})"


def parse_instant_file_name(name: str) -> Instant | None:
    """Read one file name of a timeline folder; None when it is no instant file.

    A bare ``<time>.inflight`` is the inflight state of a commit, as Hudi writes it for every table version.

    >>> parse_instant_file_name("20261130053458356_20261130053501001.commit").completion_time
    '20261130053501001'
    >>> parse_instant_file_name("20261130053458356.inflight").action
    <Action.COMMIT: 'commit'>
    >>> parse_instant_file_name("hoodie.properties") is None
    True
    """
    match = _FILE_NAME.fullmatch(name)
    if match is None:
        return None
    requested, completion, action_text, state_text = match.groups()
    if action_text is None and state_text != "inflight":
        return None
    action = ACTIONS_BY_NAME.get(action_text or Action.COMMIT)
    state = State[state_text.upper()] if state_text else State.COMPLETED
    if action is None or (completion and state is not State.COMPLETED):
        return None
    return Instant(requested_time=requested, action=action, state=state, completion_time=completion, file_name=name)


def instant_moment(instant_time: str, *, zone: tzinfo) -> datetime:
    """Turn an instant's text into a moment in UTC; ``zone`` is the zone that the table's writers stamp with.

    Seconds-only texts (14 digits, old writers) count as the last millisecond of their second, as Hudi reads them.

    Raises ValueError for a text that is not 14 or 17 digits of a real date.
    """
    if (
        len(instant_time) not in (_SHORT_DIGITS, _FULL_DIGITS)
        or not instant_time.isascii()
        or not instant_time.isdigit()
    ):
        msg = f"{instant_time!r} is no instant: expected 14 or 17 digits (yyyyMMddHHmmss[SSS])"
        raise ValueError(msg)
    milliseconds = int(instant_time[_SHORT_DIGITS:] or 999)
    # Not strptime: planning reads one instant per partition, and this is ten times faster.
    year, month, day, hour, minute, second = (int(instant_time[start:end]) for start, end in _DATE_PARTS)
    try:
        local = datetime(year, month, day, hour, minute, second, milliseconds * 1000, tzinfo=zone)
    except ValueError as error:
        msg = f"{instant_time!r} is no instant: {error}"
        raise ValueError(msg) from error
    return local.astimezone(UTC)


def known_moment(instant_time: str | None, *, zone: tzinfo) -> datetime | None:
    """:func:`instant_moment`, but None for a text that is no moment: a timeline may hold a file that is named so."""
    try:
        return None if instant_time is None else instant_moment(instant_time, zone=zone)
    except ValueError:
        return None


def moment_instant(moment: datetime, *, zone: tzinfo) -> str:
    """Turn an aware moment into an instant's text of 17 digits in ``zone``; the inverse of :func:`instant_moment`."""
    local = moment.astimezone(zone)
    return f"{local:%Y%m%d%H%M%S}{local.microsecond // 1000:03d}"
