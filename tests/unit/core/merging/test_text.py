"""CSV and JSON lines are joined as bytes: every ugly thing in a row survives, and what is ambiguous is refused."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import SchemaConflictError, UnreadableFileError, VerificationError
from airflow_hudi_maint.core.merging import text_joining
from airflow_hudi_maint.core.merging.text import MergedText, merge_text
from airflow_hudi_maint.core.merging.text_codecs import decoded, encoded
from airflow_hudi_maint.core.merging.text_scan import TextRules
from airflow_hudi_maint.core.merging.verification import verify_text
from airflow_hudi_maint.core.model.merge_settings import Codec, FileFormat
from airflow_hudi_maint.core.planning.merge_kinds import kind_of
from airflow_hudi_maint.core.storage.filesystem import Storage

CSV = TextRules(format=FileFormat.CSV)
HEADED = TextRules(format=FileFormat.CSV, has_header=True)
JSON = TextRules(format=FileFormat.JSON, quote="")
BOM = b"\xef\xbb\xbf"


class Joined:
    """Files of a folder, and what they became."""

    def __init__(self, folder: Path, files: Sequence[bytes], *, extension: str, rules: TextRules, skip: bool) -> None:
        kind = kind_of(f"a{extension}")
        assert kind is not None
        self.kind = kind
        self.storage = Storage.open(str(folder))
        self.log: list[str] = []
        for number, data in enumerate(files):
            (folder / f"{number:03}{extension}").write_bytes(data)
        self.merged: MergedText = merge_text(
            self.storage,
            inputs=[(f"{number:03}{extension}", len(data)) for number, data in enumerate(files)],
            output="out.staged",
            kind=kind,
            rules=rules,
            on_unreadable="skip" if skip else "fail",
            log=self.log.append,
        )
        verify_text(self.storage, "out.staged", merged=self.merged, codec=kind.codec)

    @property
    def raw(self) -> bytes:
        return self.storage.read_bytes("out.staged")

    @property
    def plain(self) -> bytes:
        with self.storage.open_input("out.staged") as file:
            return b"".join(decoded(file, codec=self.kind.codec))


def joined(folder: Path, *files: bytes, extension: str = ".csv", rules: TextRules = CSV, skip: bool = False) -> Joined:
    return Joined(folder, files, extension=extension, rules=rules, skip=skip)


PLAIN: Mapping[str, tuple[TextRules, Sequence[bytes], bytes]] = {
    "a line end that is missing is added between files": (CSV, [b"1,x", b"2,y", b"3"], b"1,x\n2,y\n3"),
    "the line end that is added is the file's own": (CSV, [b"1,x\r\n2,y", b"3,z\r\n"], b"1,x\r\n2,y\r\n3,z\r\n"),
    "a carriage return alone ends a line": (CSV, [b"1,x\r2,y\r", b"3,z\r"], b"1,x\r2,y\r3,z\r"),
    "lines that end in different ways stay as they are": (CSV, [b"1\r\n", b"2\n"], b"1\r\n2\n"),
    "one header stays": (HEADED, [b"id,n\n1,x\n", b"id,n\n2,y\n"], b"id,n\n1,x\n2,y\n"),
    "a header without rows adds nothing": (HEADED, [b"id,n\n1,x\n", b"id,n", b"id,n\n3,z\n"], b"id,n\n1,x\n3,z\n"),
    "headers alone make a header": (HEADED, [b"id,n", b"id,n\n"], b"id,n"),
    "a header may stand over nothing at first": (HEADED, [b"id,n", b"id,n\n1,x\n"], b"id,n\n1,x\n"),
    "a header's line end does not matter": (HEADED, [b"id,n\r\n1,x\r\n", b"id,n\n2,y\n"], b"id,n\r\n1,x\r\n2,y\n"),
    "a header may hold a line end between quotes": (
        HEADED,
        [b'id,"a\nb"\n1,x\n', b'id,"a\nb"\n2,y\n'],
        b'id,"a\nb"\n1,x\n2,y\n',
    ),
    "a byte order mark stays at the beginning alone": (CSV, [BOM + b"1\n", BOM + b"2\n", b"3\n"], BOM + b"1\n2\n3\n"),
    "a mark before a header is no part of it": (
        HEADED,
        [b"id,n\n1,x\n", BOM + b"id,n\n2,y\n"],
        b"id,n\n1,x\n2,y\n",
    ),
    "files of no bytes add nothing": (CSV, [b"", b"1\n", b"", b"2", b""], b"1\n2"),
    "a file of a mark alone adds nothing": (CSV, [b"1\n", BOM, b"2\n"], b"1\n2\n"),
    "line ends and quotes within fields survive": (
        CSV,
        [b'1,"a\n""b"", c"\n', b'2,"\r\n\n"\n'],
        b'1,"a\n""b"", c"\n2,"\r\n\n"\n',
    ),
    "ragged rows and empty lines survive": (CSV, [b"1,2,3\n1\n\n", b"1,2\n,,,,\n"], b"1,2,3\n1\n\n1,2\n,,,,\n"),
    "spaces survive": (CSV, [b" 1 , x \n", b"\t\n"], b" 1 , x \n\t\n"),
    "UTF-8 survives": (CSV, ["1,Zürich\n".encode(), "2,日本".encode()], "1,Zürich\n2,日本".encode()),
    "JSON lines are joined": (JSON, [b'{"a": 1}', b'{"a": 2}\n{"a": 3}'], b'{"a": 1}\n{"a": 2}\n{"a": 3}'),
    "JSON keeps its spelling": (
        JSON,
        [b'{"a":1.50,"a":2}\n', b' {"b" : "\\u00fc"}\n'],
        b'{"a":1.50,"a":2}\n {"b" : "\\u00fc"}\n',
    ),
}


@pytest.mark.parametrize("case", PLAIN)
def test_text_is_joined_as_bytes(tmp_path: Path, case: str) -> None:
    rules, files, expected = PLAIN[case]
    extension = ".json" if rules is JSON else ".csv"

    assert expected == joined(tmp_path, *files, extension=extension, rules=rules).raw


@pytest.mark.parametrize("extension", [".csv.gz", ".csv.zst", ".csv.snappy", ".csv.lz4"])
@pytest.mark.parametrize("case", PLAIN)
def test_compressed_text_is_joined_to_the_same_bytes(tmp_path: Path, case: str, extension: str) -> None:
    """A file of no bytes is no compressed file: those are left out of the cases."""
    rules, files, expected = PLAIN[case]
    extension = extension.replace(".csv", ".json") if rules is JSON else extension
    kind = kind_of(f"a{extension}")
    assert kind is not None
    packed = [b"".join(encoded([one], codec=kind.codec, head=b"")) for one in files if one]

    assert expected == joined(tmp_path, *packed, extension=extension, rules=rules).plain


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD, Codec.LZ4, Codec.SNAPPY])
def test_compressed_files_that_need_no_cut_are_copied_as_they_are(tmp_path: Path, codec: Codec) -> None:
    """Members, frames and blocks may follow each other; the line end that lacks is a member of its own."""
    extension = {"gzip": ".csv.gz", "zstd": ".csv.zst", "lz4": ".csv.lz4", "snappy": ".csv.snappy"}[str(codec)]
    first, second = (b"".join(encoded([one], codec=codec, head=b"")) for one in (b"1,x\n" * 999, b"2,y\n" * 999))
    found = joined(tmp_path, first, second, extension=extension)

    assert first + second == found.raw
    assert (2, 0, "byte copy") == (found.merged.copied, found.merged.rewritten, found.merged.method)


def test_a_header_is_cut_by_compressing_that_file_anew(tmp_path: Path) -> None:
    first, second = gzip.compress(b"id\n1\n"), gzip.compress(b"id\n2\n")
    found = joined(tmp_path, first, second, extension=".csv.gz", rules=HEADED)

    assert b"id\n1\n2\n" == gzip.decompress(found.raw)
    assert found.raw.startswith(first)
    assert (1, 1) == (found.merged.copied, found.merged.rewritten)


def test_lz4_frames_and_hadoops_blocks_are_both_read(tmp_path: Path) -> None:
    frame = b"".join(encoded([b"1\n"], codec=Codec.LZ4, head=b"\x04\x22\x4d\x18"))
    assert frame.startswith(b"\x04\x22\x4d\x18")

    assert b"1\n1\n" == joined(tmp_path, frame, frame, extension=".csv.lz4").plain


def test_a_file_larger_than_is_held_whole_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_joining, "WHOLE_BYTES", 10)
    files = [b"id,n\n" + b'%d,"a""\nb"\n' % number * 700_000 for number in range(2)]
    found = joined(tmp_path, *files, rules=HEADED)

    assert files[0] + files[1].removeprefix(b"id,n\n") == found.raw


REFUSED: Mapping[str, tuple[str, TextRules, bytes, str]] = {
    "ends between quotes": (".csv", CSV, b'1,"abc\n', "ends between quotes"),
    "may end between quotes": (".csv", CSV, b'1,"a\\"\n', "give csv_escape"),
    "not UTF-8": (".csv", CSV, b"1,Z\xfcrich\n", "not UTF-8"),
    "UTF-16": (".csv", CSV, "1,x\n".encode("utf-16"), "holds UTF-16"),
    "UTF-16 without a mark": (".csv", CSV, "1,x\n".encode("utf-16-le"), "NUL bytes"),
    "Parquet by another name": (".csv", CSV, b"PAR1....", "holds Parquet"),
    "gzip by another name": (".csv", CSV, gzip.compress(b"1\n"), "holds gzip"),
    "no gzip": (".csv.gz", CSV, b"1,x\n", "holds something else"),
    "no bytes where gzip should be": (".csv.gz", CSV, b"", "has no bytes"),
    "gzip cut short": (".csv.gz", CSV, gzip.compress(b"1,x\n" * 99)[:-9], "cannot be read"),
    "gzip with a wrong checksum": (".csv.gz", CSV, gzip.compress(b"1,x\n")[:-8] + bytes(8), "cannot be read"),
    "framed snappy": (".csv.snappy", CSV, b"\xff\x06\x00\x00sNaPpY....", "holds framed snappy"),
    "bare snappy": (".csv.snappy", CSV, b"\xf4\x03\xff\xff1,x\n", "as Hadoop and Spark write it"),
    "a JSON array": (".json", JSON, b'[{"a": 1}]', "array"),
    "a JSON document over several lines": (".json", JSON, b'{\n"a": 1\n}\n', "no JSON by itself"),
    "JSON cut short": (".json", JSON, b'{"a": 1}\n{"a": 2', "cut short"),
    "no JSON": (".json", JSON, b"a,b\n", "no JSON by itself"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_understood_is_refused_by_name_or_left_out(tmp_path: Path, case: str) -> None:
    extension, rules, data, message = REFUSED[case]
    codec = Codec.GZIP if extension.endswith(".gz") else Codec.SNAPPY if extension.endswith("y") else Codec.NONE
    row = b'{"a": 9}\n' if rules is JSON else b"9,z\n"
    good = b"".join(encoded([row], codec=codec, head=b""))
    for folder in ("fails", "skips"):
        (tmp_path / folder).mkdir()

    with pytest.raises(UnreadableFileError, match=message) as caught:
        joined(tmp_path / "fails", good, data, good, extension=extension, rules=rules)
    assert f"fails/001{extension}" in str(caught.value)
    found = joined(tmp_path / "skips", good, data, good, extension=extension, rules=rules, skip=True)
    assert (row * 2, (f"001{extension}",)) == (found.plain, found.merged.skipped)
    assert message in found.log[0]


def test_headers_that_differ_are_refused_with_both_files(tmp_path: Path) -> None:
    with pytest.raises(SchemaConflictError, match=r"001\.csv has the header 'n,id' and .*000\.csv has 'id,n'"):
        joined(tmp_path, b"id,n\n1,x\n", b"n,id\ny,2\n", rules=HEADED)


def test_another_delimiter_is_refused(tmp_path: Path) -> None:
    rules = TextRules(format=FileFormat.CSV, delimiter=",")

    with pytest.raises(UnreadableFileError, match="split by ';', and those of the others by ','"):
        joined(tmp_path, b"1,x\n", b"2;y\n", rules=rules)


@pytest.mark.parametrize(
    ("rules", "data"),
    [
        (TextRules(format=FileFormat.CSV, quote=""), b'5" pipe\n'),
        (TextRules(format=FileFormat.CSV, escape="\\"), b'"a\\"b","\\\\"\n'),
        (TextRules(format=FileFormat.CSV, escape='"'), b'"C:\\"\n'),
        (TextRules(format=FileFormat.CSV, must_be_utf8=False), b"Z\xfcrich\n"),
    ],
)
def test_what_is_given_need_not_be_told(tmp_path: Path, rules: TextRules, data: bytes) -> None:
    """No quotes, a backslash that escapes, doubled quotes, an encoding."""
    assert data + data == joined(tmp_path, data, data, rules=rules).raw


def test_escapes_are_told_apart_across_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece may end between a backslash and what it escapes."""
    monkeypatch.setattr(text_joining, "WHOLE_BYTES", 1)
    rules = TextRules(format=FileFormat.CSV, escape="\\")
    data = b'"' + b"x" * ((4 << 20) - 2) + b'\\""\n'

    assert data + data == joined(tmp_path, data, data, rules=rules).raw


def test_a_file_that_grew_since_it_was_planned_is_refused(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    storage.write_atomic("a.csv", b"1\n2\n")
    kind = kind_of("a.csv")
    assert kind is not None

    with pytest.raises(UnreadableFileError, match="it still grows"):
        merge_text(storage, inputs=[("a.csv", 2)], output="out", kind=kind, rules=CSV)


@pytest.mark.parametrize("wrong", [b"1\n3\n", b"1\n2", b"1\n2\n\n", b"2\n1\n", b""])
def test_a_byte_that_is_not_that_of_an_input_is_found(tmp_path: Path, wrong: bytes) -> None:
    """By a digest of what was read, not of what was written."""
    packed = (b"".join(encoded([one], codec=Codec.GZIP, head=b"")) for one in (b"1\n", b"2\n"))
    found = joined(tmp_path, *packed, extension=".csv.gz")
    (tmp_path / "out.staged").write_bytes(b"".join(encoded([wrong], codec=Codec.GZIP, head=b"")))

    with pytest.raises(VerificationError, match="holds other bytes than its inputs"):
        verify_text(found.storage, "out.staged", merged=found.merged, codec=Codec.GZIP)


def test_what_was_compared_as_it_was_written_is_asked_for_its_size(tmp_path: Path) -> None:
    """The bytes themselves are compared by CheckedOutput, whose own tests damage them."""
    found = joined(tmp_path, b"1\n", b"2\n")
    (tmp_path / "out.staged").write_bytes(b"1\n2")

    assert found.merged.digest is None
    with pytest.raises(VerificationError, match="has 3 bytes, and should have 4; nothing was moved"):
        verify_text(found.storage, "out.staged", merged=found.merged, codec=Codec.NONE)


def test_a_disk_that_damages_a_row_fails_the_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda number, data: real(number, bytes(data).replace(b"2,y", b"2,z")))

    with pytest.raises(VerificationError, match="holds other bytes than were written to it"):
        joined(tmp_path, b"1,x\n", b"2,y\n", b"3,z\n")


@pytest.mark.parametrize("behind", [False, True], ids=["in one thread", "in two threads"])
@pytest.mark.parametrize("kind", ["headed", "plain", "json"])
def test_many_files_of_many_sizes_are_joined_in_their_order(tmp_path: Path, *, kind: str, behind: bool) -> None:
    """Small ones together, some larger than what is written at once, some that need a closer look."""
    chance = random.Random(kind)  # noqa: S311 the same each time
    extension, header = (".json" if kind == "json" else ".csv"), (b"id,n\n" if kind == "headed" else b"")
    row = b'{"id": %d}\n' if kind == "json" else b'%d,"a\n"\n'
    odd = (b"", b" \n") if kind == "json" else (b"", header + b"7,\\\n", BOM + header + b"8,z\r\n", header)
    files = [
        chance.choice((header + (row % number) * chance.choice((1, 99, 9000, 90_000)), *odd)) for number in range(60)
    ]
    files = [
        one.removesuffix(b"\n") if chance.random() < 0.1 and len(one) > 9 else one for one in [header + row % 0, *files]
    ]
    for number, data in enumerate(files):
        (tmp_path / f"{number:03}{extension}").write_bytes(data)
    names = [(f"{number:03}{extension}", len(data)) for number, data in enumerate(files)]
    file_kind = kind_of(f"a{extension}")
    assert file_kind is not None
    storage = Storage.open(str(tmp_path))
    rules = {"headed": HEADED, "plain": CSV, "json": JSON}[kind]
    merged = merge_text(storage, inputs=names, output="out", kind=file_kind, rules=rules, writes_behind=behind)

    expected = b""
    for data in files:
        rest = data.removeprefix(BOM)
        rest = rest.removeprefix(header) if expected else rest
        ends = b"\n" if expected and rest and not expected.endswith(b"\n") else b""
        expected += ends + rest
    assert expected == storage.read_bytes("out")
    assert (len(expected), len(expected), len(files)) == (merged.bytes, merged.plain_bytes, merged.copied)


@pytest.mark.parametrize(
    "data",
    [
        b'\n[\n{"a": 1},\n{"a": 2}\n]\n',
        b'{"a": 1}\n{\n "a": 2\n}\n',
        b' \n\t\n{\n "a": 1\n}',
        b'{"a": 1}\r\n{"a": \r\n',
    ],
    ids=["an array behind a blank line", "a later object over lines", "an object behind blank lines", "a cut line"],
)
def test_json_over_several_lines_is_refused_wherever_it_shows(tmp_path: Path, data: bytes) -> None:
    """A reader of whole documents would find one that is broken."""
    with pytest.raises(UnreadableFileError, match="JSON lines"):
        joined(tmp_path, data, b'{"a": 3}\n', extension=".json", rules=JSON)


def test_json_in_a_given_encoding_is_no_utf_8(tmp_path: Path) -> None:
    rules = TextRules(format=FileFormat.JSON, quote="", must_be_utf8=False)
    files = ['{"a": "\xe9"}\n'.encode("latin-1"), '{"a": "\xfc"}'.encode("latin-1")]
    assert joined(tmp_path, *files, extension=".json", rules=rules).raw == b"".join(files)


def test_blank_lines_around_json_stay(tmp_path: Path) -> None:
    files = [b'\n\n{"a": 1}\n\n', b'{"a": 2}\n \n']
    assert joined(tmp_path, *files, extension=".json", rules=JSON).raw == b"".join(files)


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        (b"1\r\n2\r", b"3\r\n", b"1\r\n2\r\n3\r\n"),
        (b"1\n2\r", b"3\n", b"1\n2\r\n3\n"),
        (b"1\r2\r", b"3\r", b"1\r2\r3\r"),
    ],
    ids=["of CRLF half is missing", "a stray carriage return", "carriage returns end lines"],
)
def test_a_carriage_return_ends_a_line_where_all_do(tmp_path: Path, first: bytes, second: bytes, merged: bytes) -> None:
    """To readers that split at line feeds the last row and the one behind it would be one."""
    assert joined(tmp_path, first, second).raw == merged


def test_a_byte_order_mark_alone_is_an_empty_file(tmp_path: Path) -> None:
    assert joined(tmp_path, BOM, b"id\n1\n", BOM + b"id\n2\n", rules=HEADED).raw == b"id\n1\n2\n"
