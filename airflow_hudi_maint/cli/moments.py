"""Instants as moments, in the zone of the table's timeline."""

from __future__ import annotations

from datetime import datetime, tzinfo

from airflow_hudi_maint.core.model.instant import instant_moment


def moment(instant_time: str | None, *, zone: tzinfo) -> str | None:
    """Write an instant's text as ISO 8601 with its offset; None for none, and for a text that is no date.

    >>> from datetime import UTC
    >>> moment("20261130053458356", zone=UTC)
    '2026-11-30T05:34:58.356+00:00'
    """
    if instant_time is None:
        return None
    try:
        at = instant_moment(instant_time, zone=zone)
    except ValueError:
        return None
    return at.astimezone(zone).isoformat(timespec="milliseconds")


def short(iso: str) -> str:
    """Write such a moment for people: to the second, with its offset.

    >>> short("2026-11-30T05:34:58.356+01:00"), short("2026-11-30T05:34:58.356+00:00")
    ('2026-11-30 05:34:58 +01:00', '2026-11-30 05:34:58 UTC')
    """
    at = datetime.fromisoformat(iso)
    offset = at.isoformat()[-6:]
    return f"{at:%Y-%m-%d %H:%M:%S} {'UTC' if offset == '+00:00' else offset}"
