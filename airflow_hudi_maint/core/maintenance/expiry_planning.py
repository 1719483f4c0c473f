"""Make an expiry plan from the table as it is at this moment, and say in a line what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import TerminalError
from airflow_hudi_maint.core.maintenance.statistics import gather_statistics
from airflow_hudi_maint.core.model.plan import Decision, ExpiryPlan
from airflow_hudi_maint.core.model.policy import PolicyKind, PolicySet
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.shipped_ttl import shipped_policies
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning import expiry as planner
from airflow_hudi_maint.core.planning.policy_match import check_policies
from airflow_hudi_maint.core.storage.partition_metadata import creation_instants
from airflow_hudi_maint.core.storage.schema import table_schema

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.planning.expiry import ExpiryGuards
    from airflow_hudi_maint.core.storage.documents import DocumentStore

_REPORTS_READ = 20


def table_policies(workspace: Workspace, *, properties: Mapping[str, str] | None = None) -> PolicySet:
    """The policies that a table has: RFC-65's in ``hoodie.properties``, and where it has none Hudi's own TTL settings.

    Those are read from the table's properties, and then from the write options that this workspace is given.
    ``properties`` None are those of when the table was opened.

    Raises InvalidPolicyError that names the key: a broken policy never falls back to another one.
    """
    config = workspace.table.config
    known = config.properties if properties is None else properties
    found = PolicySet.from_properties(known)
    if found.is_empty and config.partitions.fields:
        found = shipped_policies(known, scheme=config.partitions, source="hoodie.properties")
    if found.is_empty and config.partitions.fields:
        found = shipped_policies(workspace.write_options, scheme=config.partitions, source="write options")
    return found


def make_expiry_plan(workspace: Workspace, *, policies: PolicySet, now: datetime, guards: ExpiryGuards) -> ExpiryPlan:
    """Plan on statistics of this moment. The basis is the timeline that they were gathered from, not a later one.

    Creation instants are read of those partitions only whose policy goes by them.
    """
    table, scheme = workspace.table, workspace.table.config.partitions
    check_policies(policies, scheme=scheme)  # before anything is read
    guards.check(scheme)
    gathered = gather_statistics(workspace, now=now)
    timeline = table.timeline()
    pending = {
        partition: plan.instant.requested_time
        for plan in table.pending_plans(timeline)
        for partition in plan.partitions
    }
    compares_values = any(policy.kind is not PolicyKind.KEEP_BY_TIME for policy in policies.all())
    if compares_values and gathered.statistics.partitions:
        field_types = table_schema(table, timeline=timeline).partition_field_types(scheme)
    else:  # a table without a commit has no schema yet
        field_types = {}
    by_creation = planner.partitions_by_creation(gathered.statistics, policies, scheme=scheme)
    return planner.plan_expiry(
        gathered.statistics,
        policies,
        scheme=scheme,
        field_types=field_types,
        pending=pending,
        basis=workspace.basis(gathered.statistics.watermark, now=now, statistics_path=gathered.path),
        zone=table.zone,
        now=now,
        guards=guards,
        created=creation_instants(table, partitions=by_creation) if by_creation else {},
        previous_expired=previous_expired(workspace.documents),
    )


def previous_expired(documents: DocumentStore) -> int | None:
    """How many partitions the last run that dropped some has dropped; None where no report of one is left.

    Of the newest reports some are looked at: a table that expires nothing for long has no run to be compared with.
    """
    names = [name for name in documents.names("reports") if f"-{Step.EXPIRE}-" in name]
    for name in reversed(names[-_REPORTS_READ:]):
        try:
            report = StepReport.from_json(documents.read(documents.path("reports", name=name)), name=name)
        except TerminalError:  # pruned meanwhile, or broken: the one before it will do
            continue
        if report.outcome is Outcome.DONE and report.partitions:
            return len(report.partitions)
    return None


def describe_expiry_plan(plan: ExpiryPlan) -> str:
    """Say in a line what a plan does."""
    totals = plan.totals
    counts = {decision: one.partitions for decision, one in totals.items()}
    every = counted(sum(counts.values()), "partition")
    blocked = f", {counts[Decision.BLOCKED]:,} blocked" if counts[Decision.BLOCKED] else ""
    return (
        f"Expiry plan on {plan.basis.base_instant}: {counts[Decision.EXPIRE]:,} of {every} "
        f"{'expires' if counts[Decision.EXPIRE] == 1 else 'expire'} "
        f"({human_bytes(totals[Decision.EXPIRE].bytes)}), {counts[Decision.KEEP]:,} "
        f"{'is' if counts[Decision.KEEP] == 1 else 'are'} kept{blocked}"
    )
