"""Spark in a process on this machine: ``python jobs/NAME.py request.json report.json``, in a session of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.engines import process_group
from airflow_hudi_maint.core.engines.base import KILL_SECONDS, LOG_LINES
from airflow_hudi_maint.core.engines.bundle import DEFAULT_BUNDLE
from airflow_hudi_maint.core.engines.class_path import resolve_jars
from airflow_hudi_maint.core.engines.java import JavaInstallation, find_java
from airflow_hudi_maint.core.engines.job_code import JOBS
from airflow_hudi_maint.core.engines.local_handle import ENGINE, FOREIGN_SECONDS, WORK_PREFIX, LocalHandle, Machine
from airflow_hudi_maint.core.engines.maven import REPOSITORIES_VARIABLE
from airflow_hudi_maint.core.engines.process_group import ProcessId
from airflow_hudi_maint.core.engines.pyspark_install import find_pyspark, spark_at
from airflow_hudi_maint.core.engines.s3a import S3Access, is_on_s3, s3_access
from airflow_hudi_maint.core.engines.spark_settings import (
    LOG4J,
    is_local,
    properties_text,
    session_settings,
    spark_path,
)
from airflow_hudi_maint.core.errors import EngineKilledError, HudiMaintError, PendingActionError
from airflow_hudi_maint.core.model.document import JsonMapping
from airflow_hudi_maint.core.model.job import JobHandle, JobProgress, JobReport, JobRequest, JobStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PARENT_PID_VARIABLE = "AIRFLOW_HUDI_MAINT_PARENT_PID"

_REQUEST, _REPORT, _PROGRESS, _LOG = "request.json", "report.json", "progress.json", "job.log"
_PROPERTIES, _KILLED = "spark.properties", "killed"
_TAIL_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSparkEngine:
    """Runs jobs in processes beside this one.

    A job dies with the process that submitted it, so that a worker that is killed leaves no Spark behind.
    ``spark_conf`` may hold credentials: it reaches Spark through a file that only this user can read, and is not in
    the ``repr``. ``storage_options`` are what s3fs opens the table with: a table on S3 is opened by Spark with the same
    credentials, at the same place. ``packages`` are more jars of the class path.
    ``spark_submit`` is a program to start the job with, in the place of ``python``, and ``spark_home`` its
    installation. ``time_zone`` (an IANA name) is the zone that the job stamps instants in; None means this machine's,
    which has to be that of the table's other writers where the table does not say UTC.
    """

    python: str = sys.executable
    bundle: str = DEFAULT_BUNDLE
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    java_home: str | None = None
    driver_memory: str = "2g"
    master: str = "local[*]"
    cache_dir: Path | None = None
    repositories: Sequence[str] = field(default=(), repr=False)
    work_dir: Path | None = None
    time_zone: str | None = None
    packages: Sequence[str] = ()
    storage_options: Mapping[str, object] = field(default_factory=dict, repr=False)
    spark_home: Path | None = None
    spark_submit: str | None = None
    jobs_dir: Path = JOBS

    @property
    def name(self) -> str:
        """The engine's name in handles and messages."""
        return ENGINE

    @property
    def outlives(self) -> bool:
        """False: a job dies with the process that submitted it."""
        return False

    def submit(self, request: JobRequest) -> JobHandle:
        """Start the job's process; a first use also fetches the bundle.

        Raises:
            JavaNotFoundError: There is no Java that Spark 3.5 runs on.
            BundleError: The bundle does not resolve, or is for another Spark.
            InvalidSettingError: Spark cannot read the base path, or the Python has no pyspark.
        """
        request = replace(request, base_path=spark_path(request.base_path))
        java = find_java(self.java_home)
        work = _Work(path=Path(tempfile.mkdtemp(prefix=WORK_PREFIX, dir=self.work_dir)))  # mkdtemp's mode is 0700.
        try:
            settings = self._settings(request, java=java, work=work)
            process = self._start(request, settings=settings, java=java, work=work)
        except BaseException:
            work.remove()
            raise
        return JobHandle(engine=self.name, job_id=LocalHandle.of(process, work=work.path).to_job_id())

    def status(self, handle: JobHandle) -> JobStatus:
        """Say whether the job runs or how it ended; ``lost`` when it is gone without a trace.

        A job counts as running until its JVM is gone, too, even when its report is there. A job of another machine
        cannot be watched from here, but ends with the process that submitted it: after ten minutes it counts as lost,
        as does one whose handle this release cannot read.

        Raises:
            PendingActionError: The job was submitted on another machine, less than ten minutes ago.
        """
        job = LocalHandle.read(handle)
        if job is None:
            return JobStatus.LOST
        if not job.here:
            return _status_elsewhere(job)
        process, work = job.process, _Work(path=job.work)
        if process_group.alive(process):
            return JobStatus.RUNNING
        report = work.report()
        if report is not None and report.ok:
            return JobStatus.SUCCEEDED
        code = process_group.exit_code(process)
        # A job that is being killed may still report that it failed.
        if work.file(_KILLED).is_file() or (code is not None and code < 0):
            return JobStatus.KILLED
        return JobStatus.FAILED if report or code else JobStatus.LOST

    def progress(self, handle: JobHandle) -> JobProgress | None:
        """Return what the job last wrote about Spark's stages."""
        work = _work(handle)
        return None if work is None else work.progress()

    def report(self, handle: JobHandle) -> JobReport | None:
        """Return the job's own report."""
        work = _work(handle)
        return None if work is None else work.report()

    def log_tail(self, handle: JobHandle, *, lines: int = LOG_LINES) -> str:
        """Return the last lines of both outputs; a line of more than 256 KiB is cut at its start."""
        work = _work(handle)
        return "" if work is None else work.log_tail(lines=lines)

    def kill(self, handle: JobHandle, *, timeout_seconds: float = KILL_SECONDS) -> None:
        """End the job and its JVM: asked first, forced after 60 % of the time. A job of another machine is left alone.

        Raises:
            EngineKilledError: Something of it is still there when the time is up (a process that waits for a disk or a
                network share cannot be ended).
        """
        job = LocalHandle.read(handle)
        if job is None or not job.here or not process_group.alive(job.process):
            return
        _Work(path=job.work).mark_killed()
        if not process_group.end(job.process, timeout_seconds=timeout_seconds):
            raise EngineKilledError(f"Job {handle.job_id} did not end within {timeout_seconds:.0f} s of being killed.")

    def close(self, handle: JobHandle) -> None:
        """Remove the work directory, with log and report. Another machine's is left: the job may still write there."""
        job = LocalHandle.read(handle)
        if job is None or not job.here:
            return
        process_group.forget(job.process)
        _Work(path=job.work).remove()

    def _access(self, request: JobRequest) -> S3Access:
        if not is_on_s3(request.base_path):
            return S3Access()
        return s3_access(self.storage_options, spark_conf=self.spark_conf)

    def _settings(self, request: JobRequest, *, java: JavaInstallation, work: _Work) -> dict[str, str]:
        jars = resolve_jars(
            self.bundle,
            spark_path=request.base_path,
            packages=self.packages,
            spark_conf=self.spark_conf,
            java=java,
            pyspark=spark_at(self.spark_home) if self.spark_home else find_pyspark(self.python),
            cache_dir=self.cache_dir,
            repositories=self.repositories,
        )
        own = {"spark.sql.warehouse.dir": str(work.file("warehouse"))}
        return session_settings(
            master=self.master,
            jars=jars,
            driver_memory=self.driver_memory,
            application_name=request.application_name,
            given={**own, **self._access(request).settings, **self.spark_conf},
        )

    def _start(
        self, request: JobRequest, *, settings: Mapping[str, str], java: JavaInstallation, work: _Work
    ) -> ProcessId:
        work.write(_REQUEST, json.dumps(request.to_json()))
        work.write(_PROPERTIES, properties_text(settings))
        work.write("log4j2.properties", LOG4J)
        work.write(_LOG, "")
        script = self.jobs_dir / f"{request.kind.value}.py"
        starter = [self.python]
        if self.spark_submit:
            starter = [self.spark_submit, "--properties-file", str(work.file(_PROPERTIES))]
        return process_group.start(
            [*starter, str(script), str(work.file(_REQUEST)), str(work.file(_REPORT))],
            env={**self._environment(java=java, work=work), **self._access(request).environment},
            cwd=work.path,
            output=work.file(_LOG),
            marker=str(work.path),
        )

    def _environment(self, *, java: JavaInstallation, work: _Work) -> dict[str, str]:
        """Return this process's environment without another Spark's variables and without what Airflow keeps there.

        Its configuration holds the metadata database's password, connections and variables hold others', and the
        addresses of repositories may: no Spark job needs them.
        """
        unwanted = re.compile(rf"SPARK_|PYSPARK_|AIRFLOW__|AIRFLOW_CONN_|AIRFLOW_VAR_|{REPOSITORIES_VARIABLE}$")
        environment = {name: value for name, value in os.environ.items() if not unwanted.match(name)}
        environment.update(
            JAVA_HOME=str(java.home),
            PYSPARK_PYTHON=self.python,
            PYSPARK_DRIVER_PYTHON=self.python,
            PYSPARK_SUBMIT_ARGS=f"--properties-file {shlex.quote(str(work.file(_PROPERTIES)))} pyspark-shell",
            # Spark's log settings are looked for here; a spark-defaults.conf of another installation is not.
            SPARK_CONF_DIR=str(work.path),
            # Spilled data goes with the work directory; the setting spark.local.dir alone makes Spark warn.
            SPARK_LOCAL_DIRS=self.spark_conf.get("spark.local.dir") or str(work.file("scratch")),
            PYTHONUNBUFFERED="1",
        )
        if self.spark_home:
            environment["SPARK_HOME"] = str(self.spark_home)
            del environment["SPARK_CONF_DIR"]  # The installation's own spark-env.sh may be needed to reach its cluster.
        environment[PARENT_PID_VARIABLE] = str(os.getpid())
        if is_local(self.master):
            environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        if self.time_zone:
            environment["TZ"] = self.time_zone  # the JVM's default zone follows it
        return environment


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """The directory of one job."""

    path: Path

    def file(self, name: str) -> Path:
        return self.path / name

    def write(self, name: str, text: str) -> None:
        """Write a file that only this user can read."""
        descriptor = os.open(self.file(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)

    def mark_killed(self) -> None:
        """Note that the end to come was wanted; a directory that is gone needs no note."""
        if self.path.is_dir():
            self.file(_KILLED).touch()

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def report(self) -> JobReport | None:
        document = self._document(_REPORT)
        return None if document is None else JobReport.from_json(document)

    def progress(self) -> JobProgress | None:
        document = self._document(_PROGRESS)
        try:
            return None if document is None else JobProgress.from_json(document)
        except HudiMaintError:  # It is only shown: a strange one is no progress.
            return None

    def log_tail(self, *, lines: int) -> str:
        try:
            with self.file(_LOG).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _TAIL_BYTES))
                text = file.read().decode(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:]) if lines > 0 else ""

    def _document(self, name: str) -> JsonMapping | None:
        """Read a file that the job replaces as a whole: there is never half of one."""
        try:
            document = json.loads(self.file(name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return None
        return document if isinstance(document, dict) else None


def _work(handle: JobHandle) -> _Work | None:
    job = LocalHandle.read(handle)
    return None if job is None else _Work(path=job.work)


def _status_elsewhere(job: LocalHandle) -> JobStatus:
    """Judge a job that cannot be seen from here by its age; a clock that is far ahead does not hold it up for ever."""
    if abs(job.seconds) >= FOREIGN_SECONDS:
        return JobStatus.LOST
    here, there = Machine.this(), job.machine
    which = f"host {there.host!r}" + (
        ", before it or its container was started anew" if there.host == here.host else ""
    )
    raise PendingActionError(
        f"A Spark job (process {job.process.pid}) was submitted {job.seconds:.0f} s ago on {which}, and whether it "
        f"still runs cannot be seen from host {here.host!r}. Try again: {FOREIGN_SECONDS:.0f} s after its start it is "
        "taken for lost."
    )
