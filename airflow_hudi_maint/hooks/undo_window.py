"""The question that the undo sensor and trigger ask: is a drop of partitions about to become final?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_exact_text, as_instants, as_result_field

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from airflow_hudi_maint.core.planning.cleaning import CleanerSettings
    from airflow_hudi_maint.core.storage.table import HudiTable


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoQuestion:
    """Which drop is watched (None: the newest), what the table's cleaner retains, and how early to tell."""

    drop: str | None
    margin_commits: int
    margin: timedelta
    cleaner: CleanerSettings


def as_drop(value: object) -> str | None:
    """Read which drop is meant: its instant, or the result of the step that made it; None (the newest) when not given.

    Raises InvalidSettingError for a result of no drop, or of several: none of them may become another drop's.
    """
    taken = as_result_field("drop", value, field="instants")
    if taken is value and not isinstance(value, list | tuple):
        return as_exact_text("drop", str(value) if isinstance(value, int) and not isinstance(value, bool) else value)
    instants = as_instants("drop", taken)
    if len(instants) != 1:
        found = ", ".join(instants) or "none"
        raise InvalidSettingError(f"drop has to be one instant; that step's result has {found}. Name one of the drops")
    return instants[0]


def closing_window(table: HudiTable, question: UndoQuestion, *, now: datetime) -> dict[str, Any] | None:
    """Return the window of the drop once it closes within the margin; None while it is open, or nothing was dropped.

    Opens the replace commits of the active timeline, no data file. The result is JSON-native and small.
    """
    from airflow_hudi_maint.core.maintenance.undo import dropped_partitions, window_of

    timeline = table.timeline()
    drops = dropped_partitions(table, timeline)
    fitting = [one for one in drops if question.drop in (None, one.instant.requested_time)]
    if not fitting:
        return _final(table, question.drop)
    drop = fitting[-1]
    window = window_of(table, timeline, drop.instant, settings=question.cleaner)
    if not window.is_closing(now=now, margin_commits=question.margin_commits, margin=question.margin):
        return None
    return {
        "base_path": table.base_path,
        "drop": window.drop,
        "as_of": window.as_of,
        "partitions": len(drop.replaced),
        "commits_left": window.commits_left,
        "closes_at": None if window.closes_at is None else window.closes_at.isoformat(),
        "message": str(window),
    }


def _final(table: HudiTable, drop: str | None) -> dict[str, Any] | None:
    """A named drop that is not on the active timeline any more: there is nothing left to wait for."""
    if drop is None:
        return None
    return {
        "base_path": table.base_path,
        "drop": drop,
        "as_of": None,
        "partitions": 0,
        "commits_left": 0,
        "closes_at": None,
        "message": f"drop {drop} is not on the active timeline: archived or rolled back",
    }
