"""Write the report of a run for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from airflow_hudi_maint.core.errors import CorruptTableError, DocumentNotFoundError
from airflow_hudi_maint.core.maintenance.report_insight import InsightReader
from airflow_hudi_maint.core.maintenance.statistics import gather_statistics
from airflow_hudi_maint.core.model.health import TableHealth
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ExpiryPlan
from airflow_hudi_maint.core.model.report import StepReport
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.planning.expiry import ExpiryClock, ExpiryGuards
from airflow_hudi_maint.core.reporting.facts import ReportFacts
from airflow_hudi_maint.core.reporting.mail import render_mail
from airflow_hudi_maint.core.reporting.page import render_facts
from airflow_hudi_maint.core.reporting.picture import render_picture
from airflow_hudi_maint.core.reporting.text import render_text_summary

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.policy import PolicySet

_Document_co = TypeVar("_Document_co", covariant=True)


@dataclass(frozen=True, kw_only=True)
class WrittenReport:
    """Where the page lies, the same in a few lines of text, and the page itself as HTML.

    ``picture_path`` is where its main charts lie as a PNG; None without one. ``mail`` is a short body for a mail, HTML
    of a few thousand characters.
    """

    path: str
    summary: str
    page: str = field(repr=False)
    picture_path: str | None = None
    mail: str = field(default="", repr=False)


def write_report(  # noqa: PLR0913 each is a part of the page
    workspace: Workspace,
    *,
    now: datetime,
    title: str | None = None,
    before_statistics_path: str | None = None,
    report_paths: Sequence[str] = (),
    expiry_plan_path: str | None = None,
    clustering_plan_path: str | None = None,
    health_path: str | None = None,
    policies: PolicySet | None = None,
    guards: ExpiryGuards | None = None,
    forecast: bool = True,
    orphans: bool = False,
    picture: bool = True,
    failed_steps: Sequence[str] = (),
    unrun_steps: Sequence[str] = (),
) -> WrittenReport:
    """Write one self-contained HTML page about a run: before and after, what each step did, plans with their reasons.

    The state after is read from the table now; the rest comes from the documents that the steps wrote. The page also
    shows what will expire and when, the last instants, and the table's health: of ``health_path``, or checked now. The
    forecast is by ``policies`` and ``guards``; None takes the policies of the expiry plan, or without one those of the
    table. ``orphans`` lists every partition for files that nothing refers to. ``picture`` writes the main charts as
    ``<instant>.png`` beside the page.

    ``failed_steps`` are names of steps that failed, and ``unrun_steps`` of those that did not run for that reason; they
    have no report, and the headline names them. A part of the table that is broken is left out of the page, which says
    so. A second run on the same state replaces
    the page.
    """
    documents = workspace.documents
    after = gather_statistics(workspace, now=now).statistics
    reports = [_read(workspace, path, StepReport.from_json) for path in report_paths]
    expiry_plan = _read(workspace, expiry_plan_path, ExpiryPlan.from_json)
    insight = InsightReader(workspace, statistics=after, now=now).read(
        policies=expiry_plan.policies if policies is None and expiry_plan else policies,
        guards=guards or _guards_of(expiry_plan),
        health=_read(workspace, health_path, TableHealth.from_json),
        forecast=forecast,
        orphans=orphans,
    )
    facts = ReportFacts(
        before=_read(workspace, before_statistics_path, TableStatistics.from_json),
        after=after,
        reports=tuple(one for one in reports if one is not None),
        expiry_plan=expiry_plan,
        clustering_plan=_read(workspace, clustering_plan_path, ClusteringPlan.from_json),
        title=title or f"Maintenance of {after.table_name}",
        now=now,
        zone=workspace.table.zone,
        insight=insight,
        failed_steps=failed_steps,
        unrun_steps=unrun_steps,
    )
    page = render_facts(facts)
    path = documents.write_page("reports", name=f"{after.as_of_instant}.html", text=page)
    picture_path = None
    if picture and not documents.is_read_only:
        picture_path = documents.write_picture("reports", name=f"{after.as_of_instant}.png", data=render_picture(facts))
    return WrittenReport(
        path=path,
        summary=render_text_summary(
            before=facts.before, after=after, reports=facts.reports, failed=failed_steps, unrun=unrun_steps
        ),
        page=page,
        picture_path=picture_path,
        mail=render_mail(facts, report_path=path),
    )


def _guards_of(plan: ExpiryPlan | None) -> ExpiryGuards:
    """The clock of a plan. What protects partitions it does not say, but for each partition that it kept."""
    clocks = [clock for clock in ExpiryClock if plan is not None and clock == plan.clock]
    return ExpiryGuards(clock=clocks[0]) if clocks else ExpiryGuards()


class _FromJson(Protocol[_Document_co]):
    def __call__(self, value: object, *, name: str) -> _Document_co: ...


def _read(workspace: Workspace, path: str | None, from_json: _FromJson[_Document_co]) -> _Document_co | None:
    """Read a document; one that is gone or broken is left out of the page, with a line in the log."""
    if not path:
        return None
    try:
        return from_json(workspace.documents.read(path), name=path)
    except (DocumentNotFoundError, CorruptTableError) as error:
        workspace.log(f"Warning: left out of the report: {error}")
        return None
