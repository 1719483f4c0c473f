"""Decode and merge the records of the metadata table's ``files`` partition.

Source: Hudi's ``HoodieMetadata.avsc`` and ``HoodieMetadataPayload``. A record's key is a partition path and its value
maps file names to sizes, or says that a file was deleted; the record ``__all_partitions__`` maps partition paths.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn, TypeAlias

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.storage.hfile import Cell, HFile

ALL_PARTITIONS = "__all_partitions__"
NOT_PARTITIONED = "."
"""What stands for the partition path of a table without partitions, which is empty."""

_FILES = "filesystemMetadata"
_FILE_INFO = {
    "type": "record",
    "name": "info",
    "fields": [{"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}],
}
_PLAIN_TYPES = frozenset({"null", "string", "int", "long", "boolean", "float", "double", "bytes"})
_SCHEMAS_KEPT = 16

_AvroSchema: TypeAlias = Any
"""A schema as fastavro parsed it: it has no type of its own."""


class FileRecord(NamedTuple):
    """One record: the files of a partition by name, with their bytes; None for one that was deleted."""

    partition_path: str
    files: Mapping[str, int | None]


@dataclass(slots=True, kw_only=True)
class FilesPartition:
    """The records merged so far, which have to come in order."""

    name: str
    partitions: set[str] = field(default_factory=set)
    files: dict[str, dict[str, int]] = field(default_factory=dict)

    def merge(self, records: Iterable[FileRecord]) -> None:
        """Put newer records on top.

        As in ``HoodieMetadataPayload``: a deletion takes the name out, and of two sizes the greater one counts, since
        files only grow.
        """
        for record in records:
            if record.partition_path == ALL_PARTITIONS:
                self._merge_partitions(record.files)
                continue
            known = self.files.setdefault(record.partition_path, {})
            for name, size in record.files.items():
                if size is None:
                    known.pop(name, None)
                else:
                    known[name] = max(size, known.get(name, 0))

    def by_partition(self) -> Mapping[str, Mapping[str, int]]:
        """The files of every partition, those without files too; ``""`` for a table without partitions.

        Raises CorruptTableError where a partition has files and is not in the list of partitions.
        """
        unlisted = sorted(path for path, files in self.files.items() if files and path not in self.partitions)
        if unlisted:
            msg = f"{self.name} does not add up: partition {unlisted[0]!r} has files and is not in the partition list"
            raise CorruptTableError(msg)
        return {_path(path): self.files.get(path, {}) for path in self.partitions}

    def _merge_partitions(self, listed: Mapping[str, int | None]) -> None:
        for path, size in listed.items():
            if size is None:
                self.partitions.discard(path)
            else:
                self.partitions.add(path)


def read_file_records(file: HFile, *, schema: bytes | None = None) -> Iterable[FileRecord]:
    """Yield the records of an HFile; ``schema`` is the writer's, None where the file itself holds it.

    Raises CorruptTableError.
    """
    text = file.info().get("schema", b"") if schema is None else schema
    parsed = _schema_of(text, name=file.name)
    return (_decoded(cell, schema=parsed, name=file.name) for cell in file.cells())


def _decoded(cell: Cell, *, schema: _AvroSchema, name: str) -> FileRecord:
    import fastavro

    try:
        path = cell.key.decode()
        record: Any = fastavro.schemaless_reader(io.BytesIO(cell.value), schema, None)
    except Exception as error:
        # fastavro raises many kinds for broken input: struct.error, EOFError, IndexError, its own.
        msg = f"{name} cannot be read: record {cell.key[:80]!r}: {type(error).__name__}: {error}"
        raise CorruptTableError(msg) from error
    infos = record[_FILES] or {}
    files = {file: None if info["isDeleted"] else info["size"] for file, info in infos.items()}
    if any(size is not None and size < 0 for size in files.values()):
        _fail(name, f"record {path!r} has a negative size")
    return FileRecord(path, files)


@lru_cache(maxsize=_SCHEMAS_KEPT)
def _schema_of(text: bytes, *, name: str) -> _AvroSchema:
    """The schema to read a record with: as written, up to the files and no further.

    What comes after them (Bloom filters, column statistics) is never there in this partition. The files' own schema is
    ours, and what comes before has to be plain, so that a broken schema cannot make reading long.
    """
    import fastavro

    try:
        written = json.loads(text)["fields"]
        position = next(index for index, one in enumerate(written) if one["name"] == _FILES)
        before = [{"name": f"f{index}", "type": _plain(one["type"])} for index, one in enumerate(written[:position])]
        holds_files = _is_file_map(written[position]["type"])
    except (ValueError, KeyError, TypeError, StopIteration, RecursionError) as error:
        _fail(name, f"its schema is not that of Hudi's metadata records ({type(error).__name__}: {error})")
    if not holds_files:
        _fail(name, f"its schema has another type for {_FILES}")
    files = {"name": _FILES, "type": ["null", {"type": "map", "values": _FILE_INFO}]}
    return fastavro.parse_schema({"type": "record", "name": "record", "fields": [*before, files]})


def _plain(kind: Any) -> str | list[str]:  # noqa: ANN401 any JSON
    if isinstance(kind, list):
        return [_plain_name(one) for one in kind]
    return _plain_name(kind)


def _plain_name(kind: Any) -> str:  # noqa: ANN401 any JSON
    name = kind["type"] if isinstance(kind, dict) else kind
    if name not in _PLAIN_TYPES:
        msg = f"type {kind!r}"
        raise ValueError(msg)
    return str(name)


def _is_file_map(kind: Any) -> bool:  # noqa: ANN401 any JSON
    null, files = kind
    fields = [(one["name"], one["type"]) for one in files["values"]["fields"]]
    return (null, files["type"], fields) == ("null", "map", [("size", "long"), ("isDeleted", "boolean")])


def _path(path: str) -> str:
    return "" if path == NOT_PARTITIONED else path


def _fail(name: str, what: str) -> NoReturn:
    msg = f"{name} cannot be read: {what}"
    raise CorruptTableError(msg)
