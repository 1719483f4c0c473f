"""Resolve pending plans: finish them, or have Hudi roll them back, after checks of age, owner and signs of life."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from airflow_hudi_maint.core.errors import PendingActionError, PlanOutdatedError, UnknownInstantError, VerificationError
from airflow_hudi_maint.core.maintenance.compaction_execution import execute_compaction
from airflow_hudi_maint.core.maintenance.compaction_planning import pending_compactions_of_ours
from airflow_hudi_maint.core.maintenance.execution import execute_clustering
from airflow_hudi_maint.core.maintenance.ownership import pending_of_ours, record_execution
from airflow_hudi_maint.core.maintenance.pending import condition_of, read_pending
from airflow_hudi_maint.core.maintenance.steps import (
    StepJob,
    StepReported,
    check_writable,
    objections,
    run_step_job,
    settle_previous,
    write_step_report,
)
from airflow_hudi_maint.core.model.commit import PlanKind
from airflow_hudi_maint.core.model.instant import WRITE_ACTIONS
from airflow_hudi_maint.core.model.job import JobKind
from airflow_hudi_maint.core.model.pending_care import Resolution, Verdict
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import counted
from airflow_hudi_maint.core.planning.pending_care import PlanCondition, ResolveSettings, resolve

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.planning.execution_settings import ExecutionSettings

_EXECUTIONS: Final[Mapping[PlanKind, Callable[..., StepReported]]] = {
    # In this order: a compaction of a file group comes before its clustering.
    PlanKind.COMPACTION: execute_compaction,
    PlanKind.CLUSTERING: execute_clustering,
}


def resolve_pending(
    workspace: Workspace,
    *,
    now: datetime,
    settings: ResolveSettings,
    job: JobControl,
    instants: Sequence[str] = (),
    dry_run: bool = False,
    execution: ExecutionSettings | None = None,
) -> StepReported:
    """Finish pending plans, or roll them back with their plan; without ``instants``, all that the settings take.

    What is left alone is a warning of the report with its reason; of a named instant it is an error. An instant that
    is not pending any more is done. Rolling back is Hudi's own: it deletes half-written files, then the plan, and
    nothing else on the timeline changes, which is checked afterwards. ``execution`` is what a clustering is
    finished with.

    Raises UnknownInstantError (a named instant that is no plan), PendingActionError (a named plan whose owner may be at
    work, or a live writer), PlanOutdatedError (a named plan that is overtaken and was to be finished), EngineError or
    VerificationError.
    """
    settle_previous(workspace, job)
    timeline = workspace.table.timeline()
    pending_of_ours(workspace, timeline)  # a plan that a step made right before it died is noted as ours by these
    pending_compactions_of_ours(workspace, timeline)
    verdicts = _verdicts(workspace, timeline, now=now, settings=settings, wanted=frozenset(instants))
    _check_plans(workspace, timeline, named=frozenset(instants).difference(one.fact.instant for one in verdicts))
    run = _Resolving(workspace=workspace, timeline=timeline, verdicts=verdicts, settings=settings, execution=execution)
    if dry_run:
        return run.rehearse()
    run.refuse_left(named=frozenset(instants))
    due = [one for one in verdicts if one.resolution is not Resolution.LEAVE]
    if due:
        return run.apply(now=now, job=replace(job, previous=None))
    if instants and not verdicts:
        return run.report(Outcome.ALREADY_DONE, f"Not pending any more: {', '.join(instants)}", resolved=instants)
    if job.attachment.outcome is not None:
        return run.report(Outcome.ALREADY_DONE, "What was pending has been resolved")
    return run.report(Outcome.NOTHING_TO_DO, f"Nothing to resolve: {run.counts()}")


def _check_plans(workspace: Workspace, timeline: Timeline, *, named: frozenset[str]) -> None:
    """Raise UnknownInstantError for an instant that the timeline has, and as something else than a plan of a service.

    One that it does not have may have been a plan: of those that were rolled back nothing is left.
    """
    for instant in sorted(named):
        found = timeline.find(instant)
        is_write = found is not None and found.is_completed and found.action in WRITE_ACTIONS
        if found is None or (is_write and workspace.table.commit_metadata(found).rewrites_only):
            continue
        msg = (
            f"Instant {instant} is no clustering or compaction of {workspace.table.base_path}: the timeline has "
            f"{found}. Name the instant of a pending plan"
        )
        raise UnknownInstantError(msg)


def _verdicts(
    workspace: Workspace, timeline: Timeline, *, now: datetime, settings: ResolveSettings, wanted: frozenset[str]
) -> tuple[Verdict, ...]:
    """What becomes of each pending plan that is wanted (none named: of each)."""
    facts = [one for one in read_pending(workspace, timeline, now=now) if not wanted or one.instant in wanted]
    # What is left alone for its age or owner needs no listing.
    doubtful = [one for one in facts if resolve(one, PlanCondition(), settings).resolution is not Resolution.LEAVE]
    partitions = frozenset(path for one in doubtful for path in one.plan.partitions)
    view = workspace.table.view(timeline, partitions=partitions, listing="directory") if doubtful else None
    found = []
    for one in facts:
        near = one in doubtful and view is not None
        condition = condition_of(workspace, one.plan, view) if near and view is not None else PlanCondition()
        found.append(resolve(one, condition, settings))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class _Resolving:
    """One resolution of the plans that one look at the timeline showed."""

    workspace: Workspace
    timeline: Timeline
    verdicts: tuple[Verdict, ...]
    settings: ResolveSettings
    execution: ExecutionSettings | None = None

    def chosen(self, resolution: Resolution) -> tuple[Verdict, ...]:
        return tuple(one for one in self.verdicts if one.resolution is resolution)

    def counts(self) -> str:
        words = {Resolution.FINISH: "to finish", Resolution.ROLL_BACK: "to roll back", Resolution.LEAVE: "left alone"}
        found = [f"{len(self.chosen(one))} {word}" for one, word in words.items() if self.chosen(one)]
        pending = counted(len(self.verdicts), "pending plan")
        return f"{pending}, {', '.join(found)}" if found else pending

    def left(self) -> tuple[str, ...]:
        return tuple(f"{one.fact} is left alone: {one.reason}" for one in self.chosen(Resolution.LEAVE))

    def rehearse(self) -> StepReported:
        due = [one for one in self.verdicts if one.resolution is not Resolution.LEAVE]
        names = [one.fact.instant for one in due]
        checks = (lambda: check_writable(self.workspace, timeline=self.timeline, ignore=names),)
        warnings = objections(*checks) if due else ()
        lines = "; ".join(f"{one.fact}: {one.resolution.replace('_', ' ')}, {one.reason}" for one in due)
        message = f"Dry run, nothing was resolved: {self.counts()}" + (f". {lines}" if lines else "")
        return self.report(Outcome.DRY_RUN, message, resolved=names, warnings=(*self.left(), *warnings))

    def refuse_left(self, *, named: frozenset[str]) -> None:
        """Raise for the first plan that was named and is left alone."""
        for one in self.chosen(Resolution.LEAVE):
            if one.fact.instant in named:
                msg = f"{one.fact} is not touched: {one.reason}"
                raise PlanOutdatedError(msg) if one.is_overtaken else PendingActionError(msg)

    def apply(self, *, now: datetime, job: JobControl) -> StepReported:
        warnings: tuple[str, ...] = self.left()
        seconds, done = 0.0, []
        back = self.chosen(Resolution.ROLL_BACK)
        if back:
            more, seconds = self._roll_back(back, job=job)
            warnings += more
            done.append(f"rolled back {', '.join(one.fact.instant for one in back)}")
        for kind, execute in _EXECUTIONS.items():
            of_kind = tuple(one for one in self.chosen(Resolution.FINISH) if one.fact.plan.kind is kind)
            if not of_kind:
                continue
            for one in of_kind:
                # The plan was looked at for age, owner and signs of life: from here on its execution is ours.
                record_execution(self.workspace, one.fact.plan, job=None)
            names = [one.fact.instant for one in of_kind]
            chosen = {"settings": self.execution} if self.execution and kind is PlanKind.CLUSTERING else {}
            finished = execute(self.workspace, now=now, job=job, instants=names, **chosen).report
            done.append(finished.message[0].lower() + finished.message[1:])
            warnings += finished.warnings
            seconds += finished.engine_seconds
        message = "; ".join(done)
        due = tuple(one for one in self.verdicts if one.resolution is not Resolution.LEAVE)
        return self.report(
            Outcome.DONE,
            message[0].upper() + message[1:],
            resolved=[one.fact.instant for one in due],
            partitions=tuple(sorted({path for one in due for path in one.fact.plan.partitions})),
            warnings=warnings,
            engine_seconds=seconds,
        )

    def _roll_back(self, verdicts: Sequence[Verdict], *, job: JobControl) -> tuple[tuple[str, ...], float]:
        names = {one.fact.instant for one in verdicts}
        step_job = StepJob(
            kind=JobKind.ROLLBACK_PENDING,
            arguments={"instants": sorted(names)},
            completed=lambda fresh: names.isdisjoint(one.requested_time for one in fresh.pending),
            ignore=names,
        )
        outcome, warnings = run_step_job(self.workspace, step_job, timeline=self.timeline, job=job)
        fresh = self.workspace.table.timeline()
        known = {(one.requested_time, one.action.completed_as) for one in fresh}
        missing = [
            one
            for one in self.timeline
            if one.requested_time not in names and (one.requested_time, one.action.completed_as) not in known
        ]
        gone = [str(one) for one in missing if one.requested_time >= fresh.start]  # older ones may be archived
        if gone:
            msg = f"The rollback of {', '.join(sorted(names))} took more with it: {', '.join(gone)} left the timeline"
            raise VerificationError(msg)
        return warnings, outcome.seconds

    def report(
        self,
        outcome: Outcome,
        message: str,
        *,
        resolved: Sequence[str] = (),
        partitions: tuple[str, ...] = (),
        warnings: tuple[str, ...] | None = None,
        engine_seconds: float = 0.0,
    ) -> StepReported:
        return write_step_report(
            self.workspace,
            StepReport(
                step=Step.RESOLVE_PENDING,
                outcome=outcome,
                message=message,
                base_path=self.workspace.table.base_path,
                base_instant=self.timeline.last_completed_time,
                instants=tuple(resolved),
                partitions=partitions,
                engine_seconds=engine_seconds,
                warnings=self.left() if warnings is None else warnings,
            ),
        )
