"""The HTML page that shows a run: one file that loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from airflow_hudi_maint.core.model.plan import ClusteringPlan, ExpiryPlan
from airflow_hudi_maint.core.model.report import Step, StepReport
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.model.units import human_bytes, human_count, human_instant
from airflow_hudi_maint.core.reporting import tables
from airflow_hudi_maint.core.reporting.cards import figures
from airflow_hudi_maint.core.reporting.facts import REWRITES, ReportFacts
from airflow_hudi_maint.core.reporting.histogram import size_histogram
from airflow_hudi_maint.core.reporting.narrative import headline, state_of_table
from airflow_hudi_maint.core.reporting.partition_chart import MAX_BARS, partition_chart

_TEMPLATE = "report.html.j2"


def render_report(
    *,
    before: TableStatistics | None,
    after: TableStatistics,
    reports: Sequence[StepReport],
    expiry_plan: ExpiryPlan | None,
    clustering_plan: ClusteringPlan | None,
    title: str,
    now: datetime,
    zone: tzinfo,
) -> str:
    """Render the page; the same arguments give the same text.

    ``zone`` is the zone of the table's timeline, and every time on the page is shown in it. Tables are cut at
    :data:`tables.MAX_ROWS` rows and the partition chart at :data:`MAX_BARS` bars; the page says what it leaves out.
    """
    facts = ReportFacts(
        before=before,
        after=after,
        reports=reports,
        expiry_plan=expiry_plan,
        clustering_plan=clustering_plan,
        title=title,
        now=now,
        zone=zone,
    )
    return _render(_context(facts))


def _render(context: Mapping[str, object]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("airflow_hudi_maint.core.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(_TEMPLATE).render(context)


def _context(facts: ReportFacts) -> dict[str, object]:
    return {
        "title": facts.title,
        "after": facts.after,
        "headline": headline(facts),
        "state": state_of_table(facts),
        "figures": figures(before=facts.before, after=facts.after),
        "has_before": facts.before is not None,
        "made_at": f"{facts.now.astimezone(facts.zone):%Y-%m-%d %H:%M:%S} {facts.now.astimezone(facts.zone).tzname()}",
        "as_of": _moments(facts),
        "small_file_bytes": human_bytes(facts.after.small_file_bytes),
        "steps": tables.step_rows(facts),
        "histogram": size_histogram(before=facts.before, after=facts.after),
        **_partitions(facts),
        **_plans(facts),
        "documents": tables.documents(facts),
    }


def _moments(facts: ReportFacts) -> list[tuple[str, str, str]]:
    found = [("before", facts.before), ("after", facts.after)]
    return [(name, one.as_of_instant, human_instant(one.as_of_instant, zone=facts.zone)) for name, one in found if one]


def _partitions(facts: ReportFacts) -> dict[str, object]:
    left_out = max(len(facts.partitions) - MAX_BARS, 0)
    return {
        "chart": partition_chart(facts.partitions),
        "chart_left_out": human_count(left_out) if left_out else "",
        "chart_bars": MAX_BARS,
        "fates": tables.fate_counts(facts.partitions),
        "partition_table": tables.partition_table(facts),
    }


def _plans(facts: ReportFacts) -> dict[str, object]:
    return {
        "expiry_plan": facts.expiry_plan,
        "expiry_table": tables.expiry_table(facts),
        "expiry_path": facts.plan_path(Step.EXPIRE),
        "policies": facts.expiry_plan.policies.all() if facts.expiry_plan else (),
        "clustering_plan": facts.clustering_plan,
        "clustering_table": tables.clustering_table(facts),
        "clustering_path": facts.plan_path(Step.SCHEDULE_CLUSTERING, *REWRITES),
        "human_bytes": human_bytes,
    }
