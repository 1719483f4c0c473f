"""The order in which a Java ``HashSet`` of texts is iterated, which is the order of file groups in Hudi's view.

Source: ``AbstractTableFileSystemView.buildFileGroups``, which collects a partition's file ids in such a set: first
those with base files, which size its table, then those with log files. Which small files an insert fills follows from
it whenever it does not fill all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_INT = 0xFFFFFFFF
_SIGN = 0x80000000
_MULTIPLIER = 31
_SPREAD = 16
_LEAST_CAPACITY = 16
_LOAD_FACTOR = 0.75


def java_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 units, in 32 bits with a sign.

    >>> java_hash("hello"), java_hash("polygenelubricants")
    (99162322, -2147483648)
    """
    value = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (_MULTIPLIER * value + (high << 8 | low)) & _INT
    return value - (_INT + 1) if value & _SIGN else value


def hash_set_order(texts: Iterable[str], *, filled_with: int, grown_to: int, arrivals: Sequence[str] = ()) -> list[str]:
    """The texts as a ``HashSet`` of them is iterated.

    ``filled_with`` is how many texts the set was made from and ``grown_to`` how many it has in the end. Texts of one
    bucket are iterated in the order in which they came (``arrivals``): that of a listing, which is by name on HDFS and
    object stores, and by chance on a local disk.

    >>> hash_set_order(["b", "a", "q"], filled_with=3, grown_to=3)
    ['a', 'q', 'b']
    """
    capacity = _LEAST_CAPACITY
    while capacity < int(filled_with / _LOAD_FACTOR) + 1:
        capacity *= 2
    while grown_to > capacity * _LOAD_FACTOR:
        capacity *= 2
    places = {text: place for place, text in enumerate(arrivals)}
    return sorted(texts, key=lambda text: (_bucket(text, capacity=capacity), places.get(text, len(places)), text))


def _bucket(text: str, *, capacity: int) -> int:
    value = java_hash(text) & _INT
    return (value ^ value >> _SPREAD) & (capacity - 1)
