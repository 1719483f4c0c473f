"""The exchange of a group's inputs for its merged file, so that a crash anywhere loses and doubles nothing for good.

Each function looks at what is there and does what is missing, so it may be run again after a crash at any call. The
merged file is published first, then the inputs go: for that moment a listing shows both, never neither.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from airflow_hudi_maint.core.errors import HudiMaintError, VerificationError
from airflow_hudi_maint.core.storage.entries import Entry
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.merge_journal import STAGING_FOLDER, Swap, SwapFile, open_swaps, trash_folder

_log = logging.getLogger(__name__)
_PIECE_BYTES = 1 << 20


def begin(storage: Storage, swap: Swap) -> Swap:
    """Write the swap down; from here on it will be finished, by this run or by the next."""
    storage.write_atomic(swap.journal_path, swap.to_bytes())
    return swap


def finish(storage: Storage, swap: Swap) -> bool:
    """Carry a swap out in its direction, and say whether the merged file is what is there now.

    A swap forward whose inputs changed since they were merged, up to the moment when they went, turns back.
    """
    if swap.direction == "back" or not _can_go_forward(storage, swap):
        turn_back(storage, swap)
        return False
    try:
        publish(storage, swap)
    except HudiMaintError:
        if swap.output.name not in storage.look(swap.directory, [swap.output.name]):
            turn_back(storage, swap)  # nothing was moved yet, and a directory that cannot be written to stays so
        raise
    _to_trash(storage, swap)
    if _grew_on_the_way(storage, swap):
        turn_back(storage, swap)
        return False
    after = storage.look(swap.directory, [swap.output.name]).get(swap.output.name)
    if after is None:
        raise VerificationError(
            f"{storage.join(swap.path_of(swap.output.name))} vanished right after it was published; its inputs are in "
            f"{storage.join(trash_folder(swap.run))}, and {storage.join(swap.journal_path)} tells which; put them back"
        )
    done = replace(swap, output=replace(swap.output, modified_ns=after.modified_ns))
    storage.write_atomic(swap.manifest_path, done.to_bytes())
    _delete_if_there(storage, swap.journal_path)
    return True


def turn_back(storage: Storage, swap: Swap) -> None:
    """Put the inputs back and take the merged file away; what an input became meanwhile stays.

    A swap of which nothing was moved yet is forgotten, whatever became of its inputs. Raises VerificationError when an
    input can be found nowhere, or its place is taken: then nothing is deleted.
    """
    if swap.direction != "back":
        swap = replace(swap, direction="back")
        storage.write_atomic(swap.journal_path, swap.to_bytes())
    here, trashed = _here(storage, swap), _trashed(storage, swap)
    published = here.get(swap.output.name)
    if published is not None and published.bytes != swap.output.bytes:
        raise VerificationError(_changed(storage, swap, published))

    def restore(one: SwapFile) -> None:
        _restore(storage, swap, one, here=here.get(one.name), in_trash=_base(one.aside) in trashed)

    if published is not None or any(_base(one.aside) in trashed for one in swap.inputs):
        _each(storage, swap, restore)
    if published is not None:
        _delete_if_there(storage, swap.path_of(swap.output.name))
    _delete_if_there(storage, swap.output.aside)
    _delete_if_there(storage, swap.manifest_path)
    _delete_if_there(storage, swap.journal_path)
    storage.remove_folder(trash_folder(swap.run))


def recover(storage: Storage) -> tuple[str, ...]:
    """Finish or turn back what earlier runs left, and delete what they staged; say what was done, in sentences.

    To be called by the holder of the lease.
    """
    said: list[str] = []
    for swap in open_swaps(storage):
        forward = finish(storage, swap)
        files = len(swap.inputs)
        if forward:
            said.append(f"Finished the swap of {files} files for {swap.path_of(swap.output.name)} of run {swap.run}")
        else:
            said.append(f"Rolled back the merge into {swap.path_of(swap.output.name)} of run {swap.run}")
    for name in _entries(storage, STAGING_FOLDER):
        _delete_if_there(storage, f"{STAGING_FOLDER}/{name}")
    for sentence in said:
        _log.warning("%s", sentence)
    return tuple(said)


def _can_go_forward(storage: Storage, swap: Swap) -> bool:
    here = _here(storage, swap)
    published = here.get(swap.output.name)
    if published is not None and published.bytes != swap.output.bytes:
        raise VerificationError(_changed(storage, swap, published))
    if published is None and not storage.look(STAGING_FOLDER, [_base(swap.output.aside)]):
        return False
    for one in swap.inputs:
        entry = here.get(one.name)
        if entry is None and published is None and not one.is_checksum:
            _log.warning("%s was deleted before it was merged", storage.join(swap.path_of(one.name)))
            return False
        if entry is not None and not one.is_checksum and not _is_as_merged(entry, one):
            _log.warning("%s changed since it was merged", storage.join(swap.path_of(one.name)))
            trashed = _trashed(storage, swap)
            if _base(one.aside) not in trashed:
                return False
            # It went to the trash, and then a new file came under its name: that one is nobody's input.
    return True


def _changed(storage: Storage, swap: Swap, published: Entry) -> str:
    return (
        f"{storage.join(swap.path_of(swap.output.name))} has {published.bytes} bytes, and the merged file has "
        f"{swap.output.bytes}: somebody changed it; nothing was moved. Put that file elsewhere and run again"
    )


def publish(storage: Storage, swap: Swap) -> None:
    """The first half of a swap: give the merged file its name."""
    target, name = swap.path_of(swap.output.name), swap.output.name
    if storage.look(swap.directory, [name]):
        _delete_if_there(storage, swap.output.aside)  # an object store's copy that was not deleted yet
        return
    storage.move(swap.output.aside, target)


def _to_trash(storage: Storage, swap: Swap) -> None:
    here, trashed = _here(storage, swap), _trashed(storage, swap)

    def put_aside(one: SwapFile) -> None:
        _put_aside(storage, swap, one, here=here.get(one.name), in_trash=_base(one.aside) in trashed)

    _each(storage, swap, put_aside)


def _grew_on_the_way(storage: Storage, swap: Swap) -> bool:
    """Whether somebody wrote to an input after the last look and before it went: that is in no merged file."""
    trashed = _trashed(storage, swap)
    for one in swap.inputs:
        entry = trashed.get(_base(one.aside))
        # A rename keeps the time of writing, a copy has a new one.
        if (
            entry is None
            or one.is_checksum
            or (_is_as_merged(entry, one) if storage.is_local else entry.bytes == one.bytes)
        ):
            continue
        _log.warning("%s was written to while it was put aside", storage.join(swap.path_of(one.name)))
        return True
    return False


def _put_aside(storage: Storage, swap: Swap, one: SwapFile, *, here: Entry | None, in_trash: bool) -> None:
    path = swap.path_of(one.name)
    if here is None:
        if not in_trash and not one.is_checksum:
            _log.warning("%s was deleted by somebody else; its rows are in the merged file", storage.join(path))
    elif not in_trash:
        with suppress(FileNotFoundError):  # deleted by somebody else at this very moment
            storage.move(path, one.aside)
    elif _is_as_merged(here, one):
        _delete_if_there(storage, path)  # copied, and not deleted yet


def _each(storage: Storage, swap: Swap, act: Callable[[SwapFile], None]) -> None:
    """Do it for each input; where a move is two requests, many at a time, since readers may look meanwhile."""
    if storage.is_local:
        for one in swap.inputs:
            act(one)
    else:
        storage.concurrently(act, swap.inputs)


def _restore(storage: Storage, swap: Swap, one: SwapFile, *, here: Entry | None, in_trash: bool) -> None:
    path = swap.path_of(one.name)
    if here is None and in_trash:
        storage.move(one.aside, path)
    elif here is None and not one.is_checksum:
        raise VerificationError(
            f"{storage.join(path)} is neither in its place nor in the trash, so the merge into {swap.output.name} "
            f"cannot be rolled back; the merged file stays. Put that input back, or, when the merged file is right as "
            f"it is, delete {storage.join(swap.journal_path)}, and run again"
        )
    elif here is not None and in_trash:
        if _same_content(storage, path, one.aside):
            _delete_if_there(storage, one.aside)
        else:
            raise VerificationError(
                f"{storage.join(path)} came anew since it was merged, so the old one cannot be put back from "
                f"{storage.join(one.aside)}; move one of the two elsewhere and run again"
            )


def _is_as_merged(entry: Entry, one: SwapFile) -> bool:
    return entry.bytes == one.bytes and (one.modified_ns is None or entry.modified_ns == one.modified_ns)


def _same_content(storage: Storage, first: str, second: str) -> bool:
    with storage.open_input(first) as left, storage.open_input(second) as right:
        while True:
            ours, theirs = left.read(_PIECE_BYTES), right.read(_PIECE_BYTES)
            if ours != theirs:
                return False
            if not ours:
                return True


def _here(storage: Storage, swap: Swap) -> Mapping[str, Entry]:
    """The merged file and the inputs that are in the directory, by name."""
    return storage.look(swap.directory, [swap.output.name, *(one.name for one in swap.inputs)])


def _trashed(storage: Storage, swap: Swap) -> Mapping[str, Entry]:
    """The inputs that are in the trash, by their names there."""
    return storage.look(trash_folder(swap.run), [_base(one.aside) for one in swap.inputs])


def _entries(storage: Storage, folder: str) -> Mapping[str, Entry]:
    try:
        entries, _ = storage.list_own(folder)
    except FileNotFoundError:
        return {}
    return {entry.name: entry for entry in entries if not entry.is_directory}


def _delete_if_there(storage: Storage, path: str) -> None:
    with suppress(FileNotFoundError):
        storage.delete(path)


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def has_leftovers(storage: Storage, *, path: str = "") -> bool:
    """Whether an earlier run on a directory below the root left a swap half done, or something staged."""
    staging = f"{path}/{STAGING_FOLDER}" if path else STAGING_FOLDER
    return bool(open_swaps(storage, path=path) or _entries(storage, staging))
