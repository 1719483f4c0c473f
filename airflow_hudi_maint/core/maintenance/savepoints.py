"""Savepoints that a drop of partitions made for its undo: which are ours, and releasing those that are old."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from airflow_hudi_maint.core.maintenance.steps import (
    StepJob,
    StepReported,
    check_writable,
    objections,
    run_step_job,
    settle_previous,
    write_step_report,
)
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.job import JobKind
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import counted

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.timeline import Timeline

SAVED_BY: Final = "airflow_hudi_maint"
"""The user under which our savepoints stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSavepoint:
    """A savepoint of ours: the instant that it saves, and when it was made (UTC)."""

    instant: str
    saved_at: datetime


def own_savepoints(workspace: Workspace, timeline: Timeline) -> tuple[OwnSavepoint, ...]:
    """The completed savepoints that were made by us, oldest first."""
    found = []
    for one in timeline.completed:
        if one.action is Action.SAVEPOINT:
            metadata = workspace.table.instants.savepoint_metadata(one)
            if metadata.saved_by == SAVED_BY:
                saved_at = datetime.fromtimestamp(metadata.saved_at_ms / 1000, tz=UTC)
                found.append(OwnSavepoint(instant=one.requested_time, saved_at=saved_at))
    return tuple(found)


def release_savepoints(
    workspace: Workspace, *, now: datetime, job: JobControl, older_than: timedelta, dry_run: bool = False
) -> StepReported:
    """Release the savepoints that drops of ours made, once they are older than ``older_than``; others stay.

    Until then neither the cleaner nor archival passes them. A second run has nothing to do and starts no Spark.

    Raises PendingActionError for a live writer, and EngineError.
    """
    settle_previous(workspace, job)
    timeline = workspace.table.timeline()
    ours = own_savepoints(workspace, timeline)
    due = tuple(one.instant for one in ours if now - one.saved_at > older_than)
    run = _Release(workspace=workspace, timeline=timeline, due=due)
    if not due:
        return run.report(
            Outcome.NOTHING_TO_DO, f"No savepoint is due: {counted(len(ours), 'savepoint')} of ours stand"
        )
    return run.rehearse() if dry_run else run.apply(job)


@dataclass(frozen=True, kw_only=True)
class _Release:
    workspace: Workspace
    timeline: Timeline
    due: tuple[str, ...]

    def rehearse(self) -> StepReported:
        warnings = objections(lambda: check_writable(self.workspace, timeline=self.timeline))
        return self.report(Outcome.DRY_RUN, f"Dry run: {', '.join(self.due)} would be released", warnings=warnings)

    def apply(self, job: JobControl) -> StepReported:
        step_job = StepJob(
            kind=JobKind.RELEASE_SAVEPOINTS,
            arguments={"instants": list(self.due)},
            completed=lambda fresh: not set(self.due).intersection(_saved(fresh)),
        )
        outcome, warnings = run_step_job(self.workspace, step_job, timeline=self.timeline, job=job)
        message = (
            f"Released {counted(len(self.due), 'savepoint')}; the next clean of the whole table may take their files"
        )
        return self.report(Outcome.DONE, message, warnings=warnings, engine_seconds=outcome.seconds)

    def report(
        self, outcome: Outcome, message: str, *, warnings: tuple[str, ...] = (), engine_seconds: float = 0.0
    ) -> StepReported:
        return write_step_report(
            self.workspace,
            StepReport(
                step=Step.RELEASE_SAVEPOINTS,
                outcome=outcome,
                message=message,
                base_path=self.workspace.table.base_path,
                base_instant=self.timeline.last_completed_time,
                instants=self.due,
                engine_seconds=engine_seconds,
                warnings=warnings,
            ),
        )


def _saved(timeline: Timeline) -> frozenset[str]:
    return frozenset(one.requested_time for one in timeline if one.action is Action.SAVEPOINT)
