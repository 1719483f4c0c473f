"""The local engine with job scripts that start no JVM."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from airflow_hudi_maint.core.engines.local import LocalSparkEngine
from airflow_hudi_maint.core.errors import BundleError, InvalidSettingError, PendingActionError
from airflow_hudi_maint.core.model.job import JobHandle, JobStatus
from tests.unit.core.engines.conftest import JOBS, FakeJobs, request, running
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from airflow_hudi_maint.core.engines.base import Engine

SLEEP = "time.sleep(60)"


def ended(engine: LocalSparkEngine, handle: JobHandle) -> JobStatus:
    assert eventually(lambda: engine.status(handle).ended)
    return engine.status(handle)


def pid_in(file: Path) -> int:
    assert eventually(lambda: file.is_file() and file.read_text().strip().isdigit())
    return int(file.read_text())


def test_a_job_with_a_good_report_has_succeeded(jobs: FakeJobs) -> None:
    """Exit code 0 and a report that says ok make the status succeeded, and the report is read back."""
    jobs.script("report(rows=[{'partition': 'day=1'}], spark_version='3.5.9')")
    engine = jobs.engine()
    handle = jobs.submit(engine)
    assert ended(engine, handle) is JobStatus.SUCCEEDED
    report = engine.report(handle)
    assert report is not None
    assert report.rows == ({"partition": "day=1"},)


def test_submit_returns_while_the_job_runs(jobs: FakeJobs) -> None:
    """Submitting does not wait for the job."""
    jobs.script(SLEEP)
    engine = jobs.engine()
    handle = jobs.submit(engine)
    assert engine.status(handle) is JobStatus.RUNNING
    assert engine.report(handle) is None


def test_a_report_of_an_error_is_a_failure_with_its_words(jobs: FakeJobs) -> None:
    """Exit code 1 with a report: failed, and the report says why."""
    jobs.script("report(ok=False, error_class='HoodieException', error_message='no'); sys.exit(1)")
    engine = jobs.engine()
    handle = jobs.submit(engine)
    assert ended(engine, handle) is JobStatus.FAILED
    report = engine.report(handle)
    assert report is not None
    assert (report.error_class, report.error_message) == ("HoodieException", "no")


def test_a_good_report_outweighs_a_bad_exit_code(jobs: FakeJobs) -> None:
    """A job that did its work and stumbled while it ended has succeeded."""
    jobs.script("report(); sys.exit(3)")
    engine = jobs.engine()
    assert ended(engine, jobs.submit(engine)) is JobStatus.SUCCEEDED


def test_an_end_without_report_is_not_a_success(jobs: FakeJobs) -> None:
    """Exit code 0 without a report is lost: nothing says that anything was done."""
    jobs.script("sys.exit(0)")
    engine = jobs.engine()
    assert ended(engine, jobs.submit(engine)) is JobStatus.LOST


def test_a_crash_without_report_is_a_failure(jobs: FakeJobs) -> None:
    """An exit code other than 0 without a report is failed, and the log has the reason."""
    jobs.script("raise SystemExit('out of luck')")
    engine = jobs.engine()
    handle = jobs.submit(engine)
    assert ended(engine, handle) is JobStatus.FAILED
    assert engine.log_tail(handle) == "out of luck"


def test_a_job_killed_by_the_system_is_killed(jobs: FakeJobs) -> None:
    """A job that a signal ended, as the kernel does when memory is short, is killed and not failed."""
    jobs.script("os.kill(os.getpid(), signal.SIGKILL)")
    engine = jobs.engine()
    assert ended(engine, jobs.submit(engine)) is JobStatus.KILLED


def test_kill_ends_grandchildren_that_ignore_the_signal(jobs: FakeJobs) -> None:
    """A grandchild that ignores SIGTERM and left the process group is gone within the time that kill was given."""
    jobs.script(
        """
        stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
        child = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE, process_group=0)
        child.stdout.readline()
        put("pid", child.pid)
        time.sleep(60)
        """
    )
    engine = jobs.engine()
    handle = jobs.submit(engine)
    grandchild = pid_in(jobs.work(handle) / "pid")
    started = time.monotonic()
    engine.kill(handle, timeout_seconds=2.0)
    assert time.monotonic() - started < 2.5
    assert not running(grandchild)
    assert engine.status(handle) is JobStatus.KILLED


def test_a_job_runs_until_its_last_process_is_gone(jobs: FakeJobs) -> None:
    """A child that outlives the job's first process, as a JVM can, keeps the job running and can be killed."""
    jobs.script(f"child = subprocess.Popen(['sleep', '60']); put('pid', child.pid); report()  # {SLEEP}")
    engine = jobs.engine()
    handle = jobs.submit(engine)
    child = pid_in(jobs.work(handle) / "pid")
    assert eventually(lambda: not running(int(handle.job_id.split(":")[0])))
    assert engine.status(handle) is JobStatus.RUNNING
    engine.kill(handle, timeout_seconds=5.0)
    assert not running(child)


def test_killing_a_job_that_has_ended_changes_nothing(jobs: FakeJobs) -> None:
    """A kill that comes too late leaves the status as it was."""
    jobs.script("report()")
    engine = jobs.engine()
    handle = jobs.submit(engine)
    assert ended(engine, handle) is JobStatus.SUCCEEDED
    engine.kill(handle)
    assert engine.status(handle) is JobStatus.SUCCEEDED


def test_a_stored_handle_works_in_another_process(jobs: FakeJobs) -> None:
    """A process that has only the handle's JSON sees that the job runs, and kills it."""
    jobs.script(SLEEP)
    handle = jobs.submit()
    code = """
        import json, sys
        from airflow_hudi_maint.core.engines.local import LocalSparkEngine
        from airflow_hudi_maint.core.model.job import JobHandle
        handle = JobHandle.from_json(json.loads(sys.argv[1]))
        engine = LocalSparkEngine()
        before = engine.status(handle)
        engine.kill(handle, timeout_seconds=5)
        print(before.value, engine.status(handle).value)
    """
    other = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), json.dumps(handle.to_json())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (other.stdout.split(), other.stderr) == (["running", "killed"], "")


def test_a_handle_whose_number_went_to_another_process_is_lost(jobs: FakeJobs) -> None:
    """The start time tells a process from a later one with its number: the later one is neither running nor killed."""
    jobs.script(SLEEP)
    engine = jobs.engine()
    handle = jobs.submit(engine)
    pid, _, *rest, _ = handle.job_id.split(":", 5)
    earlier = JobHandle(engine="local", job_id=":".join([pid, "1", *rest, str(jobs.work_dir / "hudi-maint-earlier")]))
    assert engine.status(earlier) is JobStatus.LOST
    engine.kill(earlier, timeout_seconds=1.0)
    assert running(int(pid))


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Start a process in a session whose leader has ended, as a daemon is; give the ids of both."""
    code = "import os, subprocess; print(os.getpid(), subprocess.Popen(['sleep', '60'], stdout=-3, stderr=-3).pid)"
    answer = subprocess.run(
        [sys.executable, "-c", code], start_new_session=True, capture_output=True, text=True, check=True
    )
    leader, pid = map(int, answer.stdout.split())
    yield leader, pid
    os.kill(pid, signal.SIGKILL)


def test_a_session_that_got_the_number_of_an_ended_job_is_left_alone(jobs: FakeJobs, stranger: tuple[int, int]) -> None:
    """After the leader's end the session's number proves nothing: what lacks the job's marker is not the job's."""
    leader, pid = stranger
    jobs.script("report()")
    engine = jobs.engine()
    handle = jobs.submit(engine)
    ended(engine, handle)
    engine.close(handle)
    _, rest = handle.job_id.split(":", 1)
    earlier = JobHandle(engine="local", job_id=f"{leader}:{rest}")
    assert engine.status(earlier) is JobStatus.LOST
    engine.kill(earlier, timeout_seconds=1.0)
    assert running(pid)


def test_a_process_that_left_the_session_is_known_by_the_marker(jobs: FakeJobs) -> None:
    """A child that made a session of its own keeps the job running after the first process, and is killed."""
    jobs.script("child = subprocess.Popen(['sleep', '60'], start_new_session=True); put('pid', child.pid); report()")
    engine = jobs.engine()
    handle = jobs.submit(engine)
    child = pid_in(jobs.work(handle) / "pid")
    assert eventually(lambda: not running(int(handle.job_id.split(":")[0])))
    assert engine.status(handle) is JobStatus.RUNNING
    engine.kill(handle, timeout_seconds=5.0)
    assert not running(child)


def elsewhere(handle: JobHandle, *, age_seconds: float, host: str = "worker-7", boot: str = "0.0") -> JobHandle:
    """Return the handle as a process on another machine would have stored it."""
    pid, started, _, _, _, path = handle.job_id.split(":", 5)
    submitted = int(time.time() - age_seconds)
    return JobHandle(engine="local", job_id=f"{pid}:{started}:{host}:{boot}:{submitted}:{path}")


def test_a_job_of_another_host_may_still_run(jobs: FakeJobs) -> None:
    """While it is young a retry elsewhere has to wait; the error can be retried and names the host."""
    jobs.script(SLEEP)
    engine = jobs.engine()
    handle = elsewhere(jobs.submit(engine), age_seconds=590)
    with pytest.raises(PendingActionError, match=r"59\d s ago on host 'worker-7'.*600 s after its start"):
        engine.status(handle)


@pytest.mark.parametrize("age_seconds", [600, 86_400, -601])
def test_an_old_job_of_another_host_is_lost(jobs: FakeJobs, age_seconds: float) -> None:
    """By then its worker is known to be gone, and a job ends with it; a clock that is wrong holds nothing up."""
    jobs.script(SLEEP)
    engine = jobs.engine()
    assert engine.status(elsewhere(jobs.submit(engine), age_seconds=age_seconds)) is JobStatus.LOST


def test_a_restart_of_this_host_makes_another_machine_of_it(jobs: FakeJobs) -> None:
    """Process ids start anew with the system and with a container: the host's name alone does not make them ours."""
    jobs.script(SLEEP)
    engine = jobs.engine()
    host = socket.gethostname()
    with pytest.raises(PendingActionError, match=f"host '{host}', before it or its container was started anew"):
        engine.status(elsewhere(jobs.submit(engine), age_seconds=1, host=host))


def test_nothing_here_is_killed_or_removed_for_a_job_of_another_host(jobs: FakeJobs) -> None:
    """The same process id, start time and directory mean something else on another machine."""
    jobs.script(SLEEP)
    engine = jobs.engine()
    handle = jobs.submit(engine)
    assert engine.status(handle) is JobStatus.RUNNING
    for age_seconds in (1, 86_400):
        engine.kill(elsewhere(handle, age_seconds=age_seconds), timeout_seconds=1.0)
        engine.close(elsewhere(handle, age_seconds=age_seconds))
    assert running(int(handle.job_id.split(":")[0]))
    assert jobs.work(handle).is_dir()
    assert engine.status(handle) is JobStatus.RUNNING


@pytest.mark.parametrize("by_submit", [False, True])
def test_a_job_dies_with_the_process_that_submitted_it(jobs: FakeJobs, *, by_submit: bool) -> None:
    """When a worker is killed outright, the job and the child that stands for its JVM end by themselves.

    Also where spark-submit stands between the two: then the worker is not the job's parent.
    """
    submit = jobs.root / "spark-submit"
    submit.write_text(f'#!/bin/sh\nshift 2\n{sys.executable} "$@"\nexit $?\n', encoding="utf-8")
    submit.chmod(0o755)
    jobs.script(
        f"""
        sys.path.insert(0, {str(JOBS)!r})
        import session
        session.PARENT_POLL_SECONDS = 0.1
        session.guard_against_orphanhood()
        put("pid", subprocess.Popen(["sleep", "60"]).pid)
        time.sleep(60)
        """
    )
    code = """
        import sys, time
        from pathlib import Path
        from airflow_hudi_maint.core.engines.local import LocalSparkEngine
        from airflow_hudi_maint.core.model.job import JobKind, JobRequest
        bundle, java_home, jobs_dir, work_dir, submit = sys.argv[1:]
        engine = LocalSparkEngine(bundle=bundle, java_home=java_home, jobs_dir=Path(jobs_dir), work_dir=Path(work_dir),
                                  spark_submit=submit or None)
        request = JobRequest(kind=JobKind.DELETE_PARTITIONS, base_path="/lake/trips", table_name="trips")
        print(engine.submit(request).job_id, flush=True)
        time.sleep(60)
    """
    arguments = [str(path) for path in (jobs.bundle, jobs.java_home, jobs.jobs_dir, jobs.work_dir)]
    arguments.append(str(submit) if by_submit else "")
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), *arguments], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        handle = JobHandle(engine="local", job_id=worker.stdout.readline().decode().strip())
        jobs.handles.append(handle)
        child = pid_in(jobs.work(handle) / "pid")
        worker.send_signal(signal.SIGKILL)
    assert eventually(lambda: not running(child))
    assert eventually(lambda: jobs.engine().status(handle) is JobStatus.LOST)


def test_secrets_are_in_one_file_that_others_cannot_read(jobs: FakeJobs) -> None:
    """The properties file has mode 0600 in a 0700 directory; command line, repr and handle hold no setting."""
    jobs.script("put('cmdline', Path('/proc/self/cmdline').read_text()); time.sleep(60)")
    engine = jobs.engine(**{"spark.hadoop.fs.s3a.secret.key": "hunter2"})
    handle = jobs.submit(engine)
    work = jobs.work(handle)
    properties = work / "spark.properties"
    assert stat.S_IMODE(properties.stat().st_mode) == 0o600
    assert stat.S_IMODE((work / "request.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((work / "job.log").stat().st_mode) == 0o600
    assert stat.S_IMODE(work.stat().st_mode) == 0o700
    assert "spark.hadoop.fs.s3a.secret.key=hunter2\n" in properties.read_text()
    assert eventually((work / "cmdline").is_file)
    assert "delete_partitions.py" in (work / "cmdline").read_text()
    assert "hunter2" not in (work / "cmdline").read_text() + repr(engine) + repr(handle)


def test_the_environment_is_the_jobs_own(jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another Spark's variables and Airflow's configuration stay out; Java, Python and the loopback address are set."""
    monkeypatch.setenv("SPARK_HOME", "/opt/other-spark")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf a=b pyspark-shell")
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://u:p@db/airflow")
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", "hudi://u:p@host")
    monkeypatch.setenv("AIRFLOW_VAR_API_KEY", "hunter2")
    monkeypatch.setenv("AIRFLOW_HUDI_MAINT_REPOSITORIES", "https://u:p@repo.example/maven")
    monkeypatch.setenv("AIRFLOW_CTX_DAG_ID", "hudi_table_maintenance")
    monkeypatch.setenv("AWS_PROFILE", "lake")
    jobs.script("report(rows=[dict(os.environ)])")
    engine = jobs.engine()
    handle = jobs.submit(engine)
    ended(engine, handle)
    report = engine.report(handle)
    assert report is not None
    environment = report.rows[0]
    assert "SPARK_HOME" not in environment
    secrets = ("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_", "AIRFLOW_HUDI_MAINT_REPOSITORIES")
    assert [name for name in environment if name.startswith(secrets)] == []
    assert environment["AIRFLOW_CTX_DAG_ID"] == "hudi_table_maintenance"
    assert environment["AWS_PROFILE"] == "lake"
    assert environment["JAVA_HOME"] == str(jobs.java_home)
    assert environment["PYSPARK_PYTHON"] == sys.executable
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"
    arguments = f"--properties-file {jobs.work(handle) / 'spark.properties'} pyspark-shell"
    assert environment["PYSPARK_SUBMIT_ARGS"] == arguments


def test_spark_is_told_its_own_name_of_the_storage(jobs: FakeJobs) -> None:
    """The request that the job reads has s3a:// where fsspec says s3://."""
    jobs.script("report(rows=[json.loads(Path(sys.argv[1]).read_text())])")
    engine = jobs.s3_engine(storage_options={})
    handle = engine.submit(request("s3://lake/trips"))
    jobs.handles.append(handle)
    ended(engine, handle)
    report = engine.report(handle)
    assert report is not None
    assert report.rows[0]["base_path"] == "s3a://lake/trips"


def test_storage_of_this_process_is_refused(jobs: FakeJobs) -> None:
    """memory:// is refused before anything starts, and no work directory is left."""
    with pytest.raises(InvalidSettingError, match="memory://lake"):
        jobs.engine().submit(request("memory://lake/trips"))
    assert list(jobs.work_dir.iterdir()) == []


def test_a_submit_that_fails_leaves_nothing(jobs: FakeJobs) -> None:
    """When the bundle is not there, the error names it and the work directory is removed."""
    jobs.bundle.unlink()
    with pytest.raises(BundleError, match="bundle_2"):
        jobs.submit()
    assert list(jobs.work_dir.iterdir()) == []


def test_the_log_tail_is_the_end_of_both_outputs(jobs: FakeJobs) -> None:
    """The tail has as many lines as asked for, standard error's included, and survives bytes that are no text."""
    jobs.script(
        """
        for number in range(100):
            print("line", number)
        sys.stderr.buffer.write(b"\\xff last\\n")
        """
    )
    engine = jobs.engine()
    handle = jobs.submit(engine)
    ended(engine, handle)
    assert engine.log_tail(handle, lines=3).splitlines() == ["line 98", "line 99", "� last"]
    assert len(engine.log_tail(handle).splitlines()) == 40


def test_a_report_is_whole_or_absent(jobs: FakeJobs) -> None:
    """While a job writes its report again and again through the job's own writer, a reader never sees half of one."""
    jobs.script(
        f"""
        sys.path.insert(0, {str(JOBS)!r})
        import session
        rows = [{{"text": "x" * 1000}}] * 200
        while True:
            session.write_json(Path(sys.argv[2]), document={{"version": 1, "ok": True, "rows": rows, "seconds": 1}})
        """
    )
    engine = jobs.engine()
    handle = jobs.submit(engine)
    file = jobs.work(handle) / "report.json"
    assert eventually(file.is_file)
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        report = engine.report(handle)
        assert report is not None
        assert len(report.rows) == 200


def test_progress_that_is_no_progress_is_none(jobs: FakeJobs) -> None:
    """A progress file of another shape is not worth an error."""
    jobs.script("put('progress.json', {'version': 99}); report()")
    engine = jobs.engine()
    handle = jobs.submit(engine)
    ended(engine, handle)
    assert engine.progress(handle) is None


def test_close_removes_the_work_directory_and_may_be_repeated(jobs: FakeJobs) -> None:
    """After close nothing is left on disk; a handle that was closed reads as lost, without a report."""
    jobs.script("report()")
    engine = jobs.engine()
    handle = jobs.submit(engine)
    ended(engine, handle)
    engine.close(handle)
    engine.close(handle)
    assert list(jobs.work_dir.iterdir()) == []
    assert (engine.status(handle), engine.report(handle), engine.log_tail(handle)) == (JobStatus.LOST, None, "")


@pytest.mark.parametrize(
    "job_id",
    [
        "",
        "12",
        "{pid}:{start}:{folder}",
        "{pid}:{start}:{machine}:x:{folder}",
        "x:{start}:{machine}:1:{folder}",
        "{pid}:{start}:{machine}:1:/home/someone",
        "{pid}:{start}:{machine}:1:hudi-maint-a",
        "{pid}:{start}:{machine}:1:{folder}/../hudi-maint-a",
    ],
)
def test_a_handle_that_this_release_did_not_write_is_of_a_lost_job(jobs: FakeJobs, job_id: str) -> None:
    """Nothing is killed or removed on its word; the form of an earlier release is one of them."""
    jobs.script(SLEEP)
    engine = jobs.engine()
    pid, start, host, boot, _, folder = jobs.submit(engine).job_id.split(":", 5)
    job_id = job_id.format(pid=pid, start=start, machine=f"{host}:{boot}", folder=folder)
    strange = JobHandle(engine="local", job_id=job_id)
    assert engine.status(strange) is JobStatus.LOST
    assert (engine.report(strange), engine.progress(strange), engine.log_tail(strange)) == (None, None, "")
    engine.kill(strange, timeout_seconds=1.0)
    engine.close(strange)
    assert running(int(pid))
    assert (jobs.work_dir / folder).is_dir()


def test_a_handle_of_another_engine_is_refused() -> None:
    """Its job may run there: whoever changed the connection has to see to it."""
    with pytest.raises(InvalidSettingError, match="was given to the engine 'livy'"):
        LocalSparkEngine().status(JobHandle(engine="livy", job_id="17"))


def test_an_engine_says_which_bundle_it_runs(jobs: FakeJobs) -> None:
    """Whoever checked a table against a bundle can compare."""
    engine: Engine = jobs.engine()
    assert engine.bundle == str(jobs.bundle)


def test_the_job_starts_in_its_own_session(jobs: FakeJobs) -> None:
    """The job leads a session, so that a signal to the worker's group does not reach it half."""
    jobs.script("report(rows=[{'session': os.getsid(0), 'pid': os.getpid()}])")
    engine = jobs.engine()
    handle = jobs.submit(engine)
    ended(engine, handle)
    report = engine.report(handle)
    assert report is not None
    assert report.rows[0]["session"] == report.rows[0]["pid"] != os.getsid(0)


def test_instants_are_stamped_in_the_zone_that_is_given(jobs: FakeJobs) -> None:
    """A table that is written in another zone than this machine's gets instants of that zone: Java follows TZ."""
    jobs.script("report(rows=[dict(os.environ)])")
    engine = replace(jobs.engine(), time_zone="Asia/Tokyo")
    handle = jobs.submit(engine)
    ended(engine, handle)
    report = engine.report(handle)

    assert report is not None
    assert report.rows[0]["TZ"] == "Asia/Tokyo"
