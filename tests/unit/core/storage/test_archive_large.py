"""Large files of the archived timeline, of which no more is read than what is asked for."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError
from tests.unit.core.storage.archiving import history_file
from tests.unit.core.storage.builders import TableBuilder, at
from tests.unit.core.storage.gathering import ONE

_LARGE = 5_000_000
"""Bytes of a file, as the manifest says, from which on it is read by ranges."""
_COUNT = 59
_NAME = f"{at(1)}_{at(_COUNT)}_1.parquet"
_PATH = f".hoodie/timeline/history/{_NAME}"


def _said_of(number: int) -> dict[str, object]:
    stats = [{"fileId": f"f{number}-0", "path": f"{ONE}/{number}"}]
    return {"partitionToWriteStats": {ONE: stats}, "extraMetadata": {"schema": "s" * 100_000}}


@pytest.fixture
def builder(base_path: str) -> TableBuilder:
    """A table of which 59 commits are archived in one file, each of 100 kB."""
    table = TableBuilder(base_path=base_path)
    table.commit(at(0, minute=1), {ONE: [("f1-0", 1)]})
    rows: list[dict[str, object]] = [
        {"instantTime": at(number), "completionTime": at(number), "action": "commit", "version": 1}
        | {"metadata": json.dumps(_said_of(number)).encode(), "plan": None}
        for number in range(1, _COUNT + 1)
    ]
    table.put(_PATH, history_file(rows))
    manifest = {"files": [{"fileName": _NAME, "fileLen": _LARGE}]}
    table.put(".hoodie/timeline/history/manifest_1", json.dumps(manifest).encode())
    table.put(".hoodie/timeline/history/_version_", b"1")
    return table


def test_a_commit_of_a_large_file_is_found_in_any_order(builder: TableBuilder) -> None:
    """Forwards the file is read once, backwards anew."""
    archived = {one.instant.requested_time: one for one in builder.open().archived()}
    for number in (1, 2, _COUNT, 3, 50, 50):
        (stat,) = archived[at(number)].commit_metadata().written[ONE]
        assert f"f{number}-0" == stat.file_id


def test_the_memory_does_not_grow_with_the_archive(builder: TableBuilder) -> None:
    """Of nearly 6 MB of metadata some rows are held, and none of those that were read before."""
    tracemalloc.start()
    try:
        for one in builder.open().archived():
            one.commit_metadata()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000


@pytest.mark.parametrize("left", [0, 100, 3_000])
def test_a_large_file_that_is_broken_is_named(builder: TableBuilder, left: int) -> None:
    """Read by ranges or whole, it is an error of ours."""
    builder.put(_PATH, builder.storage.read_bytes(_PATH)[:left])
    with pytest.raises(CorruptTableError, match=f"{_NAME} is no history file that can be read"):
        builder.open().archived()


def test_a_large_file_that_is_missing_is_named(builder: TableBuilder) -> None:
    """The manifest goes on naming it."""
    builder.remove(_PATH)
    with pytest.raises(CorruptTableError, match=f"{_NAME} is missing, though the manifest"):
        builder.open().archived()
