"""Passing over write stats tells the same about a commit as reading them does."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.storage import instants
from airflow_hudi_maint.core.storage.avro_passing import OtherShapeError, WriteStatsPasser
from airflow_hudi_maint.core.storage.avro_records import container_record
from airflow_hudi_maint.core.storage.dating import COMMIT_ACTIONS
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.golden import golden_names, unpack

LONG, TEXT = ["null", "long"], ["null", {"type": "string", "avro.java.string": "String"}]
RUNTIME = {"type": "record", "name": "Runtime", "fields": [{"name": "a", "type": LONG}, {"name": "b", "type": LONG}]}
STAT = {
    "fileId": TEXT,
    "numWrites": LONG,
    "flag": ["null", "boolean"],
    "share": "double",
    "logVersion": ["null", "int"],
    "path": TEXT,
    "logFiles": ["null", {"type": "array", "items": "string"}],
    "cdcStats": ["null", {"type": "map", "values": "long"}],
    "runtimeStats": ["null", RUNTIME],
}
SCHEMA = {
    "type": "record",
    "name": "Commit",
    "fields": [
        {
            "name": "partitionToWriteStats",
            "type": [
                "null",
                {
                    "type": "map",
                    "values": {
                        "type": "array",
                        "items": {
                            "type": "record",
                            "name": "HoodieWriteStat",
                            "fields": [{"name": name, "type": kind} for name, kind in STAT.items()],
                        },
                    },
                },
            ],
        },
        {"name": "operationType", "type": TEXT},
        {
            "name": "partitionToReplaceFileIds",
            "type": ["null", {"type": "map", "values": {"type": "array", "items": "string"}}],
        },
    ],
}

texts = st.text(max_size=200)
numbers = st.integers(-(2**63), 2**63 - 1)
optional_numbers = st.none() | numbers
stats = st.fixed_dictionaries(
    {
        "fileId": st.none() | texts,
        "numWrites": optional_numbers,
        "flag": st.none() | st.booleans(),
        "share": st.floats(allow_nan=False),
        "logVersion": st.none() | st.integers(-(2**31), 2**31 - 1),
        "path": st.none() | texts,
        "logFiles": st.none() | st.lists(texts, max_size=3),
        "cdcStats": st.none() | st.dictionaries(texts, numbers, max_size=3),
        "runtimeStats": st.none() | st.fixed_dictionaries({"a": optional_numbers, "b": optional_numbers}),
    }
)
commits = st.fixed_dictionaries(
    {
        "partitionToWriteStats": st.none() | st.dictionaries(texts, st.lists(stats, max_size=3), max_size=3),
        "operationType": st.none() | texts,
        "partitionToReplaceFileIds": st.none() | st.dictionaries(texts, st.lists(texts, max_size=3), max_size=3),
    }
)


def _container(commit: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(SCHEMA), [commit])
    return out.getvalue()


@given(commit=commits)
def test_the_rest_of_a_commit_is_the_same(commit: dict[str, Any]) -> None:
    """Its partitions, and all other fields."""
    short, whole = container_record(_container(commit), files=False), container_record(_container(commit))
    assert WriteStatsPasser.of(SCHEMA) is not None
    assert list(short["partitionToWriteStats"] or ()) == list(whole["partitionToWriteStats"] or ())
    assert {**short, "partitionToWriteStats": None} == {**whole, "partitionToWriteStats": None}


@given(commit=commits, data=st.data())
def test_broken_data_is_refused(commit: dict[str, Any], data: st.DataObject) -> None:
    """Whatever byte is changed or missing: an error of our own, or the answer of the usual decoder."""
    content = bytearray(_container(commit))
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] = data.draw(st.integers(0, 255))
    broken = bytes(content[: data.draw(st.integers(position, len(content)))])
    try:
        record = instants.decode(broken, name="x", files=False)
    except CorruptTableError:
        return
    assert isinstance(record, dict)


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x02\x02\x08day=", b"\x04\x00", b"\x02\x02\x00\x02\xff"])
def test_stats_that_end_amid_themselves_are_not_passed_over(data: bytes) -> None:
    """The usual decoder then says what is wrong."""
    passer = WriteStatsPasser.of(SCHEMA)
    assert passer is not None
    with pytest.raises(OtherShapeError):
        passer.without_stats(data, start=0)


@pytest.mark.parametrize("schema", [{}, {"fields": []}, {"fields": [{"name": "x", "type": "long"}]}, "long", None])
def test_other_schemas_are_read_in_the_usual_way(schema: object) -> None:
    """Nothing but commit metadata has write stats to pass over."""
    assert WriteStatsPasser.of(schema) is None


@pytest.mark.parametrize("name", golden_names())
def test_commits_of_hudi_say_the_same(name: str, tmp_path: Path) -> None:
    """Every commit of a real table; from version 8 on none needs the usual decoder."""
    table = HudiTable.open(str(unpack(name, tmp_path)))
    wanted = [one for one in table.timeline().completed if one.action in COMMIT_ACTIONS]
    short, whole = table.commit_metadata_of(wanted, files=False), table.commit_metadata_of(wanted)
    assert [(one.operation, one.written.keys(), one.replaced) for one in short] == [
        (one.operation, one.written.keys(), one.replaced) for one in whole
    ]
    if table.config.has_completion_times:
        assert not any(stats for one in short for stats in one.written.values())
        for one in wanted:
            data = table.storage.read_bytes(f"{table.config.timeline_folder}/{one.file_name}")
            schema = json.loads(fastavro.reader(io.BytesIO(data)).metadata["avro.schema"])
            assert WriteStatsPasser.of(schema) is not None
