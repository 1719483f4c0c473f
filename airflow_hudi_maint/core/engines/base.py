"""The seam to Spark: what an engine can do, and how a job is watched from submission to end."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from airflow_hudi_maint.core.errors import EngineKilledError, HudiMaintError, TransientError
from airflow_hudi_maint.core.model.job import JobStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_hudi_maint.core.model.job import JobHandle, JobProgress, JobReport, JobRequest

LOG_LINES = 40
KILL_SECONDS = 30.0
SILENT_SECONDS = 300.0
"""How long a cluster may give no answer before the wait for its job is given up."""


class Engine(Protocol):
    """A way to run a job script. Every method takes a handle that any earlier process may have stored."""

    @property
    def name(self) -> str:
        """The engine's name in handles and messages."""
        ...

    @property
    def bundle(self) -> str:
        """The Hudi bundle that its jobs run with: a Maven coordinate, or the path of a jar."""
        ...

    @property
    def outlives(self) -> bool:
        """True when its jobs go on after the process that submitted them has ended: one may attach, and defer."""
        ...

    def submit(self, request: JobRequest) -> JobHandle:
        """Start the job and return at once; a job of this name that runs already is returned instead of a second."""
        ...

    def status(self, handle: JobHandle) -> JobStatus:
        """Say whether the job runs or how it ended; a handle that says nothing to this release is of a lost job.

        Raises:
            PendingActionError: It may run where this process cannot see it.
        """
        ...

    def progress(self, handle: JobHandle) -> JobProgress | None:
        """Return what Spark was doing a few seconds ago, or None before it says anything."""
        ...

    def report(self, handle: JobHandle) -> JobReport | None:
        """Return the job's own report, or None when it left none."""
        ...

    def log_tail(self, handle: JobHandle, *, lines: int = LOG_LINES) -> str:
        """Return the last lines of the job's log."""
        ...

    def kill(self, handle: JobHandle, *, timeout_seconds: float = KILL_SECONDS) -> None:
        """End the whole job, its JVM included, within this time; a job that has ended is left as it is."""
        ...

    def close(self, handle: JobHandle) -> None:
        """Remove what the job left on the engine's side, its log included. Closing twice is nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """How a job ended. Whether the table changed is another question: ask its timeline."""

    handle: JobHandle
    status: JobStatus
    report: JobReport | None
    log_tail: str

    @property
    def seconds(self) -> float:
        """How long the job says that it took; 0 when it left no report."""
        return self.report.seconds if self.report else 0.0


def run_job(
    engine: Engine,
    request: JobRequest,
    *,
    on_submitted: Callable[[JobHandle], None],
    log: Callable[[str], None],
    probe: Callable[[], str] | None = None,
    interval_seconds: float = 5.0,
    report_every_seconds: float = 15.0,
    timeout_seconds: float | None = None,
) -> JobOutcome:
    """Submit a job, watch it to its end, and close it.

    ``on_submitted`` gets the handle before anything else happens, to store it. ``log`` gets a line when the stage
    changes and at least every ``report_every_seconds``; ``probe`` adds what only the caller can see, such as files
    written so far.

    Never raises because of how the job ended: the outcome says it and the caller judges by the timeline.

    Raises:
        EngineKilledError: ``timeout_seconds`` passed; the job was killed.
        BaseException: Whatever interrupts the watching is raised on, after the job was killed.
    """
    handle = submit_job(engine, request, on_submitted=on_submitted, log=log)
    return watch_job(
        engine,
        handle,
        log=log,
        probe=probe,
        interval_seconds=interval_seconds,
        report_every_seconds=report_every_seconds,
        timeout_seconds=timeout_seconds,
    )


def submit_job(
    engine: Engine, request: JobRequest, *, on_submitted: Callable[[JobHandle], None], log: Callable[[str], None]
) -> JobHandle:
    """Submit a job and hand its handle to ``on_submitted``; when that fails, the job is killed."""
    handle = replace(engine.submit(request), kind=request.kind.value)
    with _ended_on_error(engine, handle, log=log):
        on_submitted(handle)
        log(f"Submitted {request.application_name} to {engine.name} as {handle.job_id}")
    return handle


def watch_job(
    engine: Engine,
    handle: JobHandle,
    *,
    log: Callable[[str], None],
    probe: Callable[[], str] | None = None,
    interval_seconds: float = 5.0,
    report_every_seconds: float = 15.0,
    timeout_seconds: float | None = None,
) -> JobOutcome:
    """Watch a job that this or an earlier process submitted to its end, and close it; as :func:`run_job` does."""
    with _ended_on_error(engine, handle, log=log):
        watch = _Watch(engine=engine, handle=handle, log=log, probe=probe, report_every_seconds=report_every_seconds)
        status = watch.until_end(interval_seconds=interval_seconds, timeout_seconds=timeout_seconds)
        outcome = JobOutcome(
            handle=handle,
            status=status,
            report=engine.report(handle),
            log_tail=engine.log_tail(handle, lines=LOG_LINES),
        )
    engine.close(handle)
    return outcome


@contextmanager
def _ended_on_error(engine: Engine, handle: JobHandle, *, log: Callable[[str], None]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        ended = _kill_quietly(engine, handle, log=log)
        if ended or not engine.outlives:  # What cannot be reached goes on, and a retry attaches to it.
            engine.close(handle)
        raise


def _kill_quietly(engine: Engine, handle: JobHandle, *, log: Callable[[str], None]) -> bool:
    """Kill on the way out of an error: a failure to kill is logged, so that it does not hide that error."""
    try:
        engine.kill(handle, timeout_seconds=KILL_SECONDS)
    except (HudiMaintError, OSError) as error:
        log(f"Job {handle.job_id} was not killed: {error}")
        return False
    return True


class _Watch:
    """The loop around one job, and what it logged last."""

    def __init__(
        self,
        *,
        engine: Engine,
        handle: JobHandle,
        log: Callable[[str], None],
        probe: Callable[[], str] | None,
        report_every_seconds: float,
    ) -> None:
        self._engine = engine
        self._handle = handle
        self._log = log
        self._probe = probe
        self._report_every_seconds = report_every_seconds
        self._started = time.monotonic()
        self._logged_at = self._started
        self._logged_stage = ""
        self._heard = self._started

    def until_end(self, *, interval_seconds: float, timeout_seconds: float | None) -> JobStatus:
        while True:
            status = self._status()
            seconds = time.monotonic() - self._started
            if status.ended:
                self._log(f"Job ended after {seconds:.0f} s: {status.value}")
                return status
            if timeout_seconds is not None and seconds >= timeout_seconds:
                raise EngineKilledError(self._timeout_message(timeout_seconds))
            self._report_if_due()
            time.sleep(interval_seconds)

    def _status(self) -> JobStatus:
        """Ask the engine; a cluster that is silent for a while is borne with, for its job goes on."""
        try:
            status = self._engine.status(self._handle)
        except TransientError as error:
            silent = time.monotonic() - self._heard
            if not self._engine.outlives or silent >= SILENT_SECONDS:
                raise
            self._log(f"No answer for {silent:.0f} s: {error}")
            return JobStatus.RUNNING
        self._heard = time.monotonic()
        return status

    def _timeout_message(self, timeout_seconds: float) -> str:
        tail = self._engine.log_tail(self._handle, lines=LOG_LINES)
        return (
            f"Job {self._handle.job_id} ran longer than {timeout_seconds:.0f} s and was killed; "
            f"raise the timeout or give the job less to do. Its log ends with:\n{tail}"
        )

    def _report_if_due(self) -> None:
        progress = self._engine.progress(self._handle)
        stage = progress.stage if progress else ""
        now = time.monotonic()
        new_stage = bool(stage) and stage != self._logged_stage
        if not new_stage and now - self._logged_at < self._report_every_seconds:
            return
        self._logged_at = now
        self._logged_stage = stage or self._logged_stage
        self._log(f"{now - self._started:.0f} s: {_words(progress)}{self._probed()}")

    def _probed(self) -> str:
        if self._probe is None:
            return ""
        try:
            text = self._probe()
        except (HudiMaintError, OSError) as error:  # A look at the side must not end the job.
            return f"; {type(error).__name__}: {error}"
        return f"; {text}" if text else ""


def _words(progress: JobProgress | None) -> str:
    if progress is None:
        return "starting Spark"
    if not progress.active_stages:
        return "between Spark stages"
    more = f" ({progress.active_stages} stages)" if progress.active_stages > 1 else ""
    return f"{progress.stage}{more}: tasks {progress.tasks_done} of {progress.tasks_total}"
