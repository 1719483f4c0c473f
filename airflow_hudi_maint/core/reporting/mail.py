"""A report in short, as HTML that mail programs show: no stylesheet, no picture, nothing to load."""

from __future__ import annotations

from airflow_hudi_maint.core.model.health import Severity
from airflow_hudi_maint.core.reporting.cards import figures
from airflow_hudi_maint.core.reporting.facts import ReportFacts
from airflow_hudi_maint.core.reporting.forecast_chart import forecast_sentence
from airflow_hudi_maint.core.reporting.insight_tables import health_sentence
from airflow_hudi_maint.core.reporting.narrative import headline, state_of_table
from airflow_hudi_maint.core.reporting.page import render_template

_TEMPLATE = "mail.html.j2"
_MOST_FINDINGS = 6
_MOST_STEPS = 10
_MOST_LETTERS = 300


def render_mail(facts: ReportFacts, *, report_path: str) -> str:
    """Write the body of a mail: what was done, the figures, the steps, and what is not in order.

    It is of bounded length (a few thousand characters) whatever the table is like; ``report_path`` says where the rest
    stands.
    """
    health, forecast = facts.insight.health, facts.insight.forecast
    bad = [one for one in health.worst_first if one.severity in (Severity.WARNING, Severity.CRITICAL)] if health else []
    return render_template(
        _TEMPLATE,
        {
            "title": _cut(facts.title),
            "headline": headline(facts),
            "state": state_of_table(facts),
            "figures": figures(before=facts.before, after=facts.after),
            "has_before": facts.before is not None,
            "steps": [
                (
                    one.step.replace("-", " "),
                    one.outcome.replace("-", " "),
                    _cut(one.message),
                    list(map(_cut, one.warnings[:3])),
                )
                for one in facts.reports[:_MOST_STEPS]
            ],
            "forecast": forecast_sentence(forecast) if forecast else "",
            "health": health_sentence(health) if health else "",
            "findings": [(str(one.severity), _cut(f"{one.found} {one.advice}")) for one in bad[:_MOST_FINDINGS]],
            "more_findings": max(len(bad) - _MOST_FINDINGS, 0),
            "report_path": report_path,
        },
    )


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}…"
