"""Write the report of a maintenance run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_optional_text, as_result_field, as_texts, is_unset
from airflow_hudi_maint.links.report import HudiReportLink
from airflow_hudi_maint.operators.base import HudiTableOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context


class HudiReportOperator(HudiTableOperator):
    """Write a self-contained HTML report of what a run did to a table; no engine is started.

    Takes paths, or the results of the tasks that wrote the files; what a skipped or failed task did not write is left
    out of the report. A second run on the same state replaces the page. Commits that complete meanwhile may show in
    the figures.

    Returns ``{"report_path", "summary"}``.

    .. seealso:: ``docs/operators.md``

    :param title: Title of the report; None for one with the table's name. (templated)
    :param before_statistics: Statistics from before the run, to compare with. (templated)
    :param step_reports: Reports of the steps, in order. (templated)
    :param expiry_plan: The expiry plan, whether applied or not. (templated)
    :param clustering_plan: The clustering plan, whether executed or not. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiTableOperator.template_fields,
        "title",
        "before_statistics",
        "step_reports",
        "expiry_plan",
        "clustering_plan",
    )
    operator_extra_links = (HudiReportLink(),)

    def __init__(
        self,
        *,
        title: str | None = None,
        before_statistics: Any = None,
        step_reports: Any = (),
        expiry_plan: Any = None,
        clustering_plan: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.title = title
        self.before_statistics = before_statistics
        self.step_reports = step_reports
        self.expiry_plan = expiry_plan
        self.clustering_plan = clustering_plan
        self.report_path: str | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        """Write the report."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Report") as hook:
            written = maintenance.write_report(
                hook.workspace(log=self.say),
                now=self.now(),
                title=as_optional_text("title", self.title),
                before_statistics_path=_path("before_statistics", self.before_statistics, field="statistics_path"),
                report_paths=_report_paths(self.step_reports),
                expiry_plan_path=_path("expiry_plan", self.expiry_plan, field="plan_path"),
                clustering_plan_path=_path("clustering_plan", self.clustering_plan, field="plan_path"),
            )
        self.report_path = written.path
        return self.hand_on(context, {"report_path": written.path, "summary": written.summary})


def _path(name: str, value: object, *, field: str) -> str | None:
    return as_optional_text(name, as_result_field(name, value, field=field))


def _report_paths(value: object) -> tuple[str, ...]:
    if is_unset(value) or isinstance(value, str):
        return as_texts("step_reports", value)
    if not isinstance(value, list | tuple):
        raise InvalidSettingError(f"step_reports={value!r} is no list of paths or results")
    paths = (_path("step_reports", one, field="report_path") for one in value)
    return tuple(path for path in paths if path is not None)
