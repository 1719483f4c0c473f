"""What somebody types who does not know the tool yet: each slip ends in a line that says what, which and what next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_hudi_maint.core.storage.table import HudiTable
from tests.airflow.marks import AIRFLOW
from tests.golden.golden import golden_names, truth
from tests.unit.cli.running import Run

pytestmark = AIRFLOW

Golden = Callable[[str], Path]


@pytest.mark.parametrize("options", ["", "--dry-run", "--undo last", "--undo 20261130T010203Z-ab12cd34"])
def test_a_directory_that_is_not_there_is_named_and_not_made(run: Run, tmp_path: Path, options: str) -> None:
    answer = run(f"merge {tmp_path}/lnading {options}")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith(f"Error: There is no directory {tmp_path}/lnading; give the path")
    assert not list(tmp_path.iterdir())


def test_an_empty_trash_has_nothing_to_undo(run: Run, tmp_path: Path) -> None:
    answer = run(f"merge {tmp_path} --undo last")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith(f"Error: {tmp_path} has no merge to undo: its trash is empty")


def test_two_dots_lead_where_a_shell_s_would(run: Run, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind a link, whose parent is that of its target."""
    table = golden("v9_mor_plain")
    (table.parent / "elsewhere").mkdir()
    (table.parent / "elsewhere" / "link").symlink_to(table / ".hoodie")
    monkeypatch.chdir(table.parent / "elsewhere")
    for path in ("../v9_mor_plain", "./../elsewhere/../v9_mor_plain/", "link/.."):
        assert run(f"show {path} --no-sizes -o json").json["base_path"] == str(table)


@pytest.mark.parametrize("days", ["nan", "inf", "-1", "1e12", "soon"])
def test_days_that_are_none_are_refused(run: Run, golden: Golden, days: str) -> None:
    answer = run(f"plan small-files {golden('v9_cow_plain')} --min-idle-days {days}")
    assert answer.code == 2
    assert f"{days!r} is no number of days from 0 on; write for example 7 or 0.5" in answer.err


def test_a_large_number_of_bytes_is_not_rounded(run: Run, golden: Golden) -> None:
    size = "9007199254740993"
    answer = run(
        f"plan clustering {golden('v9_cow_plain')} --target-file-bytes {size} --max-group-bytes {size} -o json"
    )
    assert answer.json["settings"]["target_file_bytes"] == 9007199254740993


def test_a_small_file_limit_of_nothing_is_refused(run: Run, golden: Golden) -> None:
    """It was taken for a limit that was not given."""
    answer = run(f"small-files {golden('v9_cow_plain')} --small-file-bytes 0")
    assert (answer.code, answer.err) == (
        1,
        "Error: small_file_bytes=0; expected at least 1, or None for the writer's\n",
    )


def test_an_unknown_partition_is_told_what_the_table_has(run: Run, golden: Golden) -> None:
    """The view of that partition alone has none, and the table has four."""
    answer = run(f"small-files {golden('v9_cow_plain')} --partition dya=1")
    assert answer.code == 1
    assert "has no partition 'dya=1' (1 unknown); partitions look like 'day=2026-11-01'" in answer.err


@pytest.mark.parametrize("name", ["v6_mor_pending", "v9_cow_pending"])
def test_a_broken_plan_does_not_hide_the_other_instants(run: Run, golden: Golden, name: str) -> None:
    table = golden(name)
    plans = [*table.glob(".hoodie/*.requested"), *table.glob(".hoodie/timeline/*.requested")]
    for plan in plans:
        plan.write_bytes(b"broken")
    rows = run(f"timeline {table} -o json").json
    assert len(truth(name)["timeline"]) == len(rows)
    problems = [row["problem"] for row in rows if row["problem"]]
    assert problems
    assert all("restore the file from a copy of the table, or roll the instant back" in one for one in problems)

    shown = run(f"show {table} -o json")
    assert (shown.code, shown.json["table"]) == (0, "trips")
    assert "cannot be decoded" in shown.json["totals_problem"]


def test_a_file_that_went_away_meanwhile_may_be_looked_for_again(
    run: Run, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cleaner passed between a listing and a reading: no bug, so no traceback."""

    def vanished(self: HudiTable) -> None:
        raise FileNotFoundError("/lake/trips/day=1/a.parquet does not exist")

    monkeypatch.setattr(HudiTable, "timeline", vanished)
    answer = run(f"show {golden('v9_mor_plain')}")
    said = "Error: /lake/trips/day=1/a.parquet does not exist: it went away while it was looked at; try again\n"
    assert (answer.code, answer.out, answer.err) == (75, "", said)


@pytest.mark.parametrize("option", ["--before", "--expiry-plan", "--clustering-plan", "--step-report"])
def test_a_document_that_is_not_there_is_an_error_of_the_report(run: Run, golden: Golden, option: str) -> None:
    """A task leaves such a part out; a person who typed the name wants to hear of it."""
    answer = run(f"report {golden('v9_cow_plain')} {option} statistics/1.json --output-file -")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == "Error: statistics/1.json does not exist; run the step that makes it again\n"


def test_counting_policies_on_a_table_without_partitions_are_explained(run: Run, golden: Golden) -> None:
    policies = '[{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2}]'
    answer = run(f"plan expiry {golden('v9_cow_flat')} --policies '{policies}'")
    assert answer.code == 1
    assert "policy KEEP_BY_COUNT 2 on / goes by partitions, and the table has none; drop the policy" in answer.err


@pytest.mark.parametrize("name", [one for one in golden_names() if "replaced" in one or "cleaned" in one])
def test_every_command_counts_the_same_partitions(run: Run, golden: Golden, name: str) -> None:
    """A dropped partition, whose directory stays until the cleaner passes, is one for none of them."""
    table = golden(name)
    stats = run(f"stats {table} --dry-run -o json").json["partitions"]
    commands = ("plan clustering", "plan small-files", "small-files")
    counts = [run(f"{command} {table} -o json").json["summary"]["partitions"] for command in commands]
    assert counts == [stats] * len(commands)


@pytest.mark.parametrize(("name", "said"), [("no.yaml", "does not exist"), ("", "is a folder; give the file in it")])
def test_a_policy_file_that_is_none_is_said_once(
    run: Run, golden: Golden, tmp_path: Path, name: str, said: str
) -> None:
    """A folder was taken for a storage that fails in passing."""
    (tmp_path / "policies").mkdir()
    file = tmp_path / "policies" / name
    answer = run(f"plan expiry {golden('v9_cow_plain')} --policy-file {file}")
    assert (answer.code, answer.err) == (1, f"Error: {file} {said}\n")
