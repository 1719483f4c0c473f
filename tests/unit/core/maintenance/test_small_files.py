"""Compacting small files: what is worth it, how files are rewritten, and log files first."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import JobControl, SmallFileSettings
from airflow_hudi_maint.core.model.job import JobKind, JobRequest
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings, Decision, ExecutionStrategy
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.planning.small_files import Worthwhile
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.fake_hudi import DAYS, FakeHudi, rows, three_days_of_rows
from tests.unit.core.maintenance.six_days import NOW, workspace_with
from tests.unit.core.storage.builders import TableBuilder, at

SETTINGS = ClusteringSettings(target_file_bytes=1024**2, small_file_bytes=64 * 1024, max_group_bytes=2 * 1024**2)
DAY = "day=2026-11-01"


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return three_days_of_rows(str(tmp_path / "trips"))


def compact(
    table: TableBuilder, engine: FakeEngine, *, how: SmallFileSettings | None = None, dry_run: bool = False
) -> StepReport:
    return maintenance.compact_small_files(
        workspace_with(table, engine),
        now=NOW,
        settings=SETTINGS,
        job=JobControl(),
        how=how or SmallFileSettings(),
        dry_run=dry_run,
    ).report


def plan_of(report: StepReport) -> ClusteringPlan:
    assert report.plan_path
    return ClusteringPlan.from_json(json.loads(Path(report.plan_path).read_text()), name=report.plan_path)


def test_files_are_rewritten_verified_and_counted_against_what_was_foretold(table: TableBuilder) -> None:
    """A second run finds nothing, and asks for no job."""
    engine = FakeEngine(act=FakeHudi(table))
    report = compact(table, engine)
    assert (report.step, report.outcome) == (Step.COMPACT_SMALL_FILES, Outcome.DONE)
    assert (report.files_before, report.files_after, report.predicted_files_after) == (6, 3, 3)
    assert report.verification
    assert "3 files foretold, 3 came; 6 files of" in report.message
    assert "Files are decoded and encoded again: row groups of" in report.message
    idle = FakeEngine()
    again = compact(table, idle)
    assert (again.outcome, idle.requests) == (Outcome.NOTHING_TO_DO, [])


def test_large_row_groups_are_copied_and_a_group_becomes_one_file(table: TableBuilder) -> None:
    """A copied group is one file however large, so groups are no larger than the target."""
    report = compact(table, FakeEngine(act=FakeHudi(table)), how=SmallFileSettings(min_row_group_bytes=1))
    settings = plan_of(report).settings
    assert settings.execution_strategy is ExecutionStrategy.BINARY_COPY
    assert settings.max_group_bytes == settings.target_file_bytes
    assert "Files are copied without decoding: one schema, row groups of" in report.message


def test_what_is_asked_for_is_not_chosen(table: TableBuilder) -> None:
    how = SmallFileSettings(min_row_group_bytes=1, execution=ExecutionStrategy.SORT_AND_SIZE)
    report = compact(table, FakeEngine(), how=how, dry_run=True)
    assert plan_of(report).settings.execution_strategy is ExecutionStrategy.SORT_AND_SIZE
    assert report.message.endswith("decoded and encoded again: as asked for")


def test_a_budget_of_bytes_goes_where_a_file_fewer_costs_least(tmp_path: Path) -> None:
    table = TableBuilder(base_path=str(tmp_path / "trips"))
    for number, size in ((1, 1000), (2, 100)):
        table.commit(at(number), {f"day={number}": [(f"{number}-{file}-0", size) for file in range(3)]})
    how = SmallFileSettings(worthwhile=Worthwhile(max_bytes=1000))
    plan = plan_of(compact(table, FakeEngine(), how=how, dry_run=True))
    assert [entry.partition_path for entry in plan.chosen] == ["day=2"]
    assert plan.chosen[0].reason == "3 small files of 300 B become 1 in 1 group; 150 B for each file fewer"
    assert plan.entries[0].reason.startswith("left for the next run: max_bytes=1000 B reached (2.9 KiB needed)")
    assert plan.strategy_options == {"max_bytes": 1000}


def test_only_cold_partitions_are_rewritten(table: TableBuilder) -> None:
    how = SmallFileSettings(worthwhile=Worthwhile(min_idle_days=400))
    plan = plan_of(compact(table, FakeEngine(), how=how, dry_run=True))
    assert not plan.chosen
    assert all(entry.reason.endswith("less than min_idle_days=400") for entry in plan.entries)


def test_a_micro_partition_is_said_to_gain_nothing(tmp_path: Path) -> None:
    table = TableBuilder(base_path=str(tmp_path / "trips"))
    table.commit(at(1), {DAY: [("a-0", 1000)]})
    (entry,) = plan_of(compact(table, FakeEngine(), dry_run=True)).entries
    assert entry.decision is Decision.KEEP
    assert entry.reason == ("1 small file: one file rewritten to one gains nothing (a micro-partition: 1000 B in all)")


def with_log_file(base_path: str) -> TableBuilder:
    """A merge-on-read table of two file groups in one day, one with a log file, and a day without any."""
    table = TableBuilder(base_path=base_path, merge_on_read=True)
    table.commit(at(1), {DAY: [("a-0", rows(1)), ("b-0", rows(2))], DAYS[1]: [("c-0", rows(3)), ("d-0", rows(4))]})
    table.commit(at(2), logs={DAY: [("a-0", at(1), 100)]})
    return table


def compacting(table: TableBuilder) -> Callable[[JobRequest], None]:
    """Do what Hudi does: plan a compaction of the log file, execute it, and cluster."""
    clusters = FakeHudi(table)
    operation = {
        "partitionPath": DAY,
        "fileId": "a-0",
        "dataFilePath": f"a-0_0-1-2_{at(1)}.parquet",
        "deltaFilePaths": [f".a-0_{at(2)}.log.1_0-1-2"],
        "baseInstantTime": at(1),
    }

    def act(request: JobRequest) -> None:
        if request.kind is JobKind.SCHEDULE_COMPACTION:
            table.pending(at(30), "compaction", {"operations": [operation]})
        elif request.kind is JobKind.EXECUTE_COMPACTION:
            table.commit(at(30), {DAY: [("a-0", rows(1))]}, action="commit", operation="COMPACT", completion=at(31))
        else:
            clusters(request)

    return act


def test_on_merge_on_read_log_files_are_compacted_first(tmp_path: Path) -> None:
    """Then files are decoded and encoded again: Hudi copies files of copy-on-write tables only."""
    table = with_log_file(str(tmp_path / "trips"))
    engine = FakeEngine(act=compacting(table))
    report = compact(table, engine)
    assert [str(one.kind) for one in engine.requests][:2] == ["schedule_compaction", "execute_compaction"]
    assert report.outcome is Outcome.DONE
    assert report.instants[0] == at(30)
    assert (report.files_before, report.files_after) == (4, 2)
    assert report.message.startswith("Compacted log files first (")
    assert "Hudi copies files of copy-on-write tables only" in report.message


def test_without_compaction_partitions_with_log_files_wait(tmp_path: Path) -> None:
    table = with_log_file(str(tmp_path / "trips"))
    plan = plan_of(compact(table, FakeEngine(), how=SmallFileSettings(compacts_first=False), dry_run=True))
    assert [entry.partition_path for entry in plan.chosen] == [DAYS[1]]
    assert plan.entries[0].reason == "1 file group with log files: they wait for compaction"


def test_a_dry_run_says_what_is_compacted_before(tmp_path: Path) -> None:
    table = with_log_file(str(tmp_path / "trips"))
    plan = plan_of(compact(table, FakeEngine(), dry_run=True))
    assert len(plan.chosen) == 2
    assert plan.chosen[0].reason.endswith("once 1 file group with log files is compacted")


def test_a_bundle_that_cannot_compact_partitions_leaves_them(tmp_path: Path) -> None:
    """Releases before 1.0 compact whatever they like, so nothing is asked of them, and why is said."""
    table = TableBuilder(base_path=str(tmp_path / "trips"), merge_on_read=True)
    table.commit(at(1), {DAY: [("a-0", rows(1)), ("b-0", rows(2))]})
    table.commit(at(2), logs={DAY: [("a-0", at(1), 100)]})
    lines: list[str] = []
    engine = FakeEngine()
    workspace = replace(
        workspace_with(table, engine), bundle="org.apache.hudi:hudi-spark3.5-bundle_2.12:0.15.0", log=lines.append
    )
    report = maintenance.compact_small_files(workspace, now=NOW, settings=SETTINGS, job=JobControl()).report
    assert (report.outcome, engine.requests) == (Outcome.NOTHING_TO_DO, [])
    (warning,) = [line for line in lines if line.startswith("Warning: ")]
    assert "1 partition with log files cannot be compacted first" in warning
