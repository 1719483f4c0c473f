"""What the command line takes, and what it costs every other ``airflow`` command."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.cli.cli_config import ActionCommand, GroupCommand

from airflow_hudi_maint.cli import arguments
from airflow_hudi_maint.cli.definition import get_hudi_cli_commands
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.plan import Layout
from airflow_hudi_maint.core.storage.listing import LISTINGS
from airflow_hudi_maint.core.storage.record_counts import RECORD_SOURCES
from tests.airflow.marks import AIRFLOW
from tests.unit.cli.running import Run, parser

pytestmark = AIRFLOW


def actions(commands: Any) -> Iterator[ActionCommand]:
    for command in commands:
        if isinstance(command, GroupCommand):
            yield from actions(command.subcommands)
        else:
            yield command


@pytest.mark.parametrize("command", [*actions(get_hudi_cli_commands())], ids=lambda command: command.func.__name__)
def test_each_command_has_what_every_command_has(command: ActionCommand) -> None:
    """A table (or a directory of plain files), how to reach it, a form of output, and ``--verbose``."""
    flags = {flag for one in command.args for flag in one.flags}
    where = {"directory"} if command.func.__name__ == "merge" else {"base_path", "--conn-id", "--timezone"}
    assert {*where, "--storage-options", "--output", "--verbose"} <= flags


def test_the_definition_imports_nothing_heavy_and_nothing_of_the_core() -> None:
    """Every ``airflow`` command imports it."""
    code = (
        "import sys, airflow.cli.cli_config; before = set(sys.modules);"
        "import airflow_hudi_maint.cli.definition as d; d.get_hudi_cli_commands();"
        "print('modules', *(set(sys.modules) - before))"
    )
    answer = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert set(answer.stdout.split("modules")[1].split()) <= {
        "airflow_hudi_maint",
        "airflow_hudi_maint.cli",
        "airflow_hudi_maint.cli.arguments",
        "airflow_hudi_maint.cli.definition",
        "airflow_hudi_maint.cli.merge_arguments",
    }


def test_each_function_that_a_command_names_is_there() -> None:
    """They are loaded lazily, so a wrong name would show only when somebody calls the command."""
    shared = {
        "plan_small_files": "plan_clustering", "ttl_show": "ttl", "ttl_add": "ttl", "ttl_drop": "ttl",
        "ttl_empty": "ttl", "ttl_apply": "ttl",
    }  # fmt: skip
    for command in actions(get_hudi_cli_commands()):
        name = command.func.__name__
        found = __import__(f"airflow_hudi_maint.cli.commands.{shared.get(name, name)}", fromlist=["_"])
        assert callable(getattr(found, name))


def test_the_choices_are_those_of_the_core() -> None:
    """They are repeated in a module that imports nothing, so they could drift."""
    assert tuple(map(str, Action)) == arguments.ACTIONS
    assert tuple(map(str, Layout)) == arguments.LAYOUTS
    assert LISTINGS == arguments.LISTINGS
    assert RECORD_SOURCES == arguments.RECORD_SOURCES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("120", 120),
        ("128MiB", 128 * 1024**2),
        ("1.5 GB", 1_500_000_000),
        ("64k", 64_000),
        ("2gib", 2 * 1024**3),
    ],
)
def test_bytes_are_read_with_their_unit(text: str, expected: int) -> None:
    assert expected == arguments.byte_count(text)


@pytest.mark.parametrize("text", ["", "-1", "MiB", "1 XB", "1e9", "ten", "1.2.3"])
def test_what_is_no_number_of_bytes_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="128MiB"):
        arguments.byte_count(text)


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "plan",
        "show --output xml /lake/t",
        "timeline /lake/t --action nonsense",
        "timeline /lake/t --limit -1",
        "partitions /lake/t --sort nonsense",
        "plan clustering /lake/t --max-groups 0",
        "plan clustering /lake/t --small-file-bytes much",
        "stats /lake/t --listing nonsense",
    ],
)
def test_a_wrong_argument_ends_with_2(run: Run, line: str) -> None:
    answer = run(line)
    assert answer.code == 2
    assert "command error: argument" in answer.err or "required" in answer.err


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["hudi", "--help"])
    shown = capsys.readouterr().out
    assert [
        name for name in ("show", "timeline", "partitions", "stats", "health", "report", "plan") if name not in shown
    ] == []
