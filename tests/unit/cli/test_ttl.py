"""``airflow hudi ttl``: policies looked at, changed and tried out from a terminal."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.cli import arguments
from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.model.policy import PolicyClock, PolicyKind
from tests.airflow.marks import AIRFLOW
from tests.airflow.tables import TableBuilder
from tests.unit.cli.running import Run

pytestmark = AIRFLOW

EU = "--spec region=eu/ --policy KEEP_BY_COUNT --value 4"
FILE = """
version: 1
policies:
  - {partitionSpec: /, policy: KEEP_BY_TIME, policyValue: 20, default: true}
  - {partitionSpec: region=eu/, policy: KEEP_BY_COUNT, policyValue: 4}
"""
PROPERTIES = ".hoodie/hoodie.properties"


class Terminal(io.StringIO):
    """A person who types a line."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    """Two regions and ten days of November 2026."""
    path = tmp_path / "trips"
    builder = TableBuilder(base_path=str(path)).create(hoodie__table__partition__fields="region,day")
    for day in range(1, 29, 3):
        at = datetime(2026, 11, day, 4, tzinfo=UTC)
        builder.commit({f"region={one}/day=2026-11-{day:02d}": [1000] for one in ("eu", "us")}, at=at)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policies.yaml"
    path.write_text(FILE)
    return path


def properties(trips: Path) -> bytes:
    return (trips / PROPERTIES).read_bytes()


def test_a_policy_is_added_shown_and_dropped(run: Run, trips: Path) -> None:
    """What ``show`` prints as JSON is what commands and operators take."""
    assert "+ KEEP_BY_COUNT 4 on region=eu/\n" in run(f"ttl add {trips} {EU}").out
    added = run(f"ttl add {trips} --default --policy keep_by_size --value 10KiB -o json").json
    assert (True, False) == (added["changed"], added["dry_run"])
    assert ["+ KEEP_BY_SIZE 10240 on / (default)"] == added["difference"]
    shown = run(f"ttl show {trips} -o json").json
    assert [("region=eu/", 4, None), ("/", 10240, True)] == [
        (one["partitionSpec"], one["policyValue"], one.get("default")) for one in shown
    ]
    assert 0 == run(f"plan expiry {trips} --policies '{json.dumps(shown)}' -o json").code
    dropped = run(f"ttl drop {trips} --spec region=eu/ --default")
    assert (0, "TTL policies written: 0 added, 0 changed, 2 dropped; the table has 0 policies") == (
        dropped.code,
        dropped.out.splitlines()[-1],
    )


def test_a_table_shows_policies_for_people_and_plain_for_programs(run: Run, trips: Path) -> None:
    run(f"ttl add {trips} --spec region=us/ --policy KEEP_BY_TIME --value 30 --clock created")
    table = run(f"ttl show {trips}").out
    assert "| 30 days |" in table
    assert "clock=created" in table
    assert ["region=us/", "KEEP_BY_TIME", "30", "no", "clock=created", "hoodie.partition.ttl.policies"] == (
        run(f"ttl show {trips} -o plain").out.splitlines()[1].split()
    )


def test_a_table_without_policies_says_so(run: Run, trips: Path) -> None:
    answer = run(f"ttl show {trips} -o json")
    assert (0, []) == (answer.code, answer.json)
    assert "no TTL policy" in answer.err


@pytest.mark.parametrize("command", [f"add {{}} {EU}", "drop {} --spec region=us/", "empty {}", "apply {file} {}"])
def test_a_dry_run_writes_nothing(run: Run, trips: Path, file: Path, command: str) -> None:
    run(f"ttl add {trips} --spec region=us/ --policy KEEP_BY_COUNT --value 1")
    before = properties(trips)
    answer = run(f"ttl {command.format(trips, file=file)} --dry-run")
    assert 0 == answer.code
    assert "TTL policies would be written" in answer.out
    assert before == properties(trips)


def test_a_policy_that_is_not_there_is_none_to_drop_and_those_that_are_are_named(run: Run, trips: Path) -> None:
    """A slip of the pen shows."""
    run(f"ttl add {trips} {EU}")
    answer = run(f"ttl drop {trips} --spec region=ue/")
    assert (0, "Warning: the table has no such policy; it has 'region=eu/'\n") == (answer.code, answer.err)


@pytest.mark.parametrize(
    ("answer", "code", "is_written"), [("y\n", 0, True), ("YES\n", 0, True), ("n\n", 1, False), ("", 1, False)]
)
def test_a_file_is_applied_after_its_difference_was_agreed_to(
    run: Run,
    trips: Path,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
    is_written: bool,  # noqa: FBT001 a parameter of the test
) -> None:
    """The difference goes before the question; anything but yes is no."""
    run(f"ttl add {trips} --spec region=us/ --policy KEEP_BY_COUNT --value 1")
    before = properties(trips)
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    asked = run(f"ttl apply {file} {trips}")
    assert code == asked.code
    assert asked.err.index("- KEEP_BY_COUNT 1 on region=us/") < asked.err.index(f"Write this to {trips}? [y/N]")
    assert is_written == (before != properties(trips))
    assert is_written == ("TTL policies written: 2 added, 0 changed, 1 dropped" in asked.out)


def test_a_script_has_to_say_yes(run: Run, trips: Path, file: Path) -> None:
    """Without a terminal nobody can agree; the difference is shown all the same."""
    before = properties(trips)
    refused = run(f"ttl apply {file} {trips}")
    assert (2, before) == (refused.code, properties(trips))
    assert "+ KEEP_BY_COUNT 4 on region=eu/" in refused.err
    assert "give --yes, or --dry-run" in refused.err
    assert 0 == run(f"ttl apply {file} {trips} --yes").code
    assert before != properties(trips)


def test_a_file_that_is_applied_already_asks_nothing(run: Run, trips: Path, file: Path) -> None:
    """A pipeline may tell by the exit code whether the table has drifted from the file."""
    assert 0 == run(f"ttl apply {file} {trips} --dry-run --exit-code").code
    run(f"ttl apply {file} {trips} --yes")
    same = run(f"ttl apply {file} {trips} --exit-code")
    assert (3, "Nothing changes: the table has 2 policies\n") == (same.code, same.out)


def test_guards_of_a_file_are_said_to_stay_in_it(run: Run, trips: Path, file: Path) -> None:
    file.write_text(f"{FILE}protected: [region=us/]\n")
    assert "guards and holds of policies.yaml are not kept in the table" in run(f"ttl apply {file} {trips} --yes").err


def test_emptying_asks_too_and_mends_what_is_broken(run: Run, trips: Path) -> None:
    (trips / PROPERTIES).write_bytes(properties(trips) + b"\nhoodie.partition.ttl.policies=[{\n")
    assert 1 == run(f"ttl show {trips}").code
    assert 1 == run(f"ttl add {trips} {EU}").code
    assert 2 == run(f"ttl empty {trips}").code
    emptied = run(f"ttl empty {trips} --yes")
    assert (0, True) == (emptied.code, emptied.out.startswith("! hoodie.partition.ttl.policies is no JSON"))
    assert 0 == run(f"ttl show {trips}").code


def test_a_partition_is_explained(run: Run, trips: Path, file: Path) -> None:
    """Winner, decision and losers, by the table's policies or by a file's; nothing is written."""
    path = "region=eu/day=2026-11-01"
    told = run(f"ttl explain {path} {trips} --policies {file}")
    assert [
        path,
        "  KEEP_BY_COUNT 4 on region=eu/ decides (policies.yaml)",
        "  expire: 1st smallest of 10 values of day under region=eu/, 4 kept",
        "  KEEP_BY_TIME 20 on / (default) loses: an explicit policy beats the default one (policies.yaml)",
    ] == told.out.splitlines()
    record = run(f"ttl explain {path} {trips} --policies {file} -o json").json
    assert (True, "expire") == (record["is_in_table"], record["decision"])
    assert ["decides", "loses"] == [one["verdict"] for one in record["policies"]]
    assert "verdict" in run(f"ttl explain {path} {trips} --policies {file} -o plain").out
    assert "the table has no such partition now" in run(f"ttl explain region=de/day=1 {trips}").out
    assert not (trips / ".hoodie/.airflow_hudi_maint").exists()


@pytest.fixture
def history(trips: Path) -> Path:
    """The table with statistics of 28 November and of 3 December."""
    workspace = maintenance.open_workspace(str(trips))
    maintenance.gather_statistics(workspace, now=datetime(2026, 11, 28, 5, tzinfo=UTC))
    builder = TableBuilder(base_path=str(trips))
    builder.commit({"region=eu/day=2026-12-03": [5000]}, at=datetime(2026, 12, 3, 4, tzinfo=UTC))
    maintenance.gather_statistics(workspace, now=datetime(2026, 12, 3, 5, tzinfo=UTC))
    return trips


def test_a_simulation_prints_day_by_day_what_would_have_expired(run: Run, history: Path, file: Path) -> None:
    file.write_text(FILE.replace("policyValue: 4", "policyValue: 9").replace("policyValue: 20", "policyValue: 26"))
    line = f"ttl simulate {history} --policies {file} --since 2026-11-28 --until 2026-12-04"
    days = run(f"{line} -o json").json
    assert {"2026-11-28": 2, "2026-12-03": 2} == {day["day"]: day["expired"] for day in days if day["expired"]}
    assert {"region=eu/day=2026-11-01", "region=us/day=2026-11-01"} == {
        one["partition"] for one in days[0]["partitions"]
    }
    table = run(line)
    assert "In 7 days 4 partitions (3.9 KiB) would have expired" == table.out.splitlines()[-1]
    assert 1 + 7 == len(run(f"{line} -o plain").out.splitlines())


def test_a_simulation_says_where_its_history_begins_and_what_a_guard_would_have_stopped(
    run: Run, history: Path, file: Path
) -> None:
    line = f"ttl simulate {history} --policies {file} --until 2026-12-04"
    answer = run(f"{line} --since 2026-11-20 --guards '{{\"max_partitions\": 1}}'")
    assert "the stored statistics begin on 2026-11-28" in answer.err
    assert "2026-11-28: the run would have been refused" in answer.err
    assert "would have expired" in answer.out


def test_two_policy_files_are_compared(run: Run, history: Path, file: Path, tmp_path: Path) -> None:
    """Their policies, and the partitions that go on other days."""
    other = tmp_path / "tighter.yaml"
    other.write_text(FILE.replace("policyValue: 4", "policyValue: 3"))
    line = f"ttl simulate {history} --since 2026-11-28 --until 2026-12-04 --policies {file} --diff {other}"
    found = run(f"{line} -o json").json
    assert ["~ KEEP_BY_COUNT 4 on region=eu/ → KEEP_BY_COUNT 3 on region=eu/"] == found["policies"]
    assert [
        ("region=eu/day=2026-11-19", "2026-12-03", "2026-11-28"),
        ("region=eu/day=2026-11-22", None, "2026-12-03"),
    ] == [(one["partition"], one["before"], one["after"]) for one in found["partitions"]]
    assert "From policies.yaml to tighter.yaml:" in run(line).out
    same = run(f"{line.replace(str(other), str(file))}")
    assert "Both would have dropped the same partitions on the same days." in same.out


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("ttl add {} --policy KEEP_BY_TIME --value 3", 2, "give --spec"),
        ("ttl add {} --spec / --policy KEEP_BY_TIME --value soon", 1, "'soon' is no whole number"),
        ("ttl add {} --spec / --policy KEEP_BY_SIZE --value much", 2, "'much' is no number of bytes"),
        ("ttl add {} --spec region --policy KEEP_BY_TIME --value 3", 1, "'region' is not field=value"),
        ("ttl add {} --spec city=1/ --policy KEEP_BY_TIME --value 3", 1, "the table is partitioned by"),
        ("ttl add {} --spec / --policy KEEP_BY_TIME --value 3 --clock event_time", 1, "eventTimePattern"),
        ("ttl drop {}", 2, "give --spec"),
        ("ttl apply /no/where.yaml {}", 1, "where.yaml"),
        ("ttl simulate {} --since 2026-11-28 --until 2026-11-01", 2, "comes after"),
        ("ttl simulate {} --since 2026-11-28", 1, "no stored statistics"),
        ("ttl show", 2, "No table"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(run: Run, trips: Path, line: str, code: int, message: str) -> None:
    before = properties(trips)
    answer = run(line.format(trips))
    assert code == answer.code
    assert message in answer.err.splitlines()[-1]
    assert before == properties(trips)


def test_the_choices_are_those_of_the_core() -> None:
    """They are repeated in a module that imports nothing, so they could drift."""
    assert tuple(map(str, PolicyKind)) == arguments.POLICY_KINDS
    assert tuple(map(str, PolicyClock)) == arguments.POLICY_CLOCKS


@pytest.mark.parametrize("text", ["", "d", "yesterday", "2026-13-01", "-3d", "99999999999d"])
def test_what_is_no_day_is_refused(run: Run, text: str) -> None:
    answer = run(f"ttl simulate /lake/t --since '{text}'")
    assert 2 == answer.code
