"""From Airflow's connections for Spark and for Livy to where jobs run. Their providers need not be installed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.secrets import secrets_in
from airflow_hudi_maint.hooks.arguments import as_object, check_names, is_unset

if TYPE_CHECKING:
    from airflow.sdk import Connection

_CONF_OF_EXTRA = {
    "queue": "spark.yarn.queue",
    "namespace": "spark.kubernetes.namespace",
    "principal": "spark.kerberos.principal",
    "keytab": "spark.kerberos.keytab",
}
_SPARK_EXTRAS = (*_CONF_OF_EXTRA, "deploy-mode", "spark-binary")
_DEPLOY_MODES = ("client", "cluster")
_LIVY_PORT = 8998
_LIVY_OPTIONS = (
    *("allow_redirects", "cert", "check_response", "max_redirects", "proxies", "proxy", "srv_lookup", "stream"),
    *("timeout", "trust_env", "verify", "verify_ssl"),
)
"""Extras that Airflow's HTTP provider, on which that for Livy stands, keeps to itself; any other is a header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkConnection:
    """What a connection of type ``spark`` says."""

    master: str
    deploy_mode: str = "client"
    binary: str = "spark-submit"
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def of(cls, connection: Connection) -> SparkConnection:
        """Read the fields that Airflow's Spark provider has.

        Raises InvalidSettingError for another type, a connection without a host, an extra that is unknown and a
        deploy-mode that is none.
        """
        name = f"Connection {connection.conn_id!r}"
        _check_type(connection, name=name, kind="spark")
        extra = _extra(connection, name=name)
        check_names(name, extra, known=_SPARK_EXTRAS)
        given = {key: str(value) for key, value in extra.items() if not is_unset(value)}
        mode = given.get("deploy-mode", "client")
        if mode not in _DEPLOY_MODES:
            raise InvalidSettingError(f"{name} has deploy-mode {mode!r}; known are {', '.join(_DEPLOY_MODES)}")
        return cls(
            master=_master(connection, name=name),
            deploy_mode=mode,
            binary=given.get("spark-binary", "spark-submit"),
            spark_conf={conf: given[key] for key, conf in _CONF_OF_EXTRA.items() if key in given},
            user=connection.login or "",
            password=connection.password or "",
        )

    def secrets(self) -> tuple[str, ...]:
        """The texts that must not show in logs."""
        return (self.password,) if self.password else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LivyConnection:
    """What a connection of type ``livy`` says: the root of its REST, who asks, and how.

    ``options`` are the extras that say how a connection is made (certificates, proxies, times), with the names that
    Airflow's HTTP provider has for them; the other extras are headers.
    """

    conn_id: str = ""
    root: str
    user: str = ""
    password: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, object] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, connection: Connection) -> LivyConnection:
        """Read the fields that Airflow's Livy provider has."""
        name = f"Connection {connection.conn_id!r}"
        _check_type(connection, name=name, kind="livy")
        host = (connection.host or "").rstrip("/")
        if not host:
            raise InvalidSettingError(f"{name} has no host, which is Livy's")
        if "://" in host:
            root = f"{host}:{connection.port}" if connection.port else host
        else:
            root = f"{connection.schema or 'http'}://{host}:{connection.port or _LIVY_PORT}"
        extra = _extra(connection, name=name)
        headers = {key: str(value) for key, value in extra.items() if key not in _LIVY_OPTIONS}
        return cls(
            conn_id=connection.conn_id,
            root=root,
            user=connection.login or "",
            password=connection.password or "",
            headers={"X-Requested-By": "airflow", **headers},
            options={key: value for key, value in extra.items() if key in _LIVY_OPTIONS},
        )

    def secrets(self) -> tuple[str, ...]:
        """The texts that must not show in logs."""
        return tuple(filter(None, (self.password, *secrets_in(self.headers), *secrets_in(self.options))))


def _master(connection: Connection, *, name: str) -> str:
    host = (connection.host or "").strip().rstrip("/")
    if not host:
        raise InvalidSettingError(f"{name} has no host: write the master there, such as yarn or spark://master:7077")
    if host == "yarn" and connection.port:
        raise InvalidSettingError(
            f"{name} has the master yarn and the port {connection.port}: leave the port out. Spark finds YARN by "
            "HADOOP_CONF_DIR, and its web address is the field rest_url of the hudi connection"
        )
    if "://" not in host and host not in ("yarn", "local") and not host.startswith("local["):
        host = f"spark://{host}"  # as a URI, spark://master:7077, leaves the host alone
    return f"{host}:{connection.port}" if connection.port else host


def _check_type(connection: Connection, *, name: str, kind: str) -> None:
    if connection.conn_type not in (None, "", kind):
        raise InvalidSettingError(f"{name} is of type {connection.conn_type!r}; expected type {kind!r}")


def _extra(connection: Connection, *, name: str) -> Mapping[str, object]:
    try:
        return as_object(name, json.loads(connection.extra or "{}"))
    except (ValueError, InvalidSettingError):
        raise InvalidSettingError(f"{name} has extras that are no JSON object") from None
