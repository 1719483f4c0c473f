"""Drop the partitions of an expiry plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import PendingActionError, PlanOutdatedError
from airflow_hudi_maint.core.maintenance.expiry_planning import describe_expiry_plan, make_expiry_plan
from airflow_hudi_maint.core.maintenance.steps import (
    StepJob,
    StepReported,
    changes_since,
    check_writable,
    objections,
    own_leftovers,
    run_step_job,
    write_step_report,
)
from airflow_hudi_maint.core.model.commit import CommitMetadata, Operation
from airflow_hudi_maint.core.model.instant import Action, Instant
from airflow_hudi_maint.core.model.job import JobKind, JobTotals
from airflow_hudi_maint.core.model.plan import Decision, ExpiryEntry, ExpiryPlan
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import human_bytes
from airflow_hudi_maint.core.planning import expiry as planner
from airflow_hudi_maint.core.planning.expiry import ExpiryClock
from airflow_hudi_maint.core.planning.write_guard import has_lock_provider

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.document import JsonMapping
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.planning.expiry import ExpiryGuards


@dataclass(frozen=True, kw_only=True)
class PartitionDrop:
    """One application of an expiry plan: what is checked before, asked of Hudi, and seen on the timeline then."""

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
            lambda: self._check_still_expired(names),
            lambda: self._dropped_since(timeline),
            lambda: self._check_not_held(timeline, names),
            lambda: check_writable(self.workspace, timeline=timeline, ignore=self._leftovers(timeline)),
        )
        message = f"Dry run, nothing was dropped: {describe_expiry_plan(self.plan)}"
        return self.report(Outcome.DRY_RUN, message, partitions=self.plan.expired, warnings=warnings)

    def apply(self, job: JobControl) -> StepReported:
        """Drop what is not dropped yet, and report what the timeline shows afterwards."""
        planner.check_guards(self.plan, self.guards)
        table = self.workspace.table
        remaining, _ = self._remaining(table.timeline())
        if remaining:
            self._check_still_expired(remaining)
        # Planning again takes its time on a large table: what is decided now rests on a look after it.
        timeline = table.timeline()
        names, dropped = self._remaining(timeline)
        if not names:
            instants = tuple(sorted(set(dropped.values())))
            message = f"All {len(self.plan.expired)} partitions were already dropped at {', '.join(instants)}"
            return self.report(Outcome.ALREADY_DONE, message, partitions=self.plan.expired, instants=instants)
        self._check_not_held(timeline, names)
        view = table.view(timeline, partitions=names)
        table.check_partitions(names, known=view.partition_paths)
        files = {name: {one.file_id for one in view.latest_slices(name)} for name in names}
        leftovers = self._leftovers(timeline)
        entries = [entry for entry in self.plan.expired if entry.partition_path in files]
        step_job = StepJob(
            kind=JobKind.DELETE_PARTITIONS,
            arguments=self._arguments(names, timeline=timeline, leftovers=leftovers),
            completed=lambda fresh: self._are_dropped(files, drops=self._drops(fresh, before=timeline)),
            ignore=leftovers,
            totals=JobTotals(files=sum(one.data_file_count for one in entries), bytes=_bytes(entries)),
        )
        outcome, warnings = run_step_job(self.workspace, step_job, timeline=timeline, job=job)
        drops = self._drops(table.timeline(), before=timeline)
        instants = tuple(sorted({*dropped.values(), *(one.requested_time for one in drops)}))
        warnings += _beyond(drops, names=names)
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
            engine_seconds=outcome.seconds,
        )

    def _remaining(self, timeline: Timeline) -> tuple[tuple[str, ...], dict[str, str]]:
        """The partitions that are still to drop, and those that were dropped since the plan, with the instant."""
        dropped = self._dropped_since(timeline)
        names = (entry.partition_path for entry in self.plan.expired)
        return tuple(name for name in names if name not in dropped), dropped

    def _leftovers(self, timeline: Timeline) -> tuple[str, ...]:
        watermark = self.plan.basis.watermark
        return own_leftovers(self.workspace, timeline, watermark=watermark, retried=self.retried)

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
        guards = replace(self.guards, clock=ExpiryClock(self.plan.clock))
        fresh = make_expiry_plan(self.workspace, policies=self.plan.policies, now=self.now, guards=guards)
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

    def _drops(self, timeline: Timeline, *, before: Timeline) -> dict[Instant, CommitMetadata]:
        """The drops of partitions that completed after ``before``."""
        seen = before.completed_times
        new = [
            one for one in timeline.completed if one.action is Action.REPLACE_COMMIT and one.requested_time not in seen
        ]
        pairs = zip(new, self.workspace.table.commit_metadata_of(new), strict=True)
        return {instant: metadata for instant, metadata in pairs if metadata.operation == Operation.DELETE_PARTITION}

    def _are_dropped(self, files: Mapping[str, set[str]], *, drops: Mapping[Instant, CommitMetadata]) -> bool:
        """Whether the drops replaced every one of these file groups, by partition."""
        replaced: dict[str, set[str]] = {}
        for metadata in drops.values():
            for partition, file_ids in metadata.replaced.items():
                replaced.setdefault(partition, set()).update(file_ids)
        return all(file_ids <= replaced.get(partition, set()) for partition, file_ids in files.items())

    def _arguments(self, names: Sequence[str], *, timeline: Timeline, leftovers: Sequence[str]) -> JsonMapping:
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
            "timeline_folder": config.timeline_folder,
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
        """Write the report; ``partitions`` are those that it is about."""
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


def _beyond(drops: Mapping[Instant, CommitMetadata], *, names: Collection[str]) -> tuple[str, ...]:
    """Name what went although it was not asked for; nothing should."""
    gone = sorted({path for metadata in drops.values() for path in metadata.replaced} - set(names))
    return (f"dropped as well, and not by this plan: {', '.join(gone)}",) if gone else ()
