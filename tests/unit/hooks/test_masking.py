"""Which values of a connection are masked in logs."""

from __future__ import annotations

import doctest

import pytest

from airflow_hudi_maint.hooks import masking


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
    assert list(masking.secrets_in({name: "hush"})) == ["hush"]


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
    assert list(masking.secrets_in({name: "flight_id"})) == []


def test_values_in_lists_and_objects_are_masked() -> None:
    """A name counts for the texts of its list; objects inside have names of their own."""
    options = {
        "tokens": ["a", ["b"]],
        "client_kwargs": {"headers": {"authorization": "c", "accept": "json"}},
        "endpoints": [{"password": "d", "url": "https://x"}],
    }
    assert list(masking.secrets_in(options)) == ["a", "b", "c", "d"]


def test_a_switch_is_no_secret() -> None:
    """Masking the word true would mask half a log."""
    assert list(masking.secrets_in({"spark.auth": "true", "token": "", "key": 5})) == []


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
    assert list(masking.user_info(address)) == expected


def test_the_examples_are_right() -> None:
    """They stand in the docstrings."""
    assert doctest.testmod(masking).failed == 0
