"""What merges put aside: how long it is kept, and how a whole run is undone."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from airflow_hudi_maint.core.errors import (
    CorruptTableError,
    DocumentNotFoundError,
    GuardTrippedError,
    InvalidSettingError,
)
from airflow_hudi_maint.core.model.units import counted
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.merge_journal import TRASH_FOLDER, Swap, SwapFile, open_swaps, trash_folder
from airflow_hudi_maint.core.storage.merge_swap import begin, turn_back

_RUN_FORMAT = "%Y%m%dT%H%M%SZ"
_SHOWN = 3


def run_name(now: datetime, *, suffix: str) -> str:
    """Name a run by its moment in UTC, so that names sort by time.

    >>> run_name(datetime(2026, 11, 30, 1, 2, 3, tzinfo=UTC), suffix="ab12")
    '20261130T010203Z-ab12'
    """
    return f"{now.astimezone(UTC):{_RUN_FORMAT}}-{suffix}"


def run_moment(run: str) -> datetime:
    """The moment in a run's name; InvalidSettingError for what is no such name."""
    try:
        return datetime.strptime(run.partition("-")[0], _RUN_FORMAT).replace(tzinfo=UTC)
    except ValueError as error:
        raise InvalidSettingError(f"{run!r} is no run of a merge; expected a name as 20261130T010203Z-ab12") from error


def runs_in_trash(storage: Storage, *, path: str = "") -> tuple[str, ...]:
    """The runs on a directory below the root whose inputs are still there, oldest first."""
    try:
        found = storage.list(f"{path}/{TRASH_FOLDER}" if path else TRASH_FOLDER)
    except FileNotFoundError:
        return ()
    return tuple(sorted(entry.name for entry in found if entry.is_directory))


def swaps_of(storage: Storage, *, run: str) -> tuple[Swap, ...]:
    """The swaps of a run that can be undone; DocumentNotFoundError when there are none."""
    run_moment(run)
    folder = trash_folder(run)
    try:
        names = sorted(name for name in storage.names(folder) if name.endswith(".json") and not name.startswith("."))
    except FileNotFoundError:
        names = []
    if not names:
        kept = ", ".join(runs_in_trash(storage)[-_SHOWN:]) or "none"
        raise DocumentNotFoundError(f"{storage.join(folder)} has nothing to undo; runs in the trash: {kept}")
    return tuple(Swap.read(storage, f"{folder}/{name}") for name in names)


def undo(storage: Storage, *, swaps: tuple[Swap, ...]) -> None:
    """Put the inputs of a run back and delete its merged files, when all of it can be.

    Raises GuardTrippedError, before anything is moved, when a merged file changed or is gone, when an input's place is
    taken, or when an input is in the trash no more. A crash in between is finished by the next run.
    """
    problems = [problem for swap in swaps for problem in _problems(storage, swap)]
    if problems:
        shown = "; ".join(problems[:_SHOWN])
        rest = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise GuardTrippedError(f"Run {swaps[0].run} cannot be undone, and nothing was moved: {shown}{rest}")
    backwards = [begin(storage, replace(swap, direction="back")) for swap in swaps]
    for swap in backwards:
        turn_back(storage, swap)


def purge(storage: Storage, *, now: datetime, trash_days: int) -> tuple[str, ...]:
    """Delete what runs put aside ``trash_days`` ago or earlier, and return the runs' names.

    A run that was promised longer keeps its promise, and so does one with a swap that is still open: its trash may be
    the only copy. Manifests go first: what is without one cannot be undone.
    """
    purged: list[str] = []
    still_open = {swap.run for swap in open_swaps(storage)}
    for run in runs_in_trash(storage):
        if run in still_open or not _is_past(storage, run, path="", now=now, trash_days=trash_days):
            continue
        folder = trash_folder(run)
        for name in sorted(storage.names(folder), key=lambda name: not name.endswith(".json")):
            with suppress(FileNotFoundError):
                storage.delete(f"{folder}/{name}")
        storage.remove_folder(folder)
        purged.append(run)
    return tuple(purged)


def has_expired(storage: Storage, *, path: str, now: datetime, trash_days: int) -> bool:
    """Whether the trash of a directory below the root has what :func:`purge` would delete, or stumble over."""
    try:
        runs = runs_in_trash(storage, path=path)
        return any(_is_past(storage, run, path=path, now=now, trash_days=trash_days) for run in runs)
    except CorruptTableError:
        return True
    except FileNotFoundError:  # somebody else is at it
        return False


def _is_past(storage: Storage, run: str, *, path: str, now: datetime, trash_days: int) -> bool:
    """Whether a run was ``trash_days`` ago or earlier, and as many days as it was promised."""
    age = _age(run, now=now)
    if age is None or age < timedelta(days=trash_days):
        return False
    folder = f"{path}/{trash_folder(run)}" if path else trash_folder(run)
    manifest = next((name for name in storage.names(folder) if name.endswith(".json") and name[0] != "."), None)
    return manifest is None or age >= timedelta(days=Swap.read(storage, f"{folder}/{manifest}").trash_days)


def _age(run: str, *, now: datetime) -> timedelta | None:
    """How long ago a run was; None for a folder that is not ours."""
    try:
        return now - run_moment(run)
    except InvalidSettingError:
        return None


def _problems(storage: Storage, swap: Swap) -> list[str]:
    here = storage.look(swap.directory, [swap.output.name, *(one.name for one in swap.inputs)])
    trashed = storage.look(trash_folder(swap.run), [one.aside.rpartition("/")[2] for one in swap.inputs])
    output = here.get(swap.output.name)
    path = storage.join(swap.path_of(swap.output.name))
    found: list[str] = []
    if output is None:
        found.append(f"{path} is gone (a later run may have merged it: undo that one first)")
    elif output.bytes != swap.output.bytes or output.modified_ns != swap.output.modified_ns:
        found.append(f"{path} was changed since")
    missing = [one for one in swap.inputs if not one.is_checksum and one.aside.rpartition("/")[2] not in trashed]
    if missing:
        found.append(f"{counted(len(missing), 'input')} of {path} left the trash, {missing[0].name} first")
    taken = [one for one in swap.inputs if one.name in here]
    return found + [f"{_place(storage, swap, one)} is taken by a newer file" for one in taken]


def _place(storage: Storage, swap: Swap, one: SwapFile) -> str:
    return storage.join(swap.path_of(one.name))
