"""YARN when it is not as one would like it: standby managers, wrong addresses, a spark-submit that fails half way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.engines.cluster import Submission
from airflow_hudi_maint.core.engines.job_code import CodeAddress, packed_jobs, packed_payload
from airflow_hudi_maint.core.engines.rest_client import RestClient
from airflow_hudi_maint.core.engines.submit_command import SubmitCommand
from airflow_hudi_maint.core.engines.yarn_rest import YarnCluster
from airflow_hudi_maint.core.errors import EngineError
from airflow_hudi_maint.core.model.job import JobStatus
from airflow_hudi_maint.jobs import remote
from tests.unit.core.engines.rest_server import RestServer, running_rest_server

APPS = "GET /ws/v1/cluster/apps"
ONE = "GET /ws/v1/cluster/apps/application_1_1"


@pytest.fixture
def server() -> Iterator[RestServer]:
    with running_rest_server() as running:
        running.routes[APPS] = {"apps": {}}
        yield running


def cluster(*roots: str, binary: str = "true") -> YarnCluster:
    clients = tuple(RestClient(root=root, what="YARN's resource manager", attempts=1) for root in roots)
    return YarnCluster(managers=clients, command=SubmitCommand(path=binary))


def submitting(server: RestServer, folder: Path, script: str) -> YarnCluster:
    binary = folder / "spark-submit"
    binary.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    binary.chmod(0o755)
    return cluster(server.url, binary=str(binary))


def submission(**settings: str) -> Submission:
    return Submission(
        application_name="hudi-maint-a",
        settings=settings,
        payload={},
        packed=packed_jobs(),
        code=lambda: CodeAddress(archive="", script=""),
        leave=lambda _, __: None,
    )


def live(job_id: str) -> dict[str, Any]:
    return {"apps": {"app": [{"id": job_id, "name": "hudi-maint-a", "state": "RUNNING"}]}}


def test_the_manager_that_is_there_is_asked(server: RestServer) -> None:
    """Of two that stand in for each other one may be down; both names are in the error when both are."""
    server.routes[ONE] = {"app": {"state": "RUNNING"}}
    assert cluster("http://127.0.0.1:9", server.url).state("application_1_1") is JobStatus.RUNNING
    server.routes["PUT /ws/v1/cluster/apps/application_1_1/state"] = {"state": "KILLED"}
    cluster("http://127.0.0.1:9", server.url).kill("application_1_1")
    assert server.asked[-1][0] == "PUT"
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:9 does not answer.*; .*127\.0\.0\.1:10 does not answer"):
        cluster("http://127.0.0.1:9", "http://127.0.0.1:10").find("a")


def test_an_address_without_applications_is_no_cluster_that_is_idle(server: RestServer) -> None:
    """It may be the node manager's: taken for idle, it would let a second job start beside a live one."""
    server.routes.clear()
    with pytest.raises(EngineError, match="has no applications: is it the resource manager's address"):
        cluster(server.url).find("hudi-maint-a")


@pytest.mark.parametrize(
    "answer",
    [{}, {"app": None}, {"app": []}, {"app": {"id": "application_1_1"}}, {"app": {"state": "SLEEPING"}}],
)
def test_an_answer_that_is_none_of_yarns_is_no_state(server: RestServer, answer: dict[str, Any]) -> None:
    """A job would count as running for ever, or as lost while it works."""
    server.routes[ONE] = answer
    with pytest.raises(EngineError, match="application_1_1"):
        cluster(server.url).state("application_1_1")


@pytest.mark.parametrize(
    "apps",
    [
        {"apps": []},
        {"apps": {"app": {"name": "a"}}},
        {"apps": {"app": ["x", None, {"name": "a"}, {"name": "b", "state": "RUNNING"}]}},
        {},
    ],
)
def test_a_strange_list_of_applications_has_none_of_ours(server: RestServer, apps: dict[str, Any]) -> None:
    server.routes[APPS] = apps
    assert cluster(server.url).find("a") is None


def test_of_several_live_ones_the_youngest_counts(server: RestServer) -> None:
    """By its number: the ten-thousandth application of a cluster has a digit more."""
    numbers = ("0001", "9999", "10000")
    found = [{"id": f"application_1_{number}", "name": "a", "state": "ACCEPTED"} for number in numbers]
    # A manager that stood by may have sent the question on without its conditions.
    ended = {"id": "application_1_10001", "name": "a", "state": "FINISHED"}
    server.routes[APPS] = {"apps": {"app": [*found, ended]}}
    assert cluster(server.url).find("a") == "application_1_10000"


def test_a_name_is_given_where_a_name_is_all_that_is_asked_for(server: RestServer) -> None:
    """Hadoop's simple sign-on takes it from the address."""
    server.routes[ONE] = {"app": {"state": "RUNNING"}}
    server.routes["PUT /ws/v1/cluster/apps/application_1_1/state"] = {}
    named = replace(cluster(server.url), user_name="ana b")
    named.state("application_1_1")
    named.find("a")
    named.kill("application_1_1")
    assert [re.findall(r"user\.name=([^&]*)", path) for _, path, _ in server.asked] == [["ana+b"]] * 3


def test_an_application_that_runs_is_not_lost_with_its_spark_submit(server: RestServer, tmp_path: Path) -> None:
    """spark-submit may fail, hang or say nothing after YARN had the application: that one is watched."""
    server.routes[APPS] = live("application_1_7")
    failing = "echo 'Submitted application application_1_7'; echo 'Connection reset'; exit 1"
    assert submitting(server, tmp_path, failing).submit(submission()) == "application_1_7"
    assert submitting(server, tmp_path, "exit 0").submit(submission()) == "application_1_7"
    hanging = submitting(server, tmp_path, "sleep 30")
    hanging = replace(hanging, command=replace(hanging.command, timeout_seconds=0.3))
    assert hanging.submit(submission()) == "application_1_7"


def test_only_what_was_submitted_is_taken_for_the_application(server: RestServer, tmp_path: Path) -> None:
    """Other ids may be in what spark-submit prints, such as that of an application that holds the queue."""
    text = "Submitted application application_1_7\nqueue shared with application_1_3"
    assert submitting(server, tmp_path, f"echo '{text}'").submit(submission()) == "application_1_7"


def test_when_all_fails_spark_submits_words_count(server: RestServer, tmp_path: Path) -> None:
    """And not those of the resource manager, which was asked only whether the application is there after all."""
    server.routes.clear()
    with pytest.raises(EngineError, match=r"took no application \(exit code 1\)[\s\S]*no such queue"):
        submitting(server, tmp_path, "echo 'no such queue'; exit 1").submit(submission())


def test_tags_and_files_of_the_user_stay(server: RestServer, tmp_path: Path) -> None:
    """Ours are added to them."""
    kept = tmp_path / "kept"
    one = submitting(server, tmp_path, f'cp "$2" {kept}; echo "Submitted application application_1_7"')
    one.submit(submission(**{"spark.yarn.tags": "night", "spark.yarn.dist.pyFiles": "hdfs:///x.zip"}))
    text = kept.read_text(encoding="utf-8")
    assert re.search(r"^spark\.yarn\.tags=hudi-maint-\w{24},night$", text, re.MULTILINE)
    assert re.search(r"^spark\.yarn\.dist\.pyFiles=\S+/jobs\.zip,hdfs:///x\.zip$", text, re.MULTILINE)


def test_why_spark_submit_failed_is_not_pushed_out_by_its_stack(server: RestServer, tmp_path: Path) -> None:
    """As YARN's client prints it: two lines that tell something above dozens that do not."""
    lines = [
        "26/11/30 17:48:22 INFO Client: Requesting a new application from cluster with 1 NodeManagers",
        "Exception in thread 'main' YarnException: Failed to submit application_1_9 to YARN : unknown queue: nope",
        *(f"\tat org.apache.spark.deploy.Frame{number}.run(Frame.scala:1)" for number in range(20)),
        "\t... 12 more",
        "26/11/30 17:48:23 INFO ShutdownHookManager: Shutdown hook called",
    ]
    text = tmp_path / "said"
    text.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(EngineError) as raised:
        submitting(server, tmp_path, f"cat {text}; exit 1").submit(submission())
    assert str(raised.value).splitlines()[1:] == [lines[1]]


def test_the_drivers_log_is_its_nodes(server: RestServer) -> None:
    """What Python said comes last, before YARN's own words and the address; without the node there are those alone."""
    page = f"{server.url}/node/containerlogs/container_1_1_01_000001/ana"
    server.routes[ONE] = {"app": {"state": "FAILED", "diagnostics": "exit code 13\n", "amContainerLogs": page}}
    node = "GET /ws/v1/node/containerlogs/container_1_1_01_000001"
    head = "LogAggregationType: LOCAL\n=====\nLogType:x\nLogLength:9\nLogContents:\n"
    server.routes[f"{node}/stderr"] = f"{head}a\nb\nc\nEnd of LogType:stderr.\n****\n\n"
    server.routes[f"{node}/stdout"] = f"{head}\nboom\n\nEnd of LogType:stdout.\n****\n"
    one = cluster(server.url)
    assert one.log_tail("application_1_1", lines=40).splitlines() == ["a", "b", "c", "boom", "exit code 13", page]
    assert one.log_tail("application_1_1", lines=5).splitlines() == ["c", "boom", "exit code 13", page]
    assert one.log_tail("application_1_1", lines=2).splitlines() == ["exit code 13", page]
    server.routes[f"{node}/stderr"] = server.routes[f"{node}/stdout"] = (500, {})
    assert one.log_tail("application_1_1", lines=40).splitlines() == ["exit code 13", page]


def test_a_driver_finds_its_job_in_the_file_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its argument is the file's name, and no more."""
    payload = {"version": 1, "request": {"kind": "clean"}, "folder": "f", "claim": "c", "settings": {"x": "y"}}
    (tmp_path / "hudi_maint_job").write_text(packed_payload(payload), encoding="ascii")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["run_job.py", "delivery-file=hudi_maint_job"])
    monkeypatch.setattr(remote, "_kept", [])
    delivery = remote.delivered()
    assert delivery is not None
    assert (delivery.kind, delivery.settings, delivery.early()) == ("clean", {"x": "y"}, {"kind": "clean"})
