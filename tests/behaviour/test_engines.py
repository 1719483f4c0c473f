"""Every engine runs the same jobs to the same ends: on this machine, and on a real cluster in both of its modes.

The jobs are tiny and know no Hudi; how Hudi's own run on a cluster is seen in ``tests/spark/test_cluster_engine.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from airflow_hudi_maint.core.engines.base import Engine, run_job, submit_job, watch_job
from airflow_hudi_maint.core.engines.local import LocalSparkEngine
from airflow_hudi_maint.core.engines.spark_submit import SparkSubmitEngine
from airflow_hudi_maint.core.errors import EngineKilledError
from airflow_hudi_maint.core.model.job import JobHandle, JobStatus
from tests.jobs_place import SECRET, JobsPlace, written_place
from tests.standalone_cluster import StandaloneSpark, running_standalone_spark
from tests.waiting import eventually

pytestmark = pytest.mark.spark

ENGINES = ("local", "client", "cluster")


@dataclass(frozen=True, kw_only=True)
class Place(JobsPlace):
    """An engine of each kind, for jobs on one table."""

    cluster: StandaloneSpark

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
            exchange=self.exchange,
            **given,
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneSpark]:
    with running_standalone_spark(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def place(cluster: StandaloneSpark, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(cluster=cluster, **written_place(tmp_path_factory.mktemp("lake")))


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
    assert eventually(
        lambda: not place.cluster.page()["activeapps"] and not place.cluster.page()["activedrivers"], seconds=60
    )


def test_a_job_on_the_cluster_is_found_by_its_handle_and_by_its_name(place: Place) -> None:
    """A second submission of the same name attaches; so does one that lost every note of the first."""
    request = place.request("once", seconds=25)
    handle = submit_job(place.engine("cluster"), request, on_submitted=lambda _: None, log=str)
    assert place.engine("cluster").submit(request) == handle
    stored = JobHandle.from_json(json.loads(json.dumps(handle.to_json())))

    assert eventually(lambda: [one["name"] for one in place.cluster.page()["activeapps"]] == ["once"], seconds=60)
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
    assert eventually(lambda: engine.status(handle).ended, seconds=60)
    assert engine.status(handle) is JobStatus.FAILED
    assert engine.report(handle) is None
    engine.close(handle)
