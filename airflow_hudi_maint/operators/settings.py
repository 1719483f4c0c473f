"""From an operator's arguments to the core's settings."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import (
    as_exact_text,
    as_int,
    as_object,
    as_objects,
    as_optional_int,
    as_optional_text,
    as_texts,
    check_names,
    is_unset,
)

if TYPE_CHECKING:
    from airflow_hudi_maint.core.model.plan import ClusteringSettings
    from airflow_hudi_maint.core.model.policy import PolicySet
    from airflow_hudi_maint.core.planning.expiry import ExpiryGuards
    from airflow_hudi_maint.core.planning.small_files import Worthwhile

SIZES = ("target_file_bytes", "small_file_bytes", "max_group_bytes", "max_groups", "min_input_files")
"""The numbers that clustering and small-file compaction share: operator arguments, of clustering_settings too."""


def ttl_policies(value: object) -> PolicySet | None:
    """Read RFC-65 policies; None when not given."""
    from airflow_hudi_maint.core.model.policy import PolicySet

    objects = as_objects("policies", value)
    return None if objects is None else PolicySet.from_json(objects, source="argument policies")


def expiry_guards(value: object) -> ExpiryGuards | None:
    """Read an object with fields of ExpiryGuards; None when not given. A field that is null lifts its limit."""
    from airflow_hudi_maint.core.planning.expiry import ExpiryGuards

    given = as_object("guards", value)
    if not given:
        return None
    check_names("guards", given, known=(one.name for one in fields(ExpiryGuards)))
    for name, one in given.items():
        if isinstance(one, bool):
            # Python takes true for 1, the whole table.
            raise InvalidSettingError(f"guards: {name}={one} is neither a number nor a text; null lifts a limit")
    try:
        return ExpiryGuards(**{name: _number_or_text(one) for name, one in given.items()})  # type: ignore[arg-type]
    except TypeError as error:
        raise InvalidSettingError(f"guards={dict(given)!r} has a value of a wrong type: {error}") from error


def clustering_settings(
    *,
    target_file_bytes: object,
    small_file_bytes: object,
    max_group_bytes: object = None,
    max_groups: object = None,
    sort_columns: object = None,
    layout: object = None,
    min_input_files: object = None,
) -> ClusteringSettings:
    """Read the settings of a clustering plan; what is not given has the core's default."""
    from airflow_hudi_maint.core.model.plan import ClusteringSettings, Layout

    numbers = {
        "target_file_bytes": target_file_bytes,
        "small_file_bytes": small_file_bytes,
        "max_group_bytes": max_group_bytes,
        "min_input_files": min_input_files,
    }
    given = {name: as_int(name, value) for name, value in numbers.items() if not is_unset(value)}
    text = as_optional_text("layout", layout) or Layout.LINEAR
    if text not in tuple(Layout):
        raise InvalidSettingError(f"layout={layout!r} is unknown; known are {', '.join(Layout)}")
    return ClusteringSettings(
        **given,
        max_groups=as_optional_int("max_groups", max_groups),
        sort_columns=as_texts("sort_columns", sort_columns),
        layout=Layout(text),
    )


def worthwhile(*, min_files_removed: object, max_bytes_per_file_removed: object) -> Worthwhile:
    """Read when small files are worth rewriting; what is not given has the core's default."""
    from airflow_hudi_maint.core.planning.small_files import Worthwhile

    numbers = {"min_files_removed": min_files_removed, "max_bytes_per_file_removed": max_bytes_per_file_removed}
    return Worthwhile(**{name: as_int(name, value) for name, value in numbers.items() if not is_unset(value)})


def partition_paths(value: object) -> tuple[str, ...] | None:
    """Read partition paths; None (all partitions) when not given. An empty list is refused: it never means all."""
    if value is None or (isinstance(value, str) and as_exact_text("partitions", value) is None):
        return None
    paths = as_texts("partitions", value)
    if not paths:
        raise InvalidSettingError("partitions is an empty list; leave it out to consider every partition")
    return paths


def _number_or_text(value: object) -> object:
    if not isinstance(value, str):
        return value
    if is_unset(value):
        return None
    try:
        return float(value)
    except ValueError:
        return value
