"""A writer that took the very millisecond of a plan of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.core.maintenance.native import LOCKED, names_of, schedule, workspace_of
from tests.unit.core.maintenance.six_days import DAYS
from tests.unit.core.storage.builders import TableBuilder, at


@pytest.mark.parametrize("version", [6, 9])
def test_a_plan_is_withdrawn_when_a_write_took_the_same_millisecond(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Two instants of one moment would be one to Hudi; ours goes, and the next try takes another moment."""
    table = TableBuilder(base_path=str(tmp_path / "trips"), version=version)
    for number in (1, 2):
        table.commit(at(number), {DAYS[0]: [(f"f{number}-0", 100)]})
    workspace = workspace_of(table, write_options=LOCKED)
    monkeypatch.setattr("airflow_hudi_maint.core.maintenance.native_scheduling._PAUSE_SECONDS", 0.0)
    write_new = workspace.table.storage.write_new
    plans: list[str] = []

    def write(path: str, data: bytes) -> bool:
        written = write_new(path, data)
        if path.endswith(".requested"):
            plans.append(path.rpartition("/")[2])
        if len(plans) == 1:
            table.put(f"{table.timeline_folder}/{plans[0].partition('.')[0]}.inflight", b"")
        return written

    monkeypatch.setattr(workspace.table.storage, "write_new", write)

    report = schedule(workspace).report

    first, second = plans
    assert (False, True) == (first in names_of(table), second in names_of(table))
    assert [second.partition(".")[0]] == list(report.instants)
