"""The report of a table as it is: golden tables in every state, tables with nothing in them, and broken ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import Workspace
from airflow_hudi_maint.core.model.policy import DEFAULT_POLICY_KEY, DEFAULT_VALUE_KEY, PolicySet
from airflow_hudi_maint.core.planning.expiry import ExpiryGuards
from tests.golden.golden import truth, unpack

NOW = datetime(2026, 12, 1, tzinfo=UTC)
KEEP_TWO = PolicySet.from_json([{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2}])


def _workspace(path: Path, log: list[str] | None = None) -> Workspace:
    lines = [] if log is None else log
    return maintenance.open_workspace(str(path), timeline_zone="UTC", log=lines.append)


def _set(path: Path, **settings: str) -> None:
    with (path / ".hoodie" / "hoodie.properties").open("a") as file:
        file.writelines(f"{key}={value}\n" for key, value in settings.items())


@pytest.mark.parametrize(
    "name", ["v6_cow_archived", "v6_mor_flat", "v8_mor_pending", "v8_cow_odd", "v9_cow_pending", "v9_mor_restored"]
)
def test_a_table_in_any_state_has_a_report(name: str, tmp_path: Path) -> None:
    """Every pending instant that the JVM sees is on the page, and nothing is left out."""
    path = unpack(name, tmp_path)
    written = maintenance.write_report(_workspace(path), now=NOW)
    assert "What could not be told" not in written.page
    assert written.picture_path == written.path.replace(".html", ".png")
    assert Path(written.picture_path).read_bytes().startswith(b"\x89PNG")
    assert Path(written.path).read_text() == written.page
    pending = [one["requested"] for one in truth(name)["timeline"] if one["state"].lower() != "completed"]
    section = written.page[written.page.index('id="timeline"') :]
    shown = section[: section.index("<details>")]
    assert [one for one in pending if f"<code>{one}</code>" not in shown] == []


def test_the_pages_instants_say_what_they_did_and_how_long_they_took(tmp_path: Path) -> None:
    page = maintenance.write_report(_workspace(unpack("v9_cow_clustered", tmp_path)), now=NOW).page
    assert ": clustering (cluster), 1 partition, " in page
    assert ": drop (delete partition), 1 partition, " in page
    assert ": rollback, " in page


def test_a_second_report_on_the_same_state_is_the_same(tmp_path: Path) -> None:
    """But for the line that says how the statistics were gathered."""
    path = unpack("v9_cow_plain", tmp_path)
    maintenance.gather_statistics(_workspace(path), now=NOW)
    first = maintenance.write_report(_workspace(path), now=NOW)
    picture = Path(first.picture_path or "").read_bytes()
    second = maintenance.write_report(_workspace(path), now=NOW)
    assert first == second
    assert Path(second.picture_path or "").read_bytes() == picture


def test_the_forecast_goes_by_the_policies_of_the_table_of_the_plan_or_of_the_argument(tmp_path: Path) -> None:
    path = unpack("v9_cow_plain", tmp_path)
    workspace = _workspace(path)
    assert "The table has no TTL policy" in maintenance.write_report(workspace, now=NOW).page
    lifted = ExpiryGuards(max_partition_share=None, max_byte_share=None)
    planned = maintenance.plan_expiry(workspace, now=NOW, policies=KEEP_TWO, guards=lifted)
    page = maintenance.write_report(workspace, now=NOW, expiry_plan_path=planned.path).page
    assert f"{planned.plan.summary()['expired']} partitions with" in page
    assert "would expire now" in page
    held = ExpiryGuards(protected=tuple(one.partition_path for one in planned.plan.expired))
    page = maintenance.write_report(workspace, now=NOW, policies=KEEP_TWO, guards=held).page
    assert "would expire now" not in page
    _set(path, **{DEFAULT_POLICY_KEY: "KEEP_BY_COUNT", DEFAULT_VALUE_KEY: "2"})
    assert "would expire now" in maintenance.write_report(_workspace(path), now=NOW).page


def test_broken_policies_leave_out_the_forecast_and_say_why(tmp_path: Path) -> None:
    path, log = unpack("v9_cow_plain", tmp_path), list[str]()
    _set(path, **{DEFAULT_POLICY_KEY: "KEEP_FOREVER", DEFAULT_VALUE_KEY: "2"})
    page = maintenance.write_report(_workspace(path, log), now=NOW).page
    assert "What will expire, and when: " in page
    assert "KEEP_FOREVER" in page
    assert 'id="expiry"' not in page
    assert any(line.startswith("Warning: left out of the report: What will expire") for line in log)


def test_a_table_without_a_commit_has_a_report(tmp_path: Path) -> None:
    path = unpack("v9_cow_plain", tmp_path)
    for file in (path / ".hoodie" / "timeline").glob("*"):
        if file.is_file():
            file.unlink()
    page = maintenance.write_report(_workspace(path), now=NOW).page
    assert "The table has no data files." in page
    assert "The table has no partitions with data." in page


def test_a_broken_commit_leaves_out_what_the_instants_did(tmp_path: Path) -> None:
    """The statistics are there already, and the other parts of the page do not need it."""
    path = unpack("v9_cow_plain", tmp_path)
    maintenance.gather_statistics(_workspace(path), now=NOW)
    last = max((path / ".hoodie" / "timeline").glob("*.commit"))
    last.write_bytes(b"")
    page = maintenance.write_report(_workspace(path), now=NOW).page
    assert "What the last instants did: " in page
    assert last.name in page
    assert 'id="timeline"' in page


def test_a_document_that_is_gone_or_broken_is_left_out(tmp_path: Path) -> None:
    path, log = unpack("v9_cow_plain", tmp_path), list[str]()
    workspace = _workspace(path, log)
    broken = workspace.documents.write("plans", name="broken.json", document={"kind": "expiry-plan"})
    page = maintenance.write_report(
        workspace, now=NOW, expiry_plan_path=broken, clustering_plan_path="plans/gone.json"
    ).page
    assert 'id="plans"' not in page
    assert len([line for line in log if line.startswith("Warning: left out of the report")]) == 2


def test_orphan_files_are_counted_when_asked_for(tmp_path: Path) -> None:
    path = unpack("v9_cow_plain", tmp_path)
    partition = next(iter(truth("v9_cow_plain")["partitions"]))
    (path / partition / "left-behind.tmp").write_bytes(b"x" * 2048)
    assert "Orphan files" not in maintenance.write_report(_workspace(path), now=NOW).page
    page = maintenance.write_report(_workspace(path), now=NOW, orphans=True).page
    assert "1 file, 2 KiB in 1 partition" in page
    assert "Orphans of nobody known" in page


def test_the_junk_of_a_failed_clustering_is_shown_with_its_instant(tmp_path: Path) -> None:
    """Its rollback is over and left a file behind: no reader sees it, and no cleaner takes it."""
    path = unpack("v9_cow_plain", tmp_path)
    partition = next(iter(truth("v9_cow_plain")["partitions"]))
    timeline = _workspace(path).table.timeline()
    died = str(int(timeline.completed[-1].requested_time) - 1)
    (path / partition / f"11111111-2222-3333-4444-555555555555-0_0-7-7_{died}.parquet").write_bytes(b"x" * 1024)
    page = maintenance.write_report(_workspace(path), now=NOW, orphans=True).page
    assert f"Orphans of instant {died}" in page


def test_somebody_who_only_looks_leaves_nothing_behind(tmp_path: Path) -> None:
    path = unpack("v9_cow_plain", tmp_path)
    workspace = _workspace(path)
    looking = replace(workspace, documents=workspace.documents.reading_only())
    before = sorted(path.rglob("*"))
    written = maintenance.write_report(looking, now=NOW)
    assert written.picture_path is None
    assert sorted(path.rglob("*")) == before
