"""Share the directories of one merge plan among workers, each directory a run of its own; and undo all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from airflow_hudi_maint.core.errors import DocumentNotFoundError, GuardTrippedError, InvalidSettingError
from airflow_hudi_maint.core.maintenance.merge_neighbours import has_work
from airflow_hudi_maint.core.maintenance.merge_planning import PlannedMerge, read_merge_plan
from airflow_hudi_maint.core.maintenance.merge_workspace import MergeWorkspace, open_merge_workspace
from airflow_hudi_maint.core.maintenance.merging import MergeReported, merge_small_files, undo_merge
from airflow_hudi_maint.core.model.merge_plan import MergePlan, PlannedDirectory
from airflow_hudi_maint.core.storage import merge_trash


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Every ``of``-th directory of a plan that has something to do, beginning with ``number``, from 0."""

    number: int
    of: int

    def __post_init__(self) -> None:
        if not 0 <= self.number < self.of:
            raise InvalidSettingError(f"chunk {self.number} of {self.of}: expected a number from 0 to {self.of - 1}")


def chunks_of(plan: MergePlan, *, directories_per_chunk: int) -> tuple[Chunk, ...]:
    """Split the directories of a plan that have something to merge or to tidy up; none gives no chunk."""
    if directories_per_chunk < 1:
        raise InvalidSettingError(f"directories_per_chunk={directories_per_chunk} is too small; expected at least 1")
    count = -(-sum(1 for one in plan.directories if has_work(one)) // directories_per_chunk)
    return tuple(Chunk(number=number, of=count) for number in range(count))


def merge_chunk(
    workspace: MergeWorkspace, *, plan_path: str, chunk: Chunk, now: datetime, documents_location: str | None = None
) -> Iterator[MergeReported]:
    """Carry out a chunk of a plan, a report for each directory.

    Each directory is opened as the root of a run of its own, so that journal, trash and undo are there, and chunks run
    side by side on different machines. Raises as :func:`merge_small_files` does, for the first directory that fails.
    """
    plan = read_merge_plan(workspace, plan_path)
    wanted = [one for one in plan.directories if has_work(one)][chunk.number :: chunk.of]
    for directory in wanted:
        part = _part(workspace, directory.path, documents_location=documents_location)
        own = _plan_of(part, plan=plan, directory=directory)
        yield merge_small_files(part, now=now, planned=PlannedMerge(plan=own, path=plan_path))


def undo_plan(
    workspace: MergeWorkspace, *, plan_path: str, now: datetime, documents_location: str | None = None
) -> Iterator[MergeReported]:
    """Undo what was merged by a plan, in chunks or at once: a report for each run that is undone, the last ones first.

    A run is one of the plan when it made a merged file that the plan names. One that cannot be undone holds up none of
    the others: its GuardTrippedError is raised behind them. DocumentNotFoundError when no trash has any of the plan.
    """
    plan = read_merge_plan(workspace, plan_path)
    outputs = {group.output_path for group in plan.groups}
    error: GuardTrippedError | None = None
    found = False
    for directory in ("", *dict.fromkeys(group.directory for group in plan.groups if group.directory)):
        for run in reversed(merge_trash.runs_in_trash(workspace.storage, path=directory)):
            part = _part(workspace, directory, documents_location=documents_location)
            if outputs.isdisjoint(_outputs(part, run=run, directory=directory)):
                continue
            found = True
            try:
                yield undo_merge(part, now=now, run=run)
            except GuardTrippedError as refused:
                workspace.log(f"Warning: {refused}")
                error = error or refused
    if error is not None:
        raise error
    if not found:
        raise DocumentNotFoundError(
            f"Nothing of {plan_path} is in a trash of {workspace.root}: it was not carried out, or undone before, or "
            "its trash is past trash_days"
        )


def _outputs(part: MergeWorkspace, *, run: str, directory: str) -> Iterator[str]:
    """The merged files of a run, by their paths below the root of the tree; none of one that died before its end."""
    try:
        swaps = merge_trash.swaps_of(part.storage, run=run)
    except DocumentNotFoundError:
        return
    for swap in swaps:
        path = swap.path_of(swap.output.name)
        yield f"{directory}/{path}" if directory else path


def _part(workspace: MergeWorkspace, directory: str, *, documents_location: str | None) -> MergeWorkspace:
    """One directory as the root of runs of its own."""
    if not directory:
        return workspace
    return open_merge_workspace(
        workspace.storage.join(directory),
        storage_options=workspace.storage_options or None,
        documents_location=documents_location,
        log=workspace.log,
    )


def _plan_of(part: MergeWorkspace, *, plan: MergePlan, directory: PlannedDirectory) -> MergePlan:
    """The plan of one directory, as if it had been planned by itself; it is written down as a part of the whole."""
    groups = tuple(replace(group, directory="") for group in directory.groups)
    return replace(
        plan,
        root=part.root,
        settings=replace(plan.settings, recursive=False),
        directories=(replace(directory, path="", groups=groups),),
        warnings=(),
    )
