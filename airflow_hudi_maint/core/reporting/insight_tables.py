"""The rows of the page's tables about the table itself: forecast, small files, instants, health and skew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from airflow_hudi_maint.core.model.distribution import Quantiles, largest, quantile
from airflow_hudi_maint.core.model.health import HealthSignal, Severity, TableHealth, quantity
from airflow_hudi_maint.core.model.health_facts import FileTotals
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics
from airflow_hudi_maint.core.model.units import (
    counted,
    human_bytes,
    human_count,
    human_duration,
    human_instant,
    human_seconds,
)
from airflow_hudi_maint.core.planning.expiry_forecast import ExpiryForecast, ForecastEntry, Horizon
from airflow_hudi_maint.core.reporting.forecast_chart import HORIZON_INKS
from airflow_hudi_maint.core.reporting.history_chart import KIND_INKS
from airflow_hudi_maint.core.reporting.inks import Ink
from airflow_hudi_maint.core.reporting.insight import PastInstant, TableInsight
from airflow_hudi_maint.core.reporting.tables import Cell, Table

MAX_SOONEST = 100
"""So many of the partitions that go next are listed."""
MAX_SMALL = 12
"""So many of the partitions with most small files are listed."""

_MAKERS_SHOWN = 10
"""So many of the instants that left orphan files are listed."""

_SKEWS = ((0.2, "evenly"), (0.6, "unevenly"), (float("inf"), "very unevenly"))
"""How the bytes of partitions lie, by the Gini coefficient that it is said below."""
_PERCENTS = (("min", "smallest"), ("p10", "10 %"), ("p25", "25 %"), ("p50", "median"), ("p75", "75 %"))
_REST = (("p90", "90 %"), ("p99", "99 %"), ("max", "largest"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonRow:
    """One horizon of the forecast: its mark in the stylesheet, and how much goes in it."""

    name: str
    mark: str
    partitions: str
    bytes: str
    share: str


def horizon_rows(forecast: ExpiryForecast) -> tuple[HorizonRow, ...]:
    """The horizons that there are, the soonest first."""
    whole = sum(one.bytes for one in forecast.totals)
    return tuple(
        HorizonRow(
            name=str(one.horizon),
            mark=HORIZON_INKS[one.horizon].role,
            partitions=human_count(one.partitions),
            bytes=human_bytes(one.bytes),
            share=_percent(one.bytes / whole) if whole else "",
        )
        for one in forecast.totals
    )


def soonest_table(forecast: ExpiryForecast, *, zone: tzinfo) -> Table:
    """The partitions that go next."""
    going = sum(one.partitions for one in forecast.totals if one.horizon not in (Horizon.KEPT, Horizon.UNCOVERED))
    shown = forecast.soonest(MAX_SOONEST)
    rows = tuple(
        (
            _code(one.partition_path),
            Cell(text=str(one.horizon), kind="badge", mark=HORIZON_INKS[one.horizon].role),
            Cell(text=_due(one, zone=zone)),
            _bytes(one.total_bytes),
            Cell(text=one.policy or "–"),
            Cell(text=one.reason),
        )
        for one in shown
    )
    return Table(
        columns=("partition", "when", "due", "bytes", "policy", "why now or not yet"),
        rows=rows,
        more=going - len(shown),
    )


def _due(one: ForecastEntry, *, zone: tzinfo) -> str:
    if one.due is None:
        return "–"
    try:
        return f"{one.due.astimezone(zone):%Y-%m-%d %H:%M}"
    except OverflowError:
        return "–"


def small_file_table(after: TableStatistics) -> Table | None:
    """The partitions with most small files; None where there are none."""
    limit = after.small_file_bytes
    counts = [(row.small_file_count(limit), row) for row in after.partitions]
    found = sorted(
        ((count, row) for count, row in counts if count),
        key=lambda pair: (-pair[0], -pair[1].total_bytes, pair[1].partition_path),
    )
    if not found:
        return None
    whole = sum(count for count, _ in found)
    rows = tuple(_small_row(row, count=count, whole=whole) for count, row in found[:MAX_SMALL])
    columns = ("partition", "small files", "of all small files", "data files", "bytes in them", "median file")
    return Table(columns=columns, rows=rows, more=max(len(found) - MAX_SMALL, 0))


def _small_row(row: PartitionStatistics, *, count: int, whole: int) -> tuple[Cell, ...]:
    return (
        _code(row.partition_path),
        Cell(text=human_count(count), kind="number"),
        Cell(text=_percent(count / whole), kind="share", exact=f"{100 * count / whole:.1f}"),
        Cell(text=human_count(row.data_file_count), kind="number"),
        _bytes(sum(row.base_file_bytes[:count])),
        _bytes(quantile(row.base_file_bytes, 0.5)),
    )


def small_file_sentence(after: TableStatistics) -> str:
    """Say where the small files lie."""
    limit = after.small_file_bytes
    counts = sorted((row.small_file_count(limit) for row in after.partitions), reverse=True)
    whole, holding = sum(counts), sum(1 for count in counts if count)
    if not whole:
        return f"No data file is below {human_bytes(limit)}."
    top = sum(counts[:MAX_SMALL]) / whole
    text = f"{counted(whole, 'small file')} lie in {counted(holding, 'partition')}"
    return (
        f"{text}; the {MAX_SMALL} partitions with most of them hold {_percent(top)}."
        if holding > MAX_SMALL
        else f"{text}."
    )


def history_table(history: Sequence[PastInstant], *, zone: tzinfo, now: datetime) -> Table:
    """The instants, the newest first."""
    return Table(
        columns=("instant", "requested", "kind", "operation", "state", "partitions", "took"),
        rows=tuple(
            (
                _code(one.instant.requested_time),
                Cell(text=human_instant(one.instant.requested_time, zone=zone)),
                Cell(text=one.kind, kind="badge", mark=KIND_INKS.get(one.kind, Ink.KEPT).role),
                Cell(text=(one.operation or "–").lower().replace("_", " ")),
                Cell(text=one.instant.state.name.lower()),
                Cell(text=human_count(one.partitions), kind="number"),
                Cell(text=_took(one, now=now), kind="number"),
            )
            for one in reversed(history)
        ),
        more=0,
    )


def _took(one: PastInstant, *, now: datetime) -> str:
    if one.is_pending:
        age = one.age(now=now)
        return "–" if age is None else f"pending {human_duration(age.total_seconds())}"
    return "–" if one.duration is None else human_seconds(one.duration.total_seconds())


def pending_table(insight: TableInsight, *, now: datetime) -> Table | None:
    """What is pending, the oldest first; None where nothing is."""
    if not insight.pending:
        return None
    rows = []
    for one in insight.pending:
        age = one.age(now=now)
        rows.append(
            (
                _code(one.instant.requested_time),
                Cell(text=one.kind, kind="badge", mark=f"{KIND_INKS.get(one.kind, Ink.KEPT).role} planned"),
                Cell(text=one.instant.state.name.lower()),
                Cell(text="–" if age is None else human_duration(age.total_seconds()), kind="number"),
                Cell(text=human_count(one.partitions), kind="number"),
                Cell(text=human_count(one.file_groups), kind="number"),
            )
        )
    columns = ("instant", "kind", "state", "age", "partitions held", "file groups held")
    return Table(columns=columns, rows=tuple(rows), more=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRow:
    """One signal as the page shows it; ``limits`` has both of its limits."""

    severity: str
    name: str
    value: str
    limits: str
    found: str
    advice: str


def health_rows(health: TableHealth) -> tuple[tuple[HealthRow, ...], tuple[HealthRow, ...]]:
    """What was found, the worst first, and apart from it what is in order or could not be told."""
    rows = [(one.severity, _health_row(one)) for one in health.worst_first]
    bad = (Severity.WARNING, Severity.CRITICAL)
    return tuple(row for severity, row in rows if severity in bad), tuple(
        row for severity, row in rows if severity not in bad
    )


def _health_row(signal: HealthSignal) -> HealthRow:
    limits = [quantity(one, unit=signal.unit) for one in (signal.threshold, signal.critical_threshold)]
    return HealthRow(
        severity=str(signal.severity),
        name=signal.name.replace("_", " "),
        value=signal.value_text,
        limits=" / ".join(limits) if any(limit != "–" for limit in limits) else "",
        found=signal.found,
        advice="" if signal.severity is Severity.OK else signal.advice,
    )


def health_sentence(health: TableHealth) -> str:
    """Say how many signals are how."""
    counts = health.counts()
    parts = [f"{counts[name]} {name}" for name in ("critical", "warning", "unknown", "ok") if counts[name]]
    return f"{counted(len(health.signals), 'signal')}: {', '.join(parts)}."


def quantile_table(*, before: TableStatistics | None, after: TableStatistics) -> Table | None:
    """The sizes of data files by quantile, before and after; None without files now."""
    if after.file_bytes is None:
        return None
    names = (*_PERCENTS, *_REST)
    found = [("before", before.file_bytes if before else None), ("after" if before else "now", after.file_bytes)]
    rows = tuple(_quantile_row(name, of=one, names=names) for name, one in found if one is not None)
    return Table(columns=("", *(label for _, label in names)), rows=rows, more=0)


def _quantile_row(name: str, *, of: Quantiles, names: Sequence[tuple[str, str]]) -> tuple[Cell, ...]:
    return (Cell(text=name), *(_bytes(getattr(of, field)) for field, _ in names))


def skew_sentence(after: TableStatistics) -> str:
    """Say how unevenly bytes lie over partitions; empty without two partitions with bytes."""
    skew = after.skew
    if skew is None or len(after.partitions) < 2:  # noqa: PLR2004 one alone is no distribution
        return ""
    how = next(how for limit, how in _SKEWS if skew.gini < limit)
    tenth, hundredth = (largest(len(after.partitions), percent=percent) for percent in (10, 1))
    few = f", {hundredth} {_percent(skew.top_1_percent)}" if hundredth != tenth else ""
    return (
        f"Bytes lie {how} over partitions: {tenth} {_percent(skew.top_10_percent)} of the bytes{few} "
        f"(Gini {skew.gini:.2f}, coefficient of variation {skew.coefficient_of_variation:.2f})."
    )


def beside_data(insight: TableInsight) -> tuple[tuple[str, str], ...]:
    """What lies beside the data, in figures: instants, the archive, orphan files."""
    found = []
    if insight.active_instants is not None:
        found.append(("Active timeline", counted(insight.active_instants, "instant")))
    if insight.archive is not None:
        archive = insight.archive
        found.append(("Archived timeline", f"{counted(archive.count, 'file')}, {human_bytes(archive.bytes)}"))
    if insight.orphans is not None:
        orphans = insight.orphans
        where = f" in {counted(len(orphans.by_partition), 'partition')}" if orphans.count else ""
        found.append(("Orphan files", f"{counted(orphans.count, 'file')}, {human_bytes(orphans.bytes)}{where}"))
        found += [(f"Orphans of {_maker(one)}", _of(totals)) for one, totals in orphans.by_instant[:_MAKERS_SHOWN]]
    return tuple(found)


def _maker(instant: str) -> str:
    return f"instant {instant}" if instant else "nobody known"


def _of(totals: FileTotals) -> str:
    return f"{counted(totals.count, 'file')}, {human_bytes(totals.bytes)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _code(path: str) -> Cell:
    return Cell(text=path or "(whole table)", kind="code")


def _bytes(value: int | None) -> Cell:
    return Cell(text=human_bytes(value), kind="number", exact="" if value is None else f"{value:,} bytes")
