"""Hudi's own jobs on a real cluster: a table is maintained by a driver that Airflow did not start."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.engines.spark_submit import SparkSubmitEngine
from airflow_hudi_maint.core.maintenance import JobControl, JobDeferred
from airflow_hudi_maint.core.model.job import JobHandle, JobStatus
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.storage.job_exchange import StorageExchange
from tests.golden.golden import unpack
from tests.standalone_cluster import StandaloneSpark, running_standalone_spark

pytestmark = pytest.mark.spark

KEEP_THREE = PolicySet.from_json([{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 3}])
"""Drops the oldest of four days."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneSpark]:
    with running_standalone_spark(tmp_path_factory.mktemp("cluster"), workers=1) as running:
        yield running


def workspace(cluster: StandaloneSpark, table: Path, *, mode: str) -> maintenance.Workspace:
    engine = SparkSubmitEngine(
        master=cluster.master,
        deploy_mode=mode,  # type: ignore[arg-type]
        rest_url=cluster.rest_url,
        ui_url=cluster.ui_url,
        driver_memory="1g",
        spark_conf={"spark.executor.memory": "1g", "spark.cores.max": "1"},
        time_zone="UTC",
        exchange=lambda: StorageExchange.open(str(table)),
    )
    return maintenance.open_workspace(str(table), engine=lambda: engine, timeline_zone="UTC")


def expire(workspace: maintenance.Workspace, job: JobControl) -> maintenance.StepReported:
    return maintenance.expire_partitions(workspace, now=datetime.now(UTC), job=job, policies=KEEP_THREE)


def test_a_drop_on_the_cluster_is_deferred_over_and_found_on_the_timeline(
    cluster: StandaloneSpark, tmp_path: Path
) -> None:
    """The first half submits and leaves; the second, in another process for all it knows, reports what was dropped."""
    table = unpack("v9_cow_plain", tmp_path)
    kept: dict[str, Any] = {}
    job = JobControl(
        application_name="hudi-maint-deferred",
        defer=True,
        on_submitted=lambda handle: kept.update(handle=handle),
        on_planned=lambda path: kept.update(plan=path),
    )
    with pytest.raises(JobDeferred) as raised:
        expire(workspace(cluster, table, mode="cluster"), job)
    handle: JobHandle = raised.value.handle
    assert handle == kept["handle"]

    engine = workspace(cluster, table, mode="cluster").engine()
    deadline = time.monotonic() + 180
    while engine.status(handle) is JobStatus.RUNNING:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    again = workspace(cluster, table, mode="cluster")
    resumed = replace(job, previous=handle, plan_path=kept["plan"], resumed=True)
    reported = maintenance.credit(again, expire(again, resumed), job=resumed)
    assert reported.report.outcome is Outcome.DONE
    assert reported.report.partitions == ("day=2026-11-01",)
    assert reported.report.engine_seconds > 0
    assert len(cluster.page()["completeddrivers"]) == 1


def test_a_drop_by_a_driver_of_this_machine(cluster: StandaloneSpark, tmp_path: Path) -> None:
    """In client mode, with executors on the cluster."""
    table = unpack("v9_cow_plain", tmp_path)
    reported = expire(workspace(cluster, table, mode="client"), JobControl(application_name="hudi-maint-client"))
    assert reported.report.outcome is Outcome.DONE
    assert "hudi-maint-client" in [one["name"] for one in cluster.page()["completedapps"]]
