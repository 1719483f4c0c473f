"""Write the report of a maintenance run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import TaskInstanceState

from airflow_hudi_maint.core.errors import InvalidPolicyError, InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_bool, as_optional_text, as_result_field, as_texts, is_unset
from airflow_hudi_maint.hooks.policy_settings import expiry_rules
from airflow_hudi_maint.links.report import HudiReportLink
from airflow_hudi_maint.operators.base import HudiTableOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_hudi_maint.core.maintenance import Workspace
    from airflow_hudi_maint.core.model.policy import PolicySet
    from airflow_hudi_maint.core.planning.expiry import ExpiryGuards

_DOCUMENT_FIELDS = ("title", "before_statistics", "step_reports", "expiry_plan", "clustering_plan", "health")
_SETTING_FIELDS = ("policies", "guards", "policy_file", "orphans", "picture", "watched_tasks")


class HudiReportOperator(HudiTableOperator):
    """Write a self-contained HTML report of what a run did to a table, and how the table is; no engine is started.

    Takes paths, or the results of the tasks that wrote the files; what a skipped or failed task did not write is left
    out of the report. A second run on the same state replaces the page. Commits that complete meanwhile may show in
    the figures.

    Returns ``{"report_path", "picture_path", "summary"}``; a short HTML body for a mail is pushed under the key
    ``mail``.

    .. seealso:: ``docs/operators.md``

    :param title: Title of the report; None for one with the table's name. (templated)
    :param before_statistics: Statistics from before the run, to compare with. (templated)
    :param step_reports: Reports of the steps, in order. (templated)
    :param expiry_plan: The expiry plan, whether applied or not. (templated)
    :param clustering_plan: The clustering plan, whether executed or not. (templated)
    :param health: What HudiTableHealthOperator found; None checks the table's health now. (templated)
    :param policies: RFC-65 policies that the forecast goes by; None for those of the expiry plan, or without one
        those of the table. (templated)
    :param guards: Fields of ``ExpiryGuards``, for what is protected and the clock of the forecast. (templated)
    :param policy_file: Path of a policy file, instead of ``policies``. (templated)
    :param orphans: Whether to list every partition for orphan files. (templated)
    :param picture: Whether to write the main charts as a PNG beside the page, for mails. (templated)
    :param watched_tasks: Ids of tasks of the DAG; the report names those of them that failed in this run, which left no
        report of their own, and counts those that did not run for that reason. (templated)
    """

    template_fields: Sequence[str] = (*HudiTableOperator.template_fields, *_DOCUMENT_FIELDS, *_SETTING_FIELDS)
    wide_fields = ("base_path",)  # policies are for the forecast alone, and a failed run wants its report
    operator_extra_links = (HudiReportLink(),)

    def __init__(
        self,
        *,
        title: str | None = None,
        before_statistics: Any = None,
        step_reports: Any = (),
        expiry_plan: Any = None,
        clustering_plan: Any = None,
        health: Any = None,
        policies: Sequence[Mapping[str, object]] | str | None = None,
        guards: Mapping[str, object] | str | None = None,
        policy_file: str | None = None,
        orphans: bool | str = False,
        picture: bool | str = True,
        watched_tasks: Sequence[str] | str = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.title = title
        self.before_statistics = before_statistics
        self.step_reports = step_reports
        self.expiry_plan = expiry_plan
        self.clustering_plan = clustering_plan
        self.health = health
        self.policies = policies
        self.guards = guards
        self.policy_file = policy_file
        self.orphans = orphans
        self.picture = picture
        self.watched_tasks = watched_tasks
        self.report_path: str | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        """Write the report."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Report") as hook:
            workspace = hook.workspace(log=self.say)
            rules = self._rules(workspace)
            policies, guards = rules or (None, None)
            states = self._states(context)
            written = maintenance.write_report(
                workspace,
                now=self.now(),
                title=as_optional_text("title", self.title),
                before_statistics_path=_path("before_statistics", self.before_statistics, field="statistics_path"),
                report_paths=_report_paths(self.step_reports),
                expiry_plan_path=_path("expiry_plan", self.expiry_plan, field="plan_path"),
                clustering_plan_path=_path("clustering_plan", self.clustering_plan, field="plan_path"),
                health_path=_path("health", self.health, field="health_path"),
                policies=policies,
                guards=guards,
                forecast=rules is not None,
                orphans=as_bool("orphans", self.orphans),
                picture=as_bool("picture", self.picture),
                failed_steps=[name for name, state in states if state == TaskInstanceState.FAILED],
                unrun_steps=[name for name, state in states if state == TaskInstanceState.UPSTREAM_FAILED],
            )
        self.report_path = written.path
        if self.do_xcom_push and "ti" in context:
            context["ti"].xcom_push(key="mail", value=written.mail)
        return self.hand_on(
            context,
            {"report_path": written.path, "picture_path": written.picture_path, "summary": written.summary},
        )

    def _states(self, context: Context) -> list[tuple[str, str | None]]:
        """The watched tasks in this run, by their names without groups, and the state of each."""
        watched = as_texts("watched_tasks", self.watched_tasks)
        if not watched:
            return []
        ti = context["ti"]
        index = -1 if ti.map_index is None else ti.map_index
        found = ti.get_task_states(dag_id=ti.dag_id, task_ids=list(watched), run_ids=[ti.run_id], map_index=index)
        # Airflow names an instance of a mapped task by its id and its index.
        suffix = f"_{index}" if index >= 0 else ""
        states = found.get(ti.run_id, {})
        return [(name.rpartition(".")[2], states.get(f"{name}{suffix}")) for name in watched]

    def _rules(self, workspace: Workspace) -> tuple[PolicySet | None, ExpiryGuards | None] | None:
        """Read what the forecast goes by; None where that is broken, since a failed run wants its report."""
        try:
            return expiry_rules(workspace, policies=self.policies, guards=self.guards, policy_file=self.policy_file)
        except (InvalidPolicyError, InvalidSettingError) as error:
            self.log.warning("No forecast in the report: %s", error)
            return None


def _path(name: str, value: object, *, field: str) -> str | None:
    return as_optional_text(name, as_result_field(name, value, field=field))


def _report_paths(value: object) -> tuple[str, ...]:
    if is_unset(value) or isinstance(value, str):
        return as_texts("step_reports", value)
    if not isinstance(value, list | tuple):
        raise InvalidSettingError(f"step_reports={value!r} is no list of paths or results")
    paths = (_path("step_reports", one, field="report_path") for one in value)
    return tuple(path for path in paths if path is not None)
