"""Clustering beside a pipeline that upserts at the same moment, under optimistic concurrency and a file-system lock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import JobControl, Workspace
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.model.scheduler import Scheduler
from airflow_hudi_maint.hooks.pending import PendingQuestion, pending_answer
from airflow_hudi_maint.sensors.pending import HudiPendingPlanSensor
from tests.spark.killed_worker import SETTINGS
from tests.spark.tables import DAYS, rows
from tests.spark.test_concurrent_writers import LOCKED
from tests.spark.timeline_watch import TimelineWatch, suspended
from tests.spark.writer import HudiWriter

pytestmark = pytest.mark.spark

HOT = DAYS[-1]


class Pipeline:
    """Upserts the newest day, commit after commit; knows what the table has to hold in the end."""

    def __init__(self, writer: HudiWriter, table: Path) -> None:
        """Begin with what the table holds."""
        self._writer, self._table = writer, table
        self._rows = {row[0]: row for row in writer.rows(table)}
        self.commits = 0

    def write(self, commits: int) -> None:
        """Each commit changes ten rows of the day and adds ten."""
        for _ in range(commits):
            self.commits += 1
            batch = [*rows(0, day=HOT, value=float(self.commits)), *rows(100 + self.commits, day=HOT)]
            batch = [[*row[:3], 100 + self.commits] for row in batch]
            self._writer.write(self._table, batch, operation="upsert", options=LOCKED)
            self._rows |= {row[0]: row for row in batch}

    @property
    def expected(self) -> list[list[Any]]:
        """All rows, in order of id."""
        return [self._rows[name] for name in sorted(self._rows)]


def _workspace(table: Path) -> Workspace:
    return maintenance.open_workspace(str(table), write_options=LOCKED)


def _schedule(table: Path, *days: str) -> str:
    reported = maintenance.schedule_clustering(
        _workspace(table),
        now=datetime.now(tz=UTC),
        settings=SETTINGS,
        job=JobControl(),
        partitions=[f"day={day}" for day in days],
        scheduler=Scheduler.NATIVE,
    )
    (instant,) = reported.report.instants
    return instant


def _cluster_beside(pipeline: Pipeline, table: Path, *days: str, commits: int) -> None:
    """Half of the commits while the rewrite is held still, the others while it goes on and completes.

    Its replace commit is looked for at once: the pipeline archives what is older than its last commits.
    """
    instant = _schedule(table, *days)
    pipeline.write(1)

    def stream(group: int) -> None:
        with suspended(group, lock=table / ".hoodie" / "lock"):
            pipeline.write(commits // 2)
        pipeline.write(commits - 1 - commits // 2)

    watch = TimelineWatch(table, sees=f"{instant}.clustering.inflight", does=stream)
    report = maintenance.execute_clustering(
        _workspace(table), now=datetime.now(tz=UTC), job=JobControl(on_submitted=watch.follow)
    ).report
    watch.check()
    assert (Outcome.DONE, (instant,), ()) == (report.outcome, report.instants, report.warnings)
    assert not report.verification[0].failed
    completed = {one.requested_time: one.action for one in _workspace(table).table.timeline().completed}
    assert completed[instant] is Action.REPLACE_COMMIT


@pytest.mark.parametrize(
    "rounds", [[8], pytest.param([10, 10, 10, 10, 10], marks=pytest.mark.proof)], ids=["8 commits", "50 commits"]
)
def test_nothing_is_lost_of_a_stream_beside_clustering_of_cold_partitions(
    table: Path, writer: HudiWriter, rounds: list[int]
) -> None:
    """Each commit of the pipeline and each replace commit completes; every row is there, with its last value."""
    pipeline = Pipeline(writer, table)
    days = DAYS[:-1] if len(rounds) > 1 else (DAYS[0],)
    for day, commits in zip(days, rounds, strict=True):
        _cluster_beside(pipeline, table, day, commits=commits)

    timeline = _workspace(table).table.timeline()
    assert sum(rounds) == pipeline.commits
    assert () == timeline.pending
    assert pipeline.expected == writer.rows(table)


def test_an_upsert_into_a_pending_group_is_refused_by_hudi_and_the_plan_is_named(
    table: Path, writer: HudiWriter
) -> None:
    """The error is Hudi's own. Sensor and health say which plan it is that the pipeline waits for; no row changed."""
    before = writer.rows(table)
    instant = _schedule(table, HOT)

    with pytest.raises(RuntimeError, match="Not allowed to update the clustering file group"):
        writer.write(table, rows(0, day=HOT, value=9.0), operation="upsert", options=LOCKED)
    assert before == writer.rows(table)

    sensor = HudiPendingPlanSensor(
        task_id="wait", hudi_conn_id=None, base_path=str(table), partitions=[f"day={HOT}"], deferrable=False
    )
    assert not sensor.poke({})
    said: list[str] = []
    question = PendingQuestion(partitions=(f"day={HOT}",))
    pending_answer(
        _workspace(table), question, now=datetime.now(tz=UTC), say=lambda text, *given: said.append(text % given)
    )
    assert f"Waiting for 1 pending plan(s) of {table}: clustering {instant} (requested" in said[0]
    assert said[0].endswith("ours)")
    later = datetime.now(tz=UTC) + timedelta(days=30)  # by then it is a matter of concern, and the advice is given
    health = maintenance.check_health(_workspace(table), now=later).health
    (signal,) = [one for one in health.signals if one.name == "pending_clustering_seconds"]
    assert f"{instant} waits for" in signal.found
    assert "holds 3 file groups of 1 partition" in signal.found
    assert "its file groups take no updates" in signal.advice
