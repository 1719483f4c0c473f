"""Credentials of a storage from the connection that Airflow has for it."""

from __future__ import annotations

import asyncio
import doctest
import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks import storage_connection
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.hooks.storage_connection import StorageConnection


def options(conn_type: str, *, extra: Any = None, **fields: Any) -> dict[str, object]:
    text = extra if isinstance(extra, str) else json.dumps(extra or {})
    connection = Connection(conn_id="lake", conn_type=conn_type, extra=text, **fields)
    return dict(StorageConnection.of(connection).options)


def test_keys_of_aws() -> None:
    """Login and password are the keys; session token, region and endpoint come from the extras."""
    extra = {
        "aws_session_token": "tok",
        "region_name": "eu-central-1",
        "endpoint_url": "http://minio:9000",
        "verify": False,
        "config_kwargs": {"s3": {"addressing_style": "path"}},
    }
    assert {
        "key": "AK",
        "secret": "SK",
        "token": "tok",
        "endpoint_url": "http://minio:9000",
        "client_kwargs": {"region_name": "eu-central-1", "verify": False},
        "config_kwargs": {"s3": {"addressing_style": "path"}},
    } == options("aws", login="AK", password="SK", extra=extra)  # noqa: S106 no secret


def test_aws_without_keys_is_the_worker_s_own_role() -> None:
    """What is not given is left to the client: environment, profile, instance role."""
    assert {} == options("aws")
    assert {"profile": "lake"} == options("aws", extra={"profile_name": "lake"})
    assert {"key": "AK", "secret": "SK"} == options(
        "aws", extra={"aws_access_key_id": "AK", "aws_secret_access_key": "SK"}
    )
    service = {"service_config": {"s3": {"endpoint_url": "http://s3:9000"}}, "endpoint_url": "http://all:9000"}
    assert {"endpoint_url": "http://s3:9000"} == options("aws", extra=service)


def test_google_and_azure_and_hdfs() -> None:
    """A key file, an account key or a service principal, and a user or a delegation token."""
    assert {"token": {"private_key": "k"}, "project": "p"} == options(
        "google_cloud_platform", extra={"keyfile_dict": '{"private_key": "k"}', "project": "p"}
    )
    assert {"token": "/keys/lake.json"} == options("google_cloud_platform", extra={"key_path": "/keys/lake.json"})
    assert {"token": "google_default"} == options("google_cloud_platform")
    assert {"account_name": "lake", "account_key": "k"} == options("wasb", login="lake", password="k")  # noqa: S106
    assert {"account_name": "lake", "tenant_id": "t", "client_id": "app", "client_secret": "s"} == options(
        "wasb",
        host="https://lake.blob.core.windows.net",
        login="app",
        password="s",  # noqa: S106
        extra={"tenant_id": "t"},
    )
    assert {"user": "etl", "use_https": True} == options("webhdfs", login="etl", extra={"use_ssl": "true"})
    assert {"token": "d", "session_verify": "/ca.pem"} == options("webhdfs", extra={"token": "d", "verify": "/ca.pem"})


def test_another_type_is_refused_with_what_to_do() -> None:
    """A database's connection has nothing for a storage."""
    with pytest.raises(InvalidSettingError, match=r"'lake' is of type 'postgres'.*one of type aws, .*storage_options"):
        options("postgres")


@pytest.mark.parametrize(
    ("conn_type", "extra", "said"),
    [
        ("aws", {"role_arn": "arn:aws:iam::1:role/hush"}, "sets role_arn, which is not used here"),
        ("google_cloud_platform", {"impersonation_chain": "hush"}, "sets impersonation_chain"),
        ("aws", "{hush", "extras that are no JSON object"),
        ("aws", {"region_name": {"hush": 1}}, "field region_name is no text"),
        ("aws", {"config_kwargs": "hush"}, "field config_kwargs is no JSON object"),
        ("google_cloud_platform", {"keyfile_dict": "hush"}, "field keyfile_dict is no JSON object"),
    ],
)
def test_what_would_be_left_out_is_refused_and_no_value_shown(conn_type: str, extra: Any, said: str) -> None:
    """A role that is not assumed would mean other rights than its owner thinks."""
    with pytest.raises(InvalidSettingError, match=said) as caught:
        options(conn_type, extra=extra)
    assert "hush" not in str(caught.value)


def test_a_repr_has_no_credentials() -> None:
    """Neither keys nor endpoint."""
    connection = Connection(conn_id="lake", conn_type="aws", login="AK", password="hush")  # noqa: S106
    assert "StorageConnection(Connection 'lake', schemes=('s3', 's3a'))" == repr(StorageConnection.of(connection))


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a hook whose connection names ``lake`` for its storage."""

    def make(*, host: str = "s3://lake/trips", lake: dict[str, Any] | None = None, **extra: Any) -> HudiHook:
        hudi = {"conn_type": "hudi", "host": host, "extra": {"storage_conn_id": "lake", **extra}}
        monkeypatch.setenv("AIRFLOW_CONN_HUDI_TEST", json.dumps(hudi))
        if lake is not None:
            monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(lake))
        return HudiHook("hudi_test")

    return make


AWS = {"conn_type": "aws", "login": "AK", "password": "SK", "extra": {"region_name": "eu-central-1"}}


def test_the_hook_takes_the_options_of_the_connection_and_those_of_the_field_over_them(hook: Any) -> None:
    """The field changes what it names and leaves the rest."""
    assert {"key": "AK", "secret": "SK", "client_kwargs": {"region_name": "eu-central-1"}} == hook(
        lake=AWS
    ).storage_options
    over = {"key": "OTHER", "client_kwargs": {"verify": False}}
    assert {
        "key": "OTHER",
        "secret": "SK",
        "client_kwargs": {"region_name": "eu-central-1", "verify": False},
    } == hook(lake=AWS, storage_options=over).storage_options


def test_the_hook_reads_both_connections_without_blocking(hook: Any) -> None:
    """In the triggerer nothing is asked of Airflow after the hook is connected."""
    connected = hook(lake=AWS)
    asyncio.run(connected.aconnect())

    assert {"settings", "storage_connection"} <= set(vars(connected))
    assert "AK" == connected.storage_options["key"]


def test_a_connection_that_is_missing_or_of_another_storage_is_told(hook: Any, tmp_path: Path) -> None:
    """With both ids, since either may be the wrong one."""
    with pytest.raises(InvalidSettingError, match=r"no connection 'lake', which storage_conn_id of .*'hudi_test'"):
        hook().workspace()
    with pytest.raises(InvalidSettingError, match=r"no connection 'lake', which storage_conn_id of .*'hudi_test'"):
        asyncio.run(hook().aconnect())
    with pytest.raises(InvalidSettingError, match=r"'lake' serves s3://, s3a:// and the base path is of scheme 'gs'"):
        hook(host="gs://lake/trips", lake=AWS).workspace()
    with pytest.raises(InvalidSettingError, match="the base path is of scheme 'file'"):
        hook(host=str(tmp_path), lake=AWS).workspace()


def test_documents_may_be_what_the_connection_is_for(hook: Any, tmp_path: Path) -> None:
    """A local table whose documents lie on S3 needs credentials for these."""
    assert "AK" == hook(host=str(tmp_path), lake=AWS, documents_location="s3://lake/docs").storage_options["key"]


@pytest.mark.parametrize(
    ("given", "said"), [(0, "expected 1 to 256"), (1000, "expected 1 to 256"), ("x", "whole number")]
)
def test_how_many_requests_run_at_a_time_is_checked(hook: Any, tmp_path: Path, given: Any, said: str) -> None:
    """Before anything is asked of storage."""
    with pytest.raises(InvalidSettingError, match=said):
        hook(lake=AWS, storage_concurrency=given).workspace()


def test_examples() -> None:
    """Those in the docstrings."""
    assert 0 == doctest.testmod(storage_connection).failed
