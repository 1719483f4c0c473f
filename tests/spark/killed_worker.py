"""A worker in a process of its own that runs one clustering, to be killed; what it stored is for the retry.

Run as a script it is that worker: ``python killed_worker.py STEP TABLE STORE``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import JobControl
from airflow_hudi_maint.core.model.job import JobHandle
from airflow_hudi_maint.core.model.plan import ClusteringSettings
from airflow_hudi_maint.core.model.report import StepReport
from airflow_hudi_maint.core.model.scheduler import Scheduler

ROOT = Path(__file__).parents[2]
WAIT_SECONDS = 300.0
SETTINGS = ClusteringSettings(
    target_file_bytes=64 * 1024 * 1024, small_file_bytes=32 * 1024 * 1024, max_group_bytes=128 * 1024 * 1024
)


class Step(StrEnum):
    """What the worker does."""

    EXECUTE = "execute"
    """Execute the oldest pending plan of ours."""
    CLUSTER = "cluster"
    """Let one application of Hudi schedule and execute."""


class Way(StrEnum):
    """What is killed."""

    JOB = "job"
    WORKER = "worker"
    BOTH = "both"


class Store:
    """What a task remembers over its tries, in a file."""

    def __init__(self, path: Path) -> None:
        """Nothing is remembered before :meth:`keep`."""
        self.path = path

    def keep(self, **values: object) -> None:
        """Remember, whole or not at all."""
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({**self.read(), **values}), encoding="utf-8")
        part.replace(self.path)

    def read(self) -> dict[str, object]:
        """Return what is remembered."""
        return json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}

    def control(self) -> JobControl:
        """What a try is given, as the operators give it."""
        kept = self.read()
        job, plan_path = kept.get("job"), kept.get("plan_path")
        return JobControl(
            application_name=f"hudi-maint-killed-{self.path.parent.name}",
            previous=JobHandle.from_json(job) if isinstance(job, dict) else None,
            plan_path=plan_path if job and isinstance(plan_path, str) else None,
            on_submitted=lambda handle: self.keep(job=handle.to_json()),
            on_planned=lambda path: self.keep(plan_path=path),
        )


def run_step(step: Step, *, table: str, store: Store) -> StepReport:
    """Run one try of the step."""
    workspace, now = maintenance.open_workspace(table), datetime.now(tz=UTC)
    if step is Step.EXECUTE:
        return maintenance.execute_clustering(workspace, now=now, job=store.control()).report
    return maintenance.cluster(
        workspace, now=now, settings=SETTINGS, job=store.control(), scheduler=Scheduler.HUDI
    ).report


class KilledWorker:
    """The test's side: a first try, which is killed at the moment that a file appears."""

    def __init__(self, step: Step, *, table: Path, store: Store) -> None:
        """Start the worker."""
        self._store = store
        self._log = store.path.with_suffix(".log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__)), step, str(table), str(store.path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )

    def kill_when(self, folder: Path, *, shows: str, besides: Collection[Path], way: Way) -> None:
        """Kill once another file of the folder matches the pattern ``shows``, and see the worker's end."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not set(folder.glob(shows)).difference(besides):
            assert time.monotonic() < deadline, f"no {shows} appeared: {self._said()}"
            assert self._process.poll() is None, f"the worker ended before {shows} appeared: {self._said()}"
            time.sleep(0.001)
        if way is not Way.WORKER:
            os.killpg(self._job_group(), signal.SIGKILL)
        if way is not Way.JOB:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(WAIT_SECONDS)
        # A worker whose job was killed goes on to judge by the timeline.
        assert way is Way.JOB or self._process.returncode == -signal.SIGKILL, self._said()

    def _job_group(self) -> int:
        job = self._store.read()["job"]
        assert isinstance(job, dict)
        return int(str(job["job_id"]).split(":")[0])

    def _said(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:]


if __name__ == "__main__":
    run_step(Step(sys.argv[1]), table=sys.argv[2], store=Store(Path(sys.argv[3])))
