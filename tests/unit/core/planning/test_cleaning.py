"""What the cleaner keeps, and how long a drop can be undone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.instant import Instant, parse_instant_file_name
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.planning.cleaning import CleanerSettings, CleanPolicy, earliest_retained, undo_window

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


def _at(hour: int) -> str:
    return f"20261201{hour:02}0000000"


def _timeline(*files: str) -> Timeline:
    return Timeline.of(instant for name in files if (instant := parse_instant_file_name(name)) is not None)


def _commits(*hours: int, more: tuple[str, ...] = ()) -> Timeline:
    return _timeline(*(f"{_at(hour)}_{_at(hour)}.commit" for hour in hours), *more)


def _drop(hour: int) -> Instant:
    found = parse_instant_file_name(f"{_at(hour)}_{_at(hour)}.replacecommit")
    assert found is not None
    return found


def test_the_nth_youngest_commit_is_the_oldest_that_is_retained() -> None:
    """With two retained of three, the second youngest; with three of three, all are."""
    timeline = _commits(1, 2, 3)
    two = earliest_retained(timeline, CleanerSettings(commits_retained=2), zone=UTC, now=NOW)
    three = earliest_retained(timeline, CleanerSettings(commits_retained=3), zone=UTC, now=NOW)

    assert (_at(2), None) == (two, three)


def test_by_hours_the_oldest_young_commit_is_retained() -> None:
    """Commits of the last ten hours stay; where all are that young, none has to go."""
    timeline = _commits(1, 2, 3)
    ten = earliest_retained(
        timeline, CleanerSettings(policy=CleanPolicy.KEEP_LATEST_BY_HOURS, hours_retained=10), zone=UTC, now=NOW
    )
    many = earliest_retained(
        timeline, CleanerSettings(policy=CleanPolicy.KEEP_LATEST_BY_HOURS, hours_retained=100), zone=UTC, now=NOW
    )

    assert (_at(2), None) == (ten, many)


@pytest.mark.parametrize(("later", "left"), [((), 9), ((6,), 8), ((6, 7, 8, 9, 10, 11, 12, 13, 14), 0)])
def test_a_window_shrinks_with_each_commit(later: tuple[int, ...], left: int) -> None:
    """Hudi's default of ten commits: after the tenth the files may go."""
    drop = _drop(5)
    timeline = _commits(1, 2, *later, more=(drop.file_name,))
    window = undo_window(timeline, drop, settings=CleanerSettings(), moment=NOW)

    assert (left, _at(2)) == (window.commits_left, window.as_of)
    assert window.is_closing(now=NOW, margin_commits=0, margin=timedelta()) is (left == 0)


def test_a_savepoint_keeps_the_window_open() -> None:
    """The commit before the drop is saved: no number of commits closes the window."""
    drop = _drop(5)
    saved = f"{_at(2)}_{_at(4)}.savepoint"
    timeline = _commits(1, 2, *range(6, 20), more=(drop.file_name, saved))
    window = undo_window(timeline, drop, settings=CleanerSettings(), moment=NOW)

    assert _at(2) == window.held_by
    assert not window.is_closing(now=NOW, margin_commits=99, margin=timedelta(days=99))
    assert f"undo is possible while savepoint {_at(2)} stands" == str(window)


def test_an_older_savepoint_holds_older_files() -> None:
    """What was written between the savepoint and the drop is not saved."""
    drop = _drop(5)
    timeline = _commits(1, 2, more=(drop.file_name, f"{_at(1)}_{_at(4)}.savepoint"))

    assert undo_window(timeline, drop, settings=CleanerSettings(), moment=NOW).held_by is None


def test_hours_close_the_window_at_a_moment() -> None:
    """By hours, commits do not count; the margin is one of time."""
    drop = _drop(5)
    settings = CleanerSettings(policy=CleanPolicy.KEEP_LATEST_BY_HOURS, hours_retained=24)
    window = undo_window(_commits(1, more=(drop.file_name,)), drop, settings=settings, moment=NOW)

    assert NOW + timedelta(hours=24) == window.closes_at
    assert not window.is_closing(now=NOW + timedelta(hours=22), margin_commits=0, margin=timedelta(hours=1))
    assert window.is_closing(now=NOW + timedelta(hours=23), margin_commits=0, margin=timedelta(hours=1))


def test_a_drop_on_an_empty_timeline_is_read_as_of_right_before_it() -> None:
    """Everything before is archived: time travel takes a time that was no instant."""
    drop = _drop(5)
    window = undo_window(_commits(more=(drop.file_name,)), drop, settings=CleanerSettings(), moment=NOW)

    assert "20261201045959999"[:8] == window.as_of[:8]
    assert window.as_of < drop.requested_time


def test_options_of_both_generations_are_read() -> None:
    """The keys since 1.1 and those before; what is not stated has Hudi's default."""
    new = CleanerSettings.from_options({"hoodie.clean.commits.retained": "5"})
    old = CleanerSettings.from_options(
        {"hoodie.cleaner.policy": "keep_latest_by_hours", "hoodie.cleaner.hours.retained": "48"}
    )

    assert CleanerSettings(commits_retained=5) == new
    assert CleanerSettings(policy=CleanPolicy.KEEP_LATEST_BY_HOURS, hours_retained=48) == old
    assert new == CleanerSettings.from_options(new.to_options())


@pytest.mark.parametrize(
    "options",
    [{"hoodie.clean.commits.retained": "ten"}, {"hoodie.clean.commits.retained": "0"}, {"hoodie.clean.policy": "ALL"}],
)
def test_wrong_options_are_refused(options: dict[str, str]) -> None:
    """A retention that cannot be read is no reason to take another."""
    with pytest.raises(InvalidSettingError, match="cleaner"):
        CleanerSettings.from_options(options)
