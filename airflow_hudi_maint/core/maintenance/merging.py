"""Merge the small files of a plain directory, undo a merge, and finish what a run that died left behind."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from airflow_hudi_maint.core.errors import (
    DocumentNotFoundError,
    HudiMaintError,
    InvalidSettingError,
    PendingActionError,
    PlanOutdatedError,
    SchemaConflictError,
)
from airflow_hudi_maint.core.maintenance.merge_groups import GroupMerger
from airflow_hudi_maint.core.maintenance.merge_neighbours import (
    has_work,
    refuse_neighbours,
    swaps_over,
    tidy,
    trash_nearby,
)
from airflow_hudi_maint.core.maintenance.merge_planning import (
    PlannedMerge,
    make_merge_plan,
    plan_merge,
    read_merge_plan,
    write_merge_plan,
)
from airflow_hudi_maint.core.maintenance.merge_workspace import MergeWorkspace
from airflow_hudi_maint.core.maintenance.merge_writers import SparkMerging, writer_for
from airflow_hudi_maint.core.model.merge_plan import MergePlan
from airflow_hudi_maint.core.model.merge_report import MergedGroup, MergeReport
from airflow_hudi_maint.core.model.merge_settings import MergeSettings
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.merge_kinds import is_hidden
from airflow_hudi_maint.core.storage import merge_trash
from airflow_hudi_maint.core.storage.merge_journal import current_names
from airflow_hudi_maint.core.storage.merge_lease import Lease, holding_lease
from airflow_hudi_maint.core.storage.merge_swap import has_leftovers, recover
from airflow_hudi_maint.core.storage.plain_directory import check_is_there

_LOOKS = 5
_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class MergeReported:
    """What a run did, and where that is written; ``path`` is None when it had nothing to do and wrote nothing.

    ``plan`` is what was planned, or carried out.
    """

    report: MergeReport
    path: str | None
    plan: MergePlan | None = None


def merge_small_files(
    workspace: MergeWorkspace,
    *,
    now: datetime,
    settings: MergeSettings | None = None,
    plan_path: str | None = None,
    planned: PlannedMerge | None = None,
    dry_run: bool = False,
    spark: SparkMerging | None = None,
) -> MergeReported:
    """Carry out a plan, or plan and carry that out, and report.

    First what an earlier run left is finished or rolled back, and trash that is past its days is deleted. Each group is
    written beside, verified, and swapped by a journal: see ``docs/merging.md``. A group whose inputs changed since the
    plan is left alone with a warning. A second run finds nothing to do and writes nothing. ``settings`` go with a new
    plan; one that is given, by its path or itself, has its own. ``spark`` has one Spark job write the files of the
    whole plan; all else is done here, and where nothing is to be written no job is started.

    Raises PendingActionError when another live run works on this directory, one above or one below, and the first error
    of a group (UnreadableFileError, SchemaConflictError, VerificationError, StorageError, or one that is a bug) after
    what was already begun has ended; its report is written all the same.
    """
    started = time.monotonic()
    if (plan_path or planned) and settings is not None:
        raise InvalidSettingError("settings were given beside a plan, which has its own; give one of the two")
    if dry_run:
        planned = planned or _planned(workspace, now=now, settings=settings, plan_path=plan_path)
        idle = _idle(workspace, planned.plan, Outcome.DRY_RUN, now=now, started=started)
        return replace(_reported(workspace, replace(idle, plan_path=planned.path)), plan=planned.plan)
    if spark is not None:
        spark.end_previous(log=workspace.log)
    is_given = bool(plan_path or planned)
    if not is_given and not has_leftovers(workspace.storage):
        plan = make_merge_plan(workspace, now=now, settings=settings)
        if not any(map(has_work, plan.directories)):
            idle = _idle(workspace, plan, Outcome.NOTHING_TO_DO, now=now, started=started)
            return MergeReported(report=idle, path=None)
        planned = write_merge_plan(workspace, plan)
    # Of two runs in one second, the later one is the last one to undo.
    run = merge_trash.run_name(now, suffix=f"{now.microsecond:06}{uuid.uuid4().hex[:8]}")
    with holding_lease(workspace.storage, run=run) as lease:
        recovered = recover(workspace.storage)
        planned = planned or _planned(workspace, now=now, settings=settings, plan_path=plan_path)
        recovered_below, purged = tidy(workspace, planned.plan, run=run, now=now)
        if recovered_below and not is_given:
            planned = plan_merge(workspace, now=now, settings=settings)
        refuse_neighbours(workspace, directories=sorted({group.directory for group in planned.plan.groups}))
        purged += merge_trash.purge(workspace.storage, now=now, trash_days=planned.plan.settings.trash_days)
        work = _Work(workspace, plan=planned.plan, lease=lease, run=run, spark=spark)
        work.do()
        if planned.plan.settings.trash_days == 0:
            purged += merge_trash.purge(workspace.storage, now=now, trash_days=0)
        report = replace(
            work.report(planned, now=now),
            recovered=recovered + recovered_below,
            purged=purged,
            seconds=time.monotonic() - started,
        )
        reported = replace(_reported(workspace, report), plan=planned.plan)
    if work.error is not None:
        if report.groups:
            workspace.log(
                f"Warning: what was merged before it failed stays so: {len(report.groups):,} of "
                f"{counted(len(planned.plan.groups), 'group')}; {reported.path} says which, and run {run} can be undone"
            )
        raise work.error
    return reported


def undo_merge(workspace: MergeWorkspace, *, now: datetime, run: str | None = None) -> MergeReported:
    """Put the inputs of a run back in their places and delete its merged files; ``run`` None is the last one.

    A second undo of one run raises DocumentNotFoundError, and so does an empty trash. Raises GuardTrippedError, with
    nothing moved, when a merged file changed since or is gone, or an input's place is taken; DirectoryNotFoundError
    without a directory; PendingActionError for another live run.
    """
    started = time.monotonic()
    storage = workspace.storage
    check_is_there(storage)
    with holding_lease(storage, run=merge_trash.run_name(now, suffix="undo")):
        recovered = recover(storage)
        kept = merge_trash.runs_in_trash(storage)
        if run is None and not kept:
            raise DocumentNotFoundError(
                f"{workspace.root} has no merge to undo: its trash is empty. Each directory that a run was started on "
                f"has a trash of its own, which keeps inputs for trash_days{_elsewhere(workspace)}"
            )
        run = run or kept[-1]
        swaps = merge_trash.swaps_of(storage, run=run)
        refuse_neighbours(workspace, directories=sorted({swap.directory for swap in swaps}))
        merge_trash.undo(storage, swaps=swaps)
        files = sum(1 for swap in swaps for one in swap.inputs if not one.is_checksum)
        message = (
            f"Undid run {run} of {workspace.root}: {counted(files, 'file')} are back, and "
            f"{counted(len(swaps), 'merged file')} deleted"
        )
        report = MergeReport(
            root=workspace.root,
            action="undo",
            outcome=Outcome.DONE,
            message=message,
            started_at=now,
            run=run,
            recovered=recovered,
            seconds=time.monotonic() - started,
        )
        return _reported(workspace, report)


def current_files(workspace: MergeWorkspace, *, directory: str = "") -> tuple[str, ...]:
    """The names in one directory that make up its rows, each row exactly once, also while a merge swaps files there.

    A plain listing may show a merged file and its inputs for a moment; this reads the journal before and after it.
    """
    storage = workspace.storage
    before = swaps_over(workspace, directory=directory)
    for _ in range(_LOOKS):
        entries, _links = storage.list_own(directory)
        after = swaps_over(workspace, directory=directory)
        if {(one.name, one.direction) for one in before} == {(one.name, one.direction) for one in after}:
            names = [one.name for one in entries if not one.is_directory and not is_hidden(one.name)]
            return current_names(names, directory=directory, swaps=after)
        before = after
    raise PendingActionError(f"{storage.join(directory)} is being merged faster than it can be listed; try again")


class _Work:
    """The groups of one run, some at a time."""

    def __init__(
        self, workspace: MergeWorkspace, *, plan: MergePlan, lease: Lease, run: str, spark: SparkMerging | None
    ) -> None:
        self._workspace, self._plan, self._run, self._groups = workspace, plan, run, plan.groups
        self._writer = writer_for(workspace, settings=plan.settings, groups=len(plan.groups), run=run, spark=spark)
        self._merger = GroupMerger(
            workspace=workspace, settings=plan.settings, writer=self._writer, lease=lease, run=run
        )
        self._warnings: list[str] = []
        self._done: list[MergedGroup] = []
        self.error: Exception | None = None

    def do(self) -> None:
        """Merge all groups; after the first error no other begins."""
        try:
            order = self._writer.prepare(self._groups, is_due=self._merger.is_due)
            workers = min(self._plan.settings.parallel_groups, len(order))
            if workers <= 1:
                results = [self._one(number) for number in order]
            else:
                with ThreadPoolExecutor(workers, thread_name_prefix="merge") as pool:
                    results = list(pool.map(self._one, order))
        except Exception as error:  # noqa: BLE001 raised on, after the report
            self._fail(error)
            results = []
        finally:
            self._writer.close()
        self._done = [one for one in results if one is not None]

    def report(self, planned: PlannedMerge, *, now: datetime) -> MergeReport:
        """What was done, with what was not."""
        done = self._done
        files, size = sum(one.input_files for one in done), sum(one.input_bytes for one in done)
        message = (
            f"Merged {counted(files, 'file')} ({human_bytes(size)}) of {self._workspace.root} into "
            f"{counted(len(done), 'file')} ({human_bytes(sum(one.output_bytes for one in done))})"
        )
        outcome = Outcome.DONE
        if self.error is not None:
            outcome, message = Outcome.FAILED, f"{message}, and then failed: {_said(self.error)}"
        elif not done:
            outcome, message = Outcome.NOTHING_TO_DO, f"Nothing was merged in {self._workspace.root}"
        return MergeReport(
            root=self._workspace.root,
            action="merge",
            outcome=outcome,
            message=message,
            started_at=now,
            run=self._run if done else None,
            engine=self._writer.name,
            plan_path=planned.path,
            groups=tuple(done),
            warnings=planned.plan.warnings + tuple(self._warnings),
        )

    def _one(self, number: int) -> MergedGroup | None:
        group = self._groups[number]
        if self._merger.stop.is_set():
            return None
        try:
            return self._told(self._merger.merge(group, number=number))
        except PlanOutdatedError as error:
            self._warn(f"{group.output_path} was not merged: {error}")
        except SchemaConflictError as error:
            if self._plan.settings.on_unreadable == "skip":
                self._warn(f"{group.output_path} was not merged: {error}")
            else:
                self._fail(error)
        except Exception as error:  # noqa: BLE001 raised on, after the report of what was merged before
            self._fail(error)
        return None

    def _told(self, done: MergedGroup) -> MergedGroup:
        """The same, after a warning of the inputs that it goes without."""
        if done.skipped:
            rest = f" and {len(done.skipped) - _SHOWN:,} more" if len(done.skipped) > _SHOWN else ""
            self._warn(
                f"Left where they were, since they cannot be merged: {', '.join(done.skipped[:_SHOWN])}{rest}; the log "
                "says why"
            )
        return done

    def _warn(self, message: str) -> None:
        self._warnings.append(message)
        self._workspace.log(message)

    def _fail(self, error: Exception) -> None:
        self._merger.stop.set()
        self.error = self.error or error


def _elsewhere(workspace: MergeWorkspace) -> str:
    """Where there is a merge to undo instead, as the end of a sentence."""
    found = trash_nearby(workspace)
    if not found:
        return ""
    rest = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    return f"; there are merges to undo on {', '.join(found[:_SHOWN])}{rest}"


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, HudiMaintError) else f"{type(error).__name__}: {error}"


def _planned(
    workspace: MergeWorkspace, *, now: datetime, settings: MergeSettings | None, plan_path: str | None
) -> PlannedMerge:
    if plan_path is None:
        return plan_merge(workspace, now=now, settings=settings)
    return PlannedMerge(plan=read_merge_plan(workspace, plan_path), path=plan_path)


def _idle(
    workspace: MergeWorkspace, plan: MergePlan, outcome: Outcome, *, now: datetime, started: float
) -> MergeReport:
    if outcome is Outcome.DRY_RUN:
        groups = plan.groups
        files = counted(sum(len(group.inputs) for group in groups), "file")
        message = f"Dry run: {files} would become {len(groups):,}; nothing was changed"
    else:
        message = f"Nothing to merge in {workspace.root}"
    return MergeReport(
        root=workspace.root,
        action="merge",
        outcome=outcome,
        message=message,
        started_at=now,
        warnings=plan.warnings,
        seconds=time.monotonic() - started,
    )


def _reported(workspace: MergeWorkspace, report: MergeReport) -> MergeReported:
    stem = f"{report.started_at.astimezone(UTC):%Y%m%dT%H%M%SZ}-{report.action}"
    path = workspace.documents.write_kept("reports", stem=stem, document=report.to_json())
    workspace.log(report.message)
    return MergeReported(report=report, path=path)
