"""A job that outlives the process that submitted it: wait for it elsewhere, or take up the wait of an earlier try.

The first half of a step runs again after such a wait. It may find the effect on the timeline and end there; if it asks
for the same job once more, it gets the one that was waited for instead of a second one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.engines.base import JobOutcome, submit_job, watch_job
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_hudi_maint.core.engines.base import Engine
    from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
    from airflow_hudi_maint.core.model.job import JobRequest

POLL_SECONDS = 1.0


class JobDeferred(Exception):  # noqa: N818 no error: the step goes on when the job has ended
    """The job was submitted and goes on by itself: wait for ``handle`` elsewhere, then run the step again."""

    def __init__(self, handle: JobHandle) -> None:
        super().__init__(f"Job {handle.job_id} was submitted and is waited for elsewhere")
        self.handle = handle


@dataclass(slots=True)
class Attachment:
    """How the job ended that this try waited for instead of submitting its own; None without one."""

    outcome: JobOutcome | None = None
    is_used: bool = False

    def take(self, kind: JobKind) -> JobOutcome | None:
        """Return the outcome to the step that would submit a job of this kind: once, and to no other."""
        if self.outcome is None or self.is_used or self.outcome.handle.kind not in ("", kind.value):
            return None
        self.is_used = True
        return self.outcome


def attach(workspace: Workspace, engine: Engine, *, job: JobControl) -> bool:
    """Wait for the job of an earlier try, or of this one before it was deferred; False when there is none to wait for.

    A job of an earlier try that is killed meanwhile counts as none, for the task may have been stopped and run again
    while its job was still on its way to its end; and so does a job that was given up.

    Raises:
        JobDeferred: It still runs, and the wait is to be elsewhere.
    """
    previous = job.previous
    if previous is None or not engine.outlives or job.given_up:
        return False
    if job.attachment.outcome is not None:
        return True
    running = engine.status(previous) is JobStatus.RUNNING
    if not (running or job.resumed):
        return False
    if running and job.defer:
        raise JobDeferred(previous)
    if running:
        workspace.log(f"Attached to job {previous.job_id}, which an earlier try left running: waiting for its end")
    outcome = watch_job(
        engine, previous, log=workspace.log, interval_seconds=POLL_SECONDS, timeout_seconds=job.timeout_seconds
    )
    if outcome.status is JobStatus.KILLED and not job.resumed:
        workspace.log(f"Job {previous.job_id} of an earlier try was killed: this try begins anew")
        return False
    job.attachment.outcome = outcome
    return True


def end_previous(engine: Engine, handle: JobHandle, *, log: Callable[[str], None]) -> None:
    """End the job of an earlier try, if it still runs, and remove what it left on the engine's side."""
    if engine.status(handle) is JobStatus.RUNNING:
        log(f"An earlier try left job {handle.job_id} running: ending it before this one starts")
    engine.kill(handle)
    engine.close(handle)


def run_or_defer(
    workspace: Workspace, engine: Engine, request: JobRequest, *, job: JobControl, probe: Callable[[], str] | None
) -> JobOutcome:
    """Run the job that a step asks for to its end; one that was waited for already is not run again.

    Raises:
        JobDeferred: The job was submitted, and the wait is to be elsewhere.
    """
    attached = job.attachment.take(request.kind)
    if attached is not None:
        return attached
    handle = submit_job(engine, request, on_submitted=job.on_submitted, log=workspace.log)
    if job.defer and engine.outlives:
        raise JobDeferred(handle)
    if job.defer:
        workspace.log(
            f"A job of the engine {engine.name!r} ends with the process that submitted it, so this task waits for it "
            "here, deferrable or not"
        )
    return watch_job(
        engine,
        handle,
        log=workspace.log,
        probe=probe,
        interval_seconds=POLL_SECONDS,
        timeout_seconds=job.timeout_seconds,
    )
