from __future__ import annotations

from datetime import UTC, datetime

import pytest

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.event_time import EventTime
from airflow_hudi_maint.core.model.partition import PartitionScheme


@pytest.mark.parametrize(
    ("pattern", "value", "end"),
    [
        ("%Y", "2026", datetime(2027, 1, 1, tzinfo=UTC)),
        ("%Y", "2024", datetime(2025, 1, 1, tzinfo=UTC)),
        ("%Y-%m", "2026-9", datetime(2026, 10, 1, tzinfo=UTC)),
        ("%Y-%m", "2026-12", datetime(2027, 1, 1, tzinfo=UTC)),
        ("%Y-%m-%d", "2026-11-30", datetime(2026, 12, 1, tzinfo=UTC)),
        ("%Y/%m/%d", "2026/11/30", datetime(2026, 12, 1, tzinfo=UTC)),
        ("%d.%m.%Y", "30.11.2026", datetime(2026, 12, 1, tzinfo=UTC)),
        ("%Y%m%d", "20261130", datetime(2026, 12, 1, tzinfo=UTC)),
        ("%Y%m%d%H", "2026113023", datetime(2026, 12, 1, tzinfo=UTC)),
        ("%Y-%j", "2026-334", datetime(2026, 12, 1, tzinfo=UTC)),
        ("v%Y-%m-%d at %H:%M", "v2026-11-30 at 5:07", datetime(2026, 11, 30, 5, 8, tzinfo=UTC)),
        ("%Y-%m-%dT%H:%M:%S", "2026-11-30T23:59:59", datetime(2026, 12, 1, tzinfo=UTC)),
        ("%Y%%%m", "2026%11", datetime(2026, 12, 1, tzinfo=UTC)),
        ("%Y%m%d", "2026113", None),
        ("%Y-%m-%d", "2026-11-31", None),
        ("%Y-%j", "2026-366", None),
        ("%Y-%m-%d", "2026-11-30x", None),
        ("%Y", "9999", None),
        ("%Y-%m", "__HIVE_DEFAULT_PARTITION__", None),
    ],
)
def test_a_period_ends_where_its_pattern_says(pattern: str, value: str, end: datetime | None) -> None:
    """A value names a year, month, day, hour, minute or second, which counts from its end; None for any other value."""
    read = EventTime(pattern=pattern).reader(PartitionScheme(fields=("day",)))
    assert end == read((value,))


def test_a_period_is_of_local_time() -> None:
    """A day ends at midnight in its zone."""
    read = EventTime(pattern="%Y-%m-%d", zone="Asia/Tokyo").reader(PartitionScheme(fields=("day",)))
    assert datetime(2026, 11, 30, 15, tzinfo=UTC) == read(("2026-11-30",))


def test_fields_are_found_by_name() -> None:
    """The parts of a pattern may come in any order, over any of the fields."""
    scheme = PartitionScheme(fields=("year", "region", "month"))
    read = EventTime(pattern="month=%m/year=%Y").reader(scheme)
    assert datetime(2026, 10, 1, tzinfo=UTC) == read(("2026", "eu", "09"))


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "is not understood"),
        ("day", "from the year down"),
        ("%m-%d", "from the year down"),
        ("%Y-%d", "from the year down"),
        ("%Y-%H", "from the year down"),
        ("%Y-%Y", "%Y stands in it twice"),
        ("%Y-%m-%j", "goes with neither"),
        ("%y-%m", "%y in '%y-%m' is unknown"),
        ("%Y-%", "is unknown"),
        ("year=%Y/%m", "is not field=format"),
        ("year=/month=%m", "is not field=format"),
    ],
)
def test_a_broken_pattern_is_refused(pattern: str, why: str) -> None:
    """The error shows the pattern and an example."""
    with pytest.raises(InvalidPolicyError, match=r"write for example 'year=%Y/month=%m/day=%d'") as raised:
        EventTime(pattern=pattern)
    assert why in str(raised.value)


def test_a_pattern_fits_the_table() -> None:
    """A pattern without a field's name needs a table with one; a name has to be one of its fields."""
    two = PartitionScheme(fields=("region", "day"))
    with pytest.raises(InvalidPolicyError, match="has to name some"):
        EventTime(pattern="%Y-%m-%d").check(two)
    with pytest.raises(InvalidPolicyError, match="no partition field 'date'"):
        EventTime(pattern="date=%Y-%m-%d").check(two)


def test_an_unknown_zone_is_refused() -> None:
    """The error shows it and an example."""
    with pytest.raises(InvalidPolicyError, match="'Berlin' is no time zone; write for example"):
        EventTime(pattern="%Y", zone="Berlin")
