"""Cleaning and releasing savepoints, without Spark: what is reported, and what starts nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import (
    EngineError,
    InvalidSettingError,
)
from airflow_hudi_maint.core.maintenance import JobControl, Workspace
from airflow_hudi_maint.core.model.job import JobReport, JobRequest
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.planning.cleaning import CleanerSettings
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.storage.builders import TableBuilder, at

NOW = datetime(2026, 12, 1, tzinfo=UTC)
DAYS = [f"day=2026-11-0{day}" for day in range(1, 7)]
ONE = CleanerSettings(commits_retained=1)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Six days of one file each; the first two were dropped."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(1), {day: [(f"{day}-1-0", 100)] for day in DAYS})
    builder.commit(at(2), operation="DELETE_PARTITION", replaced={day: [f"{day}-1-0"] for day in DAYS[:2]})
    return builder


def _workspace(table: TableBuilder, engine: FakeEngine, **options: str) -> Workspace:
    return maintenance.open_workspace(table.base_path, engine=lambda: engine, write_options=options)


def _cleaning(table: TableBuilder, *files: str, retained: str) -> FakeEngine:
    def act(_: JobRequest) -> None:
        for name in files:
            table.storage.delete(name)
        partitions: dict[str, list[str]] = {}
        for name in files:
            folder, _, file = name.rpartition("/")
            partitions.setdefault(folder, []).append(file)
        content = {
            "earliestCommitToRetain": retained,
            "partitionMetadata": {
                path: {"successDeleteFiles": names, "failedDeleteFiles": []} for path, names in partitions.items()
            },
        }
        table.instant(at(40), "clean", content)

    return FakeEngine(act=act, answer=JobReport(ok=True, rows=({"files_deleted": len(files)},)))


def test_a_clean_reports_the_bytes_that_it_freed(table: TableBuilder) -> None:
    """Names come from the clean's metadata, sizes from the listing before."""
    table.commit(at(3), {DAYS[5]: [("late-0", 10)]})
    files = [f"{day}/{day}-1-0_0-1-2_{at(1)}.parquet" for day in DAYS[:2]]
    engine = _cleaning(table, *files, retained=at(3))
    reported = maintenance.clean(_workspace(table, engine), now=NOW, job=JobControl(), settings=ONE)
    report = reported.report

    assert (Outcome.DONE, 2, 200) == (report.outcome, report.files_before, report.bytes_before)
    assert tuple(DAYS[:2]) == report.partitions
    options = engine.requests[0].arguments["options"]
    assert isinstance(options, dict)
    assert "1" == options["hoodie.clean.commits.retained"] == options["hoodie.cleaner.commits.retained"]


def test_a_clean_with_nothing_to_do_starts_no_job(table: TableBuilder) -> None:
    """Fewer commits than are retained; and once cleaned, the same retention finds nothing."""
    idle = FakeEngine()
    young = maintenance.clean(_workspace(table, idle), now=NOW, job=JobControl())
    table.commit(at(3), {DAYS[5]: [("late-0", 10)]})
    file = f"{DAYS[0]}/{DAYS[0]}-1-0_0-1-2_{at(1)}.parquet"
    maintenance.clean(
        _workspace(table, _cleaning(table, file, retained=at(3))), now=NOW, job=JobControl(), settings=ONE
    )
    again = maintenance.clean(_workspace(table, idle), now=NOW, job=JobControl(), settings=ONE)

    assert [Outcome.NOTHING_TO_DO] * 2 == [young.report.outcome, again.report.outcome]
    assert [] == idle.requests
    assert "already reached" in again.report.message


def test_a_clean_that_found_nothing_says_so(table: TableBuilder) -> None:
    """Hudi writes no instant then; a report without a row is believed, and only then."""
    table.commit(at(3), {DAYS[5]: [("late-0", 10)]})
    empty = maintenance.clean(_workspace(table, FakeEngine()), now=NOW, job=JobControl(), settings=ONE)

    assert Outcome.NOTHING_TO_DO is empty.report.outcome
    failed = FakeEngine(answer=JobReport(ok=False, error_class="E", error_message="no"))
    with pytest.raises(EngineError, match="shows no completion"):
        maintenance.clean(_workspace(table, failed), now=NOW, job=JobControl(), settings=ONE)


def test_the_connection_s_retention_is_the_default(table: TableBuilder) -> None:
    """What the table's writers retain is stated once, among the write options; a wrong one is refused."""
    table.commit(at(3), {DAYS[5]: [("late-0", 10)]})
    workspace = _workspace(table, FakeEngine(), **{"hoodie.clean.commits.retained": "2"})
    reported = maintenance.clean(workspace, now=NOW, job=JobControl(), dry_run=True)

    assert f"commits since {at(2)}" in reported.report.message
    with pytest.raises(InvalidSettingError, match="cleaner"):
        maintenance.clean(
            _workspace(table, FakeEngine(), **{"hoodie.clean.commits.retained": "x"}), now=NOW, job=JobControl()
        )


def test_only_old_savepoints_of_ours_are_released(table: TableBuilder) -> None:
    """Another's stays however old, ours until its days are over."""
    table.savepoint(at(1), by="airflow_hudi_maint", saved_at=NOW - timedelta(days=10), completion=at(50))
    table.savepoint(at(2), by="dba", saved_at=NOW - timedelta(days=99), completion=at(50))

    def act(request: JobRequest) -> None:
        for instant in request.arguments["instants"]:  # type: ignore[union-attr]
            table.storage.delete(f"{table.timeline_folder}/{instant}_{at(50)}.savepoint")

    engine = FakeEngine(act=act)
    young = maintenance.release_savepoints(
        _workspace(table, engine), now=NOW, job=JobControl(), older_than=timedelta(days=11)
    )
    old = maintenance.release_savepoints(
        _workspace(table, engine), now=NOW, job=JobControl(), older_than=timedelta(days=9)
    )

    assert (Outcome.NOTHING_TO_DO, Outcome.DONE) == (young.report.outcome, old.report.outcome)
    assert [[at(1)]] == [request.arguments["instants"] for request in engine.requests]


def test_a_clean_of_the_whole_table_with_every_commit_retained_starts_no_job(table: TableBuilder) -> None:
    """Hudi would look for nothing either: it cleans up to the oldest commit that it retains."""
    reported = maintenance.clean(_workspace(table, FakeEngine()), now=NOW, job=JobControl(), whole_table=True)

    assert Outcome.NOTHING_TO_DO is reported.report.outcome
