"""From the arguments of an operator or a command to the core's settings of a plan."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import (
    as_bool,
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
    from collections.abc import Mapping

    from airflow_hudi_maint.core.maintenance import DropSettings
    from airflow_hudi_maint.core.model.plan import ClusteringSettings
    from airflow_hudi_maint.core.model.policy import PolicySet
    from airflow_hudi_maint.core.model.scheduler import Scheduler
    from airflow_hudi_maint.core.planning.cleaning import CleanerSettings
    from airflow_hudi_maint.core.planning.expiry import ExpiryGuards

_Choice = TypeVar("_Choice", bound=StrEnum)

SIZES = ("target_file_bytes", "small_file_bytes", "max_group_bytes", "max_groups", "min_input_files")
"""The numbers that clustering and small-file compaction share: operator arguments, of clustering_settings too."""


def scheduler_of(value: object) -> Scheduler:
    """Read the way in which a plan reaches the timeline; auto when not given."""
    from airflow_hudi_maint.core.model.scheduler import Scheduler

    return Scheduler.parse(as_optional_text("scheduler", value) or Scheduler.AUTO)


def ttl_policies(value: object) -> PolicySet | None:
    """Read RFC-65 policies; None when not given."""
    from airflow_hudi_maint.core.model.policy import PolicySet

    objects = as_objects("policies", value)
    return None if objects is None else PolicySet.from_json(objects, source="argument policies")


def expiry_guards(value: object) -> ExpiryGuards | None:
    """Read an object with fields of ExpiryGuards; None when not given. A field that is null lifts its limit."""
    from airflow_hudi_maint.core.planning.expiry import ExpiryGuards

    given = as_object("guards", value)
    return ExpiryGuards.from_json(given) if given else None


def fails_on_guard(value: object) -> bool:
    """Read whether a plan that a guard refuses fails its task."""
    choice = as_optional_text("on_guard", value) or "fail"
    if choice not in ("fail", "warn"):
        raise InvalidSettingError(f"on_guard={value!r} is unknown; expected fail or warn")
    return choice == "fail"


def drop_settings(*, savepoint: object, on_changed: object, approval: object, plan_path: str | None) -> DropSettings:
    """Read how partitions are dropped; an approval has to be one of the plan at ``plan_path``."""
    from airflow_hudi_maint.core.maintenance import DropSettings

    choice = as_optional_text("on_changed", on_changed) or "refuse"
    if choice not in ("refuse", "leave_out"):
        raise InvalidSettingError(f"on_changed={on_changed!r} is unknown; expected refuse or leave_out")
    return DropSettings(
        savepoint=as_bool("savepoint", savepoint),
        leave_out_changed=choice == "leave_out",
        approval=_approval(approval, plan_path=plan_path),
    )


def _approval(value: object, *, plan_path: str | None) -> str | None:
    # JSON of an approval that nobody gave is the word null: taken for "not asked for", it would drop all the same.
    if value is None or (isinstance(value, str) and as_exact_text("approval", value) is None):
        return None
    given = as_object("approval", value)
    if given.get("approved") is not True:
        raise InvalidSettingError(f"approval={dict(given)!r} approves nothing; the plan is not applied")
    if given.get("plan_path") != plan_path:
        raise InvalidSettingError(
            f"the approval is of the plan {given.get('plan_path')!r}, and the plan to apply is {plan_path!r}"
        )
    who = given.get("by") or given.get("how") or "unknown"
    return f"approved by {who} at {given.get('at')}"


def cleaner_settings(value: object, *, options: Mapping[str, str]) -> CleanerSettings:
    """Read what a clean retains: an object with fields of CleanerSettings over what Hudi options say."""
    from airflow_hudi_maint.core.planning.cleaning import CleanerSettings

    given = as_object("cleaner", value)
    stated = CleanerSettings.from_options(options)
    known = ("policy", "commits_retained", "hours_retained", "file_versions_retained")
    check_names("cleaner", given, known=known)
    read: dict[str, Any] = {
        name: one if name == "policy" else as_int(f"cleaner.{name}", one) for name, one in given.items()
    }
    return replace(stated, **read)


def clustering_settings(
    *,
    target_file_bytes: object,
    small_file_bytes: object,
    max_group_bytes: object = None,
    max_groups: object = None,
    sort_columns: object = None,
    layout: object = None,
    min_input_files: object = None,
    execution_strategy: object = None,
) -> ClusteringSettings:
    """Read the settings of a clustering plan; what is not given has the core's default."""
    from airflow_hudi_maint.core.model.plan import ClusteringSettings, ExecutionStrategy, Layout

    numbers = {
        "target_file_bytes": target_file_bytes,
        "small_file_bytes": small_file_bytes,
        "max_group_bytes": max_group_bytes,
        "min_input_files": min_input_files,
    }
    given: dict[str, Any] = {name: as_int(name, value) for name, value in numbers.items() if not is_unset(value)}
    return ClusteringSettings(
        **given,
        max_groups=as_optional_int("max_groups", max_groups),
        sort_columns=as_texts("sort_columns", sort_columns),
        layout=_one_of(Layout, "layout", layout) or Layout.LINEAR,
        execution_strategy=_one_of(ExecutionStrategy, "execution_strategy", execution_strategy)
        or ExecutionStrategy.SORT_AND_SIZE,
    )


def clustering_strategy(*, strategy: object, strategy_options: object) -> dict[str, Any]:
    """Read the name of a strategy and its options, a mapping or JSON, as arguments of the core.

    Options that are unset (null, or an empty template) are left out.
    """
    options = as_object("strategy_options", strategy_options)
    return {
        "strategy": as_optional_text("strategy", strategy) or "size_based",
        "strategy_options": {name: value for name, value in options.items() if not is_unset(value)},
    }


def _one_of(kind: type[_Choice], name: str, value: object) -> _Choice | None:
    """Read one of the words of an enumeration; None when not given."""
    text = as_optional_text(name, value)
    if text is None:
        return None
    if text not in tuple(kind):
        raise InvalidSettingError(f"{name}={value!r} is unknown; known are {', '.join(kind)}")
    return kind(text)


def partition_paths(value: object) -> tuple[str, ...] | None:
    """Read partition paths; None (all partitions) when not given. An empty list is refused: it never means all."""
    if value is None or (isinstance(value, str) and as_exact_text("partitions", value) is None):
        return None
    paths = as_texts("partitions", value)
    if not paths:
        raise InvalidSettingError("partitions is an empty list; leave it out to mean every partition")
    return paths
