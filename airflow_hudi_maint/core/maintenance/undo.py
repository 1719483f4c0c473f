"""Undo a drop of partitions while Hudi's cleaner has not passed: find it, see whether its files are there, restore."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final

from airflow_hudi_maint.core.errors import (
    PlanOutdatedError,
    TerminalError,
    UnknownPartitionError,
    VerificationError,
)
from airflow_hudi_maint.core.maintenance.steps import (
    StepJob,
    StepReported,
    check_writable,
    objections,
    run_step_job,
    settle_previous,
    write_step_report,
)
from airflow_hudi_maint.core.maintenance.table_arguments import writer_arguments
from airflow_hudi_maint.core.model.commit import CommitMetadata, Operation
from airflow_hudi_maint.core.model.instant import Action, Instant, instant_moment
from airflow_hudi_maint.core.model.job import JobKind
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import counted
from airflow_hudi_maint.core.planning.cleaning import CleanerSettings, UndoWindow, data_commits, undo_window
from airflow_hudi_maint.core.planning.wording import some_of

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.document import JsonMapping, JsonObject
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.storage.table import HudiTable

_FOLDER: Final = "restores"
_SURELY_DEAD: Final = timedelta(minutes=30)
"""After this time a write that was requested has noted what it does, unless it is dead."""
_TEXTUAL_KEY_GENERATORS = (
    "SimpleKeyGenerator",
    "ComplexKeyGenerator",
    "SimpleAvroKeyGenerator",
    "ComplexAvroKeyGenerator",
)


@dataclass(frozen=True, kw_only=True)
class PartitionDropped:
    """A completed drop on the active timeline: the file groups that it replaced, by partition."""

    instant: Instant
    replaced: Mapping[str, tuple[str, ...]]


def dropped_partitions(
    table: HudiTable, timeline: Timeline, *, seen: Collection[str] = ()
) -> tuple[PartitionDropped, ...]:
    """The drops of partitions on the active timeline, oldest first; ``seen`` are instants that do not count."""
    replacing = [
        one for one in timeline.completed if one.action is Action.REPLACE_COMMIT and one.requested_time not in seen
    ]
    pairs = zip(replacing, table.commit_metadata_of(replacing), strict=True)
    return tuple(
        PartitionDropped(instant=instant, replaced=metadata.replaced)
        for instant, metadata in pairs
        if metadata.drops_partitions
    )


def window_of(table: HudiTable, timeline: Timeline, drop: Instant, *, settings: CleanerSettings) -> UndoWindow:
    """How long a drop can still be undone."""
    moment = instant_moment(drop.requested_time, zone=table.zone)
    elsewhere = _elsewhere(table, timeline, drop)
    return undo_window(timeline, drop, settings=settings, moment=moment, elsewhere=elsewhere)


def _elsewhere(table: HudiTable, timeline: Timeline, drop: Instant) -> frozenset[str]:
    """Commits between the savepoint before a drop and the drop that left its partitions alone.

    They are other writers' beside the job, and the drops before this one of a plan of more than a thousand partitions.
    """
    before = [one for one in timeline.completed if one.requested_time < drop.requested_time]
    saved = max((one.requested_time for one in before if one.action is Action.SAVEPOINT), default=None)
    if saved is None:
        return frozenset()
    between = [one for one in data_commits(timeline) if saved < one.requested_time < drop.requested_time]
    (dropped,) = table.commit_metadata_of([drop], files=False)
    pairs = zip(between, table.commit_metadata_of(between, files=False), strict=True)
    return frozenset(
        one.requested_time for one, metadata in pairs if not metadata.touched_partitions & dropped.replaced.keys()
    )


def restore_partitions(
    workspace: Workspace,
    *,
    now: datetime,
    job: JobControl,
    drop: str | None = None,
    partitions: Sequence[str] = (),
    keep_new_rows: bool = False,
    dry_run: bool = False,
) -> StepReported:
    """Bring partitions back as they were before they were dropped, by reading as of then and inserting.

    ``drop`` is the requested time of the drop, None for the newest; ``partitions`` are those to bring back, all of the
    drop's when none is named. Rows get the commit time of the restore. A partition that has data again is refused,
    unless ``keep_new_rows``: then only rows whose keys are not there come back. A second run finds the commit of the
    first and does nothing.

    Raises UnknownPartitionError (nothing dropped it, or not on the active timeline), PlanOutdatedError (the cleaner has
    removed files, or the partition has data again), PendingActionError, EngineError, and VerificationError when the
    rows that are there afterwards are not those that were.
    """
    retried = settle_previous(workspace, job)
    timeline = workspace.table.timeline()
    dropped = _find(workspace.table, timeline, drop=drop, partitions=partitions)
    names = tuple(dict.fromkeys(partitions)) or tuple(sorted(dropped.replaced))
    run = _Restore(
        workspace=workspace, timeline=timeline, dropped=dropped, names=names, keep_new_rows=keep_new_rows, now=now
    )
    if not run.remaining:
        return run.already_done()
    return run.rehearse() if dry_run else run.apply(job, retried=retried)


def _find(table: HudiTable, timeline: Timeline, *, drop: str | None, partitions: Collection[str]) -> PartitionDropped:
    drops = dropped_partitions(table, timeline)
    if not drops:
        raise UnknownPartitionError(
            f"No drop of partitions is on the active timeline of {table.base_path}: nothing was dropped, or it is "
            "archived, and then its files are gone, too"
        )
    known = ", ".join(one.instant.requested_time for one in drops)
    wanted = set(partitions)
    fitting = [one for one in drops if drop in (None, one.instant.requested_time) and wanted <= one.replaced.keys()]
    if not fitting:
        what = f"drop {drop}" if drop else "a drop"
        of = f" of {some_of(sorted(wanted))}" if wanted else ""
        raise UnknownPartitionError(
            f"Table {table.base_path} has no {what}{of} on its active timeline; the drops there: {known}. "
            "Partitions of several drops are restored one drop at a time"
        )
    return fitting[-1]


@dataclass(frozen=True, kw_only=True)
class _Restore:
    """One restore of one drop, seen from the timeline before it."""

    workspace: Workspace
    timeline: Timeline
    dropped: PartitionDropped
    names: tuple[str, ...]
    keep_new_rows: bool
    now: datetime

    @property
    def drop(self) -> str:
        return self.dropped.instant.requested_time

    @cached_property
    def window(self) -> UndoWindow:
        settings = CleanerSettings.from_options(self.workspace.write_options)
        return window_of(self.workspace.table, self.timeline, self.dropped.instant, settings=settings)

    @cached_property
    def restored(self) -> dict[str, str]:
        """Partitions that a restore of ours brought back since the drop, with its instant."""
        found: dict[str, str] = {}
        for instant, metadata in self._later_then:
            if self._is_restore(metadata):
                found.update(dict.fromkeys(metadata.written, instant.requested_time))
            else:  # restored, and dropped again: not there any more
                found = {path: time for path, time in found.items() if path not in metadata.replaced}
        return found

    @property
    def remaining(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name not in self.restored)

    def already_done(self) -> StepReported:
        """Report what an earlier run did; warn where it left no report, and so did not end well."""
        instants = tuple(sorted({self.restored[name] for name in self.names}))
        warnings = tuple(
            f"no report says that the rows which came back at {one} were compared with those of before: the run that "
            "restored them failed, died, or was long ago. Count them"
            for one in instants
            if not self._is_reported(one)
        )
        message = f"Already restored at {', '.join(instants)}"
        return self.report(Outcome.ALREADY_DONE, message, instants=instants, warnings=warnings)

    def _is_reported(self, instant: str) -> bool:
        documents = self.workspace.documents
        names = [one for one in documents.names("reports") if one.startswith(f"{instant}-{Step.RESTORE}-")]
        found = [documents.read(documents.path("reports", name=name)) for name in names]
        return any(isinstance(one, Mapping) and one.get("outcome") == Outcome.DONE for one in found)

    def rehearse(self) -> StepReported:
        warnings = objections(self._check_files, lambda: check_writable(self.workspace, timeline=self.timeline))
        message = (
            f"Dry run, nothing was restored: {counted(len(self.remaining), 'partition')} as of {self.window.as_of}"
        )
        return self.report(Outcome.DRY_RUN, message, warnings=warnings)

    def apply(self, job: JobControl, *, retried: bool) -> StepReported:
        self._check_files()
        names, before = self.remaining, self._restores(self._later_then)
        step_job = StepJob(
            kind=JobKind.RESTORE_PARTITIONS,
            arguments=self._arguments(names),
            completed=lambda fresh: bool(self._restores(self._later(fresh)) - before),
            ignore=self._own_leftovers(retried=retried),
        )
        outcome, warnings = run_step_job(self.workspace, step_job, timeline=self.timeline, job=job)
        rows = () if outcome.report is None or not outcome.report.ok else outcome.report.rows
        if not rows:
            warnings += ("the job left no comparison of rows: compare them with the table's owner",)
        records = self._compare(rows)
        instants = tuple(sorted(self._restores(self._later(self.workspace.table.timeline())) - before))
        empty = [str(row["partition"]) for row in rows if not int(str(row["records_then"]))]
        if empty:
            warnings += (f"no row came back to {some_of(empty)}: there was none as of {self.window.as_of}",)
        counts = f" with {counted(records, 'record')}, by count and digest of keys the same as then" if rows else ""
        message = f"Restored {counted(len(names), 'partition')} as of {self.window.as_of}{counts}"
        return self.report(Outcome.DONE, message, instants=instants, warnings=warnings, engine_seconds=outcome.seconds)

    def _check_files(self) -> None:
        """Raise PlanOutdatedError where files are gone, or a partition has data again."""
        view = self.workspace.table.view(self.timeline, partitions=self.remaining, listing="directory")
        names = {path: [entry.name for entry in entries] for path, entries in view.listings.items()}
        gone = [
            path
            for path in self.remaining
            for file_id in self.dropped.replaced[path]
            if not any(file_id in name for name in names.get(path, ()))
        ]
        if gone:
            raise PlanOutdatedError(
                f"{counted(len(gone), 'file group')} of {some_of(sorted(set(gone)))} can no longer be restored: Hudi's "
                f"cleaner has removed the files since drop {self.drop}. Restore from a backup or load the data again"
            )
        filled = [path for path in view.partition_paths if view.latest_slices(path)]
        if filled and not self.keep_new_rows:
            raise PlanOutdatedError(
                f"{counted(len(filled), 'partition')} got new data since drop {self.drop}: {some_of(filled)}. "
                "keep_new_rows=True brings back the rows whose keys are not there; the new ones stay as they are"
            )

    def _compare(self, rows: Sequence[JsonMapping]) -> int:
        """The records that are back; raises VerificationError where count or digest differ from then."""
        wrong = [str(row["partition"]) for row in rows if not self._is_same(row)]
        if wrong:
            shown = [dict(row) for row in rows if str(row["partition"]) in wrong][:3]
            raise VerificationError(
                f"After the restore of {self.workspace.table.base_path}, rows of {some_of(wrong)} are not those of "
                f"{self.window.as_of}: {shown}. Roll the restore back with Hudi (rollback_to_instant), or drop these "
                "partitions again"
            )
        return sum(int(str(row["records_then"])) for row in rows)

    def _is_same(self, row: JsonMapping) -> bool:
        then, now = int(str(row["records_then"])), int(str(row["records_now"]))
        if self.keep_new_rows:
            return now >= then
        return then == now and row["digest_then"] == row["digest_now"]

    def _later(self, timeline: Timeline) -> tuple[tuple[Instant, CommitMetadata], ...]:
        """The commits after the drop that restored it or dropped partitions again."""
        later = [one for one in data_commits(timeline) if one.requested_time > self.drop]
        pairs = zip(later, self.workspace.table.commit_metadata_of(later), strict=True)
        return tuple(pair for pair in pairs if self._is_restore(pair[1]) or pair[1].drops_partitions)

    def _is_restore(self, metadata: CommitMetadata) -> bool:
        return metadata.restores == self.drop

    @cached_property
    def _later_then(self) -> tuple[tuple[Instant, CommitMetadata], ...]:
        """Those that were there before this restore."""
        return self._later(self.timeline)

    def _restores(self, later: Iterable[tuple[Instant, CommitMetadata]]) -> frozenset[str]:
        return frozenset(one.requested_time for one, metadata in later if self._is_restore(metadata))

    def _own_leftovers(self, *, retried: bool) -> tuple[str, ...]:
        """Writes that an earlier, ended try of this restore left pending: Hudi rolls them back before it writes.

        A restore does not begin beside a pending write, so one that was not pending when it first began is its own, or
        that of a writer who came between the tries, and whose write must not be rolled back under it. What tells them
        apart is the operation; where that is not noted yet, only what is so old that nobody can be at work is taken.
        """
        documents, name = self.workspace.documents, f"{self.drop}.json"
        now = [one.requested_time for one in self.timeline.pending]
        if not retried:
            # Not noted beside a live writer: the try that is refused for it must not forget what the one before noted.
            check_writable(self.workspace, timeline=self.timeline)
            document: JsonObject = {"kind": "asked-restore", "version": 1, "pending": list(now)}
            documents.write(_FOLDER, name=name, document=document)
            return ()
        try:
            noted = documents.read(documents.path(_FOLDER, name=name))
        except TerminalError:  # the first try died before it noted anything, and so before it began
            return ()
        then = noted.get("pending") if isinstance(noted, Mapping) else None
        write = Action.DELTA_COMMIT if self.workspace.table.config.is_merge_on_read else Action.COMMIT
        new = (one for one in self.timeline.pending if isinstance(then, list) and one.requested_time not in then)
        return tuple(one.requested_time for one in new if one.action is write and self._is_own(one))

    def _is_own(self, pending: Instant) -> bool:
        operation = self.workspace.table.requested_operation(pending)
        if operation is None:
            zone = self.workspace.table.zone
            return self.now - instant_moment(pending.requested_time, zone=zone) >= _SURELY_DEAD
        return operation == Operation.INSERT

    def _arguments(self, names: Sequence[str]) -> JsonMapping:
        return {
            **writer_arguments(self.workspace.table.config),
            "partitions": list(names),
            "partition_columns": list(_textual_columns(self.workspace.table, names)),
            "as_of": self.window.as_of,
            "marker": self.drop,
        }

    def report(
        self,
        outcome: Outcome,
        message: str,
        *,
        instants: tuple[str, ...] = (),
        warnings: tuple[str, ...] = (),
        engine_seconds: float = 0.0,
    ) -> StepReported:
        """Write the report."""
        return write_step_report(
            self.workspace,
            StepReport(
                step=Step.RESTORE,
                outcome=outcome,
                message=message,
                base_path=self.workspace.table.base_path,
                base_instant=self.timeline.last_completed_time,
                instants=instants,
                partitions=self.names,
                engine_seconds=engine_seconds,
                warnings=warnings,
            ),
        )


def _textual_columns(table: HudiTable, names: Sequence[str]) -> tuple[str, ...]:
    """The partition columns, where each level of these paths surely is a column's value as text; else none.

    With them Spark opens no other partition's files; without, it finds the rows by their partition path alone.
    """
    config = table.config
    generator = config.key_generator_class
    plain = generator is None or generator.endswith(_TEXTUAL_KEY_GENERATORS)
    depth = len(config.partitions.fields)
    fits = all(len(name.split("/")) == depth and "%" not in name and "__HIVE_DEFAULT" not in name for name in names)
    return config.partitions.fields if plain and fits else ()
