"""Whatever fails while files are merged, no output is left and the inputs are untouched."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_hudi_maint.core.errors import StorageError
from airflow_hudi_maint.core.merging.parquet import ParquetMergeSettings, merge_parquet
from airflow_hudi_maint.core.storage.filesystem import Storage
from tests.unit.core.merging.parquet_files import METHODS

ROOTS = ("file", "memory")


class Countdown:
    """Fails at the request of a number, and counts them."""

    def __init__(self, at: int | None = None, *, code: int = errno.EIO) -> None:
        self.count = 0
        self._at = at
        self._code = code

    def __call__(self) -> None:
        self.count += 1
        if self.count == self._at:
            raise OSError(self._code, "told to fail")


class Failing(io.RawIOBase):
    """A file whose reads and writes count down first."""

    def __init__(self, file: BinaryIO, ask: Callable[[], None]) -> None:
        super().__init__()
        self._file = file
        self._ask = ask

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, count: int = -1, /) -> bytes:
        self._ask()
        return self._file.read(count)

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._ask()
        return self._file.write(data)


class FailingStorage(Storage):
    """Storage on which the request of a number fails, as a disk or a network does."""

    ask: Countdown

    def read_bytes(self, path: str) -> bytes:
        with self._failures(path):
            self.ask()
        return super().read_bytes(path)

    @contextmanager
    def open_input(self, path: str) -> Iterator[BinaryIO]:
        with self._failures(path):
            self.ask()

        def ask() -> None:
            with self._failures(path):
                self.ask()

        # A disk fails with the error of the system, other storage with the one of the seam.
        with super().open_input(path) as file:
            yield cast("BinaryIO", Failing(file, self.ask if self.is_local else ask))

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        with super().open_output(path) as file:
            yield cast("BinaryIO", Failing(file, self.ask))


def storage_of(kind: str, folder: Path) -> FailingStorage:
    url = str(folder) if kind == "file" else f"memory://{folder.name}"
    opened = FailingStorage.open(url)
    assert isinstance(opened, FailingStorage)
    opened.ask = Countdown()
    return opened


def fill(storage: Storage, files: int = 3) -> dict[str, bytes]:
    """Files of two row groups each, and what they hold."""
    contents = {}
    for place in range(files):
        sink = io.BytesIO()
        table = pa.table({"id": pa.array(range(place * 400, place * 400 + 400)), "name": ["some text"] * 400})
        pq.write_table(table, sink, row_group_size=200, write_page_index=True)
        contents[f"{place}.parquet"] = sink.getvalue()
        storage.write_new(f"{place}.parquet", sink.getvalue())
    return contents


def names_in(storage: Storage) -> list[str]:
    return sorted(storage.names(""))


@pytest.mark.parametrize("kind", ROOTS)
@pytest.mark.parametrize("method", METHODS)
def test_a_failure_at_any_request_leaves_the_inputs_and_nothing_else(tmp_path: Path, kind: str, method: str) -> None:
    settings = ParquetMergeSettings(method=method, row_group_rows=200, workers=2)
    with storage_of(kind, tmp_path) as storage:
        contents = fill(storage)
        storage.ask = Countdown()
        merge_parquet(storage, inputs=[*contents], output="merged", settings=settings)
        requests = storage.ask.count
        storage.delete("merged")
        assert requests > len(contents)
        for at in range(1, requests + 1):
            storage.ask = Countdown(at)
            with pytest.raises(StorageError, match="told to fail"):
                merge_parquet(storage, inputs=[*contents], output="merged", settings=settings)
            assert names_in(storage) == [*contents]
        assert {name: Storage.read_bytes(storage, name) for name in contents} == contents


@pytest.mark.parametrize("method", METHODS)
def test_a_disk_that_is_full_is_an_error_of_the_storage_that_names_the_output(tmp_path: Path, method: str) -> None:
    with storage_of("file", tmp_path) as storage:
        contents = fill(storage)
        settings = ParquetMergeSettings(method=method)
        merge_parquet(storage, inputs=[*contents], output="merged", settings=settings)
        last = storage.ask.count
        storage.delete("merged")
        storage.ask = Countdown(last, code=errno.ENOSPC)
        with pytest.raises(StorageError, match=r"/merged: OSError"):
            merge_parquet(storage, inputs=[*contents], output="merged", settings=settings)
        assert names_in(storage) == [*contents]


@pytest.mark.parametrize("method", METHODS)
def test_an_input_that_is_gone_is_an_error_that_names_it(tmp_path: Path, method: str) -> None:
    with storage_of("file", tmp_path) as storage:
        contents = fill(storage)
        with pytest.raises(FileNotFoundError, match=r"gone.parquet does not exist"):
            merge_parquet(
                storage,
                inputs=[*contents, "gone.parquet"],
                output="merged",
                settings=ParquetMergeSettings(method=method),
            )
        assert names_in(storage) == [*contents]


def test_a_disk_that_fails_within_a_large_file_does_not_make_the_file_a_broken_one(tmp_path: Path) -> None:
    """Otherwise the file would be left out where broken ones are, and its rows with it."""
    with storage_of("file", tmp_path) as storage:
        rows = 2_500_000
        numbers = pa.table({"id": pa.array([one * 2_654_435_761 % 2**61 for one in range(rows)])})
        pq.write_table(numbers, tmp_path / "large", compression="none", use_dictionary=False, row_group_size=rows // 2)
        settings = ParquetMergeSettings(method="re-encode", on_unreadable="skip")
        merge_parquet(storage, inputs=["large"], output="merged", settings=settings)
        storage.delete("merged")
        storage.ask = Countdown(8)
        with pytest.raises(StorageError, match="told to fail"):
            merge_parquet(storage, inputs=["large"], output="merged", settings=settings)
        assert names_in(storage) == ["large"]
