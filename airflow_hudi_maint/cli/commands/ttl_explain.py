"""``airflow hudi ttl explain``: which policy decides about one partition, and why the others do not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import hudi_command
from airflow_hudi_maint.cli.gathering import now
from airflow_hudi_maint.cli.opening import open_table
from airflow_hudi_maint.cli.output import print_record, print_rows
from airflow_hudi_maint.cli.policies import policy_file
from airflow_hudi_maint.cli.progress import progress

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_hudi_maint.core.model.document import JsonObject
    from airflow_hudi_maint.core.model.policy import TTLPolicy
    from airflow_hudi_maint.core.planning.expiry_explain import Explanation

_COLUMNS = ("verdict", "policy", "spec", "why", "source")


@hudi_command
def ttl_explain(args: Namespace) -> None:
    """Explain one partition; ``json`` and ``yaml`` are an object, ``plain`` a row for each policy."""
    from airflow_hudi_maint.core import maintenance

    workspace = open_table(args)
    file = policy_file(workspace, args.policies) if args.policies else None
    with progress(workspace.table.storage.requests):
        found = maintenance.explain_partition(
            workspace,
            args.partition,
            now=now(),
            policies=file.policies if file else None,
            guards=file.guards if file else None,
        )
    if args.output == "table":
        sys.stdout.write(f"{found.partition_path}\n")
        lines = found.lines() if found.entry else (*found.lines(), "the table has no such partition now")
        sys.stdout.writelines(f"  {line}\n" for line in lines)
    elif args.output == "plain":
        print_rows(_rows(found), output="plain", columns=_COLUMNS)
    else:
        print_record(_record(found), output=args.output)


def _rows(found: Explanation) -> list[JsonObject]:
    winner = [_row("decides", found.winner, why=found.entry.reason if found.entry else None)] if found.winner else []
    losers = [_row("loses", policy, why=why) for policy, why in found.losers]
    return [*winner, *losers, *(_row("elsewhere", policy, why=why) for policy, why in found.others)]


def _row(verdict: str, policy: TTLPolicy, *, why: str | None) -> JsonObject:
    kind = f"{policy.kind} {policy.value}"
    return {"verdict": verdict, "policy": kind, "spec": str(policy.spec), "why": why, "source": policy.source}


def _record(found: Explanation) -> JsonObject:
    entry = found.entry
    return {
        "partition": found.partition_path,
        "values": list(found.values) if found.values is not None else None,
        "is_in_table": entry is not None,
        "decision": str(entry.decision) if entry else None,
        "reason": entry.reason if entry else None,
        "why_not": entry.why_not or None if entry else None,
        "policies": _rows(found),
    }
