"""Try policies out on a table: why one partition stays or goes, and what would have expired day by day."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import CorruptTableError, DocumentNotFoundError
from airflow_hudi_maint.core.maintenance.expiry_planning import make_expiry_plan
from airflow_hudi_maint.core.maintenance.policies import show_policies
from airflow_hudi_maint.core.model.expiry_guards import ExpiryGuards
from airflow_hudi_maint.core.model.instant import instant_moment
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.planning.expiry import partitions_by_creation
from airflow_hudi_maint.core.planning.expiry_explain import Explanation, explain
from airflow_hudi_maint.core.planning.expiry_simulation import SimulatedDay, simulate
from airflow_hudi_maint.core.storage.partition_metadata import creation_instants
from airflow_hudi_maint.core.storage.schema import table_schema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.policy import PolicySet


def explain_partition(
    workspace: Workspace,
    partition_path: str,
    *,
    now: datetime,
    policies: PolicySet | None = None,
    guards: ExpiryGuards | None = None,
) -> Explanation:
    """Say which policy decides about a partition, which ones lose and why, and what a plan of now does with it.

    ``policies`` None are the table's own. A partition that the table does not have is explained without a plan.
    Statistics are brought up to date first.

    Raises InvalidPolicyError for a policy that is malformed or does not fit the table.
    """
    chosen = show_policies(workspace) if policies is None else policies
    scheme = workspace.table.config.partitions
    path = partition_path.strip("/")
    plan = make_expiry_plan(workspace, policies=chosen, now=now, guards=guards or ExpiryGuards())
    is_there = any(entry.partition_path == path for entry in plan.entries)
    return explain(path, chosen, scheme=scheme, plan=plan if is_there else None)


@dataclass(frozen=True, kw_only=True)
class PolicyReplay:
    """The stored statistics of a table, to replay policies on; the same ones for each set of policies."""

    workspace: Workspace
    history: tuple[TableStatistics, ...]

    def run(
        self, policies: PolicySet, *, since: date, until: date, guards: ExpiryGuards | None = None
    ) -> tuple[SimulatedDay, ...]:
        """Say day by day (UTC) what the policies would have dropped; see :func:`simulate`.

        Creation times are read where a policy goes by them; a partition that is gone has none any more.
        """
        table = self.workspace.table
        scheme = table.config.partitions
        creations = {
            path: None
            for statistics in self.history
            for path in partitions_by_creation(statistics, policies, scheme=scheme)
        }
        return simulate(
            self.history,
            policies,
            since=since,
            until=until,
            scheme=scheme,
            zone=table.zone,
            # Without statistics there may be no commit yet, so no schema; the simulation says what is missing.
            field_types=table_schema(table, timeline=table.timeline()).partition_field_types(scheme)
            if self.history
            else {},
            created=creation_instants(table, partitions=tuple(creations)) if creations else {},
            guards=guards or ExpiryGuards(),
        )


def replay_statistics(workspace: Workspace) -> PolicyReplay:
    """Read the statistics that are stored for the table; broken files are left out with a warning."""
    return PolicyReplay(workspace=workspace, history=tuple(_stored(workspace)))


def _stored(workspace: Workspace) -> Iterator[TableStatistics]:
    documents = workspace.documents
    for name in documents.names("statistics"):
        path = documents.path("statistics", name=name)
        try:
            statistics = TableStatistics.from_json(documents.read(path), name=path)
        except DocumentNotFoundError:  # pruned meanwhile
            continue
        except CorruptTableError as error:
            workspace.log(f"Warning: left out {error}")
            continue
        yield _known_from_its_instant(statistics, workspace=workspace)


def _known_from_its_instant(statistics: TableStatistics, *, workspace: Workspace) -> TableStatistics:
    """The statistics, dated by the instant that they show.

    A gather that finds no new instant replaces the file of the one before: when it was gathered says nothing about
    since when the table looked so.
    """
    try:
        shown = instant_moment(statistics.as_of_instant, zone=workspace.table.zone)
    except ValueError:
        return statistics
    return replace(statistics, gathered_at=shown.isoformat())
