"""What is seen of real and hand-made tables for their health, and at which cost."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from airflow_hudi_maint.core.model.health_facts import FileTotals, HealthFacts
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.planning.health_pending import pending_kind
from airflow_hudi_maint.core.planning.health_timeline import commits_since_clean, deltas_since_compaction
from airflow_hudi_maint.core.storage.health_facts import read_health_facts
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.golden import golden_names, truth, unpack
from tests.unit.core.storage.builders import TableBuilder, at


def look(table: HudiTable) -> HealthFacts:
    return read_health_facts(table, statistics=None, write_options={})


def golden(name: str, folder: Path) -> HealthFacts:
    return look(HudiTable.open(str(unpack(name, folder))))


@pytest.mark.parametrize("name", golden_names())
def test_every_golden_table_is_seen_without_a_problem(name: str, tmp_path: Path) -> None:
    """Its timeline is the JVM's, and nothing on it is unreadable."""
    facts = golden(name, tmp_path)
    assert facts.unread == {}
    assert facts.doubly_completed == ()
    expected = {(one["requested"], one["state"] == "COMPLETED") for one in truth(name)["timeline"]}
    assert {(one.requested_time, one.is_completed) for one in facts.timeline} == expected


@pytest.mark.parametrize("name", [name for name in golden_names() if name.endswith("_pending")])
def test_pending_instants_of_golden_tables_have_their_kind(name: str, tmp_path: Path) -> None:
    """A clustering is one on version 6, too, where it looks like an overwrite; the failed write left markers."""
    facts = golden(name, tmp_path)
    kinds = {str(pending_kind(one, plans=facts.plans)): one.requested_time for one in facts.timeline.pending}
    assert [kinds["clustering"]] == [one["instant"] for one in truth(name)["pending_clustering"]]
    assert facts.marker_instants == (kinds["write"],)
    if "_mor_" in name:
        assert [kinds["compaction"]] == [one["instant"] for one in truth(name)["pending_compaction"]]
    assert set(kinds) == {"clustering", "write"} | ({"compaction"} if "_mor_" in name else set())


@pytest.mark.parametrize("name", [name for name in golden_names() if name.endswith("_archived")])
def test_archived_golden_tables_have_an_archive_and_a_clean(name: str, tmp_path: Path) -> None:
    """Manifests are no archive files; the clean says from where on files are kept."""
    facts = golden(name, tmp_path)
    files = truth(name)["files"]
    archived = [
        entry[0]
        for path, entry in files.items()
        if path.startswith(f"{facts.config.archive_folder}/")
        and (path.endswith(".parquet") or ".commits_.archive." in path)
    ]
    assert facts.archive == FileTotals(count=len(archived), bytes=sum(archived))
    assert facts.archive.count > 0
    assert facts.last_clean is not None
    assert facts.last_clean.earliest_retained is not None
    assert facts.last_clean.failed_file_count == 0
    assert commits_since_clean(facts) <= 1


def test_compactions_of_golden_tables_are_found(tmp_path: Path) -> None:
    """The data table's by its commit; the metadata table has a timeline of its own."""
    deltas, last = deltas_since_compaction(golden("v9_mor_archived", tmp_path).timeline)
    assert (deltas, last is not None) == (1, True)
    metadata = golden("v9_mor_nested", tmp_path).metadata_timeline
    assert metadata is not None
    assert {one.action for one in metadata.completed} == {Action.DELTA_COMMIT}


def test_a_look_costs_few_requests_whatever_the_table_holds(base_path: str, version: int) -> None:
    """Four listings, and three reads of the newest writes when many came since the last clean."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(0), {"day=2026-11-01": [("f", 1)]})
    table = builder.open()
    table.storage.requests.lists = table.storage.requests.reads = 0
    look(table)
    assert (table.storage.requests.lists, table.storage.requests.reads) == (4, 0)
    for second in range(1, 31):
        builder.commit(at(second), {f"day=2026-11-{second:02}": [(f"f{second}", 1)]}, operation="BULK_INSERT")
    table.storage.requests.lists = table.storage.requests.reads = 0
    facts = look(table)
    assert (table.storage.requests.lists, table.storage.requests.reads) == (4, 3)
    assert facts.recent_operations == ("BULK_INSERT",) * 3


def test_what_is_not_there_is_nothing(base_path: str, version: int) -> None:
    """A table that was only created."""
    facts = look(TableBuilder(base_path=base_path, version=version).open())
    assert len(facts.timeline) == 0
    assert (facts.archive, facts.marker_instants, facts.heartbeats) == (FileTotals(count=0, bytes=0), (), ())
    assert (facts.last_clean, facts.metadata_timeline) == (None, None)


def test_an_instant_with_two_completed_files_is_found(base_path: str) -> None:
    """A timeline keeps the first of them."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), replaced={}, completion=at(2))
    builder.commit(at(1), replaced={}, completion=at(3))
    builder.commit(at(4), completion=at(5))
    assert look(builder.open()).doubly_completed == (at(1),)


def test_the_last_clean_says_what_it_keeps_and_what_it_could_not_delete(base_path: str, version: int) -> None:
    """The last by completion."""
    builder = TableBuilder(base_path=base_path, version=version)
    failed = {"day=1": {"successDeleteFiles": ["a"], "failedDeleteFiles": ["b", "c"]}}
    content = {"earliestCommitToRetain": at(3), "partitionMetadata": failed}
    builder.instant(at(1), "clean", {"earliestCommitToRetain": "", "partitionMetadata": {}})
    builder.instant(at(7), "clean", content)
    clean = look(builder.open()).last_clean
    assert clean is not None
    assert (clean.instant.requested_time, clean.earliest_retained, clean.failed_file_count) == (at(7), at(3), 2)


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1}'])
def test_a_broken_clean_is_noted_and_the_rest_is_seen(base_path: str, content: bytes) -> None:
    """With the name of its file."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1))
    builder.put(f"{builder.timeline_folder}/{at(2)}_{at(3)}.clean", content)
    facts = look(builder.open())
    assert f"{at(2)}_{at(3)}.clean" in facts.unread["clean"]
    assert len(facts.timeline.completed) == 2


def test_a_broken_plan_is_noted_and_the_rest_is_seen(base_path: str) -> None:
    """Health is asked for above all where something is broken."""
    builder = TableBuilder(base_path=base_path)
    builder.put(f"{builder.timeline_folder}/{at(1)}.clustering.requested", b"Obj\x01 and nothing more")
    facts = look(builder.open())
    assert at(1) in facts.unread["plans"]
    assert len(facts.timeline.pending) == 1


def test_signs_of_life_have_the_time_of_the_last_beat(tmp_path: Path) -> None:
    """By the modification time of the writer's file."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.put(f".hoodie/.heartbeat/{at(1)}", b"")
    builder.put(f".hoodie/.heartbeat/.{at(1)}.crc", b"")
    builder.put(f".hoodie/.temp/{at(1)}/day=1/x.marker.CREATE", b"")
    os.utime(tmp_path / "trips/.hoodie/.heartbeat" / at(1), (1_800_000_000, 1_800_000_000))
    facts = look(builder.open())
    (beat,) = facts.heartbeats
    assert beat.instant_time == at(1)
    assert beat.last_beat is not None
    assert beat.last_beat.timestamp() == 1_800_000_000
    assert facts.marker_instants == (at(1),)


def test_the_metadata_table_is_looked_at_in_its_own_layout(base_path: str, version: int) -> None:
    """It has the layout of the table."""
    builder = TableBuilder(base_path=base_path, version=version, settings={"hoodie.table.metadata.partitions": "files"})
    done = f"{at(1)}.deltacommit" if version == 6 else f"{at(1)}_{at(2)}.deltacommit"
    builder.put(f".hoodie/metadata/{builder.timeline_folder}/{done}", json.dumps({}).encode())
    metadata = look(builder.open()).metadata_timeline
    assert metadata is not None
    assert [one.requested_time for one in metadata.completed] == [at(1)]
