"""Who comes between a look at the table and a plan of ours on its timeline, and makers that die on the way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fsspec
import pytest

from airflow_hudi_maint.core.errors import PendingActionError, StorageError
from airflow_hudi_maint.core.maintenance import Workspace
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.model.scheduler import PlanOwner
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.unit.core.maintenance.native import (
    LOCKED,
    OWNER,
    names_of,
    no_engine,
    planned_of,
    plans_of,
    put_on_timeline,
    schedule,
    workspace_of,
)
from tests.unit.core.maintenance.six_days import DAYS, NOW, six_days
from tests.unit.core.storage.builders import TableBuilder, at


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return six_days(tmp_path)


def test_a_commit_that_came_after_planning_is_seen(table: TableBuilder) -> None:
    """One that updated a chosen file stops the plan; one that only added others does not."""
    workspace = workspace_of(table)
    planned = planned_of(workspace)
    table.commit(at(20), {DAYS[0]: [("new-20-0", 100)]})
    assert Outcome.DONE is put_on_timeline(workspace, planned).report.outcome

    other = TableBuilder(base_path=f"{table.base_path}2")
    for number in (1, 2):
        other.commit(at(number), {DAYS[0]: [(f"f{number}-0", 100)]})
    workspace = workspace_of(other)
    planned = planned_of(workspace)
    other.commit(at(20), {DAYS[0]: [("f1-0", 120)]})
    names = names_of(other)
    with pytest.raises(PendingActionError, match=r"f1-0 .* has the base file .*; plan again"):
        put_on_timeline(workspace, planned)
    assert names == names_of(other)


def test_a_plan_of_others_that_came_after_planning_is_seen(table: TableBuilder) -> None:
    """It holds file groups that ours would, and is named."""
    workspace = workspace_of(table)
    planned = planned_of(workspace)
    other = schedule(workspace_of(table)).report.instants[0]

    with pytest.raises(PendingActionError, match=other):
        put_on_timeline(workspace, planned)


class Intruder:
    """Puts files on the timeline right after a plan was written there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, workspace: Workspace, table: TableBuilder) -> None:
        """Watch the storage of this workspace."""
        self.plans: list[str] = []
        self.table = table
        write_new = workspace.table.storage.write_new

        def write(path: str, data: bytes) -> bool:
            written = write_new(path, data)
            if path.endswith(".requested"):
                self.plans.append(path)
                self.comes(len(self.plans))
            return written

        monkeypatch.setattr(workspace.table.storage, "write_new", write)

    def comes(self, number: int) -> None:
        """Commit to another partition each time."""
        self.table.commit(at(30 + number), {"day=2026-12-24": [(f"x{number}-0", 100)]})


def test_a_plan_is_withdrawn_when_somebody_came_meanwhile(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was written: it had not seen the plan. After a bounded number of tries nothing is left of ours."""
    workspace = workspace_of(table)
    planned = planned_of(workspace)
    monkeypatch.setattr("airflow_hudi_maint.core.maintenance.native_scheduling._PAUSE_SECONDS", 0.0)
    intruder = Intruder(monkeypatch, workspace, table)

    with pytest.raises(PendingActionError, match=f"4 times the instant {at(34)}"):
        put_on_timeline(workspace, planned)
    assert 4 == len(set(intruder.plans))
    assert not any(name.endswith(".clustering.requested") for name in names_of(table))


def test_a_plan_is_written_again_when_the_other_is_done(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second try looks at the inputs again, and stands."""
    monkeypatch.setattr("airflow_hudi_maint.core.maintenance.native_scheduling._PAUSE_SECONDS", 0.0)
    workspace = workspace_of(table)
    planned = planned_of(workspace)

    class Once(Intruder):
        def comes(self, number: int) -> None:
            if number == 1:
                super().comes(number)

    intruder = Once(monkeypatch, workspace, table)
    report = put_on_timeline(workspace, planned).report

    assert (Outcome.DONE, 2) == (report.outcome, len(intruder.plans))
    assert [report.instants[0]] == [one.requested_time for one in workspace.table.timeline().pending]


def test_a_lock_that_was_lost_meanwhile_withdraws_the_plan(
    table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had expired and another took it: whoever that is may be writing."""
    monkeypatch.setattr("airflow_hudi_maint.core.maintenance.native_scheduling._PAUSE_SECONDS", 0.0)
    workspace = workspace_of(table, write_options={**LOCKED, "hoodie.write.lock.filesystem.expire": "1"})
    planned = planned_of(workspace)

    class Thief(Intruder):
        def comes(self, number: int) -> None:
            if number == 1:
                self.table.put(".hoodie/lock", b"stolen")
                path = Path(self.table.base_path) / ".hoodie" / "lock"
                old = time.time() - 3600
                os.utime(path, (old, old))

    thief = Thief(monkeypatch, workspace, table)

    assert Outcome.DONE is put_on_timeline(workspace, planned).report.outcome
    assert 2 == len(thief.plans)


def _leave(table: TableBuilder, *, owner: PlanOwner | None, now: datetime = NOW) -> str:
    """A plan on the timeline whose maker died before it noted that."""
    workspace = workspace_of(table)
    (instant,) = schedule(workspace, owner=owner, now=now).report.instants
    workspace.documents.delete("scheduled", name=f"{instant}.json")
    return instant


def test_a_plan_that_its_maker_did_not_note_is_returned_to_its_next_try(table: TableBuilder) -> None:
    """It names the task: nothing is made twice."""
    instant = _leave(table, owner=OWNER)
    report = schedule(workspace_of(table)).report

    assert (Outcome.ALREADY_DONE, (instant,)) == (report.outcome, report.instants)


def test_an_unnoted_plan_whose_files_changed_is_withdrawn_and_made_anew(table: TableBuilder) -> None:
    """Its maker did not live to look again, so the next try does."""
    instant = _leave(table, owner=OWNER)
    table.commit(at(20), {DAYS[0]: [(f"{DAYS[0]}-1-0", 120)]})
    report = schedule(workspace_of(table), now=NOW + timedelta(seconds=1)).report

    assert Outcome.DONE is report.outcome
    assert instant not in report.instants
    assert [*report.instants] == [one.requested_time for one in workspace_of(table).table.timeline().pending]


def test_a_plan_that_another_task_just_wrote_is_left_to_it(table: TableBuilder) -> None:
    """It may still be withdrawn by its maker; ten minutes later it counts as left behind, and is taken over."""
    instant = _leave(table, owner=OWNER)
    other = replace(OWNER, run_id="r2")
    soon = schedule(workspace_of(table), owner=other, now=NOW + timedelta(minutes=9)).report
    late = schedule(workspace_of(table), owner=other, now=NOW + timedelta(minutes=11)).report

    assert (Outcome.NOTHING_TO_DO, ()) == (soon.outcome, soon.instants)
    assert (Outcome.ALREADY_DONE, (instant,)) == (late.outcome, late.instants)


class KilledError(BaseException):
    """The process ends here; nothing runs after it."""


VERBS = ("list", "names", "list_many", "read_bytes", "read_many", "write_new", "write_atomic", "delete")
"""Every verb of storage that scheduling uses; one that uses another is counted once more, which does no harm."""


def _counting(
    monkeypatch: pytest.MonkeyPatch, storage: Storage, act: Callable[[int, Callable[[], object]], object]
) -> Iterator[int]:
    """Let ``act`` decide about each call; gives how many there were."""
    made = 0

    def watched(call: Callable[..., object]) -> Callable[..., object]:
        def one(*arguments: object) -> object:
            nonlocal made
            made += 1
            return act(made, lambda: call(*arguments))

        return one

    for verb in VERBS:
        monkeypatch.setattr(storage, verb, watched(getattr(storage, verb)))
    while True:
        yield made


def _in_memory(tmp_path: Path) -> str:
    return f"{tmp_path.parent.name}-{tmp_path.name}/trips"


def _root(place: str, tmp_path: Path) -> str:
    return str(tmp_path / "trips") if place == "file" else f"memory://{_in_memory(tmp_path)}"


def _open(place: str, tmp_path: Path, *, write_options: dict[str, str] | None = None) -> Workspace:
    """The table on a disk, or in memory under the name of one that Spark can read."""
    if place == "file":
        storage = Storage.open(str(tmp_path / "trips"))
    else:
        files = fsspec.filesystem("memory")
        storage = Storage(root="/lake/trips", file_system=files, prefix=f"/{_in_memory(tmp_path)}")
    opened = HudiTable.open(_root(place, tmp_path))
    table = HudiTable(storage=storage, config=opened.config, zone=UTC)
    return Workspace(table=table, documents=DocumentStore(storage), engine=no_engine, write_options=write_options or {})


def _two_files(place: str, tmp_path: Path) -> None:
    builder = TableBuilder(base_path=_root(place, tmp_path))
    for number in (1, 2):
        builder.commit(at(number), {DAYS[0]: [(f"f{number}-0", 100)]})


@pytest.mark.parametrize("error", [KilledError, StorageError])
@pytest.mark.parametrize("takes_effect", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("locked", [False, True], ids=["quiet", "locked"])
@pytest.mark.parametrize("place", ["file", "memory"])
def test_a_scheduling_that_dies_anywhere_is_finished_by_the_next_try(
    place: str,
    locked: bool,  # noqa: FBT001 a parameter of the test
    takes_effect: bool,  # noqa: FBT001
    error: type[BaseException],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before or after each single request to storage: at most one plan, a whole one, and the next try ends with it."""
    options = LOCKED if locked else {}
    at_call, died = 0, True
    while died:
        at_call += 1
        folder = tmp_path / str(at_call)
        _two_files(place, folder)
        died = False

        def dies(number: int, call: Callable[[], object], *, last: int = at_call) -> object:
            nonlocal died
            if number != last:
                return call()
            died = True
            if takes_effect:
                with suppress(FileNotFoundError):
                    call()
            raise error

        workspace = _open(place, folder, write_options=options)
        with monkeypatch.context() as patched:
            calls = _counting(patched, workspace.table.storage, dies)
            next(calls)
            with suppress(error):
                schedule(workspace)
        assert len(plans_of(_open(place, folder))) <= 1

        report = schedule(_open(place, folder, write_options=options), now=NOW + timedelta(seconds=1)).report
        assert report.outcome in (Outcome.DONE, Outcome.ALREADY_DONE)
        assert [*report.instants] == plans_of(_open(place, folder))
        assert "lock" not in workspace.table.storage.names(".hoodie")
    assert at_call > 15


def test_a_failure_of_storage_after_the_plan_was_written_takes_it_away(
    table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could not be looked at again, so it does not stay."""
    workspace = workspace_of(table)
    names = names_of(table)
    timeline = workspace.table.storage.names

    def fails_once(path: str) -> tuple[str, ...]:
        listed = timeline(path)
        if any(name.endswith(".clustering.requested") for name in listed):
            monkeypatch.undo()
            raise StorageError("down")
        return listed

    monkeypatch.setattr(workspace.table.storage, "names", fails_once)
    with pytest.raises(StorageError, match="down"):
        schedule(workspace)
    assert names == names_of(table)
