"""How rows and records are printed, and the progress bar."""

from __future__ import annotations

import io
import json
import threading
import time

import pytest
import yaml
from rich.console import Console

from airflow_hudi_maint.cli.output import print_record, print_rows
from airflow_hudi_maint.cli.progress import progress
from airflow_hudi_maint.core.storage.request_count import RequestCount
from tests.airflow.marks import AIRFLOW

pytestmark = AIRFLOW

Capture = pytest.CaptureFixture[str]
ROWS = [
    {"partition": "day=1", "bytes": 1536, "records": None, "at": "2026-11-30T05:34:58.356+01:00"},
    {"partition": "[red]day=2[/red]", "bytes": 0, "records": 1200, "at": None},
]
COLUMNS = ("partition", "bytes", "records")


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_documents_have_raw_values(capsys: Capture, output: str, read: object) -> None:
    """Numbers are numbers, what is not known is null, and every field is there."""
    print_rows(ROWS, output=output, columns=COLUMNS)
    assert callable(read)
    assert read(capsys.readouterr().out) == ROWS


def test_a_table_is_for_people(capsys: Capture) -> None:
    """Units, separators, dashes; a name in brackets is a name and no colour."""
    print_rows(ROWS, output="table", columns=COLUMNS)
    shown = capsys.readouterr().out
    assert [text for text in ("1.5 KiB", "1,200", "–", "[red]day=2[/red]") if text not in shown] == []


def test_plain_is_for_programs(capsys: Capture) -> None:
    """A header and a line for each row, with raw values."""
    print_rows(ROWS, output="plain", columns=COLUMNS)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["partition", "bytes", "records"], ["day=1", "1536", "-"], ["[red]day=2[/red]", "0", "1200"]]


@pytest.mark.parametrize(("output", "expected"), [("json", "[]\n"), ("yaml", "[]\n"), ("plain", "partition\n")])
def test_no_rows_are_an_answer_that_can_be_read(capsys: Capture, output: str, expected: str) -> None:
    print_rows([], output=output, columns=("partition",))
    assert capsys.readouterr().out == expected


def test_a_record_is_an_object_to_programs_and_rows_to_people(capsys: Capture) -> None:
    record = {"table": "t", "table_version": 9, "skew": {"gini": 0.25}, "fields": ["a", "b"], "moved_at": None}
    print_record(record, output="json")
    assert json.loads(capsys.readouterr().out) == record
    print_record(record, output="plain")
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert rows["skew.gini"] == "0.25"
    assert (rows["fields"], rows["moved_at"]) == ("a,b", "-")


def test_the_progress_bar_shows_what_is_known_to_come() -> None:
    screen = io.StringIO()
    requests = RequestCount()
    with progress(requests, console=Console(file=screen, force_terminal=True, width=100), after=0):
        requests.add("expected_lists", count=2000)
        requests.add("lists", count=500)
        _wait_until(lambda: "500/2000" in screen.getvalue())
    assert "Directories listed" in screen.getvalue()


def test_nothing_is_shown_where_nobody_looks() -> None:
    """Piped or in a log; no thread is started either."""
    screen = io.StringIO()
    before = threading.active_count()
    with progress(RequestCount(), console=Console(file=screen, force_terminal=False), after=0):
        assert threading.active_count() == before
    assert screen.getvalue() == ""


def test_what_is_quick_shows_no_bar() -> None:
    screen = io.StringIO()
    with progress(RequestCount(), console=Console(file=screen, force_terminal=True), after=60):
        pass
    assert screen.getvalue() == ""


def _wait_until(is_so: object) -> None:
    assert callable(is_so)
    for _ in range(200):
        if is_so():
            return
        time.sleep(0.02)
    pytest.fail("it did not come to be")
