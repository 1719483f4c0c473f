"""Connections of type spark and livy: which cluster, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_hudi_maint.core.engines.cluster import ClusterEngine
from airflow_hudi_maint.core.engines.livy import LivyCluster
from airflow_hudi_maint.core.engines.spark_submit import SparkSubmitEngine
from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.cluster_connection import LivyConnection, SparkConnection
from airflow_hudi_maint.hooks.hudi import HudiHook

SECRET = "hush-hush-hush"  # noqa: S105


def connection(**fields: Any) -> Connection:
    extra = fields.pop("extra", {})
    return Connection(conn_id="c", extra=json.dumps(extra), **fields)


@pytest.mark.parametrize(
    ("fields", "master"),
    [
        ({"host": "yarn"}, "yarn"),
        ({"host": "spark://m", "port": 7077}, "spark://m:7077"),
        ({"host": "m", "port": 7077}, "spark://m:7077"),
        ({"host": "spark://a:7077,b:7077"}, "spark://a:7077,b:7077"),
        ({"host": "local[2]"}, "local[2]"),
        ({"host": "localhost", "port": 7077}, "spark://localhost:7077"),
        ({"host": "spark://m/", "port": 7077}, "spark://m:7077"),
        ({"host": "k8s://https://k", "port": 443}, "k8s://https://k:443"),
    ],
)
def test_the_master_of_a_spark_connection(fields: dict[str, Any], master: str) -> None:
    """As Airflow's own Spark provider has it in host and port, and as a URI leaves it there."""
    assert SparkConnection.of(connection(conn_type="spark", **fields)).master == master


def test_the_extras_of_a_spark_connection() -> None:
    """Queue, namespace and Kerberos become Spark's settings."""
    extra = {
        "deploy-mode": "cluster",
        "spark-binary": "spark3-submit",
        "queue": "night",
        "namespace": "etl",
        "principal": "ana@X",
        "keytab": "/etc/ana.keytab",
    }
    read = SparkConnection.of(connection(conn_type="spark", host="yarn", extra=extra))
    assert (read.deploy_mode, read.binary) == ("cluster", "spark3-submit")
    assert read.spark_conf == {
        "spark.yarn.queue": "night",
        "spark.kubernetes.namespace": "etl",
        "spark.kerberos.principal": "ana@X",
        "spark.kerberos.keytab": "/etc/ana.keytab",
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"conn_type": "livy", "host": "yarn"}, "is of type 'livy'; expected type 'spark'"),
        ({"conn_type": "spark"}, "has no host"),
        ({"conn_type": "spark", "host": "yarn", "port": 8032}, "leave the port out. Spark finds YARN by"),
        ({"conn_type": "spark", "host": "yarn", "extra": {"deploy_mode": "cluster"}}, "did you mean deploy-mode"),
        ({"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "both"}}, "deploy-mode 'both'; known are"),
    ],
)
def test_a_spark_connection_that_says_something_else_is_refused(fields: dict[str, Any], message: str) -> None:
    """With what is known."""
    with pytest.raises(InvalidSettingError, match=message):
        SparkConnection.of(connection(**fields))


@pytest.mark.parametrize(
    ("fields", "root"),
    [
        ({"host": "livy"}, "http://livy:8998"),
        ({"host": "livy", "schema": "https", "port": 443}, "https://livy:443"),
        ({"host": "https://knox/gateway/livy/"}, "https://knox/gateway/livy"),
    ],
)
def test_the_address_of_livy(fields: dict[str, Any], root: str) -> None:
    """Its password is in no repr; Livy behind a filter wants to know who asks."""
    read = LivyConnection.of(connection(conn_type="livy", login="ana", password=SECRET, **fields))
    assert read.root == root
    assert read.headers == {"X-Requested-By": "airflow"}
    assert SECRET not in repr(read)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A hook by its connection's extras, beside a connection for Spark and one for Livy."""

    def made(**extra: Any) -> HudiHook:
        spark = {"conn_type": "spark", "host": "spark://m", "port": 7077, "extra": {"deploy-mode": "cluster"}}
        livy = {"conn_type": "livy", "host": "livy"}
        hudi = {"conn_type": "hudi", "host": "/lake/t", "extra": extra}
        for name, value in (("SPARK_TEST", spark), ("LIVY_TEST", livy), ("HUDI_TEST", hudi)):
            monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps(value))
        return HudiHook("hudi_test")

    return made


def test_the_engine_of_a_cluster_is_made_from_both_connections(hook: Any) -> None:
    """Where jobs run stands in one, how they run in the other."""
    engine = hook(
        engine="spark_submit", spark_conn_id="spark_test", driver_memory="4g", rest_url="http://m:6066"
    ).make_engine()
    assert isinstance(engine, SparkSubmitEngine)
    assert (engine.master, engine.deploy_mode, engine.driver_memory, engine.rest_url, engine.outlives) == (
        *("spark://m:7077", "cluster", "4g", "http://m:6066", True),
    )
    assert engine.exchange is not None


def test_livy_is_made_from_its_connection(hook: Any) -> None:
    """Without the Livy provider."""
    engine = hook(engine="livy", livy_conn_id="livy_test").make_engine()
    assert isinstance(engine, ClusterEngine)
    assert isinstance(engine.manager, LivyCluster)
    assert engine.outlives


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"engine": "spark_submit"}, "needs a cluster"),
        ({"engine": "spark_submit", "spark_conn_id": "nope"}, "no connection 'nope', which spark_conn_id"),
        ({"engine": "livy"}, "without livy_conn_id"),
        ({"spark_conn_id": "spark_test"}, "which the engine 'local' does not use"),
        ({"engine": "spark_submit", "livy_conn_id": "x"}, "set engine to livy"),
        ({"engine": "yarn"}, "known are local, spark_submit, livy"),
    ],
)
def test_a_cluster_that_is_half_named_is_refused(hook: Any, extra: dict[str, Any], message: str) -> None:
    """A job must not run somewhere else than its author thinks."""
    with pytest.raises(InvalidSettingError, match=message):
        hook(**extra).make_engine()
