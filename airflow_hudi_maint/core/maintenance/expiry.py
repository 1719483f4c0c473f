"""Plan which partitions expire, and drop them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import InvalidSettingError, PendingActionError, PlanOutdatedError
from airflow_hudi_maint.core.maintenance.statistics import gather_statistics
from airflow_hudi_maint.core.maintenance.steps import (
    StepJob,
    StepReported,
    changes_since,
    check_basis,
    check_writable,
    objections,
    own_leftovers,
    run_step_job,
    settle_previous,
    write_step_report,
)
from airflow_hudi_maint.core.model.commit import CommitMetadata, Operation
from airflow_hudi_maint.core.model.instant import Action, Instant
from airflow_hudi_maint.core.model.job import JobKind, JobTotals
from airflow_hudi_maint.core.model.plan import Decision, ExpiryEntry, ExpiryPlan
from airflow_hudi_maint.core.model.policy import PolicyKind, PolicySet
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import human_bytes
from airflow_hudi_maint.core.planning import expiry as planner
from airflow_hudi_maint.core.planning.write_guard import has_lock_provider
from airflow_hudi_maint.core.storage.schema import table_schema

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.job import JsonObject
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.planning.expiry import ExpiryGuards


@dataclass(frozen=True, kw_only=True)
class PlannedExpiry:
    """An expiry plan, and the file that holds it."""

    plan: ExpiryPlan
    path: str


def plan_expiry(
    workspace: Workspace, *, now: datetime, policies: PolicySet | None = None, guards: ExpiryGuards | None = None
) -> PlannedExpiry:
    """Plan which partitions expire and write the plan; changes nothing on the table.

    ``policies`` None takes those in the table's ``hoodie.properties``. Statistics are brought up to date first.

    Raises InvalidPolicyError for a policy that is malformed or does not fit the table.
    """
    table = workspace.table
    chosen = PolicySet.from_properties(table.config.properties) if policies is None else policies
    chosen.check(table.config.partitions)
    plan = _plan(workspace, policies=chosen, now=now, guards=guards or planner.ExpiryGuards())
    stem = f"{plan.basis.base_instant}-expiry"
    path = workspace.documents.write_kept("plans", stem=stem, document=plan.to_json())
    workspace.log(_describe(plan))
    return PlannedExpiry(plan=plan, path=path)


def _plan(workspace: Workspace, *, policies: PolicySet, now: datetime, guards: ExpiryGuards) -> ExpiryPlan:
    """Plan on statistics of this moment. The basis is the timeline that they were gathered from, not a later one."""
    table = workspace.table
    gathered = gather_statistics(workspace, now=now)
    timeline = table.timeline()
    pending = {
        partition: plan.instant.requested_time
        for plan in table.pending_plans(timeline)
        for partition in plan.partitions
    }
    compares_values = any(policy.kind is not PolicyKind.KEEP_BY_TIME for policy in policies.all())
    if compares_values and gathered.statistics.partitions:
        field_types = table_schema(table, timeline=timeline).partition_field_types(table.config.partitions)
    else:  # a table without a commit has no schema yet
        field_types = {}
    return planner.plan_expiry(
        gathered.statistics,
        policies,
        scheme=table.config.partitions,
        field_types=field_types,
        pending=pending,
        basis=workspace.basis(gathered.statistics.watermark, now=now, statistics_path=gathered.path),
        zone=table.zone,
        now=now,
        guards=guards,
    )


def _describe(plan: ExpiryPlan) -> str:
    summary = plan.summary()
    blocked = f", {summary['blocked']} blocked by pending plans" if plan.blocked else ""
    expired_bytes = sum(entry.total_bytes for entry in plan.expired)
    return (
        f"Expiry plan on {plan.basis.base_instant}: {summary['expired']} of {summary['partitions']} partitions expire "
        f"({human_bytes(expired_bytes)}), {summary['kept']} are kept{blocked}"
    )


def read_expiry_plan(workspace: Workspace, path: str) -> ExpiryPlan:
    """Read a plan that :func:`plan_expiry` wrote; raises CorruptTableError for anything else."""
    return ExpiryPlan.from_json(workspace.documents.read(path), name=path)


def expire_partitions(
    workspace: Workspace,
    *,
    now: datetime,
    job: JobControl,
    plan_path: str | None = None,
    policies: PolicySet | None = None,
    guards: ExpiryGuards | None = None,
    dry_run: bool = False,
) -> StepReported:
    """Drop the partitions of a plan with Hudi's ``delete_partition``; without ``plan_path`` plan first.

    A second run drops nothing twice: partitions that an earlier try dropped are found on the timeline. Data files
    stay until Hudi's cleaner passes.

    Raises GuardTrippedError, PlanOutdatedError (a partition was written since the plan), PendingActionError (a live
    writer, or a pending plan on one of the partitions) or EngineError; nothing is dropped then.
    """
    if plan_path and policies is not None:
        msg = "Both plan_path and policies are given; a plan already holds the policies that it was made with"
        raise InvalidSettingError(msg)
    retried = settle_previous(workspace, job)
    # On a retry the first try's plan: planning again would not see what that try already dropped.
    path = plan_path or job.plan_path or plan_expiry(workspace, now=now, policies=policies, guards=guards).path
    plan = read_expiry_plan(workspace, path)
    check_basis(workspace, plan.basis)
    job.on_planned(path)
    run = _Expiry(
        workspace=workspace, plan=plan, path=path, guards=guards or planner.ExpiryGuards(), now=now, retried=retried
    )
    if not plan.expired:
        return run.report(Outcome.NOTHING_TO_DO, f"Nothing expires: {_describe(plan)}")
    return run.rehearse() if dry_run else run.apply(job)


@dataclass(frozen=True, kw_only=True)
class _Expiry:
    """One application of a plan."""

    workspace: Workspace
    plan: ExpiryPlan
    path: str
    guards: ExpiryGuards
    now: datetime
    retried: bool

    def rehearse(self) -> StepReported:
        """Report what would be dropped, and what a real run would be refused for now."""
        timeline = self.workspace.table.timeline()
        names = [entry.partition_path for entry in self.plan.expired]
        warnings = objections(
            lambda: planner.check_guards(self.plan, self.guards),
            lambda: self._dropped_since(timeline),
            lambda: self._check_not_held(timeline, names),
            lambda: self._check_still_expired(names),
            lambda: check_writable(self.workspace, timeline=timeline, ignore=self._leftovers(timeline)),
        )
        message = f"Dry run, nothing was dropped: {_describe(self.plan)}"
        return self.report(Outcome.DRY_RUN, message, partitions=self.plan.expired, warnings=warnings)

    def apply(self, job: JobControl) -> StepReported:
        """Drop what is not dropped yet, and report what the timeline shows afterwards."""
        planner.check_guards(self.plan, self.guards)
        table = self.workspace.table
        timeline = table.timeline()
        dropped = self._dropped_since(timeline)
        remaining = tuple(entry for entry in self.plan.expired if entry.partition_path not in dropped)
        if not remaining:
            instants = tuple(sorted(set(dropped.values())))
            message = f"All {len(self.plan.expired)} partitions were already dropped at {', '.join(instants)}"
            return self.report(Outcome.ALREADY_DONE, message, partitions=self.plan.expired, instants=instants)
        names = tuple(entry.partition_path for entry in remaining)
        self._check_not_held(timeline, names)
        self._check_still_expired(names)
        view = table.view(timeline, partitions=names)
        table.check_partitions(names, known=view.partition_paths)
        files = {name: {one.file_id for one in view.latest_slices(name)} for name in names}
        leftovers = self._leftovers(timeline)
        step_job = StepJob(
            kind=JobKind.DELETE_PARTITIONS,
            arguments=self._arguments(names, timeline=timeline, leftovers=leftovers),
            completed=lambda fresh: self._are_dropped(files, fresh=fresh, before=timeline),
            ignore=leftovers,
            totals=JobTotals(files=sum(one.data_file_count for one in remaining), bytes=_bytes(remaining)),
        )
        outcome, warnings = run_step_job(self.workspace, step_job, timeline=timeline, job=job)
        instants = tuple(sorted(set(self._dropped_since(table.timeline()).values())))
        message = (
            f"Dropped {len(self.plan.expired)} partitions at {', '.join(instants)}; "
            f"{human_bytes(_bytes(self.plan.expired))} will be reclaimed when Hudi's cleaner passes"
        )
        return self.report(
            Outcome.DONE,
            message,
            partitions=self.plan.expired,
            instants=instants,
            warnings=warnings,
            engine_seconds=outcome.report.seconds if outcome.report else 0.0,
        )

    def _leftovers(self, timeline: Timeline) -> tuple[str, ...]:
        since = self.plan.basis.base_instant
        return own_leftovers(self.workspace, timeline, since=since, retried=self.retried)

    def _dropped_since(self, timeline: Timeline) -> dict[str, str]:
        """Partitions of the plan that were dropped since it was made, with the instant.

        Raises PlanOutdatedError when one of them was changed in any other way since.
        """
        changes = changes_since(self.workspace, timeline, watermark=self.plan.basis.watermark)
        planned = {entry.partition_path for entry in self.plan.expired}
        dropped: dict[str, str] = {}
        for instant, metadata in sorted(changes.items(), key=lambda item: item[0].ordering_time):
            touched = metadata.touched_partitions & planned
            if metadata.operation == Operation.DELETE_PARTITION:
                dropped.update(dict.fromkeys(touched, instant.requested_time))
            # What is written to a partition after its drop is new data, and none of this plan's business.
            elif not metadata.rewrites_only and (changed := touched - dropped.keys()):
                raise self._outdated(changed, instant, metadata)
        return dropped

    def _outdated(self, touched: Collection[str], instant: Instant, metadata: CommitMetadata) -> PlanOutdatedError:
        return PlanOutdatedError(
            f"Partition {min(touched)!r} ({len(touched)} of the plan's) was changed by {instant} "
            f"({metadata.operation or 'unknown operation'}) after the plan was made at {self.plan.basis.base_instant}. "
            "Plan again: what was written may have to be kept"
        )

    def _check_not_held(self, timeline: Timeline, names: Collection[str]) -> None:
        for plan in self.workspace.table.pending_plans(timeline):
            held = sorted(plan.partitions.intersection(names))
            if held:
                msg = (
                    f"Pending {plan.kind} {plan.instant.requested_time} holds {len(held)} partitions of the plan, "
                    f"{held[0]!r} first; Hudi refuses to drop them. Execute or roll back that plan, then plan again"
                )
                raise PendingActionError(msg)

    def _check_still_expired(self, names: Collection[str]) -> None:
        """Plan again on the table as it is now.

        Raises PlanOutdatedError when one of the partitions would be kept by now (others that were to stay are gone),
        and GuardTrippedError when dropping them has become more than the guards allow.
        """
        fresh = _plan(self.workspace, policies=self.plan.policies, now=self.now, guards=self.guards)
        entries = {entry.partition_path: entry for entry in fresh.entries}
        kept = sorted(set(names) - {entry.partition_path for entry in fresh.expired})
        if kept:
            why = entries[kept[0]].reason if kept[0] in entries else "it has no data any more"
            msg = f"{len(kept)} partitions of the plan would not expire by now, {kept[0]!r} first: {why}. Plan again"
            raise PlanOutdatedError(msg)
        others = {entry.partition_path for entry in fresh.expired} - set(names)
        left = tuple(
            replace(one, decision=Decision.KEEP) if one.partition_path in others else one for one in fresh.entries
        )
        planner.check_guards(replace(fresh, entries=left), self.guards)

    def _are_dropped(self, files: Mapping[str, set[str]], *, fresh: Timeline, before: Timeline) -> bool:
        """Whether drops that completed after ``before`` replaced every one of these file groups, by partition."""
        seen = before.completed_times
        new = [one for one in fresh.completed if one.action is Action.REPLACE_COMMIT and one.requested_time not in seen]
        replaced: dict[str, set[str]] = {}
        for metadata in self.workspace.table.commit_metadata_of(new):
            if metadata.operation == Operation.DELETE_PARTITION:
                for partition, file_ids in metadata.replaced.items():
                    replaced.setdefault(partition, set()).update(file_ids)
        return all(file_ids <= replaced.get(partition, set()) for partition, file_ids in files.items())

    def _arguments(self, names: Sequence[str], *, timeline: Timeline, leftovers: Sequence[str]) -> JsonObject:
        config = self.workspace.table.config
        shared = has_lock_provider(self.workspace.write_options)
        return {
            "partitions": list(names),
            "record_key_fields": list(config.record_key_fields),
            "ordering_fields": list(config.ordering_fields),
            # As the table has it: a custom key generator wants the kind behind each field (``ts:timestamp``).
            "partition_fields": config.properties.get("hoodie.table.partition.fields", "").split(","),
            "hive_style": config.partitions.hive_style,
            "url_encode": config.partitions.url_encoded,
            "table_type": str(config.table_type),
            "keygenerator": config.key_generator_class,
            # Beside other writers only Hudi can tell, by their heartbeats, whose pending instant is dead.
            "leftovers": [] if shared else list(leftovers),
            "known_pending": None if shared else [one.requested_time for one in timeline.pending],
        }

    def report(
        self,
        outcome: Outcome,
        message: str,
        *,
        partitions: tuple[ExpiryEntry, ...] = (),
        instants: tuple[str, ...] = (),
        warnings: tuple[str, ...] = (),
        engine_seconds: float = 0.0,
    ) -> StepReported:
        gone = outcome in (Outcome.DONE, Outcome.ALREADY_DONE)
        blocked = tuple(f"{one.partition_path} is not dropped: {one.reason}" for one in self.plan.blocked)
        files = sum(one.data_file_count + one.log_file_count for one in partitions)
        return write_step_report(
            self.workspace,
            StepReport(
                step=Step.EXPIRE,
                outcome=outcome,
                message=message,
                base_path=self.plan.basis.base_path,
                base_instant=self.plan.basis.base_instant,
                plan_path=self.path,
                instants=instants,
                partitions=tuple(one.partition_path for one in partitions),
                files_before=files,
                files_after=0 if gone else files,
                bytes_before=_bytes(partitions),
                bytes_after=0 if gone else _bytes(partitions),
                engine_seconds=engine_seconds,
                warnings=(*self.plan.warnings, *blocked, *warnings),
            ),
        )


def _bytes(entries: Collection[ExpiryEntry]) -> int:
    return sum(entry.total_bytes for entry in entries)
