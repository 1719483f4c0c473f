from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from airflow_hudi_maint.core.model.instant import Action, State, instant_moment, moment_instant, parse_instant_file_name

REQUESTED, COMPLETION = "20261130053458356", "20261130053501001"


@pytest.mark.parametrize(
    ("name", "action", "state", "completion"),
    [
        (f"{REQUESTED}.commit", Action.COMMIT, State.COMPLETED, None),
        (f"{REQUESTED}_{COMPLETION}.commit", Action.COMMIT, State.COMPLETED, COMPLETION),
        (f"{REQUESTED}_{COMPLETION}.deltacommit", Action.DELTA_COMMIT, State.COMPLETED, COMPLETION),
        (f"{REQUESTED}.commit.requested", Action.COMMIT, State.REQUESTED, None),
        (f"{REQUESTED}.inflight", Action.COMMIT, State.INFLIGHT, None),
        (f"{REQUESTED}.deltacommit.inflight", Action.DELTA_COMMIT, State.INFLIGHT, None),
        (f"{REQUESTED}.clustering.requested", Action.CLUSTERING, State.REQUESTED, None),
        (f"{REQUESTED}.replacecommit.inflight", Action.REPLACE_COMMIT, State.INFLIGHT, None),
        (f"{REQUESTED}.savepoint", Action.SAVEPOINT, State.COMPLETED, None),
        (f"{REQUESTED[:14]}.commit", Action.COMMIT, State.COMPLETED, None),
    ],
)
def test_file_names_of_instants_are_read(name: str, action: Action, state: State, completion: str | None) -> None:
    """Action, state and times stand in the name, in the form of each table version."""
    instant = parse_instant_file_name(name)
    assert instant is not None
    assert (action, state, completion, name) == (
        instant.action,
        instant.state,
        instant.completion_time,
        instant.file_name,
    )
    assert instant.ordering_time == (completion or instant.requested_time)


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties",
        "archived",
        REQUESTED,
        f"{REQUESTED}.requested",
        f"{REQUESTED}.unknown",
        f"{REQUESTED}.unknown.requested",
        f"{REQUESTED}_{COMPLETION}.commit.requested",
        f"{REQUESTED[:15]}.commit",
        f".{REQUESTED}.commit.crc",
        f"{REQUESTED}.commit.tmp",
        f"{REQUESTED[:-1]}٣.commit",
        f"{REQUESTED}00.commit",
        f"{REQUESTED}_.commit",
        f"{REQUESTED}_{COMPLETION}_{COMPLETION}.commit",
        f"{REQUESTED}..commit",
        f" {REQUESTED}.commit",
        f"{REQUESTED}.COMMIT",
    ],
)
def test_other_names_are_no_instants(name: str) -> None:
    """What is no instant file is left out, not guessed."""
    assert parse_instant_file_name(name) is None


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        (REQUESTED, UTC, datetime(2026, 11, 30, 5, 34, 58, 356000, tzinfo=UTC)),
        (REQUESTED, timezone(timedelta(hours=9)), datetime(2026, 11, 29, 20, 34, 58, 356000, tzinfo=UTC)),
        ("20260701120000000", ZoneInfo("Europe/Berlin"), datetime(2026, 7, 1, 10, 0, tzinfo=UTC)),
        ("20261201120000000", ZoneInfo("Europe/Berlin"), datetime(2026, 12, 1, 11, 0, tzinfo=UTC)),
        ("20261130053458", UTC, datetime(2026, 11, 30, 5, 34, 58, 999000, tzinfo=UTC)),
    ],
)
def test_an_instant_is_a_moment_in_the_tables_zone(text: str, zone: timezone, expected: datetime) -> None:
    """The zone's rules at that date turn the digits into UTC; seconds alone mean the end of that second."""
    assert expected == instant_moment(text, zone=zone)


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("America/New_York"), ZoneInfo("Asia/Kolkata")])
def test_a_moment_becomes_the_instant_again(zone: timezone) -> None:
    """The two conversions undo each other."""
    assert moment_instant(instant_moment(REQUESTED, zone=zone), zone=zone) == REQUESTED


@pytest.mark.parametrize(
    "text", ["", "0" * 17, "2026113005345835", "20261330053458356", "2026-11-30 05:34:5", "x" * 17]
)
def test_a_text_that_is_no_moment_is_refused(text: str) -> None:
    """Other lengths, other characters and dates that do not exist are errors."""
    with pytest.raises(ValueError, match=f"{text!r} is no instant"):
        instant_moment(text, zone=UTC)
