"""Managers of clusters, as far as their documented REST goes: what is asked, and how each answer is read."""

from __future__ import annotations

import base64
import gzip
import json
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.engines.cluster import Submission
from airflow_hudi_maint.core.engines.job_code import PAYLOAD_VARIABLE, CodeAddress, packed_jobs, payload_variables
from airflow_hudi_maint.core.engines.livy import LivyCluster, LivyRest
from airflow_hudi_maint.core.engines.rest_client import RestClient
from airflow_hudi_maint.core.engines.standalone_rest import StandaloneCluster
from airflow_hudi_maint.core.engines.submit_command import SubmitCommand
from airflow_hudi_maint.core.engines.yarn_rest import YarnCluster
from airflow_hudi_maint.core.errors import EngineError, InvalidSettingError
from airflow_hudi_maint.core.model.job import JobStatus
from tests.unit.core.engines.rest_server import RestServer, running_rest_server

SECRET = "hush-hush-hush"  # noqa: S105


@pytest.fixture
def server() -> Iterator[RestServer]:
    with running_rest_server() as running:
        yield running


def client(server: RestServer, **more: Any) -> RestClient:
    return RestClient(root=server.url, what="The cluster", **more)


def submission(left: dict[str, bytes] | None = None, **payload: Any) -> Submission:
    return Submission(
        application_name="hudi-maint-a-1",
        settings={"spark.app.name": "hudi-maint-a-1", "spark.driver.memory": "2g", "spark.yarn.queue": "night"},
        payload={
            "version": 1,
            "request": {"kind": "clean", "write_options": {}},
            "folder": "f",
            "claim": "c",
            **payload,
        },
        packed=packed_jobs(),
        code=lambda: CodeAddress(archive="hdfs:///code/jobs.zip", script="hdfs:///code/run_job.py"),
        leave={}.__setitem__ if left is None else left.__setitem__,
    )


def unpacked(variables: dict[str, str]) -> Any:
    text = "".join(variables[f"{PAYLOAD_VARIABLE}{number}"] for number in range(len(variables)))
    return json.loads(gzip.decompress(base64.b64decode(text)))


def test_a_cluster_that_is_down_is_said_to_be(server: RestServer) -> None:
    """After a few attempts, with its name and address."""
    gone = RestClient(root="http://127.0.0.1:9", what="The cluster", attempts=1)
    with pytest.raises(EngineError, match=r"The cluster at http://127\.0\.0\.1:9 does not answer \(.*refused"):
        gone.get("/x")


def test_a_hiccup_is_survived_and_a_change_is_asked_for_once(server: RestServer) -> None:
    """A look is repeated after an error of the server; a submission that may have been received is not."""
    answers = iter([(503, {}), (200, {"a": 1})])
    server.routes["GET /look"] = lambda _: next(answers)
    server.routes["POST /change"] = (503, {"message": "busy"})
    assert client(server).get("/look") == {"a": 1}
    with pytest.raises(EngineError, match="refused POST /change \\(HTTP 503\\): busy"):
        client(server).send("POST", "/change", body={})
    assert len([one for one in server.asked if one[0] == "POST"]) == 1


def test_who_is_not_let_in_is_told_what_to_give(server: RestServer) -> None:
    """The password is sent, and shown to nobody."""
    server.routes["GET /x"] = (401, "<html>")
    one = client(server, user="ana", password=SECRET)
    with pytest.raises(InvalidSettingError, match="does not let ana in") as raised:
        one.get("/x")
    assert SECRET not in f"{one!r}{raised.value}"
    assert server.headers[0]["Authorization"] == "Basic " + base64.b64encode(f"ana:{SECRET}".encode()).decode()


def test_another_servers_address_is_noticed(server: RestServer) -> None:
    """A page instead of JSON, and an address that is none."""
    server.routes["GET /x"] = "<html>Welcome</html>"
    with pytest.raises(EngineError, match="Is it another server's address"):
        client(server).get("/x")
    with pytest.raises(InvalidSettingError, match="must begin with http"):
        RestClient(root="ftp://x", what="The cluster")


def test_a_payload_crosses_in_parts_and_is_bounded() -> None:
    """Linux takes no long variable; what is far too long is refused before anything is submitted."""
    import secrets

    long = {"names": [secrets.token_hex(50) for _ in range(3000)]}
    variables = payload_variables(long)
    assert len(variables) > 1
    assert all(len(value) < 128 * 1024 for value in variables.values())
    assert unpacked(variables) == long
    with pytest.raises(InvalidSettingError, match="too many to hand to a driver"):
        payload_variables({"names": [secrets.token_hex(500) for _ in range(3000)]})


def standalone(server: RestServer) -> StandaloneCluster:
    return StandaloneCluster.of("spark://m:7077", rest_url=server.url, ui_url=server.url)


def test_a_standalone_master_gets_secrets_in_the_environment_only(server: RestServer) -> None:
    """It makes each setting an argument of the driver's JVM, where every user of the machine reads it."""
    server.routes["POST /v1/submissions/create"] = {"success": True, "submissionId": "driver-1"}
    assert standalone(server).submit(submission(settings={"spark.hadoop.fs.s3a.secret.key": SECRET})) == "driver-1"
    body = server.asked[0][2]
    assert body["mainClass"] == "org.apache.spark.deploy.PythonRunner"
    assert body["appResource"] == "hdfs:///code/jobs.zip"
    assert SECRET not in json.dumps(body)
    payload = unpacked(body["environmentVariables"])
    assert payload["settings"] == {"spark.hadoop.fs.s3a.secret.key": SECRET}
    assert payload["ends_jvm"] is True


def test_a_standby_master_is_passed_over_and_a_refusal_is_quoted(server: RestServer) -> None:
    """The words are the master's."""
    server.routes["POST /v1/submissions/create"] = {"success": False, "message": "Current state is not alive: STANDBY."}
    with pytest.raises(EngineError, match="took no submission: Current state is not alive: STANDBY"):
        standalone(server).submit(submission())
    both = StandaloneCluster.of("spark://a:7077,b:7078")
    assert [one.root for one in both.rest] == ["http://a:6066", "http://b:6066"]
    assert [one.root for one in both.ui] == ["http://a:8080", "http://b:8080"]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"success": True, "driverState": "SUBMITTED"}, JobStatus.RUNNING),
        ({"success": True, "driverState": "FINISHED"}, JobStatus.SUCCEEDED),
        ({"success": True, "driverState": "ERROR"}, JobStatus.FAILED),
        ({"success": True, "driverState": "KILLED"}, JobStatus.KILLED),
        ({"success": False}, JobStatus.LOST),
    ],
)
def test_states_of_a_driver(server: RestServer, said: dict[str, Any], status: JobStatus) -> None:
    """A driver that the master does not know is lost."""
    server.routes["GET /v1/submissions/status/driver-1"] = said
    assert standalone(server).state("driver-1") is status


def test_an_application_is_found_by_its_name_and_ended_by_the_masters_page(server: RestServer) -> None:
    """Where its driver's id is not known."""
    server.routes["GET /json/"] = {
        "status": "ALIVE",
        "activeapps": [
            {"id": "app-1", "name": "other", "state": "RUNNING"},
            {"id": "app-2", "name": "n", "state": "WAITING"},
        ],
        "completedapps": [{"id": "app-0", "name": "n", "state": "FINISHED"}],
    }
    server.routes["POST /app/kill/"] = "<html>"
    cluster = standalone(server)
    assert cluster.find("n") == "app-2"
    assert cluster.find("nobody") is None
    assert [cluster.state(one) for one in ("app-2", "app-0", "app-9")] == [
        JobStatus.RUNNING,
        JobStatus.SUCCEEDED,
        JobStatus.LOST,
    ]
    cluster.kill("app-2")
    assert server.asked[-1][:2] == ("POST", "/app/kill/?id=app-2&terminate=true")


def test_the_log_of_a_driver_is_on_its_workers_page(server: RestServer) -> None:
    """The JVM's lines first, then Python's, which Spark puts on standard output."""
    server.routes["GET /json/"] = {
        "status": "ALIVE",
        "workers": [{"id": "worker-1", "webuiaddress": server.url}],
        "activedrivers": [],
        "completeddrivers": [{"id": "driver-1", "worker": "worker-1"}],
    }
    server.routes["GET /log/"] = lambda _: (
        "==== Bytes 0-9 ====\n\nboom" if "stdout" in server.asked[-1][1] else "a\nb\nc"
    )
    assert standalone(server).log_tail("driver-1", lines=4) == "b\nc\n==== Bytes 0-9 ====\nboom"
    assert standalone(server).log_tail("driver-2", lines=4) == ""


def yarn(server: RestServer, binary: Path, text: str) -> YarnCluster:
    binary.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    binary.chmod(0o755)
    return YarnCluster(managers=(client(server),), command=SubmitCommand(path=str(binary)))


def test_yarn_gets_an_application_by_spark_submit(server: RestServer, tmp_path: Path) -> None:
    """All settings in a file of mode 0600, no argument but paths; the id is in what it prints.

    The job's request is a file, too: nodes show what is in a driver's environment among its logs.
    """
    keep = tmp_path / "kept"
    script = (
        f'cp -p "$2" {keep}; echo "$@" > {keep}.args; cp hudi_maint_job {keep}.job; stat -c %a . > {keep}.mode\n'
        'echo "INFO Client: Submitted application application_1_0007"'
    )
    cluster = yarn(server, tmp_path / "spark-submit", script)
    assert cluster.submit(submission(settings={"x": SECRET})) == "application_1_0007"
    assert stat.S_IMODE(keep.stat().st_mode) == 0o600
    text = keep.read_text()
    assert "spark.yarn.submit.waitAppCompletion=false\n" in text
    assert "spark.yarn.tags=hudi-maint-" in text
    assert SECRET not in text
    assert re.search(r"^spark\.yarn\.dist\.files=\S+/hudi_maint_job$", text, re.MULTILINE)
    assert keep.with_suffix(".args").read_text().endswith("/run_job.py delivery-file=hudi_maint_job\n")
    told = json.loads(gzip.decompress(base64.b64decode(keep.with_suffix(".job").read_text())))
    assert told["settings"] == {"x": SECRET}
    assert keep.with_suffix(".mode").read_text() == "700\n"


def test_an_unknown_queue_is_in_the_message(server: RestServer, tmp_path: Path) -> None:
    """In YARN's own words, with the last lines of spark-submit."""
    words = "Application application_1_0009 submitted by user ana to unknown queue: nope"
    cluster = yarn(server, tmp_path / "spark-submit", f"echo '{words}'; exit 1")
    with pytest.raises(EngineError, match=r"exit code 1.*\n.*unknown queue: nope"):
        cluster.submit(submission())
    slow = yarn(server, tmp_path / "spark-submit", "sleep 30")
    slow = replace(slow, command=replace(slow.command, timeout_seconds=0.3))
    with pytest.raises(EngineError, match="did not hand the application over within"):
        slow.submit(submission())
    with pytest.raises(InvalidSettingError, match="does not run"):
        replace(slow, command=SubmitCommand(path=str(tmp_path / "none"))).submit(submission())


@pytest.mark.parametrize(
    ("state", "final", "status"),
    [
        ("ACCEPTED", "UNDEFINED", JobStatus.RUNNING),
        ("RUNNING", "UNDEFINED", JobStatus.RUNNING),
        ("FINISHED", "SUCCEEDED", JobStatus.SUCCEEDED),
        ("FINISHED", "FAILED", JobStatus.FAILED),
        ("FAILED", "FAILED", JobStatus.FAILED),
        ("KILLED", "KILLED", JobStatus.KILLED),
    ],
)
def test_states_of_yarn(server: RestServer, tmp_path: Path, state: str, final: str, status: JobStatus) -> None:
    """An application that ended counts by its final status."""
    app = {"id": "application_1_1", "state": state, "finalStatus": final, "diagnostics": "why"}
    server.routes["GET /ws/v1/cluster/apps/application_1_1"] = {"app": app}
    cluster = yarn(server, tmp_path / "spark-submit", "true")
    assert cluster.state("application_1_1") is status
    assert cluster.log_tail("application_1_1", lines=5) == "why"
    assert cluster.state("application_1_2") is JobStatus.LOST


def test_yarn_finds_by_tag_and_kills_by_rest(server: RestServer, tmp_path: Path) -> None:
    """A tag is all that can be asked for; the name has to be the same, too."""
    server.routes["GET /ws/v1/cluster/apps"] = {
        "apps": {"app": [{"id": "application_1_4", "name": "n", "state": "RUNNING"}]}
    }
    server.routes["PUT /ws/v1/cluster/apps/application_1_4/state"] = {"state": "KILLED"}
    cluster = yarn(server, tmp_path / "spark-submit", "true")
    assert cluster.find("n") == "application_1_4"
    assert cluster.find("m") is None
    cluster.kill("application_1_4")
    assert server.asked[-1] == ("PUT", "/ws/v1/cluster/apps/application_1_4/state", {"state": "KILLED"})
    server.routes["GET /ws/v1/cluster/apps"] = {"apps": None}
    assert cluster.find("n") is None


def livy(server: RestServer) -> LivyCluster:
    return LivyCluster(client=LivyRest(rest=client(server)))


def test_livy_gets_a_batch_without_a_secret(server: RestServer) -> None:
    """The request lies in the job's folder, and the batch is told where."""
    left: dict[str, bytes] = {}
    server.routes["POST /batches"] = {"id": 7, "state": "starting"}
    assert livy(server).submit(submission(left)) == "7"
    batch = server.asked[0][2]
    assert (batch["name"], batch["file"], batch["pyFiles"]) == (
        "hudi-maint-a-1",
        "hdfs:///code/run_job.py",
        ["hdfs:///code/jobs.zip"],
    )
    assert (batch["driverMemory"], batch["queue"]) == ("2g", "night")
    assert batch["conf"] == {"spark.app.name": "hudi-maint-a-1"}
    assert json.loads(left["request.json"]) == {"kind": "clean", "write_options": {}}
    told = json.loads(gzip.decompress(base64.b64decode(batch["args"][0].removeprefix("delivery="))))
    assert told == {"version": 1, "folder": "f", "claim": "c", "kind": "clean"}


def test_livy_gets_no_job_with_a_secret(server: RestServer) -> None:
    """Its server would show it on a command line: nothing is submitted, and the setting is named without its value."""
    options = {"kind": "clean", "write_options": {"hoodie.write.lock.dynamodb.secret": SECRET}}
    with pytest.raises(
        InvalidSettingError, match=r"Livy would show spark\.x\.token, hoodie\.write\.lock\.dynamodb"
    ) as raised:
        livy(server).submit(submission(request=options, settings={"spark.x.token": SECRET}))
    assert SECRET not in str(raised.value)
    options = {"kind": "merge_files", "storage_options": {"anon": False, "secret": SECRET}}
    with pytest.raises(InvalidSettingError, match=r"Livy would show secret on its server") as raised:
        livy(server).submit(submission(request=options, settings={}))
    assert SECRET not in str(raised.value)
    assert server.asked == []


def test_batches_of_livy(server: RestServer) -> None:
    """States, the search by name over pages, the log, and the end."""
    states = ("starting", "running", "recovering", "success", "dead", "killed", "error")
    sessions = [{"id": n, "name": f"n{n}", "state": states[n % 7]} for n in range(120)]

    def page(_: Any) -> Any:
        query = dict(one.split("=") for one in server.asked[-1][1].partition("?")[2].split("&"))
        start, size = int(query["from"]), int(query["size"])
        return {"sessions": sessions[start : start + size]}

    server.routes["GET /batches"] = page
    for one in sessions[:7]:
        server.routes[f"GET /batches/{one['id']}"] = one
    server.routes["GET /batches/1/log"] = {"log": ["a", "b"]}
    server.routes["DELETE /batches/1"] = {"msg": "deleted"}
    cluster = livy(server)
    assert [cluster.state(str(n)) for n in range(8)] == [
        *([JobStatus.RUNNING] * 3),
        *(JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.KILLED, JobStatus.FAILED, JobStatus.LOST),
    ]
    assert cluster.find("n113") == "113"
    assert cluster.find("n3") is None
    assert cluster.log_tail("1", lines=2) == "a\nb"
    cluster.kill("1")
    assert server.asked[-1][:2] == ("DELETE", "/batches/1")


def test_a_livy_without_pages_is_asked_twice(server: RestServer) -> None:
    """And not for ever."""
    server.routes["GET /batches"] = {"sessions": [{"id": n, "name": f"n{n}", "state": "running"} for n in range(150)]}
    assert livy(server).find("n7") == "7"
    assert len(server.asked) == 2


def test_livys_refusal_is_quoted(server: RestServer) -> None:
    """A queue that is missing, a file that may not be read: the words are Livy's."""
    server.routes["POST /batches"] = (400, {"msg": "requirement failed: queue nope is unknown"})
    with pytest.raises(EngineError, match="queue nope is unknown"):
        livy(server).submit(submission())
