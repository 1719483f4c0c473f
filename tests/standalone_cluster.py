"""Spark's own cluster for tests: a master with its REST server and workers, from pyspark's own scripts."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_hudi_maint.core.engines.java import find_java
from airflow_hudi_maint.core.engines.pyspark_install import find_pyspark

_START_SECONDS = 90.0
_HEAP = "192m"


@dataclass(frozen=True, kw_only=True)
class StandaloneSpark:
    """A running cluster."""

    master: str
    rest_url: str
    ui_url: str
    folder: Path

    def page(self) -> dict[str, Any]:
        """What the master's page shows."""
        with urllib.request.urlopen(f"{self.ui_url}/json/", timeout=10) as answer:  # noqa: S310 our own address
            page: dict[str, Any] = json.load(answer)
        return page

    def launch_commands(self) -> str:
        """What the workers say that they started."""
        return "\n".join(path.read_text(encoding="utf-8") for path in self.folder.glob("worker*.log"))


@contextmanager
def running_standalone_spark(folder: Path, *, workers: int = 2) -> Iterator[StandaloneSpark]:
    """Start a master and workers with a core and a gigabyte each; end them with everything that they started."""
    ports = free_ports(3 + workers)
    master_port, rest_port, ui_port, *worker_ports = ports
    cluster = StandaloneSpark(
        master=f"spark://127.0.0.1:{master_port}",
        rest_url=f"http://127.0.0.1:{rest_port}",
        ui_url=f"http://127.0.0.1:{ui_port}",
        folder=folder,
    )
    processes = []
    try:
        processes.append(
            _start(
                folder / "master.log",
                "org.apache.spark.deploy.master.Master",
                *("--host", "127.0.0.1", "--port", str(master_port), "--webui-port", str(ui_port)),
                options=f"-Dspark.master.rest.enabled=true -Dspark.master.rest.port={rest_port}",
            )
        )
        _wait(cluster, workers=0)
        for number, port in enumerate(worker_ports):
            arguments = ("--host", "127.0.0.1", "--webui-port", str(port), "--cores", "2", "--memory", "3g")
            work = folder / f"work{number}"
            processes.append(
                _start(
                    folder / f"worker{number}.log",
                    "org.apache.spark.deploy.worker.Worker",
                    *(*arguments, "--work-dir", str(work), cluster.master),
                )
            )
        _wait(cluster, workers=workers)
        yield cluster
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)


def _start(log: Path, name: str, *arguments: str, options: str = "") -> subprocess.Popen[bytes]:
    home = find_pyspark(sys.executable).home
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": _HEAP,
        "SPARK_MASTER_OPTS": options,
        "PYSPARK_PYTHON": sys.executable,
    }
    with log.open("wb") as output:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), name, *arguments],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait(cluster: StandaloneSpark, *, workers: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            if cluster.page()["aliveworkers"] >= workers:
                return
        except (OSError, ValueError, urllib.error.URLError):
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"No cluster within {_START_SECONDS:.0f} s; see {cluster.folder}")
        time.sleep(0.3)


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on at the moment."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
