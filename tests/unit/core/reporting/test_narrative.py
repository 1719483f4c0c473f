"""The headline of a report, which is all that many people read of it."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.model.plan import Decision
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.reporting.facts import ReportFacts
from airflow_hudi_maint.core.reporting.mail import render_mail
from airflow_hudi_maint.core.reporting.narrative import headline
from airflow_hudi_maint.core.reporting.text import render_text_summary

sys.path.insert(0, str(Path(__file__).parent))
import flights

IDLE = replace(flights.expire_report(), outcome=Outcome.NOTHING_TO_DO, instants=(), partitions=())


def facts(**more: Any) -> ReportFacts:
    given: dict[str, Any] = {
        "before": None,
        "after": flights.AFTER,
        "reports": (),
        "expiry_plan": None,
        "clustering_plan": None,
        "title": "Flights",
        "now": datetime(2026, 11, 30, 8, tzinfo=UTC),
        "zone": UTC,
    }
    return ReportFacts(**{**given, **more})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"failed_steps": ("expire_partitions",), "unrun_steps": ("schedule_clustering", "execute_clustering")},
            (
                "Failed: expire_partitions; 2 steps after it did not run. "
                "No other step changed the table: there is no plan."
            ),
        ),
        (
            {"failed_steps": ("execute_clustering",), "reports": (IDLE,), "clustering_plan": flights.CLUSTERING_PLAN},
            (
                "Failed: execute_clustering. No other step changed the table: 108 files in 27 partitions would be "
                "rewritten as about 27."
            ),
        ),
        (
            {"failed_steps": ("execute_clustering",), "reports": flights.REPORTS[:1]},
            "Failed: execute_clustering. 9 partitions with 19 MiB were expired.",
        ),
    ],
)
def test_what_failed_comes_first(more: dict[str, Any], said: str) -> None:
    """A failed step leaves no report: the page said that nothing had to be done."""
    shown = facts(**more)
    assert headline(shown) == said
    assert said.partition(".")[0] in render_mail(shown, report_path="/r.html")


def test_the_summary_names_what_failed_too() -> None:
    lines = render_text_summary(
        before=None, after=flights.AFTER, reports=(), failed=("expire_partitions",), unrun=("execute_clustering",)
    ).splitlines()
    assert lines[1] == "Failed: expire_partitions; 1 step after it did not run."


def test_partitions_that_wait_for_a_pending_plan_are_no_nothing() -> None:
    """The page said that none needed rewriting."""
    first, second, *rest = flights.CLUSTERING_PLAN.entries
    entries = [replace(one, decision=Decision.BLOCKED, blocked_by="20261130060000000") for one in (first, second)]
    kept = [replace(one, decision=Decision.KEEP) for one in rest]
    plan = replace(flights.CLUSTERING_PLAN, entries=(*entries, *kept))
    said = headline(facts(reports=(IDLE,), clustering_plan=plan))
    assert said == "Nothing was changed: 2 partitions wait for a pending plan, and no other had to be."
