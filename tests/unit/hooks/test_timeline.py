"""What sensors see on a timeline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.storage.table import HudiTable
from airflow_hudi_maint.hooks.timeline import CommitQuestion, commits_result, find_commits, read_activity
from tests.airflow.tables import TableBuilder
from tests.golden.golden import unpack

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    return TableBuilder(base_path=str(tmp_path / "trips")).create()


def found(builder: TableBuilder, **question: object) -> list[str]:
    table = HudiTable.open(builder.base_path)
    return [one.requested_time for one in find_commits(table, CommitQuestion(**question))]  # type: ignore[arg-type]


def test_without_since_every_commit_counts(builder: TableBuilder) -> None:
    """An empty timeline has none."""
    assert found(builder) == []
    first = builder.commit({"day=1": [10]}, at=NOON)
    assert found(builder) == [first]


def test_a_commit_that_was_requested_early_and_completed_late_is_not_missed(builder: TableBuilder) -> None:
    """Commits are ordered by completion time: the slow one took effect after ``since``."""
    slow = builder.commit({"day=1": [10]}, at=NOON, takes=3 * HOUR)
    quick = builder.commit({"day=2": [10]}, at=NOON + HOUR)
    assert found(builder, since=quick) == [slow]
    assert found(builder, since=slow) == []


def test_since_may_be_any_time_and_may_be_archived(builder: TableBuilder) -> None:
    """An instant that is not on the timeline counts as the time that it says."""
    first = builder.commit({"day=1": [10]}, at=NOON)
    assert found(builder, since="20261101120000500") == [first], "completed a second after noon"
    assert found(builder, since="20261101130000000") == []


def test_only_commits_that_touch_the_partition_count(builder: TableBuilder) -> None:
    """The partition is looked up in the commit's metadata."""
    builder.commit({"day=1": [10]}, at=NOON)
    second = builder.commit({"day=1": [10], "day=2": [10]}, at=NOON + HOUR)
    assert found(builder, partition="day=2") == [second]
    assert found(builder, partition="day=3") == []


def test_rewrites_count_only_when_asked_for(builder: TableBuilder) -> None:
    """Clustering changes no data, but dropping a partition does."""
    clustered = builder.commit({"day=1": [10]}, at=NOON, operation="CLUSTER", action="replacecommit")
    dropped = builder.commit({"day=1": []}, at=NOON + HOUR, operation="DELETE_PARTITION", action="replacecommit")
    assert found(builder) == [dropped]
    assert found(builder, include_rewrites=True) == [clustered, dropped]


def test_pending_and_other_instants_do_not_count(builder: TableBuilder) -> None:
    """Neither a commit under way nor a clean is a commit."""
    builder.pending(at=NOON)
    builder.pending(at=NOON + HOUR, action="clean")
    assert found(builder) == []


def test_the_result_hands_on_the_last_instant(builder: TableBuilder) -> None:
    """It is the one to give as ``since`` next, and everything is JSON-native."""
    builder.commit({"day=1": [10]}, at=NOON)
    last = builder.commit({"day=1": [10]}, at=NOON + HOUR)
    table = HudiTable.open(builder.base_path)
    result = commits_result(table, find_commits(table, CommitQuestion()))
    assert result == {
        "base_path": builder.base_path,
        "instants": ["20261101120000000", last],
        "last_instant": last,
        "last_completion_time": "20261101130001000",
    }


@pytest.mark.parametrize("since", ["2026-11-01", "20261399000000000", "x"])
def test_a_since_that_is_no_instant_is_refused(since: str) -> None:
    """A date would compare as an instant and be wrong without a word."""
    with pytest.raises(InvalidSettingError, match="since: "):
        CommitQuestion(since=since)


def test_a_table_is_idle_when_nothing_is_pending_and_it_was_quiet(builder: TableBuilder) -> None:
    """Exactly the quiet time is enough."""
    builder.commit({"day=1": [10]}, at=NOON, takes=HOUR)
    activity = read_activity(HudiTable.open(builder.base_path))
    assert activity.last_completed_at == NOON + HOUR
    assert activity.is_idle(now=NOON + 2 * HOUR, quiet_for=HOUR)
    assert not activity.is_idle(now=NOON + 2 * HOUR - timedelta(seconds=1), quiet_for=HOUR)


def test_a_pending_instant_of_any_action_keeps_a_table_busy(builder: TableBuilder) -> None:
    """Also a plan that waits to be executed."""
    builder.pending(at=NOON, action="clustering")
    activity = read_activity(HudiTable.open(builder.base_path))
    assert not activity.is_idle(now=NOON + 100 * HOUR, quiet_for=timedelta(0))
    assert "1 pending" in str(activity)


def test_a_table_without_commits_is_idle(builder: TableBuilder) -> None:
    """Nothing has ever completed, so it has been quiet for ever."""
    assert read_activity(HudiTable.open(builder.base_path)).is_idle(now=NOON, quiet_for=HOUR)


def test_on_version_6_the_files_of_the_timeline_say_when_something_completed(tmp_path: Path) -> None:
    """There are no completion times; the newest modification of an instant's file stands in for the last."""
    path = unpack("v6_cow_plain", tmp_path)
    newest = max(one.stat().st_mtime for one in (path / ".hoodie").iterdir() if one.name.endswith("commit"))
    activity = read_activity(HudiTable.open(str(path)))
    assert activity.pending == ()
    assert activity.last_completed_at is not None
    assert abs(activity.last_completed_at.timestamp() - newest) < 1


@pytest.mark.parametrize("name", ["v6_cow_pending", "v6_mor_pending"])
def test_a_real_table_with_a_pending_plan_is_busy(name: str, tmp_path: Path) -> None:
    """As the writer of that version leaves it."""
    activity = read_activity(HudiTable.open(str(unpack(name, tmp_path))))
    assert not activity.is_idle(now=datetime.now(UTC), quiet_for=timedelta(0))


def test_a_file_that_is_named_like_an_instant_of_no_date_is_no_moment(builder: TableBuilder) -> None:
    """The digits need not be a date; what completed before still tells how long the table is quiet."""
    builder.commit({"day=1": [10]}, at=NOON)
    table = HudiTable.open(builder.base_path)
    known = read_activity(table).last_completed_at
    odd = "9" * 17
    table.storage.write_atomic(f"{table.config.timeline_folder}/{odd}_{odd}.commit", b"{}")
    assert known == read_activity(table).last_completed_at
