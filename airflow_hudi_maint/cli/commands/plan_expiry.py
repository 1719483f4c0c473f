"""``airflow hudi plan expiry``: which partitions the policies would drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import hudi_command
from airflow_hudi_maint.cli.gathering import now
from airflow_hudi_maint.cli.opening import absolute, open_table, say_warning
from airflow_hudi_maint.cli.planning import print_plan
from airflow_hudi_maint.cli.progress import progress
from airflow_hudi_maint.hooks.policy_settings import expiry_rules

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_hudi_maint.cli.exit_codes import ExitCode

_COLUMNS = ("partition", "decision", "bytes", "data_files", "policy", "reason")


@hudi_command
def plan_expiry(args: Namespace) -> ExitCode:
    """Make an expiry plan and print it; statistics and plan are stored with ``--write`` only."""
    from airflow_hudi_maint.core import maintenance

    workspace = open_table(args, writes=args.write)
    file = absolute(args.policy_file) if args.policy_file else None
    policies, guards = expiry_rules(workspace, policies=args.policies, guards=args.guards, policy_file=file)
    with progress(workspace.table.storage.requests):
        planned = maintenance.plan_expiry(workspace, now=now(), policies=policies, guards=guards)
    if planned.plan.policies.is_empty:
        say_warning("the table has no TTL policy, and none was given with --policies or --policy-file")
    does_something = bool(planned.plan.expired)
    return print_plan(args, planned.plan.to_json(), columns=_COLUMNS, does_something=does_something, path=planned.path)
