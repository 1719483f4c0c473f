"""``airflow hudi health``: the signals of a table, and an exit code that says how bad the worst is."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import hudi_command
from airflow_hudi_maint.cli.exit_codes import ExitCode
from airflow_hudi_maint.cli.gathering import now
from airflow_hudi_maint.cli.opening import open_table, say
from airflow_hudi_maint.cli.output import print_record, print_rows
from airflow_hudi_maint.cli.progress import progress
from airflow_hudi_maint.core.model.health import HEADINGS, Severity
from airflow_hudi_maint.hooks.arguments import as_object

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_hudi_maint.core.model.health import TableHealth

_CODES = {Severity.WARNING: ExitCode.WARNING, Severity.CRITICAL: ExitCode.CRITICAL}
_RAW_COLUMNS = ("severity", "name", "value", "unit", "threshold", "critical_threshold", "found", "advice")
"""Of ``plain``; ``table`` has the same with value and unit in one."""


@hudi_command
def health(args: Namespace) -> ExitCode:
    """Check the table's health and print it; the document is stored with ``--write`` only."""
    from airflow_hudi_maint.core import maintenance
    from airflow_hudi_maint.core.planning.health_thresholds import HealthThresholds

    thresholds = as_object("--thresholds", args.thresholds)
    opened = open_table(args, writes=args.write)
    # Findings are what is printed, so they are no warnings beside it.
    workspace = replace(opened, log=lambda line: say(args, line.removeprefix("Warning: ")))
    with progress(workspace.table.storage.requests):
        checked = maintenance.check_health(
            workspace, now=now(), thresholds=HealthThresholds.from_json(thresholds) if thresholds else None
        )
    found = checked.health
    if args.output in ("json", "yaml"):
        path = checked.path if args.write else None
        print_record({**found.to_json(), "health_path": path}, output=args.output)
        return _CODES.get(found.severity, ExitCode.OK)
    if args.output == "plain":
        shown = [one.to_json() for one in found.worst_first if args.all or one.severity is not Severity.OK]
        print_rows(shown, output="plain", columns=_RAW_COLUMNS)
    else:
        _print_table(found, only_findings=not args.all)
    return _CODES.get(found.severity, ExitCode.OK)


def _print_table(health: TableHealth, *, only_findings: bool) -> None:
    rows = [dict(zip(HEADINGS, row, strict=True)) for row in health.rows(only_findings=only_findings)]
    if rows:
        print_rows(rows, output="table", columns=HEADINGS)
    counts = ", ".join(f"{count} {severity}" for severity, count in health.counts().items() if count)
    sys.stdout.write(f"{health.table_name}: {health.severity} ({counts})\n")
