"""What is looked at again before partitions of an expiry plan are dropped, however the plan came about."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import (
    EngineError,
    GuardTrippedError,
    InvalidPolicyError,
    PendingActionError,
    PlanOutdatedError,
)
from airflow_hudi_maint.core.maintenance import DropSettings, JobControl, Workspace
from airflow_hudi_maint.core.model.job import JobHandle, JobRequest
from airflow_hudi_maint.core.model.policy import EXPLICIT_POLICIES_KEY, PolicySet
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.planning.expiry import ExpiryGuards
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.storage.builders import TableBuilder, at

NOW = datetime(2026, 12, 1, tzinfo=UTC)
DAYS = [f"day=2026-11-0{day}" for day in range(1, 7)]
LEAVE_OUT = DropSettings(leave_out_changed=True)
ANY_SHARE = ExpiryGuards(max_partition_share=None, max_byte_share=None, max_record_share=None)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Six days of one file each."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(1), {day: [(f"{day}-1-0", 100)] for day in DAYS})
    return builder


def _workspace(table: TableBuilder, engine: FakeEngine | None = None) -> Workspace:
    return maintenance.open_workspace(table.base_path, engine=lambda: engine or FakeEngine())


def _keep(count: int) -> PolicySet:
    return PolicySet.from_json([{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": count}])


def _set_policies(table: TableBuilder, text: str) -> None:
    """Somebody writes the table's policies."""
    table.put(".hoodie/hoodie.properties", b"")
    TableBuilder(base_path=table.base_path, settings={EXPLICIT_POLICIES_KEY: text})


def _dropping(table: TableBuilder, *, second: int = 40) -> FakeEngine:
    def act(request: JobRequest) -> None:
        names = request.arguments["partitions"]
        assert isinstance(names, list)
        replaced = {str(name): [f"{name}-1-0"] for name in names}
        table.commit(at(second), operation="DELETE_PARTITION", replaced=replaced)

    return FakeEngine(act=act)


def _edit(path: str, change: Callable[[dict[str, list[dict[str, object]]]], None]) -> None:
    """Change a plan by hand."""
    document = json.loads(Path(path).read_text())
    change(document)
    Path(path).write_text(json.dumps(document))


@pytest.mark.parametrize("settings", [DropSettings(), LEAVE_OUT])
def test_a_plan_by_policies_that_the_table_has_no_longer_is_refused(
    table: TableBuilder, settings: DropSettings
) -> None:
    """Somebody keeps more since: the whole run is refused, and the error says what changed."""
    _set_policies(table, '[{"partitionSpec":"/","policy":"KEEP_BY_COUNT","policyValue":5}]')
    planned = maintenance.plan_expiry(_workspace(table), now=NOW)
    _set_policies(table, '[{"partitionSpec":"/","policy":"KEEP_BY_COUNT","policyValue":6}]')
    engine = FakeEngine()

    with pytest.raises(PlanOutdatedError, match=r"KEEP_BY_COUNT 5 on / → KEEP_BY_COUNT 6 on /"):
        maintenance.expire_partitions(
            _workspace(table, engine), now=NOW, job=JobControl(), plan_path=planned.path, settings=settings
        )
    assert [] == engine.requests


def test_a_plan_is_refused_when_the_tables_policies_are_broken_by_now(table: TableBuilder) -> None:
    """What the table asks for is not known any more."""
    _set_policies(table, '[{"partitionSpec":"/","policy":"KEEP_BY_COUNT","policyValue":5}]')
    planned = maintenance.plan_expiry(_workspace(table), now=NOW)
    _set_policies(table, "[{")
    with pytest.raises(InvalidPolicyError, match=EXPLICIT_POLICIES_KEY):
        maintenance.expire_partitions(_workspace(table), now=NOW, job=JobControl(), plan_path=planned.path)


def test_policies_that_were_given_are_not_held_against_the_tables(table: TableBuilder) -> None:
    """The plan was made by other policies than the table's on purpose."""
    planned = maintenance.plan_expiry(_workspace(table), now=NOW, policies=_keep(5))
    _set_policies(table, '[{"partitionSpec":"/","policy":"KEEP_BY_COUNT","policyValue":6}]')
    workspace = _workspace(table, _dropping(table))
    reported = maintenance.expire_partitions(workspace, now=NOW, job=JobControl(), plan_path=planned.path)
    assert (DAYS[0],) == reported.report.partitions


def test_a_partition_that_was_written_into_a_plan_by_hand_is_not_dropped(table: TableBuilder) -> None:
    """The plan's own policies keep it, so it is refused, or left out where that is asked for."""
    planned = maintenance.plan_expiry(_workspace(table), now=NOW, policies=_keep(5))
    _edit(planned.path, lambda document: document["entries"][5].update(decision="expire"))

    with pytest.raises(PlanOutdatedError, match=f"would not expire by now, {DAYS[5]!r} first"):
        maintenance.expire_partitions(_workspace(table), now=NOW, job=JobControl(), plan_path=planned.path)

    engine = _dropping(table)
    reported = maintenance.expire_partitions(
        _workspace(table, engine), now=NOW, job=JobControl(), plan_path=planned.path, settings=LEAVE_OUT
    )
    assert [DAYS[0]] == engine.requests[0].arguments["partitions"]
    assert (DAYS[0],) == reported.report.partitions


def test_a_hold_of_now_holds_what_was_planned_without_it(table: TableBuilder) -> None:
    """It came between plan and apply; the plan is refused, or the rest of it applied."""
    planned = maintenance.plan_expiry(_workspace(table), now=NOW, policies=_keep(4))
    held = ExpiryGuards(legal_hold=(DAYS[1],))

    with pytest.raises(PlanOutdatedError, match="under the legal hold"):
        maintenance.expire_partitions(_workspace(table), now=NOW, job=JobControl(), plan_path=planned.path, guards=held)
    engine = _dropping(table)
    maintenance.expire_partitions(
        _workspace(table, engine),
        now=NOW,
        job=JobControl(),
        plan_path=planned.path,
        guards=held,
        settings=LEAVE_OUT,
    )
    assert [DAYS[0]] == engine.requests[0].arguments["partitions"]


def test_a_dead_feed_is_refused_though_only_the_planner_was_told_of_the_clock(table: TableBuilder) -> None:
    """A plan by the wall clock keeps the limit of that clock where it is applied with guards that do not name it."""
    by_time = PolicySet.from_json(
        [{"partitionSpec": "day=*/", "policy": "KEEP_BY_TIME", "policyValue": 30, "allowEmptying": True}]
    )
    later, loose = datetime(2027, 12, 1, tzinfo=UTC), replace(ANY_SHARE, min_partitions_left=0)
    planned = maintenance.plan_expiry(
        _workspace(table), now=later, policies=by_time, guards=replace(loose, clock="wall")
    )
    with pytest.raises(GuardTrippedError, match="its feed looks dead, above max_quiet_days=7"):
        maintenance.expire_partitions(
            _workspace(table), now=later, job=JobControl(), plan_path=planned.path, guards=loose
        )


def test_a_clustering_that_was_planned_since_is_waited_for(table: TableBuilder) -> None:
    """That passes, so the task may be tried again; the other partitions can be dropped meanwhile."""
    planned = maintenance.plan_expiry(_workspace(table), now=NOW, policies=_keep(4))
    slices = [{"partitionPath": DAYS[0], "fileId": f"{DAYS[0]}-1-0", "dataFilePath": "x", "deltaFilePaths": []}]
    content = {
        "operationType": "CLUSTER",
        "clusteringPlan": {"inputGroups": [{"slices": slices, "numOutputFileGroups": 1}]},
    }
    table.pending(at(20), "clustering", content)

    with pytest.raises(PendingActionError, match=f"holds 1 partition of the plan, {DAYS[0]!r} first"):
        maintenance.expire_partitions(_workspace(table), now=NOW, job=JobControl(), plan_path=planned.path)
    engine = _dropping(table)
    reported = maintenance.expire_partitions(
        _workspace(table, engine), now=NOW, job=JobControl(), plan_path=planned.path, settings=LEAVE_OUT
    )
    assert [DAYS[1]] == engine.requests[0].arguments["partitions"]
    assert any("1 partition left out of the run" in one and "holds" in one for one in reported.report.warnings)


def test_a_dry_run_names_only_what_a_real_run_would_drop(table: TableBuilder) -> None:
    """What it would leave out, or was dropped already, is not among its partitions."""
    planned = maintenance.plan_expiry(_workspace(table), now=NOW, policies=_keep(3), guards=ANY_SHARE)
    table.commit(at(20), {DAYS[2]: [("new-0", 50)]})
    table.commit(at(21), operation="DELETE_PARTITION", replaced={DAYS[0]: [f"{DAYS[0]}-1-0"]})

    reported = maintenance.expire_partitions(
        _workspace(table),
        now=NOW,
        job=JobControl(),
        plan_path=planned.path,
        guards=ANY_SHARE,
        settings=LEAVE_OUT,
        dry_run=True,
    )

    assert (Outcome.DRY_RUN, (DAYS[1],)) == (reported.report.outcome, reported.report.partitions)
    assert any(f"left out of the run ({DAYS[2]!r})" in one for one in reported.report.warnings)


def test_what_is_written_between_two_commits_of_one_drop_is_new(table: TableBuilder) -> None:
    """A thousand names go to a commit: rows that land in the first ones before the last are none of before."""
    planned = maintenance.plan_expiry(_workspace(table), now=NOW, policies=_keep(4))

    def act(_: JobRequest) -> None:
        table.commit(at(40), operation="DELETE_PARTITION", replaced={DAYS[0]: [f"{DAYS[0]}-1-0"]})
        table.commit(at(41), {DAYS[0]: [("new-0", 50)]})
        table.commit(at(42), operation="DELETE_PARTITION", replaced={DAYS[1]: [f"{DAYS[1]}-1-0"]})

    reported = maintenance.expire_partitions(
        _workspace(table, FakeEngine(act=act)), now=NOW, job=JobControl(), plan_path=planned.path
    )
    assert (Outcome.DONE, (at(40), at(42))) == (reported.report.outcome, reported.report.instants)


def test_a_retry_after_half_of_a_drop_drops_the_rest(table: TableBuilder) -> None:
    """A partition that is written anew between the tries is new data, and stays."""
    planned = maintenance.plan_expiry(_workspace(table), now=NOW, policies=_keep(4))

    def half(_: JobRequest) -> None:
        table.commit(at(40), operation="DELETE_PARTITION", replaced={DAYS[0]: [f"{DAYS[0]}-1-0"]})

    with pytest.raises(EngineError, match="shows no completion"):
        maintenance.expire_partitions(
            _workspace(table, FakeEngine(act=half)), now=NOW, job=JobControl(), plan_path=planned.path
        )
    table.commit(at(41), {DAYS[0]: [("new-0", 50)]})
    engine = _dropping(table, second=42)
    reported = maintenance.expire_partitions(
        _workspace(table, engine),
        now=NOW,
        job=JobControl(previous=JobHandle(engine="fake", job_id="1")),
        plan_path=planned.path,
    )

    assert [DAYS[1]] == engine.requests[0].arguments["partitions"]
    assert (tuple(DAYS[:2]), (at(40), at(42))) == (reported.report.partitions, reported.report.instants)


def test_a_report_does_not_name_every_blocked_partition(tmp_path: Path) -> None:
    """Thousands may be blocked; the plan names each."""
    table = TableBuilder(base_path=str(tmp_path / "trips"))
    names = [f"day=a,{number:03}" for number in range(30)]
    table.commit(at(1), {name: [(f"f{number}-1-0", 100)] for number, name in enumerate(names)})
    table.commit(at(30), {"day=z": [("z-1-0", 100)]})
    by_time = PolicySet.from_json([{"partitionSpec": "day=*/", "policy": "KEEP_BY_TIME", "policyValue": 1}])
    later, wall = datetime(2027, 12, 1, tzinfo=UTC), replace(ANY_SHARE, clock="wall")
    planned = maintenance.plan_expiry(_workspace(table), now=later, policies=by_time, guards=wall)
    _edit(planned.path, lambda document: document["entries"].pop())  # the one that would go
    reported = maintenance.expire_partitions(_workspace(table), now=later, job=JobControl(), plan_path=planned.path)
    assert 20 == sum("is not dropped: modified" in one for one in reported.report.warnings)
    assert "10 more partitions are blocked and not dropped" in reported.report.warnings[-1]
