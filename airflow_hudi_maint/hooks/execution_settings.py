"""From the arguments of an operator to the core's settings of an execution and of its verification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import (
    as_bool,
    as_exact_text,
    as_int,
    as_object,
    as_optional_int,
    as_optional_text,
    as_texts,
    is_unset,
)

if TYPE_CHECKING:
    from airflow_hudi_maint.core.model.verification import VerifySettings
    from airflow_hudi_maint.core.planning.clustering_properties import PropertiesSettings
    from airflow_hudi_maint.core.planning.execution_settings import ExecutionSettings
    from airflow_hudi_maint.hooks.hudi import HudiHook


def file_settings(hook: HudiHook, value: object) -> PropertiesSettings:
    """Read a properties file of settings; nothing when none is named. What is for a writer is said and left out."""
    from airflow_hudi_maint.core.planning.clustering_properties import (
        PropertiesSettings,
        clustering_settings_from_properties,
        ignored_keys,
    )
    from airflow_hudi_maint.core.storage.properties_files import read_properties_file

    location = as_exact_text("settings_file", value)
    if location is None:
        return PropertiesSettings(settings={}, options={})
    file = read_properties_file(location, storage_options=hook.storage_options or None)
    properties = file.as_dict()
    ignored = ignored_keys(properties)
    if ignored:
        hook.log.info("%s: for a writer that clusters by itself, left out here: %s", location, ", ".join(ignored))
    return clustering_settings_from_properties(properties, name=location, lines=file.lines())


def over_file(file: PropertiesSettings, **given: object) -> dict[str, Any]:
    """What is given, and from the file what is not."""
    return {**file.settings, **{name: value for name, value in given.items() if not is_unset(value)}}


def execution_settings(
    *,
    sort_columns: object = None,
    layout: object = None,
    execution_strategy: object = None,
    parallelism: object = None,
    read_parallelism: object = None,
    target_file_bytes: object = None,
    options: object = None,
    file: PropertiesSettings | None = None,
) -> ExecutionSettings:
    """Read what an execution says of itself; what is not given is the plan's, or Hudi's."""
    from airflow_hudi_maint.core.model.plan import ExecutionStrategy, Layout
    from airflow_hudi_maint.core.planning.clustering_properties import MAX_PARALLELISM_KEY, READ_PARALLELISM_KEY
    from airflow_hudi_maint.core.planning.execution_settings import ExecutionSettings

    of_file = dict(file.options) if file else {}
    by_file = {name: of_file.pop(name, None) for name in (MAX_PARALLELISM_KEY, READ_PARALLELISM_KEY)}
    return ExecutionSettings(
        sort_columns=None if is_unset(sort_columns) else as_texts("sort_columns", sort_columns),
        layout=_choice("layout", layout, Layout),
        execution_strategy=_choice("execution_strategy", execution_strategy, ExecutionStrategy),
        parallelism=_number("parallelism", parallelism, by_file[MAX_PARALLELISM_KEY]),
        read_parallelism=_number("read_parallelism", read_parallelism, by_file[READ_PARALLELISM_KEY]),
        target_file_bytes=None if is_unset(target_file_bytes) else as_int("target_file_bytes", target_file_bytes),
        options={**of_file, **_options(options)},
    )


def check_same_table(name: str, value: object, *, base_path: str) -> None:
    """Raise InvalidSettingError for the result of a step on another table: an instant does not say whose it is."""
    from airflow_hudi_maint.core.storage.filesystem import plain_path

    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = as_object(name, value)
    theirs = value.get("base_path") if isinstance(value, Mapping) else None
    if isinstance(theirs, str) and plain_path(theirs).rstrip("/") != plain_path(base_path).rstrip("/"):
        raise InvalidSettingError(f"{name} is the result of a step on {theirs}, and this table is {base_path}")


def verify_settings(*, verify: object, verify_files: object, verify_keys: object) -> VerifySettings:
    """Read how a clustering is verified; what is not given has the core's default."""
    from airflow_hudi_maint.core.model.verification import DEFAULT_VERIFY_FILES, VerifyMode, VerifySettings

    mode: VerifyMode | None = _choice("verify", verify, VerifyMode)
    files = as_optional_int("verify_files", verify_files)
    return VerifySettings(
        mode=mode or VerifyMode.AUTO,
        max_files=DEFAULT_VERIFY_FILES if files is None else files,
        keys=not is_unset(verify_keys) and as_bool("verify_keys", verify_keys),
    )


def _number(name: str, given: object, of_file: str | None) -> int | None:
    return as_int(name, of_file if is_unset(given) else given) if of_file or not is_unset(given) else None


def _choice(name: str, value: object, kind: Any) -> Any:
    text = as_optional_text(name, value)
    if text is None:
        return None
    if text.lower() not in tuple(kind):
        raise InvalidSettingError(f"{name}={value!r} is unknown; known are {', '.join(kind)}")
    return kind(text.lower())


def _options(value: object) -> Mapping[str, str]:
    given = as_object("options", value)
    return {name: _option(name, one) for name, one in given.items()}


def _option(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | str):
        return str(value)
    raise InvalidSettingError(f"options.{name}={value!r} is no text, number or truth value")
