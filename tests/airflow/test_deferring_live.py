"""A step on a cluster inside a running Airflow: it leaves its slot, outlives its worker, and ends with its task.

The cluster is a stand-in that speaks as Spark's master does; ``tests/spark/test_deferring_proof.py`` shows the same and
more with Spark and Hudi.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.airflow.cluster_stand_in import ClusterStandIn, running_cluster_stand_in
from tests.airflow.live_steps import ClusterAddress, LiveSteps, running_steps
from tests.airflow.marks import AIRFLOW
from tests.airflow.tables import three_days

pytestmark = AIRFLOW

DAGS = {"waits": True, "begins_anew": True, "loses_its_worker": False}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ClusterStandIn]:
    with running_cluster_stand_in() as running:
        yield running


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory, cluster: ClusterStandIn) -> Iterator[LiveSteps]:
    """One run of each DAG, started at once: what they have in common is waited for once."""
    folder = tmp_path_factory.mktemp("live")
    tables = {name: folder / name for name in DAGS}
    for path in tables.values():
        three_days(str(path))
    address = ClusterAddress(master="spark://127.0.0.1:7077", rest_url=cluster.url, ui_url=cluster.url)
    bundle = "local:/opt/hudi-spark3.5-bundle_2.12-1.2.0.jar"
    with running_steps(folder, DAGS, tables=tables, keep=2, cluster=address, bundle=bundle) as running:
        for name in DAGS:
            running.run(name)
        yield running


def test_a_deferred_step_takes_no_slot_and_reports_what_its_job_did(steps: LiveSteps, cluster: ClusterStandIn) -> None:
    """The triggerer sees the job's end, the task comes back, and its report is that of the timeline."""
    for name in ("waits", "begins_anew"):
        steps.until(name, "deferred")
    steps.until_said("loses_its_worker", "Submitted", try_number=1)
    assert steps.airflow.slots() == (1, 2)

    (driver,) = cluster.of("waits")
    instant = cluster.drop(driver)
    steps.until("waits", "success")
    result = steps.result("waits")
    assert (result["outcome"], result["instants"], result["partitions"]) == ("done", [instant], 1)
    assert "which this task waited for" in result["message"]
    assert steps.task("waits").try_number == 1
    assert cluster.of("waits") == [driver]


def test_a_worker_that_is_killed_leaves_its_job_to_the_retry(steps: LiveSteps, cluster: ClusterStandIn) -> None:
    """It attaches to the job that runs, and submits no second one."""
    steps.until_said("loses_its_worker", "Submitted", try_number=1)
    process = steps.task("loses_its_worker").pid
    assert process is not None
    os.kill(process, signal.SIGKILL)

    steps.until_said("loses_its_worker", "Attached to job", try_number=2)
    (driver,) = cluster.of("loses_its_worker")
    instant = cluster.drop(driver)
    steps.until("loses_its_worker", "success")
    result = steps.result("loses_its_worker")
    assert (result["outcome"], result["instants"]) == ("done", [instant])
    assert cluster.of("loses_its_worker") == [driver]


def test_a_person_who_ends_a_deferred_step_ends_its_job(steps: LiveSteps, cluster: ClusterStandIn) -> None:
    """Cleared, the task begins anew, with a job of its own; marked as failed, that one ends as well."""
    steps.until_waited_for("begins_anew", try_number=1)
    steps.clear("begins_anew")
    steps.until_waited_for("begins_anew", try_number=2)
    first, second = cluster.of("begins_anew")
    assert (first.state, second.state) == ("KILLED", "RUNNING")

    steps.mark_failed("begins_anew")
    steps.airflow.until(lambda: second.state == "KILLED", what="the second job is killed")
    assert steps.task("begins_anew").state == "failed"
    assert cluster.of("begins_anew") == [first, second]
