"""From the arguments of an operator or a command to the core's settings of a compaction plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_int, is_unset

if TYPE_CHECKING:
    from airflow_hudi_maint.core.model.compaction_plan import CompactionSettings

LIMITS = ("min_delta_commits", "min_log_files", "min_log_bytes", "min_log_ratio", "max_input_bytes")
"""Operator arguments, of compaction_settings too."""


def compaction_settings(
    *,
    min_delta_commits: object = None,
    min_log_files: object = None,
    min_log_bytes: object = None,
    min_log_ratio: object = None,
    max_input_bytes: object = None,
) -> CompactionSettings:
    """Read when log files are worth merging; what is not given has the core's default."""
    from airflow_hudi_maint.core.model.compaction_plan import CompactionSettings

    numbers = {
        "min_delta_commits": min_delta_commits,
        "min_log_files": min_log_files,
        "min_log_bytes": min_log_bytes,
        "max_input_bytes": max_input_bytes,
    }
    given: dict[str, Any] = {name: as_int(name, value) for name, value in numbers.items() if not is_unset(value)}
    if not is_unset(min_log_ratio):
        given["min_log_ratio"] = _ratio(min_log_ratio)
    return CompactionSettings(**given)


def _ratio(value: object) -> float:
    try:
        return float(str(value).strip())
    except ValueError:
        raise InvalidSettingError(f"min_log_ratio={value!r} is no number; write for example 0.5") from None
