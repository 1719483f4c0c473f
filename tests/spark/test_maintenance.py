"""Maintenance of real tables, by the bundle that is the default, on every table version and type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import JobControl, Workspace
from airflow_hudi_maint.core.model.plan import ClusteringSettings
from airflow_hudi_maint.core.model.policy import DEFAULT_FIELDS_KEY, DEFAULT_POLICY_KEY, DEFAULT_VALUE_KEY
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.storage.properties import load_properties, update_properties
from tests.spark.tables import DAYS, KEEP_FOUR, make_table, rows
from tests.spark.writer import HudiWriter

pytestmark = pytest.mark.spark

SETTINGS = ClusteringSettings(
    target_file_bytes=64 * 1024 * 1024,
    small_file_bytes=32 * 1024 * 1024,
    max_group_bytes=128 * 1024 * 1024,
    sort_columns=("value", "id"),
)
KEPT = [f"day={day}" for day in DAYS[2:]]


def _now() -> datetime:
    return datetime.now(tz=UTC)


def _no_engine() -> None:
    pytest.fail("a step with nothing to do started Spark")


@pytest.fixture(
    scope="module",
    params=[
        (6, "COPY_ON_WRITE"),
        (6, "MERGE_ON_READ"),
        (8, "COPY_ON_WRITE"),
        (9, "COPY_ON_WRITE"),
        (9, "MERGE_ON_READ"),
    ],
    ids=lambda one: f"v{one[0]}-{one[1].lower()}",
)
def maintained(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, writer_of: Callable[[int], HudiWriter]
) -> tuple[HudiWriter, Path, dict[str, maintenance.StepReported], dict[str, str]]:
    """A table after one whole maintenance: its writer, path, step reports and properties before."""
    version, table_type = request.param
    writer = writer_of(version)
    path = tmp_path_factory.mktemp(f"v{version}") / "trips"
    make_table(writer, path, table_type=table_type)
    writer.upsert(path, rows(0, day=DAYS[-1], value=2.0), hoodie__datasource__write__table__type=table_type)
    workspace = maintenance.open_workspace(str(path))
    before = load_properties(workspace.table.storage)
    reports = {"expire": maintenance.expire_partitions(workspace, now=_now(), job=JobControl(), policies=KEEP_FOUR)}
    reports["schedule"] = maintenance.schedule_clustering(workspace, now=_now(), settings=SETTINGS, job=JobControl())
    reports["execute"] = maintenance.execute_clustering(
        workspace, now=_now(), job=JobControl(), instants=reports["schedule"].report.instants
    )
    return writer, path, reports, before


Maintained = tuple[HudiWriter, Path, dict[str, maintenance.StepReported], dict[str, str]]


def _workspace(path: Path) -> Workspace:
    return maintenance.open_workspace(str(path), engine=_no_engine)  # type: ignore[arg-type]


def test_each_step_did_its_work(maintained: Maintained) -> None:
    """Two days were dropped by one replace commit, the other four are one file each, by another."""
    _, path, reports, _ = maintained
    table = _workspace(path).table
    timeline = table.timeline()

    assert [Outcome.DONE] * 3 == [one.report.outcome for one in reports.values()]
    assert ("day=2026-11-01", "day=2026-11-02") == reports["expire"].report.partitions
    assert 1 == len(reports["expire"].report.instants)
    assert tuple(KEPT) == reports["execute"].report.partitions
    view = table.view(timeline)
    assert dict.fromkeys(KEPT, 1) == {
        path: len(view.latest_slices(path)) for path in view.partition_paths if view.latest_slices(path)
    }


def test_the_rows_are_right_afterwards(maintained: Maintained) -> None:
    """Hudi reads exactly the rows of the kept days, with their last values."""
    writer, path, _, _ = maintained

    assert dict.fromkeys(KEPT, 30) == writer.counts(path)
    values = {row[0]: row[2] for row in writer.rows(path)}
    assert [2.0] * 10 == [values[row[0]] for row in rows(0, day=DAYS[-1])]


def test_the_table_is_what_it_was(maintained: Maintained) -> None:
    """Version, metadata partitions and every other property are the same as before."""
    _, path, _, before = maintained

    after = load_properties(_workspace(path).table.storage)
    assert before == after


def test_a_second_run_does_nothing_and_starts_no_spark(maintained: Maintained) -> None:
    """Every step finds that there is nothing left to do."""
    _, path, reports, _ = maintained
    workspace = _workspace(path)

    expired = maintenance.expire_partitions(workspace, now=_now(), job=JobControl(), policies=KEEP_FOUR)
    again = maintenance.expire_partitions(
        workspace, now=_now(), job=JobControl(), plan_path=reports["expire"].report.plan_path
    )
    scheduled = maintenance.schedule_clustering(workspace, now=_now(), settings=SETTINGS, job=JobControl())
    executed = maintenance.execute_clustering(
        workspace, now=_now(), job=JobControl(), instants=reports["execute"].report.instants
    )
    assert [Outcome.NOTHING_TO_DO, Outcome.ALREADY_DONE, Outcome.NOTHING_TO_DO, Outcome.ALREADY_DONE] == [
        one.report.outcome for one in (expired, again, scheduled, executed)
    ]


def test_incremental_statistics_equal_full_ones(maintained: Maintained) -> None:
    """What the timeline says since the plan's statistics equals a full gather, and rewriting renewed no partition."""
    _, path, _, _ = maintained
    workspace = _workspace(path)

    incremental = maintenance.gather_statistics(workspace, now=_now(), mode="auto").statistics
    full = maintenance.gather_statistics(workspace, now=_now(), mode="full").statistics
    assert full.partitions == incremental.partitions
    rewritten = workspace.table.timeline().find(maintained[2]["execute"].report.instants[0])
    assert rewritten is not None
    assert all(row.last_modified_instant < rewritten.requested_time for row in full.partitions)


def test_zz_hudi_goes_on_writing(maintained: Maintained) -> None:
    """The release that made the table reads, upserts (into a dropped day, too) and cleans it afterwards."""
    writer, path, _, _ = maintained
    table_type = _workspace(path).table.config.table_type

    writer.upsert(
        path,
        rows(7, day=DAYS[0]) + rows(0, day=DAYS[3], value=3.0),
        hoodie__datasource__write__table__type=str(table_type),
    )
    assert {**dict.fromkeys(KEPT, 30), f"day={DAYS[0]}": 10} == writer.counts(path)
    writer.clean(path, retain_commits=1)
    assert {**dict.fromkeys(KEPT, 30), f"day={DAYS[0]}": 10} == writer.counts(path)
    assert not list(path.glob(f"day={DAYS[1]}/*.parquet"))


def test_policies_in_the_properties_do_not_keep_hudi_from_the_table(
    writer_of: Callable[[int], HudiWriter], tmp_path: Path
) -> None:
    """Hudi reads and writes a table whose properties were written here, and the policies are still there afterwards."""
    writer = writer_of(9)
    path = tmp_path / "trips"
    writer.insert(path, rows(0, day=DAYS[0]))
    workspace = _workspace(path)
    keys = {DEFAULT_POLICY_KEY: "KEEP_BY_TIME", DEFAULT_VALUE_KEY: "30", DEFAULT_FIELDS_KEY: "day"}
    update_properties(workspace.table.storage, set=keys)

    writer.upsert(path, rows(1, day=DAYS[0]))

    assert {f"day={DAYS[0]}": 20} == writer.counts(path)
    assert keys.items() <= load_properties(workspace.table.storage).items()


def test_small_files_are_compacted_once(writer_of: Callable[[int], HudiWriter], tmp_path: Path) -> None:
    """Each day's three small files become one, without a sort and with the same rows; a second run starts no Spark."""
    writer = writer_of(9)
    path = tmp_path / "trips"
    expected = make_table(writer, path)
    before = writer.rows(path)
    settings = replace(SETTINGS, sort_columns=())

    compacted = maintenance.compact_small_files(
        maintenance.open_workspace(str(path)), now=_now(), settings=settings, job=JobControl()
    ).report
    again = maintenance.compact_small_files(_workspace(path), now=_now(), settings=settings, job=JobControl()).report

    assert (Outcome.DONE, Outcome.NOTHING_TO_DO) == (compacted.outcome, again.outcome)
    assert (len(DAYS) * 3, len(DAYS)) == (compacted.files_before, compacted.files_after)
    assert expected == writer.counts(path)
    assert before == writer.rows(path)
