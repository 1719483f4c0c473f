"""A glance at a text file finds what a scan of its bytes finds, or leaves the file to it."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_hudi_maint.core.merging.text_codecs import BrokenTextError
from airflow_hudi_maint.core.merging.text_glance import Glance
from airflow_hudi_maint.core.merging.text_scan import TextRules, TextScan, scan
from airflow_hudi_maint.core.model.merge_settings import FileFormat, FileKind
from airflow_hudi_maint.core.planning.merge_kinds import kind_of, wrong_content

BOM = b"\xef\xbb\xbf"
HEADER = b"id,n\n"
RULES = tuple(
    TextRules(format=FileFormat.CSV, has_header=header, quote=quote, escape=escape, delimiter=",", must_be_utf8=utf8)
    for header, quote, escape, utf8 in product((True, False), ('"', ""), (None, "\\", '"'), (True, False))
) + tuple(TextRules(format=FileFormat.JSON, quote="", must_be_utf8=utf8) for utf8 in (True, False))
PIECES = (
    b"1,x\n", b"2;y\n", b'"', b"\\", b'\\"', b"\n", b"\r\n", b"\r", b" ", b"\t", b"\0", b"Z\xc3\xbcrich", b"\xfc",
    b"\xc3", b'{"a": 1}', b"{", b"}", b"[1]", b'"s"', BOM, HEADER, b"PAR1", b"\x1f\x8b", b",",
)  # fmt: skip


def kind(rules: TextRules) -> FileKind:
    found = kind_of("a.csv" if rules.format is FileFormat.CSV else "a.json")
    assert found is not None
    return found


def guide(rules: TextRules) -> Glance:
    """What one knows of the others after an ordinary first file."""
    first = HEADER + b"1,x\n" if rules.format is FileFormat.CSV else b'{"a": 0}\n'
    found = Glance.of(scan((first,), rules=rules), rules=rules, kind=kind(rules))
    assert found is not None
    return found


def scanned(data: bytes, *, rules: TextRules) -> TextScan | None:
    if not data or wrong_content(kind(rules), head=data[:12]):
        return None
    try:
        return scan((data,), rules=rules)
    except BrokenTextError:
        return None


@pytest.mark.parametrize("rules", RULES, ids=str)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=9), before=st.binary(max_size=9), behind=st.binary(max_size=9))
@example(pieces=[b"1,x\n", b"\\"], before=b'"', behind=b'"')
@example(pieces=[b'"', b"\n", b'"', b"\n"], before=b"", behind=b"")
@example(pieces=[b'{"a": 1}', b"\r", b'{"a": 1}', b"\n"], before=b"", behind=b"}")
def test_a_glance_says_what_a_scan_says(rules: TextRules, pieces: list[bytes], before: bytes, behind: bytes) -> None:
    """What lies before and behind a file in memory is no part of it."""
    glance = guide(rules)
    rows = b"".join(pieces)
    found = glance.missing_end(bytearray(before + rows + behind), start=len(before), end=len(before) + len(rows))
    if found is None:
        return

    expected = scanned(glance.header + rows, rules=rules)
    assert expected is not None
    assert (len(glance.header), b"" if expected.ends_line else expected.line_end) == (expected.cut_bytes, found)
    assert expected.header == (HEADER.rstrip() if rules.has_header else b"")


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_ordinary_files_need_no_second_look(rules: TextRules) -> None:
    row = b'1,"a, b","c\n d"\n' if rules.format is FileFormat.CSV else '{"a": "Zürich"}\n'.encode()
    data = row * 30_000

    assert guide(rules).missing_end(bytearray(data), start=0, end=len(data)) == b""
    assert guide(rules).missing_end(bytearray(data), start=0, end=len(data) - 1) == b"\n"


@pytest.mark.parametrize("length", [8, 64, 1000, 128 * 1024, 128 * 1024 + 1, 300_001])
def test_one_quote_too_many_is_seen_wherever_it_is(length: int) -> None:
    rules = TextRules(format=FileFormat.CSV)
    for at in {0, 1, length // 2, length - 2}:
        data = bytearray(b"x" * (length - 1) + b"\n")
        data[:2] = b"y\n"
        data[at : at + 1] = b'"'

        assert guide(rules).missing_end(data, start=0, end=length) is None


@pytest.mark.parametrize(
    "first",
    [b"id,n", b"id\\,n\n1\n", b"\n1\n", BOM + BOM + b"id,n\n1\n"],
    ids=["a header without a line end", "a backslash in the header", "an empty header", "a second byte order mark"],
)
def test_an_odd_header_is_no_guide(first: bytes) -> None:
    rules = TextRules(format=FileFormat.CSV, has_header=True)

    assert Glance.of(scan((first,), rules=rules), rules=rules, kind=kind(rules)) is None
