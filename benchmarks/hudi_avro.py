"""The Avro schema of Hudi's commit metadata, with the fields and names that Hudi 1.2 writes."""

from __future__ import annotations

from typing import Any

_NAMESPACE = "org.apache.hudi.avro.model"
_TEXT = {"type": "string", "avro.java.string": "String"}


def _optional(name: str, kind: object) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


_RUNTIME_STATS = {
    "type": "record",
    "name": f"{_NAMESPACE}.HoodieRuntimeStats",
    "fields": [_optional(name, "long") for name in ("totalScanTime", "totalCreateTime", "totalUpsertTime")],
}

_WRITE_STAT = {
    "type": "record",
    "name": f"{_NAMESPACE}.HoodieWriteStat",
    "fields": [
        *(_optional(name, _TEXT) for name in ("fileId", "path", "prevCommit")),
        *(
            _optional(name, "long")
            for name in ("numWrites", "numDeletes", "numUpdateWrites", "totalWriteBytes", "totalWriteErrors")
        ),
        _optional("partitionPath", _TEXT),
        *(
            _optional(name, "long")
            for name in (
                "totalLogRecords",
                "totalLogFiles",
                "totalUpdatedRecordsCompacted",
                "numInserts",
                "totalLogBlocks",
                "totalCorruptLogBlock",
                "totalRollbackBlocks",
                "fileSizeInBytes",
            )
        ),
        _optional("logVersion", "int"),
        _optional("logOffset", "long"),
        _optional("baseFile", _TEXT),
        _optional("logFiles", {"type": "array", "items": _TEXT}),
        _optional("cdcStats", {"type": "map", "values": "long", "avro.java.string": "String"}),
        _optional("prevBaseFile", _TEXT),
        _optional("minEventTime", "long"),
        _optional("maxEventTime", "long"),
        _optional("runtimeStats", _RUNTIME_STATS),
        *(
            _optional(name, "long")
            for name in ("totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted")
        ),
        _optional("tempPath", _TEXT),
        _optional("numUpdates", "long"),
    ],
}

COMMIT_METADATA: dict[str, Any] = {
    "type": "record",
    "name": f"{_NAMESPACE}.HoodieCommitMetadata",
    "fields": [
        _optional(
            "partitionToWriteStats",
            {"type": "map", "values": {"type": "array", "items": _WRITE_STAT}, "avro.java.string": "String"},
        ),
        _optional("compacted", "boolean"),
        _optional("extraMetadata", {"type": "map", "values": _TEXT, "avro.java.string": "String"}),
        {"name": "version", "type": ["int", "null"], "default": 1},
        _optional("operationType", _TEXT),
    ],
}
