"""Run Hudi's cleaner as a step of its own, and say what it reclaimed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.maintenance.steps import (
    StepJob,
    StepReported,
    check_writable,
    objections,
    run_step_job,
    settle_previous,
    write_step_report,
)
from airflow_hudi_maint.core.model.commit import CleanMetadata
from airflow_hudi_maint.core.model.instant import Action, Instant
from airflow_hudi_maint.core.model.job import JobKind
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.cleaning import CleanerSettings, CleanPolicy, data_commits, earliest_retained

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.timeline import Timeline

_NOT_INCREMENTAL = {"hoodie.clean.incremental.enabled": "false", "hoodie.cleaner.incremental.mode": "false"}


def clean(
    workspace: Workspace,
    *,
    now: datetime,
    job: JobControl,
    settings: CleanerSettings | None = None,
    whole_table: bool = False,
    dry_run: bool = False,
) -> StepReported:
    """Remove the files that no retained commit needs, by Hudi's cleaner, and report the bytes that are free now.

    ``settings`` None takes the retention that the workspace's write options state, else Hudi's defaults. Hudi looks
    only at partitions that were written since the last clean, unless ``whole_table`` is asked for, as after the release
    of a savepoint. A second run has nothing to do; by commits or hours and without ``whole_table`` it starts no Spark.
    What is removed cannot be read by time travel,
    incremental queries or an undo any more.

    Raises PendingActionError for a live writer, and EngineError.
    """
    settle_previous(workspace, job)
    settings = settings or CleanerSettings.from_options(workspace.write_options)
    run = _Clean(
        workspace=workspace, settings=settings, whole_table=whole_table, timeline=workspace.table.timeline(), now=now
    )
    idle = run.nothing_to_do()
    if idle:
        return run.report(Outcome.NOTHING_TO_DO, f"Nothing to clean: {idle}")
    return run.rehearse() if dry_run else run.apply(job)


@dataclass(frozen=True, kw_only=True)
class _Clean:
    """One clean, seen from the timeline before it."""

    workspace: Workspace
    settings: CleanerSettings
    whole_table: bool
    timeline: Timeline
    now: datetime
    _bytes: dict[tuple[str, str], int] = field(default_factory=dict)

    def nothing_to_do(self) -> str | None:
        """Why no Spark has to start; None when the cleaner may find something, or has to finish something."""
        commits, is_pending = len(data_commits(self.timeline)), bool(self._cleans())
        if not commits and not is_pending:
            return "the table has no active commit"
        if is_pending or self.settings.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS:
            return None
        earliest = self._earliest()
        if earliest is None:
            return f"all {counted(commits, 'active commit')} are retained by {self.settings}"
        last = None if self.whole_table else self._last_clean()
        if last is not None and (last[1].earliest_retained or "") >= earliest:
            return f"clean {last[0].requested_time} already reached the oldest retained commit, {earliest}"
        return None

    def rehearse(self) -> StepReported:
        earliest = self._earliest()
        warnings = objections(lambda: check_writable(self.workspace, timeline=self.timeline, ignore=self._cleans()))
        kept = f"commits since {earliest} would be retained" if earliest else str(self.settings)
        return self.report(Outcome.DRY_RUN, f"Dry run, nothing was cleaned: {kept}", warnings=warnings)

    def apply(self, job: JobControl) -> StepReported:
        self._remember_bytes()
        options = {**self.settings.to_options(), **(_NOT_INCREMENTAL if self.whole_table else {})}
        step_job = StepJob(
            kind=JobKind.CLEAN,
            arguments={"options": options},
            completed=lambda fresh: bool(self._new(fresh)),
            ignore=self._cleans(),
            may_do_nothing=True,
        )
        outcome, warnings = run_step_job(self.workspace, step_job, timeline=self.timeline, job=job)
        cleans = {
            one: self.workspace.table.instants.clean_metadata(one) for one in self._new(self.workspace.table.timeline())
        }
        if not cleans:
            message = f"Nothing to clean: Hudi found no file that {self.settings} does not need"
            return self.report(Outcome.NOTHING_TO_DO, message, warnings=warnings, engine_seconds=outcome.seconds)
        return self._done(cleans, warnings=warnings, engine_seconds=outcome.seconds)

    def _done(
        self, cleans: Mapping[Instant, CleanMetadata], *, warnings: tuple[str, ...], engine_seconds: float
    ) -> StepReported:
        deleted = [file for metadata in cleans.values() for file in _files(metadata.deleted)]
        failed = [file for metadata in cleans.values() for file in _files(metadata.failed)]
        freed = sum(self._bytes.get(file, 0) for file in deleted)
        unknown = sum(1 for file in deleted if file not in self._bytes)
        if failed:
            warnings += (f"{counted(len(failed), 'file')} could not be deleted, {'/'.join(failed[0])!r} first",)
        if unknown:
            warnings += (f"the bytes of {counted(unknown, 'deleted file')} are not known and not counted",)
        retained = max((one.earliest_retained or "" for one in cleans.values()), default="")
        since = f"; commits since {retained} can still be read" if retained else ""
        return self.report(
            Outcome.DONE,
            f"Cleaned {counted(len(deleted), 'file')} and reclaimed {human_bytes(freed)}{since}",
            instants=tuple(one.requested_time for one in cleans),
            partitions=tuple(sorted({partition for partition, _ in deleted})),
            files=len(deleted),
            freed_bytes=freed,
            warnings=warnings,
            engine_seconds=engine_seconds,
        )

    def _earliest(self) -> str | None:
        return earliest_retained(self.timeline, self.settings, zone=self.workspace.table.zone, now=self.now)

    def _cleans(self) -> tuple[str, ...]:
        """Pending cleans: Hudi finishes them first, so they are no other writer of this step."""
        return tuple(one.requested_time for one in self.timeline.pending if one.action is Action.CLEAN)

    def _last_clean(self) -> tuple[Instant, CleanMetadata] | None:
        cleans = [one for one in self.timeline.completed if one.action is Action.CLEAN]
        return (cleans[-1], self.workspace.table.instants.clean_metadata(cleans[-1])) if cleans else None

    def _new(self, fresh: Timeline) -> tuple[Instant, ...]:
        seen = {one.requested_time for one in self.timeline.completed if one.action is Action.CLEAN}
        return tuple(one for one in fresh.completed if one.action is Action.CLEAN and one.requested_time not in seen)

    def _remember_bytes(self) -> None:
        """Note the size of every file: what the cleaner deletes tells only names."""
        for path, entries in self.workspace.table.listings():
            self._bytes.update({(path, entry.name): entry.bytes for entry in entries if not entry.is_directory})

    def report(
        self,
        outcome: Outcome,
        message: str,
        *,
        instants: tuple[str, ...] = (),
        partitions: tuple[str, ...] = (),
        files: int = 0,
        freed_bytes: int = 0,
        warnings: tuple[str, ...] = (),
        engine_seconds: float = 0.0,
    ) -> StepReported:
        """Write the report; files and bytes are those that were deleted."""
        return write_step_report(
            self.workspace,
            StepReport(
                step=Step.CLEAN,
                outcome=outcome,
                message=message,
                base_path=self.workspace.table.base_path,
                base_instant=self.timeline.last_completed_time,
                instants=instants,
                partitions=partitions,
                files_before=files,
                bytes_before=freed_bytes,
                engine_seconds=engine_seconds,
                warnings=warnings,
            ),
        )


def _files(by_partition: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """Partition path and file name of each file of a clean's metadata."""
    for partition, names in by_partition.items():
        for name in names:
            yield partition, name.rpartition("/")[2]
