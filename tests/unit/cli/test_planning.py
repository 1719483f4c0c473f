"""The commands that plan, and the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core.model.expiry_plan import ExpiryPlan
from airflow_hudi_maint.core.model.plan import ClusteringPlan
from tests.airflow.marks import AIRFLOW
from tests.airflow.tables import TableBuilder, three_days
from tests.unit.cli.running import Run

pytestmark = AIRFLOW

Golden = Callable[[str], Path]
KEEP_TWO = '--policies \'[{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2}]\''
DOCUMENTS = ".hoodie/.airflow_hudi_maint"


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    """A table of three partitions with one file each."""
    three_days(str(tmp_path / "trips"))
    return tmp_path / "trips"


def test_a_plan_says_what_expires_and_why(run: Run, trips: Path) -> None:
    answer = run(f"plan expiry {trips} {KEEP_TWO}")
    assert answer.code == 0
    assert answer.out.count("| expire ") == 1
    assert "KEEP_BY_COUNT 2" in answer.out
    assert "keep" not in answer.out.split("reason")[1]


def test_all_prints_what_is_kept_too(run: Run, trips: Path) -> None:
    assert run(f"plan expiry {trips} {KEEP_TWO} --all").out.count("| keep ") == 2


def test_nothing_is_written_unless_asked_for(run: Run, trips: Path) -> None:
    plan = run(f"plan expiry {trips} {KEEP_TWO} -o json").json
    assert (plan["plan_path"], plan["basis"]["statistics_path"]) == (None, None)
    assert not (trips / DOCUMENTS).exists()


def test_write_stores_the_plan_as_a_task_would(run: Run, trips: Path) -> None:
    """With the statistics that it rests on, for a task to apply."""
    plan = run(f"plan expiry {trips} {KEEP_TWO} --write -o json").json
    stored = ExpiryPlan.from_json(json.loads(Path(plan["plan_path"]).read_text()), name="plan")
    assert len(stored.expired) == 1
    assert Path(plan["basis"]["statistics_path"]).exists()


def test_a_tripped_guard_is_a_warning_on_stderr(run: Run, trips: Path) -> None:
    """The plan can be looked at; a task would refuse it."""
    guards = "--guards '{\"max_partition_share\": 0.1}'"
    answer = run(f"plan expiry {trips} {KEEP_TWO} {guards} -o json")
    assert answer.code == 0
    assert answer.err.startswith("Warning: ")
    assert "max_partition_share=0.1" in answer.err
    assert answer.json["warnings"]


def test_a_table_without_policies_says_so(run: Run, trips: Path) -> None:
    answer = run(f"plan expiry {trips}")
    assert answer.code == 0
    assert "no TTL policy" in answer.err
    assert "--all prints why" in answer.out


@pytest.mark.parametrize(("options", "code"), [("", 0), ("--exit-code", 3), (f"{KEEP_TWO} --exit-code", 0)])
def test_scripts_may_ask_whether_there_is_something_to_do(run: Run, trips: Path, options: str, code: int) -> None:
    assert code == run(f"plan expiry {trips} {options} -o json").code


def test_a_plan_of_small_files_has_its_figures_raw(run: Run, golden: Golden) -> None:
    answer = run(f"plan small-files {golden('v9_mor_plain')} -o json")
    plan = ClusteringPlan.from_json({k: v for k, v in answer.json.items() if k != "plan_path"}, name="stdout")
    assert plan.purpose == "small-files"
    assert plan.chosen
    assert isinstance(answer.json["summary"]["input_bytes"], int)


def test_sizes_come_with_units(run: Run, golden: Golden) -> None:
    table = golden("v9_mor_plain")
    sizes = "--target-file-bytes 1MiB --small-file-bytes 64KiB --max-group-bytes 2MiB --max-groups 1"
    settings = run(
        f"plan clustering {table} {sizes} --sort-column fare --sort-column ts --layout hilbert -o json"
    ).json["settings"]
    assert settings == {
        "target_file_bytes": 1024**2, "small_file_bytes": 64 * 1024, "max_group_bytes": 2 * 1024**2, "max_groups": 1,
        "sort_columns": ["fare", "ts"], "layout": "hilbert", "min_input_files": 2,
        "execution_strategy": "sort_and_size", "keeps_lone_groups": False,
    }  # fmt: skip


def test_only_the_partitions_that_are_named_are_considered(run: Run, golden: Golden) -> None:
    table = golden("v9_mor_plain")
    plan = run(f"plan clustering {table} --partition day=2026-11-03 -o json").json
    assert [one["partition"] for one in plan["entries"] if one["decision"] == "cluster"] == ["day=2026-11-03"]
    assert run(f"plan clustering {table} --partition day=nope").code == 1


def test_a_strategy_has_its_options_one_by_one(run: Run, golden: Golden) -> None:
    table = golden("v9_mor_plain")
    options = "--strategy-option lookback=1 --strategy-option skip_from_latest=1"
    plan = run(f"plan clustering {table} --strategy recent_days {options} -o json").json
    assert (plan["strategy"], plan["strategy_options"]) == ("recent_days", {"lookback": "1", "skip_from_latest": "1"})
    assert [one["partition"] for one in plan["entries"] if one["decision"] == "cluster"] == ["day=2026-11-03"]


def test_a_strategy_that_asks_for_history_stores_nothing(run: Run, golden: Golden) -> None:
    table = golden("v9_cow_clustered")
    answer = run(f"plan clustering {table} --strategy cold --strategy-option idle_days=100000 --all -o json")
    assert {one["decision"] for one in answer.json["entries"]} == {"keep"}
    assert "less than idle_days=100000" in answer.out
    assert not (table / DOCUMENTS).exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--strategy newest", "known are size_based"),
        ("--strategy largest --strategy-option 3", "--strategy-option '3' is not of the form name=value"),
        ("--strategy largest --strategy-option count=few", "count='few' is not a whole number"),
        ("--execution-strategy single_file_sort", "single_file_sort needs sort_columns"),
    ],
)
def test_a_wrong_strategy_says_what_would_be_right(run: Run, golden: Golden, options: str, message: str) -> None:
    answer = run(f"plan clustering {golden('v9_mor_plain')} {options}")
    assert answer.code == 1
    assert message in answer.err


def test_plain_has_a_row_a_line_and_nothing_else(run: Run, golden: Golden) -> None:
    lines = run(f"plan small-files {golden('v9_mor_plain')} --all -o plain").out.splitlines()
    assert lines[0].split()[:4] == ["partition", "decision", "input_files", "input_bytes"]
    assert len(lines) == 1 + 4
    assert lines[1].split()[3].isdigit()


def test_a_report_goes_into_the_file_that_is_named_and_nowhere_else(run: Run, trips: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    answer = run(f"report {trips} --output-file {page} --title 'Trips today' -o json")
    assert answer.json["report_path"] == str(page)
    assert "Trips today" in page.read_text(encoding="utf-8")
    assert not (trips / DOCUMENTS).exists()


def test_a_report_may_go_to_standard_output(run: Run, trips: Path) -> None:
    assert run(f"report {trips} --output-file -").out.lstrip().lower().startswith("<!doctype html")


def test_a_report_without_a_file_lies_where_a_task_puts_it(run: Run, trips: Path) -> None:
    path = Path(run(f"report {trips} -o json").json["report_path"])
    assert path.is_relative_to(trips / DOCUMENTS)
    assert path.exists()


def test_a_report_shows_what_the_documents_say(run: Run, tmp_path: Path) -> None:
    """Statistics of before and a plan, as the commands stored them."""
    builder = TableBuilder(base_path=str(tmp_path / "t")).create()
    builder.commit({"day=1": [1000], "day=2": [1000], "day=3": [1000]}, at=datetime(2026, 11, 1, tzinfo=UTC))
    before = run(f"stats {tmp_path / 't'} -o json").json["statistics_path"]
    plan = run(f"plan expiry {tmp_path / 't'} {KEEP_TWO} --write -o json").json["plan_path"]
    builder.commit({"day=4": [1000]}, at=datetime(2026, 11, 2, tzinfo=UTC))
    answer = run(
        f"report {tmp_path / 't'} --before {before} --expiry-plan {plan} --output-file {tmp_path / 'p.html'} -o json"
    )
    assert "KEEP_BY_COUNT" in (tmp_path / "p.html").read_text(encoding="utf-8")
    assert answer.json["summary"].splitlines()[2].split()[:3] == ["partitions", "3", "4"]
