"""Make an expiry plan from the table as it is at this moment, and say in a line what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hudi_maint.core.maintenance.statistics import gather_statistics
from airflow_hudi_maint.core.model.plan import ExpiryPlan
from airflow_hudi_maint.core.model.policy import PolicyKind, PolicySet
from airflow_hudi_maint.core.model.units import human_bytes
from airflow_hudi_maint.core.planning import expiry as planner
from airflow_hudi_maint.core.storage.schema import table_schema

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.planning.expiry import ExpiryGuards


def make_expiry_plan(workspace: Workspace, *, policies: PolicySet, now: datetime, guards: ExpiryGuards) -> ExpiryPlan:
    """Plan on statistics of this moment. The basis is the timeline that they were gathered from, not a later one."""
    table = workspace.table
    gathered = gather_statistics(workspace, now=now)
    timeline = table.timeline()
    pending = {
        partition: plan.instant.requested_time
        for plan in table.pending_plans(timeline)
        for partition in plan.partitions
    }
    compares_values = any(policy.kind is not PolicyKind.KEEP_BY_TIME for policy in policies.all())
    if compares_values and gathered.statistics.partitions:
        field_types = table_schema(table, timeline=timeline).partition_field_types(table.config.partitions)
    else:  # a table without a commit has no schema yet
        field_types = {}
    return planner.plan_expiry(
        gathered.statistics,
        policies,
        scheme=table.config.partitions,
        field_types=field_types,
        pending=pending,
        basis=workspace.basis(gathered.statistics.watermark, now=now, statistics_path=gathered.path),
        zone=table.zone,
        now=now,
        guards=guards,
    )


def describe_expiry_plan(plan: ExpiryPlan) -> str:
    """Say in a line what a plan does."""
    summary = plan.summary()
    blocked = f", {summary['blocked']} blocked" if plan.blocked else ""
    expired_bytes = sum(entry.total_bytes for entry in plan.expired)
    return (
        f"Expiry plan on {plan.basis.base_instant}: {summary['expired']} of {summary['partitions']} partitions expire "
        f"({human_bytes(expired_bytes)}), {summary['kept']} are kept{blocked}"
    )
