"""Clustering plans that no JVM wrote, executed by the releases of Hudi themselves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import JobControl, Workspace
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.plan import ClusteringSettings
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.model.scheduler import PlanOwner, Scheduler
from tests.spark.tables import DAYS, rows
from tests.spark.writer import HudiWriter

pytestmark = pytest.mark.spark

SETTINGS = ClusteringSettings(
    target_file_bytes=64 * 1024 * 1024,
    small_file_bytes=32 * 1024 * 1024,
    max_group_bytes=128 * 1024 * 1024,
    sort_columns=("value", "id"),
)
OWNER = PlanOwner(dag_id="nightly", run_id="r1", task_id="cluster", map_index=3)
DAY = DAYS[0]


def _no_engine() -> Any:
    pytest.fail("native scheduling started Spark")


def _workspace(path: Path) -> Workspace:
    return maintenance.open_workspace(str(path), engine=_no_engine)


def _write(writer: HudiWriter, path: Path, *, table_type: str) -> None:
    """Two small files in each of two days; on merge-on-read two log files on top of one of them."""
    options = {"hoodie.datasource.write.table.type": table_type}
    for commit in (0, 1):
        written = [row for day in DAYS[:2] for row in rows(commit, day=day)]
        writer.write(path, written, operation="insert", options=options)
    if table_type == "MERGE_ON_READ":
        for value in (5.0, 6.0):  # the second has to win: log files are merged in the right order
            writer.write(path, rows(0, day=DAY, value=value), operation="upsert", options=options)


def _expected(*, value: float) -> list[list[Any]]:
    """All rows, in order of id; ``value`` is what the rows of the upserts have."""
    upserted = rows(0, day=DAY, value=value)
    return sorted([*upserted, *rows(1, day=DAY), *(row for commit in (0, 1) for row in rows(commit, day=DAYS[1]))])


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("table_version", [6, 8, 9])
def test_hudi_executes_a_plan_that_no_jvm_wrote(
    table_version: int, table_type: str, writer_of: Callable[[int], HudiWriter], tmp_path: Path
) -> None:
    """The release takes the plan for one of its own: one replace commit of the planned groups, the same rows, upserts
    go on."""
    writer, path = writer_of(table_version), tmp_path / "trips"
    _write(writer, path, table_type=table_type)
    workspace = _workspace(path)

    scheduled = maintenance.schedule_clustering(
        workspace,
        now=datetime.now(tz=UTC),
        settings=SETTINGS,
        job=JobControl(),
        scheduler=Scheduler.NATIVE,
        owner=OWNER,
    ).report
    (instant,) = scheduled.instants
    (plan,) = workspace.table.pending_plans(workspace.table.timeline())
    writer.sql(f"CALL run_clustering(path => '{path}', op => 'execute', instants => '{instant}')")

    assert (Outcome.DONE, "native", 0.0) == (scheduled.outcome, scheduled.scheduler, scheduled.engine_seconds)
    assert OWNER == PlanOwner.from_metadata(plan.extra_metadata)
    timeline = workspace.table.timeline()
    assert () == workspace.table.pending_plans(timeline)
    (done,) = [one for one in timeline.completed if one.action is Action.REPLACE_COMMIT]
    replaced = workspace.table.commit_metadata(done).replaced
    assert instant == done.requested_time
    assert {(one.partition_path, one.file_id) for one in plan.inputs} == {
        (partition, file_id) for partition, ids in replaced.items() for file_id in ids
    }
    assert _expected(value=6.0 if table_type == "MERGE_ON_READ" else 1.0) == writer.rows(path)
    view = workspace.table.view(timeline)
    assert [1, 1] == [len(view.latest_slices(partition)) for partition in view.partition_paths]

    options = {"hoodie.datasource.write.table.type": table_type}
    writer.write(path, rows(0, day=DAY, value=9.0), operation="upsert", options=options)
    assert _expected(value=9.0) == writer.rows(path)
