"""What SparkSubmitEngine makes of an installation of Spark and of the connection's fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.engines.spark_submit import SparkSubmitEngine
from airflow_hudi_maint.core.errors import EngineError
from airflow_hudi_maint.core.model.job import JobKind, JobRequest
from airflow_hudi_maint.core.storage.job_exchange import StorageExchange
from tests.unit.core.engines.conftest import fake_java
from tests.unit.core.engines.rest_server import running_rest_server

DEFAULTS = """\
# of the cluster's administrators
spark.yarn.archive=hdfs://nn/spark.zip
spark.eventLog.enabled   true
spark.driver.extraJavaOptions: -Dhdp.version=3.1 -Da=b
spark.driver.extraClassPath /opt/own.jar
spark.master             spark://elsewhere:7077
spark.submit.deployMode  client
spark.app.name           somebody's
spark.x.empty
! spark.x.no true
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An installation of Spark with settings of its own, and a spark-submit that keeps what it gets."""
    home = tmp_path / "spark"
    for folder in ("bin", "conf", "jars"):
        (home / folder).mkdir(parents=True)
    (home / "RELEASE").write_text("Spark 3.5.9 built for Hadoop 3.3.4\n", encoding="utf-8")
    (home / "jars" / "spark-core_2.12-3.5.9.jar").touch()
    (home / "conf" / "spark-defaults.conf").write_text(DEFAULTS, encoding="utf-8")
    program = home / "bin" / "spark-submit"
    text = f'#!/bin/sh\ncp "$2" {tmp_path}/kept\necho "Submitted application application_1_7"\n'
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return home


def engine(tmp_path: Path, **more: Any) -> SparkSubmitEngine:
    given: dict[str, Any] = {
        "deploy_mode": "cluster",
        "bundle": "local:/opt/hudi-spark3.5-bundle_2.12-1.2.0.jar",
        "java_home": str(fake_java(tmp_path / "java", version='openjdk version "17.0.9"')),
        "exchange": lambda: StorageExchange.open(str(table(tmp_path))),
        **more,
    }
    return SparkSubmitEngine(**given)


def table(tmp_path: Path) -> Path:
    (tmp_path / "trips" / ".hoodie").mkdir(parents=True, exist_ok=True)
    return tmp_path / "trips"


def request(tmp_path: Path) -> JobRequest:
    return JobRequest(kind=JobKind.CLEAN, base_path=str(table(tmp_path)), table_name="trips", name="hudi-maint-a")


def test_settings_of_the_installation_go_to_yarn(home: Path, tmp_path: Path) -> None:
    """In each of the spellings that Spark reads; lists are added to, and the connection says master and mode."""
    with running_rest_server() as server:
        server.routes["GET /ws/v1/cluster/apps"] = {"apps": {}}
        engine(tmp_path, master="yarn", spark_home=home, rest_url=server.url).submit(request(tmp_path))
    lines = (tmp_path / "kept").read_text(encoding="utf-8").splitlines()
    kept = dict(line.split("=", 1) for line in lines)
    assert kept["spark.yarn.archive"] == "hdfs://nn/spark.zip"
    assert kept["spark.eventLog.enabled"] == "true"
    assert kept["spark.driver.extraJavaOptions"] == "-Dhdp.version=3.1 -Da=b"
    assert kept["spark.driver.extraClassPath"] == "/opt/hudi-spark3.5-bundle_2.12-1.2.0.jar:/opt/own.jar"
    assert (kept["spark.master"], kept["spark.submit.deployMode"]) == ("yarn", "cluster")
    assert kept["spark.app.name"] == "hudi-maint-a"
    assert not {"spark.x.empty", "spark.x.no", "!"} & set(kept)


def test_settings_of_the_installation_go_to_sparks_own_master(home: Path, tmp_path: Path) -> None:
    """Nobody else reads them in its cluster mode."""
    with running_rest_server() as server:
        server.routes["GET /json/"] = {"status": "ALIVE", "activeapps": []}
        server.routes["POST /v1/submissions/create"] = {"success": True, "submissionId": "driver-1"}
        one = engine(
            tmp_path, master="spark://m:7077", spark_home=home, rest_url=server.url, ui_url=server.url, time_zone="UTC"
        )
        one.submit(request(tmp_path))
    sent = server.asked[-1][2]["sparkProperties"]
    assert sent["spark.eventLog.enabled"] == "true"
    assert sent["spark.master"] == "spark://m:7077"
    assert sent["spark.driver.extraJavaOptions"].endswith("-Duser.timezone=UTC -Dhdp.version=3.1 -Da=b")


def test_a_master_without_a_port_has_the_usual_one(tmp_path: Path) -> None:
    """The error says what was tried, and not that a host is no number."""
    one = engine(tmp_path, master="spark://127.0.0.1", deploy_mode="client")
    with pytest.raises(EngineError, match=r"spark://127\.0\.0\.1 does not answer \(127\.0\.0\.1: .*refused"):
        one.submit(request(tmp_path))


@pytest.mark.parametrize(
    ("user", "password", "told_in"), [("ana", "", "address"), ("ana", "hush", "header"), ("", "", "nothing")]
)
def test_login_and_password_are_told_the_way_each_is_understood(
    tmp_path: Path, user: str, password: str, told_in: str
) -> None:
    """A login alone is a name in the address (Hadoop's simple sign-on), with a password it is a header (gateways)."""
    with running_rest_server() as server:
        server.routes["GET /ws/v1/cluster/apps"] = {
            "apps": {"app": [{"id": "application_1_1", "name": "hudi-maint-a", "state": "RUNNING"}]}
        }
        one = engine(tmp_path, master="yarn", rest_url=server.url, user=user, password=password)
        assert one.submit(request(tmp_path)).job_id.startswith("application_1_1 ")
    assert ("user.name=ana" in server.asked[0][1]) is (told_in == "address")
    assert ("Authorization" in server.headers[0]) is (told_in == "header")
    assert "hush" not in repr(one) + json.dumps(server.asked)
