"""``airflow hudi partitions``: a row of statistics for each partition."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import hudi_command
from airflow_hudi_maint.cli.gathering import gather
from airflow_hudi_maint.cli.moments import moment
from airflow_hudi_maint.cli.opening import open_table
from airflow_hudi_maint.cli.output import limited, print_rows

if TYPE_CHECKING:
    from argparse import Namespace
    from datetime import tzinfo

    from airflow_hudi_maint.core.model.document import JsonObject
    from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics

_COLUMNS = (
    "partition", "last_modified_at", "total_bytes", "records", "file_groups", "data_files", "small_files", "log_files",
    "pending",
)  # fmt: skip
_WORDS = {"partition": lambda path: path or "(the whole table)"}

_Order = Callable[["PartitionStatistics"], tuple[int | str, str]]


@hudi_command
def partitions(args: Namespace) -> None:
    """Gather statistics, write nothing, and print the rows that the arguments ask for."""
    workspace = open_table(args)
    statistics = gather(
        workspace, small_file_bytes=args.small_file_bytes, listing=args.listing, record_source=args.records
    ).statistics
    chosen = [row for row in statistics.partitions if not args.match or _matches(row.partition_path, args.match)]
    key, descending = _order(args.sort, small_file_bytes=statistics.small_file_bytes)
    chosen.sort(key=key, reverse=descending)
    rows = [_row(row, statistics=statistics, zone=workspace.table.zone) for row in limited(chosen, args)]
    print_rows(rows, output=args.output, columns=_COLUMNS, words=_WORDS)


def _matches(path: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _order(name: str, *, small_file_bytes: int) -> tuple[_Order, bool]:
    """How rows are sorted: paths upwards, figures and moments downwards; rows that tie by path."""
    values: dict[str, Callable[[PartitionStatistics], int | str]] = {
        "path": lambda _: 0,
        "bytes": lambda row: row.total_bytes,
        "records": lambda row: -1 if row.record_count is None else row.record_count,
        "files": lambda row: row.data_file_count,
        "small-files": lambda row: row.small_file_count(small_file_bytes),
        "log-files": lambda row: row.log_file_count,
        "modified": lambda row: row.last_modified_instant,
    }
    value = values[name]
    return (lambda row: (value(row), row.partition_path)), name != "path"


def _row(row: PartitionStatistics, *, statistics: TableStatistics, zone: tzinfo) -> JsonObject:
    return {
        "partition": row.partition_path,
        "last_modified_instant": row.last_modified_instant,
        "last_modified_at": moment(row.last_modified_instant, zone=zone),
        "last_instant": row.last_instant,
        "total_bytes": row.total_bytes,
        "records": row.record_count,
        "file_groups": row.file_group_count,
        "data_files": row.data_file_count,
        "small_files": row.small_file_count(statistics.small_file_bytes),
        "log_files": row.log_file_count,
        "log_bytes": row.log_file_bytes,
        "pending": row.pending_instant,
    }
