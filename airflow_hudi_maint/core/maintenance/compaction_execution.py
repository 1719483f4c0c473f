"""Execute pending compaction plans, each by its instant, and check what they left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import PendingActionError, PlanOutdatedError, UnknownInstantError, VerificationError
from airflow_hudi_maint.core.maintenance.claims import claimed
from airflow_hudi_maint.core.maintenance.compaction import NO_LOG_FILES
from airflow_hudi_maint.core.maintenance.compaction_planning import pending_compactions, pending_compactions_of_ours
from airflow_hudi_maint.core.maintenance.ownership import (
    executed_by,
    executing_job,
    is_executed_by_us,
    record_end,
    record_execution,
)
from airflow_hudi_maint.core.maintenance.pending import change_of_inputs
from airflow_hudi_maint.core.maintenance.steps import (
    StepJob,
    StepReported,
    run_step_job,
    settle_previous,
    write_step_report,
)
from airflow_hudi_maint.core.model.commit import CommitMetadata, Operation, PendingPlan, PlannedSlice
from airflow_hudi_maint.core.model.instant import Action, State
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobStatus, JobTotals
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.wording import some_of

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.file_slice import FileSlice
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.storage.table import TableView


def execute_compaction(
    workspace: Workspace,
    *,
    now: datetime,
    job: JobControl,
    instants: Sequence[str] = (),
) -> StepReported:
    """Execute pending compaction plans; without ``instants``, the oldest pending one of ours.

    A second run finds the completed commit and does nothing. An instant that is inflight because an earlier try died is
    executed again: Hudi rolls the half-written files back first. Afterwards the commit has to have written every file
    group of the plan, and no log file of the plan may be in a latest slice.

    Raises UnknownInstantError (no compaction of this instant on the timeline), PlanOutdatedError (a file group was
    replaced since), PendingActionError (a live writer), EngineError or VerificationError.
    """
    settle_previous(workspace, job)
    timeline = workspace.table.timeline()
    ours = pending_compactions_of_ours(workspace, timeline)
    # A try that died, or was deferred, over the job of an unnamed plan goes on with that plan and takes no other.
    begun = executed_by(workspace, job.previous)
    wanted = tuple(dict.fromkeys(instants)) or begun or tuple(plan.instant.requested_time for plan in ours[:1])
    run = _Execution(workspace=workspace, now=now, timeline=timeline, wanted=wanted)
    if not wanted:
        reason = "no compaction plan of ours is pending" if workspace.table.config.is_merge_on_read else NO_LOG_FILES
        return run.report(Outcome.NOTHING_TO_DO, f"Nothing to execute: {reason}")
    plans = run.pending_plans()
    if not plans:
        return run.finished(Outcome.ALREADY_DONE, f"Already executed: {', '.join(wanted)}")
    return run.apply(plans, job=job)


@dataclass(frozen=True, kw_only=True)
class _Execution:
    """One execution of named instants, seen from the timeline before it."""

    workspace: Workspace
    now: datetime
    timeline: Timeline
    wanted: tuple[str, ...]

    def pending_plans(self) -> tuple[PendingPlan, ...]:
        """The plans still to execute; raises UnknownInstantError for an instant that is no compaction."""
        pending = {one.instant.requested_time: one for one in pending_compactions(self.workspace, self.timeline)}
        done = self._completed(self.timeline)
        for instant in self.wanted:
            if instant not in pending and instant not in done:
                found = self.timeline.find(instant)
                where = f"the timeline has {found}" if found else "it is not on the active timeline"
                msg = (
                    f"Instant {instant} is no pending compaction of {self.workspace.table.base_path}: {where}. "
                    "Schedule compaction again"
                )
                raise UnknownInstantError(msg)
        return tuple(pending[instant] for instant in self.wanted if instant in pending)

    def apply(self, plans: tuple[PendingPlan, ...], *, job: JobControl) -> StepReported:
        table = self.workspace.table
        self._check_not_running(plans)
        partitions = frozenset(path for plan in plans for path in plan.partitions)
        inputs = _checked_inputs(table.view(self.timeline, partitions=partitions, listing="directory"), plans)
        names = tuple(plan.instant.requested_time for plan in plans)
        size = sum(one.total_bytes for one in inputs)
        step_job = StepJob(
            kind=JobKind.EXECUTE_COMPACTION,
            arguments={"instants": list(names)},
            completed=lambda fresh: set(names) <= self._completed(fresh).keys(),
            ignore=names,
            totals=JobTotals(files=len(inputs), bytes=size),
            on_ended=lambda: record_end(self.workspace, plans),
        )

        def on_submitted(handle: JobHandle) -> None:
            job.on_submitted(handle)
            for plan in plans:
                record_execution(self.workspace, plan, job=handle)

        with claimed(self.workspace, plans, by=job.application_name, now=self.now):
            for plan in plans:
                record_execution(self.workspace, plan, job=None)
            noted = replace(job, on_submitted=on_submitted)
            outcome, warnings = run_step_job(self.workspace, step_job, timeline=self.timeline, job=noted)
        self._verify(plans)
        logs = sum(len(one.log_files) for one in inputs)
        return self.finished(
            Outcome.DONE,
            f"Executed {', '.join(names)}, {counted(logs, 'log file')} merged",
            before=(len(inputs) + logs, size),
            warnings=warnings,
            engine_seconds=outcome.seconds,
        )

    def _check_not_running(self, plans: Sequence[PendingPlan]) -> None:
        """Raise PendingActionError for a plan that another job is executing, or may be.

        Hudi begins an execution by rolling back what is inflight: two at once would delete each other's files.
        """
        for plan in plans:
            handle = executing_job(self.workspace, plan)
            instant = plan.instant.requested_time
            if handle is not None and self.workspace.engine().status(handle) is JobStatus.RUNNING:
                msg = f"Compaction {instant} is being executed by job {handle.job_id}; try again when it is done"
                raise PendingActionError(msg)
            if plan.instant.state is State.INFLIGHT and not is_executed_by_us(self.workspace, plan):
                msg = (
                    f"Compaction {instant} is inflight, and not by a job of ours: executing it beside its owner would "
                    "delete each other's files. Wait until it completes, or resolve it with HudiResolvePendingOperator"
                )
                raise PendingActionError(msg)

    def _verify(self, plans: Sequence[PendingPlan]) -> None:
        """Compare what the commits wrote with what was planned; raises VerificationError for a difference."""
        table = self.workspace.table
        timeline = table.timeline()
        completed = self._completed(timeline)
        partitions = frozenset(path for plan in plans for path in plan.partitions)
        view = table.view(timeline, partitions=partitions, listing="directory")
        latest = {(path, one.file_id): one for path in view.partition_paths for one in view.latest_slices(path)}
        for plan in plans:
            instant = plan.instant.requested_time
            planned = {(one.partition_path, one.file_id) for one in plan.inputs}
            written = {(path, one.file_id) for path, stats in completed[instant].written.items() for one in stats}
            if planned != written:
                differing = some_of(file_id for _, file_id in planned ^ written)
                raise VerificationError(
                    f"Compaction {instant} completed with {len(written)} file groups where its plan has "
                    f"{len(planned)}: {differing}. Compare a count of rows with before, and look at the job's log"
                )
            stale = [
                one.file_id for one in plan.inputs if _is_stale(one, latest.get((one.partition_path, one.file_id)))
            ]
            if stale:
                raise VerificationError(
                    f"Compaction {instant} completed, and log files of its plan are still read with {some_of(stale)}: "
                    "readers would apply them a second time. Look at the table before it is written again"
                )

    def _completed(self, timeline: Timeline) -> Mapping[str, CommitMetadata]:
        """The wanted instants that completed as a compaction, with what they say."""
        found = [one for one in timeline.completed if one.requested_time in self.wanted and one.action is Action.COMMIT]
        metadata = self.workspace.table.commit_metadata_of(found)
        pairs = zip(found, metadata, strict=True)
        return {one.requested_time: said for one, said in pairs if said.operation in (Operation.COMPACT, None)}

    def finished(
        self,
        outcome: Outcome,
        message: str,
        *,
        before: tuple[int, int] = (0, 0),
        warnings: tuple[str, ...] = (),
        engine_seconds: float = 0.0,
    ) -> StepReported:
        """Report what the completed instants say that they wrote.

        Files and bytes before are known only to the run that looked before; they are 0 when all was already done.
        """
        completed = self._completed(self.workspace.table.timeline())
        written = [stat for one in completed.values() for stats in one.written.values() for stat in stats]
        size = sum(stat.bytes for stat in written)
        rows = sum(stat.records for stat in written)
        return self.report(
            outcome,
            f"{message}: {counted(len(written), 'base file')} of {human_bytes(size)} with {counted(rows, 'row')}",
            partitions=tuple(sorted({path for one in completed.values() for path in one.touched_partitions})),
            files=(before[0], len(written)),
            bytes_=(before[1], size),
            warnings=warnings,
            engine_seconds=engine_seconds,
        )

    def report(
        self,
        outcome: Outcome,
        message: str,
        *,
        partitions: tuple[str, ...] = (),
        files: tuple[int, int] = (0, 0),
        bytes_: tuple[int, int] = (0, 0),
        warnings: tuple[str, ...] = (),
        engine_seconds: float = 0.0,
    ) -> StepReported:
        return write_step_report(
            self.workspace,
            StepReport(
                step=Step.EXECUTE_COMPACTION,
                outcome=outcome,
                message=message,
                base_path=self.workspace.table.base_path,
                base_instant=self.timeline.last_completed_time,
                instants=self.wanted,
                partitions=partitions,
                files_before=files[0],
                files_after=files[1],
                bytes_before=bytes_[0],
                bytes_after=bytes_[1],
                engine_seconds=engine_seconds,
                warnings=warnings,
            ),
        )


def _checked_inputs(view: TableView, plans: Sequence[PendingPlan]) -> tuple[FileSlice, ...]:
    """The slices that the plans merge; raises PlanOutdatedError when one was replaced since the plan was made."""
    latest = {(path, one.file_id): one for path in view.partition_paths for one in view.merged_slices(path)}
    for plan in plans:
        change = change_of_inputs(plan, view)
        if change:
            msg = f"Compaction plan {plan.instant.requested_time} is outdated: {change}. Roll the plan back"
            raise PlanOutdatedError(msg)
    return tuple(_as_planned(latest[one.partition_path, one.file_id], one) for plan in plans for one in plan.inputs)


def _as_planned(found: FileSlice, planned: PlannedSlice) -> FileSlice:
    """A slice with the log files of the plan only."""
    return replace(found, log_files=tuple(one for one in found.log_files if one.name in planned.log_file_names))


def _is_stale(planned: PlannedSlice, found: FileSlice | None) -> bool:
    """Whether a latest slice still has log files that a compaction merged; a slice that is gone has none."""
    return found is not None and any(one.name in planned.log_file_names for one in found.log_files)
