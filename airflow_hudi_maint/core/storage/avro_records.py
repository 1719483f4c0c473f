"""Decode Avro records: from containers, which carry their schema, and bare ones, whose schema stands elsewhere.

Hudi writes the same few schemas into each file of a timeline, so parsed schemas are kept: parsing one costs as much as
reading a large record. A schema comes from the file itself and is not believed: one that a reader could follow without
end (a type that holds itself, an array of nothing) is refused, so that what is read is bounded by the bytes there are.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, cast

from airflow_hudi_maint.core.storage.avro_passing import STATS_FIELD, OtherShapeError, WriteStatsPasser

AVRO_MAGIC = b"Obj\x01"
"""How a container starts."""

_SYNC_BYTES = 16
_MOST_PARTS = 100_000
_WRITE_STAT = "HoodieWriteStat"
_WRITE_STAT_FIELDS = ("fileId", "path", "fileSizeInBytes", "numWrites")
_CONTAINER_HEAD = json.dumps(
    {
        "type": "record",
        "name": "head",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": len(AVRO_MAGIC)}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": _SYNC_BYTES}},
            {"name": "count", "type": "long"},
            {"name": "size", "type": "long"},
        ],
    }
).encode()
"""The header of an Avro container and of its first block, read as one record."""


def container_record(data: bytes, *, files: bool = True) -> Mapping[str, Any]:
    """Read the one record of an Avro container. Raises any error of fastavro's, ValueError and EOFError.

    Without ``files``, a commit says which partitions it wrote to, but their write stats may be left out.
    """
    import fastavro

    stream = io.BytesIO(data)
    head: Any = fastavro.schemaless_reader(stream, _parsed_schema(_CONTAINER_HEAD), None)
    meta = head["meta"]
    codec = meta.get("avro.codec", b"null")
    if codec != b"null":
        raise ValueError(f"the container is compressed with {codec[:20]!r}, which Hudi never does")
    start = stream.tell()
    end = start + head["size"]
    if end < start or data[end : end + _SYNC_BYTES] != head["sync"]:
        raise EOFError("the container is cut short")
    text = meta["avro.schema"]
    short = None if files else _without_stats(data[:end], start=start, schema=text)
    if short is not None:
        return short
    return _checked(fastavro.schemaless_reader(stream, _parsed_schema(text), _needed_schema(text)))


def _without_stats(data: bytes, *, start: int, schema: bytes) -> Mapping[str, Any] | None:
    """The commit that begins at ``start``, with empty write stats; None where it has to be read in the usual way."""
    _parsed_schema(schema)
    passer = _passer(schema)
    if passer is None:
        return None
    try:
        rest, partitions = passer.without_stats(data, start=start)
    except OtherShapeError:
        return None
    return {**bare_record(rest, schema=schema), STATS_FIELD: dict.fromkeys(partitions, ())}


def bare_record(data: bytes, *, schema: bytes, fields: Collection[str] | None = None) -> Mapping[str, Any]:
    """Read a record in Avro's binary form; ``schema`` is its writer's, as JSON. Raises as :func:`container_record`.

    With ``fields``, only those are kept: a field that the writer did not know is None.
    """
    import fastavro

    needed = _needed_schema(schema) if fields is None else _projected_schema(schema, tuple(fields))
    return _checked(fastavro.schemaless_reader(io.BytesIO(data), _parsed_schema(schema), needed))


def _checked(record: object) -> Mapping[str, Any]:
    if not isinstance(record, dict):
        raise TypeError(f"expected a record, found {type(record).__name__}")
    return record


@lru_cache(maxsize=64)
def _parsed_schema(text: bytes) -> Any:  # noqa: ANN401 fastavro's schemas have no type
    import fastavro

    schema = json.loads(text)
    _Bounds().measure(schema)
    return fastavro.parse_schema(schema)


@lru_cache(maxsize=64)
def _passer(text: bytes) -> WriteStatsPasser | None:
    return WriteStatsPasser.of(json.loads(text))


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


@lru_cache(maxsize=64)
def _projected_schema(text: bytes, fields: tuple[str, ...]) -> Any:  # noqa: ANN401 fastavro's schemas have no type
    """A record schema with these fields of text alone; a missing one is read as null."""
    import fastavro

    written = json.loads(text)
    kept = [{"name": one, "type": ["null", "string"], "default": None} for one in fields]
    name = {key: written[key] for key in ("type", "name", "namespace") if key in written}
    return fastavro.parse_schema(cast("dict[str, Any]", {**name, "fields": kept}))


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


class _Bounds:
    """Walks a schema and raises ValueError for one whose reading its data does not bound.

    That is a type that holds itself, an array whose items may take no bytes, and a record of so many parts that one
    alone takes long (each may name the one before twice).
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[bool, int]] = {}
        self._open: set[str] = set()

    def measure(self, kind: Any) -> tuple[bool, int]:  # noqa: ANN401 any JSON
        """Whether a value of this type may take no bytes, and of how many parts it is made."""
        if isinstance(kind, list):
            parts = sum(self.measure(one)[1] for one in kind)
            return False, self._limited(parts + 1)  # which branch it is takes a byte
        if isinstance(kind, str):
            return self._named(kind.rpartition(".")[2])
        inner = kind["type"]
        if inner in ("record", "error"):
            return self._record(kind)
        if inner == "fixed":
            self._known[_bare_name(kind)] = kind["size"] <= 0, 1
        elif inner == "array" and self.measure(kind["items"])[0]:
            raise ValueError("the schema has an array of nothing")
        elif inner == "map":
            self.measure(kind["values"])
        return self.measure(inner) if isinstance(inner, list | dict) else (inner == "null", 1)

    def _named(self, name: str) -> tuple[bool, int]:
        if name in self._open:
            raise ValueError(f"the type {name!r} of the schema holds itself")
        return self._known.get(name, (name == "null", 1))

    def _record(self, kind: Mapping[str, Any]) -> tuple[bool, int]:
        name = _bare_name(kind)
        self._open.add(name)
        measured = [self.measure(one["type"]) for one in kind["fields"]]
        self._open.discard(name)
        parts = self._limited(1 + sum(parts for _, parts in measured))
        self._known[name] = all(empty for empty, _ in measured), parts
        return self._known[name]

    def _limited(self, parts: int) -> int:
        if parts > _MOST_PARTS:
            raise ValueError(f"a record of the schema has more than {_MOST_PARTS:,} parts")
        return parts


def _bare_name(kind: Mapping[str, Any]) -> str:
    return str(kind["name"]).rpartition(".")[2]
