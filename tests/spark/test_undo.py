"""Dropping with a way back: savepoint, restore, clean, release, on real tables of the oldest and the newest version."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import DropSettings, JobControl, Workspace
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.planning.cleaning import CleanerSettings
from airflow_hudi_maint.core.storage.properties import load_properties
from tests.spark.tables import DAYS, KEEP_FOUR, make_table, rows
from tests.spark.writer import HudiWriter

pytestmark = pytest.mark.spark

ONE_COMMIT = CleanerSettings(commits_retained=1)
DROPPED = [f"day={day}" for day in DAYS[:2]]


def _now() -> datetime:
    return datetime.now(tz=UTC)


def _no_engine() -> None:
    pytest.fail("a step with nothing to do started Spark")


def _idle(path: Path) -> Workspace:
    return maintenance.open_workspace(str(path), engine=_no_engine)  # type: ignore[arg-type]


@pytest.fixture(
    scope="module",
    params=[(6, "COPY_ON_WRITE"), (9, "MERGE_ON_READ")],
    ids=lambda one: f"v{one[0]}-{one[1].lower()}",
)
def dropped(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, writer_of: Callable[[int], HudiWriter]
) -> tuple[HudiWriter, Path, list[list[object]], str]:
    """A table whose two oldest days were dropped under a savepoint, its rows of before, and its type."""
    version, table_type = request.param
    writer = writer_of(version)
    path = tmp_path_factory.mktemp(f"undo-v{version}") / "trips"
    make_table(writer, path, table_type=table_type)
    writer.upsert(path, rows(0, day=DAYS[0], value=2.0), hoodie__datasource__write__table__type=table_type)
    before = writer.rows(path)
    maintenance.expire_partitions(
        maintenance.open_workspace(str(path)),
        now=_now(),
        job=JobControl(),
        policies=KEEP_FOUR,
        settings=DropSettings(savepoint=True),
    )
    return writer, path, before, table_type


Dropped = tuple[HudiWriter, Path, list[list[object]], str]


def test_a_savepoint_stands_before_the_drop(dropped: Dropped) -> None:
    """The rows are gone, and the instant before the drop is saved under our name."""
    writer, path, _, _ = dropped
    table = _idle(path).table
    timeline = table.timeline()
    (saved,) = (one for one in timeline.completed if one.action is Action.SAVEPOINT)

    assert {f"day={day}" for day in DAYS[2:]} == writer.counts(path).keys()
    assert timeline.completed[-1].requested_time > saved.requested_time
    assert "airflow_hudi_maint" == table.instants.savepoint_metadata(saved).saved_by


def test_the_cleaner_does_not_pass_the_savepoint(dropped: Dropped) -> None:
    """A clean that retains one commit leaves what is saved, so that a restore stays possible."""
    _, path, _, _ = dropped
    maintenance.clean(
        maintenance.open_workspace(str(path)), now=_now(), job=JobControl(), settings=ONE_COMMIT, whole_table=True
    )
    reported = maintenance.restore_partitions(_idle(path), now=_now(), job=JobControl(), dry_run=True)

    assert Outcome.DRY_RUN is reported.report.outcome
    assert () == reported.report.warnings


def test_what_was_dropped_comes_back(dropped: Dropped) -> None:
    """All rows are as they were, counted and digested by the job; a second run does nothing, without Spark."""
    writer, path, before, _ = dropped
    properties = load_properties(_idle(path).table.storage)
    restored = maintenance.restore_partitions(maintenance.open_workspace(str(path)), now=_now(), job=JobControl())

    assert Outcome.DONE is restored.report.outcome
    assert DROPPED == list(restored.report.partitions)
    assert "60 records, by count and digest" in restored.report.message
    assert before == writer.rows(path)
    assert properties == load_properties(_idle(path).table.storage)
    again = maintenance.restore_partitions(_idle(path), now=_now(), job=JobControl())
    assert Outcome.ALREADY_DONE is again.report.outcome
    assert restored.report.instants == again.report.instants


def test_restored_rows_are_updated_in_place(dropped: Dropped) -> None:
    """An upsert of restored keys finds them: no key is there twice."""
    writer, path, before, table_type = dropped
    writer.upsert(path, rows(1, day=DAYS[0], value=5.0), hoodie__datasource__write__table__type=table_type)

    assert len(before) == len(writer.rows(path))
    assert 10 == sum(1 for row in writer.rows(path) if row[2] == 5.0)


def test_released_and_cleaned_bytes_are_free(dropped: Dropped) -> None:
    """After the release a clean of the whole table takes the dropped files and says how many bytes; then none."""
    writer, path, before, _ = dropped
    early = maintenance.release_savepoints(_idle(path), now=_now(), job=JobControl(), older_than=timedelta(days=1))
    released = maintenance.release_savepoints(
        maintenance.open_workspace(str(path)), now=_now(), job=JobControl(), older_than=timedelta(0)
    )
    size = sum(file.stat().st_size for file in path.glob("day=*/*") if file.is_file())
    cleaned = maintenance.clean(
        maintenance.open_workspace(str(path)), now=_now(), job=JobControl(), settings=ONE_COMMIT, whole_table=True
    )
    left = sum(file.stat().st_size for file in path.glob("day=*/*") if file.is_file())

    assert Outcome.NOTHING_TO_DO is early.report.outcome
    assert Outcome.DONE is released.report.outcome
    assert Outcome.DONE is cleaned.report.outcome
    # Hadoop keeps a checksum beside each file on a local disk, which is no file of the table's.
    assert 0 <= size - left - cleaned.report.bytes_before < 200 * cleaned.report.files_before
    assert 0 < cleaned.report.bytes_before
    assert len(before) == len(writer.rows(path))
    idle = maintenance.clean(_idle(path), now=_now(), job=JobControl(), settings=ONE_COMMIT)
    assert Outcome.NOTHING_TO_DO is idle.report.outcome
