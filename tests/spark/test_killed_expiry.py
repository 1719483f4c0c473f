"""A drop whose job is killed outright, at each state that its replace commit has on the timeline, and the retry."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import EngineError, PendingActionError
from airflow_hudi_maint.core.maintenance import JobControl, Workspace
from airflow_hudi_maint.core.model.instant import Action, Instant, State
from airflow_hudi_maint.core.model.report import Outcome
from tests.spark.tables import DAYS, KEEP_FOUR
from tests.spark.timeline_watch import TimelineWatch, kill
from tests.spark.writer import HudiWriter

pytestmark = pytest.mark.spark

ROWS = {f"day={day}": 30 for day in DAYS}
LEFT = {f"day={day}": 30 for day in DAYS[2:]}


def _now() -> datetime:
    return datetime.now(tz=UTC)


def _replace_commits(workspace: Workspace) -> list[Instant]:
    return [one for one in workspace.table.timeline() if one.action is Action.REPLACE_COMMIT]


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT], ids=lambda one: one.name.lower())
def test_a_drop_that_was_killed_before_its_commit_is_made_by_a_retry(
    table: Path, writer: HudiWriter, state: State
) -> None:
    """No row is gone after the kill; the retry undoes what was left, and drops the planned partitions once."""
    workspace = maintenance.open_workspace(str(table))
    planned = maintenance.plan_expiry(workspace, now=_now(), policies=KEEP_FOUR)
    watch = TimelineWatch(table, sees=f"*.replacecommit.{state.name.lower()}", does=kill)

    with pytest.raises(EngineError):
        maintenance.expire_partitions(
            workspace, now=_now(), job=JobControl(on_submitted=watch.follow), plan_path=planned.path
        )
    watch.check()
    assert [state] == [one.state for one in _replace_commits(workspace)]
    assert ROWS == writer.counts(table)
    with pytest.raises(PendingActionError, match="another writer"):
        # Without the handle of the killed job, what it left looks like somebody else's write.
        maintenance.expire_partitions(workspace, now=_now(), job=JobControl(), plan_path=planned.path)

    again = JobControl(previous=watch.handle, plan_path=planned.path)
    retried = maintenance.expire_partitions(workspace, now=_now(), job=again, policies=KEEP_FOUR)

    assert retried.report.outcome is Outcome.DONE
    assert planned.path == retried.report.plan_path
    assert list(retried.report.instants) == [one.requested_time for one in _replace_commits(workspace)]
    assert () == workspace.table.timeline().pending
    assert LEFT == writer.counts(table)


def test_a_job_that_is_killed_after_its_commit_is_a_success_with_a_warning(table: Path, writer: HudiWriter) -> None:
    """Killed before it could report: the timeline wins, and the report says so; a retry does nothing, without Spark.

    The retry stands for a task that died with its job: what it is given is what such a task had stored.
    """
    workspace = maintenance.open_workspace(str(table))
    watch = TimelineWatch(table, sees="*_*.replacecommit", does=kill)
    planned: list[str] = []
    first = JobControl(on_submitted=watch.follow, on_planned=planned.append)

    reported = maintenance.expire_partitions(workspace, now=_now(), job=first, policies=KEEP_FOUR)
    watch.check()
    again = JobControl(previous=watch.handle, plan_path=planned[0], on_submitted=lambda _: pytest.fail("a job"))
    retried = maintenance.expire_partitions(workspace, now=_now(), job=again, policies=KEEP_FOUR)

    assert (Outcome.DONE, Outcome.ALREADY_DONE) == (reported.report.outcome, retried.report.outcome)
    assert any("ended badly" in warning for warning in reported.report.warnings)
    (commit,) = _replace_commits(workspace)
    assert (commit.requested_time,) == reported.report.instants == retried.report.instants
    assert () == workspace.table.timeline().pending
    assert LEFT == writer.counts(table)
