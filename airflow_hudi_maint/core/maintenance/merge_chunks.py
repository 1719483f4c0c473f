"""Share the directories of one merge plan among workers, each directory a run of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.maintenance.merge_neighbours import has_work
from airflow_hudi_maint.core.maintenance.merge_planning import read_merge_plan
from airflow_hudi_maint.core.maintenance.merge_workspace import MergeWorkspace, open_merge_workspace
from airflow_hudi_maint.core.maintenance.merging import MergeReported, merge_small_files
from airflow_hudi_maint.core.model.merge_plan import MergePlan, PlannedDirectory


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
        part = open_merge_workspace(
            workspace.storage.join(directory.path) if directory.path else workspace.root,
            storage_options=workspace.storage_options or None,
            documents_location=documents_location,
            log=workspace.log,
        )
        yield merge_small_files(part, now=now, plan_path=_plan_of(part, plan=plan, directory=directory))


def _plan_of(part: MergeWorkspace, *, plan: MergePlan, directory: PlannedDirectory) -> str:
    """Write the plan of one directory among its own documents, and return its path."""
    groups = tuple(replace(group, directory="") for group in directory.groups)
    own = replace(
        plan,
        root=part.root,
        settings=replace(plan.settings, recursive=False),
        directories=(replace(directory, path="", groups=groups),),
        warnings=(),
    )
    stem = f"{plan.planned_at.astimezone(UTC):%Y%m%dT%H%M%SZ}-merge"
    return part.documents.write_kept_text("plans", stem=stem, text="".join(own.to_lines()))
