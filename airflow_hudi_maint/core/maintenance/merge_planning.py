"""Plan the merges of small files in a plain directory, and count such files."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from airflow_hudi_maint.core.errors import InvalidSettingError, UnreadableFileError
from airflow_hudi_maint.core.maintenance.merge_neighbours import is_untidy
from airflow_hudi_maint.core.maintenance.merge_workspace import MergeWorkspace
from airflow_hudi_maint.core.model.merge_plan import LeftAlone, MergeGroup, MergePlan, PlannedDirectory
from airflow_hudi_maint.core.model.merge_report import SmallFileCounts
from airflow_hudi_maint.core.model.merge_settings import FileFormat, MergeSettings
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.merge_globs import PathFilter
from airflow_hudi_maint.core.planning.merge_kinds import is_hidden, kind_of
from airflow_hudi_maint.core.planning.merging import plan_directory, within_limits
from airflow_hudi_maint.core.storage.plain_directory import PlainFolder, walk

_SHOWN = 3
_MOMENT, _KIND = "%Y%m%dT%H%M%SZ", "merge"
_LEAST_PLAN_DAYS = 7


@dataclass(frozen=True, kw_only=True)
class PlannedMerge:
    """A plan, and where it was written."""

    plan: MergePlan
    path: str


def plan_merge(workspace: MergeWorkspace, *, now: datetime, settings: MergeSettings | None = None) -> PlannedMerge:
    """Make a plan by :func:`make_merge_plan`, and write it by :func:`write_merge_plan`."""
    return write_merge_plan(workspace, make_merge_plan(workspace, now=now, settings=settings))


def make_merge_plan(workspace: MergeWorkspace, *, now: datetime, settings: MergeSettings | None = None) -> MergePlan:
    """List the directory, group its small files and return the plan; no data file is opened but some CSV.

    The beginnings of three files of each group of CSV tell its dialect; a group whose dialect they leave open is left
    alone, with the setting to give. Formats go by extension here; the first bytes of each file are checked when it is
    merged. The same directory gives the same plan.

    Raises UnsupportedTableError when the directory is a table; a table below it is left alone by name.
    """
    settings = settings or MergeSettings()
    with _without_collector(workspace):
        return _plan(workspace, now=now, settings=settings)


@contextmanager
def _without_collector(workspace: MergeWorkspace) -> Iterator[None]:
    """Keep Python from searching the growing plan for cycles, which it has none of: a third of the time of a plan.

    On a disk alone, where this takes seconds; clients of remote storage leave cycles behind, for minutes.
    """
    if not (workspace.storage.is_local and gc.isenabled()):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def write_merge_plan(workspace: MergeWorkspace, plan: MergePlan) -> PlannedMerge:
    """Write a plan among the directory's documents, and delete those that are past their days: see :func:`_prune`."""
    stem = f"{plan.planned_at.astimezone(UTC):{_MOMENT}}-{_KIND}"
    path = workspace.documents.write_kept_text("plans", stem=stem, text="".join(plan.to_lines()))
    _prune(workspace, now=plan.planned_at, trash_days=plan.settings.trash_days)
    return PlannedMerge(plan=plan, path=path)


def _prune(workspace: MergeWorkspace, *, now: datetime, trash_days: int) -> None:
    """Delete the plans of merges that are older than what they merged stays in the trash, and than a week.

    One may list a hundred thousand files, so that the last 500, as of other documents, would be too many. A dry run may
    wait for somebody's approval, whatever becomes of the trash.
    """
    kept = timedelta(days=max(trash_days, _LEAST_PLAN_DAYS))
    for name in workspace.documents.names("plans"):
        moment, _, rest = name.partition("-")
        if not rest.startswith(f"{_KIND}-"):
            continue
        try:
            age = now - datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC)
        except ValueError:  # none of ours
            continue
        if age >= kept:
            workspace.documents.delete("plans", name=name)


def _plan(workspace: MergeWorkspace, *, now: datetime, settings: MergeSettings) -> MergePlan:
    folders = walk(workspace.storage, recursive=settings.recursive)
    planned = [_planned(workspace, folder, settings=settings, now=now) for folder in folders]
    directories = within_limits(planned, settings=settings)
    warnings: list[str] = []
    if any(group.kind.format is FileFormat.CSV for one in directories for group in one.groups):
        directories = tuple(_with_dialects(workspace, one, settings=settings, warnings=warnings) for one in directories)
    plan = MergePlan(
        root=workspace.root,
        planned_at=now,
        settings=settings,
        directories=directories,
        warnings=tuple(warnings),
    )
    workspace.log(describe_plan(plan))
    for warning in warnings:
        workspace.log(warning)
    return plan


def read_merge_plan(workspace: MergeWorkspace, path: str) -> MergePlan:
    """Read a plan that :func:`plan_merge` wrote.

    Raises DocumentNotFoundError, CorruptTableError, and InvalidSettingError for the plan of another directory.
    """
    plan = MergePlan.from_json(workspace.documents.read(path), name=path)
    if plan.root != workspace.root:
        raise InvalidSettingError(f"{path} is a plan for {plan.root}, not for {workspace.root}; plan this directory")
    return plan


def small_file_counts(workspace: MergeWorkspace, *, settings: MergeSettings | None = None) -> SmallFileCounts:
    """Count the files of known formats and how many of them are small, by listings alone; tables are left out."""
    settings = settings or MergeSettings()
    directories = files = small_files = total = small_total = 0
    for folder in walk(workspace.storage, recursive=settings.recursive):
        if folder.refusal:
            continue
        directories += 1
        for size in _sizes(folder, settings=settings):
            files, total = files + 1, total + size
            if size < settings.small_file_bytes:
                small_files, small_total = small_files + 1, small_total + size
    return SmallFileCounts(
        root=workspace.root,
        directories=directories,
        files=files,
        small_files=small_files,
        bytes=total,
        small_bytes=small_total,
    )


def describe_plan(plan: MergePlan) -> str:
    """Write a plan as a sentence."""
    groups = plan.groups
    inputs, size = sum(len(group.inputs) for group in groups), sum(group.input_bytes for group in groups)
    left = sum(one.files for directory in plan.directories for one in directory.left_alone)
    if not groups:
        return f"Nothing to merge in {plan.root}: {counted(left, 'file')} left alone"
    return (
        f"Planned for {plan.root}: {counted(inputs, 'file')} ({human_bytes(size)}) become "
        f"{counted(len(groups), 'file')}; {counted(left, 'file')} left alone"
    )


def _planned(
    workspace: MergeWorkspace, folder: PlainFolder, *, settings: MergeSettings, now: datetime
) -> PlannedDirectory:
    if folder.refusal:
        return PlannedDirectory(path=folder.path, reason=folder.refusal)
    planned = plan_directory(folder.path, entries=folder.entries, links=folder.links, settings=settings, now=now)
    if is_untidy(workspace.storage, folder, now=now, trash_days=settings.trash_days):
        planned = replace(planned, is_untidy=True)
    return planned if planned.groups else replace(planned, reason="nothing to merge")


def _with_dialects(
    workspace: MergeWorkspace, planned: PlannedDirectory, *, settings: MergeSettings, warnings: list[str]
) -> PlannedDirectory:
    """The same with what was detected in its CSV files; without the groups whose dialect cannot be told."""
    from airflow_hudi_maint.core.merging.csv_samples import detected_in

    groups: list[MergeGroup] = []
    left = list(planned.left_alone)
    for group in planned.groups:
        if group.kind.format is not FileFormat.CSV:
            groups.append(group)
            continue
        try:
            groups.append(replace(group, detected=detected_in(workspace.storage, group, settings=settings)))
        except (InvalidSettingError, UnreadableFileError) as error:
            names = tuple(one.name for one in group.inputs)
            left.append(LeftAlone(str(error), len(names), group.input_bytes, names[:_SHOWN]))
            warnings.append(
                f"{counted(len(names), 'CSV file')} in {workspace.storage.join(planned.path)} left alone: {error}"
            )
    return replace(planned, groups=tuple(groups), left_alone=tuple(left))


def _sizes(folder: PlainFolder, *, settings: MergeSettings) -> Iterator[int]:
    wanted = PathFilter(include=settings.include, exclude=settings.exclude)
    for name, is_directory, size, _ in folder.entries:
        if is_directory or is_hidden(name):
            continue
        kind = kind_of(name)
        if kind is None or (settings.formats and kind.format not in settings.formats):
            continue
        if not wanted.is_set or wanted.takes(f"{folder.path}/{name}" if folder.path else name):
            yield size
