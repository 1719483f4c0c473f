"""Report clusterings that completed: what they wrote and replaced, verified, and against what was predicted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import HudiMaintError
from airflow_hudi_maint.core.maintenance.ownership import settings_of
from airflow_hudi_maint.core.maintenance.steps import StepReported, write_step_report
from airflow_hudi_maint.core.maintenance.verification import Executed, require_verified, verify_clustering
from airflow_hudi_maint.core.model.commit import CommitMetadata, Operation
from airflow_hudi_maint.core.model.instant import Action, Instant
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import human_bytes, human_seconds
from airflow_hudi_maint.core.model.verification import Verdict, Verification, VerifySettings
from airflow_hudi_maint.core.planning.execution_settings import ExecutionSettings, planned_rewrite
from airflow_hudi_maint.core.planning.prediction import PastRewrite, Prediction, predict_rewrite

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.timeline import Timeline

_REWRITES = (Step.EXECUTE_CLUSTERING, Step.CLUSTER)
_PAST_RUNS = 20
_WORDS = {Verdict.FAILED: " DIFFERS", Verdict.UNKNOWN: " not verified", Verdict.NOTICED: ""}
_SEEN_BEFORE = "metadata partitions"
"""The check that a retry cannot make: unknown is its rule then, and nothing to warn of."""


def completed_clusterings(
    workspace: Workspace, timeline: Timeline, *, wanted: Sequence[str]
) -> dict[Instant, CommitMetadata]:
    """The wanted instants that completed as a clustering, with what they say."""
    found = [one for one in timeline.completed if one.requested_time in wanted and one.action is Action.REPLACE_COMMIT]
    metadata = workspace.table.commit_metadata_of(found)
    pairs = zip(found, metadata, strict=True)
    return {instant: one for instant, one in pairs if _is_clustering(workspace, instant, operation=one.operation)}


def _is_clustering(workspace: Workspace, instant: Instant, *, operation: str | None) -> bool:
    """Whether a replace commit is a clustering; of an old writer's that notes no operation, its request tells."""
    if operation is None:
        return workspace.table.instants.clustering_plan(instant) is not None
    return operation == Operation.CLUSTER


def predicted(workspace: Workspace, *, input_bytes: int) -> Prediction | None:
    """Predict an execution by the reports of the last ones; None without any. A broken report is passed over."""
    names = [
        name
        for name in workspace.documents.names("reports")
        if any(name.partition("-")[2].startswith(f"{step}-") for step in _REWRITES)
    ]
    past: dict[tuple[str, ...], PastRewrite] = {}  # a clustering in one task reports its execution as well
    for name in names[-_PAST_RUNS:]:
        path = workspace.documents.path("reports", name=name)
        try:
            report = StepReport.from_json(workspace.documents.read(path), name=path)
        except HudiMaintError:
            continue
        if report.outcome is Outcome.DONE:
            past[report.instants] = PastRewrite(
                bytes_before=report.bytes_before, bytes_after=report.bytes_after, seconds=report.engine_seconds
            )
    return predict_rewrite(tuple(past.values()), input_bytes=input_bytes)


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """A rewrite that ended: the outcome and message so far, and what only this run has seen of it.

    ``bytes_before`` and ``metadata_before`` are known only to the run that looked before: 0 and None when everything
    was already done, also by a job that this run waited for. The bytes are then counted while the inputs still lie
    there.
    """

    step: Step
    outcome: Outcome
    message: str
    base_instant: str
    instants: tuple[str, ...]
    verify: VerifySettings = field(default_factory=VerifySettings)
    bytes_before: int = 0
    metadata_before: str | None = None
    engine_seconds: float = 0.0
    prediction: Prediction | None = None
    plan_path: str | None = None
    warnings: tuple[str, ...] = ()


def report_rewrite(workspace: Workspace, rewrite: Rewrite) -> StepReported:
    """Report what the completed instants say that they wrote and replaced, after verifying it.

    Raises VerificationError for a difference, once the report with the evidence is written.
    """
    timeline = workspace.table.timeline()
    completed = completed_clusterings(workspace, timeline, wanted=rewrite.instants)
    written = [stat for one in completed.values() for stats in one.written.values() for stat in stats]
    replaced = sum(len(ids) for one in completed.values() for ids in one.replaced.values())
    size = sum(stat.bytes for stat in written)
    verified = _verified(workspace, completed, rewrite=rewrite, timeline=timeline)
    report = StepReport(
        step=rewrite.step,
        outcome=rewrite.outcome,
        message=f"{rewrite.message}: {replaced} file groups became {len(written)} ({human_bytes(size)})"
        + _said(rewrite, verified),
        base_path=workspace.table.base_path,
        base_instant=rewrite.base_instant,
        plan_path=rewrite.plan_path,
        instants=rewrite.instants,
        partitions=tuple(sorted({path for one in completed.values() for path in one.touched_partitions})),
        files_before=replaced,
        files_after=len(written),
        bytes_before=rewrite.bytes_before or _input_bytes(workspace, completed),
        bytes_after=size,
        engine_seconds=rewrite.engine_seconds,
        warnings=(*rewrite.warnings, *_warnings(verified)),
        predicted_seconds=rewrite.prediction.seconds if rewrite.prediction else None,
        predicted_bytes_after=rewrite.prediction.bytes_after if rewrite.prediction else None,
        verification=verified,
    )
    if any(one.failed for one in verified):
        report = replace(report, outcome=Outcome.FAILED, message=f"Verification failed. {report.message}")
    reported = write_step_report(workspace, report)
    require_verified(verified, workspace=workspace, timeline=timeline, evidence=reported.path)
    return reported


def _input_bytes(workspace: Workspace, completed: Iterable[Instant]) -> int:
    """Bytes of the files that the completed instants read; 0 when that cannot be told any more."""
    plans = [workspace.table.instants.clustering_plan(one) for one in completed]
    inputs = [one for plan in plans if plan is not None for one in plan.inputs]
    if not inputs or None in plans:
        return 0
    listed = workspace.table.storage.list_many(sorted({one.partition_path for one in inputs}))
    sizes = {(path, entry.name): entry.bytes for path, entries in listed.items() for entry in entries}
    files = [(one.partition_path, name) for one in inputs for name in (one.base_file_name, *one.log_file_names) if name]
    return sum(sizes[file] for file in files) if sizes.keys() >= set(files) else 0


def _verified(
    workspace: Workspace, completed: Mapping[Instant, CommitMetadata], *, rewrite: Rewrite, timeline: Timeline
) -> tuple[Verification, ...]:
    found = []
    for instant, commit in completed.items():
        plan = workspace.table.instants.clustering_plan(instant)
        settings = None if plan is None else settings_of(workspace, plan)
        meant = None if plan is None else planned_rewrite(plan, planned=settings, asked=ExecutionSettings())
        executed = Executed(
            instant=instant,
            commit=commit,
            plan=plan,
            sort_columns=meant.sort_columns if meant else (),
            target_bytes=meant.target_file_bytes if meant else None,
            metadata_before=rewrite.metadata_before,
        )
        found.append(verify_clustering(workspace, executed, settings=rewrite.verify, timeline=timeline))
    return tuple(found)


def _said(rewrite: Rewrite, verified: Sequence[Verification]) -> str:
    parts = []
    if rewrite.prediction and rewrite.engine_seconds:
        took, expected = human_seconds(rewrite.engine_seconds), human_seconds(rewrite.prediction.seconds)
        parts.append(f" in {took}, {expected} predicted")
    passed = sum(len(one.of(Verdict.PASSED)) + len(one.of(Verdict.NOTICED)) for one in verified)
    checks = sum(len(one.checks) for one in verified)
    if checks:
        modes = ", ".join(sorted({str(one.mode) for one in verified}))
        parts.append(f"; {passed} of {checks} checks passed ({modes})")
    return "".join(parts)


def _warnings(verified: Sequence[Verification]) -> tuple[str, ...]:
    """What failed, could not be told, or was noticed."""
    return tuple(
        f"{one.instant}: {check.name}{_WORDS[check.verdict]}: {check.message}"
        for one in verified
        for check in one.checks
        if check.verdict in _WORDS and not (check.verdict is Verdict.UNKNOWN and check.name == _SEEN_BEFORE)
    )
