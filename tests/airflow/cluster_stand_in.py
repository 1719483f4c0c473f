"""What a master of Spark's own cluster says over REST, without Spark: drivers run until a test ends them.

The effect of a driver on its table is the test's to make: :meth:`ClusterStandIn.drop` writes what Hudi leaves when it
has dropped partitions.
"""

from __future__ import annotations

import base64
import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow_hudi_maint.core.engines.job_code import PAYLOAD_VARIABLE
from tests.airflow.tables import TableBuilder
from tests.unit.core.engines.rest_server import RestServer, running_rest_server


@dataclass
class Driver:
    """A job that was submitted; ``state`` is the master's word for how it is."""

    driver_id: str
    name: str
    payload: dict[str, Any]
    state: str = "RUNNING"

    @property
    def request(self) -> dict[str, Any]:
        """What the job was asked to do."""
        request: dict[str, Any] = self.payload["request"]
        return request


@dataclass
class ClusterStandIn:
    """The master's REST server and its page."""

    server: RestServer
    drivers: list[Driver] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.server.routes["POST /v1/submissions/create"] = self._create
        self.server.routes["GET /json/"] = self._page

    @property
    def url(self) -> str:
        """Its address, for REST and page."""
        return self.server.url

    def of(self, dag_id: str) -> list[Driver]:
        """Drivers of the tasks of a DAG, in the order of their submission."""
        with self._lock:
            return [one for one in self.drivers if one.name.startswith(f"hudi-maint-{dag_id}-")]

    def live(self, dag_id: str) -> list[Driver]:
        """Those of them that run."""
        return [one for one in self.of(dag_id) if one.state == "RUNNING"]

    def drop(self, driver: Driver) -> str:
        """Let a driver do what it was asked for, and end well; return the instant of its replace commit."""
        table = TableBuilder(base_path=driver.request["base_path"].removeprefix("file://"))
        partitions = driver.request["arguments"]["partitions"]
        replaced = {
            one: sorted({path.name.split("_")[0] for path in Path(table.base_path, one).glob("*.parquet")})
            for one in partitions
        }
        instant = table.commit(
            dict.fromkeys(partitions, ()),
            at=datetime.now(UTC),
            operation="DELETE_PARTITION",
            action="replacecommit",
            replaced=replaced,
        )
        driver.state = "FINISHED"
        return instant

    def _create(self, body: dict[str, Any]) -> dict[str, Any]:
        variables = body["environmentVariables"]
        packed = "".join(variables[f"{PAYLOAD_VARIABLE}{number}"] for number in range(len(variables)))
        payload = json.loads(gzip.decompress(base64.b64decode(packed)))
        with self._lock:
            driver = Driver(
                driver_id=f"driver-20261101120000-{len(self.drivers):04d}",
                name=body["sparkProperties"]["spark.app.name"],
                payload=payload,
            )
            self.drivers.append(driver)
        path = f"/v1/submissions/{{}}/{driver.driver_id}"
        self.server.routes[f"GET {path.format('status')}"] = lambda _: self._said(driver)
        self.server.routes[f"POST {path.format('kill')}"] = lambda _: self._kill(driver)
        return {"success": True, "submissionId": driver.driver_id}

    def _said(self, driver: Driver) -> dict[str, Any]:
        return {"success": True, "driverState": driver.state}

    def _kill(self, driver: Driver) -> dict[str, Any]:
        if driver.state == "RUNNING":
            driver.state = "KILLED"
        return {"success": True, "message": f"Kill request for {driver.driver_id} submitted"}

    def _page(self, _: Any) -> dict[str, Any]:
        with self._lock:
            live = [
                {"id": f"app-{one.driver_id[7:]}", "name": one.name} for one in self.drivers if one.state == "RUNNING"
            ]
        return {"status": "ALIVE", "activeapps": live, "completedapps": [], "activedrivers": [], "workers": []}


@contextmanager
def running_cluster_stand_in() -> Iterator[ClusterStandIn]:
    """Serve on a free port of this machine."""
    with running_rest_server() as server:
        yield ClusterStandIn(server)
