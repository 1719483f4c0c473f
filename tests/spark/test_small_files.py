"""Small files on real tables: foretold, and put together."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import JobControl, SmallFileSettings
from airflow_hudi_maint.core.model.plan import ClusteringSettings
from airflow_hudi_maint.core.model.report import Outcome
from tests.spark.tables import COMMITS, DAYS, make_table, rows
from tests.spark.writer import HudiWriter

pytestmark = pytest.mark.spark

MIB = 1024**2
SETTINGS = ClusteringSettings(target_file_bytes=64 * MIB, small_file_bytes=32 * MIB, max_group_bytes=128 * MIB)


def _now() -> datetime:
    return datetime.now(tz=UTC)


def _workspace(path: Path) -> maintenance.Workspace:
    return maintenance.open_workspace(str(path), engine=lambda: pytest.fail("a step with nothing to do started Spark"))


def _many(day: str, *, first: int, count: int) -> list[list[Any]]:
    return [[f"{day}-{number}", day, 1.0, number] for number in range(first, first + count)]


def test_the_next_insert_does_what_was_foretold(writer_of: Callable[[int], HudiWriter], tmp_path: Path) -> None:
    """Of three small files one is filled and one grows, in Hudi's order; a new partition gets new files."""
    writer, path, day = writer_of(9), tmp_path / "trips", DAYS[0]
    for number in range(3):
        writer.insert(path, _many(day, first=1000 * number, count=40))
    options = {
        "hoodie.parquet.small.file.limit": "100000",
        "hoodie.parquet.max.file.size": "120000",
        "hoodie.record.size.estimation.threshold": "1000",
        "hoodie.copyonwrite.record.size.estimate": "1000",
    }
    workspace = _workspace(path)
    old, new = (
        maintenance.predict_insert(workspace, partition=f"day={one}", inserts=count, writer_options=options)
        for one, count in ((day, 150), (DAYS[1], 300))
    )

    incoming = [*_many(day, first=9000, count=150), *_many(DAYS[1], first=0, count=300)]
    writer.write(path, incoming, operation="insert", options=options)

    table = workspace.table
    last = table.commit_metadata(table.timeline().completed_writes[-1])
    written = {day: {one.file_id for one in stats} for day, stats in last.written.items()}
    assert {one.file_id for one in old.grown} == written[f"day={day}"]
    assert len(old.grown) == 2
    assert not old.new
    assert len(new.new) == len(written[f"day={DAYS[1]}"]) == 3


def test_small_files_are_compacted_once(writer_of: Callable[[int], HudiWriter], tmp_path: Path) -> None:
    """Each day's three small files are copied into one with the same rows; a second run starts no Spark."""
    writer, path = writer_of(9), tmp_path / "trips"
    expected = make_table(writer, path, hoodie__bloom__index__filter__type="DYNAMIC_V0")
    before = writer.rows(path)
    how = SmallFileSettings(min_row_group_bytes=1)

    compacted = maintenance.compact_small_files(
        maintenance.open_workspace(str(path)), now=_now(), settings=SETTINGS, job=JobControl(), how=how
    ).report
    again = maintenance.compact_small_files(
        _workspace(path), now=_now(), settings=SETTINGS, job=JobControl(), how=how
    ).report

    assert (Outcome.DONE, Outcome.NOTHING_TO_DO) == (compacted.outcome, again.outcome)
    assert (len(DAYS) * COMMITS, len(DAYS)) == (compacted.files_before, compacted.files_after)
    assert compacted.predicted_files_after == len(DAYS)
    assert "Files are copied without decoding" in compacted.message
    assert expected == writer.counts(path)
    assert before == writer.rows(path)


def test_on_merge_on_read_log_files_are_compacted_before(
    writer_of: Callable[[int], HudiWriter], tmp_path: Path
) -> None:
    """One day has updates in log files; they are compacted, and then its files are merged."""
    writer, path, day = writer_of(9), tmp_path / "trips", DAYS[0]
    table_type = {"hoodie__datasource__write__table__type": "MERGE_ON_READ"}
    for number in range(2):
        writer.insert(path, rows(number, day=day), **table_type)
    writer.upsert(path, rows(0, day=day, value=2.0), **table_type)
    before = writer.rows(path)

    report = maintenance.compact_small_files(
        maintenance.open_workspace(str(path)), now=_now(), settings=SETTINGS, job=JobControl()
    ).report

    assert (report.files_before, report.files_after, report.predicted_files_after) == (2, 1, 1)
    assert report.message.startswith("Compacted log files first (")
    assert before == writer.rows(path)
    assert not list(path.glob(f"day={day}/.*.log.*_{report.instants[-1]}*"))
