"""Jobs whose driver runs on a cluster: what every manager of one has in common.

A job and its caller meet in a folder of the table's own storage, ``.hoodie/.airflow_hudi_maint/jobs/NAME/KIND``: the
caller puts its claim and the submission's id there, the job its progress and its report. The claim is a fence: a job
whose claim is no longer the one in the folder refuses to touch the table, so that a driver that was lost on its way and
starts late does no harm beside the one that was submitted after it.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from airflow_hudi_maint.core.engines.base import KILL_SECONDS, LOG_LINES
from airflow_hudi_maint.core.engines.job_code import JOBS, START_SCRIPT, CodeAddress, JobCode, packed_jobs
from airflow_hudi_maint.core.engines.spark_settings import spark_path
from airflow_hudi_maint.core.engines.waiting import wait_until
from airflow_hudi_maint.core.errors import EngineKilledError, HudiMaintError, InvalidSettingError, PendingActionError
from airflow_hudi_maint.core.model.document import JsonMapping
from airflow_hudi_maint.core.model.job import JobHandle, JobProgress, JobReport, JobRequest, JobStatus

CLAIM, SUBMISSION, REPORT, PROGRESS = "claim.json", "submission.json", "report.json", "progress.json"
_FILES = (REPORT, PROGRESS, SUBMISSION)
_VERSION = 1
_NAME_LENGTH = 160
"""With what is added, well within the 255 bytes that file systems take for a name."""


class JobExchange(Protocol):
    """A folder that this process and a driver somewhere else both see."""

    def url(self, path: str) -> str:
        """Return the full address of a file, as fsspec reads it."""
        ...

    def read(self, path: str) -> bytes | None:
        """Return a file's content; None without such a file."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Write a file whole, in the place of an older one."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A job as a manager gets it.

    ``payload`` is all that the job has to know, secrets included; see ``jobs/remote.py``. ``settings`` are Spark's and
    hold no secret; those that do are in the payload. ``packed`` are the jobs, and ``code`` puts them where the cluster
    reads them and returns their addresses. ``leave`` puts a file into the folder of this job.
    """

    application_name: str
    settings: Mapping[str, str]
    payload: Mapping[str, object] = field(repr=False)
    packed: JobCode
    code: Callable[[], CodeAddress]
    leave: Callable[[str, bytes], None]


class ClusterManager(Protocol):
    """One kind of cluster. Ids are the manager's own, without blanks."""

    def submit(self, submission: Submission) -> str:
        """Submit an application and return its id at once."""
        ...

    def state(self, job_id: str) -> JobStatus:
        """Say how an application is; LOST when the manager knows none of this id."""
        ...

    def find(self, application_name: str) -> str | None:
        """Return the id of a live application of this name, as far as the manager can tell."""
        ...

    def kill(self, job_id: str) -> None:
        """Ask for the end of an application."""
        ...

    def log_tail(self, job_id: str, *, lines: int) -> str:
        """Return the end of the driver's log, empty where it cannot be had."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEngine:
    """Runs jobs on a cluster, driver and all; they go on when the process that submitted them is gone.

    ``exchange`` and ``settings`` are called when a job is submitted: the latter with the request, as Spark is to see
    it, for Spark's settings and, apart from them, those that hold secrets. ``code_url`` is where ``jobs.zip`` lies on
    the cluster already; None puts it on the table's storage.
    """

    name: str
    bundle: str
    manager: ClusterManager
    exchange: Callable[[], JobExchange]
    settings: Callable[[JobRequest], tuple[Mapping[str, str], Mapping[str, str]]]
    code_url: str | None = None
    jobs_dir: Path = JOBS

    @property
    def outlives(self) -> bool:
        """True: the cluster runs the driver."""
        return True

    def submit(self, request: JobRequest) -> JobHandle:
        """Submit the job, or return the handle of the one of this name that runs already.

        Raises:
            EngineError: The cluster is down or refuses the application; nothing was submitted.
            PendingActionError: Another try was submitted at the same moment, and this one made way for it.
            InvalidSettingError: A setting of the cluster is wrong, or Spark cannot read the base path.
        """
        name = _clean_name(request.application_name)
        request = replace(request, base_path=spark_path(request.base_path), name=name)
        exchange, folder = self.exchange(), _folder(request)
        live = self._live(exchange, folder, application_name=request.application_name)
        if live is None:
            claim = uuid.uuid4().hex
            for name in _FILES:
                exchange.delete(f"{folder}/{name}")
            exchange.write(f"{folder}/{CLAIM}", _json({"version": _VERSION, "claim": claim}))
            # Looked at again: one that registered before it could see the new claim counts, any later one gives up.
            live = self.manager.find(request.application_name)
        if live is None:
            live = self.manager.submit(self._submission(request, exchange, folder=folder, claim=claim))
            self._note(exchange, folder, claim=claim, job_id=live)
        return JobHandle(engine=self.name, job_id=f"{live} {folder}")

    def status(self, handle: JobHandle) -> JobStatus:
        """Say what the cluster knows, and where it has forgotten the application, what its report says.

        Raises:
            EngineError: The cluster does not answer.
        """
        job = self._read(handle)
        if job is None:
            return JobStatus.LOST
        job_id, folder = job
        state = self.manager.state(job_id)
        if state is JobStatus.LOST and self.manager.find(_application_name(folder)):
            return JobStatus.RUNNING  # a manager that was started anew knows the application, and no driver
        if state in (JobStatus.LOST, JobStatus.SUCCEEDED):
            report = self.report(handle)
            if report is not None:
                return JobStatus.SUCCEEDED if report.ok else JobStatus.FAILED
        return state

    def progress(self, handle: JobHandle) -> JobProgress | None:
        """Return what the job last wrote about Spark's stages."""
        try:
            document = self._document(handle, PROGRESS)
            return None if document is None else JobProgress.from_json(document)
        except (HudiMaintError, OSError):  # It is only shown: a strange one, or one that is out of reach, is none.
            return None

    def report(self, handle: JobHandle) -> JobReport | None:
        """Return the job's own report."""
        document = self._document(handle, REPORT)
        return None if document is None else JobReport.from_json(document)

    def log_tail(self, handle: JobHandle, *, lines: int = LOG_LINES) -> str:
        """Return the last lines of the driver's log, where the cluster shows it; empty otherwise."""
        job = self._read(handle)
        try:
            return "" if job is None else self.manager.log_tail(job[0], lines=lines)
        except HudiMaintError:  # A log is only shown.
            return ""

    def kill(self, handle: JobHandle, *, timeout_seconds: float = KILL_SECONDS) -> None:
        """Ask the cluster to end the application, and see that it does.

        Raises:
            EngineKilledError: It still runs when the time is up.
            EngineError: The cluster does not answer.
        """
        job = self._read(handle)
        live = None if job is None else self._running(*job)
        if live is None:
            return
        self.manager.kill(live)
        if not wait_until(lambda: self.manager.state(live).ended, seconds=timeout_seconds):
            raise EngineKilledError(f"Job {handle.job_id} did not end within {timeout_seconds:.0f} s of being killed.")

    def close(self, handle: JobHandle) -> None:
        """Remove what the two sides told each other. The claim stays: it bars a driver that comes late."""
        job = self._read(handle)
        if job is None:
            return
        exchange = self.exchange()
        for name in _FILES:
            exchange.delete(f"{job[1]}/{name}")

    def _note(self, exchange: JobExchange, folder: str, *, claim: str, job_id: str) -> None:
        """Note the id, and end a job that would be of no use: one that can leave no report, or has no claim any more.

        Two tries of one task may submit at once. The later claim counts; the other job's folder is not its own.
        """
        try:
            _check_claim(exchange, folder, claim=claim)
            exchange.write(f"{folder}/{SUBMISSION}", _json({"version": _VERSION, "id": job_id}))
        except BaseException:
            with suppress(HudiMaintError):
                self.manager.kill(job_id)
            raise

    def _running(self, job_id: str, folder: str) -> str | None:
        """Return by which id a job that runs can be ended: its own, or its application's where that is forgotten."""
        state = self.manager.state(job_id)
        if state is JobStatus.LOST:
            return self.manager.find(_application_name(folder))
        return None if state.ended else job_id

    def _live(self, exchange: JobExchange, folder: str, *, application_name: str) -> str | None:
        """Return the id of a job of this name that runs: by what was noted when it was submitted, else by its name."""
        noted = _read_json(exchange, f"{folder}/{SUBMISSION}")
        job_id = None if noted is None else noted.get("id")
        if isinstance(job_id, str) and self.manager.state(job_id) is JobStatus.RUNNING:
            return job_id
        return self.manager.find(application_name)

    def _submission(self, request: JobRequest, exchange: JobExchange, *, folder: str, claim: str) -> Submission:
        settings, secret_settings = self.settings(request)
        payload: dict[str, object] = {
            "version": _VERSION,
            "request": request.to_json(),
            "folder": spark_path(exchange.url(folder)),
            "claim": claim,
            "settings": dict(secret_settings),
        }
        return Submission(
            application_name=request.application_name,
            settings={**settings, "spark.app.name": request.application_name},
            payload=payload,
            packed=packed_jobs(self.jobs_dir),
            code=lambda: self._code(exchange),
            leave=lambda name, data: exchange.write(f"{folder}/{name}", data),
        )

    def _code(self, exchange: JobExchange) -> CodeAddress:
        """Put the jobs where they have to lie; a name of their content, for none may be replaced while it runs."""
        if self.code_url is not None:
            return CodeAddress(archive=self.code_url, script=re.sub(r"[^/]+$", START_SCRIPT, self.code_url))
        code = packed_jobs(self.jobs_dir)
        archive, script = f"code/{code.digest}/jobs.zip", f"code/{code.digest}/{START_SCRIPT}"
        for path, data in ((archive, code.archive), (script, code.script)):
            if exchange.read(path) != data:
                exchange.write(path, data)
        return CodeAddress(archive=spark_path(exchange.url(archive)), script=spark_path(exchange.url(script)))

    def _document(self, handle: JobHandle, name: str) -> JsonMapping | None:
        job = self._read(handle)
        return None if job is None else _read_json(self.exchange(), f"{job[1]}/{name}")

    def _read(self, handle: JobHandle) -> tuple[str, str] | None:
        """Return the manager's id and the folder; None for what no engine of this release wrote."""
        if handle.engine not in (self.name, ""):
            raise InvalidSettingError(
                f"Job {handle.job_id} was given to the engine {handle.engine!r}, and this is the engine {self.name!r}: "
                "was the connection changed? End that job there, then clear the task's state."
            )
        job_id, _, folder = handle.job_id.partition(" ")
        return (job_id, folder) if job_id and re.fullmatch(r"[\w.+-]+/\w+", folder) else None


def _clean_name(name: str) -> str:
    """Return a name that each manager and each storage takes as it is; what had to be changed ends in a digest."""
    clean = re.sub(r"[^A-Za-z0-9_.+-]+", "-", name)[:_NAME_LENGTH]
    if clean == name and not name.startswith("."):
        return name
    return f"job-{clean.lstrip('.')}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _folder(request: JobRequest) -> str:
    return f"{request.application_name}/{request.kind.value}"


def _application_name(folder: str) -> str:
    return folder.partition("/")[0]


def _check_claim(exchange: JobExchange, folder: str, *, claim: str) -> None:
    if (_read_json(exchange, f"{folder}/{CLAIM}") or {}).get("claim") != claim:
        raise PendingActionError(
            f"Another try of {_application_name(folder)} was submitted at the same moment, and this one made way for "
            "it. Try again: the other one's job is attached to then"
        )


def _json(document: Mapping[str, object]) -> bytes:
    return json.dumps(document).encode()


def _read_json(exchange: JobExchange, path: str) -> JsonMapping | None:
    """Read what is replaced as a whole; what is none of ours is nothing."""
    data = exchange.read(path)
    try:
        document = None if data is None else json.loads(data)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None
