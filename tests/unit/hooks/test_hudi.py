"""The hook and the connection."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.hooks.settings import HudiConnectionSettings
from tests.airflow.tables import three_days


def connection(*, host: str | None = "/lake/trips", **extra: Any) -> Connection:
    return Connection(conn_id="hudi_test", conn_type="hudi", host=host, extra=json.dumps(extra))


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Define the connection ``hudi_test`` in the environment."""

    def define(*, host: str, **extra: Any) -> HudiHook:
        value = json.dumps({"conn_type": "hudi", "host": host, "extra": extra})
        monkeypatch.setenv("AIRFLOW_CONN_HUDI_TEST", value)
        return HudiHook("hudi_test")

    return define


def test_every_field_of_the_form_is_read() -> None:
    """JSON objects may come as objects or as their text, and Hudi gets its booleans in lower case."""
    settings = HudiConnectionSettings.of(
        connection(
            storage_options={"client_kwargs": {"region_name": "eu"}},
            storage_conn_id="lake",
            storage_concurrency="32",
            documents_location="s3://lake/documents",
            timeline_zone="Europe/Berlin",
            engine="local",
            bundle="g:a:1.2.0",
            repositories=["https://repo.example/maven"],
            cache_dir="/var/cache/hudi",
            work_dir="/scratch",
            master="local[2]",
            driver_memory="4g",
            spark_conf='{"spark.ui.enabled": false, "spark.executor.cores": 2}',
            python="/opt/spark/bin/python",
            java_home="/opt/java",
            write_options={"hoodie.metadata.enable": True},
        )
    )
    assert settings == HudiConnectionSettings(
        base_path="/lake/trips",
        storage_options={"client_kwargs": {"region_name": "eu"}},
        storage_conn_id="lake",
        storage_concurrency=32,
        documents_location="s3://lake/documents",
        timeline_zone="Europe/Berlin",
        bundle="g:a:1.2.0",
        repositories=("https://repo.example/maven",),
        cache_dir="/var/cache/hudi",
        work_dir="/scratch",
        master="local[2]",
        driver_memory="4g",
        spark_conf={"spark.ui.enabled": "false", "spark.executor.cores": "2"},
        python="/opt/spark/bin/python",
        java_home="/opt/java",
        write_options={"hoodie.metadata.enable": "true"},
    )


def test_fields_that_a_form_leaves_empty_have_their_defaults() -> None:
    """A form sends null or an empty text for what was not filled in."""
    settings = HudiConnectionSettings.of(connection(bundle="", spark_conf=None, engine=None))
    assert settings == HudiConnectionSettings(base_path="/lake/trips")


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"spark_config": {}}, r"'hudi_test' has no setting 'spark_config'; did you mean spark_conf"),
        ({"engine": "yarn"}, "names the engine 'yarn'; known are local"),
        ({"spark_conf": "not json with secret"}, "field spark_conf is no JSON object$"),
        ({"storage_options": [1]}, "field storage_options is no JSON object$"),
        ({"repositories": {"https://u:p@x": 1}}, "field repositories is no list of addresses$"),
        ({"master": 4}, "field master=4 is no text"),
    ],
)
def test_a_wrong_field_is_refused_by_name(extra: dict[str, Any], message: str) -> None:
    """The error names connection and field, and shows no value that may be secret."""
    with pytest.raises(InvalidSettingError, match=message):
        HudiConnectionSettings.of(connection(**extra))


def test_a_connection_of_another_type_or_with_broken_extras_is_refused() -> None:
    """It is not read as an empty one."""
    with pytest.raises(InvalidSettingError, match="is of type 'aws'"):
        HudiConnectionSettings.of(Connection(conn_id="x", conn_type="aws"))
    broken = Connection(conn_id="x", conn_type="hudi", extra='{"spark_conf"')
    with pytest.raises(InvalidSettingError, match="extras that are no JSON"):
        HudiConnectionSettings.of(broken)


@pytest.mark.parametrize(
    ("field", "value"), [("schema", "lake/x"), ("login", "me"), ("password", "hush"), ("port", 9000)]
)
def test_a_field_that_means_nothing_here_is_refused_by_name(field: str, value: Any) -> None:
    """Whoever filled it in expects it to do something; its value stays out of the message."""
    given: dict[str, Any] = {field: value}
    with pytest.raises(InvalidSettingError, match=f"sets {field}, which a connection of type 'hudi'") as raised:
        HudiConnectionSettings.of(Connection(conn_id="x", conn_type="hudi", host="/x", **given))
    assert "hush" not in str(raised.value)


def test_a_uri_whose_path_misses_the_host_says_where_the_base_path_goes() -> None:
    """The path of a URI is Airflow's schema; the base path is its host, percent-encoded."""
    for uri in ("hudi:///lake/x", "hudi://s3://lake/x"):
        with pytest.raises(InvalidSettingError, match=r"sets schema.*base path goes into host.*hudi://%2Flake"):
            HudiConnectionSettings.of(Connection.from_uri(uri, conn_id="x"))
    right = Connection.from_uri("hudi://%2Flake%2Fflights", conn_id="x")
    assert HudiConnectionSettings.of(right).base_path == "/lake/flights"


def test_credentials_are_in_no_repr_and_are_masked() -> None:
    """What may be secret is left out of the repr, and its values are named for the masker."""
    settings = HudiConnectionSettings.of(
        connection(
            storage_options={"key": "AKIA", "client_kwargs": {"aws_secret_access_key": "hush"}, "anon": False},
            spark_conf={"spark.hadoop.fs.s3a.secret.key": "hush2"},
            write_options={
                "hoodie.write.lock.x.password": "hush3",
                "hoodie.datasource.write.recordkey.field": "flight_id",
                "hoodie.write.lock.zookeeper.lock_key": "flights",
            },
            repositories=["https://ci:hush4@repo.example/maven", "https://repo.example/public"],
        )
    )
    assert "hush" not in repr(settings)
    assert "AKIA" not in repr(settings)
    assert set(settings.secrets()) == {"AKIA", "hush", "hush2", "hush3", "hush4", "ci:hush4"}


def test_test_connection_says_what_the_table_is(connected: Any, tmp_path: Path) -> None:
    """It opens the table and reads its timeline, without an engine."""
    three_days(str(tmp_path / "trips"))
    ok, message = connected(host=str(tmp_path / "trips")).test_connection()
    assert ok
    assert message.startswith("trips: COPY_ON_WRITE, table version 8, 3 completed instants, 0 pending, last 2")


@pytest.mark.parametrize("path", ["", "/nowhere/at/all", "nope://bucket/table"])
def test_test_connection_says_what_is_wrong(connected: Any, path: str) -> None:
    """No table, no base path and no such file system are told apart, and nothing is raised."""
    ok, message = connected(host=path).test_connection()
    assert not ok
    expected = {"": "No base path", "/nowhere/at/all": "TableNotFoundError", "nope://bucket/table": "No file system"}
    assert expected[path] in message


def test_an_unknown_connection_says_what_to_do() -> None:
    """A missing connection is a setting to mend, not an outage."""
    ok, message = HudiHook("hudi_missing").test_connection()
    assert (ok, "There is no connection 'hudi_missing'" in message) == (False, True)


def test_without_a_connection_everything_is_default(tmp_path: Path) -> None:
    """A base path is enough to open a table."""
    three_days(str(tmp_path / "trips"))
    hook = HudiHook(None, base_path=str(tmp_path / "trips"))
    assert hook.workspace().table.config.name == "trips"


def test_without_a_connection_and_a_base_path_the_error_names_no_connection() -> None:
    """There is none to set it in."""
    with pytest.raises(InvalidSettingError, match="No base path: give base_path, since there is no connection"):
        HudiHook(None).base_path  # noqa: B018 reading it raises


def test_the_given_base_path_wins_over_the_connections(connected: Any) -> None:
    """One connection may serve many tables."""
    connected(host="memory://a")
    assert HudiHook("hudi_test", base_path="memory://b").base_path == "memory://b"
    assert HudiHook("hudi_test", base_path="").base_path == "memory://a"


def test_the_engine_is_made_from_the_connection(connected: Any) -> None:
    """What the connection leaves open is the engine's default; nothing is started."""
    hook = connected(
        host="/x",
        master="local[2]",
        driver_memory="4g",
        spark_conf={"spark.a": "b"},
        bundle="/jar",
        work_dir="/scratch",
    )
    engine = hook.make_engine()
    assert (engine.name, engine.master, engine.driver_memory, engine.bundle) == ("local", "local[2]", "4g", "/jar")
    assert engine.spark_conf == {"spark.a": "b"}
    assert (engine.java_home, engine.work_dir) == (None, Path("/scratch"))


def test_the_connection_can_be_read_without_blocking(connected: Any) -> None:
    """In the triggerer the connection is awaited; afterwards nothing more is asked."""
    hook = connected(host="/awaited")
    asyncio.run(hook.aconnect())
    assert hook.__dict__["settings"].base_path == "/awaited"
