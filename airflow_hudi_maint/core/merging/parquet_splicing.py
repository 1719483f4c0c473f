"""Encode the row groups of a step again as one, with a short way for the columns that have one.

A column whose values hardly repeat ends as plain pages anyway. Those of the inputs are taken then (``parquet_pages``),
with the ranges of their footers; a chunk that does not fit is decoded and written plain for itself. A column of few
texts is read and written by its dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.merging.parquet_decode import Decoder
from airflow_hudi_maint.core.merging.parquet_encode import EncodedGroups, Encoder
from airflow_hudi_maint.core.merging.parquet_footer import (
    CHUNK_UNCOMPRESSED_SIZE,
    COLUMNS,
    DATA_PAGE_OFFSET,
    DICTIONARY_PAGE_OFFSET,
    GROUP_FILE_OFFSET,
    MAGIC,
    META_DATA,
    ROW_COUNT,
    TOTAL_BYTE_SIZE,
    TOTAL_COMPRESSED_SIZE,
    chunk_range,
    chunks,
    number,
)
from airflow_hudi_maint.core.merging.parquet_joint import Piece, WantedColumns, wanted_columns
from airflow_hudi_maint.core.merging.parquet_shortcuts import Shortcuts, is_fit
from airflow_hudi_maint.core.merging.parquet_sources import MemorySource
from airflow_hudi_maint.core.merging.parquet_spliced_columns import CodedColumn, MisfitError, SplicedColumn
from airflow_hudi_maint.core.merging.parquet_steps import Step
from airflow_hudi_maint.core.merging.parquet_types import BYTE_ARRAY
from airflow_hudi_maint.core.merging.thrift_compact import I64, LIST, STRUCT, Struct

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True)
class Splice:
    """A row group in the making: ``columns`` are joined by their pages, ``rest`` encodes the others.

    Of these ``coded`` are read as dictionaries. ``wanted`` are the columns that are decoded.
    """

    columns: list[SplicedColumn]
    coded: list[CodedColumn]
    rest: Encoder
    wanted: WantedColumns

    @property
    def names(self) -> list[str]:
        """The columns that are decoded."""
        return list(self.rest.arrow_schema.names)

    @property
    def coded_names(self) -> list[str]:
        """Those of them that are read as dictionaries."""
        return [one.name for one in self.coded]

    def add(self, piece: Piece, *, values: Callable[[str], pa.ChunkedArray]) -> None:
        """Add a row group; ``values`` decodes one of its columns. Raises MisfitError for a column that does not fit."""
        group = piece.metadata.row_group(piece.group)
        for one in self.columns:
            one.add(group, content=piece.content, values=values)
        for coded in self.coded:
            coded.add(group)

    def encoded(self, tables: Iterable[pa.Table]) -> EncodedGroups | None:
        """The row group of all values of a step; None where they are too many for one."""
        import pyarrow as pa

        gathered: list[pa.Table] = []
        size = 0
        for one in tables:
            gathered.append(one)
            size += one.nbytes
            if size > self.rest.max_bytes:
                return None
        table = pa.concat_tables(gathered)
        del gathered
        for coded in self.coded:
            place = table.schema.get_field_index(coded.name)
            table = table.set_column(place, table.schema.field(place), coded.unified(table.column(place)))
        told = [one.name for one in self.coded if one.is_told]
        return self._joined(self.rest.encoded(table, without_statistics=told))

    def _joined(self, encoded: EncodedGroups) -> EncodedGroups:
        """One row group of the encoded columns and of those that are joined by their pages."""
        group = encoded.groups[0]
        data = memoryview(encoded.source.read(0, encoded.source.data_ends_at))
        others = iter(chunks(group))
        mine = {one.place: one for one in self.columns}
        coded = {one.place: one for one in self.coded}
        parts: list[bytes | memoryview] = [MAGIC]
        at = len(MAGIC)
        found: list[Struct] = []
        for place in range(len(mine) + len(chunks(group))):
            if place in mine:
                found.append(mine[place].chunk(start=at))
                parts.extend(mine[place].parts)
                at += mine[place].size
                continue
            chunk = next(others)
            first, end = chunk_range(chunk)
            moved = _moved(chunk, by=at - first)
            found.append(coded[place].described(moved, physical_type=BYTE_ARRAY) if place in coded else moved)
            parts.append(data[first:end])
            at += end - first
        whole = {
            **group,
            COLUMNS: (LIST, (STRUCT, found)),
            TOTAL_BYTE_SIZE: (I64, sum(number(one[META_DATA][1], CHUNK_UNCOMPRESSED_SIZE) for one in found)),
            GROUP_FILE_OFFSET: (I64, len(MAGIC)),
            TOTAL_COMPRESSED_SIZE: (I64, at - len(MAGIC)),
        }
        source = MemorySource(parts=tuple(parts), name=encoded.source.name, data_ends_at=at)
        return EncodedGroups(source=source, groups=(whole,))

    def is_whole(self, encoded: EncodedGroups) -> bool:
        """Whether all columns have all rows."""
        rows = number(encoded.groups[0], ROW_COUNT)
        return all(one.values == rows for one in self.columns)


def encoded_step(step: Step, *, decoder: Decoder, encoder: Encoder, shortcuts: Shortcuts) -> Iterator[EncodedGroups]:
    """The row groups of a step, with the short ways where its files are fit for them, else by all values."""
    encoded = _spliced(step, decoder=decoder, encoder=encoder, shortcuts=shortcuts)
    if encoded is not None:
        yield encoded
        return
    yield from encoder.row_groups(decoder.tables(step))


def _spliced(step: Step, *, decoder: Decoder, encoder: Encoder, shortcuts: Shortcuts) -> EncodedGroups | None:
    if not is_fit(step, decoder=decoder, encoder=encoder):
        return None
    while any(shortcuts.left()):
        splice = _splice(shortcuts, decoder=decoder, encoder=encoder)
        try:
            encoded = splice.encoded(decoder.tables(step, splice=splice))
        except MisfitError as error:
            shortcuts.give_up(error.place)
            continue
        return encoded if encoded is not None and splice.is_whole(encoded) else None
    return None


def _splice(shortcuts: Shortcuts, *, decoder: Decoder, encoder: Encoder) -> Splice:
    spliced, coded = shortcuts.left()
    root = decoder.schema.root
    return Splice(
        columns=[SplicedColumn.of(encoder, place) for place in spliced],
        coded=[CodedColumn.of(encoder, place) for place in coded],
        rest=_without(encoder, set(spliced)),
        wanted=wanted_columns(root, names=range(len(root.children)), without=frozenset(spliced)),
    )


def _without(encoder: Encoder, places: set[int]) -> Encoder:
    """The encoder of the other columns; those that are left out are flat, so that each is one leaf."""
    import pyarrow as pa

    kept = [place for place in range(len(encoder.leaves)) if place not in places]
    gone = {encoder.flat[place] for place in places}
    tops = [top for top in range(len(encoder.arrow_schema)) if top not in gone]
    return replace(
        encoder,
        arrow_schema=pa.schema([encoder.arrow_schema.field(top) for top in tops]),
        leaves=tuple(encoder.leaves[place] for place in kept),
        columns=tuple(encoder.columns[place] for place in kept),
        names=tuple(encoder.names[place] for place in kept),
        flat=tuple(None if (top := encoder.flat[place]) is None else tops.index(top) for place in kept),
    )


def _moved(chunk: Struct, *, by: int) -> Struct:
    """A chunk that begins elsewhere."""
    meta = dict(chunk[META_DATA][1])
    for place in (DATA_PAGE_OFFSET, DICTIONARY_PAGE_OFFSET):
        if number(meta, place) > 0:
            meta[place] = (I64, number(meta, place) + by)
    return {**chunk, META_DATA: (STRUCT, meta)}
