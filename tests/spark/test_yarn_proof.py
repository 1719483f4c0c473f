"""SparkSubmitEngine on a real YARN: a resource manager and a node of Hadoop 3.3.4, on this machine."""

from __future__ import annotations

import base64
import gzip
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.engines.base import run_job, watch_job
from airflow_hudi_maint.core.engines.spark_submit import SparkSubmitEngine
from airflow_hudi_maint.core.errors import EngineError
from airflow_hudi_maint.core.maintenance import JobControl
from airflow_hudi_maint.core.model.job import JobHandle, JobStatus
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.storage.job_exchange import StorageExchange
from tests.golden.golden import unpack
from tests.jobs_place import SECRET, JobsPlace, written_place
from tests.waiting import eventually
from tests.yarn_cluster import Yarn, running_yarn

pytestmark = [pytest.mark.spark, pytest.mark.proof]

KEEP_THREE = PolicySet.from_json([{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 3}])
"""Drops the oldest of four days."""

SUBMITS_AND_DIES = """
import json, os, signal, sys
from pathlib import Path
from airflow_hudi_maint.core.engines.cluster import ClusterEngine
from airflow_hudi_maint.core.engines.spark_submit import SparkSubmitEngine
from airflow_hudi_maint.core.model.job import JobRequest
from airflow_hudi_maint.core.storage.job_exchange import StorageExchange

ClusterEngine._note = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
told = json.loads(sys.argv[1])
request = JobRequest.from_json(told["request"])
engine = SparkSubmitEngine(
    **told["engine"], jobs_dir=Path(told["jobs_dir"]), exchange=lambda: StorageExchange.open(request.base_path)
)
engine.submit(request)
"""


@dataclass(frozen=True, kw_only=True)
class Place(JobsPlace):
    """Engines for jobs that know no Hudi, on one table."""

    yarn: Yarn

    def settings(self, **spark_conf: str) -> dict[str, Any]:
        return {
            "master": "yarn",
            "deploy_mode": "cluster",
            "rest_url": self.yarn.rest_url,
            "bundle": str(self.bundle),
            "python": sys.executable,
            "driver_memory": "512m",
            "time_zone": "Asia/Kathmandu",
            "spark_conf": {**self.yarn.spark_conf(), "spark.hadoop.fs.s3a.secret.key": SECRET, **spark_conf},
        }

    def engine(self, **more: Any) -> SparkSubmitEngine:
        given = {**self.settings(), "jobs_dir": self.jobs_dir, "exchange": self.exchange, **more}
        return SparkSubmitEngine(**given)


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    with running_yarn(tmp_path_factory.mktemp("yarn")) as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HADOOP_CONF_DIR", str(running.conf_dir))
        yield running


@pytest.fixture(scope="module")
def place(yarn: Yarn, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(yarn=yarn, **written_place(tmp_path_factory.mktemp("lake")))


def command_lines() -> str:
    """Of all processes of this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes())
        except OSError:
            continue
    return b"\n".join(found).decode(errors="replace")


def shown(folder: Path) -> str:
    """What the node shows of a job: all files among its logs, and what is packed in their long words."""
    texts = [path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()]
    packed = re.findall(r"H4sI[\w+/=]{40,}", "\n".join(texts))
    return "\n".join((*texts, *(gzip.decompress(base64.b64decode(word)).decode() for word in packed)))


def test_a_job_whose_worker_dies_after_submitting_is_attached_to(place: Place) -> None:
    """Before even its id was noted: the retry finds it by its tag, submits none, and gets its report.

    Its secrets are on no command line and in nothing that YARN shows; nothing of it stays in the table's folder.
    """
    request = place.request("once", seconds=10)
    told = {"engine": place.settings(), "jobs_dir": str(place.jobs_dir), "request": request.to_json()}
    dead = subprocess.run([sys.executable, "-c", SUBMITS_AND_DIES, json.dumps(told)], timeout=180, check=False)
    assert dead.returncode == -signal.SIGKILL
    handle = place.engine().submit(request)
    assert place.engine().submit(request) == handle
    assert [one["name"] for one in place.yarn.applications()].count("once") == 1

    seen: list[str] = []
    stored = JobHandle.from_json(json.loads(json.dumps(handle.to_json())))
    outcome = watch_job(
        place.engine(), stored, log=lambda line: seen.extend((line, command_lines())), report_every_seconds=2.0
    )
    assert outcome.status is JobStatus.SUCCEEDED, outcome
    assert outcome.report is not None
    row = {"count": 100, "name": "once", "secret": SECRET, "option": SECRET, "zone": "Asia/Kathmandu"}
    assert outcome.report.rows == (row,)
    assert "delivery-file=hudi_maint_job" in "".join(seen)
    assert SECRET not in "".join(seen)
    logs = shown(place.yarn.folder / "logs")
    assert "launch_container" in logs or "ApplicationMaster" in logs
    assert SECRET not in logs
    assert SECRET not in json.dumps(place.yarn.applications()) + outcome.log_tail
    left = [path.name for path in place.base_path.rglob("*") if path.is_file()]
    assert set(left) <= {"claim.json", "jobs.zip", "run_job.py"}


def test_a_job_that_fails_says_why(place: Place) -> None:
    """By its report, and by the end of the driver's log, which its node shows."""
    outcome = run_job(place.engine(), place.request("fails", fail=True), on_submitted=lambda _: None, log=print)
    assert outcome.status is JobStatus.FAILED
    assert outcome.report is not None
    assert outcome.report.error_message == "ValueError: as it was asked to"
    assert "delete_partitions failed: ValueError: as it was asked to" in outcome.log_tail
    assert "User application exited with status 1" in outcome.log_tail


def test_a_job_that_cannot_begin_says_why(place: Place) -> None:
    """There is no report then: its status and the driver's log tell."""
    engine = place.engine(python="/nowhere/python")
    outcome = run_job(engine, place.request("python"), on_submitted=lambda _: None, log=print)
    assert (outcome.status, outcome.report) == (JobStatus.FAILED, None)
    assert "/nowhere/python" in outcome.log_tail


def test_a_job_is_killed(place: Place) -> None:
    """Within seconds, driver and executors."""
    handle = place.engine().submit(place.request("killed", seconds=300))
    job_id = handle.job_id.split()[0]
    assert eventually(lambda: command_lines().count(f"/{job_id}/") > 1, seconds=120)
    place.engine().kill(handle)
    assert place.engine().status(handle) is JobStatus.KILLED
    assert eventually(lambda: f"/{job_id}/" not in command_lines(), seconds=20)


def test_a_driver_that_is_given_up_while_it_works_ends(place: Place) -> None:
    """As when its manager was started anew and another job was submitted: it leaves the table to that one."""
    handle = place.engine().submit(place.request("given-up", seconds=300))
    folder = place.base_path / ".hoodie/.airflow_hudi_maint/jobs/given-up/delete_partitions"
    assert eventually((folder / "progress.json").exists, seconds=120)
    (folder / "claim.json").write_text('{"version": 1, "claim": "of another"}', encoding="utf-8")
    assert eventually(lambda: place.engine().status(handle) is JobStatus.FAILED, seconds=40)
    assert "another took its place" in place.engine().log_tail(handle)
    assert place.engine().report(handle) is None


@pytest.mark.parametrize(
    ("conf", "words"), [({"spark.yarn.queue": "nope"}, "unknown queue"), ({"spark.driver.memory": "64g"}, "memory")]
)
def test_what_yarn_refuses_is_said_in_its_words(place: Place, conf: dict[str, str], words: str) -> None:
    """And nothing is left live that a retry would attach to."""
    engine = place.engine(spark_conf=place.settings(**conf)["spark_conf"])
    with pytest.raises(EngineError, match=words) as raised:
        engine.submit(place.request(f"refused-{words[:6].strip()}"))
    assert "\tat org.apache" not in str(raised.value)
    assert [one["state"] for one in place.yarn.applications() if one["name"].startswith("refused")] in ([], ["FAILED"])


@pytest.mark.parametrize("mode", ["cluster", "client"])
def test_a_partition_is_dropped_by_a_job_on_yarn(yarn: Yarn, tmp_path: Path, mode: str) -> None:
    """Hudi's own job, and the timeline says that it is done."""
    table = unpack("v9_cow_plain", tmp_path)
    engine = SparkSubmitEngine(
        master="yarn",
        deploy_mode=mode,  # type: ignore[arg-type]
        rest_url=yarn.rest_url,
        python=sys.executable,
        driver_memory="1g",
        spark_conf={**yarn.spark_conf(), "spark.executor.memory": "1g"},
        time_zone="UTC",
        exchange=lambda: StorageExchange.open(str(table)),
    )
    workspace = maintenance.open_workspace(str(table), engine=lambda: engine, timeline_zone="UTC")
    job = JobControl(application_name=f"hudi-maint-{mode}")
    reported = maintenance.expire_partitions(workspace, now=datetime.now(UTC), job=job, policies=KEEP_THREE)
    assert reported.report.outcome is Outcome.DONE
    assert reported.report.partitions == ("day=2026-11-01",)
    (application,) = (one for one in yarn.applications() if one["name"] == f"hudi-maint-{mode}")
    assert (application["state"], application["finalStatus"]) == ("FINISHED", "SUCCEEDED")
