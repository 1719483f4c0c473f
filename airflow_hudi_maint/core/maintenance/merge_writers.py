"""Who writes the merged files of a run: this process, or one Spark job for all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from airflow_hudi_maint.core import errors
from airflow_hudi_maint.core.engines.base import run_job
from airflow_hudi_maint.core.engines.job_code import packed_core
from airflow_hudi_maint.core.engines.spark_settings import spark_path
from airflow_hudi_maint.core.errors import EngineError, HudiMaintError, InvalidSettingError, PlanOutdatedError
from airflow_hudi_maint.core.maintenance.attaching import POLL_SECONDS, end_previous
from airflow_hudi_maint.core.maintenance.merge_workspace import MergeWorkspace
from airflow_hudi_maint.core.merging.group_tasks import order_of
from airflow_hudi_maint.core.merging.group_writing import Written, write_group, written_from_json
from airflow_hudi_maint.core.model.job import JobKind, JobRequest, JobTotals
from airflow_hudi_maint.core.model.merge_plan import MergeGroup
from airflow_hudi_maint.core.model.merge_settings import MergeSettings
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.merge_tasks import merge_tasks
from airflow_hudi_maint.core.storage.merge_journal import STAGING_FOLDER, open_swaps

if TYPE_CHECKING:
    from airflow_hudi_maint.core.engines.base import Engine, JobOutcome
    from airflow_hudi_maint.core.maintenance.workspace import JobControl
    from airflow_hudi_maint.core.model.document import JsonMapping


class GroupWriter(Protocol):
    """Writes merged files beside their inputs; which of them are published is not its business."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def prepare(self, groups: Sequence[MergeGroup], *, is_due: Callable[[MergeGroup], bool]) -> Sequence[int]:
        """Do what is done for all groups at once, and return their numbers in the order in which to take them."""
        ...

    def staged_path(self, number: int) -> str:
        """Where the merged file of a group lies, or would lie, below the root."""
        ...

    def write(self, group: MergeGroup, *, number: int) -> Written:
        """Say what was written for a group, after writing it where that was not done yet."""
        ...

    def close(self) -> None:
        """Delete what lies beside and is of no more use."""
        ...


@dataclass(frozen=True, kw_only=True)
class EmbeddedWriter:
    """Writes each group in this process when its turn comes. Safe to call from several threads."""

    workspace: MergeWorkspace
    settings: MergeSettings
    run: str
    is_alone: bool = False
    name: str = "embedded"

    def prepare(
        self,
        groups: Sequence[MergeGroup],
        *,
        is_due: Callable[[MergeGroup], bool],  # noqa: ARG002 each is looked at in its turn
    ) -> Sequence[int]:
        """Leave all to :meth:`write`."""
        return range(len(groups))

    def staged_path(self, number: int) -> str:
        """Where the merged file of a group is written."""
        return f"{STAGING_FOLDER}/{self.run}-{number:06}.staged"

    def write(self, group: MergeGroup, *, number: int) -> Written:
        """Write a group; the errors are those of :func:`write_group`."""
        workspace = self.workspace
        return write_group(
            workspace.storage,
            group,
            settings=self.settings,
            output=self.staged_path(number),
            is_alone=self.is_alone,
            log=workspace.log,
        )

    def close(self) -> None:
        """Do nothing: each group saw to its own file."""


@dataclass(frozen=True, kw_only=True)
class SparkMerging:
    """That the groups of a run are written by a Spark job: ``engine`` makes the engine when one has to run."""

    engine: Callable[[], Engine]
    job: JobControl

    def end_previous(self, *, log: Callable[[str], None]) -> None:
        """End the job that an earlier try left behind, so that what it staged can be tidied up.

        Raises PendingActionError for one that cannot be seen from here.
        """
        if self.job.previous is not None:
            end_previous(self.engine(), self.job.previous, log=log)


@dataclass(frozen=True, kw_only=True)
class SparkWriter:
    """Has all groups written by one Spark job, and hands out its results."""

    workspace: MergeWorkspace
    settings: MergeSettings
    run: str
    spark: SparkMerging
    name: str = "spark"
    _rows: dict[int, Mapping[str, Any]] = field(default_factory=dict, init=False, repr=False)

    def prepare(self, groups: Sequence[MergeGroup], *, is_due: Callable[[MergeGroup], bool]) -> Sequence[int]:
        """Run the job for the groups that are due; without any, none is started. Groups that failed come last.

        Raises EngineError when the job fails or leaves no report, EngineKilledError when it runs too long,
        InvalidSettingError for storage that Spark's machines cannot reach.
        """
        due = {number: group for number, group in enumerate(groups) if is_due(group)}
        if due:
            outcome = self._run(due)
            if outcome.report is None or not outcome.report.ok:
                raise EngineError(_failure(outcome, root=self.workspace.root))
            self._rows.update({int(str(row["number"])): row for row in outcome.report.rows})
        return sorted(range(len(groups)), key=lambda number: "error_class" in self._rows.get(number, {}))

    def staged_path(self, number: int) -> str:
        """Where the attempt that counts wrote the merged file of a group."""
        return str(self._rows.get(number, {}).get("staged") or f"{STAGING_FOLDER}/{self.run}-{number:06}.staged")

    def write(self, group: MergeGroup, *, number: int) -> Written:
        """Return what the job wrote for a group; an error that it met there is raised here, with its own class."""
        row = self._rows.get(number)
        path = self.workspace.storage.join(group.output_path)
        if row is None:
            raise PlanOutdatedError(f"The inputs of {path} were not as planned when the Spark job began; run again")
        if "error_class" in row:
            raise _error_of(row, root=self.workspace.root)
        for note in row["written"].get("notes", ()):
            self.workspace.log(f"{path}: {note}")
        try:
            return written_from_json(row["written"], format_=group.kind.format)
        except TypeError as error:
            raise EngineError(
                f"What Spark says of {path} cannot be read ({error}): is its code of one release?"
            ) from error

    def close(self) -> None:
        """Delete the order, the code, and what attempts wrote that do not count; not what a swap still needs."""
        storage = self.workspace.storage
        with suppress(HudiMaintError, FileNotFoundError):  # the next run tidies up all the same
            needed = {swap.output.aside for swap in open_swaps(storage)}
            for entry in storage.list_own(STAGING_FOLDER)[0]:
                path = f"{STAGING_FOLDER}/{entry.name}"
                if entry.name.startswith(self.run) and path not in needed:
                    storage.delete(path)

    def _run(self, groups: Mapping[int, MergeGroup]) -> JobOutcome:
        workspace, job = self.workspace, self.spark.job
        size = sum(group.input_bytes for group in groups.values())
        options = _as_json(workspace.storage_options)
        spark_path(workspace.root)  # before anything is written: memory:// is of this process alone
        order, code = self._staged(groups)
        request = JobRequest(
            kind=JobKind.MERGE_FILES,
            base_path=workspace.root,
            table_name=workspace.root.rstrip("/").rpartition("/")[2] or "root",
            arguments={"root": workspace.root, "order": order, "code": spark_path(workspace.storage.join(code))},
            storage_options=options,
            totals=JobTotals(files=sum(len(group.inputs) for group in groups.values()), bytes=size),
            name=job.application_name or "",
        )
        return run_job(
            self.spark.engine(),
            request,
            on_submitted=job.on_submitted,
            log=workspace.log,
            interval_seconds=POLL_SECONDS,
            timeout_seconds=job.timeout_seconds,
        )

    def _staged(self, groups: Mapping[int, MergeGroup]) -> tuple[str, str]:
        """Put the order and the code beside the files to come, and return the paths of the two."""
        numbers, sizes = list(groups), [group.input_bytes for group in groups.values()]
        tasks = [
            [numbers[at] for at in task]
            for task in merge_tasks(sizes, target_file_bytes=self.settings.target_file_bytes)
        ]
        order, code = f"{STAGING_FOLDER}/{self.run}.order", f"{STAGING_FOLDER}/{self.run}.zip"
        storage = self.workspace.storage
        storage.write_atomic(order, order_of(groups, settings=self.settings, run=self.run, tasks=tasks))
        storage.write_atomic(code, packed_core())
        self.workspace.log(
            f"One Spark job for {counted(len(groups), 'group')} ({human_bytes(sum(sizes))}) in "
            f"{counted(len(tasks), 'task')}"
        )
        return order, code


def writer_for(
    workspace: MergeWorkspace, *, settings: MergeSettings, groups: int, run: str, spark: SparkMerging | None
) -> GroupWriter:
    """Return the writer of a run of so many groups; ``spark`` None is the one in this process."""
    if spark is None:
        is_alone = min(groups, settings.parallel_groups) <= 1
        return EmbeddedWriter(workspace=workspace, settings=settings, run=run, is_alone=is_alone)
    return SparkWriter(workspace=workspace, settings=settings, run=run, spark=spark)


def _as_json(options: Mapping[str, object]) -> JsonMapping:
    """The options as they go to the executors; one that is an object of this process cannot."""
    for name, value in options.items():
        try:
            json.dumps(value)
        except TypeError:
            raise InvalidSettingError(
                f"storage_options[{name!r}] is an object of this process, which Spark's machines cannot have; give "
                "texts and numbers, or leave it out where they have credentials of their own"
            ) from None
    loaded: JsonMapping = json.loads(json.dumps(dict(options)))
    return loaded


def _failure(outcome: JobOutcome, *, root: str) -> str:
    report = outcome.report
    said = str(outcome.status) if report is None else f"{report.error_class}: {report.error_message}"
    return (
        f"The Spark job that merges files of {root} failed ({said}); no file was moved, and what it staged is deleted. "
        f"Last lines of its log:\n{outcome.log_tail}"
    )


def _error_of(row: Mapping[str, Any], *, root: str) -> HudiMaintError:
    """The error of a task, for a group whose inputs were looked at here a moment ago and are there."""
    name, message = str(row["error_class"]), str(row.get("error_message"))
    if name == FileNotFoundError.__name__:
        return InvalidSettingError(
            f"Spark's machines do not find what is here ({message}): {root} has to be at the same path on each of "
            "them, or on storage that all of them reach"
        )
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, HudiMaintError):
        return kind(message)
    return EngineError(f"{name} in a task of Spark: {message}")
