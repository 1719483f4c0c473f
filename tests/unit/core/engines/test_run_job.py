"""Watching a job: what is logged, and what happens when the watching ends early."""

from __future__ import annotations

import re

import pytest

from airflow_hudi_maint.core.engines.base import run_job
from airflow_hudi_maint.core.errors import EngineKilledError, StorageError
from airflow_hudi_maint.core.model.job import JobHandle, JobStatus
from tests.unit.core.engines.conftest import FakeJobs, request, running


def pid(handle: JobHandle) -> int:
    return int(handle.job_id.split(":")[0])


def test_the_outcome_holds_all_that_is_known(jobs: FakeJobs) -> None:
    """The handle is handed over first; the outcome has status, report and log, and the work directory is gone."""
    jobs.script("print('hello'); report(seconds=2.5)")
    seen: list[JobHandle] = []
    outcome = run_job(jobs.engine(), request(), on_submitted=seen.append, log=str, interval_seconds=0.02)
    assert seen == [outcome.handle]
    assert outcome.status is JobStatus.SUCCEEDED
    assert outcome.report is not None
    assert outcome.report.seconds == 2.5
    assert outcome.log_tail == "hello"
    assert list(jobs.work_dir.iterdir()) == []


def test_a_failed_job_is_no_exception(jobs: FakeJobs) -> None:
    """An exit code is not the truth, so it raises nothing: the caller asks the timeline."""
    jobs.script("sys.exit('broken')")
    outcome = run_job(jobs.engine(), request(), on_submitted=lambda _: None, log=str, interval_seconds=0.02)
    assert (outcome.status, outcome.report, outcome.log_tail) == (JobStatus.FAILED, None, "broken")


def test_each_new_stage_is_a_line_at_once(jobs: FakeJobs) -> None:
    """A stage that changes is logged without waiting until a line is due, with tasks and the probe's words."""
    jobs.script(
        """
        progress(stage="Listing files", tasks_done=1, tasks_total=4, active_stages=1)
        time.sleep(0.3)
        progress(stage="Writing data", tasks_done=3, tasks_total=12, active_stages=2)
        time.sleep(0.3)
        report()
        """
    )
    lines: list[str] = []
    run_job(
        jobs.engine(),
        request(),
        on_submitted=lambda _: None,
        log=lines.append,
        probe=lambda: "files 3 of 12, 40.1 of 94.0 MB",
        interval_seconds=0.02,
        report_every_seconds=60.0,
    )
    assert [re.sub(r"^\d+ s", "N s", line) for line in lines[1:-1]] == [
        "N s: Listing files: tasks 1 of 4; files 3 of 12, 40.1 of 94.0 MB",
        "N s: Writing data (2 stages): tasks 3 of 12; files 3 of 12, 40.1 of 94.0 MB",
    ]


def test_a_silent_job_is_logged_at_the_pace_asked_for(jobs: FakeJobs) -> None:
    """Without any change there is still a line each interval, so that no one takes the task for dead."""
    jobs.script("time.sleep(1.0); report()")
    lines: list[str] = []
    run_job(
        jobs.engine(),
        request(),
        on_submitted=lambda _: None,
        log=lines.append,
        interval_seconds=0.02,
        report_every_seconds=0.2,
    )
    waiting = [line for line in lines if line.endswith("starting Spark")]
    assert 3 <= len(waiting) <= 6


def test_a_probe_that_fails_does_not_end_the_job(jobs: FakeJobs) -> None:
    """The probe only looks; when storage fails under it, the line says so and the job goes on."""
    jobs.script("time.sleep(0.3); report()")
    lines: list[str] = []

    def probe() -> str:
        raise StorageError("listing failed")

    outcome = run_job(
        jobs.engine(),
        request(),
        on_submitted=lambda _: None,
        log=lines.append,
        probe=probe,
        interval_seconds=0.02,
        report_every_seconds=0.05,
    )
    assert outcome.status is JobStatus.SUCCEEDED
    assert any("StorageError: listing failed" in line for line in lines)


def test_a_job_that_takes_too_long_is_killed(jobs: FakeJobs) -> None:
    """On timeout the job is gone before the error is raised, and the error has the end of its log."""
    jobs.script("print('busy', flush=True); time.sleep(60)")
    seen: list[JobHandle] = []
    with pytest.raises(EngineKilledError, match="busy"):
        run_job(jobs.engine(), request(), on_submitted=seen.append, log=str, interval_seconds=0.02, timeout_seconds=0.5)
    assert not running(pid(seen[0]))
    assert list(jobs.work_dir.iterdir()) == []


def test_an_interruption_kills_the_job(jobs: FakeJobs) -> None:
    """Whatever stops the watching, an exception of the log or a signal, the job does not stay behind."""
    jobs.script("time.sleep(60)")
    seen: list[JobHandle] = []

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(jobs.engine(), request(), on_submitted=seen.append, log=interrupted)
    assert not running(pid(seen[0]))
