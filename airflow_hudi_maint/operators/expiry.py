"""Plan and apply partition expiry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from airflow_hudi_maint.core.errors import GuardTrippedError, InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_bool, as_exact_text, as_result_field
from airflow_hudi_maint.hooks.errors import airflow_errors
from airflow_hudi_maint.hooks.plan_settings import drop_settings, fails_on_guard
from airflow_hudi_maint.hooks.policy_settings import expiry_rules
from airflow_hudi_maint.operators.base import HudiTableOperator
from airflow_hudi_maint.operators.job import HudiJobOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_hudi_maint.core.maintenance import PlannedExpiry

_POLICY_FIELDS = ("policies", "guards")


class HudiPlanExpiryOperator(HudiTableOperator):
    """Plan which partitions expire, with a reason for each; nothing is deleted and no engine started.

    A plan that a guard refuses is written and handed on all the same; then the task fails without a retry, with the
    figures and the setting that would allow it.

    A second run makes a new plan on the table's state of then. A concurrent writer does no harm: applying the plan
    checks the table again. A table without any policy skips the task.

    Returns ``{"plan_path", "base_path", "table", "base_instant", "partitions", "expired", "kept", "blocked",
    "expired_bytes", "total_bytes"}``.

    .. seealso:: ``docs/operators.md``

    :param policies: RFC-65 policies, as a list of objects or JSON; one may have ``"default": true``. None for those
        in the table's ``hoodie.properties``; an empty list for none. (templated)
    :param guards: Limits of a run, as an object or JSON with the fields of ``ExpiryGuards``; what is left out has its
        default. (templated)
    :param policy_file: Path or URL of a policy file (YAML or JSON) instead of ``policies``. Its guards, protected specs
        and holds count as well; ``guards`` go over them, one by one, and lists add up. (templated)
    :param on_guard: What a guard that the plan trips does: ``fail`` the task, or ``warn``, where a later task checks
        the guards, as HudiExpirePartitionsOperator does in any case. (templated)
    """

    template_fields: Sequence[str] = (*HudiTableOperator.template_fields, *_POLICY_FIELDS, "policy_file", "on_guard")
    template_fields_renderers = dict.fromkeys(_POLICY_FIELDS, "json")

    def __init__(
        self,
        *,
        policies: Sequence[Mapping[str, object]] | str | None = None,
        guards: Mapping[str, object] | str | None = None,
        policy_file: str | None = None,
        on_guard: str = "fail",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.policies = policies
        self.guards = guards
        self.policy_file = policy_file
        self.on_guard = on_guard

    def execute(self, context: Context) -> dict[str, Any]:
        """Make the plan."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Plan expiry") as hook:
            fails = fails_on_guard(self.on_guard)
            workspace = hook.workspace(log=self.say)
            policies, guards = expiry_rules(
                workspace, policies=self.policies, guards=self.guards, policy_file=self.policy_file
            )
            planned = maintenance.plan_expiry(workspace, now=self.now(), policies=policies, guards=guards)
        plan = planned.plan
        for warning in plan.warnings:
            self.log.warning(warning)
        result = {
            "plan_path": planned.path,
            "base_path": plan.basis.base_path,
            "table": plan.basis.table_name,
            "base_instant": plan.basis.base_instant,
            **plan.summary(),
        }
        if fails:
            self._check_guards(context, planned, result=result)
        idle = "the table has no TTL policy and none was given" if plan.policies.is_empty else None
        return self.hand_on(context, result, idle=idle)

    def _check_guards(self, context: Context, planned: PlannedExpiry, *, result: dict[str, Any]) -> None:
        with airflow_errors():
            try:
                planned.check_guards()
            except GuardTrippedError:
                self.keep_result(context, result)
                raise


class HudiExpirePartitionsOperator(HudiJobOperator):
    """Drop the partitions that a plan expires, with Hudi's own ``delete_partition``.

    Applies the plan at ``plan_path``, or makes one. The table is looked at again before anything is dropped; a plan
    whose partitions were written since, or that a pending instant holds, is refused (or those are left out, by
    ``on_changed``). A second run with the same plan reports what the first one did. Success is what the timeline says
    afterwards. Files are reclaimed later, by Hudi's cleaner.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``.

    .. seealso:: ``docs/operators.md``

    :param plan_path: Path of an expiry plan, or the result of HudiPlanExpiryOperator; left out, or an empty text, to
        plan now. When the task that it refers to left no result, this task skips itself: planning by other policies
        than that task's is not what was asked for. (templated)
    :param policies: As in HudiPlanExpiryOperator; refused beside a ``plan_path``, which holds its own. (templated)
    :param guards: As in HudiPlanExpiryOperator; checked in either case. (templated)
    :param policy_file: As in HudiPlanExpiryOperator. Beside a ``plan_path`` its guards and holds alone count: the plan
        holds its own policies. (templated)
    :param plan_only: Whether to stop before the engine: the checks are made and the report says what would go.
        (templated)
    :param savepoint: Whether to make a savepoint of the instant before, so that Hudi's cleaner leaves the files and the
        drop can be undone until HudiReleaseSavepointsOperator releases it. (templated)
    :param on_changed: What to do about partitions of the plan that were written since, would be kept by now, or are
        held by a pending plan: ``refuse`` the whole run, or ``leave_out`` those and say so in the report. (templated)
    :param approval: Result of HudiApproveExpiryOperator for this plan: who and when goes into the report. Left out, or
        an empty text, nobody has to agree; one that comes out as nothing (None, null) is refused. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiJobOperator.template_fields,
        "plan_path",
        *_POLICY_FIELDS,
        "policy_file",
        "plan_only",
        "savepoint",
        "on_changed",
        "approval",
    )
    template_fields_renderers = dict.fromkeys(_POLICY_FIELDS, "json")

    def __init__(
        self,
        *,
        plan_path: Any = None,
        policies: Sequence[Mapping[str, object]] | str | None = None,
        guards: Mapping[str, object] | str | None = None,
        policy_file: str | None = None,
        plan_only: bool | str = False,
        savepoint: bool | str = False,
        on_changed: str = "refuse",
        approval: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.plan_path = plan_path
        # Rendering replaces the attribute, and a task without a result leaves None: the same as an argument left out.
        self._is_plan_given = plan_path is not None
        self.policies = policies
        self.guards = guards
        self.policy_file = policy_file
        self.plan_only = plan_only
        self.savepoint = savepoint
        self.on_changed = on_changed
        self.approval = approval
        self._is_approval_given = approval is not None

    def execute(self, context: Context) -> dict[str, Any]:
        """Apply the plan."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Expire partitions") as hook:
            plan_path = as_result_field("plan_path", self.plan_path, field="plan_path")
            if plan_path is None and self._is_plan_given:
                raise AirflowSkipException("the plan task left no plan")
            if self.approval is None and self._is_approval_given:
                raise InvalidSettingError("the approving task left no result: nobody agreed, and nothing is dropped")
            path = as_exact_text("plan_path", plan_path)
            workspace = self.open(hook)
            policies, guards = expiry_rules(
                workspace,
                policies=self.policies,
                guards=self.guards,
                policy_file=self.policy_file,
                is_planned=path is not None,
            )
            reported = maintenance.expire_partitions(
                workspace,
                now=self.now(),
                job=self.job(context),
                plan_path=path,
                policies=policies,
                guards=guards,
                settings=drop_settings(
                    savepoint=self.savepoint, on_changed=self.on_changed, approval=self.approval, plan_path=path
                ),
                dry_run=as_bool("plan_only", self.plan_only),
            )
        return self.report(context, reported)
