"""Spark on the user's cluster: the driver beside this process (client mode), or on the cluster (cluster mode)."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from airflow_hudi_maint.core.engines.base import KILL_SECONDS, LOG_LINES, Engine
from airflow_hudi_maint.core.engines.bundle import DEFAULT_BUNDLE
from airflow_hudi_maint.core.engines.cluster import ClusterEngine, ClusterManager, JobExchange
from airflow_hudi_maint.core.engines.cluster_settings import ClusterSettings, JarsBy
from airflow_hudi_maint.core.engines.java import find_java
from airflow_hudi_maint.core.engines.job_code import JOBS
from airflow_hudi_maint.core.engines.local import LocalSparkEngine
from airflow_hudi_maint.core.engines.local_handle import ENGINE as LOCAL
from airflow_hudi_maint.core.engines.pyspark_install import PysparkInstallation, find_pyspark, spark_at
from airflow_hudi_maint.core.engines.rest_client import addresses, clients
from airflow_hudi_maint.core.engines.standalone_rest import StandaloneCluster
from airflow_hudi_maint.core.engines.submit_command import SubmitCommand
from airflow_hudi_maint.core.engines.yarn_rest import YarnCluster
from airflow_hudi_maint.core.errors import EngineError, InvalidSettingError, PendingActionError

if TYPE_CHECKING:
    from airflow_hudi_maint.core.model.job import JobHandle, JobProgress, JobReport, JobRequest, JobStatus

ENGINE = "spark_submit"
DeployMode = Literal["client", "cluster"]

_CONNECT_SECONDS = 5.0
_MASTER_PORT = 7077
_YARN = "YARN's resource manager"
_ENTRY = re.compile(r"\s*([^\s=:#!][^\s=:]*)\s*[=:\s]\s*(.*?)\s*")
_OWN_SETTINGS = ("spark.master", "spark.app.name", "spark.submit.deployMode")
"""What the connection says, whatever stands in ``spark-defaults.conf``."""


@dataclass(frozen=True, kw_only=True)
class SparkSubmitEngine:
    """Runs jobs on any master that ``spark-submit`` knows.

    In client mode the driver is a process of this machine: it ends with the process that submitted it, as the local
    engine's does. In cluster mode it goes on by itself; ``spark://`` and ``yarn`` have that here. ``exchange`` opens
    the folder in which such a job and its caller meet. ``rest_url`` is that of a standalone master's REST server or of
    YARN's resource manager, ``ui_url`` that of the master's web page; each may be several addresses, separated by
    commas, of which one is in charge. ``spark_home`` is an installation of Spark, with
    its ``spark-defaults.conf``; None takes that of ``python``. ``code_url`` is where the cluster has ``jobs.zip``.
    """

    master: str
    deploy_mode: DeployMode = "client"
    bundle: str = DEFAULT_BUNDLE
    python: str | None = None
    spark_home: Path | None = None
    spark_binary: str = "spark-submit"
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    packages: Sequence[str] = ()
    storage_options: Mapping[str, object] = field(default_factory=dict, repr=False)
    java_home: str | None = None
    driver_memory: str = "2g"
    cache_dir: Path | None = None
    repositories: Sequence[str] = field(default=(), repr=False)
    work_dir: Path | None = None
    time_zone: str | None = None
    rest_url: str | None = None
    ui_url: str | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    code_url: str | None = None
    jobs_dir: Path = JOBS
    exchange: Callable[[], JobExchange] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The engine's name in messages, and in the handles of cluster mode."""
        return ENGINE

    @property
    def outlives(self) -> bool:
        """True in cluster mode."""
        return self.deploy_mode == "cluster"

    def submit(self, request: JobRequest) -> JobHandle:
        """Start the job; one of this name that runs on the cluster already is attached to (cluster mode).

        Raises:
            EngineError: The cluster is down, or refuses the application.
            PendingActionError: In client mode, an application of this name is live: its driver is another worker's.
            InvalidSettingError, BundleError, JavaNotFoundError: As the local engine.
        """
        if self.deploy_mode == "cluster":
            return self._cluster.submit(request)
        self._look_for_master()
        self._refuse_beside_a_live_one(request)
        return self._local.submit(request)

    def status(self, handle: JobHandle) -> JobStatus:
        """Say whether the job runs or how it ended."""
        return self._engine_of(handle).status(handle)

    def progress(self, handle: JobHandle) -> JobProgress | None:
        """Return what the job last wrote about Spark's stages."""
        return self._engine_of(handle).progress(handle)

    def report(self, handle: JobHandle) -> JobReport | None:
        """Return the job's own report."""
        return self._engine_of(handle).report(handle)

    def log_tail(self, handle: JobHandle, *, lines: int = LOG_LINES) -> str:
        """Return the last lines of the driver's log, as far as it can be had."""
        return self._engine_of(handle).log_tail(handle, lines=lines)

    def kill(self, handle: JobHandle, *, timeout_seconds: float = KILL_SECONDS) -> None:
        """End the whole job within this time."""
        self._engine_of(handle).kill(handle, timeout_seconds=timeout_seconds)

    def close(self, handle: JobHandle) -> None:
        """Remove what the job left."""
        self._engine_of(handle).close(handle)

    def _engine_of(self, handle: JobHandle) -> Engine:
        """Return the engine that wrote a handle: the mode may have been changed since."""
        return self._local if handle.engine == LOCAL else self._cluster

    @cached_property
    def _local(self) -> LocalSparkEngine:
        home = self._spark.home if self.spark_home else None
        return LocalSparkEngine(
            python=self.python or sys.executable,
            bundle=self.bundle,
            spark_conf={**self._defaults, **self.spark_conf},
            java_home=self.java_home,
            driver_memory=self.driver_memory,
            master=self.master,
            cache_dir=self.cache_dir,
            repositories=self.repositories,
            work_dir=self.work_dir,
            time_zone=self.time_zone,
            packages=self.packages,
            storage_options=self.storage_options,
            spark_home=home,
            spark_submit=self._binary,
            jobs_dir=self.jobs_dir,
        )

    @cached_property
    def _cluster(self) -> ClusterEngine:
        if self.exchange is None:
            msg = "Cluster mode needs a folder of the table in which the job leaves its report, and none was given"
            raise InvalidSettingError(msg)
        is_yarn = self.master == "yarn"
        settings = ClusterSettings(
            master=self.master,
            bundle=self.bundle,
            jars_by=JarsBy.UPLOAD if is_yarn else JarsBy.PATH,
            find_spark=lambda: (find_java(self.java_home), self._spark),
            driver_memory=self.driver_memory,
            spark_conf={
                **self._defaults,
                **({"spark.pyspark.python": self.python} if self.python else {}),
                **self.spark_conf,
            },
            packages=self.packages,
            storage_options=self.storage_options,
            cache_dir=self.cache_dir,
            repositories=self.repositories,
            time_zone=self.time_zone,
        )
        return ClusterEngine(
            name=ENGINE,
            bundle=self.bundle,
            manager=self._yarn() if is_yarn else self._standalone(),
            exchange=self.exchange,
            settings=settings.of,
            code_url=self.code_url,
            jobs_dir=self.jobs_dir,
        )

    def _standalone(self) -> ClusterManager:
        if not self.master.startswith("spark://"):
            raise InvalidSettingError(
                f"Cluster mode is there for masters spark://… and yarn, and the master is {self.master!r}: "
                "use deploy_mode client"
            )
        return StandaloneCluster.of(self.master, rest_url=self.rest_url, ui_url=self.ui_url)

    def _yarn(self) -> ClusterManager:
        if not self.rest_url:
            raise InvalidSettingError(
                "Cluster mode on YARN needs rest_url, the web address of the resource manager "
                "(yarn.resourcemanager.webapp.address, for example http://rm.example:8088)"
            )
        # A name alone is for a resource manager that believes it; a password is for a gateway before it.
        user = self.user if self.password else ""
        java = find_java(self.java_home)
        environment = {"JAVA_HOME": str(java.home), "SPARK_HOME": str(self._spark.home)}
        return YarnCluster(
            managers=clients(addresses(self.rest_url), what=_YARN, user=user, password=self.password),
            user_name="" if self.password else self.user,
            command=SubmitCommand(path=self._binary, environment=environment),
            properties=self._defaults,
        )

    @cached_property
    def _spark(self) -> PysparkInstallation:
        if self.spark_home:
            return spark_at(self.spark_home)
        # In cluster mode ``python`` is the cluster's and need not be on this machine.
        here = None if self.outlives else self.python
        return find_pyspark(here or sys.executable)

    @property
    def _binary(self) -> str:
        """The program to run: a path, or a name in the installation's ``bin``, or else on the PATH."""
        if "/" in self.spark_binary:
            return self.spark_binary
        own = self._spark.home / "bin" / self.spark_binary
        return str(own) if own.is_file() else self.spark_binary

    @cached_property
    def _defaults(self) -> dict[str, str]:
        """What ``spark-defaults.conf`` says: spark-submit reads it no more when it is given a file of settings."""
        if not self.spark_home:
            return {}
        folder = os.environ.get("SPARK_CONF_DIR")
        path = (Path(folder) if folder else self.spark_home / "conf") / "spark-defaults.conf"
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        entries = filter(None, map(_ENTRY.fullmatch, lines))
        return {entry[1]: entry[2] for entry in entries if entry[2] and entry[1] not in _OWN_SETTINGS}

    def _look_for_master(self) -> None:
        """Raise EngineError at once where no master listens: Spark itself would try for a minute."""
        if not self.master.startswith("spark://"):
            return
        problems = []
        for one in self.master.removeprefix("spark://").split(","):
            host, _, port = one.rpartition(":") if ":" in one else (one, "", "")
            try:
                socket.create_connection((host, int(port or _MASTER_PORT)), timeout=_CONNECT_SECONDS).close()
            except (OSError, ValueError) as error:
                problems.append(f"{one}: {error}")
            else:
                return
        raise EngineError(f"The cluster {self.master} does not answer ({'; '.join(problems)}). Is its master running?")

    def _refuse_beside_a_live_one(self, request: JobRequest) -> None:
        """Raise PendingActionError where an application of this name is live; a page that is closed shows none."""
        if not self.master.startswith("spark://"):
            return
        try:
            live = StandaloneCluster.of(self.master, ui_url=self.ui_url).find(request.application_name)
        except EngineError:  # The page may be closed to this machine: in client mode it is a second look, no more.
            return
        if live:
            raise PendingActionError(
                f"Application {live} of the name {request.application_name} still runs on {self.master}. Its driver "
                "ends with the worker that submitted it: try again"
            )
