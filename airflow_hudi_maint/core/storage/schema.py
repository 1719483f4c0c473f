"""The columns of a table and their types, in Avro's words.

Source: Hudi's ``TableSchemaResolver``: the last commit that notes a schema, then the schema the table was created with,
then a base file.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from airflow_hudi_maint.core.errors import CorruptTableError, UnknownColumnError
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage import footers
from airflow_hudi_maint.core.storage.table import HudiTable

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""Columns that Hudi adds to each row."""

_SCHEMA_ACTIONS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
_NAMES_SHOWN = 3
_DEFAULT_TYPE = "string"
_NAMED_KINDS = ("record", "enum", "fixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; a field of a nested record is named ``record.field``.

    ``type_name`` is Avro's: ``int``, ``string``, ``record``, …, or the logical type where there is one: ``date``,
    ``timestamp-micros``, ``decimal(10,2)``.
    """

    name: str
    type_name: str
    nullable: bool


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """The columns of a table in their order, without Hudi's meta columns; ``source`` says where they were read."""

    columns: tuple[Column, ...]
    source: str

    @classmethod
    def parse(cls, avro_json: str, *, source: str) -> TableSchema:
        """Read an Avro record schema; ``source`` names where it was found, for errors.

        Raises CorruptTableError for a text that is no such schema.
        """
        try:
            record = json.loads(avro_json)
            columns = tuple(_columns(record, prefix="", names=dict(_named_types(record))))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            msg = f"{source} is no Avro schema of a record: {error!r}"
            raise CorruptTableError(msg) from error
        return cls(columns=tuple(one for one in columns if one.name not in META_COLUMNS), source=source)

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        """The columns by name."""
        return {column.name: column for column in self.columns}

    def partition_field_types(self, scheme: PartitionScheme) -> dict[str, str]:
        """The type name of each partition field; a field that is no column (it lives in the path alone) is a string."""
        known = self.by_name
        return {field: known[field].type_name if field in known else _DEFAULT_TYPE for field in scheme.fields}

    def check_columns(self, names: Collection[str]) -> None:
        """Raise UnknownColumnError, with the nearest names, unless each name is a column or a meta column.

        Upper and lower case are different, as for Hudi itself.
        """
        known = (*(column.name for column in self.columns), *META_COLUMNS)
        for name in names:
            if name not in known:
                raise UnknownColumnError(_unknown_column(name, known=known, source=self.source))


def table_schema(table: HudiTable, *, timeline: Timeline) -> TableSchema:
    """Work out the schema of a table as of ``timeline``.

    Decodes commits from the newest back, until one notes a schema: normally one. Raises CorruptTableError when
    the source is broken, and when a table has none at all.
    """
    for instant in reversed(timeline.completed):
        if instant.action in _SCHEMA_ACTIONS:
            text = table.commit_metadata(instant).schema
            if text:
                return TableSchema.parse(text, source=f"The schema in {table.base_path} at instant {instant}")
    if table.config.create_schema:
        return TableSchema.parse(
            table.config.create_schema, source=f"hoodie.table.create.schema of table {table.base_path}"
        )
    return _file_schema(table, timeline=timeline)


def _file_schema(table: HudiTable, *, timeline: Timeline) -> TableSchema:
    view = table.view(timeline)
    paths = (
        f"{partition}/{one.base_file.name}" if partition else one.base_file.name
        for partition in view.partition_paths
        for one in view.merged_slices(partition)
        if one.base_file is not None and one.base_file.name.endswith(".parquet")
    )
    path = next(paths, None)
    if path is None:
        msg = (
            f"Table {table.base_path} has no schema: no commit notes one, hoodie.table.create.schema is not set and "
            "there is no base file; write to the table first"
        )
        raise CorruptTableError(msg)
    text = footers.avro_schema(table.storage, path=path)
    source = f"The schema in {table.storage.join(path)}"
    if text:
        return TableSchema.parse(text, source=source)
    columns = (
        Column(name=one.name, type_name=one.type_name, nullable=one.nullable)
        for one in footers.footer_columns(table.storage, path=path)
    )
    return TableSchema(columns=tuple(one for one in columns if one.name not in META_COLUMNS), source=source)


def _unknown_column(name: str, *, known: Collection[str], source: str) -> str:
    lowered: dict[str, str] = {}
    for one in known:
        lowered.setdefault(one.lower(), one)
    near = [lowered[one] for one in difflib.get_close_matches(name.lower(), lowered, n=_NAMES_SHOWN)]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {', '.join(known)}"
    return f"{source} has no column {name!r}; {hint}"


def _columns(record: Any, *, prefix: str, names: Mapping[str, Any], above: tuple[Any, ...] = ()) -> Iterator[Column]:  # noqa: ANN401 JSON
    _check_record(record)
    for field in record["fields"]:
        kind, nullable = _without_null(field["type"])
        kind = names.get(kind, kind) if isinstance(kind, str) else kind
        name = f"{prefix}{field['name']}"
        yield Column(name=name, type_name=_type_name(kind), nullable=nullable)
        # A record that holds itself has no end of columns: it is entered once.
        is_new = all(kind is not one for one in (record, *above))
        if isinstance(kind, dict) and kind.get("type") == "record" and is_new:
            yield from _columns(kind, prefix=f"{name}.", names=names, above=(record, *above))


def _check_record(record: Any) -> None:  # noqa: ANN401 JSON
    if not isinstance(record, dict) or record.get("type") != "record":
        msg = f"expected a record, found {str(record)[:80]}"
        raise TypeError(msg)


def _named_types(kind: Any, *, namespace: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 JSON
    """The named types of a schema: each is spelt out once and then named, with or without its namespace."""
    if isinstance(kind, list):
        for one in kind:
            yield from _named_types(one, namespace=namespace)
    if not isinstance(kind, dict):
        return
    if kind.get("type") in _NAMED_KINDS:
        space, _, name = kind["name"].rpartition(".")
        namespace = space or kind.get("namespace") or namespace
        yield name, kind
        yield f"{namespace}.{name}", kind
    inner = (
        kind.get("items"),
        kind.get("values"),
        kind.get("type"),
        *(one["type"] for one in kind.get("fields") or ()),
    )
    for one in inner:
        yield from _named_types(one, namespace=namespace)


def _without_null(kind: Any) -> tuple[Any, bool]:  # noqa: ANN401 JSON
    if not isinstance(kind, list):
        return kind, False
    rest = [one for one in kind if one != "null"]
    return (rest[0] if len(rest) == 1 else "union"), len(rest) < len(kind)


def _type_name(kind: Any) -> str:  # noqa: ANN401 JSON
    if not isinstance(kind, dict):
        return str(kind)
    logical = kind.get("logicalType")
    if logical == "decimal":
        return f"decimal({kind['precision']},{kind.get('scale', 0)})"
    if logical:
        return str(logical)
    inner = kind["type"]
    return _type_name(inner) if isinstance(inner, dict) else str(inner)
