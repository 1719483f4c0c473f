"""Compaction of real merge-on-read tables, and rolling back pending plans, by the bundle that is the default."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import JobControl, Workspace
from airflow_hudi_maint.core.maintenance.compaction_planning import pending_compactions
from airflow_hudi_maint.core.model.commit import PendingPlan
from airflow_hudi_maint.core.model.compaction_plan import CompactionSettings
from airflow_hudi_maint.core.model.pending_care import ResolveAction
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.planning.pending_care import ResolveSettings
from airflow_hudi_maint.core.storage.table import TableView
from tests.golden.golden import unpack
from tests.spark.tables import DAYS, rows
from tests.spark.writer import HudiWriter

pytestmark = pytest.mark.spark

FIRST, SECOND = (f"day={day}" for day in DAYS[:2])
EVERYTHING = CompactionSettings()
ROLL_BACK = ResolveSettings(action=ResolveAction.ROLL_BACK, any_owner=True, older_than=timedelta(0))
WITHOUT_COMPACTION = {
    "hoodie__datasource__write__table__type": "MERGE_ON_READ",
    "hoodie__compact__inline": "false",
}


def _now() -> datetime:
    return datetime.now(tz=UTC)


def _no_engine() -> None:
    pytest.fail("a step with nothing to do started Spark")


def _at_rest(path: Path) -> Workspace:
    return maintenance.open_workspace(str(path), engine=_no_engine)  # type: ignore[arg-type]


def _pending(workspace: Workspace) -> tuple[PendingPlan, ...]:
    return workspace.table.pending_plans(workspace.table.timeline())


def _with_logs(workspace: Workspace) -> set[str]:
    """Partitions that have a log file in a latest slice."""
    view: TableView = workspace.table.view(workspace.table.timeline())
    return {path for path in view.partition_paths if any(one.log_files for one in view.latest_slices(path))}


def _schedule(workspace: Workspace, *partitions: str) -> maintenance.StepReported:
    return maintenance.schedule_compaction(
        workspace, now=_now(), settings=EVERYTHING, job=JobControl(), partitions=partitions or None
    )


@pytest.mark.parametrize("table_version", [6, 9])
def test_chosen_partitions_are_compacted_and_nothing_else_changes(
    writer_of: Callable[[int], HudiWriter], tmp_path: Path, table_version: int
) -> None:
    """Hudi's plan is ours, a second run finds it, the log files of that partition are merged, and rows are the same."""
    writer, path = writer_of(table_version), tmp_path / "trips"
    for value in (1.0, 2.0):
        written = [row for day in DAYS[:2] for row in rows(0, day=day, value=value)]
        writer.upsert(path, written, **WITHOUT_COMPACTION)
    before = writer.rows(path)
    workspace = maintenance.open_workspace(str(path))
    assert _with_logs(workspace) == {FIRST, SECOND}

    scheduled = _schedule(workspace, FIRST).report
    (plan,) = pending_compactions(workspace, workspace.table.timeline())
    assert (scheduled.outcome, scheduled.warnings, scheduled.partitions) == (Outcome.DONE, (), (FIRST,))
    assert (scheduled.instants, set(plan.partitions)) == ((plan.instant.requested_time,), {FIRST})
    again = _schedule(_at_rest(path), FIRST).report
    assert (again.outcome, again.instants) == (Outcome.ALREADY_DONE, scheduled.instants)

    executed = maintenance.execute_compaction(workspace, now=_now(), job=JobControl()).report
    assert (executed.outcome, executed.warnings, executed.instants) == (Outcome.DONE, (), scheduled.instants)
    assert (executed.files_before, executed.files_after) == (2, 1)
    assert "with 10 rows" in executed.message
    done = maintenance.execute_compaction(
        _at_rest(path), now=_now(), job=JobControl(), instants=executed.instants
    ).report
    assert done.outcome is Outcome.ALREADY_DONE
    assert _with_logs(workspace) == {SECOND}
    assert _pending(workspace) == ()

    if table_version == 9:  # the other log files were left by an earlier compaction: no delta commit came since
        rest = _schedule(workspace).report
        assert (rest.outcome, rest.warnings, rest.partitions) == (Outcome.DONE, (), (SECOND,))
    assert writer.rows(path) == before


def test_a_requested_and_an_inflight_plan_are_rolled_back_and_nothing_else_goes(tmp_path: Path) -> None:
    """Both plans are gone with their files, two rollbacks completed, and every file slice is as it was."""
    workspace, before = _golden("v9_mor_pending", tmp_path=tmp_path)
    compaction, clustering = _pending(workspace)
    name = clustering.instant.file_name.replace("requested", "inflight")
    (Path(workspace.table.base_path) / workspace.table.config.timeline_folder / name).touch()
    slices = _slices(workspace)

    resolved = maintenance.resolve_pending(workspace, now=_now(), settings=ROLL_BACK, job=JobControl()).report
    assert (resolved.outcome, resolved.warnings) == (Outcome.DONE, ())
    gone = {compaction.instant.requested_time, clustering.instant.requested_time}
    assert set(resolved.instants) == gone
    after = _completed(workspace)
    assert before < after
    assert {action for _, action in after - before} == {"rollback"}
    assert len(after - before) == len(gone)
    assert not workspace.table.timeline().pending
    assert _slices(workspace) == slices


def test_on_version_6_hudi_0_15_rolls_back_too_and_a_compaction_that_was_written_upon_is_left(tmp_path: Path) -> None:
    """The clustering goes; the compaction stays, because a log file that bears its instant would be lost."""
    workspace, before = _golden("v6_mor_pending", tmp_path=tmp_path, bundle="0.15.0")
    compaction, clustering = _pending(workspace)
    slices = _slices(workspace)
    resolved = maintenance.resolve_pending(workspace, now=_now(), settings=ROLL_BACK, job=JobControl()).report
    assert resolved.instants == (clustering.instant.requested_time,)
    assert [one for one in resolved.warnings if "was written upon it and would be lost" in one]
    assert [one.instant.requested_time for one in _pending(workspace)] == [compaction.instant.requested_time]
    assert {action for _, action in _completed(workspace) - before} == {"rollback"}
    assert _slices(workspace) == slices


def _golden(name: str, *, tmp_path: Path, bundle: str = "1.2.0") -> tuple[Workspace, set[tuple[str, str]]]:
    """A golden table with pending plans, without the writer that is at work on it, and what is completed on it."""
    path = unpack(name, tmp_path)
    workspace = maintenance.open_workspace(
        str(path), bundle=f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{bundle}", timeline_zone="UTC"
    )
    plans = {one.instant.requested_time for one in _pending(workspace)}
    for one in workspace.table.timeline().pending:
        if one.requested_time not in plans:
            for file in (path / workspace.table.config.timeline_folder).glob(f"{one.requested_time}.*"):
                file.unlink()
    return workspace, _completed(workspace)


def _completed(workspace: Workspace) -> set[tuple[str, str]]:
    return {(one.requested_time, str(one.action)) for one in workspace.table.timeline().completed}


def _slices(workspace: Workspace) -> dict[str, list[tuple[str, str, tuple[str, ...]]]]:
    """The files that a reader of the table reads."""
    view = workspace.table.view(workspace.table.timeline(), listing="directory")
    return {
        path: [
            (one.file_id, one.base_file.name if one.base_file else "", tuple(log.name for log in one.log_files))
            for one in view.merged_slices(path)
        ]
        for path in view.partition_paths
    }
