"""Read the decoded records of table services: clean, rollback, restore, savepoint and indexing.

Source: Hudi's ``HoodieCleanerPlan``, ``HoodieCleanMetadata``, ``HoodieRollbackPlan``, ``HoodieRollbackMetadata``,
``HoodieRestorePlan``, ``HoodieRestoreMetadata``, ``HoodieSavepointMetadata`` and ``HoodieIndexPlan``. Of each, only
what maintenance looks at. ``name`` is always the file's, for errors: a record of another shape is a CorruptTableError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

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


def clean_plan(record: Mapping[str, Any], *, name: str) -> CleanPlan:
    """Read a requested clean. Writers before table version 6 name files without paths; both forms are read."""
    with _shape("cleaner plan", name=name):
        earliest = record["earliestInstantToRetain"]
        files = {key: _file_names(value) for key, value in (record["filesToBeDeletedPerPartition"] or {}).items()}
        infos = record.get("filePathsToBeDeletedPerPartition") or {}
        for partition, entries in infos.items():
            files[partition] = files.get(partition, ()) + _file_names(entry["filePath"] for entry in entries)
        return CleanPlan(
            policy=str(record["policy"]),
            earliest_retained=None if earliest is None else str(earliest["timestamp"]) or None,
            files=files,
            emptied_partitions=_texts(record.get("partitionsToBeDeleted") or []),
        )


def clean_metadata(record: Mapping[str, Any], *, name: str) -> CleanMetadata:
    """Read a completed clean."""
    with _shape("clean metadata", name=name):
        partitions = record["partitionMetadata"]
        deleted = {key: _file_names(one["successDeleteFiles"]) for key, one in partitions.items()}
        failed = {key: _file_names(one["failedDeleteFiles"]) for key, one in partitions.items()}
        return CleanMetadata(
            earliest_retained=str(record["earliestCommitToRetain"] or "") or None,
            deleted={key: names for key, names in deleted.items() if names},
            failed={key: names for key, names in failed.items() if names},
            emptied_partitions=tuple(key for key, one in partitions.items() if one.get("isPartitionDeleted")),
        )


def rollback_plan(record: Mapping[str, Any], *, name: str) -> RollbackPlan:
    """Read a requested rollback."""
    with _shape("rollback plan", name=name):
        target = record["instantToRollback"]
        requests = record.get("RollbackRequests") or ()
        return RollbackPlan(
            target=str(target["commitTime"]),
            target_action=str(target["action"]),
            partitions=frozenset(str(one["partitionPath"]) for one in requests),
        )


def rollback_metadata(record: Mapping[str, Any], *, name: str) -> RollbackMetadata:
    """Read a completed rollback."""
    with _shape("rollback metadata", name=name):
        return RollbackMetadata(
            undone=_texts(record["commitsRollback"]), partitions=frozenset(record["partitionMetadata"].keys())
        )


def restore_plan(record: Mapping[str, Any], *, name: str) -> RestorePlan:
    """Read a requested restore."""
    with _shape("restore plan", name=name):
        return RestorePlan(
            undone=tuple(str(one["commitTime"]) for one in record["instantsToRollback"]),
            savepoint=str(record.get("savepointToRestoreTimestamp") or "") or None,
        )


def restore_metadata(record: Mapping[str, Any], *, name: str) -> RestoreMetadata:
    """Read a completed restore."""
    with _shape("restore metadata", name=name):
        rollbacks = [one for many in record["hoodieRestoreMetadata"].values() for one in many if one is not None]
        return RestoreMetadata(
            undone=_texts(record["instantsToRollback"]),
            partitions=frozenset(key for one in rollbacks for key in one["partitionMetadata"].keys()),  # noqa: SIM118 a list has none
        )


def savepoint_metadata(record: Mapping[str, Any], *, name: str) -> SavepointMetadata:
    """Read a completed savepoint."""
    with _shape("savepoint metadata", name=name):
        partitions = record["partitionMetadata"]
        return SavepointMetadata(
            saved_by=str(record["savepointedBy"]),
            saved_at_ms=int(record["savepointedAt"]),
            comments=str(record["comments"]),
            files={key: _file_names(one["savepointDataFile"]) for key, one in partitions.items()},
        )


def index_plan(record: Mapping[str, Any], *, name: str) -> IndexPlan:
    """Read a requested or completed indexing: both list the metadata partitions."""
    with _shape("index plan", name=name):
        infos = record.get("indexPartitionInfos") or ()
        return IndexPlan(up_to={str(one["metadataPartitionPath"]): str(one["indexUptoInstant"]) for one in infos})


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise TypeError(f"{values!r:.80} where a list of texts belongs")
    return tuple(values)


def _file_names(paths: Iterable[str]) -> tuple[str, ...]:
    # Plans hold absolute paths, which mean nothing once the table moved; metadata holds names or paths.
    return tuple(path.rpartition("/")[2] for path in paths)


@contextmanager
def _shape(kind: str, *, name: str) -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        msg = f"{name} is no {kind}: {error!r}"
        raise CorruptTableError(msg) from error
