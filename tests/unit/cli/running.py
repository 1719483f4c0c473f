"""What runs a command in this process, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from airflow.cli.cli_config import ActionCommand, DefaultHelpParser, GroupCommand

from airflow_hudi_maint.cli.definition import get_hudi_cli_commands


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command wrote, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[[str], Answer]


def parser() -> DefaultHelpParser:
    """Make Airflow's parser with our commands alone."""
    top = DefaultHelpParser(prog="airflow")
    _add(top, get_hudi_cli_commands())
    return top


def _add(parent: Any, commands: Any) -> None:
    below = parent.add_subparsers(required=True)
    for command in commands:
        child = below.add_parser(command.name, help=command.help)
        if isinstance(command, GroupCommand):
            _add(child, command.subcommands)
        else:
            assert isinstance(command, ActionCommand)
            for argument in command.args:
                argument.add_to_parser(child)
            child.set_defaults(func=command.func)
