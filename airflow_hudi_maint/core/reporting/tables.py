"""The rows of the page's tables, as the template shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from airflow_hudi_maint.core.model.plan import Decision
from airflow_hudi_maint.core.model.report import Step, StepReport
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_count, human_instant, human_seconds
from airflow_hudi_maint.core.reporting.facts import Fate, PartitionFate, ReportFacts, natural_key
from airflow_hudi_maint.core.reporting.partition_chart import FATE_INKS

MAX_ROWS = 500

_DECISIONS = (Decision.EXPIRE, Decision.CLUSTER, Decision.BLOCKED, Decision.KEEP)
_PLANS = {Step.EXPIRE: "expiry", Step.RESTORE: "expiry", Step.SCHEDULE_COMPACTION: "compaction"}
_WITHOUT_AFTER = frozenset({Step.CLEAN})
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell, of ``kind`` text, number, share, code or badge; ``exact`` is what a rounded figure stands for."""

    text: str
    kind: str = "text"
    exact: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of at most :data:`MAX_ROWS` rows; ``more`` counts those that were left out."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: int


def expiry_table(facts: ReportFacts) -> Table:
    """The expiry plan: what goes first, then what is blocked, then what stays."""
    entries = sorted(facts.expiry_entries.values(), key=lambda one: _plan_key(one.decision, path=one.partition_path))
    return _table(
        ("partition", "decision", "policy", "reason", "bytes"),
        rows=entries,
        cells=lambda one: (
            _code(one.partition_path),
            _badge(one.decision),
            Cell(text=one.policy or "–"),
            Cell(text=_reason(one.reason, blocked_by=one.blocked_by)),
            _bytes(one.total_bytes),
        ),
    )


def clustering_table(facts: ReportFacts) -> Table:
    """The clustering plan: what is rewritten first, then what is not and why not."""
    entries = sorted(
        facts.clustering_entries.values(), key=lambda one: _plan_key(one.decision, path=one.partition_path)
    )
    return _table(
        ("partition", "decision", "reason", "files", "bytes", "groups", "expected files"),
        rows=entries,
        cells=lambda one: (
            _code(one.partition_path),
            _badge(one.decision),
            Cell(text=_reason(one.reason, blocked_by=one.blocked_by)),
            _count(len(one.file_ids)),
            _bytes(one.input_bytes),
            _count(one.group_count),
            _count(one.output_file_count),
        ),
    )


def partition_table(facts: ReportFacts) -> Table:
    """The partitions with most bytes, largest first; without earlier statistics there are no columns for them."""
    order = sorted(facts.partitions, key=lambda one: -one.largest_bytes)  # of equals, path order stays
    if facts.before is None:
        return _table(
            ("partition", "what becomes of it", "bytes", "files", "small files"),
            rows=order,
            cells=lambda one: (*_name_and_fate(one), *_figures_after(one)),
        )
    return _table(
        ("partition", "what became of it", "bytes before", "files before", "bytes", "files", "small files"),
        rows=order,
        cells=lambda one: (
            *_name_and_fate(one),
            _bytes(one.bytes_before),
            _count(one.files_before),
            *_figures_after(one),
        ),
    )


def fate_counts(partitions: Sequence[PartitionFate]) -> tuple[tuple[str, str, str], ...]:
    """The fates there are, each with its mark and count."""
    counts = [(fate, sum(one.fate is fate for one in partitions)) for fate in Fate]
    return tuple((str(fate), fate_mark(fate), human_count(count)) for fate, count in counts if count)


def fate_mark(fate: Fate) -> str:
    """The stylesheet's name of a fate's colour; what is only planned is an outline."""
    outline = " planned" if fate in (Fate.TO_EXPIRE, Fate.TO_CLUSTER) else ""
    return f"{FATE_INKS[fate].role}{outline}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One step as the page shows it; ``instants`` are pairs of instant and moment."""

    name: str
    outcome: str
    message: str
    instants: tuple[tuple[str, str], ...]
    effect: str
    seconds: str
    warnings: tuple[str, ...]


def step_rows(facts: ReportFacts) -> tuple[StepRow, ...]:
    """The steps, in the order in which they came."""
    return tuple(
        StepRow(
            name=one.step.replace("-", " "),
            outcome=str(one.outcome),
            message=one.message,
            instants=tuple((instant, human_instant(instant, zone=facts.zone)) for instant in one.instants),
            effect=_effect(one),
            seconds=human_seconds(one.engine_seconds) if one.engine_seconds else "",
            warnings=one.warnings,
        )
        for one in facts.reports
    )


def documents(facts: ReportFacts) -> tuple[tuple[str, str], ...]:
    """Names and paths of the plans and statistics files that the run names, each path once."""
    found: dict[str, str] = {}
    for one in facts.reports:
        if one.plan_path:
            found.setdefault(one.plan_path, f"{_PLANS.get(one.step, 'clustering')} plan")
    for plan in (facts.expiry_plan, facts.clustering_plan):
        if plan and plan.basis.statistics_path:
            found.setdefault(plan.basis.statistics_path, "statistics that the plans rest on")
    return tuple((name, path) for path, name in found.items())


def _effect(one: StepReport) -> str:
    if one.step is Step.SCHEDULE_CLUSTERING or not (one.files_before or one.files_after):
        return ""
    if one.step in _WITHOUT_AFTER:
        return f"{counted(one.files_before, 'file')} deleted, {human_bytes(one.bytes_before)} freed"
    return (
        f"{counted(one.files_before, 'file')} → {human_count(one.files_after)}, "
        f"{human_bytes(one.bytes_before)} → {human_bytes(one.bytes_after)}"
    )


def _name_and_fate(one: PartitionFate) -> tuple[Cell, ...]:
    return _code(one.partition_path), Cell(text=str(one.fate), kind="badge", mark=fate_mark(one.fate))


def _figures_after(one: PartitionFate) -> tuple[Cell, ...]:
    return _bytes(one.bytes_after), _count(one.files_after), _count(one.small_files_after)


def _table(columns: tuple[str, ...], *, rows: Sequence[_Row], cells: Callable[[_Row], tuple[Cell, ...]]) -> Table:
    shown = rows[:MAX_ROWS]
    return Table(columns=columns, rows=tuple(cells(row) for row in shown), more=len(rows) - len(shown))


def _plan_key(decision: Decision, *, path: str) -> tuple[int, object]:
    return _DECISIONS.index(decision), natural_key(path)


def _reason(reason: str, *, blocked_by: str | None) -> str:
    return f"{reason} (held by {blocked_by})" if blocked_by and blocked_by not in reason else reason


def _code(path: str) -> Cell:
    return Cell(text=path or "(whole table)", kind="code")


def _badge(decision: Decision) -> Cell:
    marks = {
        Decision.EXPIRE: "expired",
        Decision.CLUSTER: "clustered",
        Decision.BLOCKED: "blocked",
        Decision.KEEP: "kept",
    }
    return Cell(text=str(decision), kind="badge", mark=marks[decision])


def _bytes(value: int | None) -> Cell:
    return Cell(text=human_bytes(value), kind="number", exact="" if value is None else f"{value:,} bytes")


def _count(value: int | None) -> Cell:
    return Cell(text=human_count(value), kind="number")
