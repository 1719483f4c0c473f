"""The metadata table lists what the directories hold, and is passed over when it does not."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError, InvalidSettingError, MetadataTableError
from airflow_hudi_maint.core.storage.listing import FEW_PARTITIONS
from airflow_hudi_maint.core.storage.log_blocks import BlockType, HeaderKey
from airflow_hudi_maint.core.storage.statistics import gather_statistics
from airflow_hudi_maint.core.storage.table import HudiTable, TableView
from tests.golden.golden import golden_names, truth, unpack
from tests.unit.core.storage.builders import TableBuilder, at
from tests.unit.core.storage.gathering import NOW, ONE, TWO
from tests.unit.core.storage.mdt_writer import FILES, MetadataWriter, data_block, log_block, rollback_block


def _shows_logs_in_flight(said: Mapping[str, Any]) -> bool:
    """Whether directories show log files of a delta commit that is not complete: version 6 cannot tell them apart."""
    is_pending = any(one["action"] == "deltacommit" and one["state"] != "COMPLETED" for one in said["timeline"])
    return bool(said["table"]["version"] < 8 and is_pending)


WITH_METADATA = [name for name in golden_names() if "files" in truth(name)["table"]["metadata_partitions"]]
EQUAL = [name for name in WITH_METADATA if not _shows_logs_in_flight(truth(name))]

Files = Mapping[str, Mapping[str, int]]


class Tracked:
    """A table with one base file in each partition, and its metadata table."""

    def __init__(self, base_path: str, *, version: int, partitions: tuple[str, ...] = (ONE, TWO)) -> None:
        settings = {"hoodie.table.metadata.partitions": "files"}
        self.builder = TableBuilder(base_path=base_path, version=version, settings=settings)
        self.metadata = MetadataWriter(storage=self.builder.storage, version=version)
        self.metadata.make({}, completion=at(1))
        self.write(at(2), *partitions)

    def write(self, instant: str, *partitions: str, is_followed: bool = True) -> None:
        files = {one: [(f"f{instant[-5:-3]}-0", 100)] for one in partitions}
        self.builder.commit(instant, files)
        name = f"f{instant[-5:-3]}-0_0-1-2_{instant}.parquet"
        if is_followed:
            self.metadata.write(instant, {one: {name: 100} for one in partitions}, completion=instant)

    def view(self, listing: str = "metadata") -> TableView:
        table = self.builder.open()
        return table.view(table.timeline(), listing=listing)

    @property
    def log(self) -> str:
        """The newest log file of the metadata table."""
        storage = self.builder.storage
        return max((f"{FILES}/{name}" for name in storage.names(FILES) if ".log." in name), key=_number)


def _number(name: str) -> tuple[str, str]:
    return name.partition(".log.")[0], name.rpartition(".log.")[2]


@pytest.fixture
def tracked(tmp_path: Path, version: int) -> Tracked:
    return Tracked(f"memory://{tmp_path.name}/trips", version=version)


def _committed_files(view: TableView) -> dict[str, dict[str, int]]:
    """Every file of a completed write, by partition; partitions without any are left out."""
    pending = {one.requested_time for one in view.timeline.pending}
    found = {
        path: {
            entry.name: entry.bytes
            for entry in entries
            if not entry.is_directory
            and not entry.name.startswith(".hoodie")
            and not any(instant in entry.name for instant in pending)
        }
        for path, entries in view.listings.items()
    }
    return {path: files for path, files in found.items() if files}


@pytest.fixture(params=EQUAL)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> HudiTable:
    return HudiTable.open(str(unpack(request.param, tmp_path)))


def test_golden_tables_have_the_same_files_either_way(golden: HudiTable) -> None:
    """Names and sizes are those on disk, but for files of writes that did not complete."""
    timeline = golden.timeline()
    by_directory = _committed_files(golden.view(timeline, listing="directory"))

    assert by_directory == _committed_files(golden.view(timeline, listing="metadata"))


def test_golden_tables_have_the_same_slices_and_statistics_either_way(golden: HudiTable) -> None:
    """Latest and merged slices of each partition, and each row of the statistics."""
    timeline = golden.timeline()
    views = [golden.view(timeline, listing=way) for way in ("directory", "metadata")]
    seen = [{path: view.slices(path) for path in view.partition_paths} for view in views]
    known = [{path: slices for path, slices in one.items() if slices.latest or slices.merged} for one in seen]
    rows = [gather_statistics(golden, now=NOW, listing=way).partitions for way in ("directory", "metadata")]

    assert [view.way for view in views] == ["directory", "metadata"]
    assert known[0] == known[1] != {}
    assert rows[0] == rows[1] != ()


@pytest.mark.parametrize("name", sorted({*WITH_METADATA} - {*EQUAL}))
def test_directories_show_log_files_in_flight_on_version_6(name: str, tmp_path: Path) -> None:
    """Their names do not tell, so they count there; the metadata table has what is complete."""
    table = HudiTable.open(str(unpack(name, tmp_path)))
    timeline = table.timeline()
    views = [_committed_files(table.view(timeline, listing=way)) for way in ("directory", "metadata")]
    found, known = ({(path, *one) for path, files in view.items() for one in files.items()} for view in views)

    assert known < found
    assert all(file.startswith(".") for _, file, _ in found - known)


def test_made_up_sizes_of_rolled_back_logs_are_looked_up(tmp_path: Path) -> None:
    """Hudi 0.15 notes 1 byte for the log file of a failed delta commit; the directory has its size."""
    tracked = Tracked(f"memory://{tmp_path.name}/trips", version=6)
    log = f".f02-0_{at(2)}.log.1_0-1-2"
    tracked.builder.log_file(ONE, "f02-0", instant=at(3), base_instant=at(2), size=90)
    tracked.builder.rollback(at(4), of=at(3), partitions=[ONE])
    tracked.metadata.write(at(4), {ONE: {log: 1}}, completion=at(4))
    view = tracked.view()

    assert {entry.name: entry.bytes for entry in view.listings[ONE]} == {f"f02-0_0-1-2_{at(2)}.parquet": 100, log: 90}
    assert view.slices(ONE) == tracked.view("directory").slices(ONE)


@pytest.mark.parametrize("count", [5, 200])
def test_requests_do_not_grow_with_partitions(tmp_path: Path, version: int, count: int) -> None:
    """Two listings, one HFile and two logs; no directory of a partition is listed."""
    names = tuple(f"day={number:04}" for number in range(count))
    tracked = Tracked(f"memory://{tmp_path.name}/trips", version=version, partitions=names)
    table = tracked.builder.open()
    timeline = table.timeline()
    requests = table.storage.requests
    before = requests.lists, requests.reads
    listed = dict(table.listed(timeline, listing="metadata").listings)

    assert sorted(listed) == list(names)
    assert (requests.lists - before[0], requests.reads - before[1]) == (2, 3)


def test_a_part_of_the_partitions_can_be_asked_for(tracked: Tracked) -> None:
    """Unknown ones are left out, as by directory."""
    table = tracked.builder.open()
    view = table.view(table.timeline(), partitions=[TWO, "day=1999-01-01"], listing="metadata")

    assert view.partition_paths == (TWO,)


@pytest.mark.parametrize("path", ["", "region=us%2Feast 1/day=__HIVE_DEFAULT_PARTITION__"])
def test_partition_paths_are_those_of_the_directories(tmp_path: Path, version: int, path: str) -> None:
    """A table without partitions has one with an empty path, and values stay as they are encoded."""
    tracked = Tracked(f"memory://{tmp_path.name}/trips", version=version, partitions=(path,))

    assert tracked.view("directory").slices(path) == tracked.view().slices(path)
    assert tracked.view().partition_paths == (path,)


def test_a_delta_commit_whose_instant_is_pending_does_not_count(tracked: Tracked) -> None:
    """The metadata table is written before the instant completes."""
    tracked.builder.pending(at(3), "commit")
    tracked.metadata.write(at(3), {ONE: {f"f03-0_0-1-2_{at(3)}.parquet": 7}}, completion=at(3))

    assert [entry.name for entry in tracked.view().listings[ONE]] == [f"f02-0_0-1-2_{at(2)}.parquet"]


def test_a_write_that_began_after_the_timeline_was_read_does_not_count(tracked: Tracked) -> None:
    """The view is as of the timeline, and the metadata table is not ahead of what there is now."""
    table = tracked.builder.open()
    timeline = table.timeline()
    tracked.write(at(3), ONE)
    view = table.view(timeline, listing="metadata")

    assert [entry.name for entry in view.listings[ONE]] == [f"f02-0_0-1-2_{at(2)}.parquet"]


def test_blocks_that_a_command_took_back_do_not_count(tmp_path: Path) -> None:
    """A delta commit that failed half-way is rolled back and tried again under the same instant."""
    tracked = Tracked(f"memory://{tmp_path.name}/trips", version=6)
    tracked.builder.put(tracked.metadata.log_path(at(3)), data_block(at(3), [(ONE, {"of the first try": 1})]))
    tracked.builder.put(tracked.metadata.log_path(at(3)), rollback_block(f"{at(3)}006", target=at(3)))
    tracked.write(at(3), ONE)

    assert {entry.name for entry in tracked.view().listings[ONE]} == {
        f"f02-0_0-1-2_{at(2)}.parquet",
        f"f03-0_0-1-2_{at(3)}.parquet",
    }


def test_archived_instants_count(tracked: Tracked) -> None:
    """The data timeline and the metadata table's forget their oldest instants, after a compaction of the latter."""
    tracked.write(at(3), ONE)
    names = {path: {one.name: one.bytes for one in entries} for path, entries in tracked.view().listings.items()}
    tracked.metadata.compact(at(4) if tracked.builder.version >= 8 else f"{at(3)}001", names, completion=at(5))
    tracked.builder.archive(at(2))
    for instant in (at(2), "0000"):
        tracked.metadata.remove(instant)
    tracked.write(at(6), TWO)

    assert tracked.view("directory").slices(TWO) == tracked.view().slices(TWO)
    assert {one.base_instant for one in tracked.view().latest_slices(ONE)} == {at(2), at(3)}


def _behind(tracked: Tracked) -> None:
    tracked.write(at(3), ONE, is_followed=False)


def _ahead(tracked: Tracked) -> None:
    tracked.metadata.write(at(9), {ONE: {"x": 1}}, completion=at(9))


def _without_a_log(tracked: Tracked) -> None:
    tracked.builder.remove(tracked.log)


def _without_the_hfile(tracked: Tracked) -> None:
    names = tracked.builder.storage.names(FILES)
    tracked.builder.remove(f"{FILES}/{next(name for name in names if name.endswith('.hfile'))}")


def _without_its_timeline(tracked: Tracked) -> None:
    for name in tracked.builder.storage.names(tracked.metadata.timeline_folder):
        tracked.builder.remove(f"{tracked.metadata.timeline_folder}/{name}")


def _with_a_cut_log(tracked: Tracked) -> None:
    tracked.builder.put(tracked.log, tracked.builder.storage.read_bytes(tracked.log)[:-9])


def _with_a_flipped_bit(tracked: Tracked) -> None:
    data = bytearray(tracked.builder.storage.read_bytes(tracked.log))
    data[data.index(b"DATABLK*") + 60] ^= 1
    tracked.builder.put(tracked.log, bytes(data))


def _with_a_log_compaction(tracked: Tracked) -> None:
    header = {HeaderKey.INSTANT_TIME: at(2), HeaderKey.COMPACTED_BLOCK_TIMES: at(2)}
    tracked.builder.put(tracked.log, log_block(BlockType.HFILE_DATA, header=header))


def _with_deleted_records(tracked: Tracked) -> None:
    block = log_block(BlockType.DELETE, header={HeaderKey.INSTANT_TIME: at(2)}, content=b"\x00\x00\x00\x03 a record")
    tracked.builder.put(tracked.log, tracked.builder.storage.read_bytes(tracked.log) + block)


def _with_an_unlisted_partition(tracked: Tracked) -> None:
    block = data_block(at(2), [("day=1", {"f": 1})])
    tracked.builder.put(tracked.log, tracked.builder.storage.read_bytes(tracked.log) + block)


BROKEN: dict[str, tuple[Callable[[Tracked], None], type[Exception], str]] = {
    "behind": (_behind, MetadataTableError, "is behind: 1 completed instants"),
    "ahead": (_ahead, MetadataTableError, f"is ahead: its delta commit {at(9)}"),
    "no log": (_without_a_log, MetadataTableError, f"lacks the log block of its delta commit {at(2)}"),
    "no HFile": (_without_the_hfile, MetadataTableError, "has no base file of a completed instant"),
    "no timeline": (_without_its_timeline, MetadataTableError, "the metadata table has no "),
    "cut log": (_with_a_cut_log, CorruptTableError, "the log block at byte 0"),
    "flipped bit": (_with_a_flipped_bit, CorruptTableError, "the HFile has a broken block"),
    "log compaction": (_with_a_log_compaction, MetadataTableError, "that log compaction wrote"),
    "deleted records": (_with_deleted_records, MetadataTableError, "a log block of the type DELETE"),
    "unlisted partition": (_with_an_unlisted_partition, CorruptTableError, "'day=1' has files and is not in"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_an_untrusted_metadata_table_is_refused_and_auto_takes_the_directories(
    tracked: Tracked, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Asked for by name it raises; ``auto`` lists the directories, warns, and the statistics say why."""
    harm, error, message = BROKEN[case]
    harm(tracked)

    with pytest.raises(error, match=message):
        tracked.view()
    with caplog.at_level(logging.WARNING):
        statistics = gather_statistics(tracked.builder.open(), now=NOW)
    assert statistics.partitions == gather_statistics(tracked.builder.open(), now=NOW, listing="directory").partitions
    assert "; listed by directory, because " in statistics.reason
    assert message in statistics.reason
    assert message in caplog.text
    assert tracked.view("auto").way == "directory"


def test_a_delta_commit_that_wrote_no_file_needs_no_log_block(tracked: Tracked) -> None:
    """A clean that found nothing leaves an empty one."""
    tracked.metadata.instant(at(3), completion=at(3), wrote=False)
    tracked.builder.instant(at(3), "clean", {}, completion=at(3))

    assert tracked.view().partition_paths == (ONE, TWO)


def test_what_was_there_before_the_metadata_table_need_not_be_followed(tmp_path: Path, version: int) -> None:
    """It was made from the disk, and follows from then on."""
    builder = TableBuilder(base_path=f"memory://{tmp_path.name}/trips", version=version)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    tracked = Tracked.__new__(Tracked)
    tracked.builder, tracked.metadata = builder, MetadataWriter(storage=builder.storage, version=version)
    tracked.metadata.make({ONE: {f"f1-0_0-1-2_{at(1)}.parquet": 10}}, completion=at(2))
    builder.put(
        ".hoodie/hoodie.properties",
        builder.storage.read_bytes(".hoodie/hoodie.properties") + b"hoodie.table.metadata.partitions=files\n",
    )
    tracked.write(at(3), TWO)

    assert tracked.view().slices(ONE) == tracked.view("directory").slices(ONE)
    assert tracked.view("auto").way == "metadata"


@pytest.mark.parametrize(
    "settings",
    [{}, {"hoodie.table.metadata.partitions": "files", "hoodie.table.metadata.partitions.inflight": "files"}],
)
def test_settings_that_do_not_vouch_for_the_metadata_table_mean_directories(
    tmp_path: Path, settings: Mapping[str, str]
) -> None:
    """Without ``files`` among its partitions, or while somebody builds it, nothing of it is read."""
    builder = TableBuilder(base_path=f"memory://{tmp_path.name}/trips", settings=settings)
    builder.commit(at(1), {ONE: [("f1-0", 10)]})
    table = builder.open()

    assert table.view(table.timeline()).way == "directory"
    with pytest.raises(MetadataTableError, match="list it by directory"):
        table.view(table.timeline(), listing="metadata")


def test_auto_lists_directories_on_a_local_disk(tmp_path: Path) -> None:
    """A listing costs nothing there."""
    tracked = Tracked(str(tmp_path / "trips"), version=9)

    assert (tracked.view("auto").way, tracked.view("metadata").way) == ("directory", "metadata")


def test_auto_lists_the_directories_of_a_few_partitions(tmp_path: Path) -> None:
    """The metadata table is one piece: for a few partitions their directories are cheaper."""
    names = tuple(f"day={number:04}" for number in range(FEW_PARTITIONS + 1))
    tracked = Tracked(f"memory://{tmp_path.name}/trips", version=9, partitions=names)
    table = tracked.builder.open()
    timeline = table.timeline()
    ways = [table.view(timeline, partitions=names[:count]).way for count in (FEW_PARTITIONS, FEW_PARTITIONS + 1)]

    assert ways == ["directory", "metadata"]


def test_an_unknown_way_is_refused(tracked: Tracked) -> None:
    """The message tells the three that there are."""
    with pytest.raises(
        InvalidSettingError, match="listing 'mdt' is unknown; expected one of auto, directory, metadata"
    ):
        tracked.view("mdt")


def test_archived_log_files_are_dated_as_by_directory(tmp_path: Path) -> None:
    """Version 6 dates them by their modification times, which only the directories have."""
    settings = {"hoodie.table.metadata.partitions": "files"}
    builder = TableBuilder(
        base_path=f"memory://{tmp_path.name}/trips", version=6, merge_on_read=True, settings=settings
    )
    metadata = MetadataWriter(storage=builder.storage, version=6)
    base = f"f1-0_0-1-2_{at(1)}.parquet"
    log = f".f1-0_{at(1)}.log.1_0-1-2"
    builder.base_file(ONE, "f1-0", at(1), 10)
    builder.log_file(ONE, "f1-0", instant=at(2), base_instant=at(1), size=5)
    metadata.make({ONE: {base: 10, log: 5}}, completion="")
    later = "99991231235959000"
    builder.commit(later, {TWO: [("f2-0", 7)]})
    metadata.write(later, {TWO: {f"f2-0_0-1-2_{later}.parquet": 7}}, completion="")
    table = builder.open()
    rows = [gather_statistics(table, now=NOW, listing=way).partitions for way in ("directory", "metadata")]

    assert rows[0] == rows[1]
    assert rows[0][0].last_modified_instant < later


def test_instants_of_the_metadata_table_are_not_opened_without_need(tracked: Tracked) -> None:
    """Their names tell all, unless a log block is missing: a broken one is not even noticed."""
    name = next(
        one for one in tracked.builder.storage.names(tracked.metadata.timeline_folder) if one.endswith(".deltacommit")
    )
    tracked.builder.put(f"{tracked.metadata.timeline_folder}/{name}", json.dumps([]).encode())

    assert tracked.view().partition_paths == (ONE, TWO)
