"""Runs that are undone, that meet, that died or whose storage fails: no row is lost, and what is left is ended."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.errors import (
    DocumentNotFoundError,
    GuardTrippedError,
    HudiMaintError,
    InvalidSettingError,
    PendingActionError,
    StorageAccessError,
    VerificationError,
)
from airflow_hudi_maint.core.maintenance.merge_planning import plan_merge
from airflow_hudi_maint.core.maintenance.merge_workspace import MergeWorkspace, open_merge_workspace
from airflow_hudi_maint.core.maintenance.merging import current_files, merge_small_files, undo_merge
from airflow_hudi_maint.core.storage import merge_swap
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.merge_journal import Swap, open_swaps
from airflow_hudi_maint.core.storage.merge_lease import LEASE_FOLDER, holding_lease
from airflow_hudi_maint.core.storage.merge_swap import begin
from tests.unit.core.maintenance.plain_files import NOW, SETTINGS, STATE, fill, merge, names, seen

# ------------------------------------------------------------------------------------------------ undo and trash


def test_a_run_is_undone_once(root: Path) -> None:
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    before = seen(root)
    run = merge(workspace).run
    report = undo_merge(workspace, now=NOW).report

    assert (before, run) == (seen(root), report.run)
    assert "2 files are back, and 1 merged file deleted" in report.message
    with pytest.raises(DocumentNotFoundError, match="nothing to undo; runs in the trash: none"):
        undo_merge(workspace, now=NOW, run=run)
    with pytest.raises(InvalidSettingError, match="is no run of a merge"):
        undo_merge(workspace, now=NOW, run="../plans")


def _changed(root: Path, path: Path) -> None:
    path.write_bytes(b"9\n")


def _gone(root: Path, path: Path) -> None:
    path.unlink()


def _taken(root: Path, path: Path) -> None:
    (root / "a.csv").write_bytes(b"9\n")


def _left(root: Path, path: Path) -> None:
    next((root / STATE).glob("trash/*/*.trashed")).unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [(_changed, "was changed since"), (_gone, "is gone"), (_taken, "taken by a newer file"), (_left, "left the trash")],
)
def test_an_undo_that_would_lose_something_moves_nothing(root: Path, change: Any, message: str) -> None:
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    merge(workspace)
    (name,) = seen(root)
    change(root, root / name)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and "/lease/" not in str(path)}

    with pytest.raises(GuardTrippedError, match=message):
        undo_merge(workspace, now=NOW)
    assert before.items() <= {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}.items()


def test_trash_is_kept_for_its_days_and_then_deleted(root: Path) -> None:
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    run = merge(workspace, replace(SETTINGS, trash_days=3)).run
    kept = merge(workspace, replace(SETTINGS, trash_days=1), now=NOW + timedelta(days=3, seconds=-1))
    gone = merge(workspace, replace(SETTINGS, trash_days=1), now=NOW + timedelta(days=3, seconds=1))

    assert ((), (run,)) == (kept.purged, gone.purged)
    assert [] == names(root / STATE / "trash")


def test_no_days_keep_no_trash(root: Path) -> None:
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    merge(workspace, replace(SETTINGS, trash_days=0))

    assert [] == names(root / STATE / "trash")


# ------------------------------------------------------------------------------------------------- runs at once


def test_two_runs_never_work_on_one_directory(root: Path) -> None:
    """Nor on one that lies in the other."""
    workspace = fill(root, {f"d/{name}.csv": b"1\n" for name in "ab"})
    below = open_merge_workspace(str(root / "d"), log=lambda _: None)
    with holding_lease(workspace.storage, run="live"):
        for one in (workspace, below):
            with pytest.raises(PendingActionError, match=f"{root} is being merged by run live .*process {os.getpid()}"):
                merge(one)
    with (
        holding_lease(below.storage, run="live"),
        pytest.raises(PendingActionError, match=f"{root}/d is being merged by run live"),
    ):
        merge(workspace)
    assert 2 == merge(workspace).files_before


def _lease(root: Path, **held: Any) -> None:
    content = {"run": "r", "token": "t", "host": "elsewhere", "process": 1, "heartbeat": 0.0, **held}
    path = root / LEASE_FOLDER / "0000000007.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def test_the_lease_of_a_dead_run_is_taken_over(root: Path) -> None:
    """One without a heartbeat, or one of a process of this machine that is no more; not one that beats."""
    import socket
    import time

    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    _lease(root, heartbeat=time.time() - 30)
    with pytest.raises(PendingActionError, match="process 1 on elsewhere"):
        merge(workspace)
    _lease(root, heartbeat=time.time() - 3600)
    assert 2 == merge(workspace).files_before
    (root / "c.csv").write_bytes(b"3\n")
    with holding_lease(workspace.storage, run="r"):
        (path,) = (root / LEASE_FOLDER).iterdir()
        machine = json.loads(path.read_text())["machine"]
    _lease(root, heartbeat=time.time(), host=socket.gethostname(), machine=machine, process=2**22 - 1)
    assert 2 == merge(workspace).files_before


def test_a_run_that_was_taken_for_dead_swaps_nothing_any_more(root: Path) -> None:
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    with holding_lease(workspace.storage, run="slow") as lease:
        lease.check()
        _lease(root)
        with pytest.raises(PendingActionError, match="another took over"):
            lease.check()


# ---------------------------------------------------------------------------------------- swaps that were left


def _half_done(root: Path) -> tuple[MergeWorkspace, Swap]:
    """A swap that is written down and not begun, with the merged file staged."""
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    found: list[Swap] = []

    class Died(BaseException):
        pass

    def begin_and_die(storage: Storage, swap: Swap) -> Swap:
        found.append(begin(storage, swap))
        raise Died

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("airflow_hudi_maint.core.maintenance.merge_groups.begin", begin_and_die)
        with pytest.raises(Died):
            merge(workspace)
    return workspace, found[0]


def test_a_swap_that_was_written_down_is_finished_by_the_next_run(root: Path) -> None:
    workspace, swap = _half_done(root)
    assert (swap,) == open_swaps(workspace.storage)
    assert ("a.csv", "b.csv") == current_files(workspace)
    report = merge(workspace)

    assert [b"1\n2\n"] == list(seen(root).values())
    assert ("Finished the swap of 2 files",) == tuple(one[:28] for one in report.recovered)


def test_by_the_journal_no_row_is_doubled_while_inputs_go(root: Path) -> None:
    workspace, swap = _half_done(root)
    merge_swap.publish(workspace.storage, swap)

    assert 3 == len(seen(root))
    assert (swap.output.name,) == current_files(workspace)


@pytest.mark.parametrize("begun", ["before", "after publishing", "after an input went"])
def test_a_swap_whose_input_changed_meanwhile_is_rolled_back(root: Path, begun: str) -> None:
    """What was appended is in no merged file, so the inputs are the truth."""
    workspace, swap = _half_done(root)
    if begun != "before":
        merge_swap.publish(workspace.storage, swap)
    if begun == "after an input went":
        workspace.storage.move("a.csv", swap.inputs[0].aside)
    with (root / "b.csv").open("ab") as file:
        file.write(b"9\n")
    os.utime(root / "b.csv", (1, 1))
    report = merge(workspace, replace(SETTINGS, min_input_files=9))

    assert {"a.csv": b"1\n", "b.csv": b"2\n9\n"} == seen(root)
    assert report.recovered[0].startswith("Rolled back the merge into a-merged-")
    assert [] == names(root / STATE / "staging")


def test_a_file_that_is_written_to_at_the_very_moment_it_goes_comes_back(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last look and before the rename: what was appended is in no merged file."""
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    real = Storage.move

    def move(self: Storage, source: str, target: str) -> None:
        if source == "b.csv":
            with (root / "b.csv").open("ab") as file:
                file.write(b"9\n")
        real(self, source, target)

    monkeypatch.setattr(Storage, "move", move)
    report = merge(workspace)

    assert {"a.csv": b"1\n", "b.csv": b"2\n9\n"} == seen(root)
    assert "changed while it was put aside; all is as it was" in report.warnings[0]


def test_a_new_file_under_the_name_of_one_that_went_is_nobodys_input(root: Path) -> None:
    workspace, swap = _half_done(root)
    merge_swap.publish(workspace.storage, swap)
    workspace.storage.move("a.csv", swap.inputs[0].aside)
    (root / "a.csv").write_bytes(b"new\n")
    merge(workspace, replace(SETTINGS, min_input_files=9))

    assert [b"1\n2\n", b"new\n"] == sorted(seen(root).values())


def test_a_merged_file_that_somebody_changed_stops_everything(root: Path) -> None:
    workspace, swap = _half_done(root)
    (root / swap.output.name).write_bytes(b"?")

    with pytest.raises(VerificationError, match="somebody changed it; nothing was moved"):
        merge(workspace)
    assert 3 == len(seen(root))


def test_an_input_that_is_nowhere_keeps_the_merged_file(root: Path) -> None:
    """It cannot be rolled back then, and says so."""
    workspace, swap = _half_done(root)
    merge_swap.publish(workspace.storage, swap)
    begin(workspace.storage, replace(swap, direction="back"))
    (root / "a.csv").unlink()

    with pytest.raises(VerificationError, match=r"a\.csv is neither in its place nor in the trash"):
        merge(workspace)
    assert b"1\n2\n" in seen(root).values()


# -------------------------------------------------------------------------------------------- storage that fails


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_said_to_be(root: Path) -> None:
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    root.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(StorageAccessError, match="is denied"):
            merge(workspace)
    finally:
        root.chmod(stat.S_IRWXU)
    assert 2 == len(seen(root))


def test_a_read_only_file_system_is_said_to_be(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a mount that is read-only answers, to whoever asks."""
    import errno

    from airflow_hudi_maint.core.storage import local_files

    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(local_files.os, "makedirs", refuse)
    with pytest.raises(StorageAccessError, match=f"Access to {root}/.* is denied: .*Read-only file system"):
        merge(workspace)


def test_a_disk_that_fills_up_is_an_error_that_leaves_everything(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    from airflow_hudi_maint.core.storage import local_files

    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    before = seen(root)
    planned = plan_merge(workspace, now=NOW, settings=SETTINGS)
    real = local_files.settle

    def full(output: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(local_files, "settle", full)
    with pytest.raises(HudiMaintError, match=r"staging/.*No space left on device"):
        merge_small_files(workspace, now=NOW, plan_path=planned.path)
    assert before == seen(root)
    assert [] == names(root / STATE / "staging")
    monkeypatch.setattr(local_files, "settle", real)
    assert 2 == merge(workspace).files_before


def test_a_merged_file_that_cannot_be_published_leaves_everything(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a partition that may only be read: the next run must not find a swap that can never end."""
    from airflow_hudi_maint.core.storage import local_files

    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    before = seen(root)

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(local_files, "move", refuse)
        with pytest.raises(StorageAccessError, match="is denied"):
            merge(workspace)
    assert before == seen(root)
    assert () == open_swaps(workspace.storage)
    assert 2 == merge(workspace).files_before
