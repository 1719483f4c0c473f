"""The words and figures that plans give their reasons in."""

from __future__ import annotations

from collections.abc import Iterable

_BINARY_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
_TEENS = range(11, 14)


def human_bytes(count: int) -> str:
    """Write a number of bytes for people.

    >>> human_bytes(512), human_bytes(1536), human_bytes(5 * 1024**3)
    ('512 B', '1.5 KiB', '5.0 GiB')
    """
    if abs(count) < 1024:  # noqa: PLR2004 the step between binary units
        return f"{count} B"
    power = min((abs(count).bit_length() - 1) // 10, len(_BINARY_UNITS))
    return f"{count / 1024**power:.1f} {_BINARY_UNITS[power - 1]}"


def compared_bytes(count: int, *, limit: int) -> tuple[str, str]:
    """Write two numbers of bytes that differ so that the difference shows.

    >>> compared_bytes(1024**3 + 1, limit=1024**3)
    ('1,073,741,825 bytes', '1,073,741,824 bytes')
    """
    texts = human_bytes(count), human_bytes(limit)
    return texts if texts[0] != texts[1] or count == limit else (f"{count:,} bytes", f"{limit:,} bytes")


def ordinal(number: int) -> str:
    """Write a place in an order.

    >>> ordinal(1), ordinal(2), ordinal(11), ordinal(23)
    ('1st', '2nd', '11th', '23rd')
    """
    endings = {1: "st", 2: "nd", 3: "rd"}
    ending = "th" if number % 100 in _TEENS else endings.get(number % 10, "th")
    return f"{number}{ending}"


def counted(number: int, noun: str) -> str:
    """Write a number with its noun; the plural takes an s.

    >>> counted(1, "small file"), counted(3, "group")
    ('1 small file', '3 groups')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some_of(names: Iterable[str], *, shown: int = 5) -> str:
    """List the first names in order, and how many more there are.

    >>> some_of(["b", "a", "c"], shown=2)
    "'a', 'b' and 1 more"
    """
    ordered = sorted(names)
    text = ", ".join(repr(name) for name in ordered[:shown])
    rest = len(ordered) - shown
    return f"{text} and {rest} more" if rest > 0 else text
