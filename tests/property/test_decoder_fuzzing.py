"""Whatever bytes the decoders are given, they answer or raise an error of ours; nothing hangs or takes much memory."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.errors import HudiMaintError
from airflow_hudi_maint.core.model.instant import Action, Instant, State, parse_instant_file_name
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage import instants, properties, service_records
from airflow_hudi_maint.core.storage.archive_history import HistoryArchive
from airflow_hudi_maint.core.storage.archive_logs import LogArchive
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.log_blocks import read_log_blocks, read_records
from tests.unit.core.storage.archiving import META_ENTRY, history_file, log_file

_MOST_BYTES = 24 * 1024 * 1024
_TIME = "20261130100001000"
_INSTANT = Instant(
    requested_time=_TIME, action=Action.COMMIT, state=State.COMPLETED, completion_time=None, file_name="x"
)
_ENTRY = {"commitTime": _TIME, "actionType": "commit", "actionState": "COMPLETED", "stateTransitionTime": _TIME}
_COMMIT = {
    "partitionToWriteStats": {"a": [{"fileId": "f", "path": "a/f.parquet"}]},
    "partitionToReplaceFileIds": {"b": ["g"]},
    "operationType": "UPSERT",
}
_LOG_FILE = log_file([_ENTRY, {**_ENTRY, "hoodieCommitMetadata": _COMMIT}])
_PROPERTIES = b"#Updated\nhoodie.table.name=t\nhoodie.table.version=9\nhoodie.table.checksum=2611013043\n"


def _container(record: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(dict(META_ENTRY)), [dict(record)], codec="null")
    return buffer.getvalue()


_CONTAINER = _container({**_ENTRY, "hoodieCommitMetadata": _COMMIT})
_HISTORY_FILE = history_file(
    [{"instantTime": _TIME, "completionTime": _TIME, "action": "commit", "metadata": _CONTAINER, "plan": None}]
)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """The bytes with some of them changed to any others or to a large number, and perhaps the end cut off."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 1))
        new = draw(st.one_of(st.binary(min_size=1, max_size=9), st.just((2**60).to_bytes(8)), st.just(b"\x7f" * 8)))
        data[at : at + len(new)] = new
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


def around(whole: bytes) -> st.SearchStrategy[bytes]:
    """Damaged forms of a whole file, and noise that starts as it does."""
    return st.one_of(damaged(whole), st.binary(max_size=200).map(lambda noise: whole[:6] + noise))


@contextmanager
def only_our_errors() -> Iterator[None]:
    """Pass if what is inside ends, or raises an error of ours, within the memory that is allowed."""
    tracemalloc.start()
    try:
        yield
    except HudiMaintError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < _MOST_BYTES


@given(data=st.one_of(around(_CONTAINER), around(json.dumps(_COMMIT).encode()), st.binary(max_size=100)))
def test_instant_files(data: bytes) -> None:
    """JSON and Avro of instant files, damaged or of another encoding."""
    with only_our_errors():
        instants.commit_metadata(instants.decode(data, name="x"), name="x")


@given(data=around(_LOG_FILE))
def test_log_blocks(data: bytes) -> None:
    """Blocks of Hudi's log format and the records in them."""
    with only_our_errors():
        for block in read_log_blocks(data, name="x"):
            list(read_records(block.content, name="x"))


@given(data=around(_LOG_FILE))
def test_archived_logs(data: bytes) -> None:
    """Archive files of timeline layout 1, down to the commits in them."""
    storage = Storage.open("memory://fuzzed-logs/t")
    storage.write_atomic(".hoodie/archived/.commits_.archive.1", data)
    with only_our_errors():
        for one in LogArchive(storage=storage, folder=".hoodie/archived").instants():
            one.commit_metadata()
            one.plan()


@given(
    manifest=around(json.dumps({"files": [{"fileName": f"{_TIME}_{_TIME}_0.parquet", "fileLen": 9}]}).encode()),
    version=st.one_of(st.just(b"1"), st.binary(max_size=30)),
    metadata=around(_CONTAINER),
)
def test_archived_history(manifest: bytes, version: bytes, metadata: bytes) -> None:
    """Manifests, version files and rows of timeline layout 2, down to the commits in them."""
    storage = Storage.open("memory://fuzzed-history/t")
    row = {"instantTime": _TIME, "completionTime": _TIME, "action": "commit", "metadata": metadata, "plan": metadata}
    storage.write_atomic(f"h/{_TIME}_{_TIME}_0.parquet", history_file([row]))
    storage.write_atomic("h/manifest_1", manifest)
    storage.write_atomic("h/_version_", version)
    with only_our_errors():
        for one in HistoryArchive(storage=storage, folder="h").instants():
            one.commit_metadata()
            one.plan()


@given(cut=st.integers(0, len(_HISTORY_FILE) - 1))
def test_cut_history_files(cut: int) -> None:
    """A history file that is cut anywhere is an error of ours, never one of Parquet's."""
    storage = Storage.open("memory://cut-history/t")
    storage.write_atomic(f"h/{_TIME}_{_TIME}_0.parquet", _HISTORY_FILE[:cut])
    entry = {"fileName": f"{_TIME}_{_TIME}_0.parquet", "fileLen": cut}
    storage.write_atomic("h/manifest_1", json.dumps({"files": [entry]}).encode())
    with pytest.raises(HudiMaintError, match=f"{_TIME}_{_TIME}_0.parquet is no history file"):
        HistoryArchive(storage=storage, folder="h").instants()


_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)
_FIELDS = (
    *("partitionToWriteStats", "partitionToReplaceFileIds", "extraMetadata", "operationType", "clusteringPlan"),
    *("inputGroups", "operations", "earliestInstantToRetain", "policy", "filesToBeDeletedPerPartition"),
    *("filePathsToBeDeletedPerPartition", "partitionsToBeDeleted", "partitionMetadata", "earliestCommitToRetain"),
    *("instantToRollback", "RollbackRequests", "commitsRollback", "instantsToRollback", "hoodieRestoreMetadata"),
    *("savepointedBy", "savepointedAt", "comments", "indexPartitionInfos"),
)
_READERS: tuple[Callable[[Mapping[str, Any]], object], ...] = (
    lambda record: instants.commit_metadata(record, name="x"),
    lambda record: instants.clustering_plan(record, instant=_INSTANT, name="x"),
    lambda record: instants.compaction_plan(record, instant=_INSTANT, kind=instants.PlanKind.COMPACTION, name="x"),
    lambda record: service_records.clean_plan(record, name="x"),
    lambda record: service_records.clean_metadata(record, name="x"),
    lambda record: service_records.rollback_plan(record, name="x"),
    lambda record: service_records.rollback_metadata(record, name="x"),
    lambda record: service_records.restore_plan(record, name="x"),
    lambda record: service_records.restore_metadata(record, name="x"),
    lambda record: service_records.savepoint_metadata(record, name="x"),
    lambda record: service_records.index_plan(record, name="x"),
)


@given(record=st.fixed_dictionaries(dict.fromkeys(_FIELDS, _VALUES)))
def test_records_of_any_shape(record: dict[str, Any]) -> None:
    """JSON of any shape in the fields that are read, and in the plan inside a plan."""
    for read in _READERS:
        for one in (record, {"clusteringPlan": record}):
            with only_our_errors():
                read(one)


@given(data=around(_PROPERTIES))
def test_properties(data: bytes) -> None:
    """The properties of a table."""
    storage = Storage.open("memory://fuzzed-properties/t")
    storage.write_atomic(".hoodie/hoodie.properties", data)
    with only_our_errors():
        properties.load_properties(storage)


@given(
    names=st.lists(
        st.one_of(
            st.text(max_size=40),
            st.from_regex(r"\d{13,21}(_\d{13,18})?(\.[a-z]{1,12}){0,3}", fullmatch=True),
            st.tuples(
                st.sampled_from([_TIME, _TIME[:14], f"{_TIME}001", "0" * 17, "9" * 17]),
                st.sampled_from(["", f"_{_TIME}"]),
                st.sampled_from(["", *(f".{action}" for action in Action)]),
                st.sampled_from(["", ".requested", ".inflight", ".tmp"]),
            ).map("".join),
        ),
        max_size=8,
    )
)
def test_instant_file_names(names: list[str]) -> None:
    """Any names in a timeline folder make a timeline; those that are instants keep their digits."""
    parsed = [one for one in map(parse_instant_file_name, names) if one is not None]
    timeline = Timeline.of(parsed)
    assert len(timeline) <= len(parsed)
    for one in parsed:
        assert one.file_name.startswith(one.requested_time)
        assert one.requested_time.isascii()
