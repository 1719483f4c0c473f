"""Several who schedule at the same moment: no file group comes into two plans, whoever sees whom."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import PendingActionError
from airflow_hudi_maint.core.storage.filesystem import Storage
from tests.unit.core.maintenance.native import (
    LOCKED,
    OWNER,
    SMALL,
    plans_of,
    put_on_timeline,
    schedule,
    workspace_of,
)
from tests.unit.core.maintenance.six_days import NOW, six_days
from tests.unit.core.storage.builders import TableBuilder


@pytest.mark.parametrize("locked", [False, True], ids=["quiet", "locked"])
def test_two_schedulers_at_once_put_no_file_group_into_two_plans(
    locked: bool,  # noqa: FBT001 a parameter of the test
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each sees the other or is seen by it; who stands back says so, and one of them or a later run makes the plan."""
    monkeypatch.setattr("airflow_hudi_maint.core.maintenance.native_scheduling._PAUSE_SECONDS", 0.02)
    for number in range(2 if locked else 8):
        builder = six_days(tmp_path / str(number))
        ends: list[str] = []

        def run(run_id: str, *, builder: TableBuilder = builder, ends: list[str] = ends) -> None:
            workspace = workspace_of(builder, write_options=LOCKED if locked else {})
            try:
                ends.append(str(schedule(workspace, owner=replace(OWNER, run_id=run_id)).report.outcome))
            except PendingActionError:
                ends.append("in the way")

        threads = [threading.Thread(target=run, args=(f"r{index}",)) for index in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        workspace = workspace_of(builder)
        assert len(ends) == len(threads)
        assert ends.count("done") == len(plans_of(workspace))
        assert [*schedule(workspace).report.instants] == plans_of(workspace)


class InStep:
    """The storage of one of two schedulers: both write their first plans at once, and look only once both are there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, storage: Storage, *, meetings: list[threading.Barrier]) -> None:
        """Watch a storage; ``meetings`` are those before the write, after it, and after the look."""
        self._write_new, self._names = storage.write_new, storage.names
        self._meetings = iter(meetings)
        self.written: list[str] = []
        monkeypatch.setattr(storage, "write_new", self.write_new)
        monkeypatch.setattr(storage, "names", self.names)

    def _meet(self) -> None:
        meeting = next(self._meetings, None)
        if meeting is not None:
            meeting.wait()

    def write_new(self, path: str, data: bytes) -> bool:
        """Meet before and after the first plan: else one finds the other's in its look before, and writes none."""
        if not path.endswith(".requested"):
            return self._write_new(path, data)
        self._meet()
        done = self._write_new(path, data)
        self.written.append(path)
        self._meet()
        return done

    def names(self, path: str) -> tuple[str, ...]:
        """Meet after the first look that follows the plan."""
        seen = self._names(path)
        if len(self.written) == 1:
            self._meet()
        return seen


def test_two_who_see_each_other_both_stand_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither can know what the other saw: both withdraw, and at most one of their later plans stands."""
    monkeypatch.setattr("airflow_hudi_maint.core.maintenance.native_scheduling._PAUSE_SECONDS", 0.02)
    builder = six_days(tmp_path)
    both_planned, *meetings = [threading.Barrier(2, timeout=60) for _ in range(4)]
    written: list[str] = []
    ends: list[str] = []

    def run(now: datetime) -> None:
        workspace = workspace_of(builder)
        planned = maintenance.plan_clustering(workspace, now=now, settings=SMALL)
        both_planned.wait()  # else the later one may find the other's plan already, and plan nothing
        in_step = InStep(monkeypatch, workspace.table.storage, meetings=meetings)
        try:
            ends.append(str(put_on_timeline(workspace, planned, now=now).report.outcome))
        except PendingActionError:
            ends.append("in the way")
        written.extend(in_step.written)

    threads = [threading.Thread(target=run, args=(NOW + timedelta(minutes=number),)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(written) > 2
    assert 2 == len(ends)
    assert ends.count("done") == len(plans_of(workspace_of(builder))) <= 1
