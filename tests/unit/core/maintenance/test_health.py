"""The use case: look, judge, write, and refuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import UnhealthyTableError
from airflow_hudi_maint.core.model.health import Severity, TableHealth
from airflow_hudi_maint.core.planning.health_thresholds import HealthThresholds, Limits
from tests.golden.golden import unpack
from tests.unit.core.storage.builders import TableBuilder, at

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def workspace(base_path: str, **more: object) -> maintenance.Workspace:
    return maintenance.open_workspace(base_path, timeline_zone="UTC", **more)  # type: ignore[arg-type]


def test_what_is_found_is_written_and_reads_back(tmp_path: Path) -> None:
    """Together with the statistics that it rests on."""
    opened = workspace(str(unpack("v9_cow_pending", tmp_path)))
    checked = maintenance.check_health(opened, now=NOW + timedelta(days=2))
    assert TableHealth.from_json(opened.documents.read(checked.path), name=checked.path) == checked.health
    assert checked.health.severity is Severity.CRITICAL
    assert checked.health.statistics_instant == checked.health.as_of_instant
    assert opened.documents.names("statistics") == (f"{checked.health.as_of_instant}.json",)


def test_orphans_are_a_signal_where_somebody_looks_for_them(tmp_path: Path) -> None:
    """With the instant that left them; without the look there is no such signal, and no partition is listed for it."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    for second in (1, 9):
        builder.commit(at(second), {"day=2026-11-01": [(f"f{second}-0", 1)]})
    opened = workspace(builder.base_path)
    fine = maintenance.check_health(opened, now=NOW, orphans=True).health.signal("orphan_files")
    assert (fine.value, fine.severity) == (0, Severity.OK)
    builder.base_file("day=2026-11-01", "dead-0", at(5), 7)
    found = maintenance.check_health(opened, now=NOW, orphans=True).health.signal("orphan_files")
    assert (found.value, found.severity, found.details) == (1, Severity.WARNING, (f"1 file of instant {at(5)}",))
    assert "orphan_files" not in {one.name for one in maintenance.check_health(opened, now=NOW).health.signals}


def test_statistics_that_are_given_are_not_gathered_again(tmp_path: Path) -> None:
    """The look itself lists nothing of the data."""
    opened = workspace(str(unpack("v6_mor_pending", tmp_path)))
    statistics = maintenance.gather_statistics(opened, now=NOW).statistics
    before = opened.table.storage.requests.lists
    maintenance.check_health(opened, now=NOW, statistics=statistics)
    # The timeline and three folders beside it; one more for the names of older health documents.
    assert opened.table.storage.requests.lists - before == 5


def test_a_table_too_broken_for_statistics_is_judged_by_the_rest(tmp_path: Path) -> None:
    """An empty replace commit decides which files count, so there are no statistics."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(1), {"day=2026-11-01": [("f", 1)]})
    builder.put(f"{builder.timeline_folder}/{at(2)}_{at(3)}.replacecommit", b"")
    lines: list[str] = []
    health = maintenance.check_health(workspace(builder.base_path, log=lines.append), now=NOW).health
    small = health.signal("small_file_ratio")
    assert small is not None
    assert small.severity is Severity.UNKNOWN
    assert f"{at(2)}_{at(3)}.replacecommit" in small.found
    assert health.signal("active_instants") is not None
    assert any(line.startswith("Warning: no statistics: ") for line in lines)


def test_a_bundle_that_cannot_write_the_table_is_critical(tmp_path: Path) -> None:
    """Before any job is refused for it."""
    opened = workspace(str(unpack("v9_cow_plain", tmp_path)), bundle="org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2")
    found = maintenance.check_health(opened, now=NOW).health.signal("bundle_mismatch")
    assert found is not None
    assert found.severity is Severity.CRITICAL
    assert "table of version 9" in found.found


def test_write_options_of_the_workspace_are_what_is_judged(tmp_path: Path) -> None:
    """The connection's."""
    opened = workspace(str(unpack("v9_cow_plain", tmp_path)), write_options={"hoodie.keep.max.commits": "2"})
    health = maintenance.check_health(opened, now=NOW).health
    named = {one.name for one in health.of(Severity.WARNING)}
    assert {"active_instants", "contradicting_settings"} <= named


def test_findings_are_logged_and_only_alarms_as_warnings(tmp_path: Path) -> None:
    """With their advice."""
    lines: list[str] = []
    opened = workspace(str(unpack("v9_cow_pending", tmp_path)), log=lines.append)
    maintenance.check_health(opened, now=NOW + timedelta(days=2))
    warnings = [line for line in lines if line.startswith("Warning: ")]
    assert [line.split()[1] for line in warnings] == ["pending_write_seconds", "pending_clustering_seconds"]
    assert any(line.startswith("Health of trips as of ") for line in lines)


@pytest.mark.parametrize(
    ("fail_on", "refused"),
    [(Severity.CRITICAL, ["pending_write_seconds"]), (Severity.WARNING, ["pending_write", "clus"])],
)
def test_a_table_is_refused_from_the_severity_on(fail_on: Severity, refused: list[str], tmp_path: Path) -> None:
    """The message has each signal and what to do."""
    opened = workspace(str(unpack("v9_cow_pending", tmp_path)))
    health = maintenance.check_health(opened, now=NOW + timedelta(days=2)).health
    with pytest.raises(UnhealthyTableError) as error:
        maintenance.refuse_unhealthy(health, fail_on=fail_on)
    assert all(name in str(error.value) for name in refused)
    assert ("run_clustering" in str(error.value)) is (fail_on is Severity.WARNING)
    maintenance.refuse_unhealthy(health, fail_on=None)


def test_an_unknown_signal_refuses_nothing(tmp_path: Path) -> None:
    """Not even on warning: what cannot be told is no alarm."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    health = maintenance.check_health(workspace(builder.base_path), now=NOW).health
    assert health.severity is Severity.UNKNOWN
    maintenance.refuse_unhealthy(health, fail_on=Severity.WARNING)


def test_thresholds_are_the_callers(tmp_path: Path) -> None:
    """A limit that is lifted warns of nothing."""
    opened = workspace(str(unpack("v9_cow_pending", tmp_path)))
    lifted = HealthThresholds(pending_write_seconds=Limits(), pending_clustering_seconds=Limits())
    health = maintenance.check_health(opened, now=NOW + timedelta(days=2), thresholds=lifted).health
    assert health.severity is Severity.OK
