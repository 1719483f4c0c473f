"""Instant files are decoded by their content, and what cannot be decoded is named."""

from __future__ import annotations

import io

import fastavro
import pytest

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.commit import Operation, PendingPlan
from airflow_hudi_maint.core.model.instant import parse_instant_file_name
from airflow_hudi_maint.core.storage import instants

_SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "operationType", "type": ["null", "string"]}]}


def _avro(record: dict[str, object]) -> bytes:
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(_SCHEMA), [record])
    return buffer.getvalue()


def test_each_encoding_is_told_by_its_first_bytes() -> None:
    """Empty files, JSON and Avro decode to the same kind of record."""
    assert {} == instants.decode(b"", name="x")
    assert {"operationType": "CLUSTER"} == instants.decode(b'{"operationType": "CLUSTER"}', name="x")
    assert {"operationType": "CLUSTER"} == instants.decode(_avro({"operationType": "CLUSTER"}), name="x")


@pytest.mark.parametrize(
    "data",
    [b"{", b"[]", b"\x00\x01", b"Obj\x01", _avro({"operationType": "UPSERT"})[:-20], b"Obj\x01" + b"\xff" * 40],
    ids=["half a JSON", "a JSON array", "binary", "a bare magic", "a cut Avro file", "Avro noise"],
)
def test_what_cannot_be_decoded_names_its_file(data: bytes) -> None:
    """Broken content raises CorruptTableError with the file's name, never an error of a decoder."""
    with pytest.raises(CorruptTableError, match=r"lake/t/20261130\.commit"):
        instants.decode(data, name="lake/t/20261130.commit")


def test_commit_metadata_keeps_what_was_written_and_replaced() -> None:
    """Partitions that were written and partitions whose files were replaced are both touched."""
    metadata = instants.commit_metadata(
        {
            "operationType": "CLUSTER",
            "partitionToWriteStats": {
                "a": [{"fileId": "f", "path": "a/f.parquet", "numWrites": 3, "fileSizeInBytes": 9}]
            },
            "partitionToReplaceFileIds": {"b": ["g"]},
            "extraMetadata": {"schema": "{}"},
        },
        name="x",
    )

    assert frozenset({"a", "b"}) == metadata.touched_partitions
    assert (3, 9) == (metadata.written["a"][0].records, metadata.written["a"][0].bytes)
    assert metadata.operation == Operation.CLUSTER
    assert metadata.rewrites_only


def test_metadata_of_another_shape_is_corrupt() -> None:
    """A record that decodes but is no commit is refused by name."""
    with pytest.raises(CorruptTableError, match="x is no commit metadata"):
        instants.commit_metadata({"partitionToWriteStats": {"a": [{}]}}, name="x")


@pytest.mark.parametrize(
    "broken",
    [
        {"operationType": ["UPSERT"]},
        {"partitionToReplaceFileIds": {"a": [{"id": 1}]}},
        {"partitionToWriteStats": {"a": [{"fileId": "f", "path": "p", "numWrites": "three"}]}},
        {"partitionToWriteStats": {"a": [{"fileId": 7, "path": "p"}]}},
        {"extraMetadata": {"schema": {}}},
    ],
)
def test_values_of_a_wrong_type_are_corrupt(broken: dict[str, object]) -> None:
    """JSON lets any type through; what is kept has the type that it is said to have."""
    with pytest.raises(CorruptTableError, match="x is no commit metadata"):
        instants.commit_metadata(broken, name="x")


_PENDING = parse_instant_file_name("20261130100000000.clustering.requested")
_GROUP = {"slices": [{"partitionPath": "a", "fileId": "f", "dataFilePath": "s3a://x/a/f.parquet"}]}


def _clustering(**plan: object) -> PendingPlan | None:
    assert _PENDING is not None
    fields = {"inputGroups": [{**_GROUP, "numOutputFileGroups": 3}, {"slices": []}], **plan}
    record = {"operationType": "CLUSTER", "clusteringPlan": fields, "extraMetadata": {"k": "instant", "only": "here"}}
    for group in fields["inputGroups"] if isinstance(fields["inputGroups"], list) else ():
        for one in group["slices"]:
            one.setdefault("deltaFilePaths", None)
    return instants.clustering_plan(record, instant=_PENDING, name="x")


def test_a_clustering_plan_tells_its_strategy_and_its_maker() -> None:
    """What the plan notes of its maker comes before what the instant does; counts are by group."""
    plan = _clustering(
        strategy={"strategyClassName": "Sort", "strategyParams": {"columns": "a,b"}}, extraMetadata={"k": "plan"}
    )

    assert plan is not None
    assert ("Sort", {"columns": "a,b"}) == (plan.strategy_class, plan.parameters)
    assert {"k": "plan", "only": "here"} == plan.extra_metadata
    assert ((3, 0), 3) == (plan.group_output_file_counts, plan.output_file_count)


def test_a_clustering_plan_of_an_old_writer_may_leave_all_of_it_out() -> None:
    """No strategy, parameters or metadata: empty ones."""
    plan = _clustering(strategy=None, extraMetadata=None)

    assert plan is not None
    assert ("", {}) == (plan.strategy_class, plan.parameters)


@pytest.mark.parametrize(
    "broken", [{"strategy": {"strategyParams": ["a"]}}, {"extraMetadata": {"k": 1}}, {"strategy": "Sort"}]
)
def test_a_clustering_plan_with_values_of_a_wrong_type_is_corrupt(broken: dict[str, object]) -> None:
    """By the file's name."""
    with pytest.raises(CorruptTableError, match="x is no clustering plan"):
        _clustering(**broken)
