from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError, DocumentNotFoundError, InvalidSettingError
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.filesystem import Storage
from tests.unit.core.storage.builders import at


@pytest.fixture(params=["file", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "trips") if request.param == "file" else f"memory://{tmp_path.name}/trips"


@pytest.fixture
def documents(root: str) -> DocumentStore:
    return DocumentStore(Storage.open(root))


def test_document_reads_back_by_the_path_that_was_returned(documents: DocumentStore, root: str) -> None:
    """Writing returns the full path, and both it and the path within the location read the document."""
    path = documents.write("plans", name="20261130053458356-expiry.json", document={"kind": "expiry"})
    assert path == f"{root}/.hoodie/.airflow_hudi_maint/plans/20261130053458356-expiry.json"
    assert documents.path("plans", name="20261130053458356-expiry.json") == path
    assert documents.read(path) == {"kind": "expiry"}
    assert documents.read("plans/20261130053458356-expiry.json") == {"kind": "expiry"}


def test_local_document_is_read_by_either_spelling(tmp_path: Path) -> None:
    """A plan's path may be given as a URL, whichever way the table was."""
    documents = DocumentStore(Storage.open(f"file://{tmp_path}"))
    path = documents.write("plans", name="20261130053458356-expiry.json", document={"a": 1})
    assert path == f"{tmp_path}/.hoodie/.airflow_hudi_maint/plans/20261130053458356-expiry.json"
    for spelling in (path, f"file://{path}", f"file:{path}"):
        assert documents.read(spelling) == {"a": 1}


def test_path_outside_the_location_is_refused(documents: DocumentStore, tmp_path: Path) -> None:
    """Only documents of this location are read."""
    for path in (f"{tmp_path}/x.json", f"file://{tmp_path}/x.json", "s3://bucket/x.json", "plans/../../x.json"):
        with pytest.raises(DocumentNotFoundError, match="does not lie in"):
            documents.read(path)


def test_kept_documents_have_names_of_their_own(documents: DocumentStore) -> None:
    """Two documents of one stem do not replace each other, the same one is written once, and the newest stay."""
    first, second = ({"chosen": [number]} for number in (1, 2))
    paths = {documents.write_kept("plans", stem=f"{at(1)}-expiry", document=one) for one in (first, second, first)}
    assert len(paths) == 2
    assert sorted(map(str, (first, second))) == sorted(str(documents.read(path)) for path in paths)
    newest = documents.write_kept("plans", stem=f"{at(2)}-expiry", document=first, keep=1)
    assert [documents.path("plans", name=name) for name in documents.names("plans")] == [newest]


def test_location_outside_the_table(root: str) -> None:
    """Documents may lie at a location of their own."""
    documents = DocumentStore.open(f"{root}-documents/", storage_options={})
    path = documents.write("reports", name="20261130053458356-expire.json", document={"a": 1})
    assert path == f"{root}-documents/reports/20261130053458356-expire.json"
    assert documents.read(path) == {"a": 1}


def test_statistics_are_compact_and_the_rest_is_for_people(documents: DocumentStore) -> None:
    """Plans and reports are indented and spell out their characters; statistics are on one line of ASCII."""
    document = {"partition": "city=Zürich", "bytes": [1, 2]}
    statistics = documents.write("statistics", name="20261130053458356.json", document=document)  # type: ignore[arg-type]
    plan = documents.write("plans", name="20261130053458356-expiry.json", document=document)  # type: ignore[arg-type]
    folder = ".hoodie/.airflow_hudi_maint"
    raw = documents.storage.read_bytes(f"{folder}/statistics/20261130053458356.json")
    assert raw == b'{"partition":"city=Z\\u00fcrich","bytes":[1,2]}'
    raw = documents.storage.read_bytes(f"{folder}/plans/20261130053458356-expiry.json")
    assert raw == (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
    assert documents.read(statistics) == documents.read(plan) == document


def test_name_that_is_no_unicode_survives(documents: DocumentStore) -> None:
    """A local directory may have a name that is no UTF-8; Python carries it in lone surrogates, and so does JSON."""
    for folder in ("statistics", "plans"):
        path = documents.write(folder, name="20261130053458356.json", document={"partition": "day=\udcff"})  # type: ignore[arg-type]
        assert documents.read(path) == {"partition": "day=\udcff"}


def test_names_come_oldest_first(documents: DocumentStore) -> None:
    """Names come oldest instant first, and a suffix picks the kind; instants of seconds and of milliseconds mix."""
    assert documents.names("plans") == ()
    for name in ("20261130053459-expiry.json", "20261130053458356-expiry.json", "20261201000000000-clustering.json"):
        documents.write("plans", name=name, document={})
    documents.storage.write_atomic(f"{documents.folder}/plans/.20261202.json.tmp", b"")
    assert documents.names("plans", suffix="-expiry.json") == (
        "20261130053458356-expiry.json",
        "20261130053459-expiry.json",
    )


def test_broken_document_is_named(documents: DocumentStore) -> None:
    """A file that is no JSON is an error with its full path; a missing one is FileNotFoundError."""
    for broken in (b'{"kind": ', b"\xff\xfe\x00", b"[" * 100_000):
        documents.storage.write_atomic(f"{documents.folder}/plans/x.json", broken)
        with pytest.raises(CorruptTableError, match=r"trips/\.hoodie/\.airflow_hudi_maint/plans/x\.json is no JSON"):
            documents.read("plans/x.json")
    with pytest.raises(FileNotFoundError):
        documents.read("plans/y.json")


@pytest.mark.parametrize("name", ["../x.json", "a/b.json", ".x.json", "x.txt", ""])
def test_name_must_be_one_of_a_json_file(documents: DocumentStore, name: str) -> None:
    """A name cannot lead out of its folder."""
    with pytest.raises(InvalidSettingError, match="cannot name a document"):
        documents.write("plans", name=name, document={})


def test_unknown_folder_is_refused(documents: DocumentStore) -> None:
    """There are five folders."""
    with pytest.raises(InvalidSettingError, match="'timeline' is no folder of documents; expected one of statistics"):
        documents.write("timeline", name="x.json", document={})  # type: ignore[arg-type]


def test_deleting_twice_is_no_error(documents: DocumentStore) -> None:
    """Somebody else may have pruned a document already."""
    documents.write("plans", name="x.json", document={})
    documents.delete("plans", name="x.json")
    documents.delete("plans", name="x.json")
    assert documents.names("plans") == ()


def test_two_writers_leave_one_whole_document(documents: DocumentStore) -> None:
    """Whoever writes last wins; what is read is always one of the two documents."""
    values = ("a" * 50_000, "b" * 70_000)
    threads = [
        threading.Thread(target=lambda value=value: documents.write("plans", name="x.json", document={"v": value}))
        for value in values * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert documents.read("plans/x.json") in [{"v": value} for value in values]
    assert documents.names("plans") == ("x.json",)


def test_the_document_just_written_is_never_pruned(tmp_path: Path) -> None:
    """Names of one instant sort by digest, so age counts: each of ten writes, three kept, is there at once."""
    documents = DocumentStore.open(str(tmp_path))

    for number in range(10):
        path = documents.write_kept("plans", stem="20261130100000000-expiry", document={"number": number}, keep=3)
        assert {"number": number} == documents.read(path)

    assert 3 == len(documents.names("plans"))


def test_who_only_looks_leaves_nothing_behind(documents: DocumentStore) -> None:
    """The paths are those that documents would have; what is there stays, and is read."""
    kept = documents.write("statistics", name="20261130000000000.json", document={"a": 1})
    looking = documents.reading_only()
    assert looking.write("statistics", name="20261130000000001.json", document={}).endswith("/20261130000000001.json")
    looking.write_kept("plans", stem="20261130000000001-expiry", document={})
    looking.write_page("reports", name="20261130000000001.html", text="")
    looking.delete("statistics", name="20261130000000000.json")
    assert (looking.names("statistics"), looking.names("plans")) == (("20261130000000000.json",), ())
    assert looking.names("reports", suffix=".html") == ()
    assert looking.read(kept) == {"a": 1}
