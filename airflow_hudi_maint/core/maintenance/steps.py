"""What all steps that run a job share: look before, run, and believe only the timeline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.engines.bundle import check_bundle
from airflow_hudi_maint.core.errors import EngineError, HudiMaintError, InvalidSettingError, PlanOutdatedError
from airflow_hudi_maint.core.maintenance.attaching import attach, end_previous, run_or_defer
from airflow_hudi_maint.core.model.commit import Operation
from airflow_hudi_maint.core.model.instant import WRITE_ACTIONS, Action, Instant
from airflow_hudi_maint.core.model.job import JobKind, JobRequest, JobStatus, JobTotals
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.planning.write_guard import check_no_live_writer, table_write_options
from airflow_hudi_maint.core.storage.changes import unseen_instants
from airflow_hudi_maint.core.storage.properties import load_properties

if TYPE_CHECKING:
    from airflow_hudi_maint.core.engines.base import JobOutcome
    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.commit import CommitMetadata
    from airflow_hudi_maint.core.model.document import JsonMapping
    from airflow_hudi_maint.core.model.plan import PlanBasis
    from airflow_hudi_maint.core.model.report import StepReport
    from airflow_hudi_maint.core.model.statistics import Watermark
    from airflow_hudi_maint.core.model.timeline import Timeline

_KEPT_KEYS = ("hoodie.table.version", "hoodie.table.metadata.partitions")


@dataclass(frozen=True, kw_only=True)
class StepReported:
    """A step's report, and where it was written."""

    report: StepReport
    path: str


def write_step_report(workspace: Workspace, report: StepReport) -> StepReported:
    """Write a report under the last instant that it names, or the one it rests on."""
    instant = max(report.instants, default=report.base_instant)
    path = workspace.documents.write_kept("reports", stem=f"{instant}-{report.step}", document=report.to_json())
    workspace.log(report.message)
    for warning in report.warnings:
        workspace.log(f"Warning: {warning}")
    return StepReported(report=report, path=path)


def changes_since(workspace: Workspace, timeline: Timeline, *, watermark: Watermark) -> dict[Instant, CommitMetadata]:
    """What was written after a watermark, by instant; from the archive too where the active timeline starts later.

    Raises PlanOutdatedError when that cannot be known: history no longer reaches back that far, or the table was
    restored to an earlier state.
    """
    unseen = unseen_instants(workspace.table, timeline=timeline, watermark=watermark)
    new = () if isinstance(unseen, str) else unseen.instants
    restored = next((f"{one} restored an earlier state" for one in new if one.action is Action.RESTORE), None)
    if isinstance(unseen, str) or restored:
        problem = unseen if isinstance(unseen, str) else restored
        where = workspace.table.base_path
        msg = f"What happened to {where} since the plan was made cannot be told: {problem}. Plan again"
        raise PlanOutdatedError(msg)
    instants = [one for one in new if one.action in WRITE_ACTIONS and one not in unseen.archived]
    archived = {key: one.commit_metadata() for key, one in unseen.archived.items() if key.action in WRITE_ACTIONS}
    return archived | dict(zip(instants, workspace.table.commit_metadata_of(instants), strict=True))


def check_basis(workspace: Workspace, basis: PlanBasis) -> None:
    """Raise PlanOutdatedError when a plan was made for another table, or before the table was upgraded."""
    config = workspace.table.config
    for what, planned, actual in (
        ("base path", basis.base_path, workspace.table.base_path),
        ("table name", basis.table_name, config.name),
        ("table version", str(basis.table_version), str(config.table_version)),
    ):
        if planned != actual:
            msg = f"The plan was made for {what} {planned!r}, this table's is {actual!r}. Plan again"
            raise PlanOutdatedError(msg)


def settle_previous(workspace: Workspace, job: JobControl) -> bool:
    """See to the job that an earlier try left behind, and say whether there was an earlier try.

    Two jobs on one instant would undo each other's files, so the old one has ended before the timeline is read: it is
    waited for where its engine lets it go on without the process that submitted it, and killed where not.

    Raises:
        JobDeferred: It still runs, and is to be waited for elsewhere.
    """
    if job.previous is None:
        return False
    engine = workspace.engine()
    if attach(workspace, engine, job=job):
        return True
    end_previous(engine, job.previous, log=workspace.log)
    return True


def credit(workspace: Workspace, reported: StepReported, *, job: JobControl) -> StepReported:
    """Report ``done`` instead of ``already done`` where the work was done by the job that this task waited for."""
    outcome, report = job.attachment.outcome, reported.report
    if outcome is None or report.outcome is not Outcome.ALREADY_DONE:
        return reported
    done = replace(
        report,
        outcome=Outcome.DONE,
        message=f"{report.message} (by job {outcome.handle.job_id}, which this task waited for)",
        engine_seconds=outcome.seconds or report.engine_seconds,
    )
    return write_step_report(workspace, done)


def own_leftovers(workspace: Workspace, timeline: Timeline, *, watermark: Watermark, retried: bool) -> tuple[str, ...]:
    """Pending drops of partitions that an earlier, ended try of this step left behind; none on a first try.

    The step refuses to start beside a pending write, so a drop that was not pending when its plan was made is its own.
    The next try has Hudi roll it back before it writes again.
    """
    if not retried:
        return ()
    plans = {plan.instant.requested_time for plan in workspace.table.pending_plans(timeline)}
    return tuple(
        one.requested_time
        for one in timeline.pending
        if one.action is Action.REPLACE_COMMIT
        and one.requested_time not in (*watermark.pending, *plans)
        and workspace.table.requested_operation(one) == Operation.DELETE_PARTITION
    )


@dataclass(frozen=True, kw_only=True)
class StepJob:
    """One job of a step: what to ask of Spark, and how to see on the table that it worked.

    ``completed`` reads a fresh timeline and says whether the effect is there; ``ignore`` are pending instants that
    may be there (the step's own). A job that ``may_do_nothing`` is believed when it says so by a report without a row.
    ``on_ended`` is called when the job has ended, however it did.
    """

    kind: JobKind
    arguments: JsonMapping
    completed: Callable[[Timeline], bool]
    ignore: Collection[str] = ()
    may_do_nothing: bool = False
    totals: JobTotals | None = None
    probe: Callable[[], str] | None = None
    on_ended: Callable[[], None] | None = None


def check_writable(workspace: Workspace, *, timeline: Timeline, ignore: Collection[str] = ()) -> dict[str, str]:
    """Return the options of every job on this table, once it is sure that one may write it now.

    Raises BundleError for a bundle that would upgrade or cannot write the table, InvalidSettingError for write options
    that would change it, and PendingActionError for a live writer other than the instants in ``ignore``.
    """
    config = workspace.table.config
    check_bundle(workspace.bundle, table_version=config.table_version)
    # A timestamp key generator finds its settings in the writer's options only, though the table knows them.
    key_generator = {key: value for key, value in config.properties.items() if key.startswith("hoodie.keygen.")}
    options = {**key_generator, **table_write_options(config, extra=workspace.write_options)}
    plans = workspace.table.pending_plans(timeline)
    known = {*ignore, *_rollbacks_of(workspace, timeline, instants=ignore)}
    check_no_live_writer(timeline, plans=plans, options=options, ignore=known, config=config)
    return options


def _rollbacks_of(workspace: Workspace, timeline: Timeline, *, instants: Collection[str]) -> tuple[str, ...]:
    """Pending rollbacks of these instants: a try that died while it rolled back leaves one, which Hudi takes up."""
    pending = (one for one in timeline.pending if one.action is Action.ROLLBACK)
    return tuple(one.requested_time for one in pending if workspace.table.rollback_target(one) in instants)


def objections(*checks: Callable[[], object]) -> tuple[str, ...]:
    """What a real run would be refused for, for the warnings of a dry run."""
    found = []
    for check in checks:
        try:
            check()
        except HudiMaintError as error:
            found.append(f"a real run would be refused now: {error}")
    return tuple(found)


def run_step_job(
    workspace: Workspace, step_job: StepJob, *, timeline: Timeline, job: JobControl
) -> tuple[JobOutcome, tuple[str, ...]]:
    """Check that the table may be written, run the job, and return its outcome and warnings.

    Raises PendingActionError for a live writer, BundleError for a bundle that would upgrade or cannot write the table,
    and EngineError when the timeline does not show the effect, whatever the job's exit code was. JobDeferred when the
    job was submitted and is waited for elsewhere: the whole step then runs again.
    """
    options = check_writable(workspace, timeline=timeline, ignore=step_job.ignore)
    engine = workspace.engine()
    if engine.bundle != workspace.bundle:
        msg = f"The engine runs bundle {engine.bundle}, and the table was checked against {workspace.bundle}; name one"
        raise InvalidSettingError(msg)
    request = JobRequest(
        kind=step_job.kind,
        base_path=workspace.table.base_path,
        table_name=workspace.table.config.name,
        write_options=options,
        arguments=step_job.arguments,
        totals=step_job.totals,
        name=job.application_name or "",
    )
    outcome = run_or_defer(workspace, engine, request, job=job, probe=step_job.probe)
    if step_job.on_ended is not None:
        step_job.on_ended()
    nothing = step_job.may_do_nothing and outcome.report is not None and outcome.report.ok and not outcome.report.rows
    completed = step_job.completed(workspace.table.timeline()) or nothing
    return outcome, _judge(workspace, outcome, completed=completed)


def _judge(workspace: Workspace, outcome: JobOutcome, *, completed: bool) -> tuple[str, ...]:
    said = _what_it_said(outcome)
    if not completed:
        tail, where = outcome.log_tail, workspace.table.base_path
        log = f"Last lines of its log:\n{tail}" if tail else "No log of it is here: see the engine's own, and try again"
        raise EngineError(f"The Spark job ended ({said}), but the timeline of {where} shows no completion. {log}")
    warnings = _changed_settings(workspace)
    if outcome.status is not JobStatus.SUCCEEDED:
        warnings += (f"the Spark job ended badly ({said}) after its instant had completed; the table has the effect",)
    return warnings


def _what_it_said(outcome: JobOutcome) -> str:
    report = outcome.report
    if report is None and outcome.status is JobStatus.LOST:
        return f"{outcome.status}: {outcome.handle.engine} knows {outcome.handle.job_id} no more, and it left no report"
    if report is None or report.ok:
        return str(outcome.status)
    return f"{outcome.status}: {report.error_class}: {report.error_message}"


def _changed_settings(workspace: Workspace) -> tuple[str, ...]:
    """Name what a job must never change: the table's version and its set of metadata partitions."""
    before: Mapping[str, str] = workspace.table.config.properties
    after = load_properties(workspace.table.storage)
    changed = (key for key in _KEPT_KEYS if _as_set(before.get(key)) != _as_set(after.get(key)))
    return tuple(f"{key} was {before.get(key)!r} and is {after.get(key)!r} after the job" for key in changed)


def _as_set(value: str | None) -> frozenset[str]:
    return frozenset((value or "").split(","))
