"""``airflow hudi timeline``: the instants of a table, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import hudi_command
from airflow_hudi_maint.cli.opening import open_table
from airflow_hudi_maint.cli.output import limited, print_rows
from airflow_hudi_maint.cli.progress import progress
from airflow_hudi_maint.cli.timeline_rows import COLUMNS, active_rows, archived_rows

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_hudi_maint.core.model.document import JsonObject
    from airflow_hudi_maint.core.model.instant import Instant
    from airflow_hudi_maint.core.storage.table import HudiTable


@hudi_command
def timeline(args: Namespace) -> None:
    """Print the instants that the arguments ask for, of the active timeline or of the archive."""
    table = open_table(args).table
    with progress(table.storage.requests):
        rows = _archived(table, args) if args.archived else _active(table, args)
    problems = ("problem",) if any(row["problem"] for row in rows) else ()
    print_rows(rows, output=args.output, columns=(*COLUMNS, *problems))


def _active(table: HudiTable, args: Namespace) -> list[JsonObject]:
    wanted = [one for one in table.timeline() if _is_wanted(one, args)]
    wanted.sort(key=_order, reverse=True)
    return active_rows(table, limited(wanted, args))


def _archived(table: HudiTable, args: Namespace) -> list[JsonObject]:
    wanted = [one for one in table.archived() if _is_wanted(one.instant, args)]
    wanted.sort(key=lambda one: _order(one.instant), reverse=True)
    return archived_rows(table, limited(wanted, args))


def _is_wanted(instant: Instant, args: Namespace) -> bool:
    if args.pending and instant.is_completed:
        return False
    return not args.action or instant.action in args.action


def _order(instant: Instant) -> tuple[str, str]:
    return instant.requested_time, instant.action
