"""Runs on a tree and on its parts: what one of them left half done, another never takes for whole."""

from __future__ import annotations

import gc
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.errors import (
    DocumentNotFoundError,
    GuardTrippedError,
    PendingActionError,
    UnsupportedTableError,
    VerificationError,
)
from airflow_hudi_maint.core.maintenance import Chunk, chunks_of, merge_chunk, read_merge_plan, undo_plan
from airflow_hudi_maint.core.maintenance.merge_planning import plan_merge
from airflow_hudi_maint.core.maintenance.merge_workspace import MergeWorkspace, open_merge_workspace
from airflow_hudi_maint.core.maintenance.merging import current_files, merge_small_files, undo_merge
from airflow_hudi_maint.core.storage import merge_swap
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.merge_journal import Swap
from airflow_hudi_maint.core.storage.merge_lease import holding_lease
from tests.unit.core.maintenance.plain_files import NOW, SETTINGS, STATE, fill, merge, names, seen

_FILES = {"day=1/a.csv": b"1\n", "day=1/b.csv": b"2\n", "day=1/c.csv": b"3\n"}


class _DiedError(BaseException):
    """The process is gone."""


def _die_after_moves(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Die once ``count`` files were moved: the first move publishes, the others put inputs aside."""
    move = Storage.move
    left = [count]

    def dying(storage: Storage, source: str, target: str) -> None:
        if not left[0]:
            raise _DiedError
        left[0] -= 1
        move(storage, source, target)

    monkeypatch.setattr(Storage, "move", dying)


def _left_half_done(workspace: MergeWorkspace, *, moves: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        _die_after_moves(patched, moves)
        with pytest.raises(_DiedError):
            merge(workspace, replace(SETTINGS, parallel_groups=1))


def _rows(folder: Path) -> list[bytes]:
    return sorted(line for path in folder.glob("*.csv") for line in path.read_bytes().splitlines())


def _part(root: Path, name: str = "day=1") -> MergeWorkspace:
    return open_merge_workspace(str(root / name), log=lambda _: None)


def test_a_part_waits_for_what_a_run_on_the_tree_left_half_done(root: Path) -> None:
    """The merged file and two of its inputs are there: merged together, their rows would be doubled for good."""
    workspace = fill(root, _FILES)
    _left_half_done(workspace, moves=2)

    with pytest.raises(PendingActionError, match="died half done"):
        merge(_part(root))
    merge(workspace)
    merge(_part(root))

    assert _rows(root / "day=1") == [b"1", b"2", b"3"]


def test_a_part_that_is_untouched_by_a_dead_run_on_the_tree_is_merged(root: Path) -> None:
    workspace = fill(root, {**_FILES, "day=2/a.csv": b"4\n", "day=2/b.csv": b"5\n"})
    _left_half_done(workspace, moves=2)

    assert merge(_part(root, "day=2")).files_after == 1


def _run_chunks(workspace: MergeWorkspace, *, now: Any = NOW, settings: Any = SETTINGS) -> list[Any]:
    path = plan_merge(workspace, now=now, settings=settings).path
    return _carry_out(workspace, path, now=now)


def _carry_out(workspace: MergeWorkspace, path: str, *, now: Any = NOW) -> list[Any]:
    chunks = chunks_of(read_merge_plan(workspace, path), directories_per_chunk=1)
    return [one for chunk in chunks for one in merge_chunk(workspace, plan_path=path, chunk=chunk, now=now)]


_LARGE_WHEN_MERGED = replace(SETTINGS, small_file_bytes=3, target_file_bytes=10, parallel_groups=1)


@pytest.mark.parametrize("moves", [1, 2, 3, 4])
def test_what_a_chunk_left_half_done_is_ended_by_the_next_plan(root: Path, moves: int) -> None:
    """Also where too few small files are left to make a group of."""
    workspace = fill(root, _FILES)
    with pytest.MonkeyPatch.context() as patched, suppress(_DiedError):
        _die_after_moves(patched, moves)
        _run_chunks(workspace, settings=_LARGE_WHEN_MERGED)
    assert len(names(root / "day=1")) == 6 - moves  # the state folder, the merged file, and what is left of the inputs
    _run_chunks(workspace, settings=_LARGE_WHEN_MERGED)

    assert _rows(root / "day=1") == [b"1", b"2", b"3"]
    assert not list((root / "day=1" / STATE / "journal").glob("*.json"))


def test_what_a_chunk_left_half_done_is_ended_by_a_run_on_the_tree(root: Path) -> None:
    workspace = fill(root, _FILES)
    _left_half_done(_part(root), moves=3)
    merge(workspace)

    assert _rows(root / "day=1") == [b"1", b"2", b"3"]


@pytest.mark.parametrize("by", ["chunks", "a run on the tree"])
def test_the_trash_of_chunks_is_deleted_after_its_days(root: Path, by: str) -> None:
    """In a partition that nobody writes to any more, so that it has nothing to merge ever after."""
    workspace = fill(root, _FILES)
    _run_chunks(workspace)
    trash = root / "day=1" / STATE / "trash"
    assert [*trash.iterdir()]
    later = NOW + timedelta(days=8)
    if by == "a run on the tree":
        merge(workspace, now=later)
    else:
        _run_chunks(workspace, now=later)

    assert not [*trash.iterdir()]
    assert not chunks_of(plan_merge(workspace, now=later, settings=SETTINGS).plan, directories_per_chunk=1)


@pytest.mark.parametrize("by", ["tree", "part"])
def test_names_that_make_up_the_rows_are_told_whoever_merges(root: Path, by: str) -> None:
    """By a run on the directory, on one above, and to readers who opened either."""
    workspace = fill(root, _FILES)
    _left_half_done(workspace if by == "tree" else _part(root), moves=2)

    for found in (current_files(workspace, directory="day=1"), current_files(_part(root))):
        assert len(found) == 1
        assert "-merged-" in found[0]


def test_an_undo_waits_for_live_runs_above_and_below(root: Path) -> None:
    workspace = fill(root, _FILES)
    merge(workspace)
    with holding_lease(_part(root).storage, run="other"), pytest.raises(PendingActionError, match="is being merged by"):
        undo_merge(workspace, now=NOW)
    assert len(seen(root)) == 1
    undo_merge(workspace, now=NOW)
    part = _part(root)
    merge(part)
    with holding_lease(workspace.storage, run="other"), pytest.raises(PendingActionError, match="is being merged by"):
        undo_merge(part, now=NOW)


def test_a_link_to_a_directory_meets_the_run_on_what_it_lies_in(root: Path, tmp_path: Path) -> None:
    workspace = fill(root, _FILES)
    link = tmp_path / "current"
    link.symlink_to(root / "day=1")
    with holding_lease(workspace.storage, run="other"), pytest.raises(PendingActionError, match="is being merged by"):
        merge(open_merge_workspace(str(link), log=lambda _: None))


def test_a_link_into_a_table_is_refused(root: Path, tmp_path: Path) -> None:
    fill(root, _FILES)
    (root / ".hoodie").mkdir()
    (root / ".hoodie" / "hoodie.properties").write_bytes(b"")
    link = tmp_path / "current"
    link.symlink_to(root / "day=1")
    with pytest.raises(UnsupportedTableError, match="a Hudi table"):
        open_merge_workspace(str(link), log=lambda _: None)


def test_trash_that_a_swap_still_needs_outlives_its_days(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody deletes the merged file as it appears: its inputs are the only copy of the rows then."""
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    publish = merge_swap.publish

    def published_and_deleted(storage: Storage, swap: Swap) -> None:
        publish(storage, swap)
        (root / swap.output.name).unlink()

    monkeypatch.setattr(merge_swap, "publish", published_and_deleted)
    settings = replace(SETTINGS, trash_days=0)
    with pytest.raises(VerificationError, match="vanished right after"):
        merge(workspace, settings)
    kept = [path.read_bytes() for path in sorted((root / STATE / "trash").glob("*/*.trashed"))]

    assert kept == [b"1\n", b"2\n"]


def test_an_input_that_goes_while_it_is_read_is_a_warning(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a job that deletes old files does it; other groups are merged, and there is a report."""
    workspace = fill(root, {**_FILES, "day=2/a.csv": b"4\n", "day=2/b.csv": b"5\n"})
    read = Storage.read_bytes

    def vanishing(storage: Storage, path: str) -> bytes:
        if path == "day=1/a.csv":
            (root / "day=1/b.csv").unlink(missing_ok=True)
        return read(storage, path)

    monkeypatch.setattr(Storage, "read_bytes", vanishing)
    report = merge(workspace)

    assert [one.directory for one in report.groups] == ["day=2"]
    assert "day=1/b.csv is gone" in " ".join(report.warnings)
    assert names(root / "day=1") == ["a.csv", "c.csv"]


def test_an_input_that_goes_before_a_swap_began_does_not_come_back(root: Path) -> None:
    """The swap was written down, nothing was moved, and somebody deleted an input on purpose."""
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n", "c.csv": b"3\n"})
    _left_half_done(workspace, moves=0)
    (root / "b.csv").unlink()
    merge(workspace)

    assert _rows(root) == [b"1", b"3"]
    assert not list((root / STATE / "journal").glob("*.json"))


def test_chunks_that_are_given_twice_do_nothing_the_second_time(root: Path) -> None:
    workspace = fill(root, _FILES)
    path = plan_merge(workspace, now=NOW, settings=SETTINGS).path
    for _ in range(2):
        done = [*merge_chunk(workspace, plan_path=path, chunk=Chunk(number=0, of=1), now=NOW)]
    assert not done[0].report.groups
    assert _rows(root / "day=1") == [b"1", b"2", b"3"]
    assert merge_small_files(workspace, now=NOW, settings=SETTINGS).path is None


def test_planning_leaves_the_collector_of_python_as_it_was(root: Path) -> None:
    """It stands still while a plan of a disk is made, and goes on when that ends by an error, too."""
    workspace = fill(root, _FILES)
    plan_merge(workspace, now=NOW, settings=SETTINGS)
    assert gc.isenabled()
    (root / ".hoodie").mkdir()
    with pytest.raises(UnsupportedTableError):
        plan_merge(workspace, now=NOW, settings=SETTINGS)
    assert gc.isenabled()
    gc.disable()
    try:
        with pytest.raises(UnsupportedTableError):
            plan_merge(workspace, now=NOW, settings=SETTINGS)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_undo_in_the_wrong_place_says_where_there_is_one(root: Path) -> None:
    """A DAG merges each directory as a run of its own; a run by hand is of the directory that was named."""
    workspace = fill(root, {f"day={day}/{name}.csv": b"1\n" for day in range(5) for name in "ab"})
    merge(_part(root))
    merge(_part(root, "day=3"))
    with pytest.raises(DocumentNotFoundError, match=r"merges to undo on .*lake/day=1, .*lake/day=3$"):
        undo_merge(workspace, now=NOW)
    merge(workspace)
    with pytest.raises(DocumentNotFoundError, match=r"merges to undo on .*/lake$"):
        undo_merge(_part(root, "day=4"), now=NOW)


def test_the_last_of_two_runs_in_one_second_is_undone_first(root: Path) -> None:
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    now = NOW.replace(microsecond=0)
    runs = []
    for number in range(5):
        fill(root, {f"{number}/a.json": b"{}\n", f"{number}/b.json": b"{}\n"})
        runs.append(merge(workspace, now=now + timedelta(microseconds=number * 100)).run)

    undone = [undo_merge(workspace, now=now).report.run for _ in runs]
    assert undone == runs[::-1]


def test_what_of_a_plan_cannot_be_undone_holds_up_nothing_else(root: Path) -> None:
    """Another run on the same directory is none of the plan's, and stays."""
    workspace = fill(root, {f"day={day}/{name}.csv": b"1\n" for day in range(3) for name in "ab"})
    fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    before = seen(root)
    path = plan_merge(workspace, now=NOW, settings=SETTINGS).path
    _carry_out(workspace, path)
    fill(root, {"day=0/a.json": b"{}\n", "day=0/b.json": b"{}\n"})
    merge(_part(root, "day=0"))
    (merged,) = (root / "day=1").glob("*merged*")
    merged.write_bytes(merged.read_bytes() + b"9\n")

    undone = undo_plan(workspace, plan_path=path, now=NOW)
    assert [next(undone).report.root for _ in range(3)] == [str(root), f"{root}/day=0", f"{root}/day=2"]
    with pytest.raises(GuardTrippedError, match=f"day=1/{merged.name} was changed since"):
        next(undone)
    assert {one: data for one, data in seen(root).items() if one in before} == {
        one: data for one, data in before.items() if not one.startswith("day=1")
    }
    assert ["json"] == [one.partition(".")[2] for one in names(root / "day=0") if "merged" in one]


def test_a_plan_is_undone_that_was_carried_out_by_one_run(root: Path) -> None:
    workspace = fill(root, {f"day={day}/{name}.csv": b"1\n" for day in range(3) for name in "ab"})
    before = seen(root)
    path = plan_merge(workspace, now=NOW, settings=SETTINGS).path
    merge_small_files(workspace, now=NOW, plan_path=path)

    assert len([*undo_plan(workspace, plan_path=path, now=NOW)]) == 1
    assert before == seen(root)
    with pytest.raises(DocumentNotFoundError, match=r"Nothing of .* is in a trash"):
        next(undo_plan(workspace, plan_path=path, now=NOW))
