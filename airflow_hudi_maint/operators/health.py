"""Check the health of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_bool, as_object, as_optional_text, as_result_field
from airflow_hudi_maint.hooks.errors import airflow_errors
from airflow_hudi_maint.hooks.metrics import emit_health
from airflow_hudi_maint.operators.base import HudiTableOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from airflow_hudi_maint.core.maintenance import CheckedHealth, Workspace
    from airflow_hudi_maint.core.model.health import Severity
    from airflow_hudi_maint.core.model.statistics import TableStatistics
    from airflow_hudi_maint.core.planning.health_thresholds import HealthThresholds

FAIL_ON = ("critical", "warning", "never")


class HudiTableHealthOperator(HudiTableOperator):
    """Judge a table by more than twenty signals, emit them as metrics, and fail on bad ones; no engine is started.

    Looks at the timeline, what lies beside it, and statistics; writes one document. Findings below ``fail_on`` are
    warnings in the log. A task that fails has written its document, emitted its metrics and handed on its result
    before, and takes no retry: trying again cures no table. A second run on an unchanged table finds the same.

    Returns ``{"health_path", "base_path", "table", "as_of_instant", "severity", "ok", "unknown", "warning", "critical",
    "findings", "values"}``: the worst severity, how many signals have each, the names of those that are not ok, and the
    value of every signal (null where it could not be told).

    .. seealso:: ``docs/health.md``

    :param fail_on: The severity from which on the task fails: ``critical``, ``warning`` or ``never``. A signal that is
        unknown never fails it. (templated)
    :param thresholds: Limits by signal, ``{"last_write_seconds": {"warning": 7200, "critical": null}}``; what is left
        out has its default. (templated)
    :param statistics: Statistics of an earlier task, its result or their path; None gathers them. (templated)
    :param orphans: Whether to list every partition for orphan files: they are the signal ``orphan_files``. (templated)
    :param emit_metrics: Whether the signals are emitted as Airflow metrics. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiTableOperator.template_fields,
        "fail_on",
        "thresholds",
        "statistics",
        "orphans",
        "emit_metrics",
    )

    def __init__(
        self,
        *,
        fail_on: str = "critical",
        thresholds: Any = None,
        statistics: Any = None,
        orphans: bool | str = False,
        emit_metrics: bool | str = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.fail_on = fail_on
        self.thresholds = thresholds
        self.statistics = statistics
        self.orphans = orphans
        self.emit_metrics = emit_metrics

    def execute(self, context: Context) -> dict[str, Any]:
        """Check the table's health."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Check health") as hook:
            fail_on, emits = _fail_on(self.fail_on), as_bool("emit_metrics", self.emit_metrics)
            thresholds = _thresholds(self.thresholds)
            workspace = hook.workspace(log=self.say)
            statistics = _statistics(workspace, self.statistics)
            checked = maintenance.check_health(
                workspace,
                now=self.now(),
                thresholds=thresholds,
                statistics=statistics,
                orphans=as_bool("orphans", self.orphans),
            )
        if emits:
            emit_health(checked.health, tags={"dag_id": str(context["ti"].dag_id), "task_id": self.task_id})
        return self._judge(context, checked=checked, fail_on=fail_on)

    def _judge(self, context: Context, *, checked: CheckedHealth, fail_on: Severity | None) -> dict[str, Any]:
        from airflow_hudi_maint.core import maintenance

        result = _result(checked)
        try:
            with airflow_errors():
                maintenance.refuse_unhealthy(checked.health, fail_on=fail_on)
        except Exception:
            # A failed task returns nothing, but the report and the alert after it want to know what it saw.
            if self.do_xcom_push and "ti" in context:
                context["ti"].xcom_push(key="return_value", value=result)
            raise
        return self.hand_on(context, result)


def _result(checked: CheckedHealth) -> dict[str, Any]:
    from airflow_hudi_maint.core.model.health import Severity

    health = checked.health
    return {
        "health_path": checked.path,
        "base_path": health.base_path,
        "table": health.table_name,
        "as_of_instant": health.as_of_instant,
        "severity": str(health.severity),
        **health.counts(),
        "findings": [one.name for one in health.worst_first if one.severity is not Severity.OK],
        "values": {one.name: one.value for one in health.signals},
    }


def _fail_on(value: object) -> Severity | None:
    from airflow_hudi_maint.core.model.health import Severity

    text = (as_optional_text("fail_on", value) or "critical").lower()
    if text not in FAIL_ON:
        raise InvalidSettingError(f"fail_on={value!r} is unknown; expected one of {', '.join(FAIL_ON)}")
    return None if text == "never" else Severity(text)


def _thresholds(value: object) -> HealthThresholds | None:
    from airflow_hudi_maint.core.planning.health_thresholds import HealthThresholds

    given = as_object("thresholds", value)
    return HealthThresholds.from_json(given) if given else None


def _statistics(workspace: Workspace, value: object) -> TableStatistics | None:
    from airflow_hudi_maint.core.model.statistics import TableStatistics

    path = as_optional_text("statistics", as_result_field("statistics", value, field="statistics_path"))
    return None if path is None else TableStatistics.from_json(workspace.documents.read(path), name=path)
