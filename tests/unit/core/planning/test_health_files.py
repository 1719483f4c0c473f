"""Signals about files and about the table as a whole, by cases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_hudi_maint.core.model.commit import PlanKind
from airflow_hudi_maint.core.model.health import Severity
from airflow_hudi_maint.core.model.health_facts import FileTotals, HealthFacts, Heartbeat
from airflow_hudi_maint.core.planning.health import judge_health
from tests.unit.core.planning.builders import partition
from tests.unit.core.planning.health_builders import (
    DAY,
    HOUR,
    NOW,
    ago,
    config,
    facts,
    plan,
    requested,
    signal,
    small_files,
    with_files,
)

MOR = config(merge_on_read=True)


def test_small_files_are_a_share_of_the_base_files() -> None:
    """Eleven of twelve, and ten of them could be merged into another one."""
    rows = with_files(small_files("day=1", 11), replace(partition("day=2", total_bytes=500), base_file_bytes=(500,)))
    found = signal("small_file_ratio", facts(statistics=rows))
    assert found.value == pytest.approx(11 / 12)
    assert found.severity is Severity.CRITICAL
    assert "HudiCompactSmallFilesOperator" in found.advice


def test_one_small_file_to_a_partition_cannot_be_merged() -> None:
    """That is the other signal's: too many partitions for the data, which no rewrite cures."""
    rows = with_files(*(small_files(f"day={n}", 1) for n in range(20)))
    assert signal("small_file_ratio", facts(statistics=rows)).severity is Severity.OK
    micro = signal("micro_partition_ratio", facts(statistics=rows))
    assert (micro.value, micro.severity) == (1, Severity.WARNING)
    assert "no rewrite of files cures" in micro.advice


def test_a_small_table_is_left_in_peace() -> None:
    """Nine micro-partitions are no burden."""
    rows = with_files(*(small_files(f"day={n}", 1) for n in range(9)))
    assert signal("micro_partition_ratio", facts(statistics=rows)).severity is Severity.OK


def test_a_table_without_partitions_has_no_micro_partitions() -> None:
    """There is only one place for its files."""
    flat = config(hoodie__table__partition__fields="")
    assert judge_health(facts(config=flat), now=NOW).signal("micro_partition_ratio") is None


def test_without_statistics_file_signals_are_unknown_for_the_reason_given() -> None:
    """A broken table is judged by what can be read of it."""
    found = signal("small_file_ratio", facts(unread={"statistics": "x.commit is empty"}))
    assert (found.severity, found.found) == (Severity.UNKNOWN, "x.commit is empty.")


@pytest.mark.parametrize(
    ("version", "setting"), [(6, "hoodie.archive.merge.enable"), (9, "hoodie.timeline.compaction")]
)
def test_a_large_archive_names_the_setting_of_its_version(version: int, setting: str) -> None:
    """The archive is another one since table version 8."""
    seen = facts(config=config(version=version), archive=FileTotals(count=500, bytes=2 * 1024**3))
    assert signal("archive_files", seen).severity is Severity.WARNING
    found = signal("archive_bytes", seen)
    assert found.severity is Severity.WARNING
    assert setting in found.advice


def test_leftovers_of_dead_writers_are_counted() -> None:
    """Not those of a pending instant, nor those that may be of a writer that just began."""
    seen = facts(
        requested(2 * HOUR),
        marker_instants=(ago(2 * HOUR), ago(3 * HOUR), ago(10), "views"),
        heartbeats=(
            Heartbeat(instant_time=ago(5 * HOUR), last_beat=NOW - timedelta(hours=4)),
            Heartbeat(instant_time=ago(4 * HOUR), last_beat=NOW - timedelta(minutes=1)),
            Heartbeat(instant_time=ago(6 * HOUR), last_beat=None),
        ),
    )
    found = signal("dead_writer_leftovers", seen)
    assert found.value == 2
    assert found.details == (f"markers of {ago(3 * HOUR)}", f"heartbeat of {ago(5 * HOUR)}")


def test_details_end_after_twenty() -> None:
    """A table in trouble has thousands."""
    found = signal("dead_writer_leftovers", facts(marker_instants=tuple(ago(DAY + n) for n in range(25))))
    assert (len(found.details), found.details[-1]) == (21, "and 5 more")


# ----------------------------------------------------------------------------------------------------------- table


def test_a_bundle_that_must_not_write_the_table_is_critical_whatever_the_thresholds() -> None:
    """There is nothing to choose about it."""
    found = signal("bundle_mismatch", facts(bundle_problem="Hudi 1.0.2 writes table versions 8"))
    assert (found.value, found.severity, found.found) == (1, Severity.CRITICAL, "Hudi 1.0.2 writes table versions 8.")


def test_metadata_partitions_that_are_being_built_are_named() -> None:
    """Jobs are refused meanwhile."""
    building = config(hoodie__table__metadata__partitions__inflight="record_index")
    found = signal("metadata_partitions_inflight", facts(config=building))
    assert (found.severity, found.details) == (Severity.WARNING, ("record_index",))


def test_contradictions_are_as_bad_as_the_worst_of_them() -> None:
    """Each of them stands in the details with its advice."""
    options = {"hoodie.keep.max.commits": "5", "hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    found = signal("contradicting_settings", facts(write_options=options))
    assert (found.value, found.severity) == (2, Severity.CRITICAL)
    assert "hoodie.write.lock.provider" in found.advice
    assert any("hoodie.keep.min.commits" in one for one in found.details)


def test_facts_keep_options_out_of_their_repr() -> None:
    """They may hold credentials of a lock provider."""
    seen: HealthFacts = facts(write_options={"hoodie.write.lock.zookeeper.password": "topsecret"})
    assert "topsecret" not in repr(seen)


def test_a_compaction_plan_is_counted_with_what_it_holds() -> None:
    """On every version its action says what it is."""
    name = requested(2 * DAY, "compaction")
    seen = facts(name, config=MOR, plans=(plan(name, kind=PlanKind.COMPACTION),))
    assert "holds 1 file group of 1 partition" in signal("pending_compaction_seconds", seen).found
