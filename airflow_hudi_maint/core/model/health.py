"""Health of a table: signals, each with its value, its limits, and what to do.

The JSON form is version 1 of the document that docs/health.md describes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.document import JsonObject, checked_document
from airflow_hudi_maint.core.model.units import human_bytes, human_count, human_duration

HEADINGS = ("severity", "signal", "value", "warning from", "critical from", "found", "advice")
"""The columns of :meth:`TableHealth.rows`."""

NOTHING_TO_DO = "Nothing to do."
_DASH = "–"


class Severity(StrEnum):
    """How bad a signal is. ``unknown`` says that the value could not be told, which is no alarm by itself."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """A number that grows with the severity: ok, unknown, warning, critical."""
        return _RANKS[self]


_RANKS = {one: rank for rank, one in enumerate(Severity)}


class Unit(StrEnum):
    """What a value counts; a share lies between 0 and 1."""

    SECONDS = "seconds"
    BYTES = "bytes"
    COUNT = "count"
    SHARE = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSignal:
    """One figure about a table, judged.

    ``name`` is unique within a table, the same in every run, and the end of the metric's name. A greater ``value`` is
    worse; None where it could not be told or where there is nothing to measure. From ``threshold`` on it is a warning,
    from ``critical_threshold`` on critical; None is no limit. A value past a limit may still be ok where ``found`` says
    why it does no harm. ``found`` and ``advice`` are one sentence each; ``details`` name what the value counts.
    """

    name: str
    value: float | None
    unit: Unit
    severity: Severity
    found: str
    advice: str = NOTHING_TO_DO
    threshold: float | None = None
    critical_threshold: float | None = None
    details: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        numbers = (self.value, self.threshold, self.critical_threshold)
        wrong = [one for one in numbers if one is not None and (isinstance(one, bool) or not _is_number(one))]
        if wrong or not self.name:
            msg = f"health signal {self.name!r} has {wrong[0] if wrong else 'no name'!r}; expected a name and numbers"
            raise ValueError(msg)

    @property
    def value_text(self) -> str:
        """The value as people read it; a dash for None."""
        return quantity(self.value, unit=self.unit)

    def to_json(self) -> JsonObject:
        """The object of the JSON document."""
        return {
            "name": self.name,
            "severity": str(self.severity),
            "value": self.value,
            "unit": str(self.unit),
            "threshold": self.threshold,
            "critical_threshold": self.critical_threshold,
            "found": self.found,
            "advice": self.advice,
            "details": list(self.details),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> HealthSignal:
        """Read what :meth:`to_json` wrote."""
        return cls(
            name=value["name"],
            severity=Severity(value["severity"]),
            value=value["value"],
            unit=Unit(value["unit"]),
            threshold=value["threshold"],
            critical_threshold=value["critical_threshold"],
            found=value["found"],
            advice=value["advice"],
            details=tuple(value["details"]),
        )


@dataclass(frozen=True, kw_only=True)
class TableHealth:
    """What was found about a table at one moment.

    ``as_of_instant`` is the last completed instant of the timeline that was looked at, ``checked_at`` ISO 8601 in UTC.
    ``statistics_instant`` is the instant that the file sizes are as of; None without statistics.
    """

    KIND: ClassVar[str] = "health"
    VERSION: ClassVar[int] = 1

    base_path: str
    table_name: str
    table_version: int
    table_type: str
    as_of_instant: str
    checked_at: str
    signals: tuple[HealthSignal, ...]
    statistics_instant: str | None = None

    def __post_init__(self) -> None:
        names = [one.name for one in self.signals]
        doubled = next((name for name in names if names.count(name) > 1), None)
        if doubled is not None:
            msg = f"health of {self.base_path} has two signals {doubled!r}"
            raise ValueError(msg)

    @property
    def severity(self) -> Severity:
        """The worst severity of a signal; ok without signals."""
        return max((one.severity for one in self.signals), key=lambda one: one.rank, default=Severity.OK)

    @property
    def worst_first(self) -> tuple[HealthSignal, ...]:
        """The signals, the worst ones first; of one severity in their own order."""
        return tuple(sorted(self.signals, key=lambda one: -one.severity.rank))

    def of(self, severity: Severity) -> tuple[HealthSignal, ...]:
        """The signals of one severity, in their own order."""
        return tuple(one for one in self.signals if one.severity is severity)

    def counts(self) -> dict[str, int]:
        """How many signals there are of each severity."""
        return {str(severity): len(self.of(severity)) for severity in Severity}

    def signal(self, name: str) -> HealthSignal | None:
        """The signal of this name, or None."""
        return next((one for one in self.signals if one.name == name), None)

    def rows(self, *, only_findings: bool = False) -> tuple[tuple[str, ...], ...]:
        """A row of texts for each signal, the worst first, in the columns of :data:`HEADINGS`.

        ``only_findings`` leaves out what is ok.
        """
        shown = [one for one in self.worst_first if not only_findings or one.severity is not Severity.OK]
        return tuple(
            (
                str(one.severity),
                one.name,
                one.value_text,
                quantity(one.threshold, unit=one.unit),
                quantity(one.critical_threshold, unit=one.unit),
                one.found,
                one.advice,
            )
            for one in shown
        )

    def to_text(self, *, only_findings: bool = False) -> str:
        """The signals as lines for a log or a terminal, the worst first; ends without a line break."""
        counted = ", ".join(f"{count} {severity}" for severity, count in self.counts().items() if count)
        table = f"{self.table_name} ({self.table_type}, table version {self.table_version})"
        lines = [f"{table}: {self.severity}; {counted}"]
        rows = self.rows(only_findings=only_findings)
        names = max((len(row[1]) for row in rows), default=0)
        values = max((len(row[2]) for row in rows), default=0)
        for severity, name, value, _, _, found, advice in rows:
            lines.append(f"  {severity:<8}  {name:<{names}}  {value:>{values}}  {found}")
            if severity != Severity.OK:
                lines.append(f"  {'':<8}  {'':<{names}}  {'':>{values}}  → {advice}")
        return "\n".join(lines)

    def to_markdown(self, *, only_findings: bool = False) -> str:
        """The signals as a table in Markdown, the worst first."""
        lines = [_markdown_row(HEADINGS), _markdown_row(["---"] * len(HEADINGS))]
        lines += [_markdown_row(row) for row in self.rows(only_findings=only_findings)]
        return "\n".join(lines)

    def to_json(self) -> JsonObject:
        """The whole document."""
        return {
            "kind": self.KIND,
            "version": self.VERSION,
            "base_path": self.base_path,
            "table_name": self.table_name,
            "table_version": self.table_version,
            "table_type": self.table_type,
            "as_of_instant": self.as_of_instant,
            "statistics_instant": self.statistics_instant,
            "checked_at": self.checked_at,
            "severity": str(self.severity),
            "counts": dict(self.counts()),
            "signals": [one.to_json() for one in self.signals],
        }

    @classmethod
    def from_json(cls, value: object, *, name: str) -> TableHealth:
        """Read a document; raises CorruptTableError that names the file."""
        document: Mapping[str, Any] = checked_document(value, kind=cls.KIND, version=cls.VERSION, name=name)
        try:
            return cls(
                base_path=document["base_path"],
                table_name=document["table_name"],
                table_version=document["table_version"],
                table_type=document["table_type"],
                as_of_instant=document["as_of_instant"],
                statistics_instant=document["statistics_instant"],
                checked_at=document["checked_at"],
                signals=tuple(HealthSignal.from_json(one) for one in document["signals"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            msg = f"{name} is a broken health document ({error!r}); check the table's health again"
            raise CorruptTableError(msg) from error


def quantity(value: float | None, *, unit: Unit) -> str:
    """Write a value in its unit as people read it; a dash for None.

    >>> quantity(7200, unit=Unit.SECONDS), quantity(0.525, unit=Unit.SHARE), quantity(None, unit=Unit.COUNT)
    ('2 h', '52 %', '–')
    """
    if value is None:
        return _DASH
    if unit is Unit.SECONDS:
        return human_duration(value)
    if unit is Unit.BYTES:
        return human_bytes(round(value))
    if unit is Unit.SHARE:
        return f"{100 * value:.0f} %"
    return human_count(round(value)) if float(value).is_integer() else f"{value:,.1f}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and value == value and abs(value) != float("inf")  # noqa: PLR0124 not a NaN


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
