"""The dialect of CSV is told from what files prove; what they leave open is asked for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.merge_settings import MergeSettings
from airflow_hudi_maint.core.planning.csv_dialect import CsvDialect, CsvSample, detect_dialect, record_end


def detected(*files: bytes, extension: str = ".csv", **given: object) -> CsvDialect:
    samples = [CsvSample(name=f"{number}.csv", head=data, is_whole=True) for number, data in enumerate(files)]
    settings = MergeSettings.from_json(given)  # type: ignore[arg-type]
    return detect_dialect(samples, settings=settings, extension=extension)


HEADED: Sequence[tuple[str, tuple[bytes, ...]]] = [
    (",", (b"id,name\n1,x\n", b"id,name\n2,y\n")),
    (";", (b"id;price\n1;1,5\n", b"id;price\n2;2,5\n")),
    ("\t", (b"id\tat\nx\t2026-11-30\n", b"id\tat\ny\t2026-12-01T00:00:00Z\n")),
    ("|", (b'"id"|"a b"\r\n1|x\r\n', b'"id"|"a b"\r\n2|y\r\n')),
    ("", (b"value\n1\n", b"value\n2\n")),
    (",", (b"\xef\xbb\xbfid,ok\n1,true\n", b"id,ok\n2,false\n")),
    (",", (b"id,name\n1,x\n", b"id,name\n", b"")),
]


@pytest.mark.parametrize(("delimiter", "files"), HEADED)
def test_a_header_is_names_over_values_alike_in_all_files(delimiter: str, files: tuple[bytes, ...]) -> None:
    found = detected(*files)

    assert (True, delimiter, "utf-8") == (found.has_header, found.delimiter, found.encoding)


@pytest.mark.parametrize(
    "files", [(b"1,x\n2,y\n", b"3,z\n"), (b"x;1.5\n", b"y;-2e3\n"), (b"", b""), (b"", b"\xef\xbb\xbf")]
)
def test_there_is_no_header_where_first_records_differ_and_hold_values(files: tuple[bytes, ...]) -> None:
    assert not detected(*files).has_header


AMBIGUOUS = {
    "words alone": (b"a,b\nx,y\n", b"a,b\nz,w\n"),
    "one file with rows": (b"id,name\n1,x\n",),
    "first records that differ and are words": (b"a,b\n1,2\n", b"c,d\n1,2\n"),
    "first records that are the same and hold values": (b"name,2023\nx,1\n", b"name,2023\ny,2\n"),
    "a name that stands twice": (b"a,a\n1,2\n", b"a,a\n3,4\n"),
    "a name that is empty": (b"a,\n1,2\n", b"a,\n3,4\n"),
    "a row like the header alone": (b"true,x\n1,2\n", b"true,x\n3,4\n"),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_a_header_that_cannot_be_told_is_asked_for(case: str) -> None:
    with pytest.raises(InvalidSettingError, match="give csv_header as 'yes' or 'no'"):
        detected(*AMBIGUOUS[case])
    assert detected(*AMBIGUOUS[case], csv_header="yes").has_header
    assert not detected(*AMBIGUOUS[case], csv_header="no").has_header


def test_a_delimiter_that_cannot_be_told_is_asked_for() -> None:
    files = (b"id;a,b\n1;2,3\n", b"id;a,b\n4;5,6\n")
    with pytest.raises(InvalidSettingError, match="give csv_delimiter"):
        detected(*files)

    assert ";" == detected(*files, csv_delimiter=";", csv_header="no").delimiter
    assert "\t" == detected(b"1\tx\n", b"2\ty\n", extension=".tsv").delimiter


def test_an_encoding_that_is_not_utf_8_is_asked_for() -> None:
    files = ("1,Zürich\n".encode("latin-1"), b"2,x\n")
    with pytest.raises(InvalidSettingError, match="give encoding, for example 'latin-1'"):
        detected(*files)

    assert "latin-1" == detected(*files, encoding="latin-1").encoding
    with pytest.raises(InvalidSettingError, match="NUL bytes"):
        detected("1,x\n".encode("utf-16-le"))


def test_a_sample_may_end_within_a_character() -> None:
    whole = "1,日\n2,日".encode()
    sample = CsvSample(name="a.csv", head=whole[:-1])

    assert "utf-8" == detect_dialect([sample], settings=MergeSettings(csv_header="no")).encoding


@pytest.mark.parametrize(
    ("data", "quote", "end"),
    [
        (b"a\nb\n", '"', 2),
        (b"a\r\nb\r\n", '"', 3),
        (b"a\rb\r", '"', 2),
        (b'"a\n"\nb', '"', 5),
        (b'"a""\n"\nb', '"', 7),
        (b'"a\nb', '"', -1),
        (b'"a\nb', "", 3),
        (b"a", '"', -1),
        (b"", '"', -1),
    ],
)
def test_a_record_ends_at_a_line_end_outside_quotes(data: bytes, quote: str, end: int) -> None:
    assert end == record_end(data, quote=quote)


@pytest.mark.parametrize(
    "given",
    [
        {"target_file_bytes": 1, "small_file_bytes": 2},
        {"min_input_files": 1},
        {"formats": ["avro"]},
        {"csv_header": "maybe"},
        {"csv_quote": "''"},
        {"csv_delimiter": "ä"},
        {"encoding": "utf-16"},
        {"encoding": "klingon"},
        {"max_groups": 0},
        {"on_unreadable": "guess"},
        {"targetbytes": 1},
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(given: dict[str, object]) -> None:
    name = next(iter(given))
    with pytest.raises(InvalidSettingError, match=name):
        MergeSettings.from_json(given)  # type: ignore[arg-type]
