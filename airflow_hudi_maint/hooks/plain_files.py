"""From the arguments of an operator, sensor or trigger to an open directory of plain files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import amask_secret, mask_secret

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.secrets import secrets_in
from airflow_hudi_maint.hooks.arguments import (
    as_bool,
    as_exact_text,
    as_object,
    as_optional_int,
    as_optional_text,
    as_seconds,
    as_texts,
    check_names,
    is_unset,
)

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from airflow_hudi_maint.core.maintenance import MergeWorkspace
    from airflow_hudi_maint.core.model.merge_settings import MergeSettings
    from airflow_hudi_maint.hooks.storage_connection import Options

_NUMBERS = (
    "target_file_bytes", "small_file_bytes", "min_input_files", "max_groups", "max_bytes", "trash_days",
    "parallel_groups",
)  # fmt: skip
_LISTS = ("formats", "include", "exclude")
_SWITCHES = ("recursive", "keep_order")
_TEXTS = ("on_unreadable", "csv_header", "csv_delimiter", "csv_escape", "encoding")
_EXACT = ("csv_quote",)
MERGE_SETTINGS = (*_NUMBERS, "min_age_seconds", *_LISTS, *_SWITCHES, *_TEXTS, *_EXACT)
"""Every name that the settings of a merge have."""


def merge_settings(value: object, **given: object) -> MergeSettings:
    """Read the settings of a merge: a mapping, or JSON of one, and over it what is given by name.

    Raises InvalidSettingError for an unknown name and for a value of the wrong type.
    """
    from airflow_hudi_maint.core.model.merge_settings import MergeSettings

    settings: dict[str, object] = dict(as_object("settings", value))
    check_names("settings", settings, known=MERGE_SETTINGS)
    settings |= {name: one for name, one in given.items() if not is_unset(one)}
    read: dict[str, Any] = {name: _read(name, one) for name, one in settings.items() if one is not None}
    return MergeSettings(**{name: one for name, one in read.items() if one is not None})


def _read(name: str, value: object) -> object:
    if name in _NUMBERS:
        return as_optional_int(name, value)
    if name == "min_age_seconds":
        return int(as_seconds(name, value))
    if name in _LISTS:
        return as_texts(name, value)
    if name in _SWITCHES:
        return as_bool(name, value)
    return value if name in _EXACT else as_optional_text(name, value)


def open_plain_directory(
    directory: object,
    *,
    storage_options: Mapping[str, object] | None = None,
    documents_location: str | None = None,
    log: Callable[[str], None] | None = None,
) -> MergeWorkspace:
    """Open a directory with what :func:`plain_storage_options` returned.

    Raises InvalidSettingError without a directory, and UnsupportedTableError inside a table.
    """
    from airflow_hudi_maint.core.maintenance import open_merge_workspace

    return open_merge_workspace(
        _path(directory),
        storage_options=storage_options or None,
        documents_location=as_exact_text("documents_location", documents_location),
        log=log,
    )


def plain_storage_options(directory: object, *, storage_conn_id: object, storage_options: object) -> Options:
    """What fsspec is given: the credentials of a connection, and options over those; masked in logs from then on."""
    name = as_exact_text("storage_conn_id", storage_conn_id)
    try:
        connection = BaseHook.get_connection(name) if name else None
    except AirflowNotFoundException:
        raise _no_connection(name) from None
    options = _options(directory, connection=connection, storage_options=storage_options)
    for secret in secrets_in(options):
        mask_secret(secret)
    return options


async def aplain_storage_options(directory: object, *, storage_conn_id: object, storage_options: object) -> Options:
    """The same, without blocking an event loop."""
    name = as_exact_text("storage_conn_id", storage_conn_id)
    try:
        connection = await BaseHook.aget_connection(name) if name else None
    except AirflowNotFoundException:
        raise _no_connection(name) from None
    options = _options(directory, connection=connection, storage_options=storage_options)
    for secret in secrets_in(options):
        await amask_secret(secret)
    return options


def _options(directory: object, *, connection: Connection | None, storage_options: object) -> Options:
    from airflow_hudi_maint.hooks.storage_connection import StorageConnection, merged

    options = dict(as_object("storage_options", storage_options))
    if connection is None:
        return options
    storage = StorageConnection.of(connection)
    storage.check_serves(_path(directory))
    return merged(options, over=storage.options)


def _path(directory: object) -> str:
    path = as_exact_text("directory", directory)
    if not path:
        raise InvalidSettingError("No directory: give directory, a path or URL such as 's3://lake/landing/orders'")
    return path


def _no_connection(name: str | None) -> InvalidSettingError:
    return InvalidSettingError(f"There is no connection {name!r}: make it, or correct storage_conn_id")
