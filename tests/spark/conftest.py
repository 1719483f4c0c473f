"""One Spark session for each release of Hudi, shared by all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.spark.writer import HudiWriter

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
