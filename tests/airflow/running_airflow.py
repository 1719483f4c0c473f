"""Airflow as it runs in production, on this machine: a scheduler with workers, a triggerer and an API server.

Each is a process of its own, in a home with a database of its own. A test acts on them as a person does, by the public
REST API. DAGs are read once, before the others start: a DAG processor would cost as much as a triggerer.

Run as a script it makes the database: ``python running_airflow.py DAGS``. That uses internals of Airflow's core, as
conftest.py does.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 180.0
_POLL_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class TaskState:
    """A row of the task instances."""

    state: str | None
    try_number: int
    pid: int | None


@dataclass(kw_only=True)
class RunningAirflow:
    """The processes, and what a person or an operator of them does."""

    home: Path
    url: str
    environment: Mapping[str, str] = field(repr=False)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, repr=False)

    def start(
        self, name: str, *arguments: str, command: tuple[str, ...] = ("-m", "airflow")
    ) -> subprocess.Popen[bytes]:
        """Start one of Airflow's commands under a name; its output is ``NAME.log`` of the home."""
        with (self.home / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *command, *arguments],
                env=dict(self.environment),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes[name] = process
        return process

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a process and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.processes[name].pid, number)

    def stop(self, name: str, *, seconds: float = 20.0) -> None:
        """End a process as a service manager does: with a little time, then at once."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def ask(self, verb: str, path: str, *, body: Mapping[str, Any] | None = None) -> Any:
        """Ask the public API."""
        request = urllib.request.Request(  # noqa: S310 our own address
            f"{self.url}/api/v2{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=verb,
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.loads(answer.read() or b"null")

    def run(self, dag_id: str) -> str:
        """Start a run, and return its id."""
        run_id: str = self.ask("POST", f"/dags/{dag_id}/dagRuns", body={"logical_date": None})["dag_run_id"]
        return run_id

    def task(self, dag_id: str, run_id: str, task_id: str) -> TaskState:
        """Look at a task, in the database: that costs nobody anything."""
        with closing(sqlite3.connect(f"file:{self.home}/airflow.db?mode=ro", uri=True, timeout=30)) as database:
            query = "select state, try_number, pid from task_instance where dag_id = ? and run_id = ? and task_id = ?"
            row = database.execute(query, (dag_id, run_id, task_id)).fetchone()
        state, try_number, pid = row or (None, 0, None)
        return TaskState(state=state, try_number=try_number, pid=pid)

    def mark(self, dag_id: str, run_id: str, task_id: str, *, state: str) -> None:
        """Do what the button of the page does."""
        self.ask("PATCH", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}", body={"new_state": state})

    def clear(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Have a task run anew."""
        body = {"dry_run": False, "dag_run_id": run_id, "task_ids": [task_id], "only_failed": False}
        self.ask("POST", f"/dags/{dag_id}/clearTaskInstances", body=body)

    def result(self, dag_id: str, run_id: str, task_id: str) -> Any:
        """What a task returned."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/return_value?deserialize=true"
        return self.ask("GET", path)["value"]

    def log_of(self, dag_id: str, run_id: str, task_id: str, *, try_number: int) -> str:
        """What a try of a task said up to now; empty before it says anything."""
        path = self.home / f"logs/dag_id={dag_id}/run_id={run_id}/task_id={task_id}/attempt={try_number}.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def trigger_logs_of(self, dag_id: str, run_id: str, task_id: str, *, try_number: int) -> list[str]:
        """What the trigger of a deferred try said, one text for each triggerer that had it, the first one first."""
        folder = self.home / f"logs/dag_id={dag_id}/run_id={run_id}/task_id={task_id}"
        found = folder.glob(f"attempt={try_number}.log.trigger.*.log")
        ordered = sorted(found, key=lambda path: int(path.name.split(".")[-2]))
        return [path.read_text(encoding="utf-8") for path in ordered]

    def slots(self) -> tuple[int, int]:
        """How many slots of the default pool are taken by running tasks, and how many tasks are deferred."""
        pool = self.ask("GET", "/pools/default_pool")
        return pool["running_slots"], pool["deferred_slots"]

    def until(self, condition: Callable[[], object], *, what: str, seconds: float = 120.0) -> None:
        """Wait until it is so; else fail, with the ends of all logs."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"Not within {seconds:.0f} s: {what}\n{self.logs()}")
            time.sleep(_POLL_SECONDS)

    def logs(self) -> str:
        """The ends of what each process said, and of each task's log."""
        paths = [*self.home.glob("*.log"), *self.home.glob("logs/dag_id=*/**/*.log")]
        return "\n".join(f"--- {path.relative_to(self.home)}\n{_tail(path)}" for path in paths)


@contextmanager
def running_airflow(home: Path, *, dags: Path, variables: Mapping[str, str]) -> Iterator[RunningAirflow]:
    """Start Airflow with the DAGs of a folder, and end it with all that it started."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    airflow = RunningAirflow(home=home, url=url, environment=_environment(home, dags=dags, url=url, more=variables))
    try:
        preparation = airflow.start("prepare", command=(str(Path(__file__)), str(dags)))
        assert preparation.wait(_START_SECONDS) == 0, airflow.logs()
        del airflow.processes["prepare"]
        airflow.start("api-server", "api-server", "--port", str(port), "--workers", "1")
        airflow.start("scheduler", "scheduler", "--skip-serve-logs")
        airflow.start("triggerer", "triggerer", "--skip-serve-logs")
        airflow.until(lambda: _is_up(airflow), what="Airflow is up and knows its DAGs", seconds=_START_SECONDS)
        yield airflow
    finally:
        for name in tuple(airflow.processes):
            airflow.signal(name, signal.SIGCONT)
            airflow.stop(name, seconds=0.0)
        _end_all_of(home)


def _end_all_of(home: Path) -> None:
    """End what processes of this Airflow left: tasks have sessions of their own."""
    mark = f"AIRFLOW_HOME={home}\0".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in environment.read_bytes():
                os.kill(int(environment.parent.name), signal.SIGKILL)


def _environment(home: Path, *, dags: Path, url: str, more: Mapping[str, str]) -> dict[str, str]:
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW_", "AIRFLOW__"))}
    return {
        **mine,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__API__SECRET_KEY": "tests",
        "AIRFLOW__API_AUTH__JWT_SECRET": "tests tests tests tests tests tests tests tests tests tests tests",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__FERNET_KEY": "",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        **more,
    }


def _is_up(airflow: RunningAirflow) -> bool:
    for name, process in airflow.processes.items():
        assert process.poll() is None, f"{name} ended\n{airflow.logs()}"
    try:
        health = airflow.ask("GET", "/monitor/health")
        known = airflow.ask("GET", "/dags")["dags"] if health else []
    except (urllib.error.URLError, OSError):
        return False
    return bool(known) and all(health[one]["status"] == "healthy" for one in ("scheduler", "triggerer"))


def _tail(path: Path, *, lines: int = 40) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def _prepare(dags: str) -> None:
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.serialization.definitions.dag import SerializedDAG
    from airflow.serialization.serialized_objects import LazyDeserializedDAG
    from airflow.utils.db import initdb

    initdb()
    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(dag_folder=dags)
    assert not bag.import_errors, bag.import_errors
    lazy = [LazyDeserializedDAG.from_dag(dag) for dag in bag.dags.values()]
    SerializedDAG.bulk_write_to_db("dags-folder", None, lazy)
    for dag in lazy:
        SerializedDagModel.write_dag(dag, bundle_name="dags-folder")


if __name__ == "__main__":
    _prepare(sys.argv[1])
