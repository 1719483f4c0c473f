"""What happens to an expiry between looking and acting: other writers, other planners, other jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import InvalidSettingError, PendingActionError, PlanOutdatedError
from airflow_hudi_maint.core.maintenance import JobControl, Workspace
from airflow_hudi_maint.core.model.job import JobHandle, JobRequest, JobStatus
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.planning.expiry import ExpiryGuards
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.six_days import DAYS, NOW, six_days
from tests.unit.core.maintenance.six_days import workspace_with as _workspace
from tests.unit.core.storage.builders import TableBuilder, at


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return six_days(tmp_path)


def _keep(count: int) -> PolicySet:
    return PolicySet.from_json([{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": count}])


def _dropping(table: TableBuilder, *, second: int, more: Callable[[], None] = lambda: None) -> FakeEngine:
    """An engine that drops what it is asked to, and then lets something else happen."""

    def act(request: JobRequest) -> None:
        names = request.arguments["partitions"]
        assert isinstance(names, list)
        replaced = {str(name): [f"{name}-1-0", f"{name}-2-0"] for name in names}
        table.commit(at(second), operation="DELETE_PARTITION", replaced=replaced)
        more()

    return FakeEngine(act=act)


def test_a_commit_between_statistics_and_plan_is_not_lost(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The basis is the timeline that the statistics saw: a later commit makes the plan outdated; nothing goes."""
    engine = FakeEngine()
    workspace = _workspace(table, engine)
    listed = workspace.table.timeline
    calls: list[int] = []

    def timeline() -> Timeline:
        calls.append(1)
        if len(calls) == 2:
            table.commit(at(30), {DAYS[0]: [("late-0", 500)]})
        return listed()

    monkeypatch.setattr(workspace.table, "timeline", timeline)
    planned = maintenance.plan_expiry(workspace, now=NOW, policies=_keep(5))

    assert at(2) == planned.plan.basis.base_instant
    with pytest.raises(PlanOutdatedError, match=DAYS[0]):
        maintenance.expire_partitions(workspace, now=NOW, job=JobControl(), plan_path=planned.path)
    assert [] == engine.requests


def test_a_second_plan_does_not_change_the_first(table: TableBuilder) -> None:
    """Another planner on the same state writes another file, and the first plan is applied as it was made."""
    engine = _dropping(table, second=40)
    workspace = _workspace(table, engine)
    first = maintenance.plan_expiry(workspace, now=NOW, policies=_keep(5))
    second = maintenance.plan_expiry(workspace, now=NOW, policies=_keep(3))

    reported = maintenance.expire_partitions(workspace, now=NOW, job=JobControl(), plan_path=first.path)

    assert first.path != second.path
    assert (DAYS[0],) == reported.report.partitions


def test_a_retry_works_on_the_plan_of_its_own_first_try(table: TableBuilder) -> None:
    """The first try's plan is handed over by the caller; a plan that somebody made meanwhile is not taken for it."""
    planned: list[str] = []
    silent = FakeEngine()
    with pytest.raises(RuntimeError, match="shows no completion"):
        maintenance.expire_partitions(
            _workspace(table, silent), now=NOW, job=JobControl(on_planned=planned.append), policies=_keep(5)
        )
    maintenance.plan_expiry(_workspace(table, silent), now=NOW, policies=_keep(4))

    handle = JobHandle(engine="fake", job_id="1")
    engine = _dropping(table, second=40)
    reported = maintenance.expire_partitions(
        _workspace(table, engine),
        now=NOW,
        job=JobControl(previous=handle, plan_path=planned[0]),
        policies=_keep(5),
    )

    assert (DAYS[0],) == reported.report.partitions


def test_partitions_that_became_the_last_ones_are_not_dropped(table: TableBuilder) -> None:
    """The days that were to stay are dropped by hand after the plan: what the plan drops would be all that is left."""
    engine = FakeEngine()
    workspace = _workspace(table, engine)
    planned = maintenance.plan_expiry(workspace, now=NOW, policies=_keep(3))
    replaced = {day: [f"{day}-1-0", f"{day}-2-0"] for day in DAYS[3:]}
    table.commit(at(30), operation="DELETE_PARTITION", replaced=replaced)

    with pytest.raises(PlanOutdatedError, match="3 partitions of the plan would not expire by now"):
        maintenance.expire_partitions(workspace, now=NOW, job=JobControl(), plan_path=planned.path)
    assert [] == engine.requests


def test_a_write_right_after_the_drop_does_not_turn_it_into_a_failure(table: TableBuilder) -> None:
    """New rows in a day that was just dropped are new data; the drop is what it was."""
    engine = _dropping(table, second=40, more=lambda: table.commit(at(41), {DAYS[0]: [("new-0", 7)]}))

    reported = maintenance.expire_partitions(_workspace(table, engine), now=NOW, job=JobControl(), policies=_keep(5))

    assert (Outcome.DONE, (at(40),)) == (reported.report.outcome, reported.report.instants)


def test_a_job_that_exits_badly_after_its_commit_is_a_success_with_a_warning(table: TableBuilder) -> None:
    """Exit code 1 and no report, but the drop is on the timeline: the timeline wins, and the report says both."""

    class Exiting(FakeEngine):
        def status(self, handle: JobHandle) -> JobStatus:
            return JobStatus.FAILED

        def report(self, handle: JobHandle) -> None:
            return None

    engine = Exiting(act=_dropping(table, second=40).act)
    reported = maintenance.expire_partitions(_workspace(table, engine), now=NOW, job=JobControl(), policies=_keep(5))

    assert Outcome.DONE is reported.report.outcome
    assert any("ended badly" in warning for warning in reported.report.warnings)


def test_an_overwrite_that_started_since_is_no_leftover_of_ours(table: TableBuilder) -> None:
    """On a retry only a pending drop counts as left behind: another writer's overwrite is a live writer."""
    workspace = _workspace(table, FakeEngine())
    planned = maintenance.plan_expiry(workspace, now=NOW, policies=_keep(5))
    table.pending(at(30), "replacecommit", {"operationType": "INSERT_OVERWRITE", "clusteringPlan": None})

    with pytest.raises(PendingActionError, match=at(30)):
        maintenance.expire_partitions(
            workspace,
            now=NOW,
            job=JobControl(previous=JobHandle(engine="fake", job_id="1")),
            plan_path=planned.path,
        )


def test_our_own_pending_drop_is_handed_to_the_job_to_roll_back(table: TableBuilder) -> None:
    """What a killed try had requested is named as a leftover; it blocks nothing."""
    engine = _dropping(table, second=40)
    workspace = _workspace(table, engine)
    planned = maintenance.plan_expiry(workspace, now=NOW, policies=_keep(5))
    table.pending(at(30), "replacecommit", {"operationType": "DELETE_PARTITION", "clusteringPlan": None})

    maintenance.expire_partitions(
        workspace, now=NOW, job=JobControl(previous=JobHandle(engine="fake", job_id="1")), plan_path=planned.path
    )

    assert [at(30)] == engine.requests[0].arguments["leftovers"]


def test_an_empty_table_has_nothing_to_expire(tmp_path: Path) -> None:
    """Before the first commit there is neither a schema nor a partition, and that is no error."""
    table = TableBuilder(base_path=str(tmp_path / "trips"))

    reported = maintenance.expire_partitions(
        _workspace(table, FakeEngine()), now=NOW, job=JobControl(), policies=_keep(1)
    )

    assert Outcome.NOTHING_TO_DO is reported.report.outcome


def test_a_retry_after_the_policies_were_corrected_plans_again(table: TableBuilder) -> None:
    """The first try's plan dropped too much by a wrong policy; with the right one it is not taken up again."""
    planned: list[str] = []
    with pytest.raises(RuntimeError, match="shows no completion"):
        maintenance.expire_partitions(
            _workspace(table, FakeEngine()), now=NOW, job=JobControl(on_planned=planned.append), policies=_keep(3)
        )

    reported = maintenance.expire_partitions(
        _workspace(table, _dropping(table, second=40)),
        now=NOW,
        job=JobControl(previous=JobHandle(engine="fake", job_id="1"), plan_path=planned[0]),
        policies=_keep(5),
    )

    assert (DAYS[0],) == reported.report.partitions


def test_our_own_unfinished_rollback_does_not_block_a_retry(table: TableBuilder) -> None:
    """A try that died while it rolled back its forerunner leaves both pending: neither is somebody else's work."""
    engine = _dropping(table, second=40)
    workspace = _workspace(table, engine)
    planned = maintenance.plan_expiry(workspace, now=NOW, policies=_keep(5))
    table.pending(at(30), "replacecommit", {"operationType": "DELETE_PARTITION", "clusteringPlan": None})
    table.pending(at(31), "rollback", {"instantToRollback": {"commitTime": at(30), "action": "replacecommit"}})

    reported = maintenance.expire_partitions(
        workspace, now=NOW, job=JobControl(previous=JobHandle(engine="fake", job_id="1")), plan_path=planned.path
    )

    assert Outcome.DONE is reported.report.outcome


def test_an_engine_with_another_bundle_is_refused(table: TableBuilder) -> None:
    """The bundle that was checked against the table has to be the one that runs."""
    engine = FakeEngine(bundle="org.apache.hudi:hudi-spark3.5-bundle_2.12:0.15.0")

    with pytest.raises(InvalidSettingError, match=r"0\.15\.0"):
        maintenance.expire_partitions(_workspace(table, engine), now=NOW, job=JobControl(), policies=_keep(5))
    assert [] == engine.requests


def _interrupted(table: TableBuilder, engine: FakeEngine, *, meanwhile: Callable[[], None]) -> Workspace:
    """A table to which something happens right after statistics were gathered for the second time."""
    gathered: list[str] = []

    def log(line: str) -> None:
        if "statistics as of" in line:
            gathered.append(line)
            if len(gathered) == 2:
                meanwhile()

    return maintenance.open_workspace(table.base_path, engine=lambda: engine, log=log)


def test_a_write_that_lands_while_the_plan_is_checked_again_is_seen(table: TableBuilder) -> None:
    """Planning again takes time; what is written to an expired day meanwhile still stops the drop."""
    engine = FakeEngine()
    workspace = _interrupted(table, engine, meanwhile=lambda: table.commit(at(30), {DAYS[0]: [("late-0", 500)]}))
    planned = maintenance.plan_expiry(workspace, now=NOW, policies=_keep(5))

    with pytest.raises(PlanOutdatedError, match=DAYS[0]):
        maintenance.expire_partitions(workspace, now=NOW, job=JobControl(), plan_path=planned.path)
    assert [] == engine.requests


def test_a_write_just_before_the_drop_is_no_failure_of_the_drop(table: TableBuilder) -> None:
    """The job's drop took effect, whatever was written to the day while Spark started; the report names the write."""

    def act(request: JobRequest) -> None:
        table.commit(at(39), {DAYS[0]: [("late-0", 500)], DAYS[4]: [("late-4", 500)]})
        table.commit(
            at(40),
            operation="DELETE_PARTITION",
            replaced={DAYS[0]: [f"{DAYS[0]}-1-0", f"{DAYS[0]}-2-0", "late-0"]},
        )

    reported = maintenance.expire_partitions(
        _workspace(table, FakeEngine(act=act)), now=NOW, job=JobControl(), policies=_keep(5)
    )

    assert (Outcome.DONE, (at(40),)) == (reported.report.outcome, reported.report.instants)
    (warning,) = reported.report.warnings
    assert f"rows that {at(39)} (commit, completed) wrote to '{DAYS[0]}' while" in warning


def test_a_drop_of_more_than_was_asked_for_is_reported(table: TableBuilder) -> None:
    """A partition that went and was not named stands in the report's warnings."""

    def act(_: JobRequest) -> None:
        replaced = {day: [f"{day}-1-0", f"{day}-2-0"] for day in DAYS[:2]}
        table.commit(at(40), operation="DELETE_PARTITION", replaced=replaced)

    reported = maintenance.expire_partitions(
        _workspace(table, FakeEngine(act=act)), now=NOW, job=JobControl(), policies=_keep(5)
    )

    assert any(DAYS[1] in warning and "not by this plan" in warning for warning in reported.report.warnings)


def test_a_plan_is_applied_by_the_clock_that_it_was_made_with(table: TableBuilder) -> None:
    """Ages by the wall clock, planned with guards that say so and applied without them: still the same plan."""
    engine = _dropping(table, second=40)
    workspace = _workspace(table, engine)
    by_time = PolicySet.from_json([{"partitionSpec": "day=*/", "policy": "KEEP_BY_TIME", "policyValue": 300}])
    anything = ExpiryGuards(
        max_partition_share=None, max_byte_share=None, max_record_share=None, min_partitions_left=0, max_quiet_days=None
    )
    later = datetime(2027, 12, 1, tzinfo=UTC)
    planned = maintenance.plan_expiry(workspace, now=later, policies=by_time, guards=replace(anything, clock="wall"))

    reported = maintenance.expire_partitions(
        workspace, now=later, job=JobControl(), plan_path=planned.path, guards=anything
    )

    assert tuple(DAYS) == reported.report.partitions


def test_an_encoded_star_never_reaches_hudi(tmp_path: Path) -> None:
    """Hudi takes ``%2A`` in a list of partitions for a wildcard: such a partition is blocked."""
    table = TableBuilder(base_path=str(tmp_path / "trips"))
    names = ["day=%2A", *DAYS]
    table.commit(at(1), {name: [(f"{number}-1-0", 100)] for number, name in enumerate(names)})

    by_time = PolicySet.from_json([{"partitionSpec": "day=*/", "policy": "KEEP_BY_TIME", "policyValue": 1}])
    wall = ExpiryGuards(max_partition_share=None, max_byte_share=None, clock="wall")
    later = datetime(2027, 12, 1, tzinfo=UTC)
    plan = maintenance.plan_expiry(_workspace(table, FakeEngine()), now=later, policies=by_time, guards=wall).plan

    assert "day=%2A" not in [entry.partition_path for entry in plan.expired]
    assert any(entry.partition_path == "day=%2A" and "wildcard" in entry.reason for entry in plan.entries)


def test_a_partition_that_goes_while_the_plan_is_checked_again_is_done(table: TableBuilder) -> None:
    """Somebody drops the day in the same moment: nothing is left to ask Hudi for, and that is said."""
    engine = FakeEngine()

    def drop() -> None:
        table.commit(at(30), operation="DELETE_PARTITION", replaced={DAYS[0]: [f"{DAYS[0]}-1-0", f"{DAYS[0]}-2-0"]})

    workspace = _interrupted(table, engine, meanwhile=drop)
    planned = maintenance.plan_expiry(workspace, now=NOW, policies=_keep(5))
    reported = maintenance.expire_partitions(workspace, now=NOW, job=JobControl(), plan_path=planned.path)

    assert (Outcome.ALREADY_DONE, (at(30),)) == (reported.report.outcome, reported.report.instants)
    assert [] == engine.requests
