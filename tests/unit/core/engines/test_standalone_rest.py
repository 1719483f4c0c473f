"""Spark's own masters when one of them is down, stands by, or answers with something else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from airflow_hudi_maint.core.engines import rest_client
from airflow_hudi_maint.core.engines.standalone_rest import StandaloneCluster
from airflow_hudi_maint.core.errors import EngineError
from airflow_hudi_maint.core.model.job import JobStatus
from tests.unit.core.engines.rest_server import RestServer, running_rest_server

DOWN = "http://127.0.0.1:9"
STATUS = "GET /v1/submissions/status/driver-1"
STANDS_BY = {"success": False, "message": "Exception from the cluster: Current state is not alive: STANDBY"}


@pytest.fixture
def two() -> Iterator[tuple[RestServer, RestServer]]:
    with ExitStack() as stack:
        yield stack.enter_context(running_rest_server()), stack.enter_context(running_rest_server())


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_client, "_PAUSE_SECONDS", 0.01)


def cluster(*roots: str) -> StandaloneCluster:
    return StandaloneCluster.of("spark://m:7077", rest_url=",".join(roots), ui_url=", ".join(roots))


def test_a_standby_master_does_not_know_that_a_driver_is_lost(two: tuple[RestServer, RestServer]) -> None:
    """Only the one that is alive does: while that is silent, the job may well run."""
    one, other = two
    one.routes[STATUS] = STANDS_BY
    with pytest.raises(EngineError, match=r"How driver driver-1 is cannot be asked.*not alive: STANDBY"):
        cluster(one.url).state("driver-1")
    with pytest.raises(EngineError, match="cannot be asked"):
        cluster(DOWN, one.url).state("driver-1")
    other.routes[STATUS] = {"success": False}
    assert cluster(one.url, other.url).state("driver-1") is JobStatus.LOST
    other.routes[STATUS] = {"success": True, "driverState": "RUNNING"}
    assert cluster(one.url, other.url).state("driver-1") is JobStatus.RUNNING


@pytest.mark.parametrize(
    "answer",
    [{}, {"success": True}, {"success": True, "driverState": "SLEEPING"}, {"success": True, "driverState": []}],
)
def test_an_answer_that_is_none_of_sparks_is_no_state(
    two: tuple[RestServer, RestServer], answer: dict[str, Any]
) -> None:
    """A job would count as running for ever, or as lost while it works."""
    two[0].routes[STATUS] = answer
    with pytest.raises(EngineError, match="driver-1"):
        cluster(two[0].url).state("driver-1")


def test_an_application_is_ended_by_the_master_that_is_there(two: tuple[RestServer, RestServer]) -> None:
    """A first master that is down keeps nobody from the second; where all are, that is said."""
    one, _ = two
    one.routes["POST /app/kill/"] = (302, "")
    one.routes["GET /"] = "<html>"
    one.sends = {"Location": "/"}
    cluster(DOWN, one.url).kill("app-2")
    assert [path for _, path, _ in one.asked] == ["/app/kill/?id=app-2&terminate=true", "/"]
    with pytest.raises(EngineError, match=r"app-2 cannot be ended: .*does not answer"):
        cluster(DOWN).kill("app-2")


def test_a_driver_is_ended_by_the_master_that_is_there(two: tuple[RestServer, RestServer]) -> None:
    one, _ = two
    one.routes["POST /v1/submissions/kill/driver-1"] = {"success": True}
    cluster(DOWN, one.url).kill("driver-1")
    with pytest.raises(EngineError, match=r"driver-1 cannot be ended: .*does not answer"):
        cluster(DOWN).kill("driver-1")


def test_a_page_with_strange_applications_has_none_of_ours(two: tuple[RestServer, RestServer]) -> None:
    """What is there instead of an application, or of the list, is passed over; of several the youngest counts."""
    one, _ = two
    one.routes["GET /json/"] = {"status": "ALIVE", "activeapps": ["x", None, {"id": "app-1"}, {"name": "b"}]}
    assert cluster(one.url).find("a") is None
    one.routes["GET /json/"] = {"status": "ALIVE", "activeapps": {"name": "a"}}
    assert cluster(one.url).find("a") is None
    apps = [{"id": f"app-20261130-{number}", "name": "a"} for number in ("0002", "9999", "10000")]
    one.routes["GET /json/"] = {"status": "ALIVE", "activeapps": apps}
    assert cluster(one.url).find("a") == "app-20261130-10000"
