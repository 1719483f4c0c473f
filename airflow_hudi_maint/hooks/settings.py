"""What a connection of type ``hudi`` says, checked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.secrets import secrets_in, user_info
from airflow_hudi_maint.hooks.arguments import (
    as_exact_text,
    as_int,
    as_object,
    as_optional_memory,
    as_optional_text,
    as_texts,
    check_names,
    is_unset,
)

if TYPE_CHECKING:
    from airflow.sdk import Connection

ENGINES = ("local", "spark_submit", "livy")
_OBJECTS = ("storage_options", "spark_conf", "write_options")
_UNUSED = ("schema", "login", "password", "port")


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiConnectionSettings:
    """The fields of the connection form. None means the default of whatever uses the field.

    The objects that may hold credentials stay out of the ``repr``.
    """

    base_path: str | None = None
    storage_conn_id: str | None = None
    storage_options: Mapping[str, object] = field(default_factory=dict, repr=False)
    storage_concurrency: int | None = None
    documents_location: str | None = None
    timeline_zone: str | None = None
    engine: str = "local"
    spark_conn_id: str | None = None
    livy_conn_id: str | None = None
    livy_auth_type: str | None = None
    spark_home: str | None = None
    rest_url: str | None = None
    ui_url: str | None = None
    code_url: str | None = None
    bundle: str | None = None
    packages: tuple[str, ...] = ()
    repositories: tuple[str, ...] = field(default=(), repr=False)
    cache_dir: str | None = None
    work_dir: str | None = None
    master: str | None = None
    driver_memory: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    python: str | None = None
    java_home: str | None = None
    write_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, connection: Connection) -> HudiConnectionSettings:
        """Read a connection.

        Raises InvalidSettingError for a connection of another type, a field of Airflow's that means nothing here,
        extras that are no JSON object, a field that is unknown (with near matches) or of a wrong type. No message shows
        a value that may hold credentials.
        """
        where = f"Connection {connection.conn_id!r}"
        if connection.conn_type not in (None, "", "hudi"):
            raise InvalidSettingError(f"{where} is of type {connection.conn_type!r}; expected type 'hudi'")
        _refuse_unused(connection, where=where)
        extra = _extra(connection, where=where)
        known = {one.name for one in fields(cls)} - {"base_path"}
        check_names(where, extra, known=known)
        given = {name: value for name, value in extra.items() if not is_unset(value)}
        return cls(base_path=as_exact_text(f"{where} base path", connection.host), **_checked(given, where=where))

    def secrets(self) -> tuple[str, ...]:
        """The texts that must not show in logs.

        These are the values of settings whose names sound like a credential's, and who a repository is asked as.
        """
        return tuple(self._secrets())

    def _secrets(self) -> Iterator[str]:
        for options in (self.storage_options, self.spark_conf, self.write_options):
            yield from secrets_in(options)
        for address in self.repositories:
            yield from user_info(address)


def _refuse_unused(connection: Connection, *, where: str) -> None:
    """Refuse a field that nothing reads: whoever filled it in expects it to do something."""
    given = [name for name in _UNUSED if getattr(connection, name)]
    if given:
        raise InvalidSettingError(
            f"{where} sets {', '.join(given)}, which a connection of type 'hudi' does not use. The base path goes into "
            "host as a whole (in a URI percent-encoded: hudi://%2Flake%2Fflights), credentials into storage_options, "
            "or into a connection of their own that storage_conn_id names"
        )


def _extra(connection: Connection, *, where: str) -> Mapping[str, object]:
    text = connection.extra
    if is_unset(text):
        return {}
    try:
        value = json.loads(text or "")
    except ValueError as error:
        raise InvalidSettingError(f"{where} has extras that are no JSON ({error.args[0]})") from None
    return as_object(f"{where} extra", value)


def _checked(given: Mapping[str, object], *, where: str) -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for name, value in given.items():
        label = f"{where} field {name}"
        if name in _OBJECTS:
            checked[name] = _object(label, value, texts=name != "storage_options")
        elif name == "repositories":
            checked[name] = _addresses(label, value)
        elif name == "packages":
            checked[name] = as_texts(label, value)
        elif name == "storage_concurrency":
            checked[name] = as_int(label, value)
        elif name == "driver_memory":
            checked[name] = as_optional_memory(label, value)
        else:
            checked[name] = as_optional_text(label, value)
    if checked.get("engine", "local") not in ENGINES:
        raise InvalidSettingError(f"{where} names the engine {checked['engine']!r}; known are {', '.join(ENGINES)}")
    _refuse_other_engines(checked, where=where)
    return checked


_OF_ENGINE = {
    "spark_conn_id": ("spark_submit",),
    "livy_conn_id": ("livy",),
    "livy_auth_type": ("livy",),
    "spark_home": ("spark_submit",),
    "rest_url": ("spark_submit",),
    "ui_url": ("spark_submit",),
    "code_url": ("spark_submit", "livy"),
}


def _refuse_other_engines(checked: Mapping[str, Any], *, where: str) -> None:
    """Refuse a field of a cluster beside an engine that does not read it: its author expects jobs to run there."""
    engine = checked.get("engine", "local")
    for name, engines in _OF_ENGINE.items():
        if name in checked and engine not in engines:
            raise InvalidSettingError(
                f"{where} sets {name}, which the engine {engine!r} does not use; set engine to {' or '.join(engines)}"
            )
    if engine == "livy" and "livy_conn_id" not in checked:
        raise InvalidSettingError(f"{where} names the engine livy without livy_conn_id, the connection of type livy")


def _object(label: str, value: object, *, texts: bool) -> Mapping[str, object]:
    try:
        entries = as_object(label, value)
    except InvalidSettingError:
        # The text may hold credentials, so neither it nor the parser's error is shown.
        raise InvalidSettingError(f"{label} is no JSON object") from None
    return {key: _spark_text(one) for key, one in entries.items()} if texts else dict(entries)


def _addresses(label: str, value: object) -> tuple[str, ...]:
    try:
        return as_texts(label, value)
    except InvalidSettingError:
        # An address may hold a password.
        raise InvalidSettingError(f"{label} is no list of addresses") from None


def _spark_text(value: object) -> str:
    # Spark and Hudi read booleans in lower case.
    return str(value).lower() if isinstance(value, bool) else str(value)
