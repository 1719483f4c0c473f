"""Spark's settings of a job whose driver runs on a cluster: jars by where they lie, secrets apart from the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.engines.bundle import parse_coordinate
from airflow_hudi_maint.core.engines.class_path import resolve_jars
from airflow_hudi_maint.core.engines.s3a import is_on_s3, s3_access
from airflow_hudi_maint.core.engines.spark_settings import CLASS_PATH, session_settings
from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.secrets import secrets_in

if TYPE_CHECKING:
    from airflow_hudi_maint.core.engines.java import JavaInstallation
    from airflow_hudi_maint.core.engines.pyspark_install import PysparkInstallation
    from airflow_hudi_maint.core.model.job import JobRequest

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_EXECUTOR_CLASS_PATH = "spark.executor.extraClassPath"
_ON_EACH_NODE = "local:"


class JarsBy(StrEnum):
    """How the jars of this machine come to the cluster."""

    PATH = "path"
    """They lie at the same path on each node (Spark's own manager ships nothing to a driver)."""
    UPLOAD = "upload"
    """spark-submit uploads them (YARN), to the working folder of driver and executors."""
    RESOLVING = "resolving"
    """Coordinates are resolved on the cluster's side (Livy)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Makes the settings of each job. ``find_spark`` gives Java and Spark of this machine, to fetch jars with.

    ``keeps_secrets`` False leaves out what the storage options have of credentials: the cluster has its own.
    """

    master: str
    bundle: str
    jars_by: JarsBy
    find_spark: Callable[[], tuple[JavaInstallation, PysparkInstallation]]
    driver_memory: str = "2g"
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    packages: Sequence[str] = ()
    storage_options: Mapping[str, object] = field(default_factory=dict, repr=False)
    cache_dir: Path | None = None
    repositories: Sequence[str] = field(default=(), repr=False)
    time_zone: str | None = None
    keeps_secrets: bool = True

    def of(self, request: JobRequest) -> tuple[dict[str, str], dict[str, str]]:
        """Return what may be seen and, apart from it, what holds a secret.

        Raises:
            BundleError: A jar does not resolve here.
            InvalidSettingError: A profile of this machine was named for a storage that the cluster reads.
        """
        settings = session_settings(
            master=self.master,
            jars=(),
            driver_memory=self.driver_memory,
            application_name=request.application_name,
            given={**self._access(request.base_path), **self.spark_conf},
        )
        for name in ("spark.jars", CLASS_PATH):
            if not settings.get(name):
                settings.pop(name, None)
        self._add_jars(settings, request.base_path)
        if self.time_zone:
            append(settings, _JAVA_OPTIONS, f"-Duser.timezone={self.time_zone}", separator=" ")
        secret = {name for name, value in settings.items() if any(secrets_in({name: value}))}
        return (
            {name: value for name, value in settings.items() if name not in secret},
            {name: settings[name] for name in secret},
        )

    def _access(self, path: str) -> dict[str, str]:
        if not is_on_s3(path):
            return {}
        access = s3_access(self.storage_options, spark_conf=self.spark_conf)
        if not self.keeps_secrets:
            credentials = ("access.key", "secret.key", "session.token", "credentials.provider")
            return {name: value for name, value in access.settings.items() if not name.endswith(credentials)}
        if access.environment:
            raise InvalidSettingError(
                "The storage is opened with a profile of this machine, which a driver on a cluster does not have; "
                "give keys, or rely on the role of the cluster's machines"
            )
        return dict(access.settings)

    def _add_jars(self, settings: dict[str, str], path: str) -> None:
        wanted = (self.bundle, *self.packages)
        there = [one for one in wanted if "://" in one]
        on_nodes = [one.removeprefix(_ON_EACH_NODE) for one in wanted if one.startswith(_ON_EACH_NODE)]
        here = [one for one in wanted if "://" not in one and not one.startswith(_ON_EACH_NODE)]
        if self.jars_by is JarsBy.RESOLVING:
            coordinates = [one for one in here if parse_coordinate(one)]
            on_nodes += [one for one in here if one not in coordinates]
            append(settings, "spark.jars.packages", *coordinates, separator=",")
            here = []
        append(settings, "spark.jars", *there, separator=",")
        for name in (CLASS_PATH, _EXECUTOR_CLASS_PATH):
            append(settings, name, *on_nodes, separator=":")
        if here:
            self._add_own_jars(settings, path, here=here)

    def _add_own_jars(self, settings: dict[str, str], path: str, *, here: Sequence[str]) -> None:
        java, pyspark = self.find_spark()
        jars = resolve_jars(
            here[0],
            spark_path=path,
            packages=here[1:],
            spark_conf=settings,
            java=java,
            pyspark=pyspark,
            cache_dir=self.cache_dir,
            repositories=self.repositories,
        )
        if self.jars_by is JarsBy.UPLOAD:
            append(settings, "spark.jars", *map(str, jars), separator=",")
        names = [jar.name if self.jars_by is JarsBy.UPLOAD else str(jar) for jar in jars]
        for name in (CLASS_PATH, _EXECUTOR_CLASS_PATH):
            append(settings, name, *names, separator=":")


def append(settings: dict[str, str], name: str, *values: str, separator: str) -> None:
    """Put values before what a setting that is a list has already."""
    parts = dict.fromkeys((*values, *filter(None, settings.get(name, "").split(separator))))
    if parts:
        settings[name] = separator.join(parts)
