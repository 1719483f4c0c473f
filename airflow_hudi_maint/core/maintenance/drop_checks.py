"""What speaks against dropping partitions of an expiry plan by now, looked up on the table as it is at that moment."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import PendingActionError, PlanOutdatedError
from airflow_hudi_maint.core.maintenance.expiry_planning import make_expiry_plan, table_policies
from airflow_hudi_maint.core.maintenance.steps import changes_since
from airflow_hudi_maint.core.model.expiry_guards import ExpiryClock
from airflow_hudi_maint.core.model.plan import Decision
from airflow_hudi_maint.core.model.units import counted
from airflow_hudi_maint.core.planning.policy_diff import diff_policies
from airflow_hudi_maint.core.storage.properties import load_properties

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.commit import CommitMetadata
    from airflow_hudi_maint.core.model.instant import Instant
    from airflow_hudi_maint.core.model.plan import ExpiryPlan
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.planning.expiry import ExpiryGuards


@dataclass(frozen=True, slots=True, kw_only=True)
class SincePlan:
    """Partitions of a plan that were dropped since it was made (with the instant), or changed in another way (why)."""

    dropped: Mapping[str, str]
    changed: Mapping[str, PlanOutdatedError]


@dataclass(frozen=True, kw_only=True)
class PlannedAgain:
    """A plan of now for some partitions of an earlier one: those ``kept`` by now (why), and the rest as ``plan``.

    The plan has every partition of the table, but expires none that was not asked about: for the guards to judge.
    """

    kept: Mapping[str, PlanOutdatedError]
    plan: ExpiryPlan


@dataclass(frozen=True, kw_only=True)
class DropChecks:
    """An expiry plan, held against the table: each check is one look of its own."""

    workspace: Workspace
    plan: ExpiryPlan
    guards: ExpiryGuards
    now: datetime

    def since(self, timeline: Timeline) -> SincePlan:
        """What happened to partitions of the plan since it was made.

        Raises PlanOutdatedError when that cannot be told.
        """
        changes = changes_since(self.workspace, timeline, watermark=self.plan.basis.watermark)
        planned = {entry.partition_path for entry in self.plan.expired}
        dropped: dict[str, str] = {}
        changed: dict[str, PlanOutdatedError] = {}
        for instant, metadata in sorted(changes.items(), key=lambda item: item[0].ordering_time):
            touched = metadata.touched_partitions & planned
            if metadata.drops_partitions:
                dropped.update(dict.fromkeys(touched - changed.keys(), instant.requested_time))
            # What is written to a partition after its drop is new data, and none of this plan's business.
            elif not metadata.rewrites_only and (new := touched - dropped.keys()):
                changed.update(dict.fromkeys(sorted(new), self._outdated(new, instant, metadata)))
        return SincePlan(dropped=dropped, changed=changed)

    def _outdated(self, touched: Collection[str], instant: Instant, metadata: CommitMetadata) -> PlanOutdatedError:
        return PlanOutdatedError(
            f"Partition {min(touched)!r} ({len(touched)} of the plan's) was changed by {instant} "
            f"({metadata.operation or 'unknown operation'}) after the plan was made at {self.plan.basis.base_instant}. "
            "Plan again: what was written may have to be kept"
        )

    def held(self, timeline: Timeline, names: Collection[str]) -> dict[str, PendingActionError]:
        """Partitions that a pending plan holds: Hudi refuses to drop them."""
        found: dict[str, PendingActionError] = {}
        for plan in self.workspace.table.pending_plans(timeline):
            held = sorted(plan.partitions.intersection(names))
            if held:
                msg = (
                    f"Pending {plan.kind} {plan.instant.requested_time} holds {counted(len(held), 'partition')} of the "
                    f"plan, {held[0]!r} first; Hudi refuses to drop them. Execute or roll back that plan, then plan "
                    "again"
                )
                found.update(dict.fromkeys(held, PendingActionError(msg)))
        return found

    def policies(self) -> None:
        """Raise PlanOutdatedError where the plan went by the table's own policies, and these are others by now.

        Raises InvalidPolicyError where they are broken by now.
        """
        if not self.plan.has_table_policies:
            return
        table = self.workspace.table
        present = table_policies(self.workspace, properties=load_properties(table.storage))
        changed = diff_policies(self.plan.policies, present).lines()
        if changed:
            raise PlanOutdatedError(
                f"The policies of table {table.base_path} changed since the plan was made ({'; '.join(changed)}). "
                "Plan again"
            )

    def plan_again(self, names: Collection[str]) -> PlannedAgain:
        """Plan again, by the same policies, on the table as it is now."""
        guards = replace(self.guards, clock=ExpiryClock(self.plan.clock))
        fresh = make_expiry_plan(self.workspace, policies=self.plan.policies, now=self.now, guards=guards)
        going = {entry.partition_path for entry in fresh.expired}
        others = going.difference(names)
        entries = tuple(
            replace(one, decision=Decision.KEEP) if one.partition_path in others else one for one in fresh.entries
        )
        kept = sorted(set(names) - going)
        if kept:
            why = next(
                (one.reason for one in fresh.entries if one.partition_path == kept[0]), "it has no data any more"
            )
            msg = (
                f"{counted(len(kept), 'partition')} of the plan would not expire by now, {kept[0]!r} first: {why}. "
                "Plan again"
            )
        return PlannedAgain(kept={name: PlanOutdatedError(msg) for name in kept}, plan=replace(fresh, entries=entries))
