from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError, UnknownColumnError
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.storage.schema import Column, TableSchema, table_schema
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.golden import golden_names, unpack
from tests.unit.core.storage.builders import SCHEMA, TableBuilder, at, parquet

ONE = "day=2026-11-01"


def _schema(*fields: object) -> str:
    return json.dumps({"type": "record", "name": "trips_record", "namespace": "hoodie.trips", "fields": list(fields)})


def _types(schema: TableSchema) -> dict[str, str]:
    return {column.name: column.type_name for column in schema.columns}


@pytest.fixture
def builder(request: pytest.FixtureRequest) -> TableBuilder:
    return TableBuilder(base_path=f"memory://schema-{request.node.name}/trips")


def test_types_are_avros_own_or_the_logical_ones() -> None:
    """Nullability, logical types and decimals with precision and scale are read from the Avro schema."""
    schema = TableSchema.parse(
        _schema(
            {"name": "_hoodie_commit_time", "type": ["null", "string"]},
            {"name": "id", "type": "string"},
            {"name": "count", "type": ["long", "null"]},
            {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {
                "name": "price",
                "type": {
                    "type": "fixed",
                    "name": "price",
                    "size": 5,
                    "logicalType": "decimal",
                    "precision": 10,
                    "scale": 2,
                },
            },
            {"name": "whole", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "either", "type": ["int", "string"]},
            {"name": "wrapped", "type": {"type": {"type": "string"}}},
        ),
        source="here",
    )
    assert _types(schema) == {
        "id": "string",
        "count": "long",
        "day": "date",
        "at": "timestamp-micros",
        "price": "decimal(10,2)",
        "whole": "decimal(10,0)",
        "tags": "array",
        "either": "union",
        "wrapped": "string",
    }
    assert [column.name for column in schema.columns if column.nullable] == ["count", "day"]


def test_fields_of_nested_records_are_columns() -> None:
    """A nested field has a dotted name; a type that is named again, or holds itself, is understood."""
    place = {"type": "record", "name": "place", "fields": [{"name": "city", "type": "string"}]}
    node = {"type": "record", "name": "node", "fields": [{"name": "next", "type": ["null", "node"]}]}
    schema = TableSchema.parse(
        _schema(
            {"name": "from", "type": place},
            {"name": "to", "type": ["null", "hoodie.trips.place"]},
            {"name": "via", "type": "place"},
            {"name": "node", "type": node},
        ),
        source="here",
    )
    assert _types(schema) == {
        "from": "record",
        "from.city": "string",
        "to": "record",
        "to.city": "string",
        "via": "record",
        "via.city": "string",
        "node": "record",
        "node.next": "record",
    }


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '"string"', "null", '{"type": "record"}', _schema({"name": "a"}), _schema(1), "[" * 100_000],
)
def test_text_that_is_no_schema_is_named(text: str) -> None:
    """A broken schema is an error that says where it was found."""
    with pytest.raises(CorruptTableError, match="the commit is no Avro schema of a record"):
        TableSchema.parse(text, source="the commit")


def test_partition_field_types() -> None:
    """A partition field has the type of its column, and is a string when there is no such column."""
    schema = TableSchema.parse(SCHEMA, source="here")
    assert schema.partition_field_types(PartitionScheme(fields=("day", "hour"))) == {"day": "date", "hour": "string"}


def test_columns_are_checked() -> None:
    """Columns and meta columns pass; another name is refused with the nearest ones."""
    schema = TableSchema.parse(SCHEMA, source="The schema of trips")
    schema.check_columns(["fare", "_hoodie_record_key"])
    with pytest.raises(UnknownColumnError, match=r"The schema of trips has no column 'Fare'; did you mean 'fare'\?"):
        schema.check_columns(["trip_id", "Fare"])
    with pytest.raises(UnknownColumnError, match="has no column 'zzz'; it has trip_id, fare, day"):
        schema.check_columns(["zzz"])


def test_last_commit_that_notes_a_schema_counts(builder: TableBuilder) -> None:
    """A later schema replaces an earlier one; commits without one are passed over."""
    later = _schema({"name": "trip_id", "type": "string"}, {"name": "tip", "type": "double"})
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    builder.commit(at(2), {ONE: [("f1-0", 11)]}, schema=later)
    builder.commit(at(3), replaced={ONE: ["f1-0"]}, schema=None)
    builder.instant(at(4), "clean", {})
    table = builder.open()
    schema = table_schema(table, timeline=table.timeline())
    assert _types(schema) == {"trip_id": "string", "tip": "double"}
    assert schema.source == f"The schema in {builder.base_path} at instant {at(2)} (commit, completed)"


def test_schema_of_the_table_is_next(request: pytest.FixtureRequest) -> None:
    """Without a commit that notes one, the schema that the table was created with counts."""
    settings = {"hoodie.table.create.schema": _schema({"name": "a", "type": "int"}).replace(":", "\\:")}
    builder = TableBuilder(base_path=f"memory://{request.node.name}/trips", settings=settings)
    builder.commit(at(1), {ONE: [("f1-0", parquet([at(1)]))]}, schema=None)
    table = builder.open()
    assert table_schema(table, timeline=table.timeline()).columns == (
        Column(name="a", type_name="int", nullable=False),
    )


def test_base_file_is_the_last_resort(builder: TableBuilder) -> None:
    """With neither, a base file tells; without any, the error says what is missing."""
    table = builder.open()
    with pytest.raises(CorruptTableError, match=r"trips has no schema: .* there is no base file"):
        table_schema(table, timeline=table.timeline())
    builder.commit(at(1), {ONE: [("f1-0", parquet([at(1)], extra={"fare": [1.0]}))]}, schema=None)
    schema = table_schema(table, timeline=table.timeline())
    assert schema.columns == (Column(name="fare", type_name="double", nullable=True),)
    assert schema.source.endswith(f"{ONE}/f1-0_0-1-2_{at(1)}.parquet")


@pytest.mark.parametrize("name", golden_names())
def test_schema_of_real_tables(name: str, tmp_path: Path) -> None:
    """The commits of all three Hudi versions tell the columns of the rows that were written."""
    table = HudiTable.open(str(unpack(name, tmp_path)))
    types = _types(table_schema(table, timeline=table.timeline()))
    assert (types["trip_id"], types["fare"], types["seconds"], types["ts"]) == ("string", "double", "int", "long")
