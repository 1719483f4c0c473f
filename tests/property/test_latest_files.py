"""The short way to the latest files of a partition finds what assembling its slices finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.storage.entries import Entry, Listing
from airflow_hudi_maint.core.storage.latest_files import LatestFiles, LatestFilesReader
from airflow_hudi_maint.core.storage.slices import FileHistory, assemble_slices

INSTANTS = [f"202611301000{second:02}000" for second in range(8)]
PARTITIONS = ["", "day=1", "day=2"]
FILE_IDS = ["f1-0", "f2-0", "f3-0"]

instants = st.sampled_from(INSTANTS)
groups = st.tuples(st.sampled_from(PARTITIONS), st.sampled_from(FILE_IDS))
base_names = st.builds(
    "{}_{}_{}.{}".format,
    st.sampled_from([*FILE_IDS, "", ".f4-0", "f_5"]),
    st.sampled_from(["0-1-2", "3-1-2", "0-1", "x", "٣-1-2"]),
    st.one_of(instants, instants.map(lambda one: one[:14]), st.just("2026113010000")),
    st.sampled_from(["parquet", "orc", "hfile", "txt", "parquet.crc"]),
)
log_names = st.builds(
    ".{}_{}.{}.{}{}".format,
    st.sampled_from(FILE_IDS),
    instants,
    st.sampled_from(["log", "archive", "parquet"]),
    st.integers(1, 3),
    st.sampled_from(["", "_0-1-2", "_0-1-2.cdc", "_x"]),
)
names = st.one_of(base_names, st.sampled_from([".hoodie_partition_metadata", "notes", "_SUCCESS", ".x.crc"]))


@st.composite
def listings(draw: st.DrawFn) -> Listing:
    """A directory: mostly base files, sometimes log files among them, sometimes a directory of such a name."""
    some = st.one_of(names, log_names) if draw(st.booleans()) else names
    return [
        Entry(name, draw(st.integers(0, 9)) == 0, draw(st.integers(0, 5)), None)
        for name in draw(st.lists(some, unique=True, max_size=20))
    ]


@st.composite
def histories(draw: st.DrawFn) -> FileHistory:
    """Any mixture of complete, archived and replaced, with pending compactions now and then."""
    completed = frozenset(draw(st.sets(instants)))
    compactions = draw(st.dictionaries(groups, instants, max_size=2)) if draw(st.booleans()) else {}
    return FileHistory(
        committed=completed | frozenset(compactions.values()),
        timeline_start=draw(instants),
        has_completion_times=draw(st.booleans()),
        completion_times={one: one for one in completed},
        replaced=frozenset(draw(st.sets(groups, max_size=3))),
        compactions=compactions,
        holders=compactions,
    )


def _ordered(files: LatestFiles | None) -> LatestFiles | None:
    return files and files._replace(bases=sorted(files.bases))


@given(path=st.sampled_from(PARTITIONS), listing=listings(), history=histories())
def test_both_ways_find_the_same_files(path: str, listing: Listing, history: FileHistory) -> None:
    """Whatever lies in the directory, and in whatever order."""
    slices = assemble_slices(path, listing, history=history).merged
    assert _ordered(LatestFilesReader(history).read(path, listing)) == _ordered(LatestFiles.of(slices))


@given(listing=listings())
def test_order_of_a_listing_does_not_matter(listing: Listing) -> None:
    """A directory is listed in no order."""
    history = FileHistory(
        committed=frozenset(INSTANTS),
        timeline_start=INSTANTS[0],
        has_completion_times=True,
        completion_times={},
        replaced=frozenset(),
        compactions={},
        holders={},
    )
    reader = LatestFilesReader(history)
    assert _ordered(reader.read("day=1", listing)) == _ordered(reader.read("day=1", listing[::-1]))
