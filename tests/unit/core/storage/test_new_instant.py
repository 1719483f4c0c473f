"""The text of an instant that is to be newer than all others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.instant import parse_instant_file_name
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.instants import MOST_BEHIND, new_instant_time

NOW = datetime(2026, 11, 30, 10, 0, 5, 123_000, tzinfo=UTC)


def _timeline(*names: str) -> Timeline:
    return Timeline.of(one for one in map(parse_instant_file_name, names) if one)


def test_it_is_this_moment_in_the_zone_of_the_table() -> None:
    """17 digits, with milliseconds."""
    zone = ZoneInfo("Asia/Tokyo")

    assert "20261130190005123" == new_instant_time(_timeline(), now=NOW, zone=zone)
    assert "20261130100005123" == new_instant_time(_timeline("20261130100004000.commit"), now=NOW, zone=UTC)


@pytest.mark.parametrize(
    ("names", "archived", "expected"),
    [
        (["20261130100005123.commit.requested"], None, "20261130100005124"),
        (["20261130100001000_20261130100007999.commit"], None, "20261130100008000"),
        (["20261130095959000.commit"], "20261130103000000", "20261130103000001"),
        (["20261130100005.commit"], None, "20261130100006000"),
        (["20261130100005122001.deltacommit"], None, "20261130100005123"),
    ],
    ids=["requested", "completion", "archived", "seconds", "twenty digits"],
)
def test_it_is_one_millisecond_after_what_a_faster_clock_wrote(
    names: list[str], archived: str | None, expected: str
) -> None:
    """Times of request and completion in any state count, and the archive; seconds as their last millisecond."""
    assert expected == new_instant_time(_timeline(*names), now=NOW, zone=UTC, archived=archived)


def test_an_hour_that_repeats_is_no_reason_to_refuse() -> None:
    """Summer time ends in Berlin: the table's newest instant reads an hour ahead."""
    zone = ZoneInfo("Europe/Berlin")
    after = datetime(2026, 10, 25, 1, 0, tzinfo=UTC)  # 02:00 again

    assert "20261025025959999" == new_instant_time(_timeline("20261025025959998.commit"), now=after, zone=zone)


@pytest.mark.parametrize("newest", ["20261130110005124.commit", "99991231235959999.commit", "20269930110005124.commit"])
def test_a_clock_that_is_far_behind_is_refused_by_name(newest: str) -> None:
    """More than an hour, or an instant that is no date: the error has both and the setting."""
    with pytest.raises(InvalidSettingError, match=f"20261130100005123.*{newest[:17]}.*timeline_zone"):
        new_instant_time(_timeline(newest), now=NOW, zone=UTC)


def test_the_limit_is_one_hour() -> None:
    """Exactly an hour ahead still counts on."""
    newest = NOW + MOST_BEHIND

    assert timedelta(hours=1) == MOST_BEHIND
    assert "20261130110005124" == new_instant_time(_timeline(f"{newest:%Y%m%d%H%M%S}123.commit"), now=NOW, zone=UTC)
