"""What goes wrong in the middle of a real job: without effect, in somebody's way."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.engines.local import LocalSparkEngine
from airflow_hudi_maint.core.errors import EngineError, PlanOutdatedError
from airflow_hudi_maint.core.maintenance import JobControl
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.job import JobHandle
from airflow_hudi_maint.core.model.plan import ClusteringSettings
from airflow_hudi_maint.core.model.scheduler import Scheduler
from tests.spark.tables import DAYS, KEEP_FOUR, rows
from tests.spark.writer import HudiWriter

pytestmark = pytest.mark.spark

SETTINGS = ClusteringSettings(
    target_file_bytes=64 * 1024 * 1024, small_file_bytes=32 * 1024 * 1024, max_group_bytes=128 * 1024 * 1024
)
ROWS = {f"day={day}": 30 for day in DAYS}


def _now() -> datetime:
    return datetime.now(tz=UTC)


def test_a_job_that_ends_well_without_a_commit_is_a_failure(table: Path, tmp_path: Path) -> None:
    """Exit code 0 and a report that says ok, but nothing on the timeline: an error, and no row is lost."""
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    report = {"version": 1, "ok": True, "error_class": None, "error_message": None, "rows": [], "seconds": 0.1}
    (jobs / "delete_partitions.py").write_text(
        "import pathlib, sys\nprint('all is well')\n"
        f"pathlib.Path(sys.argv[2]).write_text({json.dumps(json.dumps(report))})\n"
    )
    workspace = maintenance.open_workspace(str(table), engine=lambda: LocalSparkEngine(jobs_dir=jobs))
    before = workspace.table.timeline()

    with pytest.raises(EngineError, match=r"shows no completion(.|\n)*all is well"):
        maintenance.expire_partitions(workspace, now=_now(), job=JobControl(), policies=KEEP_FOUR)

    assert before == workspace.table.timeline()


def test_a_drop_that_hudi_refuses_leaves_nothing_on_the_timeline(table: Path, writer: HudiWriter) -> None:
    """A clustering plan that appears just before the drop makes Hudi refuse it; what that requested is undone."""
    workspace = maintenance.open_workspace(str(table))
    planned = maintenance.plan_expiry(workspace, now=_now(), policies=KEEP_FOUR)

    def schedule_first(_: JobHandle) -> None:
        writer.sql(
            f"CALL run_clustering(path => '{table}', op => 'schedule', selected_partitions => 'day={DAYS[0]}', "
            "options => 'hoodie.metadata.index.column.stats.enable=false')"
        )

    with pytest.raises(EngineError, match="pending table service"):
        maintenance.expire_partitions(
            workspace, now=_now(), job=JobControl(on_submitted=schedule_first), plan_path=planned.path
        )

    assert [Action.CLUSTERING] == [one.action for one in workspace.table.timeline().pending]
    assert ROWS == writer.counts(table)


def test_a_plan_is_not_applied_to_a_partition_that_was_written_since(table: Path, writer: HudiWriter) -> None:
    """A row that arrives in an expired day after the plan was made stops the whole plan, and nothing is dropped."""
    workspace = maintenance.open_workspace(str(table), engine=lambda: pytest.fail("Spark was started"))
    planned = maintenance.plan_expiry(workspace, now=_now(), policies=KEEP_FOUR)
    writer.upsert(table, rows(9, day=DAYS[0]))

    with pytest.raises(PlanOutdatedError, match=f"day={DAYS[0]}"):
        maintenance.expire_partitions(workspace, now=_now(), job=JobControl(), plan_path=planned.path)

    assert {**ROWS, f"day={DAYS[0]}": 40} == writer.counts(table)


def test_a_plan_whose_input_was_overwritten_is_not_executed(table: Path, writer: HudiWriter) -> None:
    """After an overwrite of its partition, executing the plan would bring old rows back: it is refused."""
    workspace = maintenance.open_workspace(str(table))
    scheduled = maintenance.schedule_clustering(
        workspace, now=_now(), settings=SETTINGS, job=JobControl(), partitions=[f"day={DAYS[5]}"]
    )
    writer.insert_overwrite(table, rows(9, day=DAYS[5]))

    with pytest.raises(PlanOutdatedError, match="was replaced or removed"):
        maintenance.execute_clustering(workspace, now=_now(), job=JobControl(), instants=scheduled.report.instants)

    assert {**ROWS, f"day={DAYS[5]}": 10} == writer.counts(table)


def test_a_partition_held_by_a_pending_plan_blocks_only_itself(table: Path, writer: HudiWriter) -> None:
    """One of two expired days is held by somebody's clustering plan: the other goes, the report names it."""
    workspace = maintenance.open_workspace(str(table))
    pending = maintenance.schedule_clustering(
        workspace,
        now=_now(),
        settings=SETTINGS,
        job=JobControl(),
        partitions=[f"day={DAYS[0]}"],
        scheduler=Scheduler.HUDI,
    )
    reported = maintenance.expire_partitions(workspace, now=_now(), job=JobControl(), policies=KEEP_FOUR)

    assert (f"day={DAYS[1]}",) == reported.report.partitions
    assert any(pending.report.instants[0] in warning for warning in reported.report.warnings)
    assert {f"day={day}": 30 for day in (DAYS[0], *DAYS[2:])} == writer.counts(table)
