"""What may come to the timeline while a plan is written, and what may not."""

from __future__ import annotations

import pytest

from airflow_hudi_maint.core.model.commit import PendingPlan, PlanKind, PlannedSlice
from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice, LogFile
from airflow_hudi_maint.core.model.instant import parse_instant_file_name
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.planning.schedule_guard import change_of, changed_input, disturbance

OWN = "20261130100009000"
OURS = f"{OWN}.clustering.requested"
BEFORE = ("20261130100001000_20261130100002000.commit",)
HELD = frozenset({("day=1", "a")})


def _timeline(*names: str) -> Timeline:
    return Timeline.of(one for one in map(parse_instant_file_name, names) if one)


def _plan(name: str, *, file_id: str) -> PendingPlan:
    instant = parse_instant_file_name(name)
    assert instant is not None
    inputs = (PlannedSlice(partition_path="day=1", file_id=file_id, base_file_name="x"),)
    return PendingPlan(instant=instant, kind=PlanKind.CLUSTERING, groups=(inputs,), output_file_count=1)


def _disturbance(*came: str, before: tuple[str, ...] = BEFORE, plans: tuple[PendingPlan, ...] = ()) -> str | None:
    return disturbance(
        _timeline(*before),
        _timeline(*before, OURS, *came),
        plans=(*plans, _plan(OURS, file_id="a")),
        own=OWN,
        file_groups=HELD,
    )


@pytest.mark.parametrize(
    "came",
    [
        "20261130100008000.commit.requested",
        "20261130100008000.inflight",
        "20261130100008000.deltacommit.inflight",
        "20261130100008000.replacecommit.requested",
        "20261130100008000_20261130100009500.commit",
        "20261130100008000.rollback.requested",
        "20261130100008000_20261130100009500.rollback",
        "20261130100008000.restore.inflight",
        "20261130100008000.indexing.requested",
        "20261130100008000.clustering.requested",
    ],
)
def test_a_write_or_a_rollback_that_came_forbids_the_plan(came: str) -> None:
    """Pending or complete, older or younger; a clustering whose plan cannot be read counts as a write."""
    assert "20261130100008000" in (_disturbance(came) or "")


@pytest.mark.parametrize("came", [f"{OWN}.deltacommit.inflight", f"{OWN}_20261130100009500.commit", f"{OWN}.inflight"])
def test_a_write_of_the_same_millisecond_forbids_the_plan(came: str) -> None:
    """Two writers of one table may have taken one moment; the instant of ours is not the one of theirs."""
    assert OWN in (_disturbance(came) or "")


@pytest.mark.parametrize("came", ["20261130100008000.clean.requested", "20261130100008000_20261130100009500.savepoint"])
def test_a_clean_or_a_savepoint_is_harmless(came: str) -> None:
    """Neither touches a latest slice."""
    assert None is _disturbance(came)


def test_a_plan_for_other_file_groups_may_come_and_one_for_the_same_may_not() -> None:
    """Two plans side by side are fine for Hudi as long as no file group is in both."""
    name = "20261130100010000.clustering.requested"

    assert None is _disturbance(name, plans=(_plan(name, file_id="b"),))
    assert "holds file groups" in (_disturbance(name, plans=(_plan(name, file_id="a"),)) or "")


def test_a_pending_write_that_completes_meanwhile_forbids_the_plan() -> None:
    """The same instant in another state is news; a plan that is executed meanwhile is not."""
    inflight, done = "20261130100005000.inflight", "20261130100005000_20261130100009500.commit"
    requested, executed = "20261130100005000.clustering.requested", "20261130100005000_20261130100009500.replacecommit"

    assert "20261130100005000" in (_disturbance(done, before=(*BEFORE, inflight)) or "")
    plan = _plan(requested, file_id="b")
    assert None is _disturbance(executed, before=(*BEFORE, requested), plans=(plan,))


def _slice(*, base: str = "base", logs: tuple[str, ...] = ()) -> FileSlice:
    return FileSlice(
        partition_path="day=1",
        file_id="a",
        base_instant="1",
        base_file=BaseFile(name=base, file_id="a", instant="1", bytes=1) if base else None,
        log_files=tuple(
            LogFile(name=name, file_id="a", instant="1", version=1, write_token="", bytes=1) for name in logs
        ),
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, "was replaced or removed"),
        (_slice(base="other", logs=("l1",)), "has the base file 'other' now"),
        (_slice(base="", logs=("l1",)), "has the base file '' now"),
        (_slice(logs=("l1", "l2")), "got the log file 'l2'"),
        (_slice(), "lost the log file 'l1'"),
        (_slice(logs=("l1",)), ""),
    ],
)
def test_an_input_is_compared_by_its_files(found: FileSlice | None, expected: str) -> None:
    """Each way in which a slice can have changed has its words."""
    planned = PlannedSlice(partition_path="day=1", file_id="a", base_file_name="base", log_file_names=frozenset({"l1"}))

    assert expected == change_of(planned, found)
    latest = {} if found is None else {("day=1", "a"): found}
    whole = changed_input((planned,), latest)
    assert (f"file group a of partition 'day=1' {expected}" if expected else None) == whole
