"""The words and figures that plans give their reasons in."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_hudi_maint.core.model.units import human_bytes


def compared_bytes(count: int, *, limit: int) -> tuple[str, str]:
    """Write two numbers of bytes that differ so that the difference shows.

    >>> compared_bytes(1024**3 + 1, limit=1024**3)
    ('1,073,741,825 bytes', '1,073,741,824 bytes')
    """
    texts = human_bytes(count), human_bytes(limit)
    return texts if texts[0] != texts[1] or count == limit else (f"{count:,} bytes", f"{limit:,} bytes")


def some_of(names: Iterable[str], *, shown: int = 5) -> str:
    """List the first names in order, and how many more there are.

    >>> some_of(["b", "a", "c"], shown=2)
    "'a', 'b' and 1 more"
    """
    ordered = sorted(names)
    text = ", ".join(repr(name) for name in ordered[:shown])
    rest = len(ordered) - shown
    return f"{text} and {rest} more" if rest > 0 else text
