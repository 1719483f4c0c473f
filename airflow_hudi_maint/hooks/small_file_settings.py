"""From the arguments of an operator or a command to the core's settings of small-file compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_int, as_optional_int, as_optional_text, as_seconds, is_unset

if TYPE_CHECKING:
    from airflow_hudi_maint.core.model.plan import ExecutionStrategy
    from airflow_hudi_maint.core.planning.small_files import Worthwhile

WORTHWHILE = ("min_files_removed", "max_bytes_per_file_removed", "max_bytes", "min_idle")
"""Operator arguments that say what is worth rewriting, and how much of it."""
AUTO = "auto"

_DAY_SECONDS = 86_400


def worthwhile(
    *, min_files_removed: object, max_bytes_per_file_removed: object, max_bytes: object = None, min_idle: object = None
) -> Worthwhile:
    """Read when small files are worth rewriting; what is not given has the core's default."""
    from airflow_hudi_maint.core.planning.small_files import Worthwhile

    numbers = {
        "min_files_removed": min_files_removed,
        "max_bytes_per_file_removed": max_bytes_per_file_removed,
        "max_bytes": max_bytes,
    }
    given: dict[str, Any] = {name: as_int(name, value) for name, value in numbers.items() if not is_unset(value)}
    if not is_unset(min_idle):
        seconds = as_seconds("min_idle", min_idle)
        given["min_idle_days"] = seconds / _DAY_SECONDS if seconds else None
    return Worthwhile(**given)


def copying(value: object) -> ExecutionStrategy | None:
    """Read how small files are rewritten: ``binary_copy``, ``sort_and_size``, or None for ``auto``."""
    from airflow_hudi_maint.core.model.plan import ExecutionStrategy

    text = (as_optional_text("execution_strategy", value) or AUTO).lower()
    known = (ExecutionStrategy.SORT_AND_SIZE, ExecutionStrategy.BINARY_COPY)
    if text != AUTO and text not in known:
        raise InvalidSettingError(
            f"execution_strategy={value!r}: small files are rewritten by {AUTO}, {' or '.join(known)}"
        )
    return None if text == AUTO else ExecutionStrategy(text)


def min_row_group_bytes(value: object) -> int:
    """Read from which size on row groups are copied; the core's default when not given."""
    from airflow_hudi_maint.core.planning.small_file_copying import DEFAULT_MIN_ROW_GROUP_BYTES

    given = as_optional_int("min_row_group_bytes", value)
    return DEFAULT_MIN_ROW_GROUP_BYTES if given is None else given
