"""Have a person approve an expiry plan in the Airflow UI."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowSkipException

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_exact_text, as_optional_int, as_result_field
from airflow_hudi_maint.hooks.errors import airflow_errors
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.hooks.policy_settings import expiry_rules

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from airflow.sdk import Context

    from airflow_hudi_maint.core.model.plan import ExpiryPlan


SHOWN_KEY = "hudi_maint_approval"
"""Key in the task state store of the path of the plan that the request shows."""


class HudiApproveExpiryOperator(ApprovalOperator):
    """Show an expiry plan to a person, who approves or rejects it; a small one is approved by its figures.

    The plan stands as a table under *Required Action* of the task, and the task waits without a worker. A rejection
    skips the tasks directly after it, and so does an answer that does not come in time, unless ``defaults`` says
    ``Approve``. A plan that a guard would refuse says so on top; approving does not lift the guard. A plan that drops
    nothing needs nobody.

    What is approved is the plan that was shown: Airflow does not replace the request of a task that is cleared, so when
    the plan task made another plan in the same run, this task fails and asks for a new run.

    Returns ``{"approved", "by", "at", "how", "plan_path"}``: ``how`` is ``person``, ``timeout`` or ``figures``; give it
    to HudiExpirePartitionsOperator as ``approval``, whose report keeps who and when.

    .. seealso:: ``docs/operators.md``

    :param plan_path: Path of an expiry plan, or the result of HudiPlanExpiryOperator. When the task that it refers to
        left no result, this task skips itself. (templated)
    :param auto_approve_partitions: A plan that drops no more partitions than this is approved without a person, if
        ``auto_approve_bytes`` allows it, too; None for none. (templated)
    :param auto_approve_bytes: The same for bytes; None for no limit. (templated)
    :param guards: As in HudiPlanExpiryOperator, for telling what would be refused. (templated)
    :param policy_file: As in HudiPlanExpiryOperator; only its guards count here. (templated)
    :param hudi_conn_id: Connection of type ``hudi``; None for none. (templated)
    :param base_path: Base path of the table; None for the connection's. (templated)
    :param response_timeout: How long to wait for an answer.
    :param defaults: What counts as the answer when none comes: ``Reject`` or ``Approve``.
    """

    template_fields: Collection[str] = (
        *ApprovalOperator.template_fields,
        "plan_path",
        "auto_approve_partitions",
        "auto_approve_bytes",
        "guards",
        "policy_file",
        "hudi_conn_id",
        "base_path",
    )
    ui_color = "#e3f4f1"

    def __init__(
        self,
        *,
        plan_path: Any,
        auto_approve_partitions: int | str | None = None,
        auto_approve_bytes: int | str | None = None,
        guards: Mapping[str, object] | str | None = None,
        policy_file: str | None = None,
        hudi_conn_id: str | None = HudiHook.default_conn_name,
        base_path: str | None = None,
        subject: str = "Expiry of partitions",
        response_timeout: timedelta | None = timedelta(hours=24),
        defaults: str = ApprovalOperator.REJECT,
        **kwargs: Any,
    ) -> None:
        super().__init__(subject=subject, response_timeout=response_timeout, defaults=defaults, **kwargs)
        self.plan_path = plan_path
        self.auto_approve_partitions = auto_approve_partitions
        self.auto_approve_bytes = auto_approve_bytes
        self.guards = guards
        self.policy_file = policy_file
        self.hudi_conn_id = hudi_conn_id
        self.base_path = base_path

    def execute(self, context: Context) -> dict[str, Any]:
        """Approve a small plan; show a larger one and wait."""
        from airflow_hudi_maint.core.maintenance import read_expiry_plan
        from airflow_hudi_maint.core.model.units import counted
        from airflow_hudi_maint.core.planning.expiry import ExpiryGuards, guard_problems
        from airflow_hudi_maint.core.reporting.expiry_markdown import expiry_markdown

        with airflow_errors():
            path = self._path()
            workspace = HudiHook(self.hudi_conn_id, base_path=self.base_path).workspace()
            plan = read_expiry_plan(workspace, path)
            why = self._small_enough(plan)
            if why is not None:
                self.log.info("Approved by its figures: %s", why)
                return {"approved": True, "by": None, "at": self._now(), "how": "figures", "plan_path": path}
            _, guards = expiry_rules(
                workspace, policies=None, guards=self.guards, policy_file=self.policy_file, is_planned=True
            )
            self.subject = f"{self.subject}: {counted(len(plan.expired), 'partition')} of {plan.basis.table_name}"
            self.body = (
                f"{expiry_markdown(plan, problems=guard_problems(plan, guards or ExpiryGuards()))}\nPlan: `{path}`\n"
            )
            self._remember_shown(context, path)
        super().execute(context)
        raise AssertionError("the wait for a person always leaves execute by an exception")

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Return who decided, when and what; a rejection skips what comes after."""
        with airflow_errors():
            result = self._decision(event, plan_path=self._shown(context) or self._path())
        self.log.info("%s by %s", "Approved" if result["approved"] else "Rejected", result["by"] or "nobody in time")
        if not result["approved"] and self.do_xcom_push and "ti" in context:
            # The skip of the tasks after it is an exception, behind which nothing is returned.
            context["ti"].xcom_push(key="return_value", value=result)
        super().execute_complete(context=context, event=event)
        return result

    def _decision(self, event: Mapping[str, Any], *, plan_path: str) -> dict[str, Any]:
        """What a person, or the timeout, answered; an event without an answer is left to the parent."""
        user, at = event.get("responded_by_user"), event.get("responded_at")
        return {
            "approved": event.get("chosen_options") == [self.APPROVE],
            "by": None if user is None else user["name"],
            "at": self._now() if at is None else at.isoformat(),
            "how": "timeout" if event.get("timedout") or user is None else "person",
            "plan_path": plan_path,
        }

    def _remember_shown(self, context: Context, path: str) -> None:
        """Note which plan is shown; refuse to ask about another one.

        Airflow keeps the request of a task instance that is cleared as it is: the person would read the plan of before
        and approve the one of now.
        """
        shown = self._shown(context)
        if shown not in (None, path):
            raise InvalidSettingError(
                f"Airflow still shows the plan {shown} in this run and can replace it by no other, such as {path}. "
                "Trigger a new run of the DAG: it makes a plan and asks about that"
            )
        store = context.get("task_state_store")
        if store is not None:
            store.set(SHOWN_KEY, path)

    def _shown(self, context: Context) -> str | None:
        store = context.get("task_state_store")
        shown = None if store is None else store.get(SHOWN_KEY)
        return shown if isinstance(shown, str) else None

    def _path(self) -> str:
        path = as_exact_text("plan_path", as_result_field("plan_path", self.plan_path, field="plan_path"))
        if path is None:
            raise AirflowSkipException("the plan task left no plan")
        return path

    def _small_enough(self, plan: ExpiryPlan) -> str | None:
        """Why a plan needs no person; None when it does."""
        from airflow_hudi_maint.core.model.units import counted, human_bytes

        most = as_optional_int("auto_approve_partitions", self.auto_approve_partitions)
        most_bytes = as_optional_int("auto_approve_bytes", self.auto_approve_bytes)
        count = len(plan.expired)
        if not count:
            return "it drops nothing"
        expired_bytes = sum(entry.total_bytes for entry in plan.expired)
        if most is None or count > most or (most_bytes is not None and expired_bytes > most_bytes):
            return None
        what = f"{counted(count, 'partition')} of {human_bytes(expired_bytes)}"
        return f"{what}: within auto_approve_partitions={most}"

    @staticmethod
    def _now() -> str:
        return datetime.now(UTC).isoformat()
