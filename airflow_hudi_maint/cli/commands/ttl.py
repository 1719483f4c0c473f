"""``airflow hudi ttl show``, ``add``, ``drop``, ``empty`` and ``apply``: the policies that a table keeps."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.arguments import byte_count
from airflow_hudi_maint.cli.command import UsageError, hudi_command
from airflow_hudi_maint.cli.exit_codes import ExitCode
from airflow_hudi_maint.cli.opening import open_table, say_warning
from airflow_hudi_maint.cli.policies import asked_first, policy_file, print_change, print_policies
from airflow_hudi_maint.hooks.policy_settings import OPTIONS, policy_spec, single_policy

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_hudi_maint.core.maintenance import ChangedPolicies, Workspace


@hudi_command
def ttl_show(args: Namespace) -> None:
    """Print the policies that decide about the table's partitions."""
    from airflow_hudi_maint.core import maintenance

    policies = maintenance.show_policies(open_table(args))
    if policies.is_empty:
        say_warning("the table has no TTL policy, so nothing expires by itself")
    print_policies(policies, output=args.output)


@hudi_command
def ttl_add(args: Namespace) -> None:
    """Add one policy."""
    from airflow_hudi_maint.core import maintenance

    if args.spec is None and not args.default:
        raise UsageError("No partitions: give --spec, for example --spec 'region=eu/', or --default")
    options = {name: getattr(args, name) or None for name in OPTIONS}
    given = {"partition_spec": args.spec, "policy": args.policy, "policy_value": _value(args), **options}
    policy = single_policy(given, default=args.default, source="command line")
    workspace = open_table(args)
    changed = maintenance.set_policy(workspace, policy, is_dry_run=args.dry_run)
    print_change(changed, workspace=workspace, output=args.output)


@hudi_command
def ttl_drop(args: Namespace) -> None:
    """Drop the policy on a spec, the default one, or both."""
    from airflow_hudi_maint.core import maintenance

    if args.spec is None and not args.default:
        raise UsageError("Nothing to drop: give --spec, for example --spec 'region=eu/', or --default")
    spec = policy_spec(args.spec)
    workspace = open_table(args)
    changed = maintenance.drop_policy(workspace, spec=spec, default=args.default, is_dry_run=args.dry_run)
    if not changed.is_changed:
        has = ", ".join(f"'{policy.spec}'{' (default)' * policy.is_default}" for policy in changed.after.all())
        say_warning(f"the table has no such policy; it has {has or 'none'}")
    print_change(changed, workspace=workspace, output=args.output)


@hudi_command
def ttl_empty(args: Namespace) -> ExitCode:
    """Drop every policy, after a question."""
    from airflow_hudi_maint.core import maintenance

    workspace = open_table(args)
    changed = maintenance.empty_policies(workspace, is_dry_run=True)
    if changed.is_changed and not args.dry_run:
        if not asked_first(args, changed, question=f"Drop these policies of {workspace.table.base_path}?"):
            return _left_alone()
        changed = maintenance.empty_policies(workspace)
    print_change(changed, workspace=workspace, output=args.output)
    return ExitCode.OK


@hudi_command
def ttl_apply(args: Namespace) -> ExitCode:
    """Make the policies of a file the table's, after the difference and a question."""
    from airflow_hudi_maint.core import maintenance

    workspace = open_table(args)
    file = policy_file(workspace, args.file)
    if file.guards.to_json():
        say_warning(f"guards and holds of {file.name} are not kept in the table; give the file to operators and plans")
    shown = maintenance.apply_policy_file(workspace, file, is_dry_run=True)
    if not shown.is_changed or args.dry_run:
        return _printed(args, shown, workspace=workspace)
    if not asked_first(args, shown, question=f"Write this to {workspace.table.base_path}?"):
        return _left_alone()
    return _printed(args, maintenance.apply_policy_file(workspace, file, shown=shown), workspace=workspace)


def _printed(args: Namespace, changed: ChangedPolicies, *, workspace: Workspace) -> ExitCode:
    print_change(changed, workspace=workspace, output=args.output)
    return ExitCode.NOTHING_TO_DO if args.exit_code and not changed.is_changed else ExitCode.OK


def _left_alone() -> ExitCode:
    say_warning("nothing was written")
    return ExitCode.FAILED


def _value(args: Namespace) -> int | str:
    """The policy's value; that of KEEP_BY_SIZE may have a unit."""
    text = str(args.value).strip()
    if args.policy != "KEEP_BY_SIZE" or text.removeprefix("-").isdigit():
        return text
    try:
        return byte_count(text)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"--value: {error}") from None
