"""``airflow hudi stats``: gather the statistics document, and print its totals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import UsageError, hudi_command
from airflow_hudi_maint.cli.gathering import gather
from airflow_hudi_maint.cli.moments import moment
from airflow_hudi_maint.cli.opening import open_table
from airflow_hudi_maint.cli.output import print_record

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_hudi_maint.core.model.document import JsonObject


@hudi_command
def stats(args: Namespace) -> None:
    """Gather, write the document unless ``--dry-run``, and print its totals: counts, bytes, quantiles and skew."""
    if args.full and args.incremental:
        msg = "--full and --incremental exclude each other; give one of them, or none"
        raise UsageError(msg)
    workspace = open_table(args, writes=not args.dry_run)
    mode = "full" if args.full else "incremental" if args.incremental else "auto"
    gathered = gather(
        workspace,
        mode=mode,
        small_file_bytes=args.small_file_bytes,
        listing=args.listing,
        record_source=args.records,
    )
    statistics = gathered.statistics
    requests = workspace.requests
    record: JsonObject = {
        "table": statistics.table_name,
        "base_path": statistics.base_path,
        "as_of_instant": statistics.as_of_instant,
        "as_of_at": moment(statistics.as_of_instant, zone=workspace.table.zone),
        "gathered": statistics.gathered,
        "reason": statistics.reason,
        **statistics.totals(),
        "small_file_bytes": statistics.small_file_bytes,
        "file_bytes": statistics.file_bytes.to_json() if statistics.file_bytes else None,
        "skew": statistics.skew.to_json() if statistics.skew else None,
        "requests": {"lists": requests.lists, "reads": requests.reads, "writes": requests.writes},
        "statistics_path": None if args.dry_run else gathered.path,
    }
    print_record(record, output=args.output)
