"""``airflow hudi show``: what a table is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.cli.command import hudi_command
from airflow_hudi_maint.cli.gathering import gather
from airflow_hudi_maint.cli.moments import moment, short
from airflow_hudi_maint.cli.opening import open_table
from airflow_hudi_maint.cli.output import print_record
from airflow_hudi_maint.core.errors import CorruptTableError, InvalidPolicyError
from airflow_hudi_maint.core.model.instant import WRITE_ACTIONS
from airflow_hudi_maint.core.model.policy import PolicySet

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_hudi_maint.core.maintenance import Workspace
    from airflow_hudi_maint.core.model.document import JsonObject
    from airflow_hudi_maint.core.model.instant import Instant
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.storage.table import HudiTable


@hudi_command
def show(args: Namespace) -> None:
    """Print the table's settings, its timeline in short, its policies and, unless ``--no-sizes``, its totals."""
    workspace = open_table(args)
    table = workspace.table
    timeline = table.timeline()
    record: JsonObject = {**_settings(table), **_timeline(table, timeline), **_policies(table)}
    if not args.no_sizes:
        record.update(_totals(workspace))
    words = {
        "last_commit": _instant_words,
        "pending": lambda pending: "\n".join(map(_instant_words, pending)) or "none",
        "policies": lambda policies: "\n".join(map(_policy_words, policies)) or "none",
        "partition_fields": lambda fields: ", ".join(fields) or "none: the table is not partitioned",
        "metadata_partitions": lambda names: ", ".join(names) or "none: the table has no metadata table",
    }
    print_record(record, output=args.output, words=words)


def _settings(table: HudiTable) -> JsonObject:
    config = table.config
    return {
        "table": config.name,
        "base_path": table.base_path,
        "table_type": str(config.table_type),
        "table_version": config.table_version,
        "base_file_format": config.base_file_format,
        "partition_fields": list(config.partitions.fields),
        "hive_style_partitions": config.partitions.hive_style,
        "record_key_fields": list(config.record_key_fields),
        "ordering_fields": list(config.ordering_fields),
        "timeline_zone": str(table.zone),
        "timeline_zone_setting": config.timeline_zone,
        "metadata_partitions": list(config.metadata_partitions),
    }


def _timeline(table: HudiTable, timeline: Timeline) -> JsonObject:
    writes = [one for one in timeline.completed if one.action in WRITE_ACTIONS]
    last = max(writes, key=lambda one: one.ordering_time, default=None)
    return {
        "completed_instants": len(timeline.completed),
        "last_commit": _instant(last, table=table) if last else None,
        "pending": [_instant(one, table=table) for one in timeline.pending],
    }


def _instant(instant: Instant, *, table: HudiTable) -> JsonObject:
    return {
        "requested_time": instant.requested_time,
        "action": str(instant.action),
        "state": instant.state.name.lower(),
        "requested_at": moment(instant.requested_time, zone=table.zone),
        "completed_at": moment(instant.completion_time, zone=table.zone),
    }


def _policies(table: HudiTable) -> JsonObject:
    """The policies in ``hoodie.properties``; a broken one is what somebody who looks at the table wants to see."""
    try:
        policies = PolicySet.from_properties(table.config.properties)
        policies.check(table.config.partitions)
    except InvalidPolicyError as error:
        return {"policies": [], "policies_problem": str(error)}
    return {"policies": [dict(policy) for policy in policies.to_json()]}


def _totals(workspace: Workspace) -> JsonObject:
    """The totals; an instant that is broken hides the files that count, and not what else the table is."""
    try:
        statistics = gather(workspace).statistics
    except CorruptTableError as error:
        return {"totals_problem": str(error)}
    return {**statistics.totals(), "small_file_bytes": statistics.small_file_bytes}


def _instant_words(instant: Mapping[str, Any]) -> str:
    state = "" if instant["state"] == "completed" else f", {instant['state']}"
    return f"{instant['requested_time']} ({instant['action']}{state}, {short(instant['requested_at'])})"


def _policy_words(policy: Mapping[str, Any]) -> str:
    default = ", default" if policy.get("default") else ""
    return f"{policy['policy']} {policy['policyValue']} on {policy['partitionSpec'] or 'the whole table'}{default}"
