"""How a column was written, as far as its footer tells, so that it can be written like that again."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_hudi_maint.core.errors import UnreadableFileError
from airflow_hudi_maint.core.merging.parquet_footer import (
    BLOOM_FILTER_OFFSET,
    CODEC,
    COLUMN_INDEX_OFFSET,
    DICTIONARY_PAGE_OFFSET,
    ENCODING_STATS,
    ENCODINGS,
    META_DATA,
    ROW_COUNT,
    STATISTICS,
    chunks,
    number,
    row_groups,
)
from airflow_hudi_maint.core.merging.thrift_compact import Struct

CODECS = ("none", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4")
"""By the format's CompressionCodec. The old LZ4 (5) and LZ4_RAW (7) are one to pyarrow, which writes the latter."""

_DICTIONARY_ENCODINGS = frozenset((2, 8))
_OTHER_ENCODINGS = {
    5: "DELTA_BINARY_PACKED",
    6: "DELTA_LENGTH_BYTE_ARRAY",
    7: "DELTA_BYTE_ARRAY",
    9: "BYTE_STREAM_SPLIT",
}
_DATA_PAGE_V2 = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSettings:
    """A leaf column in the first row group that has rows. ``encoding`` is None for plain and for a dictionary."""

    codec: str
    has_dictionary: bool
    encoding: str | None
    has_statistics: bool
    has_page_index: bool
    has_bloom_filter: bool
    has_second_page_version: bool


def settings_of(footer: Struct, *, name: str) -> tuple[ColumnSettings, ...] | None:
    """The settings of each leaf column; None for a file without rows."""
    for group in row_groups(footer):
        if number(group, ROW_COUNT):
            try:
                return tuple(_settings(chunk) for chunk in chunks(group))
            except (KeyError, IndexError) as error:
                raise UnreadableFileError(f"{name} has a Parquet footer that lacks field {error}") from error
    return None


def _settings(chunk: Struct) -> ColumnSettings:
    meta = chunk[META_DATA][1]
    used = frozenset(meta[ENCODINGS][1][1])
    has_dictionary = number(meta, DICTIONARY_PAGE_OFFSET) > 0 or bool(used & _DICTIONARY_ENCODINGS)
    other = next((name for code, name in _OTHER_ENCODINGS.items() if code in used), None)
    pages = meta[ENCODING_STATS][1][1] if ENCODING_STATS in meta else []
    return ColumnSettings(
        codec=CODECS[number(meta, CODEC)],
        has_dictionary=has_dictionary,
        encoding=None if has_dictionary else other,
        has_statistics=STATISTICS in meta,
        has_page_index=COLUMN_INDEX_OFFSET in chunk,
        has_bloom_filter=number(meta, BLOOM_FILTER_OFFSET) > 0,
        has_second_page_version=any(number(page, 1) == _DATA_PAGE_V2 for page in pages),
    )
