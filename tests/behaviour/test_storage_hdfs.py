"""What is particular to HDFS through WebHDFS, against a small server that speaks its protocol (no Hadoop)."""

from __future__ import annotations

import logging
import traceback
from typing import NoReturn

import pytest
import requests
from requests.adapters import HTTPAdapter

from airflow_hudi_maint.core.errors import InvalidSettingError, StorageAccessError, StorageError
from airflow_hudi_maint.core.storage.filesystem import Storage
from tests.behaviour.conftest import AT_ONCE, Place
from tests.webhdfs_server import NameNode, running_name_node


@pytest.fixture
def storage(hdfs_place: Place) -> Storage:
    return hdfs_place.open()


def test_a_file_appears_whole(storage: Storage, name_node: NameNode) -> None:
    """HDFS shows a file while it is written, so it is written beside its place and renamed over the old one."""
    storage.write_atomic("a/file", b"old")
    storage.write_atomic("a/file", b"new")

    assert ["/lake/a/file"] == [*name_node.files]
    assert b"new" == storage.read_bytes("a/file")
    assert not [one for one in name_node.asked if one in ("CREATE /lake/a/file", "DELETE /lake/a/file")]
    assert 2 == sum(one.startswith("RENAME /lake/a/.file.") for one in name_node.asked)


def test_a_gateway_that_does_not_rename_over_a_file_gets_it_out_of_the_way(
    storage: Storage, name_node: NameNode
) -> None:
    """HttpFS answers false and leaves both files; taken for success, the old content would stay."""
    name_node.is_gateway = True
    storage.write_atomic("a/file", b"old")
    storage.write_atomic("a/file", b"new")

    assert ["/lake/a/file"] == [*name_node.files]
    assert b"new" == storage.read_bytes("a/file")


def test_a_write_that_fails_leaves_the_old_content(storage: Storage, name_node: NameNode) -> None:
    """The file beside is removed again, whichever request failed."""
    storage.write_atomic("a/file", b"old")
    name_node.refused_operation = "RENAME"

    with pytest.raises(StorageError, match=r"Storage failed at webhdfs://.*/lake/a/file: "):
        storage.write_atomic("a/file", b"new")
    assert {"/lake/a/file": b"old"} == {path: data for path, (data, _) in name_node.files.items()}


def test_a_name_node_that_restarts_is_asked_again(storage: Storage, name_node: NameNode) -> None:
    """503 passes; what the name node says itself is taken at its word."""
    storage.write_atomic("file", b"1")
    name_node.failures.extend([(503, "Starting"), (503, "Starting")])

    assert ("file",) == storage.names("")
    assert 2 == storage.requests.retries


def test_a_token_that_is_not_known_is_refused_without_naming_it(hdfs_place: Place) -> None:
    """The error says where and why."""
    storage = Storage.open(hdfs_place.url, storage_options={"token": "hush-hush"}, retry=AT_ONCE)

    with pytest.raises(StorageAccessError, match=r"Access to webhdfs://.*/lake is denied: .*not known here") as caught:
        storage.list("")
    assert "hush" not in str(caught.value)


def test_a_token_is_in_no_error_although_it_is_in_every_url(caplog: pytest.LogCaptureFixture) -> None:
    """The client's own message for a server that is gone holds the whole URL."""
    caplog.set_level(logging.DEBUG, logger="airflow_hudi_maint")
    with running_name_node(NameNode()) as url:
        pass
    storage = Storage.open(f"{url}/lake", storage_options={"token": "hush hush"}, retry=AT_ONCE)

    with pytest.raises(StorageError, match="try again") as caught:
        storage.list("")
    traceback_shown = "".join(traceback.format_exception(caught.value))
    for text in (str(caught.value), repr(storage), caplog.text, traceback_shown):
        assert "hush" not in text
    assert 4 == storage.requests.retries


def test_a_server_that_does_not_answer_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests itself has no time limit; ten seconds to connect and a minute of silence end a try here."""
    given: list[object] = []

    def refuse(_: HTTPAdapter, __: object, **options: object) -> NoReturn:
        given.append(options["timeout"])
        raise requests.ReadTimeout

    monkeypatch.setattr(HTTPAdapter, "send", refuse)
    storage = Storage.open("webhdfs://namenode:9870/lake", retry=AT_ONCE)
    with pytest.raises(StorageError, match="ReadTimeout"):
        storage.list("")
    assert [(10.0, 60.0)] * 5 == given


def test_a_password_in_a_url_is_refused() -> None:
    """A base path stands in every plan, report and log line."""
    with pytest.raises(InvalidSettingError, match="holds a password") as caught:
        Storage.open("webhdfs://etl:hush@namenode:9870/lake")

    assert "hush" not in str(caught.value)
    assert "webhdfs://etl@namenode:9870/lake" == Storage.open("webhdfs://etl@namenode:9870/lake").root
