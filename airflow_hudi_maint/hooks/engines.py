"""From what the connections say to an engine; nothing is started yet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import InvalidSettingError

if TYPE_CHECKING:
    from airflow_hudi_maint.core.engines.base import Engine
    from airflow_hudi_maint.core.engines.cluster import JobExchange
    from airflow_hudi_maint.hooks.cluster_connection import LivyConnection, SparkConnection
    from airflow_hudi_maint.hooks.settings import HudiConnectionSettings


def local_engine(settings: HudiConnectionSettings, *, storage_options: Mapping[str, object]) -> Engine:
    """Return the engine that runs Spark in a process beside the task."""
    from airflow_hudi_maint.core.engines.local import LocalSparkEngine

    given = {**_shared(settings, storage_options=storage_options), "master": settings.master}
    return LocalSparkEngine(**_given(given))


def spark_submit_engine(
    settings: HudiConnectionSettings,
    connection: SparkConnection | None,
    *,
    storage_options: Mapping[str, object],
    exchange: Callable[[], JobExchange],
) -> Engine:
    """Return the engine that runs Spark on the user's cluster.

    Raises InvalidSettingError without a master, in neither connection.
    """
    from airflow_hudi_maint.core.engines.spark_submit import SparkSubmitEngine

    master = settings.master or (connection.master if connection else None)
    if master is None:
        msg = "The engine spark_submit needs a cluster: name a connection of type spark by spark_conn_id, or set master"
        raise InvalidSettingError(msg)
    given = {
        **_shared(settings, storage_options=storage_options),
        "master": master,
        "spark_home": Path(settings.spark_home) if settings.spark_home else None,
        "rest_url": settings.rest_url,
        "ui_url": settings.ui_url,
        "code_url": settings.code_url,
        "exchange": exchange,
    }
    if connection:
        given |= {
            "deploy_mode": connection.deploy_mode,
            "spark_binary": connection.binary,
            "spark_conf": {**connection.spark_conf, **settings.spark_conf},
            "user": connection.user,
            "password": connection.password,
        }
    return SparkSubmitEngine(**_given(given))


def livy_engine(
    settings: HudiConnectionSettings,
    connection: LivyConnection,
    *,
    storage_options: Mapping[str, object],
    exchange: Callable[[], JobExchange],
) -> Engine:
    """Return the engine that runs jobs as batches of Livy."""
    from airflow_hudi_maint.core.engines import livy
    from airflow_hudi_maint.core.engines.bundle import DEFAULT_BUNDLE
    from airflow_hudi_maint.core.engines.cluster_settings import ClusterSettings, JarsBy
    from airflow_hudi_maint.core.engines.java import find_java
    from airflow_hudi_maint.core.engines.pyspark_install import find_pyspark
    from airflow_hudi_maint.hooks.livy import livy_rest

    bundle = settings.bundle or DEFAULT_BUNDLE
    shared = _shared(settings, storage_options=storage_options)
    names = ("driver_memory", "spark_conf", "packages", "storage_options", "time_zone")
    made = ClusterSettings(
        master="livy",
        bundle=bundle,
        jars_by=JarsBy.RESOLVING,
        find_spark=lambda: (find_java(settings.java_home), find_pyspark(settings.python or sys.executable)),
        keeps_secrets=False,
        **_given({name: shared[name] for name in names}),
    )
    return livy.livy_engine(
        livy.LivyRest(rest=livy_rest(connection, auth_type=settings.livy_auth_type)),
        bundle=bundle,
        exchange=exchange,
        settings=made.of,
        code_url=settings.code_url,
    )


def _shared(settings: HudiConnectionSettings, *, storage_options: Mapping[str, object]) -> dict[str, Any]:
    return {
        "python": settings.python,
        "bundle": settings.bundle,
        "packages": settings.packages or None,
        "storage_options": storage_options or None,
        "spark_conf": settings.spark_conf or None,
        "java_home": settings.java_home,
        "driver_memory": settings.driver_memory,
        "time_zone": settings.timeline_zone,
        "cache_dir": Path(settings.cache_dir) if settings.cache_dir else None,
        "repositories": settings.repositories or None,
        "work_dir": Path(settings.work_dir) if settings.work_dir else None,
    }


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What the connection leaves open is the engine's default."""
    return {name: value for name, value in fields.items() if value is not None}
