"""Execute pending clustering plans, each by its instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.maintenance.claims import claimed
from airflow_hudi_maint.core.maintenance.clustering_checks import check_copying
from airflow_hudi_maint.core.maintenance.execution_checks import check_not_running, checked_inputs, pending_plans_of
from airflow_hudi_maint.core.maintenance.ownership import (
    executed_by,
    pending_of_ours,
    record_end,
    record_execution,
    settings_of,
)
from airflow_hudi_maint.core.maintenance.rewrite_report import (
    Rewrite,
    completed_clusterings,
    predicted,
    report_rewrite,
)
from airflow_hudi_maint.core.maintenance.steps import (
    StepJob,
    StepReported,
    run_step_job,
    settle_previous,
    write_step_report,
)
from airflow_hudi_maint.core.maintenance.verification import METADATA_PARTITIONS_KEY
from airflow_hudi_maint.core.model.commit import PendingPlan
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobTotals
from airflow_hudi_maint.core.model.plan import ExecutionStrategy
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_seconds
from airflow_hudi_maint.core.model.verification import VerifySettings
from airflow_hudi_maint.core.planning.execution_settings import ExecutionSettings, PlannedRewrite, planned_rewrite
from airflow_hudi_maint.core.planning.write_guard import table_write_options

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.document import JsonMapping
    from airflow_hudi_maint.core.model.file_slice import FileSlice
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.planning.prediction import Prediction

_AS_PLANNED = ExecutionSettings()
_BY_DEFAULT = VerifySettings()


def execute_clustering(
    workspace: Workspace,
    *,
    now: datetime,
    job: JobControl,
    instants: Sequence[str] = (),
    settings: ExecutionSettings = _AS_PLANNED,
    verify: VerifySettings = _BY_DEFAULT,
) -> StepReported:
    """Execute pending clustering plans and verify the result; without ``instants``, the oldest pending one of ours.

    A second run finds the completed replace commit, verifies it again and does nothing else. An instant that is
    inflight because an earlier try died is executed again: Hudi rolls the half-written files back first.

    Raises UnknownInstantError (no clustering of this instant on the timeline), InvalidSettingError (``settings``
    contradict the plan), PlanOutdatedError (an input file group was replaced since: executing would bring old rows
    back), PendingActionError (a live writer), EngineError, or VerificationError after the fact.
    """
    settle_previous(workspace, job)
    timeline = workspace.table.timeline()
    # A try that died, or was deferred, over the job of an unnamed plan goes on with that plan and takes no other.
    begun = executed_by(workspace, job.previous)
    wanted = tuple(dict.fromkeys(instants)) or begun or oldest_of_ours(workspace, timeline)
    run = _Execution(workspace=workspace, now=now, timeline=timeline, wanted=wanted, settings=settings, verify=verify)
    if not wanted:
        return run.nothing("No clustering plan of ours is pending")
    plans = run.pending_plans()
    if not plans:
        return run.finished(Outcome.ALREADY_DONE, f"Already executed: {', '.join(wanted)}")
    return run.apply(plans, job=job)


def oldest_of_ours(workspace: Workspace, timeline: Timeline) -> tuple[str, ...]:
    """The instant of the oldest pending clustering plan of ours, or none."""
    return tuple(plan.instant.requested_time for plan in pending_of_ours(workspace, timeline)[:1])


@dataclass(frozen=True, kw_only=True)
class _Execution:
    """One execution of named instants, seen from the timeline before it."""

    workspace: Workspace
    now: datetime
    timeline: Timeline
    wanted: tuple[str, ...]
    settings: ExecutionSettings
    verify: VerifySettings

    def pending_plans(self) -> tuple[PendingPlan, ...]:
        """The plans still to execute."""
        done = completed_clusterings(self.workspace, self.timeline, wanted=self.wanted)
        times = [one.requested_time for one in done]
        return pending_plans_of(self.workspace, self.timeline, wanted=self.wanted, done=times)

    def apply(self, plans: tuple[PendingPlan, ...], *, job: JobControl) -> StepReported:
        table = self.workspace.table
        rewrites = self._rewrites(plans)
        check_not_running(self.workspace, plans)
        partitions = frozenset(path for plan in plans for path in plan.partitions)
        # By directory, whatever the table has: what decides on a rewrite rests on what lies there.
        view = table.view(self.timeline, partitions=partitions, listing="directory")
        inputs = checked_inputs(view, plans)
        self._check_copying(plans, rewrites=rewrites)
        size = sum(one.total_bytes for one in inputs)
        prediction = self._predict(size)
        with claimed(self.workspace, plans, by=job.application_name, now=self.now):
            outcome, warnings = run_step_job(
                self.workspace,
                self._step_job(plans, inputs=inputs, rewrites=rewrites),
                timeline=self.timeline,
                job=self._noting(plans, job=job),
            )
        names = tuple(plan.instant.requested_time for plan in plans)
        return self.finished(
            Outcome.DONE,
            f"Executed {', '.join(names)}",
            bytes_before=size,
            metadata_before=table.config.properties.get(METADATA_PARTITIONS_KEY, ""),
            prediction=prediction,
            warnings=warnings,
            engine_seconds=outcome.seconds,
        )

    def finished(
        self,
        outcome: Outcome,
        message: str,
        *,
        bytes_before: int = 0,
        metadata_before: str | None = None,
        prediction: Prediction | None = None,
        warnings: tuple[str, ...] = (),
        engine_seconds: float = 0.0,
    ) -> StepReported:
        """Verify and report what the wanted instants completed."""
        rewrite = Rewrite(
            step=Step.EXECUTE_CLUSTERING,
            outcome=outcome,
            message=message,
            base_instant=self.timeline.last_completed_time,
            instants=self.wanted,
            verify=self.verify,
            bytes_before=bytes_before,
            metadata_before=metadata_before,
            engine_seconds=engine_seconds,
            prediction=prediction,
            warnings=warnings,
        )
        return report_rewrite(self.workspace, rewrite)

    def nothing(self, message: str) -> StepReported:
        """Report that there is nothing to execute."""
        report = StepReport(
            step=Step.EXECUTE_CLUSTERING,
            outcome=Outcome.NOTHING_TO_DO,
            message=message,
            base_path=self.workspace.table.base_path,
            base_instant=self.timeline.last_completed_time,
        )
        return write_step_report(self.workspace, report)

    def _rewrites(self, plans: Sequence[PendingPlan]) -> dict[str, PlannedRewrite]:
        """How each plan is to be rewritten; InvalidSettingError for a setting that contradicts it, or the table."""
        given = {**self.workspace.write_options, **self.settings.options}
        table_write_options(self.workspace.table.config, extra=given)
        return {
            plan.instant.requested_time: planned_rewrite(
                plan, planned=settings_of(self.workspace, plan), asked=self.settings
            )
            for plan in plans
        }

    def _check_copying(self, plans: Sequence[PendingPlan], *, rewrites: dict[str, PlannedRewrite]) -> None:
        for plan in plans:
            instant = plan.instant.requested_time
            if rewrites[instant].execution_class == ExecutionStrategy.BINARY_COPY.class_name:
                paths = [
                    f"{one.partition_path}/{one.base_file_name}" if one.partition_path else one.base_file_name
                    for one in plan.inputs
                    if one.base_file_name
                ]
                advice = f"Roll clustering plan {instant} back and schedule with {ExecutionStrategy.SORT_AND_SIZE}"
                check_copying(self.workspace, paths, advice=advice)

    def _predict(self, size: int) -> Prediction | None:
        found = predicted(self.workspace, input_bytes=size)
        if found is not None:
            took, runs = human_seconds(found.seconds), counted(found.runs, "earlier run")
            self.workspace.log(f"{human_bytes(size)} to rewrite, about {took} by {runs} of this table")
        return found

    def _step_job(
        self, plans: Sequence[PendingPlan], *, inputs: Sequence[FileSlice], rewrites: dict[str, PlannedRewrite]
    ) -> StepJob:
        names = tuple(plan.instant.requested_time for plan in plans)
        size = sum(one.total_bytes for one in inputs)
        progress = _Progress(workspace=self.workspace, plans=tuple(plans), total_bytes=size)

        def is_completed(fresh: Timeline) -> bool:
            done = completed_clusterings(self.workspace, fresh, wanted=names)
            return set(names) <= {one.requested_time for one in done}

        return StepJob(
            kind=JobKind.EXECUTE_CLUSTERING,
            arguments=execution_arguments(rewrites, settings=self.settings),
            completed=is_completed,
            ignore=names,
            totals=JobTotals(files=len(inputs), bytes=size),
            probe=progress.describe,
            on_ended=lambda: record_end(self.workspace, plans),
        )

    def _noting(self, plans: Sequence[PendingPlan], *, job: JobControl) -> JobControl:
        """Note that the plans are being executed: before the job is submitted, and then with it."""

        def on_submitted(handle: JobHandle) -> None:
            job.on_submitted(handle)
            for plan in plans:
                record_execution(self.workspace, plan, job=handle)

        for plan in plans:
            record_execution(self.workspace, plan, job=None)
        return replace(job, on_submitted=on_submitted)


def execution_arguments(rewrites: dict[str, PlannedRewrite], *, settings: ExecutionSettings) -> JsonMapping:
    """What the job is asked for: the instants, options of all, and those of each."""
    return {
        "instants": list(rewrites),
        "options": {**settings.common_options()},
        "options_of": {instant: {**one.options()} for instant, one in rewrites.items()},
    }


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
