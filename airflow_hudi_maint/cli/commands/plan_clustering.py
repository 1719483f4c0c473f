"""``airflow hudi plan clustering`` and ``plan small-files``: which partitions would be rewritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import hudi_command
from airflow_hudi_maint.cli.gathering import now
from airflow_hudi_maint.cli.opening import open_table
from airflow_hudi_maint.cli.planning import print_plan
from airflow_hudi_maint.cli.progress import progress
from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.plan_settings import SIZES, clustering_settings, clustering_strategy
from airflow_hudi_maint.hooks.small_file_settings import worthwhile

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from airflow_hudi_maint.cli.exit_codes import ExitCode
    from airflow_hudi_maint.core.maintenance import PlannedClustering

_COLUMNS = ("partition", "decision", "input_files", "input_bytes", "groups", "output_files", "reason")


@hudi_command
def plan_clustering(args: Namespace) -> ExitCode:
    """Make a clustering plan of ours (Hudi's own is made when a task schedules it) and print it."""
    from airflow_hudi_maint.core import maintenance

    settings = clustering_settings(
        **_sizes(args),
        sort_columns=args.sort_column,
        layout=args.layout,
        execution_strategy=args.execution_strategy,
    )
    strategy = clustering_strategy(strategy=args.strategy, strategy_options=_options(args.strategy_option))
    workspace = open_table(args, writes=args.write)
    with progress(workspace.table.storage.requests):
        planned = maintenance.plan_clustering(
            workspace, now=now(), settings=settings, partitions=args.partition, **strategy
        )
    return _print(args, planned)


@hudi_command
def plan_small_files(args: Namespace) -> ExitCode:
    """Make a plan of small-file compaction and print it."""
    from airflow_hudi_maint.core import maintenance

    worth = worthwhile(
        min_files_removed=args.min_files_removed,
        max_bytes_per_file_removed=args.max_bytes_per_file_removed,
        max_bytes=args.max_bytes,
        min_idle=args.min_idle_days,
    )
    settings = clustering_settings(**_sizes(args))
    workspace = open_table(args, writes=args.write)
    with progress(workspace.table.storage.requests):
        planned = maintenance.plan_small_files(
            workspace, now=now(), settings=settings, partitions=args.partition, worthwhile=worth
        )
    return _print(args, planned)


def _options(pairs: Sequence[str] | None) -> dict[str, str]:
    """Options of a strategy, each given as ``name=value``."""
    for pair in pairs or ():
        if not pair.partition("=")[1]:
            raise InvalidSettingError(f"--strategy-option {pair!r} is not of the form name=value")
    return {name.strip(): value for name, _, value in (pair.partition("=") for pair in pairs or ())}


def _sizes(args: Namespace) -> dict[str, int | None]:
    return {name: getattr(args, name) for name in SIZES}


def _print(args: Namespace, planned: PlannedClustering) -> ExitCode:
    does_something = bool(planned.plan.chosen)
    return print_plan(args, planned.plan.to_json(), columns=_COLUMNS, does_something=does_something, path=planned.path)
