"""How a signal is put together from a value and its limits."""

from __future__ import annotations

from datetime import datetime

from airflow_hudi_maint.core.model.health import NOTHING_TO_DO, HealthSignal, Severity, Unit
from airflow_hudi_maint.core.model.health_facts import HealthFacts
from airflow_hudi_maint.core.model.instant import Action, Instant, instant_moment
from airflow_hudi_maint.core.planning.health_thresholds import Limits

MOST_DETAILS = 20
"""So many things are named in the details of one signal; a document stays small on a table in trouble."""

_WRITES = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})


def judged(
    name: str,
    *,
    value: float,
    unit: Unit,
    limits: Limits,
    found: str,
    advice: str,
    details: tuple[str, ...] = (),
    harmless: str | None = None,
) -> HealthSignal:
    """A signal whose severity follows from its limits; ``harmless`` says why a value past them does no harm."""
    severity = limits.judge(value)
    if harmless is not None and severity is not Severity.OK:
        severity, found = Severity.OK, f"{found}; {harmless}"
    return HealthSignal(
        name=name,
        value=value,
        unit=unit,
        severity=severity,
        found=_sentence(found),
        advice=NOTHING_TO_DO if severity is Severity.OK else _sentence(advice),
        threshold=limits.warning,
        critical_threshold=limits.critical,
        details=some_details(details),
    )


def untold(
    name: str,
    *,
    unit: Unit,
    limits: Limits,
    found: str,
    advice: str = NOTHING_TO_DO,
    severity: Severity = Severity.UNKNOWN,
) -> HealthSignal:
    """A signal without a value."""
    return HealthSignal(
        name=name,
        value=None,
        unit=unit,
        severity=severity,
        found=_sentence(found),
        advice=_sentence(advice),
        threshold=limits.warning,
        critical_threshold=limits.critical,
    )


def some_details(details: tuple[str, ...]) -> tuple[str, ...]:
    """The first details, and how many more there are."""
    rest = len(details) - MOST_DETAILS
    return (*details[:MOST_DETAILS], f"and {rest} more") if rest > 0 else details


def completed_writes(facts: HealthFacts) -> tuple[Instant, ...]:
    """The completed writes on the active timeline, in order of requested time: what Hudi's archiver counts."""
    return tuple(one for one in facts.timeline.completed if one.action in _WRITES)


def seconds_since(instant_time: str, *, facts: HealthFacts, now: datetime) -> float | None:
    """How long ago an instant was, in seconds; negative for one ahead of ``now``, None for a text that is no date."""
    try:
        return (now - instant_moment(instant_time, zone=facts.zone)).total_seconds()
    except ValueError:
        return None


def _sentence(text: str) -> str:
    # A path or a setting at the beginning stays as it is.
    text = text[:1].upper() + text[1:] if text.partition(" ")[0].isalpha() else text
    return text if text.endswith((".", "!", "?")) else f"{text}."
