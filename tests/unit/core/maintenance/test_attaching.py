"""A job that outlives its submitter: waited for by a retry, deferred over, and never run twice."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from airflow_hudi_maint.core.maintenance.attaching import JobDeferred, attach, run_or_defer
from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobReport, JobRequest, JobStatus
from tests.unit.core.maintenance.fake_engine import FakeEngine

REQUEST = JobRequest(kind=JobKind.CLEAN, base_path="/lake/t", table_name="t")
HANDLE = JobHandle(engine="fake", job_id="1", kind="clean")


class Table:
    """A workspace, as far as a job needs one."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def log(self, line: str) -> None:
        self.lines.append(line)


@dataclass
class EndsSoon(FakeEngine):
    """A job that runs for a few looks."""

    looks: int = 2
    end: JobStatus = JobStatus.SUCCEEDED

    def status(self, handle: JobHandle) -> JobStatus:
        self.looks -= 1
        return JobStatus.RUNNING if self.looks > 0 else self.end


@pytest.fixture
def workspace() -> Workspace:
    return Table()  # type: ignore[return-value]


def test_a_deferrable_step_leaves_as_soon_as_its_job_is_stored(workspace: Workspace) -> None:
    """With the handle, which says which of the step's jobs it is."""
    stored: list[JobHandle] = []
    job = JobControl(defer=True, on_submitted=stored.append)
    with pytest.raises(JobDeferred) as raised:
        run_or_defer(workspace, FakeEngine(outlives=True), REQUEST, job=job, probe=None)
    assert [raised.value.handle] == stored
    assert stored[0].kind == "clean"


def test_a_job_that_dies_with_its_submitter_is_waited_for_here(workspace: Workspace) -> None:
    """Deferring would end it; the log says so."""
    outcome = run_or_defer(workspace, FakeEngine(), REQUEST, job=JobControl(defer=True), probe=None)
    assert outcome.status is JobStatus.SUCCEEDED
    assert any("waits for it here, deferrable or not" in line for line in workspace.lines)  # type: ignore[attr-defined]


def test_the_resumed_step_gets_the_job_it_waited_for_and_runs_no_second(workspace: Workspace) -> None:
    """Its report is that of the job; only the same kind of job is spared, and only once."""
    engine = FakeEngine(outlives=True, answer=JobReport(ok=True, seconds=7.0))
    job = JobControl(defer=True, resumed=True, previous=HANDLE)
    assert attach(workspace, engine, job=job)
    assert engine.requests == []
    other = replace(REQUEST, kind=JobKind.SCHEDULE_CLUSTERING)
    with pytest.raises(JobDeferred):
        run_or_defer(workspace, engine, other, job=job, probe=None)
    outcome = run_or_defer(workspace, engine, REQUEST, job=job, probe=None)
    assert (outcome.handle, outcome.seconds) == (HANDLE, 7.0)
    assert [one.kind for one in engine.requests] == [JobKind.SCHEDULE_CLUSTERING]
    with pytest.raises(JobDeferred):
        run_or_defer(workspace, engine, REQUEST, job=job, probe=None)


def test_a_retry_waits_for_a_job_on_a_cluster(workspace: Workspace) -> None:
    """A worker died, its job did not."""
    engine = EndsSoon(outlives=True)
    job = JobControl(previous=HANDLE)
    assert attach(workspace, engine, job=job)
    assert run_or_defer(workspace, engine, REQUEST, job=job, probe=None).handle == HANDLE
    assert engine.requests == []
    assert any("Attached to job 1" in line for line in workspace.lines)  # type: ignore[attr-defined]


def test_a_deferrable_retry_waits_elsewhere(workspace: Workspace) -> None:
    """Where its first try would have waited."""
    with pytest.raises(JobDeferred) as raised:
        attach(workspace, FakeEngine(outlives=True, running=True), job=JobControl(previous=HANDLE, defer=True))
    assert raised.value.handle == HANDLE


@pytest.mark.parametrize("outlives", [True, False])
def test_a_job_that_ended_before_this_try_is_nothing_to_wait_for(workspace: Workspace, *, outlives: bool) -> None:
    """Its failure was the earlier try's; nor is a local job waited for, running or not."""
    engine = FakeEngine(outlives=outlives, running=not outlives)
    job = JobControl(previous=HANDLE)
    assert not attach(workspace, engine, job=job)
    assert job.attachment.outcome is None
    assert not attach(workspace, engine, job=JobControl())


def test_a_job_that_is_killed_while_a_retry_waits_is_run_anew(workspace: Workspace) -> None:
    """A stopped task had its job killed, which takes a while; the next try has begun meanwhile and is not to blame."""
    engine = EndsSoon(outlives=True, end=JobStatus.KILLED)
    job = JobControl(previous=HANDLE)
    assert not attach(workspace, engine, job=job)
    assert run_or_defer(workspace, engine, REQUEST, job=job, probe=None).handle == replace(HANDLE, job_id="1")
    assert len(engine.requests) == 1


def test_a_job_that_a_person_gave_up_is_not_taken_up_again(workspace: Workspace) -> None:
    """It is ended instead, by who looks for it."""
    engine = FakeEngine(outlives=True, running=True)
    assert not attach(workspace, engine, job=JobControl(previous=HANDLE, given_up=True, defer=True))
