"""Judge the health of a table: facts and thresholds to signals, without I/O."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from airflow_hudi_maint.core.model.health import HealthSignal, Severity, TableHealth, Unit
from airflow_hudi_maint.core.model.health_facts import HealthFacts
from airflow_hudi_maint.core.model.units import counted
from airflow_hudi_maint.core.planning.health_files import file_signals
from airflow_hudi_maint.core.planning.health_pending import pending_signals
from airflow_hudi_maint.core.planning.health_signals import judged, some_details
from airflow_hudi_maint.core.planning.health_thresholds import HealthThresholds, Limits
from airflow_hudi_maint.core.planning.health_timeline import timeline_signals
from airflow_hudi_maint.core.planning.setting_conflicts import setting_conflicts
from airflow_hudi_maint.core.planning.writer_settings import WriterSettings


def judge_health(facts: HealthFacts, *, now: datetime, thresholds: HealthThresholds | None = None) -> TableHealth:
    """Judge a table at the moment ``now``; every signal that applies to the table is in the answer, ok or not.

    Which signals there are depends on the table's type, partitioning and metadata table only, so that a series of
    metrics has no holes. A value that reaches a limit has passed it.
    """
    chosen = thresholds or HealthThresholds()
    settings = WriterSettings(
        given={**facts.config.properties, **facts.write_options}, table_version=facts.config.table_version
    )
    return TableHealth(
        base_path=facts.base_path,
        table_name=facts.config.name,
        table_version=facts.config.table_version,
        table_type=str(facts.config.table_type),
        as_of_instant=facts.timeline.last_completed_time,
        statistics_instant=facts.statistics.as_of_instant if facts.statistics else None,
        checked_at=now.astimezone(UTC).isoformat(timespec="milliseconds"),
        signals=(
            *pending_signals(facts, now=now, thresholds=chosen),
            *timeline_signals(facts, settings=settings, now=now, thresholds=chosen),
            *file_signals(facts, now=now, thresholds=chosen),
            *_table_signals(facts, thresholds=chosen),
        ),
    )


def _table_signals(facts: HealthFacts, *, thresholds: HealthThresholds) -> Iterator[HealthSignal]:
    yield _metadata_partitions_inflight(facts, thresholds=thresholds)
    yield _bundle_mismatch(facts)
    yield _contradicting_settings(facts)


def _metadata_partitions_inflight(facts: HealthFacts, *, thresholds: HealthThresholds) -> HealthSignal:
    names = facts.config.inflight_metadata_partitions
    return judged(
        "metadata_partitions_inflight",
        value=len(names),
        unit=Unit.COUNT,
        limits=thresholds.metadata_partitions_inflight,
        found=f"{counted(len(names), 'partition')} of the metadata table being built: {', '.join(names)}"
        if names
        else "no partition of the metadata table is being built",
        advice="wait while an indexer runs; if it died, run Hudi's indexer again or drop the index with Hudi: jobs on "
        "the table are refused until then",
        details=names,
    )


def _bundle_mismatch(facts: HealthFacts) -> HealthSignal:
    """Whether the bundle of the connection may write the table; no threshold can make that right."""
    problem, version = facts.bundle_problem, facts.config.table_version
    return judged(
        "bundle_mismatch",
        value=0 if problem is None else 1,
        unit=Unit.COUNT,
        limits=Limits(critical=1),
        found=problem or f"the bundle {facts.bundle} writes tables of version {version} as they are",
        advice=f"set the connection's bundle to a release of Hudi that writes table version {version} as it is",
    )


def _contradicting_settings(facts: HealthFacts) -> HealthSignal:
    """The contradictions, as bad as the worst of them is."""
    conflicts = setting_conflicts(facts.config, write_options=facts.write_options)
    worst = conflicts[0].severity if conflicts else Severity.OK
    others = f"; and {counted(len(conflicts) - 1, 'other contradiction')}" if len(conflicts) > 1 else ""
    limits = Limits(critical=1) if worst is Severity.CRITICAL else Limits(warning=1)
    return judged(
        "contradicting_settings",
        value=len(conflicts),
        unit=Unit.COUNT,
        limits=limits,
        found=f"{conflicts[0].found}{others}"
        if conflicts
        else "no contradiction in hoodie.properties and the connection's write options",
        advice=conflicts[0].advice if conflicts else "",
        details=some_details(tuple(f"{one.found}. {one.advice}" for one in conflicts)),
    )
