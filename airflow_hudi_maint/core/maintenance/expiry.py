"""Plan which partitions expire, and drop them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import InvalidSettingError, TerminalError
from airflow_hudi_maint.core.maintenance.dropping import DropSettings, PartitionDrop
from airflow_hudi_maint.core.maintenance.expiry_planning import describe_expiry_plan, make_expiry_plan, table_policies
from airflow_hudi_maint.core.maintenance.steps import StepReported, check_basis, settle_previous
from airflow_hudi_maint.core.model.plan import ExpiryPlan
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.planning import expiry as planner

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.planning.expiry import ExpiryGuards


@dataclass(frozen=True, kw_only=True)
class PlannedExpiry:
    """An expiry plan, the file that holds it, and the guards that it was made with."""

    plan: ExpiryPlan
    path: str
    guards: ExpiryGuards

    def check_guards(self) -> None:
        """Raise GuardTrippedError where the plan drops more than its guards allow."""
        planner.check_guards(self.plan, self.guards, path=self.path)


def plan_expiry(
    workspace: Workspace, *, now: datetime, policies: PolicySet | None = None, guards: ExpiryGuards | None = None
) -> PlannedExpiry:
    """Plan which partitions expire and write the plan; changes nothing on the table.

    ``policies`` None takes those in the table's ``hoodie.properties``, or Hudi's own TTL settings where it has none.
    Statistics are brought up to date first. A guard that trips is a warning of the plan, see
    :meth:`PlannedExpiry.check_guards`.

    Raises InvalidPolicyError for a policy that is malformed or does not fit the table.
    """
    chosen, guards = _policies(workspace, policies), guards or planner.ExpiryGuards()
    plan = make_expiry_plan(workspace, policies=chosen, now=now, guards=guards)
    plan = replace(plan, has_table_policies=policies is None)
    stem = f"{plan.basis.base_instant}-expiry"
    path = workspace.documents.write_kept("plans", stem=stem, document=plan.to_json())
    workspace.log(describe_expiry_plan(plan))
    return PlannedExpiry(plan=plan, path=path, guards=guards)


def read_expiry_plan(workspace: Workspace, path: str) -> ExpiryPlan:
    """Read a plan that :func:`plan_expiry` wrote; raises CorruptTableError for anything else."""
    return ExpiryPlan.from_json(workspace.documents.read(path), name=path)


def expire_partitions(
    workspace: Workspace,
    *,
    now: datetime,
    job: JobControl,
    plan_path: str | None = None,
    policies: PolicySet | None = None,
    guards: ExpiryGuards | None = None,
    settings: DropSettings = DropSettings(),  # noqa: B008 a frozen value
    dry_run: bool = False,
) -> StepReported:
    """Drop the partitions of a plan with Hudi's ``delete_partition``; without ``plan_path`` plan first.

    A second run drops nothing twice: partitions that an earlier try dropped are found on the timeline. Data files
    stay until Hudi's cleaner passes; a savepoint can keep them longer.

    Raises GuardTrippedError, PlanOutdatedError (a partition was written since the plan), PendingActionError (a live
    writer, or a pending plan on one of the partitions) or EngineError; nothing is dropped then. VerificationError when
    a dropped partition still shows rows of before.
    """
    if plan_path and policies is not None:
        msg = "Both plan_path and policies are given; a plan already holds the policies that it was made with"
        raise InvalidSettingError(msg)
    retried = settle_previous(workspace, job)
    path = plan_path or _plan_of_first_try(workspace, job=job, policies=policies)
    path = path or plan_expiry(workspace, now=now, policies=policies, guards=guards).path
    plan = read_expiry_plan(workspace, path)
    check_basis(workspace, plan.basis)
    job.on_planned(path)
    guards = guards or planner.ExpiryGuards()
    drop = PartitionDrop(
        workspace=workspace,
        plan=plan,
        path=path,
        guards=guards,
        now=now,
        retried=retried,
        settings=settings,
    )
    if not plan.expired:
        return drop.report(Outcome.NOTHING_TO_DO, f"Nothing expires: {describe_expiry_plan(plan)}")
    return drop.rehearse() if dry_run else drop.apply(job)


def _policies(workspace: Workspace, given: PolicySet | None) -> PolicySet:
    policies = table_policies(workspace) if given is None else given
    policies.check(workspace.table.config.partitions)
    return policies


def _plan_of_first_try(workspace: Workspace, *, job: JobControl, policies: PolicySet | None) -> str | None:
    """The plan that an earlier try worked on: planning again would not see what that try already dropped.

    A plan by other policies than those of now is not taken: somebody corrected them between the tries.
    """
    if job.plan_path is None:
        return None
    try:
        then = read_expiry_plan(workspace, job.plan_path).policies
    except TerminalError:  # pruned or broken: plan anew
        return None
    return job.plan_path if then.to_json() == _policies(workspace, policies).to_json() else None
