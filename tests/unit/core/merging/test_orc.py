"""ORC files are merged stripe by stripe: rows, order, types and codec stay; what would be lost is refused or told."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from airflow_hudi_maint.core.errors import SchemaConflictError, UnreadableFileError, VerificationError
from airflow_hudi_maint.core.merging.orc import MergedOrc, merge_orc
from airflow_hudi_maint.core.merging.orc_footer import _KINDS, BrokenOrcError, read_orc_footer
from airflow_hudi_maint.core.merging.verification import verify_orc
from airflow_hudi_maint.core.storage.filesystem import Storage

EVERY_TYPE = pa.table(
    {
        "flag": pa.array([True, None, False]),
        "tiny": pa.array([1, None, -1], pa.int8()),
        "whole": pa.array([1, None, 2**31 - 1], pa.int32()),
        "long": pa.array([2**62, None, 0]),
        "real": pa.array([1.5, float("nan"), None]),
        "text": pa.array(["ü", None, ""]),
        "bytes": pa.array([b"\0", None, b""]),
        "day": pa.array([dt.date(2026, 1, 1), None, dt.date(1969, 12, 31)]),
        "price": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-9.99")], pa.decimal128(9, 2)),
        "at": pa.array([1_767_225_723_000_004_000, None, -(10**17)], pa.timestamp("ns")),
        "instant": pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None, None], pa.timestamp("ns", "UTC")),
        "list": pa.array([[1, None], None, []], pa.list_(pa.int64())),
        "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "struct": pa.array([{"x": 1, "y": ["a"]}, None, {"x": None, "y": None}]),
    }
)


def write(folder: Path, tables: Sequence[pa.Table], *, compression: str = "zstd") -> list[tuple[str, int]]:
    paths = []
    for number, table in enumerate(tables):
        path = folder / f"{number:03}.orc"
        orc.write_table(table, path, compression=compression)
        paths.append((path.name, path.stat().st_size))
    return paths


def merged(folder: Path, inputs: Sequence[tuple[str, int]], *, skip: bool = False) -> tuple[pa.Table, MergedOrc]:
    storage = Storage.open(str(folder))
    found = merge_orc(storage, inputs=inputs, output="out.staged", on_unreadable="skip" if skip else "fail")
    good = [one for one in inputs if one[0] not in found.skipped]
    verify_orc(storage, "out.staged", size=found.bytes, inputs=good)
    return orc.read_table(folder / "out.staged"), found


def test_every_type_survives_in_order(tmp_path: Path) -> None:
    tables = [EVERY_TYPE, EVERY_TYPE.slice(0, 0), EVERY_TYPE.slice(1), EVERY_TYPE.slice(2)]
    table, found = merged(tmp_path, write(tmp_path, tables))

    expected = pa.concat_tables([orc.read_table(tmp_path / f"{number:03}.orc") for number in range(4)])
    assert expected.schema == table.schema
    assert repr(expected.to_pylist()) == repr(table.to_pylist())
    assert (6, 1, ()) == (found.rows, found.stripes, found.notes)


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_the_codec_stays(tmp_path: Path, compression: str) -> None:
    inputs = write(tmp_path, [EVERY_TYPE, EVERY_TYPE], compression=compression)
    merged(tmp_path, inputs)

    assert compression.upper() == orc.ORCFile(tmp_path / "out.staged").compression
    with (tmp_path / "000.orc").open("rb") as file:
        footer = read_orc_footer(file, size=inputs[0][1])
    assert (compression.replace("uncompressed", "none"), 3) == (footer.compression, footer.rows)


def test_several_codecs_become_that_of_the_first_and_that_is_told(tmp_path: Path) -> None:
    first = write(tmp_path, [EVERY_TYPE], compression="zlib")
    (tmp_path / "000.orc").rename(tmp_path / "a.orc")
    second = write(tmp_path, [EVERY_TYPE], compression="snappy")
    _, found = merged(tmp_path, [("a.orc", first[0][1]), *second])

    assert "ZLIB" == orc.ORCFile(tmp_path / "out.staged").compression
    assert ("the inputs were compressed with snappy, zlib; the merged file is with the first's",) == found.notes


def test_files_of_no_rows_make_a_file_of_no_rows(tmp_path: Path) -> None:
    table, found = merged(tmp_path, write(tmp_path, [EVERY_TYPE.slice(0, 0)] * 2))

    assert (0, EVERY_TYPE.schema.names) == (found.rows, table.schema.names)


def test_columns_are_joined_by_name(tmp_path: Path) -> None:
    """Another order, a column that is new, one that is gone, and a whole number that became wider."""
    first = pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]})
    second = pa.table({"b": ["y"], "a": pa.array([2**40]), "c": [1.5]})
    table, _ = merged(tmp_path, write(tmp_path, [first, second]))

    assert {"a": [1, 2**40], "b": ["x", "y"], "c": [None, 1.5]} == table.to_pydict()
    assert [pa.int64(), pa.string(), pa.float64()] == table.schema.types


@pytest.mark.parametrize("other", [pa.array(["1"]), pa.array([1.0]), pa.array([[1]])])
def test_what_no_safe_promotion_joins_is_refused_with_both_schemas_and_files(tmp_path: Path, other: pa.Array) -> None:
    inputs = write(tmp_path, [pa.table({"a": [1], "b": [1]}), pa.table({"a": other})])

    with pytest.raises(SchemaConflictError, match=r"Column 'a' is .* in .*001\.orc and int64 in .*000\.orc.*b int64"):
        merged(tmp_path, inputs)
    assert not (tmp_path / "out.staged").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "too short"), (b"ORC" + b"x" * 99, "not that of an ORC file"), (None, "not that of an ORC file")],
)
def test_what_is_no_orc_is_refused_by_name_or_left_out(tmp_path: Path, data: bytes | None, message: str) -> None:
    inputs = write(tmp_path, [EVERY_TYPE] * 3)
    bad = tmp_path / "001.orc"
    bad.write_bytes(bad.read_bytes()[:-50] if data is None else data)
    inputs[1] = ("001.orc", bad.stat().st_size)

    with pytest.raises(UnreadableFileError, match=rf"001\.orc cannot be merged: .*{message}"):
        merged(tmp_path, inputs)
    _, found = merged(tmp_path, inputs, skip=True)
    assert (6, ("001.orc",)) == (found.rows, found.skipped)


def test_a_stripe_that_is_damaged_is_left_out_with_its_file(tmp_path: Path) -> None:
    """The footer is whole, so the damage shows only while the rows are read; the others are written again."""
    inputs = write(tmp_path, [EVERY_TYPE] * 3, compression="zlib")
    bad = tmp_path / "001.orc"
    data = bytearray(bad.read_bytes())
    half = len(data) // 2
    data[3:half] = b"\xff" * (half - 3)
    bad.write_bytes(bytes(data))

    with pytest.raises(UnreadableFileError, match=r"001\.orc"):
        merged(tmp_path, inputs)
    _, found = merged(tmp_path, inputs, skip=True)
    assert (6, ("001.orc",)) == (found.rows, found.skipped)


@pytest.mark.parametrize(("kind", "word"), _KINDS.items())
def test_types_that_arrow_would_change_are_refused(tmp_path: Path, kind: int, word: str) -> None:
    """A footer whose string column is declared otherwise: Arrow itself cannot write one."""
    inputs = write(tmp_path, [pa.table({"a": ["x"]})] * 2, compression="uncompressed")
    path = tmp_path / "000.orc"
    data = path.read_bytes()
    at = data.rindex(b"\x22\x08\x08\x07")  # field 4, a type of eight bytes: its kind is 7, string
    path.write_bytes(data[: at + 3] + bytes([kind]) + data[at + 4 :])

    with pytest.raises(SchemaConflictError, match=rf"000\.orc has {word}, which Arrow would write as another type"):
        merged(tmp_path, inputs)


def test_user_metadata_that_is_lost_is_told(tmp_path: Path) -> None:
    """Arrow writes none, so the footer gets an entry by hand: field 5 with a name and a value."""
    inputs = write(tmp_path, [pa.table({"a": ["x"]})] * 2, compression="uncompressed")
    path = tmp_path / "000.orc"
    data = path.read_bytes()
    postscript = data[-1 - data[-1] : -1]
    footer_bytes = postscript[1]  # below 128, so one byte
    assert footer_bytes < 100
    entry = b"\x2a\x0c\x0a\x05owner\x12\x03ops"
    changed = bytes([postscript[0], footer_bytes + len(entry)]) + postscript[2:]
    path.write_bytes(data[: -1 - data[-1]] + entry + changed + data[-1:])
    inputs[0] = (path.name, path.stat().st_size)
    _, found = merged(tmp_path, inputs)

    assert ("user metadata was not kept: owner",) == found.notes


def test_rows_that_differ_are_found(tmp_path: Path) -> None:
    inputs = write(tmp_path, [EVERY_TYPE] * 2)
    storage = Storage.open(str(tmp_path))
    for wrong in (
        pa.concat_tables([EVERY_TYPE, EVERY_TYPE.slice(1), EVERY_TYPE.slice(0, 1)]),
        EVERY_TYPE,
        pa.concat_tables([EVERY_TYPE] * 3),
    ):
        orc.write_table(wrong, tmp_path / "out", compression="zstd")
        with pytest.raises(VerificationError, match="nothing was moved"):
            verify_orc(storage, "out", size=(tmp_path / "out").stat().st_size, inputs=inputs)


def test_a_footer_that_makes_no_sense_is_said_to(tmp_path: Path) -> None:
    """Whatever single byte of the tail is damaged, the answer is a footer or the error that means a broken file."""
    ((name, size),) = write(tmp_path, [EVERY_TYPE.slice(0, 1)])
    data = bytearray((tmp_path / name).read_bytes())
    path = tmp_path / "bad"
    for at in range(size - 60, size):
        for value in (0, 0x7F, 0xFF):
            path.write_bytes(bytes(data[:at] + bytes([value]) + data[at + 1 :]))
            try:
                with path.open("rb") as file:
                    read_orc_footer(file, size=size)
            except BrokenOrcError:
                continue
            assert path.stat().st_size == size
