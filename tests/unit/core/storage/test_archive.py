"""The archived timeline, as real writers left it and as it breaks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.commit import PlanKind
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.golden import golden_names, truth, unpack
from tests.unit.core.storage.archiving import META_ENTRY, Archiver, history_file, log_file
from tests.unit.core.storage.builders import TableBuilder, at
from tests.unit.core.storage.gathering import ONE, TWO

ARCHIVED = [name for name in golden_names() if name.endswith("_archived")]


@pytest.fixture
def builder(base_path: str, version: int) -> TableBuilder:
    """A table of four commits, the first three of them archived in two files."""
    table = TableBuilder(base_path=base_path, version=version)
    for second in range(1, 5):
        table.commit(at(second), {ONE if second % 2 else TWO: [("f1-0", second)]})
    archiver = Archiver(builder=table)
    archiver.archive(at(1), at(2))
    archiver.archive(at(3))
    return table


@pytest.mark.parametrize("name", ARCHIVED)
def test_what_was_active_before_archival_is_in_the_archive(name: str, tmp_path: Path) -> None:
    """Instants of the younger stage of a real table are found in its archive, with action and completion time."""
    before = truth(name.replace("_archived", "_young"))["timeline"]
    archived = {
        one.instant.requested_time: one.instant for one in HudiTable.open(str(unpack(name, tmp_path))).archived()
    }
    expected = {one["requested"]: one for one in before}
    assert expected.keys() <= archived.keys()
    for requested, instant in archived.items():
        assert requested < (instant.completion_time or "")
        if requested in expected:
            assert (expected[requested]["action"], expected[requested]["completed"]) == (
                instant.action,
                instant.completion_time,
            )


@pytest.mark.parametrize("name", ARCHIVED)
def test_real_archives_tell_what_each_instant_did(name: str, tmp_path: Path) -> None:
    """Commits, the clustering with its plan, compactions, and cleans with what they deleted are decoded."""
    table = HudiTable.open(str(unpack(name, tmp_path)))
    archived = table.archived()
    clustering = next(one for one in archived if one.instant.action is Action.REPLACE_COMMIT)
    plan = clustering.plan()
    assert plan is not None
    assert (PlanKind.CLUSTERING, frozenset({"day=2026-11-01"})) == (plan.kind, plan.partitions)
    assert clustering.commit_metadata().rewrites_only
    replaced = clustering.commit_metadata().replaced["day=2026-11-01"]
    assert {one.file_id for one in plan.inputs} == set(replaced)
    cleans = [one for one in archived if one.instant.action is Action.CLEAN]
    assert cleans
    for clean in cleans:
        planned, done = clean.clean_plan(), clean.clean_metadata()
        assert planned is not None
        assert planned.earliest_retained == done.earliest_retained
        assert {key: set(names) for key, names in planned.files.items()} == {
            key: set(names) for key, names in done.deleted.items()
        }
    compactions = [one for one in archived if (planned := one.plan()) and planned.kind is PlanKind.COMPACTION]
    assert bool(compactions) == ("_mor_" in name)
    for one in compactions:
        assert one.commit_metadata().operation == "COMPACT"


def test_instants_come_in_order_and_in_the_range_asked_for(builder: TableBuilder) -> None:
    """Both ends of the range are included, and an open end is open."""
    table = builder.open()

    def times(since: str | None = None, until: str | None = None) -> list[str]:
        return [one.instant.requested_time for one in table.archived(since=since, until=until)]

    assert [at(1), at(2), at(3)] == times()
    assert [at(2), at(3)] == times(since=at(2))
    assert [at(1), at(2)] == times(until=at(2))
    assert [] == times(since=at(4))


def test_files_out_of_range_are_not_opened(base_path: str) -> None:
    """From version 8 on the names of the files tell which can matter; the rest may as well be broken."""
    builder = TableBuilder(base_path=base_path)
    archiver = Archiver(builder=builder)
    for second in range(1, 9):
        builder.commit(at(second), {ONE: [("f1-0", second)]})
        archiver.archive(at(second))
    for second in (*range(1, 5), 8):
        builder.put(f"{archiver.folder}/{at(second)}_{at(second)}_0.parquet", b"broken")
    table = builder.open()
    assert [at(5), at(6), at(7)] == [one.instant.requested_time for one in table.archived(since=at(5), until=at(7))]
    assert table.storage.requests.reads == 1 + 2 + 3


def test_an_instant_is_decoded_when_it_is_asked_for(base_path: str) -> None:
    """One that cannot be decoded hides no other, and the error names its row and file."""
    builder = TableBuilder(base_path=base_path)
    archiver = Archiver(builder=builder)
    for second in (1, 2):
        builder.commit(at(second), {ONE: [("f1-0", second)]})
    name = archiver.archive(at(1), at(2))
    rows = [
        {"instantTime": at(second), "completionTime": at(second), "action": "commit", "metadata": content, "plan": None}
        for second, content in ((1, b"{}"), (2, b"{broken"), (3, None))
    ]
    builder.put(f"{archiver.folder}/{name}", history_file(rows))
    sound, broken, empty = builder.open().archived()
    assert frozenset() == sound.commit_metadata().touched_partitions
    with pytest.raises(CorruptTableError, match=f"row 2 of .*{name} cannot be decoded"):
        broken.commit_metadata()
    with pytest.raises(CorruptTableError, match=rf"{name} does not say what instant {at(3)} \(commit, completed\) did"):
        empty.commit_metadata()
    assert empty.plan() is None


def test_no_archive_is_an_empty_one(base_path: str, version: int) -> None:
    """A table whose history was never archived has no archived instants."""
    builder = TableBuilder(base_path=base_path, version=version)
    builder.commit(at(1), {ONE: [("f1-0", 1)]})
    assert ((), ()) == (builder.open().archived(), builder.open().archive_files())


def test_the_files_of_an_archive_are_listed_with_their_sizes(tmp_path: Path) -> None:
    """Names and bytes, in order, without a look into them."""
    for name, folder in (("v6_cow_archived", "archived"), ("v9_mor_archived", "timeline/history")):
        path = unpack(name, tmp_path)
        files = HudiTable.open(str(path)).archive_files()
        assert len(files) > 2
        assert {one.name: one.bytes for one in files} == {
            one.name: (path / ".hoodie" / folder / one.name).stat().st_size for one in files
        }


def _history(builder: TableBuilder) -> str:
    return f".hoodie/timeline/history/{at(1)}_{at(2)}_0.parquet"


def _log(builder: TableBuilder) -> str:
    return ".hoodie/archived/.commits_.archive.1_1-0-1"


@pytest.mark.parametrize(
    "breaking",
    [lambda data: b"", lambda data: data[:-20], lambda data: data[: len(data) // 2], lambda data: b"\xff" * len(data)],
    ids=["empty", "cut", "half", "noise"],
)
def test_a_broken_archive_file_is_named(
    builder: TableBuilder, version: int, breaking: Callable[[bytes], bytes]
) -> None:
    """An empty history file is broken; an empty log file is one that its writer never got to."""
    path = _log(builder) if version < 8 else _history(builder)
    data = breaking(builder.storage.read_bytes(path))
    builder.put(path, data)
    if version < 8 and not data:
        assert [at(3)] == [one.instant.requested_time for one in builder.open().archived()]
        return
    with pytest.raises(CorruptTableError, match=path.rpartition("/")[2]):
        builder.open().archived()


def test_a_manifest_that_names_a_missing_file_is_an_error(base_path: str) -> None:
    """The error names the file that is missing."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 1)]})
    name = Archiver(builder=builder).archive(at(1))
    builder.remove(f".hoodie/timeline/history/{name}")
    with pytest.raises(CorruptTableError, match=f"{name} is missing, though the manifest"):
        builder.open().archived()


def test_the_greatest_manifest_stands_in_for_a_missing_version(base_path: str) -> None:
    """Hudi deletes ``_version_`` before it writes it anew, and reads so itself."""
    builder = TableBuilder(base_path=base_path)
    archiver = Archiver(builder=builder)
    for second in (1, 2):
        builder.commit(at(second), {ONE: [("f1-0", second)]})
        archiver.archive(at(second))
    for broken in (b"", b"two", b"9" * 5000):
        builder.put(f"{archiver.folder}/_version_", broken)
        assert 2 == len(builder.open().archived())
    builder.remove(f"{archiver.folder}/_version_")
    assert 2 == len(builder.open().archived())


@pytest.mark.parametrize(
    ("manifests", "message"),
    [
        ({}, "_version_ is missing or holds no number, and there is no manifest"),
        ({"_version_": b"7"}, "manifest_7 is missing, though _version_ beside it names it"),
        ({"manifest_1": b"{"}, "manifest_1 cannot be decoded"),
        ({"manifest_1": b'{"files": 3}'}, "manifest_1 is no manifest of archived instants"),
        ({"manifest_1": b'{"files": [{"fileName": "a"}]}'}, "manifest_1 is no manifest of archived instants"),
        ({"manifest_1": b'{"files": [{"fileName": "x.parquet", "fileLen": 1}]}'}, "x.parquet is no name"),
    ],
)
def test_an_archive_without_a_sound_manifest_is_an_error(
    base_path: str, manifests: dict[str, bytes], message: str
) -> None:
    """Files without a manifest, a version without its manifest, and manifests that say nothing are named."""
    builder = TableBuilder(base_path=base_path)
    builder.commit(at(1), {ONE: [("f1-0", 1)]})
    archiver = Archiver(builder=builder)
    archiver.archive(at(1))
    for name in ("_version_", "manifest_1"):
        builder.remove(f"{archiver.folder}/{name}")
    for name, data in manifests.items():
        builder.put(f"{archiver.folder}/{name}", data)
    with pytest.raises(CorruptTableError, match=message):
        builder.open().archived()


def test_a_half_written_merge_of_log_files_is_passed_over(base_path: str) -> None:
    """Hudi merges small archive files by a plan; the sources of one that stopped are still there."""
    builder = TableBuilder(base_path=base_path, version=6)
    builder.commit(at(1), {ONE: [("f1-0", 1)]})
    archiver = Archiver(builder=builder)
    name = archiver.archive(at(1))
    whole = builder.storage.read_bytes(f"{archiver.folder}/{name}")
    builder.put(f"{archiver.folder}/.commits_.archive.2_1-0-1", whole[:-9])
    with pytest.raises(CorruptTableError, match=r"\.commits_\.archive\.2_1-0-1"):
        builder.open().archived()
    builder.put(f"{archiver.folder}/mergeArchivePlan", b'{"mergedArchiveFileName": ".commits_.archive.2_1-0-1"}')
    assert [at(1)] == [one.instant.requested_time for one in builder.open().archived()]
    builder.put(f"{archiver.folder}/.commits_.archive.2_1-0-1", whole)
    assert [at(1)] == [one.instant.requested_time for one in builder.open().archived()]


def test_an_archived_instant_that_did_not_complete_is_left_out(base_path: str) -> None:
    """Of the states of an instant the completed one says that it took effect."""
    builder = TableBuilder(base_path=base_path, version=6)
    states = [
        {"commitTime": at(second), "actionType": "commit", "actionState": state, "stateTransitionTime": at(second)}
        for second, state in ((1, "REQUESTED"), (1, "INFLIGHT"), (2, "REQUESTED"), (2, "COMPLETED"))
    ]
    unknown = {"commitTime": at(3), "actionType": "wonder", "actionState": "COMPLETED", "stateTransitionTime": None}
    builder.put(".hoodie/archived/.commits_.archive.1", log_file([*states, unknown]))
    (only,) = builder.open().archived()
    assert (at(2), at(2)) == (only.instant.requested_time, only.instant.completion_time)
    assert ".commits_.archive.1" == only.instant.file_name
    with pytest.raises(CorruptTableError, match=r"\.commits_\.archive\.1 does not say what instant 2026"):
        only.commit_metadata()


def test_a_schema_that_a_reader_could_follow_without_end_is_refused(base_path: str) -> None:
    """An array of nothing costs no bytes, so its length could be anything."""
    fields = [*META_ENTRY["fields"], {"name": "more", "type": {"type": "array", "items": "null"}, "default": []}]
    entry = {"commitTime": at(1), "actionType": "commit", "actionState": "COMPLETED", "more": []}
    builder = TableBuilder(base_path=base_path, version=6)
    data = log_file([entry], schema={**META_ENTRY, "fields": fields})
    builder.put(".hoodie/archived/.commits_.archive.1", data)
    with pytest.raises(CorruptTableError, match="the schema has an array of nothing"):
        builder.open().archived()
