"""Partitions by the folder that they lie in: what is true of a folder is found out once.

A table of 100,000 partitions has far fewer folders above them, and mostly these decide which policy wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.statistics import PartitionStatistics


class Block(NamedTuple):
    """Partitions that share the values of all fields but the last: ``leaves`` has each one's last value.

    ``places`` are their places among all rows, in the same order as ``leaves``.
    """

    parents: tuple[str, ...]
    leaves: Sequence[str]
    places: Sequence[int]

    def values(self, number: int) -> tuple[str, ...]:
        """All values of one of them."""
        return (*self.parents, self.leaves[number])

    def picking(self, numbers: Iterable[int]) -> Block:
        """Some of them."""
        chosen = list(numbers)
        return Block(self.parents, [self.leaves[one] for one in chosen], [self.places[one] for one in chosen])


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBlocks:
    """All partitions of a table: ``rows`` in path order, ``blocks`` over those whose paths fit the scheme."""

    rows: Sequence[PartitionStatistics]
    blocks: Sequence[Block]
    misfits: Sequence[int]

    @classmethod
    def of(cls, rows: Iterable[PartitionStatistics], *, scheme: PartitionScheme) -> PartitionBlocks:
        """Sort rows by path and cut them into blocks."""
        ordered = sorted(rows, key=attrgetter("partition_path"))
        misfits: list[int] = []
        if len(scheme.fields) > 1 or (scheme.fields and scheme.hive_style):
            blocks = list(_blocks(ordered, scheme=scheme, misfits=misfits))
        else:
            blocks = list(_each(range(len(ordered)), ordered, scheme=scheme, misfits=misfits))
        return cls(rows=ordered, blocks=blocks, misfits=misfits)


def _blocks(rows: Sequence[PartitionStatistics], *, scheme: PartitionScheme, misfits: list[int]) -> Iterator[Block]:
    """Cut at each change of folder; rows of one folder are neighbours in path order."""
    start = 0
    cut = (row.partition_path.rpartition("/") for row in rows)
    for _, folder in groupby(cut, key=itemgetter(0, 1)):
        leaves = [leaf for _, _, leaf in folder]
        yield from _folder(leaves, start, rows=rows, scheme=scheme, misfits=misfits)
        start += len(leaves)


def _folder(
    leaves: Sequence[str],
    start: int,
    *,
    rows: Sequence[PartitionStatistics],
    scheme: PartitionScheme,
    misfits: list[int],
) -> Iterator[Block]:
    """One block, where every path of the folder is written in the same way; else each row as its path says."""
    places = range(start, start + len(leaves))
    prefix = f"{scheme.fields[-1]}="
    width = len(prefix)
    first = None if scheme.url_encoded else scheme.values(rows[start].partition_path)
    named = sum([leaf.startswith(prefix) for leaf in leaves])
    if first is not None and named == len(leaves) and first[-1] == leaves[0][width:]:
        yield Block(first[:-1], [leaf[width:] for leaf in leaves], places)
    elif first is not None and not scheme.hive_style and not any(map(scheme.names_a_field, leaves)):
        yield Block(first[:-1], leaves, places)
    else:
        yield from _each(places, rows, scheme=scheme, misfits=misfits)


def _each(
    places: Sequence[int], rows: Sequence[PartitionStatistics], *, scheme: PartitionScheme, misfits: list[int]
) -> Iterator[Block]:
    """Blocks of rows whose paths are read one by one: of plain paths, and of encoded ones."""
    found: dict[tuple[str, ...], tuple[list[str], list[int]]] = {}
    for place in places:
        values = scheme.values(rows[place].partition_path)
        if values is None:
            misfits.append(place)
            continue
        leaves, chosen = found.setdefault(values[:-1], ([], []))
        leaves.append(values[-1] if values else "")  # a table without partitions has one, without a value
        chosen.append(place)
    for parents, (leaves, chosen) in found.items():
        yield Block(parents, leaves, chosen)
