"""Airflow with a metadata database in SQLite, and a way to run a whole DAG in it.

The helpers below use internals of Airflow's core, which promises nothing about them: they are kept in this one file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.airflow.environment import ROOT
from tests.airflow.java import CountingJava

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def airflow_db() -> None:
    """Make the metadata database, once."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture
def dag_bag(airflow_db: None) -> Any:
    """Parse the DAGs that the project ships; anew for each test, because a run leaves its conf in a DAG's params."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=str(ROOT / "dags"))


@pytest.fixture
def run_dag(airflow_db: None) -> Callable[..., Any]:
    """Run a DAG from the first task to the last in this process; returns its run."""

    def run(dag: Any, **conf: Any) -> Any:
        from airflow.dag_processing.bundles.manager import DagBundlesManager
        from airflow.models.serialized_dag import SerializedDagModel
        from airflow.serialization.definitions.dag import SerializedDAG
        from airflow.serialization.serialized_objects import LazyDeserializedDAG

        for task in dag.tasks:
            task.retries = 0  # a test that fails shall not wait for a retry first
        DagBundlesManager().sync_bundles_to_db()
        lazy = LazyDeserializedDAG.from_dag(dag)
        SerializedDAG.bulk_write_to_db("dags-folder", None, [lazy])
        SerializedDagModel.write_dag(lazy, bundle_name="dags-folder")
        # A manual run has no logical date unless somebody gives one: no task may need it.
        return dag.test(run_conf=conf, logical_date=None)

    return run


@pytest.fixture
def counting_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountingJava:
    """Give a Java that counts its starts."""
    return CountingJava.make(tmp_path).use(monkeypatch)
