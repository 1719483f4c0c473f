"""From a connection that Airflow already has for a storage to what fsspec opens that storage with.

The providers of those connections need not be installed: only what the connection holds is read. What would need their
code (assuming a role, asking a secret manager) is refused, and never left out without a word.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.secrets import secrets_in
from airflow_hudi_maint.hooks.arguments import as_bool, as_object, is_unset

if TYPE_CHECKING:
    from airflow.sdk import Connection

Options = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConnection:
    """What a connection says of a storage: the schemes of the URLs that it serves, and options for fsspec.

    The options hold credentials and stay out of the ``repr``, which is this class's own.
    """

    name: str
    schemes: tuple[str, ...]
    options: Mapping[str, object]

    def __repr__(self) -> str:
        return f"StorageConnection({self.name}, schemes={self.schemes!r})"

    @classmethod
    def of(cls, connection: Connection) -> StorageConnection:
        """Read a connection of type aws, google_cloud_platform, wasb, adls or webhdfs.

        Raises InvalidSettingError for another type, for extras that are no JSON object, and for a field that asks for
        more than options can say. No message shows a value.
        """
        name = f"Connection {connection.conn_id!r}"
        kind = connection.conn_type or ""
        if kind not in _KINDS:
            raise InvalidSettingError(
                f"{name} is of type {kind!r}, from which no storage is opened; storage_conn_id takes one of type "
                f"{', '.join(_KINDS)}. For another storage, give storage_options as fsspec documents them"
            )
        schemes, read = _KINDS[kind]
        given = _Fields(name=name, connection=connection, extra=_extra(connection, name=name))
        return cls(name=name, schemes=schemes, options=read(given))

    def secrets(self) -> Iterator[str]:
        """The texts that must not show in logs."""
        return secrets_in(self.options)

    def check_serves(self, *urls: str | None) -> None:
        """Raise InvalidSettingError unless one of the URLs is of a scheme that this connection serves."""
        schemes = [url.partition("://")[0] if "://" in url else "file" for url in urls if url]
        if not set(schemes) & set(self.schemes):
            raise InvalidSettingError(
                f"{self.name} serves {', '.join(f'{scheme}://' for scheme in self.schemes)} and the base path is of "
                f"scheme {schemes[0] if schemes else 'file'!r}; correct storage_conn_id or the base path"
            )


def merged(options: Mapping[str, object], *, over: Mapping[str, object]) -> Options:
    """Options with those of ``over`` where both say something; objects inside are merged alike.

    >>> merged({"key": "a"}, over={"key": "b", "client_kwargs": {"region_name": "eu-central-1"}})
    {'key': 'a', 'client_kwargs': {'region_name': 'eu-central-1'}}
    """
    result = dict(over)
    for name, value in options.items():
        below = result.get(name)
        result[name] = merged(value, over=below) if isinstance(value, Mapping) and isinstance(below, Mapping) else value
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    """The fields of a connection, by the names that its provider gives them in the extras."""

    name: str
    connection: Connection
    extra: Mapping[str, object]

    def text(self, *names: str) -> str | None:
        """The first of these extras that is given; None without any."""
        for name in names:
            value = self.extra.get(name)
            if not is_unset(value):
                if not isinstance(value, str):
                    raise InvalidSettingError(f"{self.name} field {name} is no text")
                return value
        return None

    def object(self, name: str) -> Options:
        """An extra that is a JSON object, also as text; empty when not given."""
        try:
            return dict(as_object(f"{self.name} field {name}", self.extra.get(name)))
        except InvalidSettingError:
            # It may hold credentials, so neither it nor the parser's error is shown.
            raise InvalidSettingError(f"{self.name} field {name} is no JSON object") from None

    def refuse(self, names: Iterable[str], *, instead: str) -> None:
        given = [name for name in names if not is_unset(self.extra.get(name))]
        if given:
            raise InvalidSettingError(f"{self.name} sets {', '.join(given)}, which is not used here; {instead}")


def _extra(connection: Connection, *, name: str) -> Mapping[str, object]:
    try:
        return as_object(name, json.loads(connection.extra or "{}"))
    except (ValueError, InvalidSettingError):
        raise InvalidSettingError(f"{name} has extras that are no JSON object") from None


def _aws(fields: _Fields) -> Options:
    fields.refuse(
        ("role_arn", "assume_role_method", "assume_role_kwargs", "credential_source"),
        instead="give keys, a profile_name, or nothing, so that the worker's own role counts",
    )
    service = fields.object("service_config").get("s3")
    service = service if isinstance(service, Mapping) else {}
    client: Options = {"region_name": fields.text("region_name")}
    if not is_unset(fields.extra.get("verify")):
        verify = fields.extra["verify"]
        is_switch = isinstance(verify, bool) or str(verify).lower() in ("true", "false")
        client["verify"] = as_bool(f"{fields.name} field verify", verify) if is_switch else verify
    endpoint = service.get("endpoint_url") or fields.text("endpoint_url", "host")
    return _given(
        key=fields.connection.login or fields.text("aws_access_key_id"),
        secret=fields.connection.password or fields.text("aws_secret_access_key"),
        token=fields.text("aws_session_token", "session_token"),
        profile=fields.text("profile_name"),
        endpoint_url=endpoint,
        client_kwargs=_given(**client),
        config_kwargs=fields.object("config_kwargs"),
    )


def _google(fields: _Fields) -> Options:
    fields.refuse(
        ("key_secret_name", "impersonation_chain", "credential_config_file"),
        instead="give keyfile_dict or key_path, or nothing, so that the worker's own account counts",
    )
    keyfile = fields.object("keyfile_dict")
    return _given(
        token=keyfile or fields.text("key_path", "keyfile_path") or "google_default",
        project=fields.text("project", "project_id"),
    )


def _azure(fields: _Fields) -> Options:
    tenant = fields.text("tenant_id")
    login, password = fields.connection.login, fields.connection.password
    account = fields.text("account_name") or _account_of(fields.connection.host) or (None if tenant else login)
    if tenant:  # login and password are an application's
        return _given(account_name=account, tenant_id=tenant, client_id=login, client_secret=password)
    return _given(
        account_name=account,
        account_key=password,
        connection_string=fields.text("connection_string"),
        sas_token=fields.text("sas_token"),
    )


def _account_of(host: str | None) -> str | None:
    """The account in ``https://lake.blob.core.windows.net``, or ``lake`` itself."""
    return (host or "").rpartition("//")[2].partition(".")[0] or None


def _hdfs(fields: _Fields) -> Options:
    fields.refuse(("cookies", "headers", "proxies"), instead="give storage_options as fsspec's WebHDFS takes them")
    cert, key = fields.text("cert"), fields.text("key")
    verify = fields.extra.get("verify")
    is_kerberos = str(fields.extra.get("kerberos", "")).lower() == "true"
    return _given(
        user=None if is_kerberos else fields.connection.login,
        password=None if is_kerberos else fields.connection.password,
        token=fields.text("token", "delegation_token"),
        kerberos=is_kerberos or None,
        use_https=str(fields.extra.get("use_ssl", "")).lower() == "true" or None,
        session_cert=(cert, key) if cert and key else cert,
        session_verify=None if is_unset(verify) else verify,
    )


def _given(**options: object) -> Options:
    return {name: value for name, value in options.items() if value not in (None, "", {})}


_KINDS: Mapping[str, tuple[tuple[str, ...], Callable[[_Fields], Options]]] = {
    "aws": (("s3", "s3a"), _aws),
    "google_cloud_platform": (("gs", "gcs"), _google),
    "wasb": (("abfs", "abfss", "az"), _azure),
    "adls": (("abfs", "abfss", "az"), _azure),
    "webhdfs": (("webhdfs", "webHDFS"), _hdfs),
}
