"""DAGs of one step each, for a running Airflow: a drop of partitions on a cluster, deferrable or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.airflow.running_airflow import RunningAirflow, TaskState, running_airflow

TASK = "expire"

_FILE = """
from datetime import timedelta

from airflow.sdk import DAG

from airflow_hudi_maint.operators.expiry import HudiExpirePartitionsOperator

for name, deferrable in {dags!r}.items():
    with DAG(name, schedule=None) as dag:
        HudiExpirePartitionsOperator(
            task_id={task!r},
            hudi_conn_id=name,
            policies=[{{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": {keep}}}],
            deferrable=deferrable,
            poll_interval=1,
            retries=1,
            retry_delay=timedelta(0),
        )
    globals()[name] = dag
"""


@dataclass(frozen=True, kw_only=True)
class LiveSteps:
    """A running Airflow, and the run of each DAG that was started."""

    airflow: RunningAirflow
    runs: dict[str, str]

    def run(self, dag_id: str) -> None:
        """Start the run of a DAG."""
        self.runs[dag_id] = self.airflow.run(dag_id)

    def task(self, dag_id: str) -> TaskState:
        """How its task is."""
        return self.airflow.task(dag_id, self.runs[dag_id], TASK)

    def until(self, dag_id: str, state: str, *, seconds: float = 120.0) -> None:
        """Wait until its task is in a state."""
        self.airflow.until(lambda: self.task(dag_id).state == state, what=f"{dag_id} is {state}", seconds=seconds)

    def until_said(self, dag_id: str, text: str, *, try_number: int, seconds: float = 120.0) -> None:
        """Wait until a try of its task says something."""

        def is_said() -> bool:
            return text in self.airflow.log_of(dag_id, self.runs[dag_id], TASK, try_number=try_number)

        self.airflow.until(is_said, what=f"try {try_number} of {dag_id} says {text!r}", seconds=seconds)

    def triggers(self, dag_id: str, *, try_number: int) -> list[str]:
        """What its trigger said in each triggerer that had it, the first one first."""
        return self.airflow.trigger_logs_of(dag_id, self.runs[dag_id], TASK, try_number=try_number)

    def until_waited_for(self, dag_id: str, *, try_number: int, triggerers: int = 1) -> None:
        """Wait until its task is deferred and a triggerer, or one after the other, has its trigger.

        Before that, Airflow tells nobody that a person ended the task.
        """
        self.until(dag_id, "deferred")
        self.airflow.until(
            lambda: (
                len([one for one in self.triggers(dag_id, try_number=try_number) if "starting" in one]) >= triggerers
            ),
            what=f"the trigger of {dag_id} has started in {triggerers} triggerers",
        )

    def clear(self, dag_id: str) -> None:
        """Have its task run anew, as a person does."""
        self.airflow.clear(dag_id, self.runs[dag_id], TASK)

    def mark_failed(self, dag_id: str) -> None:
        """Mark its task as failed, as a person does."""
        self.airflow.mark(dag_id, self.runs[dag_id], TASK, state="failed")

    def result(self, dag_id: str) -> Any:
        """What its task returned."""
        return self.airflow.result(dag_id, self.runs[dag_id], TASK)


@dataclass(frozen=True, kw_only=True)
class ClusterAddress:
    """Where Spark's own cluster is."""

    master: str
    rest_url: str
    ui_url: str

    def connection(self) -> str:
        """The connection of type spark, as JSON."""
        host, _, port = self.master.rpartition(":")
        return json.dumps({"conn_type": "spark", "host": host, "port": int(port), "extra": {"deploy-mode": "cluster"}})

    def fields(self, **more: object) -> dict[str, object]:
        """What a connection of type hudi says of it."""
        return {
            "engine": "spark_submit",
            "spark_conn_id": "cluster",
            "rest_url": self.rest_url,
            "ui_url": self.ui_url,
            "spark_conf": {"spark.executor.memory": "1g", "spark.cores.max": "1"},
            "driver_memory": "1g",
            "timeline_zone": "UTC",
            **more,
        }


@contextmanager
def running_steps(
    folder: Path,
    dags: Mapping[str, bool],
    *,
    tables: Mapping[str, Path],
    keep: int,
    cluster: ClusterAddress,
    **more: object,
) -> Iterator[LiveSteps]:
    """Run Airflow with DAGs by name, deferrable or not; each has a connection of its name, to its table.

    ``keep`` is how many partitions stay; ``more`` are further fields of the connections.
    """
    home, dag_folder = folder / "home", folder / "dags"
    for one in (home, dag_folder):
        one.mkdir()
    text = _FILE.format(dags=dict(dags), task=TASK, keep=keep)
    (dag_folder / "steps.py").write_text(text, encoding="utf-8")
    extra = cluster.fields(**more)
    variables = {
        f"AIRFLOW_CONN_{name.upper()}": json.dumps({"conn_type": "hudi", "host": str(tables[name]), "extra": extra})
        for name in dags
    }
    variables["AIRFLOW_CONN_CLUSTER"] = cluster.connection()
    variables["AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT"] = "40"  # a lost worker is missed after that
    with running_airflow(home, dags=dag_folder, variables=variables) as airflow:
        yield LiveSteps(airflow=airflow, runs={})
