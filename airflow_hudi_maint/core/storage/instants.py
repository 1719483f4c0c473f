"""Decode the content of instant files: empty, JSON or Avro, by table version and action.

Source: Hudi's ``HoodieCommitMetadata``, ``HoodieRequestedReplaceMetadata``, ``HoodieCompactionPlan`` and the Avro
schemas that each file carries in its header.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.commit import (
    CommitMetadata,
    PendingPlan,
    PlanKind,
    PlannedSlice,
    RollbackMetadata,
    WriteStat,
)
from airflow_hudi_maint.core.model.instant import Instant

_AVRO_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_WRITE_STAT = "HoodieWriteStat"
_WRITE_STAT_FIELDS = ("fileId", "path", "fileSizeInBytes", "numWrites")
_CONTAINER_HEAD = json.dumps(
    {
        "type": "record",
        "name": "head",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": len(_AVRO_MAGIC)}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": _SYNC_BYTES}},
            {"name": "count", "type": "long"},
            {"name": "size", "type": "long"},
        ],
    }
).encode()
"""The header of an Avro container and of its first block, read as one record."""


def decode(data: bytes, *, name: str) -> Mapping[str, Any]:
    """Return the record that an instant file holds; an empty file holds an empty one.

    Raises CorruptTableError that names the file (``name``).
    """
    if not data:
        return {}
    try:
        return _decode_avro(data) if data.startswith(_AVRO_MAGIC) else _decode_json(data)
    except Exception as error:
        # fastavro raises many kinds for broken input: struct.error, EOFError, IndexError, its own.
        msg = f"{name} cannot be decoded: {type(error).__name__}: {error}"
        raise CorruptTableError(msg) from error


def _decode_avro(data: bytes) -> Mapping[str, Any]:
    """Read the one record of an Avro container.

    Hudi writes the same schema into each file of a timeline, so parsed schemas are kept: parsing one costs as much as
    reading a large record. Compressed containers, which Hudi does not write, go to fastavro's own reader.
    """
    import fastavro

    stream = io.BytesIO(data)
    head: Any = fastavro.schemaless_reader(stream, _parsed_schema(_CONTAINER_HEAD), None)
    meta = head["meta"]
    if meta.get("avro.codec", b"null") != b"null":
        return cast("Mapping[str, Any]", next(iter(fastavro.reader(io.BytesIO(data)))))
    end = stream.tell() + head["size"]
    if data[end : end + _SYNC_BYTES] != head["sync"]:
        msg = "the container is cut short"
        raise EOFError(msg)
    text = meta["avro.schema"]
    return cast("Mapping[str, Any]", fastavro.schemaless_reader(stream, _parsed_schema(text), _needed_schema(text)))


@lru_cache(maxsize=64)
def _parsed_schema(text: bytes) -> Any:  # noqa: ANN401 fastavro's schemas have no type
    import fastavro

    return fastavro.parse_schema(json.loads(text))


@lru_cache(maxsize=64)
def _needed_schema(text: bytes) -> Any:  # noqa: ANN401 fastavro's schemas have no type
    """The schema to read with: as written, but for the fields of a write stat that nobody here looks at.

    None (as written) where a schema refers elsewhere to something that those fields define.
    """
    import fastavro

    try:
        return fastavro.parse_schema(_without_unneeded(json.loads(text)))
    except fastavro.schema.UnknownType:
        return None


def _without_unneeded(schema: Any) -> Any:  # noqa: ANN401 any JSON
    if isinstance(schema, list):
        return [_without_unneeded(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    fields = schema.get("fields")
    if fields is not None and schema.get("name", "").rpartition(".")[2] == _WRITE_STAT:
        fields = [one for one in fields if one["name"] in _WRITE_STAT_FIELDS]
    below = {key: _without_unneeded(schema[key]) for key in ("type", "items", "values") if key in schema}
    return {**schema, **below} if fields is None else {**schema, **below, "fields": _without_unneeded(fields)}


def _decode_json(data: bytes) -> Mapping[str, Any]:
    value = json.loads(data)
    if not isinstance(value, dict):
        msg = f"expected a JSON object, found {type(value).__name__}"
        raise TypeError(msg)
    return value


def commit_metadata(record: Mapping[str, Any], *, name: str) -> CommitMetadata:
    """Read a decoded commit, delta commit or replace commit; ``name`` is the file's, for errors."""
    try:
        written = record.get("partitionToWriteStats") or {}
        replaced = record.get("partitionToReplaceFileIds") or {}
        return CommitMetadata(
            operation=record.get("operationType"),
            written={partition: tuple(map(_write_stat, stats)) for partition, stats in written.items()},
            replaced={partition: tuple(ids) for partition, ids in replaced.items()},
            schema=(record.get("extraMetadata") or {}).get("schema") or None,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        msg = f"{name} is no commit metadata: {error!r}"
        raise CorruptTableError(msg) from error


def _write_stat(stat: Mapping[str, Any]) -> WriteStat:
    return WriteStat(
        file_id=stat["fileId"] or "",
        path=stat["path"] or "",
        bytes=stat.get("fileSizeInBytes") or 0,
        records=stat.get("numWrites") or 0,
    )


def clustering_plan(record: Mapping[str, Any], *, instant: Instant, name: str) -> PendingPlan | None:
    """Read a requested replace or clustering; None when it is no clustering (a dropped partition, an overwrite)."""
    plan = record.get("clusteringPlan")
    if plan is None:
        return None
    try:
        groups = plan["inputGroups"] or ()
        return PendingPlan(
            instant=instant,
            kind=PlanKind.CLUSTERING,
            groups=tuple(tuple(map(_planned_slice, group["slices"] or ())) for group in groups),
            output_file_count=sum(group.get("numOutputFileGroups") or 0 for group in groups),
        )
    except (KeyError, TypeError) as error:
        msg = f"{name} is no clustering plan: {error!r}"
        raise CorruptTableError(msg) from error


def compaction_plan(record: Mapping[str, Any], *, instant: Instant, kind: PlanKind, name: str) -> PendingPlan:
    """Read a requested compaction or log compaction."""
    try:
        inputs = tuple(map(_planned_slice, record.get("operations") or ()))
    except (KeyError, TypeError) as error:
        msg = f"{name} is no compaction plan: {error!r}"
        raise CorruptTableError(msg) from error
    return PendingPlan(instant=instant, kind=kind, groups=(inputs,), output_file_count=len(inputs))


def _planned_slice(value: Mapping[str, Any]) -> PlannedSlice:
    # Clustering plans hold absolute paths, which mean nothing once the table moved; the name is what identifies a file.
    base_file_name = (value["dataFilePath"] or "").rpartition("/")[2]
    return PlannedSlice(
        partition_path=value["partitionPath"] or "",
        file_id=value["fileId"],
        base_file_name=base_file_name,
        log_file_names=frozenset(path.rpartition("/")[2] for path in value["deltaFilePaths"] or ()),
    )


def rollback_metadata(record: Mapping[str, Any], *, name: str) -> RollbackMetadata:
    """Read a decoded, completed rollback; ``name`` is the file's, for errors."""
    try:
        return RollbackMetadata(
            undone=tuple(map(str, record["commitsRollback"])), partitions=frozenset(record["partitionMetadata"])
        )
    except (KeyError, TypeError) as error:
        msg = f"{name} is no rollback metadata: {error!r}"
        raise CorruptTableError(msg) from error
