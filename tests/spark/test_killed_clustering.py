"""Clustering that is killed with SIGKILL at each point of its way, and the retry of its task."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import JobControl, Workspace
from airflow_hudi_maint.core.model.instant import Action, State
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.model.scheduler import Scheduler
from tests.spark.killed_worker import SETTINGS, KilledWorker, Step, Store, Way, run_step
from tests.spark.tables import DAYS
from tests.spark.writer import HudiWriter

pytestmark = pytest.mark.spark


class Point(StrEnum):
    """How far the instant has come."""

    REQUESTED = "requested"
    REWRITING = "rewriting"
    WRITTEN = "written"
    COMMITTED = "committed"

    def sign(self, step: Step) -> str:
        """The file of the table that shows it."""
        timeline, metadata = ".hoodie/timeline", ".hoodie/metadata/.hoodie/timeline"
        return {
            # The plan of an execution is there before; its worker has stored the job by this note.
            Point.REQUESTED: f"{timeline}/*.clustering.requested" if step is Step.CLUSTER else "../job.json",
            Point.REWRITING: "day=*/*.parquet",
            # The metadata table gets the names of the new files when all of them are there, and before the commit.
            Point.WRITTEN: f"{metadata}/*.deltacommit.inflight",
            Point.COMMITTED: f"{timeline}/*_*.replacecommit",
        }[self]


CHOSEN = [
    (Step.EXECUTE, Point.REQUESTED, Way.WORKER),
    (Step.EXECUTE, Point.REWRITING, Way.JOB),
    (Step.EXECUTE, Point.WRITTEN, Way.BOTH),
    (Step.EXECUTE, Point.COMMITTED, Way.WORKER),
    (Step.CLUSTER, Point.REQUESTED, Way.BOTH),
]
OTHERS = [
    pytest.param(step, point, way, marks=pytest.mark.proof)
    for step in Step
    for point in Point
    for way in Way
    if (step, point, way) not in CHOSEN
]


def _replace_commits(workspace: Workspace) -> list[str]:
    timeline = workspace.table.timeline()
    return [one.requested_time for one in timeline.completed if one.action is Action.REPLACE_COMMIT]


def _state(workspace: Workspace) -> tuple[str, State]:
    (found,) = [one for one in workspace.table.timeline() if one.action is not Action.COMMIT]
    return found.requested_time, found.state


@pytest.mark.parametrize(("step", "point", "way"), [*CHOSEN, *OTHERS])
def test_a_retry_ends_with_one_replace_commit_and_the_same_rows(
    table: Path, writer: HudiWriter, tmp_path: Path, step: Step, point: Point, way: Way
) -> None:
    """The retry finishes the plan that was begun, or finds that it is done; nothing of the first try is left over."""
    workspace = maintenance.open_workspace(str(table))
    before, files = writer.rows(table), set(table.glob("day=*/*.parquet"))
    if step is Step.EXECUTE:
        maintenance.schedule_clustering(
            workspace,
            now=datetime.now(tz=UTC),
            settings=SETTINGS,
            job=JobControl(),
            scheduler=Scheduler.NATIVE,
        )
    sign, store = point.sign(step), Store(tmp_path / "job.json")
    there = set(table.glob(sign)) if point is not Point.REQUESTED else set()

    KilledWorker(step, table=table, store=store).kill_when(table, shows=sign, besides=there, way=way)

    instant, state = _state(workspace)
    written = set(table.glob("day=*/*.parquet")) - files
    if way is not Way.WORKER:  # else the job lives on until it sees that its worker is gone
        expected = {Point.REQUESTED: State.REQUESTED, Point.COMMITTED: State.COMPLETED}
        assert expected.get(point, State.INFLIGHT) is state
        assert {Point.REQUESTED: 0, Point.REWRITING: len(written) or 1}.get(point, len(DAYS)) == len(written)

    report = run_step(step, table=str(table), store=store)

    if way is not Way.WORKER or point is Point.COMMITTED:
        assert (Outcome.ALREADY_DONE if point is Point.COMMITTED else Outcome.DONE) is report.outcome
    assert ((instant,), [instant]) == (report.instants, _replace_commits(workspace))
    assert not report.verification[0].failed
    assert () == workspace.table.timeline().pending
    assert before == writer.rows(table)
    view = workspace.table.view(workspace.table.timeline())
    seen = {view.latest_slices(path)[0].base_file.name for path in view.partition_paths}  # type: ignore[union-attr]
    assert seen == {one.name for one in set(table.glob("day=*/*.parquet")) - files}
