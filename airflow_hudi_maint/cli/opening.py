"""From a command's arguments to an open table."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import UsageError
from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_object

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_hudi_maint.core.maintenance import Workspace

_WARNING = "Warning: "
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def open_table(args: Namespace, *, writes: bool = False) -> Workspace:
    """Open the table that the arguments name. Unless the command ``writes``, no document is written or deleted.

    With a base path alone nothing of Airflow is asked, so no metadata database is needed.

    Raises UsageError without a table, and what opening one raises.
    """
    if not args.base_path and not args.conn_id:
        msg = "No table: give its base path, or --conn-id with a connection of type hudi that names one"
        raise UsageError(msg)
    base_path = absolute(args.base_path) if args.base_path else None
    options = storage_options(args.storage_options)
    opened = (
        _by_connection(args, base_path=base_path, options=options)
        if args.conn_id
        else _by_path(args, base_path=base_path or "", options=options)
    )
    return opened if writes else replace(opened, documents=opened.documents.reading_only())


def say(args: Namespace, line: str) -> None:
    """Print what the core says to stderr: warnings always, the rest with ``--verbose``."""
    if args.verbose or line.startswith(_WARNING):
        print(line, file=sys.stderr)  # noqa: T201 a command talks to a person


def say_warning(text: str) -> None:
    """Print a warning to stderr."""
    print(f"{_WARNING}{text}", file=sys.stderr)  # noqa: T201 a command talks to a person


def absolute(base_path: str) -> str:
    """Take a relative path as below the folder that the command was started in; ``..`` leads where a shell's would.

    >>> absolute("s3://lake/trips"), absolute("/lake/trips")
    ('s3://lake/trips', '/lake/trips')
    """
    if _SCHEME.match(base_path):
        return base_path
    found = Path("/")
    for name in (Path.cwd() / base_path).parts[1:]:
        # Behind a link ".." is the folder above the link's target: the same name for a table, whoever asks.
        found = found.resolve().parent if name == ".." else found / name
    return str(found)


def storage_options(text: str | None) -> Mapping[str, object]:
    """Read ``--storage-options``: a JSON object, or ``@`` and the name of a file that holds one.

    No error shows the text: it may hold credentials.
    """
    if not text:
        return {}
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            msg = f"--storage-options names a file that cannot be read: {error}"
            raise InvalidSettingError(msg) from None
    try:
        return as_object("--storage-options", text)
    except InvalidSettingError:
        msg = "--storage-options is no JSON object; write for example '{\"anon\": true}', or @ and a file's name"
        raise InvalidSettingError(msg) from None


def _by_path(args: Namespace, *, base_path: str, options: Mapping[str, object]) -> Workspace:
    from airflow_hudi_maint.core.maintenance import open_workspace

    return open_workspace(
        base_path,
        storage_options=options or None,
        timeline_zone=args.timezone,
        log=lambda line: say(args, line),
    )


def _by_connection(args: Namespace, *, base_path: str | None, options: Mapping[str, object]) -> Workspace:
    # As Airflow's own commands that read connections do: without it, those of the metadata database are not looked at.
    os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
    from airflow_hudi_maint.hooks.hudi import HudiHook

    hook = HudiHook(args.conn_id, base_path=base_path)
    settings = hook.settings
    hook.settings = replace(
        settings,
        storage_options={**settings.storage_options, **options},
        timeline_zone=args.timezone or settings.timeline_zone,
    )
    return hook.workspace(log=lambda line: say(args, line))
