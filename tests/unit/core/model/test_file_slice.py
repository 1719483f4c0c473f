from __future__ import annotations

import pytest

from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice, LogFile

FILE_ID = "0a1b2c3d-1111-2222-3333-444455556666-0"
INSTANT = "20261130053458356"


@pytest.mark.parametrize("extension", ["parquet", "orc", "hfile"])
def test_base_files_are_read(extension: str) -> None:
    """A base file's name has its file group and the instant that wrote it."""
    name = f"{FILE_ID}_3-24-37_{INSTANT}.{extension}"
    assert BaseFile(name=name, file_id=FILE_ID, instant=INSTANT, bytes=9) == BaseFile.parse(name, size_bytes=9)


@pytest.mark.parametrize(
    "name",
    [
        f".{FILE_ID}_{INSTANT}.log.1_3-24-37",
        f".{FILE_ID}_3-24-37_{INSTANT}.parquet.crc",
        f"{FILE_ID}_3-24-37_{INSTANT}.csv",
        f"{FILE_ID}_{INSTANT}.parquet",
        ".hoodie_partition_metadata",
        "part-00000.parquet",
    ],
)
def test_other_files_are_no_base_files(name: str) -> None:
    """Log files, checksums and strangers are none."""
    assert BaseFile.parse(name, size_bytes=9) is None


@pytest.mark.parametrize(("token", "written"), [("", ""), ("_3-24-37", "3-24-37"), ("_3-24-37.cdc", "3-24-37")])
def test_log_files_are_read(token: str, written: str) -> None:
    """A log file's name has its file group, an instant, its version and, from newer writers, its write token.

    Change-data files are log files to Hudi's view, and so they are here.
    """
    log = LogFile.parse(f".{FILE_ID}_{INSTANT}.log.2{token}", size_bytes=9)
    assert log is not None
    assert (FILE_ID, INSTANT, 2, written, 9) == (log.file_id, log.instant, log.version, log.write_token, log.bytes)


@pytest.mark.parametrize("suffix", ["archive.1_3-24-37", "log.1_3-24-37.crc", "log"])
def test_other_files_are_no_log_files(suffix: str) -> None:
    """Archives and checksums are none."""
    assert LogFile.parse(f".{FILE_ID}_{INSTANT}.{suffix}", size_bytes=9) is None


def test_a_slice_sums_up_its_files() -> None:
    """Bytes are those of the base file and of all log files; a slice may lack a base file."""
    log = LogFile(name="l", file_id=FILE_ID, instant=INSTANT, version=1, write_token="", bytes=5)
    base = BaseFile(name="b", file_id=FILE_ID, instant=INSTANT, bytes=7)
    whole = FileSlice(partition_path="", file_id=FILE_ID, base_instant=INSTANT, base_file=base, log_files=(log, log))
    bare = FileSlice(partition_path="", file_id=FILE_ID, base_instant=INSTANT, base_file=None, log_files=(log,))
    assert (7, 10, 17) == (whole.base_bytes, whole.log_bytes, whole.total_bytes)
    assert (0, 5, 5) == (bare.base_bytes, bare.log_bytes, bare.total_bytes)
