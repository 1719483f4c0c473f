"""A step on a real cluster inside a running Airflow, with Spark and Hudi: deferred, cut off, handed over, ended.

The same without Spark, in a minute, is ``tests/airflow/test_deferring_live.py``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.airflow.live_steps import ClusterAddress, LiveSteps, running_steps
from tests.golden.golden import unpack
from tests.standalone_cluster import StandaloneSpark, running_standalone_spark

pytestmark = [pytest.mark.spark, pytest.mark.proof]

DAGS = {
    "waits": True,
    "is_handed_over": True,
    "loses_its_worker": False,
    "loses_all": False,
    "begins_anew": True,
    "is_failed": True,
    "is_stopped": False,
}
KEPT = 3
"""Of four days: the oldest is dropped."""

DROPPED = "day=2026-11-01"
SECONDS = 240.0


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What a proof works with; one DAG at a time has a job."""

    steps: LiveSteps
    cluster: StandaloneSpark
    tables: dict[str, Path]

    def drivers(self) -> list[str]:
        """Ids of all drivers that the master ever had."""
        page = self.cluster.page()
        return sorted(one["id"] for one in (*page["activedrivers"], *page["completeddrivers"]))

    def live_drivers(self) -> list[str]:
        return [one["id"] for one in self.cluster.page()["activedrivers"]]

    def started(self, dag_id: str) -> set[str]:
        """Start a run, wait for its driver, and return the drivers that were there before."""
        before = set(self.drivers())
        self.steps.run(dag_id)
        self.steps.airflow.until(self.live_drivers, what=f"the driver of {dag_id} runs", seconds=SECONDS)
        return before

    @contextmanager
    def paused(self, driver_id: str) -> Iterator[None]:
        """Let a driver stand still, so that its job lasts."""
        processes = _processes_of(driver_id)
        assert processes, f"driver {driver_id} has no process"
        for one in processes:
            os.kill(one, signal.SIGSTOP)
        yield
        for one in processes:
            os.kill(one, signal.SIGCONT)

    def drops(self, dag_id: str) -> list[str]:
        """Instants of all completed replace commits of a table."""
        timeline = HudiTable.open(str(self.tables[dag_id])).timeline()
        return [one.requested_time for one in timeline.completed if one.action is Action.REPLACE_COMMIT]

    def check_done_once(self, dag_id: str, *, tries: int) -> None:
        """One replace commit, which the task reports as its own."""
        self.steps.until(dag_id, "success", seconds=SECONDS)
        result = self.steps.result(dag_id)
        assert (result["outcome"], result["instants"], result["partitions"]) == ("done", self.drops(dag_id), 1)
        assert len(self.drops(dag_id)) == 1
        assert self.steps.task(dag_id).try_number == tries
        self.steps.airflow.until(lambda: not self.live_drivers(), what="no driver is left", seconds=SECONDS)


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proof]:
    folder = tmp_path_factory.mktemp("proof")
    (folder / "cluster").mkdir()
    tables = {name: unpack("v9_cow_plain", _made(folder / name)) for name in DAGS}
    with running_standalone_spark(folder / "cluster", workers=1) as cluster:
        address = ClusterAddress(master=cluster.master, rest_url=cluster.rest_url, ui_url=cluster.ui_url)
        with running_steps(folder, DAGS, tables=tables, keep=KEPT, cluster=address) as steps:
            yield Proof(steps=steps, cluster=cluster, tables=tables)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_deferred_step_comes_back_and_reports_its_drop(proof: Proof) -> None:
    """While the job runs no slot is taken; one driver, one replace commit, one try."""
    before = proof.started("waits")
    proof.steps.until("waits", "deferred")
    assert proof.live_drivers(), "the job runs on without its worker"
    assert proof.steps.airflow.slots() == (0, 1)
    proof.check_done_once("waits", tries=1)
    assert len(set(proof.drivers()) - before) == 1


def test_a_deferred_step_that_is_marked_failed_ends_its_job(proof: Proof) -> None:
    """Nothing is dropped, and nothing runs on."""
    proof.started("is_failed")
    proof.steps.until_waited_for("is_failed", try_number=1)
    (driver,) = set(proof.live_drivers())
    proof.steps.mark_failed("is_failed")
    proof.steps.airflow.until(lambda: not proof.live_drivers(), what="the driver is gone", seconds=SECONDS)
    assert _state(proof.cluster, driver) == "KILLED"
    assert proof.drops("is_failed") == []


def test_a_triggerer_that_falls_silent_and_comes_back_leaves_the_job_alone(proof: Proof) -> None:
    """Another takes its triggers over; when the first wakes up it finds them gone, and must not take that for a clear.

    It is then stopped, as in a rolling restart: that ends no job either.
    """
    airflow = proof.steps.airflow
    before = proof.started("is_handed_over")
    proof.steps.until_waited_for("is_handed_over", try_number=1)
    with proof.paused(proof.live_drivers()[0]):
        airflow.signal("triggerer", signal.SIGSTOP)
        airflow.start("second-triggerer", "triggerer", "--skip-serve-logs")
        proof.steps.until_waited_for("is_handed_over", try_number=1, triggerers=2)
        airflow.signal("triggerer", signal.SIGCONT)
        airflow.until(
            lambda: "it goes on" in proof.steps.triggers("is_handed_over", try_number=1)[0],
            what="the first triggerer lets go",
            seconds=SECONDS,
        )
    airflow.stop("triggerer")
    proof.check_done_once("is_handed_over", tries=1)
    (driver,) = set(proof.drivers()) - before
    assert _state(proof.cluster, driver) == "FINISHED"


def test_a_killed_worker_leaves_its_job_to_the_retry(proof: Proof) -> None:
    """The task's process is killed: one driver, one replace commit."""
    before = proof.started("loses_its_worker")
    proof.steps.until_said("loses_its_worker", "Submitted", try_number=1)
    process = proof.steps.task("loses_its_worker").pid
    assert process is not None
    os.kill(process, signal.SIGKILL)
    proof.steps.until_said("loses_its_worker", "Attached to job", try_number=2, seconds=SECONDS)
    proof.check_done_once("loses_its_worker", tries=2)
    assert len(set(proof.drivers()) - before) == 1


def test_a_worker_that_is_killed_with_its_supervisor_leaves_its_job_to_the_retry(proof: Proof) -> None:
    """As a machine that is lost: nobody reports the end, and the scheduler misses the heartbeats."""
    before = proof.started("loses_all")
    proof.steps.until_said("loses_all", "Submitted", try_number=1)
    process = proof.steps.task("loses_all").pid
    assert process is not None
    supervisor = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    for one in (supervisor, process):
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    proof.steps.until("loses_all", "success", seconds=SECONDS)
    assert len(proof.drops("loses_all")) == 1
    assert proof.steps.result("loses_all")["instants"] == proof.drops("loses_all")
    assert len(set(proof.drivers()) - before) == 1


def test_a_cleared_step_ends_its_job_and_begins_anew(proof: Proof) -> None:
    """The first driver is killed on the cluster, the second one drops: one replace commit."""
    before = proof.started("begins_anew")
    proof.steps.until_waited_for("begins_anew", try_number=1)
    (first,) = set(proof.live_drivers())
    proof.steps.clear("begins_anew")
    proof.check_done_once("begins_anew", tries=2)
    assert len(set(proof.drivers()) - before) == 2
    assert _state(proof.cluster, first) == "KILLED"


def test_a_running_step_that_is_marked_failed_ends_its_job(proof: Proof) -> None:
    """Its worker does that, while it is being ended itself."""
    proof.started("is_stopped")
    (driver,) = set(proof.live_drivers())
    proof.steps.mark_failed("is_stopped")
    proof.steps.airflow.until(lambda: not proof.live_drivers(), what="the driver is gone", seconds=SECONDS)
    assert _state(proof.cluster, driver) == "KILLED"
    assert proof.drops("is_stopped") == []


def _state(cluster: StandaloneSpark, driver_id: str) -> str:
    return next(str(one["state"]) for one in cluster.page()["completeddrivers"] if one["id"] == driver_id)


def _processes_of(driver_id: str) -> list[int]:
    """Processes of this machine that have the driver in their command."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if driver_id.encode() in command.read_bytes():
                found.append(int(command.parent.name))
    return found
