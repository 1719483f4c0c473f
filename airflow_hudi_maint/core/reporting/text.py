"""The summary of a run as plain text, for a task's log."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_hudi_maint.core.model.report import StepReport
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.model.units import human_seconds
from airflow_hudi_maint.core.reporting.cards import figures
from airflow_hudi_maint.core.reporting.narrative import failure_sentence


def render_text_summary(
    *,
    before: TableStatistics | None,
    after: TableStatistics,
    reports: Sequence[StepReport],
    failed: Sequence[str] = (),
    unrun: Sequence[str] = (),
) -> str:
    """Write a compact table of the figures before and after, and a line per step; ends without a line break.

    ``failed`` names the steps that failed, and ``unrun`` those that did not run for that reason: neither has a report.
    """
    title = f"{after.table_name} ({after.table_type}, table version {after.table_version})"
    failure = failure_sentence(failed=failed, unrun=unrun)
    lines = [title, *([failure] if failure else []), *_figures(before=before, after=after)]
    if reports:
        lines += ["", *_steps(reports)]
    return "\n".join(lines)


def _figures(*, before: TableStatistics | None, after: TableStatistics) -> list[str]:
    rows = [("", "before", "after", "change")]
    rows += [(one.label, one.before_text, one.after_text, one.change) for one in figures(before=before, after=after)]
    rows.append(("as of", before.as_of_instant if before else "–", after.as_of_instant, ""))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [
        f"  {name:<{widths[0]}}  {old:>{widths[1]}}  {new:>{widths[2]}}  {change:>{widths[3]}}".rstrip()
        for name, old, new, change in rows
    ]


def _steps(reports: Sequence[StepReport]) -> list[str]:
    names = max(len(one.step) for one in reports)
    outcomes = max(len(one.outcome) for one in reports)
    lines = []
    for one in reports:
        seconds = f" ({human_seconds(one.engine_seconds)})" if one.engine_seconds else ""
        instants = f" [{', '.join(one.instants)}]" if one.instants else ""
        lines.append(f"  {one.step:<{names}}  {one.outcome:<{outcomes}}  {one.message}{instants}{seconds}")
        lines += [f"    warning: {text}" for text in one.warnings]
    return lines
