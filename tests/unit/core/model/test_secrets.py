"""Which values of a connection are masked in logs."""

from __future__ import annotations

import doctest

import pytest

from airflow_hudi_maint.core.model import secrets


@pytest.mark.parametrize(
    "name",
    [
        "key",
        "aws_secret_access_key",
        "awsAccessKeyId",
        "fs.s3a.secret.key",
        "fs.azure.account.key.lake.dfs.core.windows.net",
        "sas_token",
        "connection_string",
        "connectionString",
        "Authorization",
        "auth",
        "hive.passwd",
        "accessTokens",
        "apikey",
    ],
)
def test_a_name_with_a_secret_s_word_is_masked(name: str) -> None:
    """In any of the spellings that storage, Spark and Hudi use."""
    assert list(secrets.secrets_in({name: "hush"})) == ["hush"]


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.datasource.write.recordkey.field",
        "hoodie.datasource.write.keygenerator.class",
        "hoodie.table.keygenerator.type",
        "hoodie.keygen.timebased.output.dateformat",
        "hoodie.write.lock.zookeeper.lock_key",
        "hoodie.write.lock.dynamodb.partition_key",
        "fs.s3a.aws.credentials.provider",
        "fs.azure.account.auth.type.lake.dfs.core.windows.net",
        "author",
        "monkey",
    ],
)
def test_a_name_that_only_looks_like_one_is_not(name: str) -> None:
    """A masked column name makes every log unreadable."""
    assert list(secrets.secrets_in({name: "flight_id"})) == []


def test_values_in_lists_and_objects_are_masked() -> None:
    """A name counts for the texts of its list; objects inside have names of their own."""
    options = {
        "tokens": ["a", ["b"]],
        "client_kwargs": {"headers": {"authorization": "c", "accept": "json"}},
        "endpoints": [{"password": "d", "url": "https://x"}],
    }
    assert list(secrets.secrets_in(options)) == ["a", "b", "c", "d"]


def test_a_password_in_an_address_is_masked_whatever_its_name() -> None:
    """A container before a host looks like a user, and is none with a password."""
    options = {"endpoint_url": "http://etl:hu%2Fsh@minio:9000", "url": "abfs://lake@account.dfs.core.windows.net/t"}
    assert list(secrets.secrets_in(options)) == ["hu%2Fsh", "hu/sh"]


def test_a_traceback_shows_a_secret_that_is_anywhere_in_its_chain() -> None:
    """Tracebacks print causes and contexts; URLs spell a secret in their own way."""
    shown = RuntimeError("storage failed")
    shown.__cause__ = ValueError("GET /t?delegation=hu%2Fsh")
    assert secrets.shows_secret(shown, secrets=["hu/sh"])
    assert not secrets.shows_secret(shown, secrets=["other"])


def test_a_switch_is_no_secret() -> None:
    """Masking the word true would mask half a log."""
    assert list(secrets.secrets_in({"spark.auth": "true", "token": "", "key": 5})) == []


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://repo.example/maven", []),
        ("https://ci:hush@repo.example/maven", ["ci:hush", "hush"]),
        ("https://token@repo.example", ["token"]),
        ("https://ci:p%40ss@repo.example/x?y=a@b", ["ci:p%40ss", "p%40ss", "p@ss"]),
        ("https://repo.example/a:b@c", []),
        ("/var/maven@2", []),
    ],
)
def test_who_a_repository_is_asked_as_is_masked(address: str, expected: list[str]) -> None:
    """Only what stands before the host."""
    assert list(secrets.user_info(address)) == expected


def test_the_examples_are_right() -> None:
    """They stand in the docstrings."""
    assert doctest.testmod(secrets).failed == 0
