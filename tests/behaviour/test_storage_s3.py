"""What is particular to S3: pages, prefixes for folders, faults that it deals out, and the price of each request."""

from __future__ import annotations

import io
import logging
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import StorageAccessError, StorageError
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.footers import max_commit_time
from airflow_hudi_maint.core.storage.request_count import RequestTotals
from airflow_hudi_maint.core.storage.retries import RetryPolicy
from airflow_hudi_maint.core.storage.statistics import gather_statistics
from tests.behaviour.conftest import AT_ONCE, Place
from tests.s3_server import S3Server
from tests.unit.core.storage.builders import TableBuilder, at, parquet

pytestmark = pytest.mark.s3


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return s3.new_bucket()


@pytest.fixture
def storage(s3: S3Server, bucket: str) -> Storage:
    found = Storage.open(f"s3://{bucket}/lake", storage_options=s3.storage_options, retry=AT_ONCE)
    s3.forget()
    return found


def test_a_listing_of_several_pages_is_whole_and_each_page_counts(s3: S3Server, bucket: str, storage: Storage) -> None:
    """S3 tells at most 1,000 names at a time, files and folders together."""
    s3.put_empty(bucket, [f"lake/day/{number:05}" for number in range(1050)])
    s3.put_empty(bucket, [f"lake/day/{number:05}/below" for number in range(1050, 1150)])

    entries = storage.list("day")
    assert [f"{number:05}" for number in range(1150)] == sorted(entry.name for entry in entries)
    assert 100 == sum(entry.is_directory for entry in entries)
    assert 2 == storage.requests.lists == sum(one.is_listing for one in s3.asked())


def test_our_counts_are_those_of_the_server(s3: S3Server, storage: Storage) -> None:
    """No request is hidden in the client: two of the reads asked for a size, to seek in a file and to delete it."""
    storage.write_atomic("a/file", b"12345")
    storage.write_atomic("b/file", b"1")
    storage.list_many(["a", "b", "c"])
    storage.read_many(["a/file", "b/file"])
    with storage.open_input("a/file") as file:
        file.seek(-2, io.SEEK_END)
        assert b"45" == file.read()
    storage.delete("a/file")

    assert RequestTotals(lists=3, reads=5, writes=3) == storage.requests.totals
    by_verb = [(one.verb, one.is_listing) for one in s3.asked()]
    assert [("GET", False)] * 3 == [one for one in by_verb if one == ("GET", False)]
    assert 11 == len(by_verb)
    assert 2 == by_verb.count(("HEAD", False))
    assert 2 == by_verb.count(("PUT", False))
    assert 1 == by_verb.count(("DELETE", False))


def test_a_folder_is_a_prefix(s3: S3Server, bucket: str, storage: Storage) -> None:
    """The empty objects that consoles and Hadoop put in the place of folders are no entries of their own."""
    s3.put(f"{bucket}/lake/day/")
    s3.put(f"{bucket}/lake/day/file", b"1")
    s3.put(f"{bucket}/lake/day_%24folder%24")
    s3.put(f"{bucket}/lake/empty/")

    assert ["file"] == [entry.name for entry in storage.list("day")]
    assert [] == storage.list("empty")
    assert {("day", True), ("empty", True)} == {entry[:2] for entry in storage.list("")}
    with pytest.raises(FileNotFoundError):
        storage.read_bytes("day")


@pytest.mark.parametrize("key", ["lake//file", "lake/day=1//file", "lake/day=1//"])
def test_a_folder_without_a_name_is_passed_over(s3: S3Server, bucket: str, storage: Storage, key: str) -> None:
    """Two slashes in a row are a key like any other on S3; to walk down them would never end."""
    builder = TableBuilder(base_path=f"s3://{bucket}/lake", storage_options=s3.storage_options)
    builder.commit(at(1), {"day=1": [("f1-0", 10)], "day=10": [("f2-0", 20)]})
    s3.put(f"{bucket}/{key}", b"1")

    assert {".hoodie": True, "day=1": True, "day=10": True} == {one.name: one.is_directory for one in storage.list("")}
    rows = gather_statistics(builder.open(), now=datetime(2026, 12, 1, tzinfo=UTC)).partitions
    assert [("day=1", 10), ("day=10", 20)] == [(row.partition_path, row.total_bytes) for row in rows]


def test_an_empty_bucket_is_an_empty_folder(s3: S3Server, bucket: str) -> None:
    """The root of a bucket is there whenever the bucket is."""
    assert [] == Storage.open(f"s3://{bucket}", storage_options=s3.storage_options).list("")
    with pytest.raises(FileNotFoundError, match="s3://no-such-bucket does not exist"):
        Storage.open("s3://no-such-bucket", storage_options=s3.storage_options).list("")


def test_s3a_is_another_spelling(s3: S3Server, bucket: str) -> None:
    """Hadoop's scheme opens the same table."""
    storage = Storage.open(f"s3a://{bucket}/lake", storage_options=s3.storage_options)
    storage.write_atomic("file", b"1")

    assert ("file",) == storage.names("")


@pytest.mark.parametrize(
    ("status", "code"),
    [(503, "SlowDown"), (500, "InternalError"), (502, "BadGateway"), (429, "TooManyRequests"), (0, "")],
    ids=["SlowDown", "500", "502", "429", "connection closed"],
)
def test_a_failure_that_passes_is_tried_again(s3: S3Server, storage: Storage, status: int, code: str) -> None:
    """Listing, reading, writing and deleting each succeed at the third try, and every try counts."""
    acts = (
        lambda: storage.write_atomic("file", b"content"),
        lambda: storage.read_bytes("file"),
        lambda: storage.list(""),
        lambda: storage.delete("file"),
    )
    for act in acts:
        s3.forget()
        s3.fail(status=status, code=code, times=2)
        before = storage.requests.totals
        act()
        between = storage.requests.totals - before
        assert 2 == between.retries
        assert len(s3.asked()) == between.lists + between.reads + between.writes
    with pytest.raises(FileNotFoundError):
        storage.read_bytes("file")


def test_one_page_of_many_is_tried_again_alone(s3: S3Server, bucket: str, storage: Storage) -> None:
    """What was listed before a failure is not listed again."""
    s3.put_empty(bucket, [f"lake/day/{number:05}" for number in range(1050)])
    s3.fail(status=503, code="SlowDown", within="continuation-token")

    assert 1050 == len(storage.list("day"))
    assert (3, 1) == (storage.requests.lists, storage.requests.retries)


def test_the_tries_have_an_end(s3: S3Server, bucket: str) -> None:
    """Waits double up to the longest, and the error says what S3 said, and to try again."""
    waits: list[float] = []
    policy = RetryPolicy(
        attempts=4, first_wait_seconds=1, longest_wait_seconds=3, jitter=lambda: 0.5, sleep=waits.append
    )
    storage = Storage.open(f"s3://{bucket}", storage_options=s3.storage_options, retry=policy)
    s3.fail(status=503, code="SlowDown", times=99)

    with pytest.raises(StorageError, match=rf"Storage failed at s3://{bucket}/file: .*try again"):
        storage.read_bytes("file")
    assert [1, 2, 3] == waits
    assert (4, 3) == (storage.requests.reads, storage.requests.retries)


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (403, "AccessDenied", StorageAccessError),
        (403, "InvalidAccessKeyId", StorageAccessError),
        (403, "SignatureDoesNotMatch", StorageAccessError),
        (404, "NoSuchKey", FileNotFoundError),
        (400, "InvalidRequest", StorageError),
        (400, "ExpiredToken", StorageError),
    ],
)
def test_a_failure_that_stays_is_not_tried_again(
    s3: S3Server, storage: Storage, status: int, code: str, error: type[Exception]
) -> None:
    """Asked again, S3 would say the same. Credentials that ran out are for the task's next try, with fresh ones."""
    s3.fail(status=status, code=code, times=99)

    for act in (lambda: storage.read_bytes("file"), lambda: storage.list("day")):
        with pytest.raises(error) as caught:
            act()
        assert type(caught.value) is error
    assert 0 == storage.requests.retries
    assert 2 == len(s3.asked())


def test_a_store_that_knows_no_conditional_put_is_asked_first(s3: S3Server, storage: Storage) -> None:
    """Some of the stores like S3 refuse the condition: the file is looked for, and then written."""
    s3.fail(status=501, code="NotImplemented", times=1)
    assert storage.write_new("a/file", b"one")
    s3.fail(status=501, code="NotImplemented", times=1)
    assert not storage.write_new("a/file", b"two")

    assert b"one" == storage.read_bytes("a/file")


def test_a_deletion_whose_answer_was_lost_has_happened(s3: S3Server, storage: Storage) -> None:
    """The second try finds nothing to delete: that is what was wanted."""
    storage.write_atomic("file", b"1")
    deleted = threading.Event()
    remove = storage._remote.delete  # noqa: SLF001 only here can an answer be lost after the server acted

    def lossy(full: str) -> None:
        remove(full)
        if not deleted.is_set():
            deleted.set()
            raise ConnectionResetError

    storage._remote.delete = lossy  # type: ignore[method-assign]  # noqa: SLF001
    storage.delete("file")

    assert 1 == storage.requests.retries
    with pytest.raises(FileNotFoundError):
        storage.delete("file")


def test_a_footer_is_read_without_the_file(s3: S3Server, storage: Storage) -> None:
    """Of a file of five megabytes the last 512 KiB are fetched, by one request after one for the size."""
    plain = parquet(["20261130100000000", "20261130100100000"])
    storage.write_atomic("file.parquet", plain[:4] + bytes(5_000_000) + plain[4:])
    s3.forget()
    assert "20261130100100000" == max_commit_time(storage, path="file.parquet")

    asked = [(one.verb, one.sent_bytes) for one in s3.asked()]
    assert [("HEAD", 0), ("GET", 512 * 1024)] == asked


def test_small_reads_share_a_request(s3: S3Server, storage: Storage) -> None:
    """A decoder that takes a few bytes at a time asks S3 once for 64 KiB."""
    storage.write_atomic("file", bytes(1_000_000))
    s3.forget()
    with storage.open_input("file") as file:
        for _ in range(100):
            file.read(7)

    assert ["HEAD", "GET"] == [one.verb for one in s3.asked()]
    assert 64 * 1024 == s3.asked()[1].sent_bytes


def test_requests_run_side_by_side_and_no_more_than_allowed(s3: S3Server, bucket: str) -> None:
    """Twelve reads of 0.1 s take three rounds of four, in the four threads of one pool."""
    others = _threads()  # of tables that other tests keep
    storage = Storage.open(f"s3://{bucket}", storage_options=s3.storage_options, concurrency=4)
    names = [f"file{number}" for number in range(12)]
    s3.put_empty(bucket, names)
    storage.read_many(names)  # connections are made
    s3.delay(0.1)
    started = time.monotonic()
    storage.read_many(names)
    storage.list_many(["a", "b", "c", "d"])
    seconds = time.monotonic() - started

    assert 0.4 <= seconds < 1.2
    assert 4 == len(_threads() - others)
    storage.close()
    assert set() == _threads() - others
    assert [b""] * 2 == storage.read_many(names[:2])
    del storage
    _wait_for_none_but(others)


def test_wrong_credentials_show_nowhere(
    s3: S3Server, bucket: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Neither a repr nor an error nor a log line has a secret in it."""
    caplog.set_level(logging.DEBUG, logger="airflow_hudi_maint")
    options = {**s3.storage_options, "secret": "hush-hush", "token": "t0ken-of-tests"}
    storage = Storage.open(f"s3://{bucket}", storage_options=options, retry=AT_ONCE)
    s3.fail(status=403, code="hush-hush", times=1)
    with pytest.raises(StorageAccessError) as caught:
        storage.read_bytes("file")

    for text in (repr(storage), str(caught.value), repr(vars(storage)["root"]), caplog.text):
        assert "hush-hush" not in text
        assert "t0ken" not in text
    assert "***" in str(caught.value)


def test_a_place_is_opened_by_its_options_alone(s3_place: Place) -> None:
    """An endpoint of one's own is a storage option like any other."""
    s3_place.open("table").write_atomic("file", b"1")

    assert b"1" == s3_place.open("table").read_bytes("file")


def _threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("hudi-storage")}


def _wait_for_none_but(others: set[threading.Thread]) -> None:
    deadline = time.monotonic() + 5
    while _threads() - others and time.monotonic() < deadline:
        time.sleep(0.01)
    assert set() == _threads() - others
