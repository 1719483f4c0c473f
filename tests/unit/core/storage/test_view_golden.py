"""The view of a table equals what the JVM that wrote it says, on every golden table."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.model.commit import PlanKind
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.golden import golden_names, truth, unpack


@pytest.fixture(scope="module", params=golden_names())
def golden(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[HudiTable, dict[str, Any]]:
    """A golden table on disk, and the JVM's word on it."""
    path = unpack(request.param, Path(tmp_path_factory.mktemp("golden")))
    return HudiTable.open(str(path)), truth(request.param)


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


def test_the_settings_are_read(golden: tuple[HudiTable, dict[str, Any]]) -> None:
    """Name, type, version, partition fields and metadata partitions are those that the JVM read."""
    table, said = golden
    expected = said["table"]

    assert expected["name"] == table.config.name
    assert expected["type"] == table.config.table_type
    assert expected["version"] == table.config.table_version
    assert tuple(expected["partition_fields"]) == table.config.partitions.fields
    assert sorted(expected["metadata_partitions"]) == list(table.config.metadata_partitions)


def test_the_timeline_is_the_jvms(golden: tuple[HudiTable, dict[str, Any]]) -> None:
    """Every instant has the JVM's action, state and, from version 8, completion time."""
    table, said = golden
    has_completion = table.config.has_completion_times

    expected = [
        (one["requested"], one["action"], one["state"], one["completed"] if has_completion else None)
        for one in said["timeline"]
    ]
    actual = [(one.requested_time, str(one.action), one.state.name, one.completion_time) for one in table.timeline()]
    assert sorted(expected, key=str) == sorted(actual, key=str)


def test_the_partitions_are_the_jvms(golden: tuple[HudiTable, dict[str, Any]]) -> None:
    """The same partitions are found, empty ones included."""
    table, said = golden

    assert sorted(said["partitions"]) == list(table.partition_paths())


@pytest.mark.parametrize("kind", ["latest", "merged"])
def test_the_slices_are_the_jvms(golden: tuple[HudiTable, dict[str, Any]], kind: str) -> None:
    """Each latest and merged slice has the JVM's base instant, base file, log files and sizes."""
    table, said = golden
    view = table.view(table.timeline())

    actual = {path: [_shape(one) for one in getattr(view.slices(path), kind)] for path in view.partition_paths}
    assert {path: _sorted(slices[kind]) for path, slices in said["partitions"].items()} == {
        path: _sorted(slices) for path, slices in actual.items()
    }


def test_listing_some_partitions_shows_the_same_slices(golden: tuple[HudiTable, dict[str, Any]]) -> None:
    """A view of one partition equals that partition in a view of all."""
    table, said = golden
    timeline = table.timeline()
    everything = table.view(timeline)

    for path in said["partitions"]:
        assert everything.slices(path) == table.view(timeline, partitions=[path]).slices(path)


def test_pending_plans_hold_what_the_jvm_says(golden: tuple[HudiTable, dict[str, Any]]) -> None:
    """Pending clustering and compaction plans are found with their file groups, and the slices say who holds them."""
    table, said = golden
    timeline = table.timeline()
    plans = table.pending_plans(timeline)

    for key, kind in (("pending_clustering", PlanKind.CLUSTERING), ("pending_compaction", PlanKind.COMPACTION)):
        actual = {
            (plan.instant.requested_time, one.partition_path, one.file_id)
            for plan in plans
            if plan.kind is kind
            for one in plan.inputs
        }
        assert _held(said[key]) == actual
    view = table.view(timeline)
    marked = {
        (one.pending_instant, path, one.file_id)
        for path in view.partition_paths
        for one in view.latest_slices(path)
        if one.pending_instant
    }
    assert _held(said["pending_clustering"]) | _held(said["pending_compaction"]) == marked


def _held(plans: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {
        (plan["instant"], one["partition"], one["file_id"])
        for plan in plans
        for one in (*itertools.chain(*plan.get("input_groups", ())), *plan.get("operations", ()))
    }
