"""One suite for every kind of storage: a server for each that needs one, and an empty place on each."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.retries import RetryPolicy
from tests.s3_server import S3Server, running_s3_server
from tests.webhdfs_server import NameNode, running_name_node

TABLE_PLACES = ["file", "memory", pytest.param("s3", marks=pytest.mark.s3)]
PLACES = [*TABLE_PLACES, "webhdfs"]

AT_ONCE = RetryPolicy(jitter=lambda: 0.5, sleep=lambda _: None)
"""Tries again without a wait."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """An empty place on some storage: its URL, and what opens it."""

    kind: str
    url: str
    options: Mapping[str, object] = field(default_factory=dict)

    def open(self, below: str = "") -> Storage:
        url = f"{self.url}/{below}" if below else self.url
        return Storage.open(url, storage_options=self.options, retry=AT_ONCE)


@pytest.fixture(scope="session")
def s3_session() -> Iterator[S3Server]:
    """The server of the whole run; tests ask for :func:`s3`."""
    with running_s3_server() as server:
        yield server


@pytest.fixture
def s3(s3_session: S3Server) -> S3Server:
    """The server, with nothing asked of it yet and no fault ordered."""
    s3_session.forget()
    return s3_session


@pytest.fixture
def s3_place(s3: S3Server) -> Place:
    return Place(kind="s3", url=f"s3://{s3.new_bucket()}/lake", options=s3.storage_options)


@pytest.fixture
def name_node() -> NameNode:
    return NameNode()


@pytest.fixture
def hdfs_place(name_node: NameNode) -> Iterator[Place]:
    with running_name_node(name_node) as url:
        yield Place(kind="webhdfs", url=f"{url}/lake", options={"token": name_node.token})


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The place of the kind that the test is parametrized with (indirectly)."""
    if request.param in ("s3", "webhdfs"):
        served: Place = request.getfixturevalue("s3_place" if request.param == "s3" else "hdfs_place")
        return served
    url = str(tmp_path / "lake") if request.param == "file" else f"memory://{uuid.uuid4().hex}/lake"
    return Place(kind=request.param, url=url)


@pytest.fixture
def storage(place: Place) -> Storage:
    return place.open()
