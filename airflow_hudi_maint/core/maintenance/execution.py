"""Execute pending clustering plans, each by its instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import PendingActionError, PlanOutdatedError, UnknownInstantError
from airflow_hudi_maint.core.maintenance.ownership import (
    executing_job,
    is_executed_by_us,
    pending_of_ours,
    record_execution,
)
from airflow_hudi_maint.core.maintenance.steps import (
    StepJob,
    StepReported,
    run_step_job,
    settle_previous,
    write_step_report,
)
from airflow_hudi_maint.core.model.commit import CommitMetadata, Operation, PendingPlan, PlanKind, PlannedSlice
from airflow_hudi_maint.core.model.instant import Action, Instant, State
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobStatus, JobTotals
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import human_bytes

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.file_slice import FileSlice
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.storage.table import TableView


def execute_clustering(
    workspace: Workspace,
    *,
    now: datetime,  # noqa: ARG001 every use case has it; nothing here depends on it
    job: JobControl,
    instants: Sequence[str] = (),
) -> StepReported:
    """Execute pending clustering plans; without ``instants``, the oldest pending one of ours.

    A second run finds the completed replace commit and does nothing. An instant that is inflight because an earlier
    try died is executed again: Hudi rolls the half-written files back first.

    Raises UnknownInstantError (no clustering of this instant on the timeline), PlanOutdatedError (an input file group
    was replaced since: executing would bring old rows back), PendingActionError (a live writer) or EngineError.
    """
    settle_previous(workspace, job)
    timeline = workspace.table.timeline()
    wanted = tuple(dict.fromkeys(instants)) or _oldest_of_ours(workspace, timeline)
    run = _Execution(workspace=workspace, timeline=timeline, wanted=wanted)
    if not wanted:
        return run.report(Outcome.NOTHING_TO_DO, "No clustering plan of ours is pending")
    plans = run.pending_plans()
    if not plans:
        return run.finished(Outcome.ALREADY_DONE, f"Already executed: {', '.join(wanted)}")
    return run.apply(plans, job=job)


def _oldest_of_ours(workspace: Workspace, timeline: Timeline) -> tuple[str, ...]:
    return tuple(plan.instant.requested_time for plan in pending_of_ours(workspace, timeline)[:1])


@dataclass(frozen=True, kw_only=True)
class _Execution:
    """One execution of named instants, seen from the timeline before it."""

    workspace: Workspace
    timeline: Timeline
    wanted: tuple[str, ...]

    def pending_plans(self) -> tuple[PendingPlan, ...]:
        """The plans still to execute; raises UnknownInstantError for an instant that is no clustering."""
        pending = {
            plan.instant.requested_time: plan
            for plan in self.workspace.table.pending_plans(self.timeline)
            if plan.kind is PlanKind.CLUSTERING
        }
        done = self._completed(self.timeline)
        for instant in self.wanted:
            if instant not in pending and instant not in done:
                found = self.timeline.find(instant)
                msg = (
                    f"Instant {instant} is no pending clustering of {self.workspace.table.base_path}: "
                    + (
                        f"the timeline has {found}"
                        if found
                        else "it is not on the active timeline (rolled back, or archived)"
                    )
                    + ". Schedule clustering again"
                )
                raise UnknownInstantError(msg)
        return tuple(pending[instant] for instant in self.wanted if instant in pending)

    def apply(self, plans: tuple[PendingPlan, ...], *, job: JobControl) -> StepReported:
        table = self.workspace.table
        self._check_not_running(plans)
        partitions = frozenset(path for plan in plans for path in plan.partitions)
        # By directory, whatever the table has: what decides on a rewrite rests on what lies there.
        view = table.view(self.timeline, partitions=partitions, listing="directory")
        inputs = _checked_inputs(view, plans)
        names = tuple(plan.instant.requested_time for plan in plans)
        progress = _Progress(workspace=self.workspace, plans=plans, total_bytes=sum(one.total_bytes for one in inputs))
        step_job = StepJob(
            kind=JobKind.EXECUTE_CLUSTERING,
            arguments={"instants": list(names)},
            completed=lambda fresh: set(names) <= self._completed(fresh).keys(),
            ignore=names,
            totals=JobTotals(files=len(inputs), bytes=sum(one.total_bytes for one in inputs)),
            probe=progress.describe,
        )

        def on_submitted(handle: JobHandle) -> None:
            job.on_submitted(handle)
            for plan in plans:
                record_execution(self.workspace, plan, job=handle)

        for plan in plans:
            record_execution(self.workspace, plan, job=None)
        noted = replace(job, on_submitted=on_submitted)
        outcome, warnings = run_step_job(self.workspace, step_job, timeline=self.timeline, job=noted)
        return self.finished(
            Outcome.DONE,
            f"Executed {', '.join(names)}",
            inputs=inputs,
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
                msg = f"Clustering {instant} is being executed by job {handle.job_id}; try again when it is done"
                raise PendingActionError(msg)
            if plan.instant.state is State.INFLIGHT and not is_executed_by_us(self.workspace, plan):
                msg = (
                    f"Clustering {instant} is inflight, and not by a job of ours: executing it beside its owner would "
                    "delete each other's files. Wait until it completes, or have Hudi roll it back"
                )
                raise PendingActionError(msg)

    def _completed(self, timeline: Timeline) -> Mapping[str, CommitMetadata]:
        """The wanted instants that completed as a clustering, with what they say."""
        found = [
            one
            for one in timeline.completed
            if one.requested_time in self.wanted and one.action is Action.REPLACE_COMMIT
        ]
        metadata = self.workspace.table.commit_metadata_of(found)
        pairs: list[tuple[Instant, CommitMetadata]] = list(zip(found, metadata, strict=True))
        return {instant.requested_time: one for instant, one in pairs if one.operation in (Operation.CLUSTER, None)}

    def finished(
        self,
        outcome: Outcome,
        message: str,
        *,
        inputs: Sequence[FileSlice] = (),
        warnings: tuple[str, ...] = (),
        engine_seconds: float = 0.0,
    ) -> StepReported:
        """Report what the completed instants say that they wrote and replaced.

        The bytes before are known only to the run that looked before; they are 0 when everything was already done.
        """
        completed = self._completed(self.workspace.table.timeline())
        written = [stat for one in completed.values() for stats in one.written.values() for stat in stats]
        replaced = sum(len(ids) for one in completed.values() for ids in one.replaced.values())
        size = sum(stat.bytes for stat in written)
        before = sum(one.total_bytes for one in inputs)
        return self.report(
            outcome,
            f"{message}: {replaced} file groups became {len(written)} ({human_bytes(size)})",
            partitions=tuple(sorted({path for one in completed.values() for path in one.touched_partitions})),
            files=(replaced, len(written)),
            bytes_=(before, size),
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
                step=Step.EXECUTE_CLUSTERING,
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
    """The latest slices that the plans rewrite.

    Raises PlanOutdatedError when one was replaced, or got a newer base file or another log file, since the plan was
    made: Hudi would rewrite the files of the plan and lose what was written since.
    """
    latest = {(path, one.file_id): one for path in view.partition_paths for one in view.merged_slices(path)}
    checked = []
    for plan in plans:
        for one in plan.inputs:
            found = latest.get((one.partition_path, one.file_id))
            change = _change_of(one, found)
            if found is None or change:
                msg = (
                    f"Clustering plan {plan.instant.requested_time} is outdated: file group {one.file_id} of partition "
                    f"{one.partition_path!r} {change}; executing it would bring back old rows. Roll the plan back"
                )
                raise PlanOutdatedError(msg)
            checked.append(found)
    return tuple(checked)


def _change_of(planned: PlannedSlice, found: FileSlice | None) -> str:
    """What happened to an input since it was planned; empty when nothing did."""
    if found is None:
        return "was replaced or removed"
    base_file_name = found.base_file.name if found.base_file else ""
    if base_file_name != planned.base_file_name:
        return f"has the base file {base_file_name!r} now"
    later = {log.name for log in found.log_files} - planned.log_file_names
    return f"got the log file {min(later)!r}" if later else ""


@dataclass(frozen=True, kw_only=True)
class _Progress:
    """How much of the rewrite is on storage already, by the names of the files that the instants write."""

    workspace: Workspace
    plans: tuple[PendingPlan, ...]
    total_bytes: int

    def describe(self) -> str:
        instants = tuple(f"_{plan.instant.requested_time}." for plan in self.plans)
        partitions = sorted(frozenset(path for plan in self.plans for path in plan.partitions))
        listings = self.workspace.table.storage.list_many(partitions).values()
        written = [entry for entries in listings for entry in entries if any(mark in entry.name for mark in instants)]
        expected = sum(plan.output_file_count for plan in self.plans)
        size = human_bytes(sum(entry.bytes for entry in written))
        return f"files {len(written)} of about {expected}, {size} of {human_bytes(self.total_bytes)}"
