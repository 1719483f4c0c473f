"""Pending plans that are finished, rolled back or left, around the jobs that do it."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import EngineError, PendingActionError, PlanOutdatedError, VerificationError
from airflow_hudi_maint.core.maintenance import JobControl, StepReported
from airflow_hudi_maint.core.maintenance.ownership import record_ours
from airflow_hudi_maint.core.maintenance.pending import read_pending
from airflow_hudi_maint.core.model.job import JobKind, JobRequest
from airflow_hudi_maint.core.model.pending_care import Owner, ResolveAction
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.model.scheduler import PlanOwner
from airflow_hudi_maint.core.planning.pending_care import ResolveSettings
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.merge_on_read import (
    FIRST,
    SECOND,
    complete_compaction,
    plan_clustering,
    plan_compaction,
    two_days,
)
from tests.unit.core.maintenance.six_days import NOW
from tests.unit.core.maintenance.six_days import workspace_with as _workspace
from tests.unit.core.storage.builders import TableBuilder, at

ROLL_BACK = ResolveSettings(action=ResolveAction.ROLL_BACK, any_owner=True)
FINISH = ResolveSettings(action=ResolveAction.FINISH, any_owner=True)
AUTO = ResolveSettings(action=ResolveAction.AUTO, any_owner=True)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return two_days(tmp_path)


def _resolve(table: TableBuilder, engine: FakeEngine, settings: ResolveSettings, **others: Any) -> StepReported:
    return maintenance.resolve_pending(
        _workspace(table, engine), now=NOW, settings=settings, job=JobControl(), **others
    )


def _rolls_back(table: TableBuilder) -> FakeEngine:
    def act(request: JobRequest) -> None:
        instants = request.arguments["instants"]
        assert isinstance(instants, list)
        for number, instant in enumerate(map(str, instants)):
            _forget(table, instant)
            table.rollback(at(50 + number), of=instant)

    return FakeEngine(act=act)


def _forget(table: TableBuilder, instant: str) -> None:
    for entry in table.storage.list(table.timeline_folder):
        if entry.name.startswith(instant):
            table.remove(f"{table.timeline_folder}/{entry.name}")


def test_plans_are_rolled_back_in_one_job_and_the_second_run_finds_none(table: TableBuilder) -> None:
    """Both kinds, requested or inflight; the report names them."""
    plan_compaction(table, at(30), days=[FIRST])
    plan_clustering(table, at(31), day=SECOND)
    table.put(f"{table.timeline_folder}/{at(31)}.clustering.inflight", b"")
    _old(table, f"{at(31)}.clustering.inflight")
    engine = _rolls_back(table)
    report = _resolve(table, engine, ROLL_BACK).report
    assert [one.kind for one in engine.requests] == [JobKind.ROLLBACK_PENDING]
    assert engine.requests[0].arguments == {"instants": [at(30), at(31)]}
    assert (report.outcome, report.instants) == (Outcome.DONE, (at(30), at(31)))
    assert report.partitions == (FIRST, SECOND)
    idle = FakeEngine()
    assert _resolve(table, idle, ROLL_BACK).report.outcome is Outcome.NOTHING_TO_DO
    assert _resolve(table, idle, ROLL_BACK, instants=[at(30)]).report.outcome is Outcome.ALREADY_DONE
    assert idle.requests == []


def test_a_plan_is_finished_by_its_own_execution(table: TableBuilder) -> None:
    """Also one of others, once age, owner and signs of life were looked at."""
    plan_compaction(table, at(30), days=[FIRST])
    table.put(f"{table.timeline_folder}/{at(30)}.compaction.inflight", b"")
    _old(table, f"{at(30)}.compaction.inflight")
    engine = FakeEngine(act=lambda _: complete_compaction(table, at(30), days=[FIRST]))
    report = _resolve(table, engine, FINISH).report
    assert [one.kind for one in engine.requests] == [JobKind.EXECUTE_COMPACTION]
    assert (report.outcome, report.instants) == (Outcome.DONE, (at(30),))
    assert report.message.startswith(f"Executed {at(30)}")


def test_an_overtaken_plan_is_rolled_back_by_auto_and_refused_by_finish(table: TableBuilder) -> None:
    """Named, it is an error that no retry mends; unnamed, a warning."""
    plan_clustering(table, at(30), day=FIRST)
    table.commit(at(40), {FIRST: [("new-0", 10)]}, replaced={FIRST: [f"{FIRST}-0"]})
    idle = FakeEngine()
    report = _resolve(table, idle, FINISH).report
    assert (report.outcome, idle.requests) == (Outcome.NOTHING_TO_DO, [])
    assert [one for one in report.warnings if "must not be finished" in one]
    with pytest.raises(PlanOutdatedError, match="must not be finished"):
        _resolve(table, idle, FINISH, instants=[at(30)])
    engine = _rolls_back(table)
    assert _resolve(table, engine, AUTO).report.instants == (at(30),)
    assert [one.kind for one in engine.requests] == [JobKind.ROLLBACK_PENDING]


def test_a_compaction_of_version_6_that_was_written_upon_is_never_rolled_back(tmp_path: Path) -> None:
    """Its log file is named by the compaction: without it no reader would find the file."""
    table = two_days(tmp_path, version=6)
    plan_compaction(table, at(30), days=[FIRST])
    assert "1 to roll back" in _resolve(table, FakeEngine(), ROLL_BACK, dry_run=True).report.message
    table.commit(at(40), logs={FIRST: [(f"{FIRST}-0", at(30), 7)]})
    idle = FakeEngine()
    report = _resolve(table, idle, ROLL_BACK).report
    assert (report.outcome, idle.requests) == (Outcome.NOTHING_TO_DO, [])
    assert [one for one in report.warnings if "would be lost; finish it" in one]


def test_a_dry_run_says_what_would_become_of_each_plan(table: TableBuilder) -> None:
    """And what a real run would be refused for."""
    plan_compaction(table, at(30), days=[FIRST])
    table.put(f"{table.timeline_folder}/{at(31)}.deltacommit.inflight", b"")
    engine = FakeEngine()
    report = _resolve(table, engine, ROLL_BACK, dry_run=True).report
    assert (report.outcome, engine.requests) == (Outcome.DRY_RUN, [])
    assert f"compaction {at(30)} (requested" in report.message
    assert "roll back, asked for" in report.message
    assert [one for one in report.warnings if "another writer is at work" in one]
    with pytest.raises(PendingActionError, match="another writer"):
        _resolve(table, engine, ROLL_BACK)


def test_who_may_be_at_work_on_a_plan_keeps_it(table: TableBuilder) -> None:
    """A plan of others, a young one, one whose execution has just begun, and one with a heartbeat."""
    plan_compaction(table, at(30), days=[FIRST])
    idle = FakeEngine()
    ours_only = ResolveSettings(action=ResolveAction.ROLL_BACK)
    young = ResolveSettings(action=ResolveAction.ROLL_BACK, any_owner=True, older_than=timedelta(days=30))
    for settings, words in ((ours_only, "not made by us"), (young, "older_than")):
        report = _resolve(table, idle, settings).report
        assert report.outcome is Outcome.NOTHING_TO_DO
        assert [one for one in report.warnings if words in one]
        with pytest.raises(PendingActionError, match=words):
            _resolve(table, idle, settings, instants=[at(30)])
    table.put(f"{table.timeline_folder}/{at(30)}.compaction.inflight", b"")  # now, by the clock of the machine
    _old(table, f"{at(30)}.compaction.inflight", hours=0.5)
    assert [one for one in _resolve(table, idle, ROLL_BACK).report.warnings if "last sign of life" in one]
    _old(table, f"{at(30)}.compaction.inflight")
    table.put(f".hoodie/.heartbeat/{at(30)}", b"")
    _old(table, f"../.heartbeat/{at(30)}", hours=0.01)
    assert [one for one in _resolve(table, idle, ROLL_BACK).report.warnings if "its writer lives" in one]
    assert idle.requests == []


def test_a_job_that_does_not_remove_the_plan_or_takes_more_with_it_fails(table: TableBuilder) -> None:
    """The timeline is the truth."""
    plan_compaction(table, at(30), days=[FIRST])
    with pytest.raises(EngineError, match="shows no completion"):
        _resolve(table, FakeEngine(), ROLL_BACK)

    def take_more(_: JobRequest) -> None:
        _forget(table, at(30))
        _forget(table, at(2))

    with pytest.raises(VerificationError, match=at(2)):
        _resolve(table, FakeEngine(act=take_more), ROLL_BACK)


def test_a_plan_of_ours_is_known_by_its_note(table: TableBuilder) -> None:
    """Age and owner are read without listing a partition."""
    plan_compaction(table, at(30), days=[FIRST])
    plan_compaction(table, at(31), days=[SECOND])
    workspace = _workspace(table, FakeEngine())
    timeline = workspace.table.timeline()
    ours, _ = workspace.table.pending_plans(timeline)
    task = PlanOwner(dag_id="nightly", run_id="r1", task_id="compact")
    record_ours(workspace, ours, plan_path="", owner=task)
    first, second = read_pending(workspace, timeline, now=NOW)
    assert (first.owner, second.owner) == (Owner.OURS, Owner.OTHER)
    assert first.age_seconds == first.idle_seconds == pytest.approx(13 * 3600 + 59 * 60 + 30)
    assert str(first).endswith("ours, made by nightly.compact of run r1)")
    assert str(second) == f"compaction {at(31)} (requested, 13 h 59 min old, other)"


def _old(table: TableBuilder, name: str, *, hours: float = 10.0) -> None:
    """Set a timeline file's modification time to so long before the tests' now."""
    moment = (NOW - timedelta(hours=hours)).timestamp()
    os.utime(Path(table.base_path) / table.timeline_folder / name, (moment, moment))
