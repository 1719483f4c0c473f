"""Plan and apply partition expiry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from airflow_hudi_maint.hooks.arguments import as_bool, as_exact_text, as_result_field
from airflow_hudi_maint.operators.base import HudiTableOperator
from airflow_hudi_maint.operators.job import HudiJobOperator
from airflow_hudi_maint.operators.settings import expiry_guards, ttl_policies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

_POLICY_FIELDS = ("policies", "guards")


class HudiPlanExpiryOperator(HudiTableOperator):
    """Plan which partitions expire, with a reason for each; nothing is deleted and no engine started.

    A second run makes a new plan on the table's state of then. A concurrent writer does no harm: applying the plan
    checks the table again. A table without any policy skips the task.

    Returns ``{"plan_path", "base_path", "table", "base_instant", "partitions", "expired", "kept", "blocked",
    "expired_bytes", "total_bytes"}``.

    .. seealso:: ``docs/operators.md``

    :param policies: RFC-65 policies, as a list of objects or JSON; one may have ``"default": true``. None for those
        in the table's ``hoodie.properties``; an empty list for none. (templated)
    :param guards: Limits of a run, as an object or JSON with the fields of ``ExpiryGuards``; what is left out has its
        default. (templated)
    """

    template_fields: Sequence[str] = (*HudiTableOperator.template_fields, *_POLICY_FIELDS)
    template_fields_renderers = dict.fromkeys(_POLICY_FIELDS, "json")

    def __init__(
        self,
        *,
        policies: Sequence[Mapping[str, object]] | str | None = None,
        guards: Mapping[str, object] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.policies = policies
        self.guards = guards

    def execute(self, context: Context) -> dict[str, Any]:
        """Make the plan."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Plan expiry") as hook:
            planned = maintenance.plan_expiry(
                hook.workspace(log=self.say),
                now=self.now(),
                policies=ttl_policies(self.policies),
                guards=expiry_guards(self.guards),
            )
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
        idle = "the table has no TTL policy and none was given" if plan.policies.is_empty else None
        return self.hand_on(context, result, idle=idle)


class HudiExpirePartitionsOperator(HudiJobOperator):
    """Drop the partitions that a plan expires, with Hudi's own ``delete_partition``.

    Applies the plan at ``plan_path``, or makes one. The table is looked at again before anything is dropped; a plan
    whose partitions were written since, or that a pending instant holds, is refused. A second run with the same plan
    reports what the first one did. Success is what the timeline says afterwards. Files are reclaimed later, by Hudi's
    cleaner.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``.

    .. seealso:: ``docs/operators.md``

    :param plan_path: Path of an expiry plan, or the result of HudiPlanExpiryOperator; left out, or an empty text, to
        plan now. When the task that it refers to left no result, this task skips itself: planning by other policies
        than that task's is not what was asked for. (templated)
    :param policies: As in HudiPlanExpiryOperator; refused beside a ``plan_path``, which holds its own. (templated)
    :param guards: As in HudiPlanExpiryOperator; checked in either case. (templated)
    :param plan_only: Whether to stop before the engine: the checks are made and the report says what would go.
        (templated)
    """

    template_fields: Sequence[str] = (*HudiJobOperator.template_fields, "plan_path", *_POLICY_FIELDS, "plan_only")
    template_fields_renderers = dict.fromkeys(_POLICY_FIELDS, "json")

    def __init__(
        self,
        *,
        plan_path: Any = None,
        policies: Sequence[Mapping[str, object]] | str | None = None,
        guards: Mapping[str, object] | str | None = None,
        plan_only: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.plan_path = plan_path
        # Rendering replaces the attribute, and a task without a result leaves None: the same as an argument left out.
        self._is_plan_given = plan_path is not None
        self.policies = policies
        self.guards = guards
        self.plan_only = plan_only

    def execute(self, context: Context) -> dict[str, Any]:
        """Apply the plan."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Expire partitions") as hook:
            plan_path = as_result_field("plan_path", self.plan_path, field="plan_path")
            if plan_path is None and self._is_plan_given:
                raise AirflowSkipException("the plan task left no plan")
            reported = maintenance.expire_partitions(
                self.open(hook),
                now=self.now(),
                job=self.job(context),
                plan_path=as_exact_text("plan_path", plan_path),
                policies=ttl_policies(self.policies),
                guards=expiry_guards(self.guards),
                dry_run=as_bool("plan_only", self.plan_only),
            )
        return self.report(context, reported)
