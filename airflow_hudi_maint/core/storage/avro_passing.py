"""Read which partitions a commit wrote to, passing over the write stats of their files.

A commit has some thirty fields for each file, and most readers of a timeline want none of them. Fields of a fixed shape
(numbers, mostly absent ones) are passed over by one regular expression for each run of them, which takes a third of the
time of decoding. What comes out is the record without the stats, in Avro's binary form, for the usual decoder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

STATS_FIELD = "partitionToWriteStats"
"""The first field of commit metadata: write stats by partition."""

_VARINT = rb"[\x80-\xff]*+[\x00-\x7f]"
_REGULAR = {
    "null": b"",
    "boolean": b"[\x00\x01]",
    "int": _VARINT,
    "long": _VARINT,
    "float": b".{4}",
    "double": b".{8}",
}
_ABSENT, _PRESENT = 0, 2
_EMPTY_MAP = b"\x02\x00"
_LONGEST_SHIFT = 63

_Match: TypeAlias = Callable[[bytes, int], re.Match[bytes] | None]
_Past: TypeAlias = Callable[[bytes, int], int]


class OtherShapeError(ValueError):
    """The data is not what its schema says, or a part of it has to be read in the usual way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStatsPasser:
    """Passes over the write stats at the beginning of commit metadata of one schema.

    ``steps`` cover one write stat: each is an expression for a run of fields of fixed shape, and what passes over the
    optional value of another shape behind it. ``last`` is the run at the end.
    """

    steps: tuple[tuple[_Match, _Past], ...]
    last: _Match

    @classmethod
    def of(cls, schema: Any) -> WriteStatsPasser | None:  # noqa: ANN401 any JSON
        """One for commit metadata of this schema; None for a schema of another shape."""
        try:
            first = schema["fields"][0]
            absent, stats = first["type"]
            if (first["name"], absent, stats["type"], stats["values"]["type"]) != (STATS_FIELD, "null", "map", "array"):
                return None
            runs, passes = _split(stats["values"]["items"]["fields"])
        except (KeyError, IndexError, TypeError, ValueError):
            return None
        *matches, last = (re.compile(run, re.DOTALL).match for run in runs)
        return cls(steps=tuple(zip(matches, passes, strict=True)), last=last)

    def without_stats(self, data: bytes, *, start: int) -> tuple[bytes, tuple[str, ...]]:
        """The record that begins at ``start`` with an empty map of stats, and the partitions that the map had.

        Raises OtherShapeError where the data is not what the schema says.
        """
        try:
            if data[start] == _ABSENT:
                return data[start:], ()
            partitions: list[str] = []
            count, position = _block(data, _past_branch(data, start))
            while count:
                for _ in range(count):
                    end = _past_text(data, position)
                    partitions.append(data[_number(data, position)[1] : end].decode())
                    position = self._past_stats(data, end)
                count, position = _block(data, position)
        except (IndexError, AttributeError, UnicodeDecodeError) as error:
            raise OtherShapeError(f"the write stats are broken: {error!r}") from error
        return _EMPTY_MAP + data[position:], tuple(partitions)

    def _past_stats(self, data: bytes, position: int) -> int:
        count, position = _block(data, position)
        while count:
            for _ in range(count):
                for run, past in self.steps:
                    position = run(data, position).end()  # type: ignore[union-attr]  # None: an AttributeError
                    if data[position] == _ABSENT:
                        position += 1
                    else:
                        position = past(data, _past_branch(data, position))
                position = self.last(data, position).end()  # type: ignore[union-attr]
            count, position = _block(data, position)
        return position


def _split(fields: list[Mapping[str, Any]]) -> tuple[list[bytes], list[_Past]]:
    """Expressions for the runs of a record's fields, and what passes over the optional value between each two.

    Raises ValueError for a field that is neither.
    """
    runs: list[list[bytes]] = [[]]
    passes = []
    for kind in (field["type"] for field in fields):
        pattern = _pattern(kind)
        if pattern is None:
            absent, value = kind
            passes.append(_PASSES[_shape(value) if absent == "null" else absent])
            runs.append([])
        else:
            runs[-1].append(pattern)
    return [*map(_repeated, runs)], passes


def _repeated(patterns: Iterable[bytes]) -> bytes:
    """One expression for several; equal neighbours are counted, since a long expression takes long to compile."""
    counted = ((pattern, len([*group])) for pattern, group in groupby(patterns))
    return b"".join(b"(?:%s){%d}" % one for one in counted)


def _pattern(kind: Any) -> bytes | None:  # noqa: ANN401 any JSON
    """An expression for values of a fixed shape; None for others."""
    if isinstance(kind, list):
        branches = [_pattern(one) for one in kind]
        if None in branches:
            return None
        return b"(?:" + b"|".join(rb"\x%02x%s" % (2 * number, one) for number, one in enumerate(branches)) + b")"
    if isinstance(kind, Mapping) and kind.get("type") == "record":
        patterns = [_pattern(field["type"]) for field in kind["fields"]]
        return None if None in patterns else _repeated(filter(None, patterns))
    return _REGULAR.get(_shape(kind))


def _shape(kind: Any) -> str:  # noqa: ANN401 any JSON
    """A type in one word, for looking up: ``string``, ``array of string``, ``map of long``."""
    if not isinstance(kind, Mapping):
        return str(kind)
    name = str(kind["type"])
    below = kind.get("items", kind.get("values"))
    return name if below is None else f"{name} of {_shape(below)}"


def _number(data: bytes, position: int) -> tuple[int, int]:
    """A number, and where it ends."""
    byte = data[position]
    if byte < 0x80:  # noqa: PLR2004 Avro's mark of the last byte, most often of the only one
        return (byte >> 1) ^ -(byte & 1), position + 1
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
        if byte < 0x80:  # noqa: PLR2004
            return (value >> 1) ^ -(value & 1), position
        if shift > _LONGEST_SHIFT:
            raise IndexError("a number has too many bytes")


def _past_branch(data: bytes, position: int) -> int:
    if data[position] != _PRESENT:
        raise IndexError("an optional value is neither there nor absent")
    return position + 1


def _past_number(data: bytes, position: int) -> int:
    return _number(data, position)[1]


def _past_text(data: bytes, position: int) -> int:
    length, position = _number(data, position)
    if not 0 <= length <= len(data) - position:
        raise IndexError("a text ends behind the data")
    return position + length


def _block(data: bytes, position: int) -> tuple[int, int]:
    """How many items the next block of an array or map has, and where they begin; no items end it."""
    count, position = _number(data, position)
    if count < 0:  # such a block tells its bytes, too
        position = _past_number(data, position)
    return abs(count), position


def _past_blocks(data: bytes, position: int, *, items: tuple[_Past, ...]) -> int:
    count, position = _block(data, position)
    while count:
        for _ in range(count):
            for past in items:
                position = past(data, position)
        count, position = _block(data, position)
    return position


_PASSES: Mapping[str, _Past] = {
    "string": _past_text,
    "bytes": _past_text,
    "array of string": lambda data, position: _past_blocks(data, position, items=(_past_text,)),
    "map of string": lambda data, position: _past_blocks(data, position, items=(_past_text, _past_text)),
    "map of long": lambda data, position: _past_blocks(data, position, items=(_past_text, _past_number)),
}
