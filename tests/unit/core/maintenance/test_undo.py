"""Undoing a drop, without Spark: what is refused and what starts nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import (
    EngineError,
    PendingActionError,
    PlanOutdatedError,
    UnknownPartitionError,
    VerificationError,
)
from airflow_hudi_maint.core.maintenance import DropSettings, JobControl, Workspace
from airflow_hudi_maint.core.maintenance.undo import dropped_partitions, window_of
from airflow_hudi_maint.core.model.instant import instant_moment
from airflow_hudi_maint.core.model.job import JobHandle, JobReport, JobRequest
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.planning.cleaning import CleanerSettings
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.storage.builders import TableBuilder, at

NOW = datetime(2026, 12, 1, tzinfo=UTC)
DAYS = [f"day=2026-11-0{day}" for day in range(1, 7)]
ONE = CleanerSettings(commits_retained=1)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Six days of one file each; the first two were dropped."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(1), {day: [(f"{day}-1-0", 100)] for day in DAYS})
    builder.commit(at(2), operation="DELETE_PARTITION", replaced={day: [f"{day}-1-0"] for day in DAYS[:2]})
    return builder


def _workspace(table: TableBuilder, engine: FakeEngine, **options: str) -> Workspace:
    return maintenance.open_workspace(table.base_path, engine=lambda: engine, write_options=options)


def _rows(
    *, records_then: int = 10, records_now: int = 10, digest_now: str = "7"
) -> tuple[Mapping[str, str | int], ...]:
    row = {"records_then": records_then, "records_now": records_now, "digest_then": "7", "digest_now": digest_now}
    return tuple({"partition": day, **row} for day in DAYS[:2])


def _restoring(table: TableBuilder, **rows: int | str) -> FakeEngine:
    def act(request: JobRequest) -> None:
        names = request.arguments["partitions"]
        assert isinstance(names, list)
        files = {str(name): [(f"{name}-9-0", 90)] for name in names}
        table.commit(at(30), files, operation="INSERT", extra={"airflow_hudi_maint.restores": at(2)})

    return FakeEngine(act=act, answer=JobReport(ok=True, rows=_rows(**rows)))  # type: ignore[arg-type]


def test_a_restore_reads_as_of_the_commit_before_the_drop(table: TableBuilder) -> None:
    """The job is told the partitions, the instant and the drop that its commit has to name."""
    engine = _restoring(table)
    reported = maintenance.restore_partitions(_workspace(table, engine), now=NOW, job=JobControl())
    arguments = engine.requests[0].arguments

    assert (DAYS[:2], at(1), at(2)) == (arguments["partitions"], arguments["as_of"], arguments["marker"])
    assert ["day"] == arguments["partition_columns"]
    assert (Outcome.DONE, (at(30),)) == (reported.report.outcome, reported.report.instants)
    assert "20 records" in reported.report.message


def test_a_second_restore_does_nothing(table: TableBuilder) -> None:
    """The commit of the first names the drop, so no job starts."""
    maintenance.restore_partitions(_workspace(table, _restoring(table)), now=NOW, job=JobControl())
    engine = FakeEngine()
    again = maintenance.restore_partitions(_workspace(table, engine), now=NOW, job=JobControl())

    assert (Outcome.ALREADY_DONE, [], ()) == (again.report.outcome, engine.requests, again.report.warnings)


def test_a_restore_that_failed_its_comparison_is_no_quiet_success_later(table: TableBuilder) -> None:
    """The commit is there, but no report of it: a second run says that nobody compared the rows, also a third."""
    with pytest.raises(VerificationError):
        maintenance.restore_partitions(_workspace(table, _restoring(table, records_now=9)), now=NOW, job=JobControl())
    for _ in range(2):
        again = maintenance.restore_partitions(_workspace(table, FakeEngine()), now=NOW, job=JobControl())
        assert Outcome.ALREADY_DONE is again.report.outcome
        assert f"which came back at {at(30)} were compared" in again.report.warnings[0]


def test_partitions_without_a_row_are_named(table: TableBuilder) -> None:
    """Counts that agree on nothing prove little."""
    reported = maintenance.restore_partitions(
        _workspace(table, _restoring(table, records_then=0, records_now=0)), now=NOW, job=JobControl()
    )

    assert any("no row came back" in warning for warning in reported.report.warnings)


def test_what_was_restored_and_dropped_again_can_be_restored_again(table: TableBuilder) -> None:
    """The newest drop is the one that is undone."""
    maintenance.restore_partitions(_workspace(table, _restoring(table)), now=NOW, job=JobControl())
    table.commit(at(31), operation="DELETE_PARTITION", replaced={DAYS[0]: [f"{DAYS[0]}-9-0"]})
    reported = maintenance.restore_partitions(_workspace(table, FakeEngine()), now=NOW, job=JobControl(), dry_run=True)

    assert (Outcome.DRY_RUN, (DAYS[0],)) == (reported.report.outcome, reported.report.partitions)


@pytest.mark.parametrize("rows", [{"records_now": 9}, {"digest_now": "8"}])
def test_other_rows_than_then_fail_loudly(table: TableBuilder, rows: dict[str, int | str]) -> None:
    """A count or a digest that differs is an error that says how to go back."""
    with pytest.raises(VerificationError, match="rollback_to_instant"):
        maintenance.restore_partitions(_workspace(table, _restoring(table, **rows)), now=NOW, job=JobControl())


def test_a_restore_that_committed_nothing_is_no_success(table: TableBuilder) -> None:
    """The job says that all went well, and the timeline shows no commit of it."""
    engine = FakeEngine(answer=JobReport(ok=True, rows=_rows()))
    with pytest.raises(EngineError, match="shows no completion"):
        maintenance.restore_partitions(_workspace(table, engine), now=NOW, job=JobControl())


def test_files_that_the_cleaner_took_cannot_come_back(table: TableBuilder) -> None:
    """One file group of one partition is gone: nothing is restored, and no job starts."""
    table.storage.delete(f"{DAYS[1]}/{DAYS[1]}-1-0_0-1-2_{at(1)}.parquet")
    engine = FakeEngine()
    with pytest.raises(PlanOutdatedError, match="cleaner has removed"):
        maintenance.restore_partitions(_workspace(table, engine), now=NOW, job=JobControl())
    partly = maintenance.restore_partitions(
        _workspace(table, engine), now=NOW, job=JobControl(), partitions=[DAYS[0]], dry_run=True
    )

    assert ([], ()) == (engine.requests, partly.report.warnings)


def test_a_partition_with_new_data_is_refused_unless_asked_for(table: TableBuilder) -> None:
    """Old rows beside new ones are what the caller has to want."""
    table.commit(at(20), {DAYS[0]: [("new-0", 50)]})
    with pytest.raises(PlanOutdatedError, match="keep_new_rows"):
        maintenance.restore_partitions(_workspace(table, FakeEngine()), now=NOW, job=JobControl())
    reported = maintenance.restore_partitions(
        _workspace(table, _restoring(table, records_now=15)), now=NOW, job=JobControl(), keep_new_rows=True
    )

    assert Outcome.DONE is reported.report.outcome


def test_what_was_never_dropped_is_named(table: TableBuilder) -> None:
    """A partition, or a drop, that the timeline does not have, with the drops that it has."""
    with pytest.raises(UnknownPartitionError, match=f"drops there: {at(2)}"):
        maintenance.restore_partitions(_workspace(table, FakeEngine()), now=NOW, job=JobControl(), partitions=[DAYS[5]])
    with pytest.raises(UnknownPartitionError, match=f"no drop {at(9)}"):
        maintenance.restore_partitions(_workspace(table, FakeEngine()), now=NOW, job=JobControl(), drop=at(9))


def test_a_retried_restore_takes_its_own_half_write_for_its_own(table: TableBuilder) -> None:
    """What was pending when it first began is another writer's; what came since is left by the try that died."""

    def die(_: JobRequest) -> None:
        table.pending(at(25), "commit")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        maintenance.restore_partitions(_workspace(table, FakeEngine(act=die)), now=NOW, job=JobControl())
    with pytest.raises(PendingActionError, match=at(25)):
        maintenance.restore_partitions(_workspace(table, FakeEngine()), now=NOW, job=JobControl())
    engine = _restoring(table)
    previous = JobHandle(engine="fake", job_id="1")
    reported = maintenance.restore_partitions(_workspace(table, engine), now=NOW, job=JobControl(previous=previous))

    assert Outcome.DONE is reported.report.outcome


@pytest.mark.parametrize(
    ("operation", "minutes"),
    [("UPSERT", 600), (None, 5)],
    ids=["another operation", "begun just now"],
)
def test_a_writer_who_came_between_the_tries_is_left_alone(
    operation: str | None, minutes: int, table: TableBuilder
) -> None:
    """Hudi would roll its write back under it: what is not surely the dead try's own stops the retry."""

    def die(_: JobRequest) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        maintenance.restore_partitions(_workspace(table, FakeEngine(act=die)), now=NOW, job=JobControl())
    table.pending(at(25), "commit")
    if operation:
        table.put(f"{table.timeline_folder}/{at(25)}.inflight", json.dumps({"operationType": operation}).encode())
    now = instant_moment(at(25), zone=UTC) + timedelta(minutes=minutes)
    with pytest.raises(PendingActionError, match=at(25)):
        maintenance.restore_partitions(_workspace(table, FakeEngine()), now=now, job=_retry())


def test_a_half_write_that_notes_an_insert_is_the_dead_try_s(table: TableBuilder) -> None:
    """However young: the restore's own write is an insert."""

    def die(_: JobRequest) -> None:
        table.pending(at(25), "commit")
        table.put(f"{table.timeline_folder}/{at(25)}.inflight", b'{"operationType": "INSERT"}')
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        maintenance.restore_partitions(_workspace(table, FakeEngine(act=die)), now=NOW, job=JobControl())
    now = instant_moment(at(25), zone=UTC)
    reported = maintenance.restore_partitions(_workspace(table, _restoring(table)), now=now, job=_retry())

    assert Outcome.DONE is reported.report.outcome


def _retry() -> JobControl:
    return JobControl(previous=JobHandle(engine="fake", job_id="1"))


def test_a_savepoint_further_back_holds_what_nobody_touched_since(table: TableBuilder) -> None:
    """A plan of thousands of partitions is dropped in several commits under one savepoint; all of them are held."""
    table.savepoint(at(1), by="airflow_hudi_maint", saved_at=NOW - timedelta(days=1), completion=at(50))
    table.commit(at(3), operation="DELETE_PARTITION", replaced={DAYS[2]: [f"{DAYS[2]}-1-0"]})
    second = _held_by(table)
    table.commit(at(4), {DAYS[3]: [("new-0", 5)]})
    table.commit(at(5), operation="DELETE_PARTITION", replaced={DAYS[3]: [f"{DAYS[3]}-1-0"]})

    assert at(1) == second
    assert _held_by(table) is None


def _held_by(table: TableBuilder) -> str | None:
    opened = table.open()
    timeline = opened.timeline()
    return window_of(opened, timeline, dropped_partitions(opened, timeline)[-1].instant, settings=ONE).held_by


def _keep(count: int) -> PolicySet:
    return PolicySet.from_json([{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": count}])


def test_a_drop_asks_for_a_savepoint_of_the_instant_before(table: TableBuilder) -> None:
    """Once: an instant that is saved already is not saved again."""

    def act(_: JobRequest) -> None:
        table.commit(at(30), operation="DELETE_PARTITION", replaced={DAYS[2]: [f"{DAYS[2]}-1-0"]})

    engine = FakeEngine(act=act)
    maintenance.expire_partitions(
        _workspace(table, engine), now=NOW, job=JobControl(), policies=_keep(3), settings=DropSettings(savepoint=True)
    )
    savepoint = engine.requests[0].arguments["savepoint"]

    assert isinstance(savepoint, dict)
    assert (at(2), "airflow_hudi_maint") == (savepoint["instant"], savepoint["user"])


def test_changed_partitions_can_be_left_out(table: TableBuilder) -> None:
    """The rest of the plan is dropped, and the report names what stayed and why."""
    workspace = _workspace(table, FakeEngine())
    planned = maintenance.plan_expiry(workspace, now=NOW, policies=_keep(2))
    table.commit(at(20), {DAYS[2]: [("new-0", 50)]})
    with pytest.raises(PlanOutdatedError, match=DAYS[2]):
        maintenance.expire_partitions(workspace, now=NOW, job=JobControl(), plan_path=planned.path)

    def act(request: JobRequest) -> None:
        assert [DAYS[3]] == request.arguments["partitions"]
        table.commit(at(30), operation="DELETE_PARTITION", replaced={DAYS[3]: [f"{DAYS[3]}-1-0"]})

    reported = maintenance.expire_partitions(
        _workspace(table, FakeEngine(act=act)),
        now=NOW,
        job=JobControl(),
        plan_path=planned.path,
        settings=DropSettings(leave_out_changed=True),
    )

    assert (DAYS[3],) == reported.report.partitions
    assert any(f"left out of the run ({DAYS[2]!r})" in warning for warning in reported.report.warnings)


def test_a_dropped_partition_that_still_shows_rows_fails_loudly(table: TableBuilder) -> None:
    """A writer added a file under an older instant while Hudi dropped: the partition is not empty."""

    def act(_: JobRequest) -> None:
        table.commit(at(19), {DAYS[2]: [("sneaked-0", 5)]}, completion=at(29))
        table.commit(at(30), operation="DELETE_PARTITION", replaced={DAYS[2]: [f"{DAYS[2]}-1-0"]})

    with pytest.raises(VerificationError, match="sneaked-0"):
        maintenance.expire_partitions(
            _workspace(table, FakeEngine(act=act)), now=NOW, job=JobControl(), policies=_keep(3)
        )
