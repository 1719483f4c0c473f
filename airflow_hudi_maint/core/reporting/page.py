"""The HTML page that shows a run: one file that loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from airflow_hudi_maint.core.model.plan import ClusteringPlan, ExpiryPlan
from airflow_hudi_maint.core.model.report import Step, StepReport
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.model.units import human_bytes, human_instant
from airflow_hudi_maint.core.reporting import insight_tables, tables
from airflow_hudi_maint.core.reporting.cards import figures
from airflow_hudi_maint.core.reporting.facts import REWRITES, ReportFacts
from airflow_hudi_maint.core.reporting.forecast_chart import forecast_chart, forecast_sentence
from airflow_hudi_maint.core.reporting.histogram import size_histogram
from airflow_hudi_maint.core.reporting.history_chart import history_chart
from airflow_hudi_maint.core.reporting.inks import DARK, LIGHT, declarations
from airflow_hudi_maint.core.reporting.insight import NO_INSIGHT, TableInsight
from airflow_hudi_maint.core.reporting.narrative import headline, state_of_table
from airflow_hudi_maint.core.reporting.partition_chart import partition_chart
from airflow_hudi_maint.core.reporting.svg import Chart

_TEMPLATE = "report.html.j2"


def render_report(  # noqa: PLR0913 each is a part of the page
    *,
    before: TableStatistics | None,
    after: TableStatistics,
    reports: Sequence[StepReport],
    expiry_plan: ExpiryPlan | None,
    clustering_plan: ClusteringPlan | None,
    title: str,
    now: datetime,
    zone: tzinfo,
    insight: TableInsight = NO_INSIGHT,
) -> str:
    """Render the page; the same arguments give the same text.

    ``zone`` is the zone of the table's timeline, and every time on the page is shown in it. Tables are cut at
    :data:`tables.MAX_ROWS` rows and the chart of partitions at 40 bars; the page says what it leaves out.
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
        insight=insight,
    )
    return render_facts(facts)


def render_facts(facts: ReportFacts) -> str:
    """Render the page from what it shows."""
    return render_template(_TEMPLATE, _context(facts))


def render_template(name: str, context: Mapping[str, object]) -> str:
    """Fill one of this package's templates; what comes from values is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("airflow_hudi_maint.core.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(context)


def _context(facts: ReportFacts) -> dict[str, object]:
    return {
        "title": facts.title,
        "after": facts.after,
        "inks": {"light": declarations(LIGHT), "dark": declarations(DARK)},
        "headline": headline(facts),
        "state": state_of_table(facts),
        "figures": figures(before=facts.before, after=facts.after),
        "has_before": facts.before is not None,
        "made_at": f"{facts.now.astimezone(facts.zone):%Y-%m-%d %H:%M:%S} {facts.now.astimezone(facts.zone).tzname()}",
        "as_of": _moments(facts),
        "small_file_bytes": human_bytes(facts.after.small_file_bytes),
        "steps": tables.step_rows(facts),
        **_files(facts),
        **_partitions(facts),
        **_insight(facts),
        **_plans(facts),
        "documents": tables.documents(facts),
    }


def _files(facts: ReportFacts) -> dict[str, object]:
    return {
        "histogram": _drawn(size_histogram(before=facts.before, after=facts.after)),
        "quantiles": insight_tables.quantile_table(before=facts.before, after=facts.after),
        "small_files": insight_tables.small_file_table(facts.after),
        "small_files_sentence": insight_tables.small_file_sentence(facts.after),
    }


def _insight(facts: ReportFacts) -> dict[str, object]:
    insight, now, zone = facts.insight, facts.now, facts.zone
    forecast, health, history = insight.forecast, insight.health, insight.history
    found, fine = insight_tables.health_rows(health) if health else ((), ())
    return {
        "forecast": forecast,
        "forecast_chart": _drawn(forecast_chart(forecast)) if forecast else None,
        "forecast_sentence": forecast_sentence(forecast) if forecast else "",
        "horizons": insight_tables.horizon_rows(forecast) if forecast else (),
        "soonest": insight_tables.soonest_table(forecast, zone=zone) if forecast else None,
        "health": health,
        "health_sentence": insight_tables.health_sentence(health) if health else "",
        "health_found": found,
        "health_fine": fine,
        "history_chart": _drawn(history_chart(history, now=now, zone=zone)),
        "history": insight_tables.history_table(history, zone=zone, now=now),
        "pending": insight_tables.pending_table(insight, now=now),
        "beside": insight_tables.beside_data(insight),
        "problems": insight.problems,
    }


def _drawn(chart: Chart | None) -> dict[str, str] | None:
    return None if chart is None else {"svg": chart.svg(), "sentence": chart.sentence}


def _moments(facts: ReportFacts) -> list[tuple[str, str, str]]:
    found = [("before", facts.before), ("after", facts.after)]
    return [(name, one.as_of_instant, human_instant(one.as_of_instant, zone=facts.zone)) for name, one in found if one]


def _partitions(facts: ReportFacts) -> dict[str, object]:
    return {
        "chart": _drawn(partition_chart(facts.partitions)),
        "fates": tables.fate_counts(facts.partitions),
        "skew": insight_tables.skew_sentence(facts.after),
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
