"""How a command ends when something is wrong, and what it takes to open a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_hudi_maint.cli.opening import storage_options
from airflow_hudi_maint.core.errors import InvalidSettingError, StorageError
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.airflow.marks import AIRFLOW
from tests.airflow.tables import three_days
from tests.unit.cli.running import Run

pytestmark = AIRFLOW

Golden = Callable[[str], Path]


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("show /lake/nothing-here", 1, "/lake/nothing-here"),
        ("show nosuch://lake/t", 1, "nosuch"),
        ("show", 2, "No table"),
        ("show /lake/t --storage-options '{bad'", 1, "--storage-options is no JSON object"),
        ("show /lake/t --storage-options '[1]'", 1, "--storage-options is no JSON object"),
        ("show /lake/t --storage-options @/nope.json", 1, "/nope.json"),
        ("show --conn-id hudi_nowhere", 1, "hudi_nowhere"),
    ],
)
def test_an_error_is_one_line_on_stderr(run: Run, line: str, code: int, said: str) -> None:
    """Without a traceback, and with nothing on stdout that a script could take for an answer."""
    answer = run(line)
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith("Error: ")
    assert answer.err.count("\n") == 1
    assert said in answer.err


def test_verbose_shows_where_it_comes_from(run: Run) -> None:
    answer = run("show /lake/nothing-here --verbose")
    assert answer.code == 1
    assert "Traceback (most recent call last)" in answer.err
    assert "/lake/nothing-here" in answer.err


def test_what_may_pass_by_itself_ends_with_75(run: Run, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script may try again, as a task would."""

    def fails(self: HudiTable) -> None:
        raise StorageError("The network is down; try again")

    monkeypatch.setattr(HudiTable, "timeline", fails)
    answer = run(f"show {golden('v9_mor_plain')}")
    assert (answer.code, answer.err) == (75, "Error: The network is down; try again\n")


def test_a_bug_is_not_dressed_up(run: Run, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no error of ours keeps its traceback."""

    def breaks(self: HudiTable) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(HudiTable, "timeline", breaks)
    with pytest.raises(ZeroDivisionError):
        run(f"show {golden('v9_mor_plain')}")


def test_an_interrupt_ends_quietly(run: Run, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupts(self: HudiTable) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(HudiTable, "timeline", interrupts)
    answer = run(f"show {golden('v9_mor_plain')}")
    assert (answer.code, answer.err) == (130, "")


def test_an_error_does_not_show_credentials() -> None:
    with pytest.raises(InvalidSettingError) as caught:
        storage_options('{"secret": "hunter2"')
    assert "hunter2" not in str(caught.value)


def test_storage_options_come_from_a_file(tmp_path: Path) -> None:
    """Other users of the machine see the arguments of a process."""
    (tmp_path / "options.json").write_text('{"key": "k"}')
    assert storage_options(f"@{tmp_path}/options.json") == {"key": "k"}


def test_a_relative_path_is_below_the_working_folder(run: Run, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("v9_mor_plain")
    monkeypatch.chdir(table.parent)
    assert run(f"show {table.name} --no-sizes -o json").json["base_path"] == str(table)


def test_a_connection_names_the_table(run: Run, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what it says of the zone, unless the command says otherwise."""
    table = golden("v9_mor_plain")
    connection = {"conn_type": "hudi", "host": str(table), "extra": {"timeline_zone": "Asia/Tokyo"}}
    monkeypatch.setenv("AIRFLOW_CONN_HUDI_CLI", json.dumps(connection))
    assert run("show --conn-id hudi_cli --no-sizes -o json").json["timeline_zone"] == "Asia/Tokyo"
    shown = run("show --conn-id hudi_cli --timezone UTC --no-sizes -o json").json
    assert (shown["timeline_zone"], shown["base_path"]) == ("UTC", str(table))


def test_a_base_path_goes_over_the_connection_s(run: Run, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = {"conn_type": "hudi", "host": "/lake/elsewhere", "extra": {}}
    monkeypatch.setenv("AIRFLOW_CONN_HUDI_CLI", json.dumps(connection))
    table = golden("v9_mor_plain")
    assert run(f"show {table} --conn-id hudi_cli --no-sizes -o json").json["base_path"] == str(table)


def test_progress_in_words_is_on_stderr_and_only_with_verbose(run: Run) -> None:
    three_days("memory://cli/worded")
    quiet = run("stats memory://cli/worded --full -o json")
    loud = run("stats memory://cli/worded --full --verbose -o json")
    assert (quiet.err, "full statistics as of" in loud.err) == ("", True)
    assert quiet.json["bytes"] == loud.json["bytes"]
