"""What the footer of one data file tells of its rows, for comparing files with each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Bound: TypeAlias = "int | float | str | bytes | object"
"""A least or greatest value as the footer has it; values of one column compare with each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """One Parquet file by its footer.

    ``null_counts`` are by leaf column (``place.city``), None where the writer kept no statistics; columns within lists
    and maps are left out: their counts are not of rows. ``types`` are of top-level columns, nested ones spelt out.
    ``ranges`` have the least and greatest value of the columns asked for; a column without any value has no range, and
    one whose statistics are missing stands in ``unranged``.
    """

    path: str
    rows: int
    null_counts: Mapping[str, int | None]
    types: Mapping[str, str]
    ranges: Mapping[str, tuple[Bound, Bound]]
    unranged: frozenset[str] = frozenset()
