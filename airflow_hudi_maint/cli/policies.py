"""What the ``ttl`` commands share: how policies and changes of them are printed, and asking before one is made."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import UsageError
from airflow_hudi_maint.cli.opening import absolute
from airflow_hudi_maint.cli.output import print_record, print_rows
from airflow_hudi_maint.core.model.policy import PolicyKind
from airflow_hudi_maint.core.model.units import counted, human_bytes

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_hudi_maint.core.maintenance import ChangedPolicies, Workspace
    from airflow_hudi_maint.core.model.document import JsonObject
    from airflow_hudi_maint.core.model.policy import PolicySet, TTLPolicy
    from airflow_hudi_maint.core.model.policy_file import PolicyFile

_TABLE_COLUMNS = ("spec", "policy", "keeps", "default", "options", "source")
_PLAIN_COLUMNS = ("spec", "policy", "value", "default", "options", "source")


def print_policies(policies: PolicySet, *, output: str) -> None:
    """Print policies: ``json`` and ``yaml`` as RFC-65 objects, which commands and operators take."""
    if output in ("json", "yaml"):
        print_rows([dict(one) for one in policies.to_json()], output=output, columns=())
        return
    rows = [_row(policy) for policy in policies.all()]
    print_rows(rows, output=output, columns=_PLAIN_COLUMNS if output == "plain" else _TABLE_COLUMNS)


def print_change(changed: ChangedPolicies, *, workspace: Workspace, output: str) -> None:
    """Print what a command did to the policies, or would do."""
    if output in ("json", "yaml"):
        record: JsonObject = {
            "base_path": workspace.table.base_path,
            "changed": changed.is_changed,
            "dry_run": changed.is_dry_run,
            "difference": list(changed.lines()),
            "policies": [dict(policy) for policy in changed.after.to_json()],
        }
        print_record(record, output=output)
        return
    sys.stdout.writelines(f"{line}\n" for line in changed.lines())
    if output == "table":
        sys.stdout.write(f"{changed}\n")


def asked_first(args: Namespace, changed: ChangedPolicies, *, question: str) -> bool:
    """Show a dry run on stderr and ask whether to do it; True without a question with ``--yes``.

    Raises UsageError where there is nobody to ask.
    """
    if args.yes:
        return True
    sys.stderr.writelines(f"{line}\n" for line in changed.lines())
    if not sys.stdin.isatty():
        raise UsageError("This asks before it writes, and there is no terminal to ask at: give --yes, or --dry-run")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def policy_file(workspace: Workspace, name: str) -> PolicyFile:
    """Read a policy file; a relative name is below the folder that the command was started in."""
    from airflow_hudi_maint.core.maintenance import read_policy_file

    return read_policy_file(workspace, absolute(name))


def _row(policy: TTLPolicy) -> JsonObject:
    return {
        "spec": str(policy.spec),
        "policy": str(policy.kind),
        "value": policy.value,
        "keeps": _keeps(policy),
        "default": policy.is_default,
        "options": ",".join(f"{key}={value}" for key, value in policy.options.items()) or None,
        "source": policy.source,
    }


def _keeps(policy: TTLPolicy) -> str:
    if policy.kind is PolicyKind.KEEP_BY_SIZE:
        return human_bytes(policy.value)
    return counted(policy.value, policy.unit.removesuffix("s"))
