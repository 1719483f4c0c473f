"""``airflow hudi ttl simulate``: what policies would have dropped, day by day."""

from __future__ import annotations

import sys
from datetime import date
from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import UsageError, hudi_command
from airflow_hudi_maint.cli.gathering import now
from airflow_hudi_maint.cli.opening import open_table, say_warning
from airflow_hudi_maint.cli.output import limited, print_record, print_rows
from airflow_hudi_maint.cli.policies import policy_file
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.hooks.policy_settings import guards_over

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from airflow_hudi_maint.core.maintenance import PolicyReplay, Workspace
    from airflow_hudi_maint.core.model.document import JsonObject
    from airflow_hudi_maint.core.model.policy_file import PolicyFile
    from airflow_hudi_maint.core.planning.expiry_simulation import SimulatedDay, SimulatedDifference

_DAY_COLUMNS = ("day", "as_of_instant", "expired", "expired_bytes", "kept", "refused")
_DIFFERENCE_COLUMNS = ("partition", "before", "after", "bytes")


@hudi_command
def ttl_simulate(args: Namespace) -> None:
    """Replay the stored statistics; nothing is written."""
    from airflow_hudi_maint.core.maintenance import replay_statistics

    until = args.until or now().date()
    if until < args.since:
        raise UsageError(f"--since {args.since} comes after --until {until}")
    workspace = open_table(args)
    tried = _tried(workspace, args.policies)
    other = _tried(workspace, args.diff) if args.diff else None
    replay = replay_statistics(workspace)
    days = _run(replay, tried, args=args, until=until)
    if not days or days[0].day > args.since:
        reach = f"begin on {days[0].day}" if days else f"have nothing up to {until}"
        say_warning(f"the stored statistics {reach}, so earlier days cannot be told")
    if other is None:
        _print_days(args, days)
    else:
        _print_difference(args, tried, other, days=days, other_days=_run(replay, other, args=args, until=until))


def _tried(workspace: Workspace, name: str | None) -> PolicyFile:
    from airflow_hudi_maint.core.maintenance import show_policies
    from airflow_hudi_maint.core.model.policy_file import PolicyFile

    if name:
        return policy_file(workspace, name)
    return PolicyFile(name="the table's own", policies=show_policies(workspace))


def _run(replay: PolicyReplay, tried: PolicyFile, *, args: Namespace, until: date) -> tuple[SimulatedDay, ...]:
    if tried.policies.is_empty:
        say_warning(f"{tried.name}: no TTL policy, so nothing would have expired")
    return replay.run(tried.policies, since=args.since, until=until, guards=guards_over(tried, args.guards))


def _print_days(args: Namespace, days: Sequence[SimulatedDay]) -> None:
    """Print a row for each day; ``json`` and ``yaml`` also have the partitions."""
    whole = args.output in ("json", "yaml")
    rows = [_day(one, with_partitions=whole) for one in days]
    print_rows(limited(rows, args) if not whole else rows, output=args.output, columns=_DAY_COLUMNS)
    for day in days if args.output == "table" else ():
        for reason in day.refused:
            say_warning(f"{day.day}: the run would have been refused: {reason}")
    if args.output == "table":
        dropped = [entry for day in days if not day.refused for entry in day.expired]
        total = human_bytes(sum(entry.total_bytes for entry in dropped))
        sys.stdout.write(
            f"In {counted(len(days), 'day')} {counted(len(dropped), 'partition')} ({total}) would have expired\n"
        )


def _day(one: SimulatedDay, *, with_partitions: bool) -> JsonObject:
    row: JsonObject = {
        "day": str(one.day),
        "as_of_instant": one.as_of_instant,
        "expired": len(one.expired),
        "expired_bytes": one.expired_bytes,
        "kept": one.kept_count,
        "refused": list(one.refused) if with_partitions else bool(one.refused),
    }
    if with_partitions:
        row["partitions"] = [
            {"partition": entry.partition_path, "bytes": entry.total_bytes, "reason": entry.reason}
            for entry in one.expired
        ]
    return row


def _print_difference(
    args: Namespace,
    tried: PolicyFile,
    other: PolicyFile,
    *,
    days: Sequence[SimulatedDay],
    other_days: Sequence[SimulatedDay],
) -> None:
    from airflow_hudi_maint.core.planning.expiry_simulation import compare_simulations
    from airflow_hudi_maint.core.planning.policy_diff import diff_policies

    policies = diff_policies(tried.policies, other.policies).lines()
    rows = [_difference(one) for one in compare_simulations(days, other_days)]
    if args.output in ("json", "yaml"):
        print_record({"policies": list(policies), "partitions": rows}, output=args.output)
        return
    if args.output == "table":
        sys.stdout.write(f"From {tried.name} to {other.name}:\n")
        sys.stdout.writelines(f"  {line}\n" for line in policies or ["the same policies"])
    if rows or args.output == "plain":
        print_rows(limited(rows, args), output=args.output, columns=_DIFFERENCE_COLUMNS)
    else:
        sys.stdout.write("Both would have dropped the same partitions on the same days.\n")


def _difference(one: SimulatedDifference) -> JsonObject:
    return {
        "partition": one.partition_path,
        "before": str(one.before) if one.before else None,
        "after": str(one.after) if one.after else None,
        "bytes": one.total_bytes,
    }
