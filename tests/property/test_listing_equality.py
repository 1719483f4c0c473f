"""Directories, the metadata table and the timeline tell the same of a table, whatever happened to it."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import fsspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.storage.statistics import gather_statistics
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.property.histories import PARTITIONS, STEPS, History, Step

NOW = datetime(2026, 12, 1, tzinfo=UTC)
_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")

_OFTEN = ("upsert", "upsert", "insert", "finish")
steps = st.lists(
    st.tuples(st.sampled_from([*sorted(STEPS), *_OFTEN]), st.integers(0, 5), st.integers(0, 5)), min_size=4, max_size=30
)


def _gather(
    table: HudiTable, *, listing: str, previous: TableStatistics | None = None, mode: str = "full"
) -> TableStatistics:
    return gather_statistics(table, now=NOW, previous=previous, mode=mode, listing=listing)


def _files(table: HudiTable, listing: str) -> dict[str, set[tuple[str, int]]]:
    """Names and bytes of the files of completed writes, by partition."""
    view = table.view(table.timeline(), listing=listing)
    pending = tuple(one.requested_time for one in view.timeline.pending)
    found = {
        path: {
            (one.name, one.bytes)
            for one in entries
            if not one.name.startswith(".hoodie") and not any(instant in one.name for instant in pending)
        }
        for path, entries in view.listings.items()
    }
    return {path: files for path, files in found.items() if files}


def _slices(table: HudiTable, listing: str) -> dict[str, tuple[tuple[FileSlice, ...], tuple[FileSlice, ...]]]:
    view = table.view(table.timeline(), listing=listing)
    both = {path: (view.latest_slices(path), view.merged_slices(path)) for path in view.partition_paths}
    return {path: pair for path, pair in both.items() if pair != ((), ())}


def _rows(statistics: TableStatistics) -> list[dict[str, object]]:
    return [asdict(row) for row in statistics.partitions]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
@given(steps=steps, watched=st.integers(0, 9), made=st.integers(0, 6), layout=st.sampled_from((PARTITIONS, ("",))))
def test_three_ways_of_listing_give_the_same_statistics(
    version: int, table_type: str, steps: Sequence[Step], watched: int, made: int, layout: tuple[str, ...]
) -> None:
    """By directory, by the metadata table, and since statistics of an earlier moment: rows and slices are the same."""
    folder = f"listing-{uuid.uuid4().hex}"
    history = History(
        base_path=f"memory://{folder}/trips",
        version=version,
        merge_on_read=table_type == "mor",
        partitions=layout,
    )
    try:
        previous: TableStatistics | None = None
        for number, _ in enumerate(itertools.chain([None], history.run(steps))):
            if number == made:
                history.make_metadata()
            if number == watched:
                previous = _gather(history.table(), listing="directory")
        if not history.is_made:
            history.make_metadata()
        table = history.table()

        assert _files(table, "directory") == _files(table, "metadata")
        assert _slices(table, "directory") == _slices(table, "metadata")
        by_directory = _gather(table, listing="directory", previous=previous)
        assert _rows(by_directory) == _rows(_gather(table, listing="metadata", previous=previous))
        since = _gather(table, listing="auto", previous=previous, mode="auto")
        event(f"{since.gathered}: {since.reason.translate(_WITHOUT_DIGITS)[:60]}")
        assert _rows(by_directory) == _rows(since)
    finally:
        fsspec.filesystem("memory").rm(f"/{folder}", recursive=True)
