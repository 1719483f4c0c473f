"""What is written to a disk is read back and compared before anything relies on it."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import StorageError, VerificationError
from airflow_hudi_maint.core.storage.checked_output import BLOCK_BYTES, CheckedOutput
from airflow_hudi_maint.core.storage.filesystem import Storage


def pieces_of(data: bytes, *, seed: int) -> list[bytes]:
    """Cut at random places: some pieces empty, some larger than a block."""
    cuts = sorted(random.Random(seed).choices(range(len(data)), k=60))  # noqa: S311 the same each time
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@pytest.mark.parametrize("is_behind", [False, True], ids=["in one thread", "in two threads"])
@pytest.mark.parametrize("size", [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1, 9 * BLOCK_BYTES + 7])
def test_all_bytes_come_out_in_their_order(tmp_path: Path, *, size: int, is_behind: bool) -> None:
    data = random.Random(size).randbytes(size)  # noqa: S311 the same each time
    path = tmp_path / "out"
    with path.open("xb") as sink, CheckedOutput(sink, path=str(path), is_behind=is_behind) as output:
        for piece in pieces_of(data, seed=size) if size else [b""]:
            output.put(piece)
        assert size == output.bytes

    assert data == path.read_bytes()


@pytest.mark.parametrize("is_behind", [False, True], ids=["in one thread", "in two threads"])
@pytest.mark.parametrize("at", [0, BLOCK_BYTES - 1, 3 * BLOCK_BYTES + 5, 6 * BLOCK_BYTES - 1])
def test_a_byte_that_the_disk_gives_back_otherwise_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, at: int, is_behind: bool
) -> None:
    real = os.write

    def damaged(number: int, data: memoryview) -> int:
        start = os.lseek(number, 0, os.SEEK_CUR)
        wrong = bytearray(data)
        if start <= at < start + len(wrong):
            wrong[at - start] ^= 1
        return real(number, wrong)

    monkeypatch.setattr(os, "write", damaged)
    path = tmp_path / "out"

    with (
        path.open("xb") as sink,
        pytest.raises(VerificationError, match=f"from byte {at // BLOCK_BYTES * BLOCK_BYTES} on; nothing was moved"),
        CheckedOutput(sink, path=str(path), is_behind=is_behind) as output,
    ):
        output.put(bytes(6 * BLOCK_BYTES))


def test_what_another_wrote_to_the_end_is_found(tmp_path: Path) -> None:
    path = tmp_path / "out"

    def written() -> None:
        with path.open("xb") as sink, CheckedOutput(sink, path=str(path)) as output:
            output.put(b"1\n2\n")
            with path.open("r+b") as file:
                file.seek(4)
                file.write(b"3")

    with pytest.raises(VerificationError, match="has 5 bytes, and should have 4"):
        written()


def test_a_disk_that_takes_less_than_it_is_given_gets_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, read = os.write, os.preadv
    monkeypatch.setattr(os, "write", lambda number, data: write(number, data[:1000]))
    monkeypatch.setattr(os, "preadv", lambda number, views, at: read(number, [views[0][:700]], at))
    data = random.Random(1).randbytes(BLOCK_BYTES + 999)  # noqa: S311 the same each time
    path = tmp_path / "out"
    with path.open("xb") as sink, CheckedOutput(sink, path=str(path)) as output:
        output.put(data)

    assert data == path.read_bytes()


@pytest.mark.parametrize("is_behind", [False, True], ids=["in one thread", "in two threads"])
def test_a_disk_that_fills_up_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_behind: bool) -> None:
    def full(number: int, data: memoryview) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    storage = Storage.open(str(tmp_path))

    with (
        pytest.raises(StorageError, match="No space left on device"),
        storage.open_output("out") as sink,
        CheckedOutput(sink, path=str(tmp_path / "out"), is_behind=is_behind) as output,
    ):
        output.put(bytes(9 * BLOCK_BYTES))
