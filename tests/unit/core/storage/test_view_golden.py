"""The view of a table equals what the JVM that wrote it says, on every golden table and by either way of listing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.model.commit import PlanKind
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.statistics import PartitionStatistics
from airflow_hudi_maint.core.storage.statistics import gather_statistics
from airflow_hudi_maint.core.storage.table import HudiTable, TableView
from tests.golden.golden import golden_names, truth, unpack
from tests.unit.core.storage.gathering import NOW

STATES_OF_EACH = 8
_LATER = {
    "plain": ("clustered", "pending"),
    "clustered": ("pending",),
    "young": ("archived",),
    "rolledback": ("cleaned",),
    "replaced": ("restored",),
}
"""States of one table, the earlier before the later ones."""


@dataclass(frozen=True, kw_only=True)
class Golden:
    """A golden table on disk, the JVM's word on it, and our view of it by one way of listing."""

    table: HudiTable
    said: Mapping[str, Any]
    view: TableView

    @property
    def partitions(self) -> dict[str, Any]:
        """The JVM's partitions by the same way of listing.

        Its metadata table says 1 byte of a log file that a rollback went over; here the file's own size is expected.
        """
        if self.view.way == "directory":
            return dict(self.said["partitions"])
        shown = {**self.said["partitions"], **self.said["metadata_view"]}
        return {path: self._true_sizes(slices, path=path) for path, slices in shown.items() if slices is not None}

    def _true_sizes(self, slices: Any, *, path: str) -> Any:
        files = self.said["files"]

        def sized(log: dict[str, Any]) -> dict[str, Any]:
            return log if log["bytes"] > 1 else {**log, "bytes": files[f"{path}/{log['name']}"][0]}

        return {
            kind: [{**one, "log_files": [sized(log) for log in one["log_files"]]} for one in of_kind]
            for kind, of_kind in slices.items()
        }


def _ways() -> list[tuple[str, str]]:
    has_metadata = {name: "files" in truth(name)["table"]["metadata_partitions"] for name in golden_names()}
    return [(name, way) for name, has in has_metadata.items() for way in ("directory", "metadata")[: 1 + has]]


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, HudiTable]:
    """Every golden table, written to disk once."""
    folder = Path(tmp_path_factory.mktemp("golden"))
    return {name: HudiTable.open(str(unpack(name, folder))) for name in golden_names()}


@pytest.fixture(scope="module", params=_ways(), ids="-".join)
def golden(request: pytest.FixtureRequest, unpacked: Mapping[str, HudiTable]) -> Golden:
    """A golden table, seen by one way of listing."""
    name, way = request.param
    table = unpacked[name]
    return Golden(table=table, said=truth(name), view=table.view(table.timeline(), listing=way))


def _shape(one: FileSlice) -> dict[str, Any]:
    base = one.base_file
    return {
        "file_id": one.file_id,
        "base_instant": one.base_instant,
        "base_file": None if base is None else {"name": base.name, "bytes": base.bytes},
        "log_files": sorted(
            ({"name": log.name, "bytes": log.bytes} for log in one.log_files), key=lambda log: log["name"]
        ),
    }


def _sorted(slices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ordered = [{**one, "log_files": sorted(one["log_files"], key=lambda log: log["name"])} for one in slices]
    return sorted(ordered, key=lambda one: one["file_id"])


def test_each_release_and_table_type_has_states_enough() -> None:
    """Three releases by two table types: each pair has at least eight states, most of them with a metadata table."""
    for version, kind in itertools.product((6, 8, 9), ("cow", "mor")):
        prefix = f"v{version}_{kind}_"
        states = [name for name in golden_names() if name.startswith(prefix)]
        by_metadata = [name for name, way in _ways() if way == "metadata" and name.startswith(prefix)]
        assert len(states) >= STATES_OF_EACH, prefix
        assert len(by_metadata) >= STATES_OF_EACH // 2, prefix


def test_the_settings_are_read(golden: Golden) -> None:
    """Name, type, version, partition fields and metadata partitions are those that the JVM read."""
    config, expected = golden.table.config, golden.said["table"]

    assert expected["name"] == config.name
    assert expected["type"] == config.table_type
    assert expected["version"] == config.table_version
    assert tuple(expected["partition_fields"]) == config.partitions.fields
    assert sorted(expected["metadata_partitions"]) == list(config.metadata_partitions)


def test_the_timeline_is_the_jvms(golden: Golden) -> None:
    """Every instant has the JVM's action, state and, from version 8, completion time."""
    has_completion = golden.table.config.has_completion_times

    expected = [
        (one["requested"], one["action"], one["state"], one["completed"] if has_completion else None)
        for one in golden.said["timeline"]
    ]
    actual = [
        (one.requested_time, str(one.action), one.state.name, one.completion_time) for one in golden.view.timeline
    ]
    assert sorted(expected, key=str) == sorted(actual, key=str)


def test_the_partitions_are_the_jvms(golden: Golden) -> None:
    """The same partitions are found, empty ones included."""
    assert sorted(golden.partitions) == list(golden.view.partition_paths)


@pytest.mark.parametrize("name", [name for name in golden_names() if name.endswith("_odd")])
def test_odd_partition_values_are_read_as_they_were_written(name: str, unpacked: Mapping[str, HudiTable]) -> None:
    """Spaces, signs and letters beyond ASCII come back from URL-encoded paths with and without field names."""
    table = unpacked[name]
    values = [table.config.partitions.values(path) for path in table.partition_paths()]

    expected = ["50%=half", "Gdańsk+é", "__HIVE_DEFAULT_PARTITION__", "us/east 1"]
    assert values == [(region, "2026-11-01") for region in expected]


@pytest.mark.parametrize("kind", ["latest", "merged"])
def test_the_slices_are_the_jvms(golden: Golden, kind: str) -> None:
    """Each latest and merged slice has the JVM's base instant, base file, log files and sizes."""
    view = golden.view

    actual = {path: [_shape(one) for one in getattr(view.slices(path), kind)] for path in view.partition_paths}
    assert {path: _sorted(slices[kind]) for path, slices in golden.partitions.items()} == {
        path: _sorted(slices) for path, slices in actual.items()
    }


def test_listing_some_partitions_shows_the_same_slices(golden: Golden) -> None:
    """A view of one partition equals that partition in a view of all."""
    for path in golden.partitions:
        one = golden.table.view(golden.view.timeline, partitions=[path], listing=golden.view.way)
        assert golden.view.slices(path) == one.slices(path)


def test_pending_plans_hold_what_the_jvm_says(golden: Golden) -> None:
    """Pending clustering and compaction plans are found with their file groups, and the slices say who holds them."""
    view, said = golden.view, golden.said

    for key, kind in (("pending_clustering", PlanKind.CLUSTERING), ("pending_compaction", PlanKind.COMPACTION)):
        actual = {
            (plan.instant.requested_time, one.partition_path, one.file_id)
            for plan in view.plans
            if plan.kind is kind
            for one in plan.inputs
        }
        assert _held(said[key]) == actual
    logs = {
        (plan.instant.requested_time, one.partition_path, one.file_id)
        for plan in view.plans
        if plan.kind is PlanKind.LOG_COMPACTION
        for one in plan.inputs
    }
    marked = {
        (one.pending_instant, path, one.file_id)
        for path in view.partition_paths
        for one in view.latest_slices(path)
        if one.pending_instant
    }
    assert _held(said["pending_clustering"]) | _held(said["pending_compaction"]) | logs == marked


def _pairs() -> list[tuple[str, str]]:
    names = set(golden_names())
    split = (name.rpartition("_") for name in sorted(names))
    pairs = [(f"{table}_{state}", f"{table}_{later}") for table, _, state in split for later in _LATER.get(state, ())]
    return [pair for pair in pairs if names.issuperset(pair)]


@pytest.mark.parametrize(("earlier", "later"), _pairs())
def test_incremental_statistics_equal_full_ones(earlier: str, later: str, unpacked: Mapping[str, HudiTable]) -> None:
    """Statistics of an earlier state carried forward are those of a full gather, by either way of listing."""
    table = unpacked[later]
    by_way = []
    for way in (way for name, way in _ways() if name == later):
        first = replace(gather_statistics(unpacked[earlier], now=NOW, listing=way), base_path=table.base_path)
        carried = gather_statistics(table, now=NOW, previous=first, listing=way)
        # What is archived cannot be dated by a full gather alone: it has the earlier statistics to go by, too.
        assert (
            carried.partitions == gather_statistics(table, now=NOW, mode="full", previous=first, listing=way).partitions
        )
        full = gather_statistics(table, now=NOW, listing=way)
        assert _undated(carried.partitions) == _undated(full.partitions)
        by_way.append(carried.partitions)
    if not any((truth(later).get("metadata_view") or {}).values()):
        assert by_way == by_way[:1] * len(by_way)


def _undated(rows: Iterable[PartitionStatistics]) -> list[PartitionStatistics]:
    return [replace(row, last_modified_instant="", last_instant=None) for row in rows]


def _held(plans: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {
        (plan["instant"], one["partition"], one["file_id"])
        for plan in plans
        for one in (*itertools.chain(*plan.get("input_groups", ())), *plan.get("operations", ()))
    }
