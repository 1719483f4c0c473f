"""Runs on directories above and below: which are alive, and what one of them left half done.

Each run keeps its journal, trash and lease in the directory that it was started on, so a file may be in the swap of a
run on its own directory, on one above, or on one below the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from airflow_hudi_maint.core.errors import InvalidSettingError, PendingActionError, StorageAccessError, StorageError
from airflow_hudi_maint.core.maintenance.merge_workspace import MergeWorkspace
from airflow_hudi_maint.core.model.merge_plan import MERGE_STATE_FOLDER, MergePlan, PlannedDirectory
from airflow_hudi_maint.core.storage import merge_trash
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.merge_journal import Swap, open_swaps
from airflow_hudi_maint.core.storage.merge_lease import holding_lease, live_holder
from airflow_hudi_maint.core.storage.merge_swap import has_leftovers, recover
from airflow_hudi_maint.core.storage.plain_directory import PlainFolder, enclosing, walk


def refuse_neighbours(workspace: MergeWorkspace, *, directories: Sequence[str]) -> None:
    """Raise PendingActionError when a run above or below is alive, or left a swap half done in one of ``directories``.

    ``directories`` are paths below the root in which files will be moved.
    """
    storage = workspace.storage
    for parent, below in _above(workspace):
        try:
            holder, swaps = live_holder(parent), open_swaps(parent)
        except (FileNotFoundError, StorageAccessError, StorageError):
            continue
        if holder:
            raise PendingActionError(
                f"{parent.root} is being merged by {holder}, and {workspace.root} lies in it; wait for it"
            )
        touched = {_joined(below, one) for one in directories} | {below}
        if any(swap.directory in touched for swap in swaps):
            raise _half_done(parent.root)
    for path in _between(directories):
        holder = live_holder(storage, path=path)
        if holder:
            raise PendingActionError(f"{storage.join(path)} is being merged by {holder}; wait for it, or exclude it")
        if open_swaps(storage, path=path):
            raise _half_done(storage.join(path))


def swaps_over(workspace: MergeWorkspace, *, directory: str) -> tuple[Swap, ...]:
    """The open swaps that exchange files of a directory below the root, whichever run began them."""
    levels: list[tuple[Storage, str, str]] = [
        (parent, "", _joined(below, directory)) for parent, below in _above(workspace)
    ]
    levels += [(workspace.storage, path, directory[len(path) :].strip("/")) for path in ("", *_between([directory]))]
    found: list[Swap] = []
    for storage, path, below in levels:
        try:
            swaps = open_swaps(storage, path=path)
        except (StorageAccessError, StorageError):
            if storage is workspace.storage:
                raise
            continue
        found.extend(replace(swap, directory=directory) for swap in swaps if swap.directory == below)
    return tuple(found)


def trash_nearby(workspace: MergeWorkspace) -> list[str]:
    """The directories above and below whose own runs can be undone."""
    found: list[str] = []
    for parent, _ in _above(workspace):
        with suppress(FileNotFoundError, StorageAccessError, StorageError):
            if merge_trash.runs_in_trash(parent):
                found.append(parent.root)
    storage = workspace.storage
    below = (one.path for one in walk(storage) if MERGE_STATE_FOLDER in [entry[0] for entry in one.entries])
    return found + [storage.join(path) for path in below if merge_trash.runs_in_trash(storage, path=path)]


def is_untidy(storage: Storage, folder: PlainFolder, *, now: datetime, trash_days: int) -> bool:
    """Whether a run that was started on this very directory left something to end, or trash that is past its days."""
    if MERGE_STATE_FOLDER not in [entry[0] for entry in folder.entries]:  # a list: there may be 100,000
        return False
    return has_leftovers(storage, path=folder.path) or merge_trash.has_expired(
        storage, path=folder.path, now=now, trash_days=trash_days
    )


def tidy(
    workspace: MergeWorkspace, plan: MergePlan, *, run: str, now: datetime
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """End what runs on directories below left, and delete their trash that is past its days; the two in sentences.

    A directory on which a run is alive is passed over: that run sees to it.
    """
    recovered: list[str] = []
    purged: list[str] = []
    for one in plan.directories:
        if not one.is_untidy or not one.path:
            continue
        part = Storage.open(workspace.storage.join(one.path), storage_options=workspace.storage_options)
        try:
            with part, holding_lease(part, run=run):
                recovered.extend(f"{one.path}: {said}" for said in recover(part))
                gone = merge_trash.purge(part, now=now, trash_days=plan.settings.trash_days)
                purged.extend(f"{one.path}/{name}" for name in gone)
        except PendingActionError as error:
            workspace.log(f"{part.root} was not tidied up: {error}")
    return tuple(recovered), tuple(purged)


def has_work(directory: PlannedDirectory) -> bool:
    """Whether a planned directory has something to merge or to tidy up."""
    return bool(directory.groups) or directory.is_untidy


def _above(workspace: MergeWorkspace) -> Iterator[tuple[Storage, str]]:
    """The directories above that can be opened, each with the path of the root below it."""
    for parent, below in enclosing(workspace.root):
        try:
            yield Storage.open(parent, storage_options=workspace.storage_options), below
        except InvalidSettingError:
            continue


def _between(directories: Sequence[str]) -> list[str]:
    """Directories and those between them and the root, which is left out."""
    found: set[str] = set()
    for path in directories:
        while path and path not in found:
            found.add(path)
            path = path.rpartition("/")[0]  # noqa: PLW2901 one level up
    return sorted(found)


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _half_done(directory: str) -> PendingActionError:
    return PendingActionError(
        f"A merge of {directory} died half done; run one on that directory by itself, which finishes it first"
    )
