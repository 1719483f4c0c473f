"""One Spark session for each release of Hudi, and one table to copy, shared by all tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.spark.tables import make_table
from tests.spark.writer import HudiWriter


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long proofs unless they are asked for by name."""
    if "proof" in config.getoption("markexpr"):
        return
    long = [item for item in items if item.get_closest_marker("proof")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("proof")]


WRITES_TABLE_VERSION = {6: "0.15.0", 8: "1.0.2", 9: "1.2.0"}


@pytest.fixture(scope="session")
def writer_of() -> Iterator[Callable[[int], HudiWriter]]:
    """The writer of a table version; started at its first use."""
    writers: dict[int, HudiWriter] = {}

    def of(table_version: int) -> HudiWriter:
        if table_version not in writers:
            writers[table_version] = HudiWriter(WRITES_TABLE_VERSION[table_version])
        return writers[table_version]

    yield of
    for writer in writers.values():
        writer.close()


@pytest.fixture(scope="session")
def writer(writer_of: Callable[[int], HudiWriter]) -> HudiWriter:
    """The writer of version-9 tables."""
    return writer_of(9)


@pytest.fixture(scope="session")
def pristine(writer: HudiWriter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table to copy: version 9, copy-on-write, six days."""
    path = tmp_path_factory.mktemp("pristine") / "trips"
    make_table(writer, path)
    return path


@pytest.fixture
def table(pristine: Path, tmp_path: Path) -> Path:
    """A table of the test's own."""
    path = tmp_path / "trips"
    shutil.copytree(pristine, path)
    return path
