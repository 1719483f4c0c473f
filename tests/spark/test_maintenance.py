"""Maintenance of real tables, by the bundle that is the default, on every table version and type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import JobControl, Workspace
from airflow_hudi_maint.core.model.plan import ClusteringSettings
from airflow_hudi_maint.core.model.policy import (
    DEFAULT_FIELDS_KEY,
    DEFAULT_POLICY_KEY,
    DEFAULT_VALUE_KEY,
    PolicySet,
)
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.planning.expiry import ExpiryClock, ExpiryGuards
from airflow_hudi_maint.core.storage.properties import load_properties, update_properties
from tests.spark.tables import DAYS, INDEX_PARTITIONS, ROWS_A_COMMIT, RegionTable, rows
from tests.spark.writer import HudiWriter

pytestmark = pytest.mark.spark

SETTINGS = ClusteringSettings(
    target_file_bytes=64 * 1024 * 1024,
    small_file_bytes=32 * 1024 * 1024,
    max_group_bytes=128 * 1024 * 1024,
    sort_columns=("value", "id"),
)
BY_THE_WALL_CLOCK = ExpiryGuards(clock=ExpiryClock.WALL)
HOUSEKEEPING = {
    "hoodie.clean.automatic": "true",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.commits.archival.batch": "1",
    # Archival stops at the last compaction of the metadata table.
    "hoodie.metadata.compact.max.delta.commits": "1",
}
"""Cleans and archives after each write as early as Hudi allows."""
COMPACTION = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
"""Archival of a merge-on-read table stops at its own last compaction, too."""


def _now() -> datetime:
    return datetime.now(tz=UTC)


def _no_engine() -> None:
    pytest.fail("a step with nothing to do started Spark")


def _workspace(path: Path) -> Workspace:
    return maintenance.open_workspace(str(path), engine=_no_engine)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Maintained:
    """A table after one whole maintenance: what it was before, what the expiry was asked for, and the step reports."""

    table: RegionTable
    before: Mapping[str, str]
    policies: PolicySet
    now: datetime
    reports: Mapping[str, maintenance.StepReported]

    def expire(self, workspace: Workspace) -> maintenance.StepReported:
        """Expire by the same policies at the same moment."""
        return maintenance.expire_partitions(
            workspace, now=self.now, job=JobControl(), policies=self.policies, guards=BY_THE_WALL_CLOCK
        )


def _expire(table: RegionTable) -> Maintained:
    """Expire by a policy of each kind, in one drop."""
    workspace = maintenance.open_workspace(str(table.path))
    statistics = maintenance.gather_statistics(workspace, now=_now()).statistics
    asked = Maintained(
        table=table,
        before=load_properties(workspace.table.storage),
        policies=table.policies(),
        now=table.a_day_between(workspace.table, statistics),
        reports={},
    )
    return replace(asked, reports={"expire": asked.expire(workspace)})


@pytest.fixture(
    scope="module",
    params=[
        (6, "COPY_ON_WRITE", "hive"),
        (6, "MERGE_ON_READ", "plain"),
        (8, "COPY_ON_WRITE", "plain"),
        (9, "COPY_ON_WRITE", "plain", "indexed"),
        (9, "MERGE_ON_READ", "hive", "indexed"),
    ],
    ids=lambda one: f"v{one[0]}-{'-'.join(one[1:]).lower()}",
)
def maintained(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, writer_of: Callable[[int], HudiWriter]
) -> Maintained:
    """Take a table of three regions through expiry by a policy of each kind, and through clustering."""
    version, table_type, style, *indexed = request.param
    path = tmp_path_factory.mktemp(f"v{version}") / "trips"
    table = RegionTable(
        writer_of(version), path, table_type=table_type, hive_style=style == "hive", indexed=bool(indexed)
    )
    table.make()
    expired = _expire(table)
    workspace = maintenance.open_workspace(str(path))
    reports = {**expired.reports, "expire again": expired.expire(_workspace(path))}
    reports["schedule"] = maintenance.schedule_clustering(workspace, now=_now(), settings=SETTINGS, job=JobControl())
    reports["execute"] = maintenance.execute_clustering(
        workspace, now=_now(), job=JobControl(), instants=reports["schedule"].report.instants
    )
    return replace(expired, reports=reports)


def test_each_step_did_its_work(maintained: Maintained) -> None:
    """One replace commit dropped the oldest day of each region; another made one file of each day that is left."""
    table = _workspace(maintained.table.path).table
    reports = {name: one.report for name, one in maintained.reports.items()}
    view = table.view(table.timeline())
    kept = maintained.table.kept

    assert [Outcome.DONE] * 3 == [reports[step].outcome for step in ("expire", "schedule", "execute")]
    assert maintained.table.oldest == list(reports["expire"].partitions)
    assert 1 == len(reports["expire"].instants)
    rewritten = [path for path, rows_there in kept.items() if rows_there > ROWS_A_COMMIT]
    assert sorted(rewritten) == list(reports["execute"].partitions)
    assert dict.fromkeys(kept, 1) == {
        path: len(view.latest_slices(path)) for path in view.partition_paths if view.latest_slices(path)
    }


def test_each_policy_says_why(maintained: Maintained) -> None:
    """The plan names the kind of policy that let each partition go, and its figures."""
    plan = maintenance.read_expiry_plan(
        _workspace(maintained.table.path), maintained.reports["expire"].report.plan_path or ""
    )

    assert ["KEEP_BY_TIME 1 on region=ap/", "KEEP_BY_COUNT 2 on region=eu/"] == [one.policy for one in plan.expired[:2]]
    by_time, by_count, by_size = (entry.reason for entry in plan.expired)
    assert re.fullmatch(r"modified 1\.\d+ days ago, kept 1 day", by_time)
    assert "1st smallest of 3 values of day under region=eu/, 2 kept" == by_count
    pattern = (
        r"1st smallest of 3 values of day under region=us/: it and the newer ones hold [\d.]+ KiB, [\d.]+ KiB kept"
    )
    assert re.fullmatch(pattern, by_size)


def test_the_rows_are_right_afterwards(maintained: Maintained) -> None:
    """Hudi reads exactly the rows of the kept days, with their last values."""
    table = maintained.table

    assert table.kept == table.writer.counts(table.path)
    values = {row[0]: row[2] for row in table.writer.rows(table.path)}
    assert [2.0] * 10 == [values[row[0]] for row in table.rows(0, region="eu", day=DAYS[2])]


def test_the_table_is_what_it_was(maintained: Maintained, request: pytest.FixtureRequest) -> None:
    """Version, metadata partitions and every other property are the same as before."""
    after = load_properties(_workspace(maintained.table.path).table.storage)

    assert maintained.before == after
    partitions = set(after["hoodie.table.metadata.partitions"].split(","))
    assert partitions == (INDEX_PARTITIONS if "indexed" in request.node.callspec.id else {"files"})


def test_a_second_run_does_nothing_and_starts_no_spark(maintained: Maintained) -> None:
    """Every step finds that there is nothing left to do."""
    reports = maintained.reports
    workspace = _workspace(maintained.table.path)

    again = maintenance.expire_partitions(
        workspace, now=_now(), job=JobControl(), plan_path=reports["expire"].report.plan_path
    )
    scheduled = maintenance.schedule_clustering(workspace, now=_now(), settings=SETTINGS, job=JobControl())
    executed = maintenance.execute_clustering(
        workspace, now=_now(), job=JobControl(), instants=reports["execute"].report.instants
    )
    assert [Outcome.NOTHING_TO_DO, Outcome.ALREADY_DONE, Outcome.NOTHING_TO_DO, Outcome.ALREADY_DONE] == [
        one.report.outcome for one in (reports["expire again"], again, scheduled, executed)
    ]


def test_incremental_statistics_equal_full_ones(maintained: Maintained) -> None:
    """What the timeline says since the plan's statistics equals a full gather, and rewriting renewed no partition."""
    workspace = _workspace(maintained.table.path)

    incremental = maintenance.gather_statistics(workspace, now=_now(), mode="auto").statistics
    full = maintenance.gather_statistics(workspace, now=_now(), mode="full").statistics
    assert full.partitions == incremental.partitions
    rewritten = workspace.table.timeline().find(maintained.reports["execute"].report.instants[0])
    assert rewritten is not None
    assert all(row.last_modified_instant < rewritten.requested_time for row in full.partitions)


def test_zz_hudi_goes_on_writing(maintained: Maintained) -> None:
    """The release that made the table upserts keys that were dropped, cleans, archives the drop, and reads.

    Where the table has a record index, the upsert looks the keys up in it: one that still led to a dropped file group
    would fail.
    """
    _check_that_hudi_goes_on_writing(maintained)


def test_merge_on_read_of_version_8_expires_by_each_policy(
    writer_of: Callable[[int], HudiWriter], tmp_path: Path
) -> None:
    """As on the other versions: one replace commit, the same properties, and its own release goes on writing."""
    path = tmp_path / "trips"
    table = RegionTable(writer_of(8), path, table_type="MERGE_ON_READ", hive_style=True, indexed=False)
    table.make()
    expired = _expire(table)
    report = expired.reports["expire"].report

    assert (Outcome.DONE, table.oldest, 1) == (report.outcome, list(report.partitions), len(report.instants))
    assert table.kept == table.writer.counts(path)
    assert expired.before == load_properties(_workspace(path).table.storage)
    _check_that_hudi_goes_on_writing(expired)


def _check_that_hudi_goes_on_writing(done: Maintained) -> None:
    table = done.table
    housekeeping = HOUSEKEEPING | (COMPACTION if table.is_merge_on_read else {})
    back = {**table.kept, table.partition("eu", 1): ROWS_A_COMMIT}
    (drop,) = done.reports["expire"].report.instants
    changed = table.rows(0, region="us", day=DAYS[1], value=3.0)

    table.upsert([*table.rows(0, region="eu", day=DAYS[0]), *changed], **housekeeping)
    assert back == table.writer.counts(table.path)
    table.upsert(table.rows(0, region="eu", day=DAYS[0], value=5.0), **housekeeping)
    assert _workspace(table.path).table.timeline().find(drop) is None
    assert not list(table.path.glob(f"{table.partition('us', 1)}/*.parquet"))
    assert back == table.writer.counts(table.path)
    values = Counter(row[2] for row in table.writer.rows(table.path))
    assert Counter({1.0: 70, 2.0: 10, 3.0: 10, 5.0: 10}) == values


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
