"""Event time: until when a partition holds data, read from its values by a pattern."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.strict_json import shown

EVENT_TIME_EXAMPLE = "'year=%Y/month=%m/day=%d', 'day=%Y-%m-%d' or, where there is one partition field, '%Y-%m-%d'"

_WIDTHS = {"Y": 4, "m": 2, "d": 2, "j": 3, "H": 2, "M": 2, "S": 2}
_COARSE_TO_FINE = "YmdHMS"
_TOKEN = re.compile(r"%(.)|([^%]+)|(%)", re.DOTALL)
_STEPS = {
    "d": timedelta(days=1),
    "j": timedelta(days=1),
    "H": timedelta(hours=1),
    "M": timedelta(minutes=1),
    "S": timedelta(seconds=1),
}

EventTimeReader = Callable[[tuple[str, ...]], datetime | None]
"""From a partition's values, in field order, to the moment (UTC) when its period ends; None where they do not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """Where the date of a partition stands in its values, and in which zone it is meant.

    ``pattern`` has one part for each partition field that it reads, ``field=format``, in any order; on a table with one
    partition field the format alone will do. A format is text with ``%Y %m %d %j %H %M %S`` (``%%`` for a percent
    sign). Months, days and times may be written without a leading zero, unless two of them stand side by side.

    A partition counts as old from the *end* of its period: ``%Y-%m`` of ``2026-10`` ends with October, so what is in it
    is at most that old.
    """

    pattern: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        directives = "".join(_directives(format_) for _, format_ in self._parts())
        doubled = next((one for one in directives if directives.count(one) > 1), None)
        if doubled is not None:
            raise self._broken(f"%{doubled} stands in it twice")
        is_by_day_of_year = "j" in directives
        if is_by_day_of_year and ("m" in directives or "d" in directives):
            raise self._broken("%j, the day of the year, goes with neither %m nor %d")
        levels = directives.replace("j", "md")
        if set(levels) != set(_COARSE_TO_FINE[: len(set(levels))]) or not levels:
            raise self._broken("it has to tell a date from the year down, without a gap: %Y, %Y %m, %Y %m %d, …")
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            msg = f"eventTimeZone {shown(self.zone)} is no time zone; write for example 'UTC' or 'Europe/Berlin'"
            raise InvalidPolicyError(msg) from None

    def check(self, scheme: PartitionScheme) -> None:
        """Raise InvalidPolicyError unless the pattern reads partition fields of ``scheme``."""
        for name, _ in self._parts():
            if name is None and len(scheme.fields) != 1:
                raise self._broken(f"the table has the partition fields {list(scheme.fields)}, so it has to name some")
            if name is not None and name not in scheme.fields:
                raise self._broken(f"the table has no partition field {name!r}, but {list(scheme.fields)}")

    def reader(self, scheme: PartitionScheme) -> EventTimeReader:
        """What reads the values of partitions of ``scheme``; remembers what it has read.

        >>> scheme = PartitionScheme(fields=("region", "year", "month"), hive_style=True)
        >>> read = EventTime(pattern="year=%Y/month=%m").reader(scheme)
        >>> read(("eu", "2026", "9")), read(("eu", "2026", "13"))
        (datetime.datetime(2026, 10, 1, 0, 0, tzinfo=datetime.timezone.utc), None)
        """
        self.check(scheme)
        places = tuple(0 if name is None else scheme.fields.index(name) for name, _ in self._parts())
        expression = re.compile("\x00".join(_expression(format_) for _, format_ in self._parts()))
        zone, known = ZoneInfo(self.zone), dict[str, datetime | None]()

        def read(values: tuple[str, ...]) -> datetime | None:
            text = values[places[0]] if len(places) == 1 else "\x00".join([values[place] for place in places])
            if text not in known:
                match = expression.fullmatch(text)
                known[text] = None if match is None else _end(match.groupdict(), zone=zone)
            return known[text]

        return read

    def _parts(self) -> tuple[tuple[str | None, str], ...]:
        segments = [part for part in self.pattern.split("/") if part]
        named = [part.partition("=") for part in segments]
        if all(equals and name and format_ and "%" not in name for name, equals, format_ in named) and named:
            return tuple((name, format_) for name, _, format_ in named)
        if not segments or any("=" in part for part in segments):
            raise self._broken("a part of it is not field=format")
        return ((None, self.pattern),)

    def _broken(self, why: str) -> InvalidPolicyError:
        msg = f"eventTimePattern {shown(self.pattern)} is not understood: {why}; write for example {EVENT_TIME_EXAMPLE}"
        return InvalidPolicyError(msg)

    def __str__(self) -> str:
        return f"{self.pattern} in {self.zone}"


def _directives(format_: str) -> str:
    """The letters of the directives in a format; raises InvalidPolicyError for an unknown one."""
    letters = ""
    for letter, _, stray in _TOKEN.findall(format_):
        if stray or (letter and letter not in _WIDTHS and letter != "%"):
            known = " ".join(f"%{one}" for one in _WIDTHS)
            raise InvalidPolicyError(
                f"eventTimePattern: %{letter} in {shown(format_)} is unknown; known are {known} and %% for a percent "
                f"sign; write for example {EVENT_TIME_EXAMPLE}"
            )
        letters += letter.replace("%", "")
    return letters


def _expression(format_: str) -> str:
    tokens = _TOKEN.findall(format_)
    is_directive = [letter in _WIDTHS for letter, _, _ in tokens]
    pieces = []
    for place, (letter, text, _) in enumerate(tokens):
        if not is_directive[place]:
            pieces.append(re.escape(text or letter))
            continue
        # Side by side only their width tells where one ends.
        beside = is_directive[place + 1 : place + 2] == [True] or (place > 0 and is_directive[place - 1])
        width = _WIDTHS[letter]
        digits = f"{width}" if beside or letter == "Y" else f"1,{width}"
        pieces.append(f"(?P<{letter}>[0-9]{{{digits}}})")
    return "".join(pieces)


def _end(parts: dict[str, str], *, zone: tzinfo) -> datetime | None:
    """The end of the period that starts at these parts; None where there is no such date."""
    numbers = {letter: int(digits) for letter, digits in parts.items()}
    try:
        start = datetime(  # noqa: DTZ001 the zone is put on at the end: periods are of local time
            numbers["Y"],
            numbers.get("m", 1),
            numbers.get("d", 1),
            numbers.get("H", 0),
            numbers.get("M", 0),
            numbers.get("S", 0),
        )
        if "j" in numbers:
            start += timedelta(days=numbers["j"] - 1)
            if numbers["j"] < 1 or start.year != numbers["Y"]:
                return None
        return (start + _length(start, letters=numbers.keys())).replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _length(start: datetime, *, letters: Collection[str]) -> timedelta:
    fine = [letter for letter in "jdHMS" if letter in letters]
    if fine:
        return _STEPS[fine[-1]]
    if "m" in letters:
        return timedelta(days=monthrange(start.year, start.month)[1])
    return timedelta(days=sum(monthrange(start.year, month)[1] for month in range(1, 13)))
