"""The Avro schema of a requested clustering plan.

Record names, fields and defaults are Hudi's format: ``HoodieRequestedReplaceMetadata`` and what it holds, as the files
of releases 0.15.0, 1.0.2 and 1.2.0 carry them. A reader of another release resolves the two by Avro's rules.
"""

from __future__ import annotations

from typing import Any, TypeAlias

_Schema: TypeAlias = dict[str, Any]

_NAMESPACE = "org.apache.hudi.avro.model"
PLAN_RECORD = f"{_NAMESPACE}.HoodieClusteringPlan"
"""The full name of the record of a plan."""
_TEXT: _Schema = {"type": "string", "avro.java.string": "String"}
_TEXTS_BY_NAME: _Schema = {"type": "map", "values": _TEXT, "avro.java.string": "String"}


def requested_replace_schema(*, table_version: int) -> _Schema:
    """The writer's schema of a requested plan.

    From table version 8 on a plan also notes the partitions that incremental planning missed.
    """
    plan = [
        _optional("inputGroups", {"type": "array", "items": _group()}),
        _optional("strategy", _strategy()),
        _optional("extraMetadata", _TEXTS_BY_NAME),
        _version(),
        {"name": "preserveHoodieMetadata", "type": ["null", "boolean"], "default": None},
    ]
    if notes_missing_partitions(table_version):
        plan.append(_optional("missingSchedulePartitions", {"type": "array", "items": _TEXT}))
    return _record(
        "HoodieRequestedReplaceMetadata",
        [
            {"name": "operationType", "type": ["null", _TEXT], "default": None},
            _optional("clusteringPlan", _record("HoodieClusteringPlan", plan)),
            _optional("extraMetadata", _TEXTS_BY_NAME),
            _version(),
        ],
    )


def notes_missing_partitions(table_version: int) -> bool:
    """Whether plans of this table version have the field ``missingSchedulePartitions``."""
    return table_version >= 8  # noqa: PLR2004 a table version


def _group() -> _Schema:
    file_slice = _record(
        "HoodieSliceInfo",
        [
            _optional("dataFilePath", _TEXT),
            _optional("deltaFilePaths", {"type": "array", "items": _TEXT}),
            {"name": "fileId", "type": ["null", _TEXT]},
            _optional("partitionPath", _TEXT),
            _optional("bootstrapFilePath", _TEXT),
            _version(),
        ],
    )
    return _record(
        "HoodieClusteringGroup",
        [
            _optional("slices", {"type": "array", "items": file_slice}),
            _optional("metrics", {"type": "map", "values": "double", "avro.java.string": "String"}),
            {"name": "numOutputFileGroups", "type": ["int", "null"], "default": 1},
            _optional("extraMetadata", _TEXTS_BY_NAME),
            _version(),
        ],
    )


def _strategy() -> _Schema:
    return _record(
        "HoodieClusteringStrategy",
        [_optional("strategyClassName", _TEXT), _optional("strategyParams", _TEXTS_BY_NAME), _version()],
    )


def _record(name: str, fields: list[_Schema]) -> _Schema:
    return {"type": "record", "name": name, "namespace": _NAMESPACE, "fields": fields}


def _optional(name: str, kind: _Schema) -> _Schema:
    return {"name": name, "type": ["null", kind], "default": None}


def _version() -> _Schema:
    return {"name": "version", "type": ["int", "null"], "default": 1}
