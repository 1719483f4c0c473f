"""What the first records of CSV files prove about their dialect; what they do not prove is asked for, not guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.merge_settings import MergeSettings
from airflow_hudi_maint.core.model.strict_json import shown

BOM = b"\xef\xbb\xbf"
DELIMITERS = ",;\t|"
_RECORDS = 50
_MOST_RAGGED = 0.2
_NAME = re.compile(r"[^\W\d][\w .:/()%#&\-]*")
_NO_NAMES = frozenset(("true", "false", "null", "none", "nan", "na", "yes", "no"))
_VALUE = re.compile(
    r"[-+]?(?:\d+(?:[.,]\d+)*|\.\d+)(?:[eE][-+]?\d+)?%?"
    r"|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[-+]\d{2}:?\d{2})?)?"
    r"|(?:true|false)",
    flags=re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvSample:
    """The first bytes of a file, decompressed; ``is_whole`` when there are no more."""

    name: str
    head: bytes
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvDialect:
    """How the files of a group are written. ``delimiter`` is None where nobody needs it."""

    has_header: bool
    encoding: str
    delimiter: str | None
    how: str

    def to_json(self) -> dict[str, str]:
        """What stands in the plan."""
        return {
            "header": "yes" if self.has_header else "no",
            "encoding": self.encoding,
            "delimiter": "not needed" if self.delimiter is None else self.delimiter,
            "how": self.how,
        }


def detect_dialect(samples: Sequence[CsvSample], *, settings: MergeSettings, extension: str = ".csv") -> CsvDialect:
    r"""Tell header, encoding and delimiter from the settings, and from the samples what those leave open.

    A header is certain when the first records are the same, are names, and stand over values in some column. It is
    certainly absent when the first records differ and each holds a value. Anything else raises InvalidSettingError
    that names the setting to give.

    >>> files = [CsvSample(name=n, head=b"id,name\n%d,x\n" % i) for i, n in enumerate(("a.csv", "b.csv"))]
    >>> detect_dialect(files, settings=MergeSettings()).has_header
    True
    """
    encoding = settings.encoding or _utf8(samples)
    if settings.csv_header != "detect":
        return CsvDialect(
            has_header=settings.csv_header == "yes",
            encoding=encoding,
            delimiter=settings.csv_delimiter,
            how=f"header given; encoding {'given' if settings.encoding else 'detected'}",
        )
    filled = [(one.name, [*_records(one, settings=settings)]) for one in samples]
    filled = [(name, records) for name, records in filled if records]
    delimiter = settings.csv_delimiter or (
        "\t" if extension.lower().startswith(".tsv") else _delimiter(filled, settings)
    )
    return CsvDialect(
        has_header=_has_header(filled, delimiter=delimiter, settings=settings),
        encoding=encoding,
        delimiter=delimiter,
        how=f"detected in {', '.join(one.name for one in samples)}",
    )


def record_end(data: bytes, *, quote: str, start: int = 0) -> int:
    r"""Where the first record ends, behind its line end; -1 when it does not end here.

    A line end between quotes belongs to the record. Lines end with a line feed, or, in data without any, with a
    carriage return.

    >>> record_end(b'"a\nb",c\n1,2\n', quote='"'), record_end(b"a,b", quote='"')
    (8, -1)
    """
    line_end = b"\n" if b"\n" in data or b"\r" not in data else b"\r"
    mark = quote.encode()
    at = quotes = 0
    position = start
    while True:
        at = data.find(line_end, position)
        if at < 0:
            return -1
        if not mark:
            return at + 1
        quotes += data.count(mark, position, at)
        if quotes % 2 == 0:
            return at + 1
        position = at + 1


def _utf8(samples: Sequence[CsvSample]) -> str:
    for one in samples:
        try:
            one.head.decode("utf-8")
        except UnicodeDecodeError as error:
            if one.is_whole or error.start < len(one.head) - 3:  # not only a character that the sample cuts
                raise InvalidSettingError(
                    f"{one.name} is not UTF-8 (byte {error.start}), so its encoding cannot be told; give encoding, for "
                    "example 'latin-1'"
                ) from error
        if b"\0" in one.head:
            raise InvalidSettingError(f"{one.name} holds NUL bytes: it is UTF-16, or no text; convert it to UTF-8")
    return "utf-8"


def _records(sample: CsvSample, *, settings: MergeSettings) -> Iterator[str]:
    data = sample.head.removeprefix(BOM)
    position = 0
    for _ in range(_RECORDS):
        end = record_end(data, quote=settings.csv_quote, start=position)
        if end < 0:
            if sample.is_whole and position < len(data):
                yield data[position:].decode("utf-8", "replace").rstrip("\r\n")
            return
        yield data[position:end].decode("utf-8", "replace").rstrip("\r\n")
        position = end


def _delimiter(filled: Sequence[tuple[str, Sequence[str]]], settings: MergeSettings) -> str:
    """The character that splits records alike; empty for a single column."""
    records = [record for _, records in filled for record in records if record]
    scores: dict[str, float] = {}
    for mark in DELIMITERS:
        counts = [len(_fields(record, delimiter=mark, quote=settings.csv_quote)) - 1 for record in records]
        most = max(set(counts), key=counts.count, default=0)
        if most:
            scores[mark] = counts.count(most) / len(counts)
    good = [mark for mark, score in scores.items() if score >= 1 - _MOST_RAGGED]
    if len(good) == 1:
        return good[0]
    if not good and not any(mark in record for record in records for mark in DELIMITERS):
        return ""
    raise InvalidSettingError(
        f"{filled[0][0]}: the delimiter cannot be told ({shown(records[0])}); give csv_delimiter, or csv_header as "
        "'yes' or 'no', which is all it is needed for"
    )


def _has_header(filled: Sequence[tuple[str, Sequence[str]]], *, delimiter: str, settings: MergeSettings) -> bool:
    def split(record: str) -> list[str]:
        return _fields(record, delimiter=delimiter, quote=settings.csv_quote)

    if not filled:
        return False
    firsts = [split(records[0]) for _, records in filled]
    is_same = all(one == firsts[0] for one in firsts)
    if is_same and len(firsts) > 1 and _are_names(firsts[0]):
        rows = [split(record) for _, records in filled for record in records[1:]]
        for column in range(len(firsts[0])):
            values = [row[column] for row in rows if len(row) > column and row[column]]
            if values and all(_VALUE.fullmatch(value) for value in values):
                return True
    if not is_same and all(any(_VALUE.fullmatch(field) for field in one) for one in firsts):
        return False
    shown_first = "; ".join(f"{name}: {shown(records[0])}" for name, records in filled[:2])
    raise InvalidSettingError(
        f"whether the first record is a header cannot be told ({shown_first}); give csv_header as 'yes' or 'no'"
    )


def _are_names(fields: Sequence[str]) -> bool:
    folded = [field.casefold() for field in fields]
    return (
        len(set(folded)) == len(folded)
        and all(_NAME.fullmatch(field) for field in fields)
        and not _NO_NAMES.intersection(folded)
    )


def _fields(record: str, *, delimiter: str, quote: str) -> list[str]:
    """The fields of a record, without the quotes around them."""
    if not delimiter:
        return [record.strip().strip(quote or None)]
    if not quote or quote not in record:
        return [field.strip() for field in record.split(delimiter)]
    fields: list[str] = []
    inside, start = False, 0
    for at, character in enumerate(record):
        if character == quote:
            inside = not inside
        elif character == delimiter and not inside:
            fields.append(record[start:at])
            start = at + 1
    fields.append(record[start:])
    return [field.strip().strip(quote) for field in fields]
