"""What cleans, rollbacks, restores, savepoints and indexings say; a record of another shape names its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.commit import (
    CleanMetadata,
    CleanPlan,
    IndexPlan,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    SavepointMetadata,
)
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.storage import service_records
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.golden import unpack
from tests.unit.core.storage.builders import TableBuilder, at

Reader = Callable[..., object]

CASES: Mapping[str, tuple[Reader, Mapping[str, Any], object]] = {
    "cleaner plan": (
        service_records.clean_plan,
        {
            "earliestInstantToRetain": {"timestamp": "2", "action": "commit", "state": "COMPLETED"},
            "policy": "KEEP_LATEST_COMMITS",
            "filesToBeDeletedPerPartition": {"a": ["old.parquet"]},
            "filePathsToBeDeletedPerPartition": {"a": [{"filePath": "file:/lake/t/a/x.parquet"}]},
            "partitionsToBeDeleted": ["b"],
        },
        CleanPlan(
            policy="KEEP_LATEST_COMMITS",
            earliest_retained="2",
            files={"a": ("old.parquet", "x.parquet")},
            emptied_partitions=("b",),
        ),
    ),
    "clean metadata": (
        service_records.clean_metadata,
        {
            "earliestCommitToRetain": "",
            "partitionMetadata": {
                "a": {"successDeleteFiles": ["x.parquet"], "failedDeleteFiles": [], "isPartitionDeleted": None},
                "b": {"successDeleteFiles": [], "failedDeleteFiles": ["y.parquet"], "isPartitionDeleted": True},
            },
        },
        CleanMetadata(
            earliest_retained=None,
            deleted={"a": ("x.parquet",)},
            failed={"b": ("y.parquet",)},
            emptied_partitions=("b",),
        ),
    ),
    "rollback plan": (
        service_records.rollback_plan,
        {
            "instantToRollback": {"commitTime": "2", "action": "commit"},
            "RollbackRequests": [{"partitionPath": "a"}, {"partitionPath": "a"}],
        },
        RollbackPlan(target="2", target_action="commit", partitions=frozenset({"a"})),
    ),
    "rollback metadata": (
        service_records.rollback_metadata,
        {"commitsRollback": ["2"], "partitionMetadata": {"a": {}, "b": {}}},
        RollbackMetadata(undone=("2",), partitions=frozenset({"a", "b"})),
    ),
    "restore plan": (
        service_records.restore_plan,
        {"instantsToRollback": [{"commitTime": "3", "action": "commit"}], "savepointToRestoreTimestamp": "2"},
        RestorePlan(undone=("3",), savepoint="2"),
    ),
    "restore metadata": (
        service_records.restore_metadata,
        {
            "instantsToRollback": ["3", "2"],
            "hoodieRestoreMetadata": {"3": [{"partitionMetadata": {"a": {}}}, None], "2": []},
        },
        RestoreMetadata(undone=("3", "2"), partitions=frozenset({"a"})),
    ),
    "savepoint metadata": (
        service_records.savepoint_metadata,
        {
            "savepointedBy": "ops",
            "savepointedAt": 5,
            "comments": "before the upgrade",
            "partitionMetadata": {"a": {"savepointDataFile": ["x.parquet"]}},
        },
        SavepointMetadata(saved_by="ops", saved_at_ms=5, comments="before the upgrade", files={"a": ("x.parquet",)}),
    ),
    "index plan": (
        service_records.index_plan,
        {"indexPartitionInfos": [{"metadataPartitionPath": "column_stats", "indexUptoInstant": "2"}]},
        IndexPlan(up_to={"column_stats": "2"}),
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_record_says_what_maintenance_asks(kind: str) -> None:
    """Of paths the file's name is kept; what a writer left out is empty."""
    read, record, expected = CASES[kind]
    assert expected == read(record, name="x")


@pytest.mark.parametrize("kind", CASES)
def test_a_record_of_another_shape_is_corrupt(kind: str) -> None:
    """A value of another type anywhere, or a field that is missing, names the file and what it should hold."""
    read, record, _ = CASES[kind]
    for broken in (dict.fromkeys(record, 3), {key: [{"a": 3}] for key in record}, {key: {"a": 3} for key in record}):
        with pytest.raises(CorruptTableError, match=f"^lake/t/x is no {kind}: "):
            read(broken, name="lake/t/x")


def test_a_savepoint_names_its_partitions() -> None:
    """The partitions of a savepoint are those that it holds files of."""
    saved = SavepointMetadata(saved_by="", saved_at_ms=0, comments="", files={"a": (), "b": ()})
    assert frozenset({"a", "b"}) == saved.partitions


@pytest.mark.parametrize("name", ["v6_cow_archived", "v8_cow_archived", "v9_mor_archived"])
def test_real_cleans_did_what_they_planned(name: str, tmp_path: Path) -> None:
    """The active cleans of a real table: the plan's files are those deleted, and the same commits stay."""
    table = HudiTable.open(str(unpack(name, tmp_path)))
    cleans = [one for one in table.timeline().completed if one.action is Action.CLEAN]
    assert cleans
    for instant in cleans:
        planned, done = table.instants.clean_plan(instant), table.instants.clean_metadata(instant)
        assert planned is not None
        assert (planned.earliest_retained, sum(map(len, planned.files.values()))) == (
            done.earliest_retained,
            done.deleted_file_count,
        )


@pytest.mark.parametrize("name", ["v6_mor_pending", "v8_cow_pending", "v9_cow_pending"])
def test_real_rollbacks_undid_what_they_planned(name: str, tmp_path: Path) -> None:
    """The plan of a rollback and its metadata name the same instant and partitions."""
    table = HudiTable.open(str(unpack(name, tmp_path)))
    (rollback,) = (one for one in table.timeline().completed if one.action is Action.ROLLBACK)
    planned, done = table.instants.rollback_plan(rollback), table.instants.rollback_metadata(rollback)
    assert planned is not None
    assert ((planned.target,), planned.partitions) == (done.undone, done.partitions)


def test_a_plan_that_is_gone_is_none(base_path: str) -> None:
    """A completed instant whose request was removed has no plan to show, and so has an empty request."""
    builder = TableBuilder(base_path=base_path)
    builder.rollback(at(2), of=at(1))
    builder.pending(at(3), "rollback")
    table = builder.open()
    assert [None, None] == [table.instants.rollback_plan(one) for one in table.timeline()]
