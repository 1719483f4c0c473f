"""Numbers as people read them."""

from __future__ import annotations

from datetime import tzinfo

from airflow_hudi_maint.core.model.instant import instant_moment

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_STEP = 1024
_SHORT_FROM = 10_000_000
_SECONDS_PER_MINUTE = 60
_MINUTES_PER_HOUR = 60
_PRECISE_BELOW = 9.95
_TEENS = range(11, 14)


def human_bytes(count: int | None) -> str:
    """Write bytes in binary units with at most three digits that matter; a dash for None.

    >>> human_bytes(0), human_bytes(1023), human_bytes(1536), human_bytes(300 * 1024 * 1024), human_bytes(None)
    ('0 B', '1023 B', '1.5 KiB', '300 MiB', '–')
    """
    if count is None:
        return "–"
    value, unit = float(abs(count)), 0
    while unit < len(_BYTE_UNITS) - 1 and round(value) >= _STEP:
        value, unit = value / _STEP, unit + 1
    digits = f"{value:.1f}".removesuffix(".0") if unit and value < _PRECISE_BELOW else f"{value:.0f}"
    return f"{'-' if count < 0 else ''}{digits} {_BYTE_UNITS[unit]}"


def human_count(count: int | None) -> str:
    """Write a count with thousands separators, in millions from ten million on; a dash for None.

    >>> human_count(336776), human_count(12_345_678), human_count(None)
    ('336,776', '12.3 million', '–')
    """
    if count is None:
        return "–"
    return f"{count / 1_000_000:,.1f} million" if abs(count) >= _SHORT_FROM else f"{count:,}"


def counted(count: int, noun: str) -> str:
    """Write a count with its noun, in the plural unless it is one.

    >>> counted(1, "partition"), counted(1200, "file"), counted(2, "directory"), counted(2, "day")
    ('1 partition', '1,200 files', '2 directories', '2 days')
    """
    return f"{human_count(count)} {noun if count == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"


def human_seconds(seconds: float) -> str:
    """Write a duration; below a minute with a decimal.

    >>> human_seconds(8.25), human_seconds(95), human_seconds(3720)
    ('8.2 s', '1 min 35 s', '1 h 2 min')
    """
    if round(seconds, 1) < _SECONDS_PER_MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _SECONDS_PER_MINUTE)
    if minutes < _MINUTES_PER_HOUR:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, _MINUTES_PER_HOUR)
    return f"{hours} h {minutes} min"


def human_change(before: int | None, after: int | None) -> str:
    """Write the change in percent; empty where there is nothing to compare, ``=`` for no change.

    >>> human_change(27, 144), human_change(4, 4), human_change(0, 3), human_change(None, 3)
    ('+433 %', '=', '', '')
    """
    if before is None or after is None:
        return ""
    if before == after:
        return "="
    if not before:
        return ""
    percent = 100 * (after - before) / before
    sign = "-" if percent < 0 else "+"
    size = abs(percent)
    return f"{sign}{size:.1f} %" if size < 1 else f"{sign}{size:,.0f} %"


def human_instant(instant_time: str, *, zone: tzinfo) -> str:
    """Write an instant as date and time in ``zone``, the zone of the table's timeline; empty when it is no date.

    >>> from datetime import UTC
    >>> human_instant("20261130053458356", zone=UTC)
    '2026-11-30 05:34:58'
    """
    try:
        return f"{instant_moment(instant_time, zone=zone).astimezone(zone):%Y-%m-%d %H:%M:%S}"
    except ValueError:
        return ""


def human_duration(seconds: float) -> str:
    """Write an age or a limit by its two greatest units, rounded down; what is zero is left out.

    >>> human_duration(0), human_duration(59), human_duration(7200), human_duration(266_400), human_duration(-90)
    ('0 s', '59 s', '2 h', '3 d 2 h', '-1 min 30 s')
    """
    rest = int(abs(seconds))
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, length)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
    text = " ".join(part for part in parts[:2] if part) or "0 s"
    return f"-{text}" if seconds < 0 and text != "0 s" else text


def ordinal(number: int) -> str:
    """Write a place in an order.

    >>> ordinal(1), ordinal(2), ordinal(11), ordinal(23)
    ('1st', '2nd', '11th', '23rd')
    """
    endings = {1: "st", 2: "nd", 3: "rd"}
    ending = "th" if number % 100 in _TEENS else endings.get(number % 10, "th")
    return f"{number}{ending}"
