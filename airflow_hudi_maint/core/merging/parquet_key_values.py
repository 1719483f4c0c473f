"""The texts in footers beside the schema, of many files made those of one.

A key that all files with it give the same value keeps it. Where they differ, the value of the first file in the order
of the merge stands, and a note says so. Values that describe the schema or the rows are brought up to date instead: the
schemas of pandas, Spark and Arrow get the columns that the merge added or widened, and the index of pandas the rows.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.merging.arrow_types import check_meanings, roomy

if TYPE_CHECKING:
    import pyarrow as pa

ARROW_KEY = b"ARROW:schema"
PANDAS_KEY = b"pandas"
SPARK_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_DERIVED_KEYS = frozenset((ARROW_KEY, PANDAS_KEY, SPARK_KEY))
_SCHEMA_KEYS = frozenset((b"parquet.avro.schema", b"avro.schema", b"iceberg.schema"))
"""Schemas that nobody here can rewrite: they go when the merged schema is another than theirs."""


class KeyValueMerge:
    """Collects the key-values of files, one after the other, in little memory."""

    def __init__(self) -> None:
        self._first: dict[bytes, bytes] = {}
        self._differing: dict[bytes, str] = {}
        self._derived: dict[bytes, dict[bytes, bytes]] = {}
        self._of_arrow: dict[bytes, str] = {}
        self._without_arrow: str | None = None

    def add(self, found: Mapping[bytes, bytes], *, file: str) -> None:
        """Take the key-values of the next file."""
        if ARROW_KEY not in found:
            self._without_arrow = self._without_arrow or file
        else:
            self._of_arrow.setdefault(found[ARROW_KEY], file)
        for key, value in found.items():
            first = self._first.setdefault(key, value)
            if key in _DERIVED_KEYS:
                known = self._derived.setdefault(key, {})
                if not known or value != first:
                    known.setdefault(hashlib.sha256(value).digest(), value)
            elif value != first:
                self._differing.setdefault(key, file)

    def merged(
        self, *, rows: int, changed: bool, widened: frozenset[str]
    ) -> tuple[dict[bytes, bytes], tuple[str, ...]]:
        """The key-values of the merged file, and notes on what did not stay.

        ``changed`` says that its schema is not that of every input; ``widened`` are the columns that became int64.
        Raises SchemaConflictError where Arrow's schemas give one column two meanings.
        """
        check_meanings(
            {file: schema for value, file in self._of_arrow.items() if (schema := _arrow_schema(value)) is not None},
            without=self._without_arrow,
        )
        kept = dict(self._first)
        notes = []
        for key, file in self._differing.items():
            shown = key.decode("utf-8", "replace")
            notes.append(f"metadata {shown!r} differs from {file} on: the value of the first file that has it was kept")
        if PANDAS_KEY in kept:
            kept[PANDAS_KEY] = _pandas(self._values(PANDAS_KEY), rows=rows, changed=changed, widened=widened)
        if ARROW_KEY in kept:
            kept[ARROW_KEY] = _arrow(self._values(ARROW_KEY), changed=changed, widened=widened, texts=kept)
        if changed and SPARK_KEY in kept:
            kept[SPARK_KEY] = _spark(self._values(SPARK_KEY), widened=widened)
        for key in [
            one for one in kept if (one in _DERIVED_KEYS and not kept[one]) or (changed and one in _SCHEMA_KEYS)
        ]:
            del kept[key]
            notes.append(f"metadata {key.decode()!r} was dropped: it describes a schema other than the merged one")
        return kept, tuple(notes)

    def _values(self, key: bytes) -> list[bytes]:
        return list(self._derived[key].values())


def _pandas(values: list[bytes], *, rows: int, changed: bool, widened: frozenset[str]) -> bytes:
    """The columns of all, and a range index, which every file counts from its own start, over all rows."""
    try:
        documents = [json.loads(value) for value in values]
        merged: dict[str, Any] = dict(documents[0])
        merged["index_columns"] = [_whole_range(one, rows=rows) for one in merged.get("index_columns", [])]
        if changed:
            columns = {
                one.get("field_name") or one.get("name"): one for each in documents for one in reversed(each["columns"])
            }
            ordered: dict[str, Any] = {}
            for each in documents:
                for one in each["columns"]:
                    name = one.get("field_name") or one.get("name")
                    ordered.setdefault(name, _widened_pandas(columns[name]) if name in widened else one)
            merged["columns"] = list(ordered.values())
    except (ValueError, KeyError, TypeError, AttributeError):
        return values[0]
    if merged == documents[0]:
        return values[0]
    return json.dumps(merged).encode()


def _whole_range(index: Any, *, rows: int) -> Any:  # noqa: ANN401 a part of a foreign JSON
    if not isinstance(index, dict) or index.get("kind") != "range":
        return index
    start, step = int(index["start"]), int(index["step"])
    return {**index, "stop": start + rows * step}


def _widened_pandas(column: dict[str, Any]) -> dict[str, Any]:
    return {**column, "pandas_type": "int64", "numpy_type": "int64"}


def _spark(values: list[bytes], *, widened: frozenset[str]) -> bytes:
    """Spark's own schema with the fields of all files, by name; empty where one cannot be understood."""
    fields: dict[str, Any] = {}
    with suppress(ValueError, KeyError, TypeError):
        documents = [json.loads(value) for value in values]
        for each in documents:
            for field in each["fields"]:
                known = fields.setdefault(field["name"], dict(field))
                known["nullable"] = known["nullable"] or field["nullable"]
                if field["name"] in widened:
                    known["type"] = "long"
        return json.dumps({**documents[0], "fields": list(fields.values())}, separators=(",", ":")).encode()
    return b""


def _arrow(values: list[bytes], *, changed: bool, widened: frozenset[str], texts: Mapping[bytes, bytes]) -> bytes:
    """Arrow's own schema with the fields of all files, by name; empty where one cannot be understood.

    It repeats texts of the footer, which readers prefer to those: they are brought in line with ``texts``.
    """
    import pyarrow as pa

    schemas = [schema for value in values if (schema := _arrow_schema(value)) is not None]
    if len(schemas) < len(values):
        return b"" if changed else values[0]
    repeated = {key: texts[key] for one in schemas for key in one.metadata or {} if key in texts}
    fields = _arrow_fields(schemas, widened=widened) if changed else list(schemas[0])
    fields = [field.with_type(roomy(field.type)) for field in fields]
    if not changed and fields == list(schemas[0]) and repeated == (schemas[0].metadata or {}):
        return values[0]
    merged = pa.schema(fields, metadata=repeated or None)
    return base64.b64encode(merged.serialize().to_pybytes())


def _arrow_schema(value: bytes) -> pa.Schema | None:
    """Arrow's schema in a footer; None for one that cannot be understood."""
    import pyarrow as pa

    try:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value)))
    except (pa.ArrowException, ValueError, OSError):
        return None


def _arrow_fields(schemas: list[pa.Schema], *, widened: frozenset[str]) -> list[pa.Field]:
    """The fields of all files, by name, each with the type of the first that has it."""
    import pyarrow as pa

    fields: dict[str, pa.Field] = {}
    for schema in schemas:
        for field in schema:
            known = fields.setdefault(field.name, field)
            known = known.with_nullable(known.nullable or field.nullable)
            fields[field.name] = known.with_type(pa.int64()) if field.name in widened else known
    return list(fields.values())
