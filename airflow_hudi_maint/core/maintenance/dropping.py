"""Drop the partitions of an expiry plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import TerminalError, TransientError, VerificationError
from airflow_hudi_maint.core.maintenance.drop_checks import DropChecks
from airflow_hudi_maint.core.maintenance.expiry_planning import describe_expiry_plan
from airflow_hudi_maint.core.maintenance.savepoints import SAVED_BY
from airflow_hudi_maint.core.maintenance.steps import (
    StepJob,
    StepReported,
    check_writable,
    objections,
    own_leftovers,
    run_step_job,
    write_step_report,
)
from airflow_hudi_maint.core.maintenance.table_arguments import writer_arguments
from airflow_hudi_maint.core.maintenance.undo import PartitionDropped, dropped_partitions, window_of
from airflow_hudi_maint.core.model.instant import WRITE_ACTIONS, Action
from airflow_hudi_maint.core.model.job import JobKind, JobTotals
from airflow_hudi_maint.core.model.plan import ExpiryEntry, ExpiryPlan
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning import expiry as planner
from airflow_hudi_maint.core.planning.cleaning import CleanerSettings, data_commits
from airflow_hudi_maint.core.planning.wording import some_of
from airflow_hudi_maint.core.planning.write_guard import has_lock_provider

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.document import JsonMapping
    from airflow_hudi_maint.core.model.instant import Instant
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.planning.expiry import ExpiryGuards


_BLOCKED_SAID = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSettings:
    """How partitions are dropped.

    ``savepoint`` keeps their files from the cleaner until the savepoint is released. ``cleaner`` is the retention of
    the table's cleaner, for saying how long an undo is possible; None takes what the workspace's write options state.
    ``leave_out_changed`` drops the rest of a plan of which some partitions were written since, would be kept by now or
    are held by a pending plan; otherwise such a plan is refused. ``approval`` says who approved the plan and when.
    """

    savepoint: bool = False
    cleaner: CleanerSettings | None = None
    leave_out_changed: bool = False
    approval: str | None = None

    def cleaner_of(self, workspace: Workspace) -> CleanerSettings:
        """The cleaner's retention, as far as it is known here."""
        return self.cleaner or CleanerSettings.from_options(workspace.write_options)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remaining:
    """What is still to drop, what was dropped already, and what is left out of the run, with the reason."""

    names: tuple[str, ...]
    dropped: Mapping[str, str]
    left_out: Mapping[str, str]

    def without(self, left_out: Mapping[str, str]) -> _Remaining:
        """The same with more that is left out."""
        names = tuple(name for name in self.names if name not in left_out)
        return replace(self, names=names, left_out={**self.left_out, **left_out})

    def said(self) -> tuple[str, ...]:
        """What is left out of the run, for the report: a line for each reason."""
        by_reason: dict[str, list[str]] = {}
        for name, why in self.left_out.items():
            by_reason.setdefault(why, []).append(name)
        return tuple(
            f"{counted(len(names), 'partition')} left out of the run ({some_of(names)}): {why}"
            for why, names in by_reason.items()
        )


@dataclass(frozen=True, kw_only=True)
class PartitionDrop:
    """One application of an expiry plan: what is checked before, asked of Hudi, and seen on the timeline then."""

    workspace: Workspace
    plan: ExpiryPlan
    path: str
    guards: ExpiryGuards
    now: datetime
    retried: bool
    settings: DropSettings

    @cached_property
    def checks(self) -> DropChecks:
        """The looks at the table before the drop."""
        return DropChecks(workspace=self.workspace, plan=self.plan, guards=self.guards, now=self.now)

    def rehearse(self) -> StepReported:
        """Report what would be dropped, and what a real run would be refused for now."""
        timeline = self.workspace.table.timeline()
        names = tuple(entry.partition_path for entry in self.plan.expired)
        run, left_out = _Remaining(names=names, dropped={}, left_out={}), dict[str, str]()

        def look() -> None:
            nonlocal run
            run = self._remaining(timeline)

        warnings = objections(
            lambda: planner.check_guards(self.plan, self.guards),
            look,
            lambda: left_out.update(self._judge(self.checks.held(timeline, run.names))),
            lambda: left_out.update(self._planned_again([one for one in run.names if one not in left_out])),
            lambda: check_writable(self.workspace, timeline=timeline, ignore=self._leftovers(timeline)),
        )
        run = run.without(left_out)
        message = f"Dry run, nothing was dropped: {describe_expiry_plan(self.plan)}"
        return self.report(
            Outcome.DRY_RUN, message, partitions=self._entries(run.names), warnings=(*warnings, *run.said())
        )

    def apply(self, job: JobControl) -> StepReported:
        """Drop what is not dropped yet, and report what the timeline shows afterwards."""
        planner.check_guards(self.plan, self.guards, path=self.path)
        table = self.workspace.table
        timeline = table.timeline()
        first = self._remaining(timeline)
        # Before planning again, which finds such partitions blocked, but not that waiting may help.
        held = self._judge(self.checks.held(timeline, first.names))
        stays = self._planned_again([name for name in first.names if name not in held])
        # Planning again takes its time on a large table: what is decided now rests on a look after it.
        timeline = table.timeline()
        found = self._remaining(timeline)
        run = found.without({**stays, **held, **self._judge(self.checks.held(timeline, found.names))})
        names = run.names
        if not names:
            return self._nothing_left(run, timeline=timeline)
        view = table.view(timeline, partitions=names, listing="directory")
        table.check_partitions(names, known=view.partition_paths)
        files = {name: {one.file_id for one in view.latest_slices(name)} for name in names}
        return self._drop(run, files=files, timeline=timeline, job=job)

    def _drop(
        self, run: _Remaining, *, files: Mapping[str, set[str]], timeline: Timeline, job: JobControl
    ) -> StepReported:
        table, leftovers = self.workspace.table, self._leftovers(timeline)
        entries = self._entries(run.names)
        step_job = StepJob(
            kind=JobKind.DELETE_PARTITIONS,
            arguments=self._arguments(run.names, timeline=timeline, leftovers=leftovers),
            completed=lambda fresh: self._are_dropped(files, drops=self._drops(fresh, before=timeline)),
            ignore=leftovers,
            totals=JobTotals(files=sum(one.data_file_count for one in entries), bytes=_bytes(entries)),
        )
        outcome, warnings = run_step_job(self.workspace, step_job, timeline=timeline, job=job)
        after = table.timeline()
        drops = self._drops(after, before=timeline)
        self._check_empty(run.names, timeline=after, drops=drops)
        instants = tuple(sorted({*run.dropped.values(), *(one.instant.requested_time for one in drops)}))
        gone = self._entries((*run.names, *run.dropped))
        message = (
            f"Dropped {counted(len(gone), 'partition')} at {', '.join(instants)}"
            f"{self._outlook(gone, first=drops[0].instant, timeline=after)}"
        )
        return self.report(
            Outcome.DONE,
            message,
            partitions=gone,
            instants=instants,
            warnings=(
                *warnings,
                *_beyond(drops, names=run.names),
                *self._new_rows_gone(drops, timeline=after, before=timeline),
                *run.said(),
            ),
            engine_seconds=outcome.seconds,
        )

    def _outlook(self, gone: Collection[ExpiryEntry], *, first: Instant, timeline: Timeline) -> str:
        """What comes after a drop: when its bytes are reclaimed, and until when it can be undone."""
        window = window_of(self.workspace.table, timeline, first, settings=self.settings.cleaner_of(self.workspace))
        return f"; {human_bytes(_bytes(gone))} will be reclaimed when Hudi's cleaner passes, and {window}"

    def _nothing_left(self, run: _Remaining, *, timeline: Timeline) -> StepReported:
        if not run.dropped:
            message = (
                f"Nothing was dropped: all {counted(len(run.left_out), 'partition')} of the plan had to be left out"
            )
            return self.report(Outcome.NOTHING_TO_DO, message, warnings=run.said())
        instants = tuple(sorted(set(run.dropped.values())))
        gone = self._entries(tuple(run.dropped))
        message = f"{counted(len(gone), 'partition')} dropped already at {', '.join(instants)}"
        first = next((one for one in timeline.completed if one.requested_time in instants), None)
        if first is not None:  # an old one is in the archive
            message += self._outlook(gone, first=first, timeline=timeline)
        return self.report(Outcome.ALREADY_DONE, message, partitions=gone, instants=instants, warnings=run.said())

    def _entries(self, names: Collection[str]) -> tuple[ExpiryEntry, ...]:
        wanted = set(names)
        return tuple(entry for entry in self.plan.expired if entry.partition_path in wanted)

    def _judge(self, reasons: Mapping[str, TerminalError | TransientError]) -> dict[str, str]:
        """Why partitions of the plan must stay: the first reason is raised, unless such partitions are left out."""
        if reasons and not self.settings.leave_out_changed:
            raise next(iter(reasons.values()))
        return {name: str(error) for name, error in reasons.items()}

    def _remaining(self, timeline: Timeline) -> _Remaining:
        since = self.checks.since(timeline)
        left_out = self._judge(since.changed)
        paths = (entry.partition_path for entry in self.plan.expired)
        names = tuple(path for path in paths if path not in since.dropped and path not in left_out)
        return _Remaining(names=names, dropped=since.dropped, left_out=left_out)

    def _leftovers(self, timeline: Timeline) -> tuple[str, ...]:
        watermark = self.plan.basis.watermark
        return own_leftovers(self.workspace, timeline, watermark=watermark, retried=self.retried)

    def _planned_again(self, names: Collection[str]) -> dict[str, str]:
        """Why some of these partitions stay by now.

        Raises GuardTrippedError when dropping the others has become more than the guards allow, and PlanOutdatedError
        when the table has other policies by now.
        """
        if not names:
            return {}
        self.checks.policies()
        again = self.checks.plan_again(names)
        stays = self._judge(again.kept)
        planner.check_guards(again.plan, self.guards, path=self.path)
        return stays

    def _drops(self, timeline: Timeline, *, before: Timeline) -> tuple[PartitionDropped, ...]:
        """The drops of partitions that completed after ``before``, oldest first."""
        return dropped_partitions(self.workspace.table, timeline, seen=before.completed_times)

    def _are_dropped(self, files: Mapping[str, set[str]], *, drops: Sequence[PartitionDropped]) -> bool:
        """Whether the drops replaced every one of these file groups, by partition."""
        replaced: dict[str, set[str]] = {}
        for drop in drops:
            for partition, file_ids in drop.replaced.items():
                replaced.setdefault(partition, set()).update(file_ids)
        return all(file_ids <= replaced.get(partition, set()) for partition, file_ids in files.items())

    def _check_empty(self, names: Sequence[str], *, timeline: Timeline, drops: Sequence[PartitionDropped]) -> None:
        """Raise VerificationError when a dropped partition still shows files that are older than the drop."""
        view = self.workspace.table.view(timeline, partitions=names, listing="directory")
        # Each by its own drop: what was written to one while others were still dropped is new data.
        last = {path: one.instant.requested_time for one in drops for path in one.replaced}
        for name in view.partition_paths:
            old = [one for one in view.latest_slices(name) if one.base_instant <= last.get(name, "")]
            if old:
                raise VerificationError(
                    f"Partition {name!r} was dropped at {last[name]}, and {counted(len(old), 'file group')} of before "
                    f"are still visible, {old[0].file_id} first: a writer was at work in it. Plan again to drop them"
                )

    def _new_rows_gone(
        self, drops: Sequence[PartitionDropped], *, timeline: Timeline, before: Timeline
    ) -> tuple[str, ...]:
        """Name the writes after ``before`` whose rows went with a drop.

        No lock provider prevents that: Hudi's check for conflicts takes a drop for a write that changes no file
        (``ConcurrentOperation``, in all releases up to 1.2.0), so that the drop wins, and says nothing.
        """
        seen = before.completed_times
        new = [one for one in timeline.completed if one.action in WRITE_ACTIONS and one.requested_time not in seen]
        gone = {(path, one) for drop in drops for path, file_ids in drop.replaced.items() for one in file_ids}
        found = []
        for instant, metadata in zip(new, self.workspace.table.commit_metadata_of(new), strict=True):
            lost = {path for path, stats in metadata.written.items() for one in stats if (path, one.file_id) in gone}
            if lost and not metadata.rewrites_only:
                found.append(
                    f"rows that {instant} wrote to {some_of(lost)} while the drop was on its way went with it; "
                    "run that write again if they are wanted"
                )
        return tuple(found)

    def _arguments(self, names: Sequence[str], *, timeline: Timeline, leftovers: Sequence[str]) -> JsonMapping:
        config = self.workspace.table.config
        shared = has_lock_provider(self.workspace.write_options)
        return {
            **writer_arguments(config),
            "partitions": list(names),
            "savepoint": self._savepoint(timeline),
            # Beside other writers only Hudi can tell, by their heartbeats, whose pending instant is dead.
            "leftovers": [] if shared else list(leftovers),
            "timeline_folder": config.timeline_folder,
            "known_pending": None if shared else [one.requested_time for one in timeline.pending],
        }

    def _savepoint(self, timeline: Timeline) -> JsonMapping | None:
        """The instant to save before the drop, where that was asked for and nobody has saved it yet."""
        commits = data_commits(timeline)
        if not self.settings.savepoint or not commits:
            return None
        last = commits[-1].requested_time
        if any(one.action is Action.SAVEPOINT and one.requested_time == last for one in timeline.completed):
            return None
        return {"instant": last, "user": SAVED_BY, "comments": f"before the drop of partitions by {self.path}"}

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
        blocked = _said_blocked(self.plan.blocked)
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
                approval=self.settings.approval,
            ),
        )


def _said_blocked(entries: Sequence[ExpiryEntry]) -> Iterator[str]:
    for one in entries[:_BLOCKED_SAID]:
        yield f"{one.partition_path} is not dropped: {one.reason}"
    rest = len(entries) - _BLOCKED_SAID
    if rest > 0:
        yield f"{rest:,} more partitions are blocked and not dropped; the plan has each with its reason"


def _bytes(entries: Collection[ExpiryEntry]) -> int:
    return sum(entry.total_bytes for entry in entries)


def _beyond(drops: Sequence[PartitionDropped], *, names: Collection[str]) -> tuple[str, ...]:
    """Name what went although it was not asked for; nothing should."""
    gone = sorted({path for drop in drops for path in drop.replaced} - set(names))
    return (f"dropped as well, and not by this plan: {', '.join(gone)}",) if gone else ()
