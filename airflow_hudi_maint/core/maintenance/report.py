"""Write the report of a run for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from airflow_hudi_maint.core.errors import DocumentNotFoundError
from airflow_hudi_maint.core.maintenance.statistics import gather_statistics
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ExpiryPlan
from airflow_hudi_maint.core.model.report import StepReport
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.reporting.page import render_report
from airflow_hudi_maint.core.reporting.text import render_text_summary

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace

_Document_co = TypeVar("_Document_co", covariant=True)


@dataclass(frozen=True, kw_only=True)
class WrittenReport:
    """Where the page lies, and the same in a few lines of text."""

    path: str
    summary: str


def write_report(
    workspace: Workspace,
    *,
    now: datetime,
    title: str | None = None,
    before_statistics_path: str | None = None,
    report_paths: Sequence[str] = (),
    expiry_plan_path: str | None = None,
    clustering_plan_path: str | None = None,
) -> WrittenReport:
    """Write one self-contained HTML page about a run: before and after, what each step did, plans with their reasons.

    The state after is read from the table now; the rest comes from the documents that the steps wrote. A second run
    on the same state replaces the page.
    """
    documents = workspace.documents
    after = gather_statistics(workspace, now=now).statistics
    before = _read(workspace, before_statistics_path, TableStatistics.from_json)
    reports = [_read(workspace, path, StepReport.from_json) for path in report_paths]
    page = render_report(
        before=before,
        after=after,
        reports=(known := tuple(one for one in reports if one is not None)),
        expiry_plan=_read(workspace, expiry_plan_path, ExpiryPlan.from_json),
        clustering_plan=_read(workspace, clustering_plan_path, ClusteringPlan.from_json),
        title=title or f"Maintenance of {after.table_name}",
        now=now,
        zone=workspace.table.zone,
    )
    path = documents.write_page("reports", name=f"{after.as_of_instant}.html", text=page)
    return WrittenReport(path=path, summary=render_text_summary(before=before, after=after, reports=known))


class _FromJson(Protocol[_Document_co]):
    def __call__(self, value: object, *, name: str) -> _Document_co: ...


def _read(workspace: Workspace, path: str | None, from_json: _FromJson[_Document_co]) -> _Document_co | None:
    """Read a document; one that is gone is left out of the page, with a line in the log."""
    if not path:
        return None
    try:
        return from_json(workspace.documents.read(path), name=path)
    except DocumentNotFoundError as error:
        workspace.log(f"Warning: left out of the report: {error}")
        return None
