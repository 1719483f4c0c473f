"""What happens to a clustering between looking and acting: other planners, other jobs, files that came since."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import PendingActionError, PlanOutdatedError
from airflow_hudi_maint.core.maintenance import JobControl
from airflow_hudi_maint.core.model.job import JobHandle, JobRequest
from airflow_hudi_maint.core.model.plan import ClusteringSettings
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.model.scheduler import Scheduler
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.six_days import DAYS, NOW, six_days
from tests.unit.core.maintenance.six_days import workspace_with as _workspace
from tests.unit.core.storage.builders import TableBuilder, at

SMALL = ClusteringSettings(target_file_bytes=1024**2, small_file_bytes=64 * 1024, max_group_bytes=2 * 1024**2)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return six_days(tmp_path)


def _plan_clustering(instant: str, table: TableBuilder, *, files: Sequence[str], state: str = "requested") -> None:
    slices = [
        {
            "partitionPath": one.rpartition("-")[0].rpartition("-")[0],
            "fileId": one,
            "dataFilePath": f"/lake/{one}_0-1-2_{at(int(one.split('-')[-2]))}.parquet",
            "deltaFilePaths": [],
        }
        for one in files
    ]
    content = {
        "operationType": "CLUSTER",
        "clusteringPlan": {"inputGroups": [{"slices": slices, "numOutputFileGroups": 1}]},
    }
    table.pending(instant, "clustering", content)
    if state == "inflight":
        table.put(f"{table.timeline_folder}/{instant}.clustering.inflight", b"")


def test_a_clustering_that_somebody_else_executes_is_left_alone(table: TableBuilder) -> None:
    """An inflight clustering without a job of ours is not executed a second time."""
    engine = FakeEngine()
    _plan_clustering(at(30), table, files=[f"{DAYS[0]}-1-0", f"{DAYS[0]}-2-0"], state="inflight")

    with pytest.raises(PendingActionError, match=f"{at(30)} is inflight"):
        maintenance.execute_clustering(_workspace(table, engine), now=NOW, job=JobControl(), instants=[at(30)])
    assert [] == engine.requests


def test_two_executions_of_one_plan_do_not_run_at_once(table: TableBuilder) -> None:
    """The job of the first is noted, and while it runs the second one refuses."""
    files = [f"{DAYS[0]}-1-0", f"{DAYS[0]}-2-0"]
    _plan_clustering(at(30), table, files=files)
    cluster = _workspace(table, FakeEngine(outlives=True))
    with pytest.raises(maintenance.JobDeferred):
        maintenance.execute_clustering(cluster, now=NOW, job=JobControl(defer=True), instants=[at(30)])
    second = FakeEngine(running=True)

    with pytest.raises(PendingActionError, match="is being executed by job 1"):
        maintenance.execute_clustering(_workspace(table, second), now=NOW, job=JobControl(), instants=[at(30)])
    assert [] == second.requests


def test_of_two_who_are_about_to_execute_one_plan_one_goes_on(table: TableBuilder) -> None:
    """While the first submits its job there is no job to see yet: the second refuses, and nothing is left of it."""
    _plan_clustering(at(30), table, files=[f"{DAYS[0]}-1-0", f"{DAYS[0]}-2-0"])
    second = FakeEngine()
    refusals: list[str] = []

    def another_task(_: JobRequest) -> None:
        with pytest.raises(PendingActionError) as refused:
            maintenance.execute_clustering(
                _workspace(table, second), now=NOW, job=JobControl(application_name="second"), instants=[at(30)]
            )
        refusals.append(str(refused.value))

    first = FakeEngine(act=another_task)
    with pytest.raises(RuntimeError, match="shows no completion"):
        maintenance.execute_clustering(
            _workspace(table, first), now=NOW, job=JobControl(application_name="first"), instants=[at(30)]
        )

    assert ([], 1) == (second.requests, len(first.requests))
    assert "is about to be executed by another task (first" in refusals[0]
    assert not [name for name in _workspace(table, first).documents.names("scheduled") if "claim" in name]


@pytest.mark.parametrize(("by", "minutes"), [("first", 0), ("other", 11)])
def test_a_claim_of_an_earlier_try_or_of_the_dead_is_in_nobodys_way(table: TableBuilder, by: str, minutes: int) -> None:
    """A task that was killed while it submitted leaves one: its retry goes on at once, others after ten minutes."""
    _plan_clustering(at(30), table, files=[f"{DAYS[0]}-1-0", f"{DAYS[0]}-2-0"])
    engine = FakeEngine()
    workspace = _workspace(table, engine)
    left = {"kind": "claimed-execution", "version": 1, "by": by, "at": (NOW - timedelta(minutes=minutes)).isoformat()}
    workspace.documents.write("scheduled", name=f"{at(30)}-claim.json", document=left)

    with pytest.raises(RuntimeError, match="shows no completion"):
        maintenance.execute_clustering(workspace, now=NOW, job=JobControl(application_name="first"), instants=[at(30)])
    assert 1 == len(engine.requests)


def test_a_dry_run_leaves_a_question_to_hudi_as_it_is(table: TableBuilder) -> None:
    """Another task may be waiting for the answer at the moment, or have died over it."""
    workspace = _workspace(table, FakeEngine())
    workspace.documents.write("scheduled", name=f"{at(9)}-asked.json", document={"plan_path": "/nowhere.json"})
    maintenance.schedule_clustering(workspace, now=NOW, settings=SMALL, job=JobControl(), dry_run=True)
    maintenance.compact_small_files(workspace, now=NOW, settings=SMALL, job=JobControl(), dry_run=True)
    assert (f"{at(9)}-asked.json",) == workspace.documents.names("scheduled")


def test_a_dry_run_claims_nobodys_plan(table: TableBuilder) -> None:
    """A plan that a writer schedules after a dry run of ours holds files that ours named, and is not ours."""
    workspace = _workspace(table, FakeEngine())
    maintenance.schedule_clustering(workspace, now=NOW, settings=SMALL, job=JobControl(), dry_run=True)
    _plan_clustering(at(30), table, files=[f"{DAYS[0]}-1-0", f"{DAYS[0]}-2-0"])

    reported = maintenance.execute_clustering(workspace, now=NOW, job=JobControl())

    assert Outcome.NOTHING_TO_DO is reported.report.outcome


def test_a_plan_whose_maker_died_is_found_and_finished(table: TableBuilder) -> None:
    """Hudi wrote the plan, and the step died before it noted that: the next try returns that plan, and no other."""

    def schedule_and_die(_: JobRequest) -> None:
        _plan_clustering(at(30), table, files=[f"{day}-{number}-0" for day in DAYS for number in (1, 2)])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        maintenance.schedule_clustering(
            _workspace(table, FakeEngine(act=schedule_and_die)),
            now=NOW,
            settings=SMALL,
            job=JobControl(),
            scheduler=Scheduler.HUDI,
        )
    engine = FakeEngine()
    again = maintenance.schedule_clustering(
        _workspace(table, engine), now=NOW, settings=SMALL, job=JobControl(), scheduler=Scheduler.HUDI
    )

    assert (Outcome.ALREADY_DONE, (at(30),)) == (again.report.outcome, again.report.instants)
    assert [] == engine.requests


def test_a_plan_that_appears_for_other_partitions_is_not_ours(table: TableBuilder) -> None:
    """While Hudi plans for us, another writer schedules a partition that we did not choose."""

    def act(_: JobRequest) -> None:
        _plan_clustering(at(30), table, files=[f"{DAYS[0]}-1-0", f"{DAYS[0]}-2-0"])
        _plan_clustering(at(31), table, files=[f"{DAYS[5]}-1-0", f"{DAYS[5]}-2-0"])

    reported = maintenance.schedule_clustering(
        _workspace(table, FakeEngine(act=act)),
        now=NOW,
        settings=SMALL,
        job=JobControl(),
        scheduler=Scheduler.HUDI,
        partitions=[DAYS[0]],
    )

    assert (at(30),) == reported.report.instants


def test_a_log_file_that_came_after_the_plan_outdates_it(tmp_path: Path) -> None:
    """Hudi would rewrite the files that the plan names and lose the update: the plan is not executed."""
    table = TableBuilder(base_path=str(tmp_path / "trips"), merge_on_read=True)
    for number in (1, 2):
        table.commit(at(number), {DAYS[0]: [(f"{DAYS[0]}-{number}-0", 100)]})
    _plan_clustering(at(30), table, files=[f"{DAYS[0]}-1-0", f"{DAYS[0]}-2-0"])
    table.commit(at(40), logs={DAYS[0]: [(f"{DAYS[0]}-1-0", at(1), 9)]})

    with pytest.raises(PlanOutdatedError, match="got the log file"):
        maintenance.execute_clustering(_workspace(table, FakeEngine()), now=NOW, job=JobControl(), instants=[at(30)])


def test_a_partition_is_always_named_to_hudi(table: TableBuilder) -> None:
    """To Hudi an empty list means all, so it is sent for the one partition of a table without partitions only."""

    def enough(_: JobRequest) -> None:
        raise RuntimeError

    engine = FakeEngine(act=enough)
    with pytest.raises(RuntimeError):
        maintenance.schedule_clustering(
            _workspace(table, engine),
            now=NOW,
            settings=SMALL,
            job=JobControl(),
            scheduler=Scheduler.HUDI,
            partitions=[DAYS[1]],
        )

    assert [DAYS[1]] == engine.requests[0].arguments["partitions"]


def test_a_plan_of_hudis_with_one_file_more_is_ours(table: TableBuilder) -> None:
    """A small file that was committed while Spark started is in Hudi's plan, too: no orphan is left."""

    def act(_: JobRequest) -> None:
        table.commit(at(29), {DAYS[0]: [(f"{DAYS[0]}-29-0", 100)]})
        _plan_clustering(at(30), table, files=[f"{DAYS[0]}-{number}-0" for number in (1, 2, 29)])

    reported = maintenance.schedule_clustering(
        _workspace(table, FakeEngine(act=act)),
        now=NOW,
        settings=SMALL,
        job=JobControl(),
        scheduler=Scheduler.HUDI,
        partitions=[DAYS[0]],
    )

    assert (Outcome.DONE, (at(30),)) == (reported.report.outcome, reported.report.instants)


def test_a_foreign_plan_over_our_partitions_is_said_by_name(table: TableBuilder) -> None:
    """Somebody schedules our partition and another while we do: an error with the instant."""

    def act(_: JobRequest) -> None:
        files = [f"{day}-{number}-0" for day in DAYS[:2] for number in (1, 2)]
        _plan_clustering(at(30), table, files=files)

    with pytest.raises(PendingActionError, match=at(30)):
        maintenance.schedule_clustering(
            _workspace(table, FakeEngine(act=act)),
            now=NOW,
            settings=SMALL,
            job=JobControl(),
            scheduler=Scheduler.HUDI,
            partitions=[DAYS[0]],
        )


def test_a_question_that_hudi_answered_claims_nothing_later(table: TableBuilder) -> None:
    """Hudi made no plan when it was asked; what a writer schedules of the same files afterwards is the writer's."""
    workspace = _workspace(table, FakeEngine())
    asked = maintenance.schedule_clustering(
        workspace, now=NOW, settings=SMALL, job=JobControl(), scheduler=Scheduler.HUDI
    )
    _plan_clustering(at(30), table, files=[f"{DAYS[0]}-1-0", f"{DAYS[0]}-2-0"])

    reported = maintenance.execute_clustering(workspace, now=NOW, job=JobControl())

    assert [Outcome.NOTHING_TO_DO] * 2 == [asked.report.outcome, reported.report.outcome]


def test_an_earlier_job_of_this_task_proves_nothing_about_a_foreign_plan(table: TableBuilder) -> None:
    """A cleared task has a job in its past; a plan that somebody else has inflight is still not executed."""
    _plan_clustering(at(30), table, files=[f"{DAYS[0]}-1-0", f"{DAYS[0]}-2-0"], state="inflight")
    control = JobControl(previous=JobHandle(engine="fake", job_id="7"))

    with pytest.raises(PendingActionError, match="not by a job of ours"):
        maintenance.execute_clustering(_workspace(table, FakeEngine()), now=NOW, job=control, instants=[at(30)])
