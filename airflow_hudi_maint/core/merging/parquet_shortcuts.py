"""Which columns of a merge take a short way, by what three of its row groups hold.

Pages are joined where nine in ten values differ; dictionaries are kept where there are four rows or more for each of
their values. What turns out to be otherwise on the way is given up for the rest of the merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.merging.parquet_decode import WHOLE_FILE_BYTES, Decoder
from airflow_hudi_maint.core.merging.parquet_encode import Encoder
from airflow_hudi_maint.core.merging.parquet_joint import Piece, joint_table, wanted_columns
from airflow_hudi_maint.core.merging.parquet_pages import can_be_plain
from airflow_hudi_maint.core.merging.parquet_spliced_columns import SplicedColumn
from airflow_hudi_maint.core.merging.parquet_steps import OLD_WRITER, Step
from airflow_hudi_maint.core.merging.parquet_types import BYTE_ARRAY
from airflow_hudi_maint.core.merging.thrift_compact import STRUCT, Struct

if TYPE_CHECKING:
    import pyarrow as pa

_FEWEST_GROUPS = 4
_LEAST_PAGE_BYTES = 12 * 1024
"""Smaller pages, before compression, are not worth their headers to readers, nor their handling to this process."""
_MOSTLY_DISTINCT = 0.9
_ROWS_FOR_A_VALUE = 4
_LEAST_SAMPLE, _SAMPLE_SHARE = 1024, 4


@dataclass(slots=True)
class Shortcuts:
    """Leaf columns that are joined by their pages, and such that are read and written by their dictionaries."""

    spliced: tuple[int, ...] = ()
    coded: tuple[int, ...] = ()
    _given_up: set[int] = field(default_factory=set)

    def give_up(self, place: int) -> None:
        """Let a column go the long way from now on."""
        self._given_up.add(place)

    def left(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Both kinds without those that were given up."""
        gone = frozenset(self._given_up)
        spliced, coded = ([one for one in some if one not in gone] for some in (self.spliced, self.coded))
        return tuple(spliced), tuple(coded)


def shortcuts_of(steps: Sequence[Step], *, decoder: Decoder, encoder: Encoder) -> Shortcuts:
    """Look at row groups from the start, the middle and the end of what is encoded again."""
    refs = [ref for step in steps if is_fit(step, decoder=decoder, encoder=encoder) for ref in step.groups]
    if not refs:
        return Shortcuts()
    pieces = decoder.pieces([refs[place] for place in sorted({0, len(refs) // 2, len(refs) - 1})])
    spliced = _spliced(pieces, decoder=decoder, encoder=encoder)
    coded = _coded(pieces, decoder=decoder, encoder=encoder)
    if len(spliced) == len(encoder.leaves):  # rows are counted by a column that is encoded
        spliced.pop()
    return Shortcuts(spliced=tuple(spliced), coded=tuple(one for one in coded if one not in spliced))


def is_fit(step: Step, *, decoder: Decoder, encoder: Encoder) -> bool:
    """Whether the files of a step, and the settings of a merge, leave pages as they are."""
    survey = decoder.survey
    files = [survey.files[one.file] for one in step.groups]
    usual: tuple[int, list[Struct]] = (STRUCT, [{1: (STRUCT, {})} for _ in encoder.leaves])
    return (
        not step.is_copy
        and len(step.groups) >= _FEWEST_GROUPS
        and encoder.codec is None
        and encoder.compression_level is None
        and sum(one.rows for one in step.groups) <= encoder.max_rows
        and not any(one.has_page_index or one.has_bloom_filter for one in encoder.columns)
        and all(one.file_bytes <= WHOLE_FILE_BYTES and decoder.schema.is_same[one.schema] for one in files)
        and all(one.column_orders == usual for one in survey.schemas)
        and not any(OLD_WRITER.search(one) for one in survey.created_by)
    )


def _spliced(pieces: Sequence[Piece], *, decoder: Decoder, encoder: Encoder) -> list[int]:
    columns = [SplicedColumn.of(encoder, place) for place in range(len(encoder.leaves)) if _may_splice(encoder, place)]
    for content, metadata, number in pieces:
        group = metadata.row_group(number)
        columns = [one for one in columns if one.add(group, content=content, values=None)]
    columns = [one for one in columns if one.plain_bytes >= _LEAST_PAGE_BYTES * one.pages]
    tried = [one.place for one in columns if one.settings.has_dictionary]
    values = _values(pieces, tried, decoder=decoder, encoder=encoder)
    rows = [metadata.row_group(number).num_rows for _, metadata, number in pieces]
    few = {place for place, column in zip(tried, values, strict=True) if not _are_distinct(column, rows=rows)}
    return [one.place for one in columns if one.place not in few]


def _coded(pieces: Sequence[Piece], *, decoder: Decoder, encoder: Encoder) -> list[int]:
    places = [place for place in range(len(encoder.leaves)) if _may_be_coded(encoder, place)]
    values = _values(pieces, places, decoder=decoder, encoder=encoder, as_dictionaries=True)
    return [place for place, column in zip(places, values, strict=True) if _has_few_values(column)]


def _values(
    pieces: Sequence[Piece],
    places: Sequence[int],
    *,
    decoder: Decoder,
    encoder: Encoder,
    as_dictionaries: bool = False,
) -> list[pa.ChunkedArray | None]:
    """Of some flat columns; None for each where that takes another reading, which is left to those who encode it."""
    import pyarrow as pa

    others = frozenset(range(len(encoder.leaves))).difference(places)
    root = decoder.schema.root
    wanted = wanted_columns(root, names=range(len(root.children)), without=others)
    names = [encoder.names[place] for place in places]
    table = None
    if places:
        try:
            table = joint_table(pieces, wanted=wanted, dictionaries=names if as_dictionaries else ())
        except (pa.ArrowException, OSError, IndexError):  # said with the name of the file by those who encode it
            table = None
    return [None] * len(places) if table is None else list(table.columns)


def _may_splice(encoder: Encoder, place: int) -> bool:
    column, leaf = encoder.columns[place], encoder.leaves[place]
    meaning = leaf.node.annotation
    return (
        encoder.flat[place] is not None
        and column.codec in ("none", "snappy")
        and column.encoding is None
        and not column.has_second_page_version
        and can_be_plain(leaf.node.physical_type)
        and leaf.has_order
        and not (bool(meaning) and meaning[0] == "integer" and not meaning[2])
    )


def _may_be_coded(encoder: Encoder, place: int) -> bool:
    leaf = encoder.leaves[place]
    return (
        encoder.flat[place] is not None
        and encoder.columns[place].has_dictionary
        and leaf.node.physical_type == BYTE_ARRAY
        and leaf.has_order
    )


def _are_distinct(values: pa.ChunkedArray | None, *, rows: Sequence[int]) -> bool:
    """Whether hardly a value comes twice across row groups of so many rows, in each of which none does.

    A part of each tells: they have the same values then, or hardly any.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if values is None or not len(values):
        return False
    starts = accumulate(rows, initial=0)
    counts = [min(count, max(_LEAST_SAMPLE, count // _SAMPLE_SHARE)) for count in rows]
    parts = [values.slice(start, count).chunks for start, count in zip(starts, counts, strict=False)]
    sample = pa.chunked_array([chunk for part in parts for chunk in part], type=values.type)
    return bool(pc.count_distinct(sample).as_py() >= _MOSTLY_DISTINCT * len(sample))


def _has_few_values(values: pa.ChunkedArray | None) -> bool:
    import pyarrow as pa

    chunks = [] if values is None else values.chunks
    if not chunks or not all(isinstance(one, pa.DictionaryArray) for one in chunks):
        return False
    return sum(len(one.dictionary) for one in chunks) * _ROWS_FOR_A_VALUE <= sum(map(len, chunks))
