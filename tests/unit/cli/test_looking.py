"""The commands that look: show, timeline, partitions, stats, health."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_hudi_maint.core.model.health import HealthSignal, Severity, TableHealth, Unit
from tests.airflow.marks import AIRFLOW
from tests.airflow.tables import TableBuilder, three_days
from tests.golden.golden import packed_files, truth
from tests.unit.cli.running import Run

pytestmark = AIRFLOW

Golden = Callable[[str], Path]
LOOKING = (
    "show", "timeline", "timeline --archived", "partitions", "stats --dry-run", "health", "plan expiry",
    "plan clustering", "plan small-files", "report --output-file -",
)  # fmt: skip


@pytest.mark.parametrize("command", LOOKING)
@pytest.mark.parametrize("name", ["v6_cow_archived", "v8_cow_pending", "v9_mor_pending"])
def test_looking_writes_nothing(run: Run, golden: Golden, command: str, name: str) -> None:
    """Not even statistics: a look needs no right to write."""
    table = golden(name)
    before = packed_files(table)
    assert run(f"{command} {table}").code in (0, 4, 5)
    assert before == packed_files(table)


def test_show_says_what_the_table_is(run: Run, golden: Golden) -> None:
    table = golden("v9_mor_pending")
    shown = run(f"show {table} -o json").json
    assert (shown["table"], shown["table_version"], shown["table_type"]) == ("trips", 9, "MERGE_ON_READ")
    assert shown["partition_fields"] == ["day"]
    assert [one["action"] for one in shown["pending"]] == ["compaction", "clustering", "deltacommit"]
    assert shown["bytes"] > 0
    assert isinstance(shown["bytes"], int)


def test_show_without_sizes_lists_no_partition(run: Run, golden: Golden) -> None:
    shown = run(f"show {golden('v9_mor_plain')} --no-sizes -o json").json
    assert "bytes" not in shown


def test_show_names_a_broken_policy_instead_of_failing(run: Run, tmp_path: Path) -> None:
    """Somebody who looks at a table wants to see it, the more so when something is wrong with it."""
    table = str(tmp_path / "t")
    TableBuilder(base_path=table).create(hoodie__partition__ttl__policies="[{}]")
    shown = run(f"show {table} -o json").json
    assert "lacks" in shown["policies_problem"]


def test_the_timeline_is_the_one_that_hudi_sees(run: Run, golden: Golden) -> None:
    """Newest first, each with its action and, where the version has them, its completion time."""
    name = "v9_mor_pending"
    rows = run(f"timeline {golden(name)} -o json").json
    told = truth(name)["timeline"]
    assert {(one["requested"], one["completed"]) for one in told if one["state"] == "COMPLETED"} == {
        (row["requested_time"], row["completion_time"]) for row in rows if row["state"] == "completed"
    }
    times = [row["requested_time"] for row in rows]
    assert times == sorted(times, reverse=True)


def test_the_timeline_says_what_each_instant_did(run: Run, golden: Golden) -> None:
    rows = {row["requested_time"]: row for row in run(f"timeline {golden('v9_mor_pending')} -o json").json}
    dropped = next(row for row in rows.values() if row["operation"] == "DELETE_PARTITION")
    assert (dropped["partitions"], dropped["files"], dropped["replaced"], dropped["bytes"]) == (1, 0, 1, 0)
    undone = next(row for row in rows.values() if row["action"] == "rollback")
    assert undone["detail"].startswith("undid 2026")
    planned = next(row for row in rows.values() if row["action"] == "compaction")
    assert planned["detail"] == "holds 2 file groups"


def test_completion_on_version_6_is_when_the_file_was_written(run: Run, golden: Golden) -> None:
    """Its instants have no completion time of their own."""
    table = golden("v6_cow_plain")
    (row,) = run(f"timeline {table} --limit 1 -o json").json
    assert row["completion_time"] is None
    written = (table / ".hoodie" / f"{row['requested_time']}.commit").stat().st_mtime
    assert abs(datetime.fromisoformat(row["completed_at"]).timestamp() - written) < 0.002


def test_instants_are_moments_in_the_zone_of_the_table(run: Run, golden: Golden) -> None:
    (row,) = run(f"timeline {golden('v6_cow_plain')} --limit 1 --timezone Europe/Berlin -o json").json
    assert row["requested_at"].endswith("+01:00")
    assert row["requested_at"][11:13] == row["requested_time"][8:10]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--pending", {"compaction", "clustering", "deltacommit"}),
        ("--action rollback --action clustering", {"rollback", "clustering"}),
        ("--pending --action clustering", {"clustering"}),
        ("--pending --action rollback", set()),
    ],
)
def test_the_timeline_is_narrowed(run: Run, golden: Golden, options: str, expected: set[str]) -> None:
    rows = run(f"timeline {golden('v9_mor_pending')} {options} -o json").json
    assert expected == {row["action"] for row in rows}


@pytest.mark.parametrize("name", ["v6_cow_archived", "v9_cow_archived"])
def test_the_archive_has_what_left_the_timeline(run: Run, golden: Golden, name: str) -> None:
    table = golden(name)
    archived = run(f"timeline {table} --archived -o json").json
    active = run(f"timeline {table} -o json").json
    assert archived
    assert max(row["requested_time"] for row in archived if row["action"] == "commit") < min(
        row["requested_time"] for row in active if row["action"] == "commit"
    )
    assert all(row["files"] > 0 for row in archived if row["operation"] == "UPSERT")


def test_a_broken_instant_does_not_hide_the_others(run: Run, golden: Golden) -> None:
    table = golden("v9_cow_plain")
    broken = max((table / ".hoodie" / "timeline").glob("*.commit"))
    broken.write_bytes(b"Obj\x01nonsense")
    rows = run(f"timeline {table} -o json").json
    assert [bool(row["problem"]) for row in rows] == [True, *[False] * (len(rows) - 1)]
    assert all(row["operation"] for row in rows[1:])


def test_a_table_is_cut_to_what_a_person_reads_and_json_is_not(run: Run, tmp_path: Path) -> None:
    builder = TableBuilder(base_path=str(tmp_path / "wide")).create()
    start = datetime(2026, 11, 1, tzinfo=UTC)
    builder.commit({f"day={n:03d}": [1024] for n in range(30)}, at=start)
    assert len(run(f"partitions {tmp_path / 'wide'} -o json").json) == 30
    table = run(f"partitions {tmp_path / 'wide'}")
    assert table.out.count("day=") == 20
    assert "Showing 20 of 30 rows; --limit 0 shows all" in table.err
    assert run(f"partitions {tmp_path / 'wide'} --limit 0").out.count("day=") == 30


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", ["a=1", "a=2", "b=1"]),
        ("--sort bytes", ["b=1", "a=1", "a=2"]),
        ("--sort files", ["a=2", "b=1", "a=1"]),
        ("--sort modified --limit 1", ["b=1"]),
        ("--match 'a=*'", ["a=1", "a=2"]),
        ("--match '*=1'", ["a=1", "b=1"]),
        ("--match b=1 --match a=2", ["a=2", "b=1"]),
        ("--match a", []),
    ],
)
def test_partitions_are_sorted_and_matched(run: Run, tmp_path: Path, options: str, expected: list[str]) -> None:
    start = datetime(2026, 11, 1, tzinfo=UTC)
    builder = TableBuilder(base_path=str(tmp_path / "t")).create()
    builder.commit({"a=1": [5000], "a=2": [10, 10]}, at=start)
    builder.commit({"b=1": [9000]}, at=start + timedelta(hours=1))
    rows = run(f"partitions {tmp_path / 't'} {options} -o json").json
    assert expected == [row["partition"] for row in rows]


def test_partitions_in_memory_are_seen_as_those_on_disk(run: Run) -> None:
    """Any URL that fsspec opens will do."""
    three_days("memory://cli/trips")
    assert len(run("partitions memory://cli/trips -o json").json) == 3


def test_stats_writes_the_document_that_tasks_read(run: Run, golden: Golden) -> None:
    table = golden("v9_mor_plain")
    printed = run(f"stats {table} -o json").json
    document = json.loads(Path(printed["statistics_path"]).read_text())
    assert document["totals"]["bytes"] == printed["bytes"]
    assert (printed["gathered"], run(f"stats {table} -o json").json["gathered"]) == ("full", "incremental")
    assert run(f"stats {table} --full -o json").json["gathered"] == "full"


def test_stats_lists_and_counts_as_it_is_told(run: Run, golden: Golden) -> None:
    """Each way of listing that the table has gives the same figures; one that it has not is an error, not a guess."""
    table = golden("v9_mor_plain")
    counted = run(f"stats {table} --full --listing directory --records footers -o json").json
    assert counted["bytes"] == run(f"stats {table} --full -o json").json["bytes"]
    refused = run(f"stats {table} --full --listing metadata")
    assert (refused.code, refused.out) == (1, "")
    assert "metadata" in refused.err


def test_full_and_incremental_exclude_each_other(run: Run, golden: Golden) -> None:
    answer = run(f"stats {golden('v9_mor_plain')} --full --incremental")
    assert (answer.code, answer.out) == (2, "")
    assert "exclude each other" in answer.err


@pytest.mark.parametrize(
    ("severity", "code"), [(Severity.OK, 0), (Severity.UNKNOWN, 0), (Severity.WARNING, 4), (Severity.CRITICAL, 5)]
)
@pytest.mark.parametrize("output", ["table", "plain", "json", "yaml"])
def test_health_ends_with_how_bad_it_is(
    run: Run, golden: Golden, monkeypatch: pytest.MonkeyPatch, severity: Severity, code: int, output: str
) -> None:
    """In every form of output; what is unknown is no alarm."""
    signal = HealthSignal(name="probe", value=1, unit=Unit.COUNT, severity=severity, found="Found one.")
    found = TableHealth(
        base_path="/t", table_name="t", table_version=9, table_type="COPY_ON_WRITE", as_of_instant="1",
        checked_at="2026-12-01T00:00:00+00:00", signals=(signal,),
    )  # fmt: skip
    monkeypatch.setattr("airflow_hudi_maint.core.maintenance.health.judge_health", lambda *_, **__: found)
    answer = run(f"health {golden('v9_mor_plain')} -o {output} --all")
    assert (answer.code, "probe" in answer.out) == (code, True)


def test_health_thresholds_are_those_that_are_given(run: Run, golden: Golden) -> None:
    limits = json.dumps({"last_write_seconds": {"warning": 0.001, "critical": 0.002}})
    answer = run(f"health {golden('v9_mor_plain')} --thresholds '{limits}'")
    assert answer.code == 5
    assert "last_write_seconds" in answer.out
