"""Every engine runs the same jobs to the same ends: on this machine, and on a real cluster in both of its modes.

The jobs are tiny and know no Hudi; how Hudi's own run on a cluster is seen in ``tests/spark/test_cluster_engine.py``.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.engines.base import Engine, run_job, submit_job, watch_job
from airflow_hudi_maint.core.engines.bundle import DEFAULT_BUNDLE, resolve_bundle
from airflow_hudi_maint.core.engines.java import find_java
from airflow_hudi_maint.core.engines.job_code import JOBS
from airflow_hudi_maint.core.engines.local import LocalSparkEngine
from airflow_hudi_maint.core.engines.pyspark_install import find_pyspark
from airflow_hudi_maint.core.engines.spark_submit import SparkSubmitEngine
from airflow_hudi_maint.core.errors import EngineKilledError
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobRequest, JobStatus
from airflow_hudi_maint.core.storage.job_exchange import StorageExchange
from tests.standalone_cluster import StandaloneSpark, running_standalone_spark

pytestmark = pytest.mark.spark

SECRET = "hush-hush-hush"  # noqa: S105
ENGINES = ("local", "client", "cluster")

SCRIPT = """
import os, time
from session import main

def job(spark, request):
    wanted = request.arguments
    if wanted.get("fail"):
        raise ValueError("as it was asked to")
    numbers = spark.range(100).repartition(2)
    found = numbers.count()
    time.sleep(wanted.get("seconds", 0))
    conf = spark._jsc.hadoopConfiguration()
    return [{"count": found, "name": spark.sparkContext.appName, "secret": conf.get("fs.s3a.secret.key"),
             "option": request.write_options.get("hoodie.write.lock.token"),
             "zone": spark._jvm.java.util.TimeZone.getDefault().getID()}]

if __name__ == "__main__":
    main("delete_partitions", job=job)
"""


@dataclass(frozen=True, kw_only=True)
class Place:
    """An engine of each kind, for jobs on one table."""

    cluster: StandaloneSpark
    base_path: Path
    jobs_dir: Path
    bundle: Path

    def engine(self, kind: str, **more: Any) -> Engine:
        given: dict[str, Any] = {
            "bundle": str(self.bundle),
            "jobs_dir": self.jobs_dir,
            "driver_memory": "512m",
            "time_zone": "Asia/Kathmandu",
            "spark_conf": {
                "spark.hadoop.fs.s3a.secret.key": SECRET,
                "spark.executor.memory": "512m",
                "spark.cores.max": "1",
            },
            **more,
        }
        if kind == "local":
            return LocalSparkEngine(master="local[1]", **given)
        return SparkSubmitEngine(
            master=self.cluster.master,
            deploy_mode=kind,  # type: ignore[arg-type]
            rest_url=self.cluster.rest_url,
            ui_url=self.cluster.ui_url,
            exchange=lambda: StorageExchange.open(str(self.base_path)),
            **given,
        )

    def request(self, name: str, **arguments: Any) -> JobRequest:
        return JobRequest(
            kind=JobKind.DELETE_PARTITIONS,
            base_path=str(self.base_path),
            table_name="trips",
            write_options={"hoodie.write.lock.token": SECRET},
            arguments=arguments,
            name=name,
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneSpark]:
    with running_standalone_spark(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def place(cluster: StandaloneSpark, tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("lake")
    jobs = root / "jobs"
    shutil.copytree(JOBS, jobs, ignore=shutil.ignore_patterns("__pycache__"))
    (jobs / "delete_partitions.py").write_text(SCRIPT, encoding="utf-8")
    (root / "trips" / ".hoodie").mkdir(parents=True)
    bundle = resolve_bundle(DEFAULT_BUNDLE, java=find_java(), pyspark=find_pyspark(sys.executable))
    return Place(cluster=cluster, base_path=root / "trips", jobs_dir=jobs, bundle=bundle)


def eventually(condition: Callable[[], bool], *, seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


@pytest.mark.parametrize("kind", ENGINES)
def test_a_job_runs_and_reports(place: Place, kind: str) -> None:
    """With its name, its time zone and its secrets; of these none is on a command line, and nothing stays behind."""
    engine = place.engine(kind)
    lines: list[str] = []
    outcome = run_job(
        engine, place.request(f"runs-{kind}"), on_submitted=lambda _: None, log=lines.append, interval_seconds=0.3
    )
    assert outcome.status is JobStatus.SUCCEEDED, outcome
    assert outcome.report is not None
    assert outcome.report.rows == (
        {
            "count": 100,
            "name": f"runs-{kind}",
            "secret": SECRET,
            "option": SECRET,
            "zone": "Asia/Kathmandu",
        },
    )
    assert outcome.handle.kind == "delete_partitions"
    assert SECRET not in place.cluster.launch_commands()
    assert SECRET not in json.dumps(place.cluster.page()) + repr(engine) + "".join(lines)
    left = [path.name for path in place.base_path.rglob("*") if path.is_file()]
    assert set(left) <= {"claim.json", "jobs.zip", "run_job.py"}


@pytest.mark.parametrize("kind", ENGINES)
def test_a_job_that_fails_says_why(place: Place, kind: str) -> None:
    """By its report; the end of the driver's log is there as well."""
    outcome = run_job(
        place.engine(kind),
        place.request(f"fails-{kind}", fail=True),
        on_submitted=lambda _: None,
        log=str,
        interval_seconds=0.3,
    )
    assert outcome.status is JobStatus.FAILED
    assert outcome.report is not None
    assert outcome.report.error_message == "ValueError: as it was asked to"
    assert "as it was asked to" in outcome.log_tail


@pytest.mark.parametrize("kind", ENGINES)
def test_a_job_that_takes_too_long_is_killed(place: Place, kind: str) -> None:
    """Neither driver nor application is left on the cluster."""
    with pytest.raises(EngineKilledError, match="ran longer than"):
        run_job(
            place.engine(kind),
            place.request(f"lasts-{kind}", seconds=120),
            on_submitted=lambda _: None,
            log=str,
            interval_seconds=0.3,
            timeout_seconds=12.0,
        )
    assert eventually(lambda: not place.cluster.page()["activeapps"] and not place.cluster.page()["activedrivers"])


def test_a_job_on_the_cluster_is_found_by_its_handle_and_by_its_name(place: Place) -> None:
    """A second submission of the same name attaches; so does one that lost every note of the first."""
    request = place.request("once", seconds=25)
    handle = submit_job(place.engine("cluster"), request, on_submitted=lambda _: None, log=str)
    assert place.engine("cluster").submit(request) == handle
    stored = JobHandle.from_json(json.loads(json.dumps(handle.to_json())))

    assert eventually(lambda: [one["name"] for one in place.cluster.page()["activeapps"]] == ["once"])
    note = place.base_path / ".hoodie/.airflow_hudi_maint/jobs/once/delete_partitions/submission.json"
    note.unlink()
    by_name = place.engine("cluster").submit(request)
    assert by_name.job_id.startswith("app-")
    assert place.engine("cluster").status(by_name) is JobStatus.RUNNING
    assert len(place.cluster.page()["activedrivers"]) == 1

    outcome = watch_job(place.engine("cluster"), stored, log=str, interval_seconds=0.3)
    assert outcome.status is JobStatus.SUCCEEDED
    assert place.engine("cluster").status(by_name).ended


def test_a_driver_that_was_given_up_leaves_the_table_alone(place: Place) -> None:
    """It starts late, finds another claim in the folder, and neither works nor writes a report there."""
    request = place.request("late")
    engine = place.engine("cluster")
    handle = submit_job(engine, request, on_submitted=lambda _: None, log=str)
    claim = place.base_path / ".hoodie/.airflow_hudi_maint/jobs/late/delete_partitions/claim.json"
    claim.write_text('{"version": 1, "claim": "of another"}', encoding="utf-8")
    assert eventually(lambda: engine.status(handle).ended)
    assert engine.status(handle) is JobStatus.FAILED
    assert engine.report(handle) is None
    engine.close(handle)
