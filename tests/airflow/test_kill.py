"""A task that is stopped takes its whole Spark job with it."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowTaskTimeout

from airflow_hudi_maint.core.errors import EngineError, EngineKilledError
from airflow_hudi_maint.operators.expiry import HudiExpirePartitionsOperator
from airflow_hudi_maint.operators.job import JOB_KEY
from tests.airflow.fakes import FakeStore, context
from tests.airflow.marks import AIRFLOW
from tests.airflow.tables import three_days

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.airflow.java import CountingJava

pytestmark = AIRFLOW

KEEP_TWO = [{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2}]


@pytest.fixture
def expiring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counting_java: CountingJava) -> Any:
    """A task whose job hangs: its Java does nothing but sleep, and its bundle is an empty file of the right name."""
    table = three_days(str(tmp_path / "trips"))
    bundle = tmp_path / "hudi-spark3.5-bundle_2.12-1.2.0.jar"
    bundle.write_bytes(b"")
    extra = {"bundle": str(bundle), "java_home": str(counting_java.home)}
    monkeypatch.setenv(
        "AIRFLOW_CONN_HANGING", json.dumps({"conn_type": "hudi", "host": table.base_path, "extra": extra})
    )
    return HudiExpirePartitionsOperator(task_id="expire", hudi_conn_id="hanging", policies=KEEP_TWO)


@pytest.fixture
def stopped_by_sigterm(expiring: Any) -> Iterator[None]:
    """Install the handler that Airflow's task runner installs."""
    before = signal.signal(signal.SIGTERM, lambda *_: expiring.on_kill())
    yield
    signal.signal(signal.SIGTERM, before)


def job_of(java: CountingJava, *, within: float = 60.0) -> list[int]:
    """Wait for the job's Java and return its processes."""
    deadline = time.monotonic() + within
    while not (running := java.running) and time.monotonic() < deadline:
        time.sleep(0.05)
    return running


@pytest.mark.usefixtures("stopped_by_sigterm")
def test_a_task_that_is_stopped_ends_with_its_job(expiring: Any, counting_java: CountingJava) -> None:
    """SIGTERM arrives while the job runs: its processes are gone in time, and the task ends with an error."""
    store, stopped_at = FakeStore(), [0.0]

    def stop() -> None:
        assert job_of(counting_java)
        assert store[JOB_KEY]["engine"] == "local", "the handle was stored before the job was watched"
        stopped_at[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGTERM)

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises((EngineKilledError, EngineError)):
        expiring.execute(context(store=store))
    assert time.monotonic() - stopped_at[0] < 5 + 5, "5 s for the kill, and as much for looking at the table again"
    stopper.join()
    assert counting_java.running == []
    assert store[JOB_KEY]["engine"] == "local", "a retry still finds what the first try submitted"


def test_a_task_that_takes_too_long_ends_with_its_job(expiring: Any, counting_java: CountingJava) -> None:
    """Airflow's execution timeout is raised in the middle of the watching."""

    def time_out(*_: object) -> None:
        raise AirflowTaskTimeout

    before = signal.signal(signal.SIGALRM, time_out)
    starter = threading.Thread(target=lambda: job_of(counting_java) and signal.setitimer(signal.ITIMER_REAL, 0.01))
    starter.start()
    try:
        with pytest.raises(AirflowTaskTimeout):
            expiring.execute(context())
    finally:
        signal.signal(signal.SIGALRM, before)
        starter.join()
    expiring.on_kill()
    assert counting_java.running == []


def test_a_job_that_runs_too_long_is_killed(expiring: Any, counting_java: CountingJava) -> None:
    """The time is the job's, not the task's; the error says what to do."""
    expiring.job_timeout = timedelta(seconds=3)
    with pytest.raises(EngineKilledError, match="longer than 3 s"):
        expiring.execute(context())
    assert counting_java.starts
    assert counting_java.running == []
