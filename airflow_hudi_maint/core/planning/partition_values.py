"""The order of a partition field's values: texts in paths, typed when compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from airflow_hudi_maint.core.planning.wording import some_of

SortKey: TypeAlias = "tuple[int | float | Decimal, str]"
_Parser: TypeAlias = "Callable[[str], int | Decimal | None]"

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,255}")
_YEAR_FIRST_DATE = re.compile(r"([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_YEAR_FIRST = re.compile(r"([0-9]{4})[-/]([0-9]{1,2})(?:[-/]([0-9]{1,2})(?:[-/ T]([0-9]{1,2}))?)?")
_YEAR_FIRST_DIGITS = re.compile(r"((?:19|20|21)[0-9]{2})([0-9]{2})(?:([0-9]{2})([0-9]{2})?)?")
_DAY_FIRST = re.compile(
    r"[0-9]{1,2}([-/.])[0-9]{1,2}\1[0-9]{4}|(?:0[1-9]|[12][0-9]|3[01])(?:0[1-9]|1[0-2])(?:19|20)[0-9]{2}"
)
_BOOLEANS = {"false": 0, "true": 1}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 subtracted from moments without a zone


@dataclass(frozen=True, kw_only=True)
class ValueOrder:
    """How the values of one field compare.

    ``keys`` has the sort key of every value that has a place in the order; ``strays`` has the others.
    """

    field: str
    compared_as: str
    keys: Mapping[str, SortKey]
    strays: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """The place of each value in the order, from 0; sorted once for all the policies that compare the field."""
        return {value: rank for rank, value in enumerate(sorted(self.keys, key=self.keys.__getitem__))}


def order_values(values: Collection[str], *, field: str, field_type: str | None) -> ValueOrder:
    """Order the values of a partition field by its Avro type; a value that is none of that type has no place.

    Equal values (``9`` and ``09``) are ordered by their text. Dates and timestamps that are all whole numbers (days
    or ticks since an epoch, ``20261130``) compare as numbers. Values that a key generator has rewritten to dates with
    the year first (``2026-11``, ``2026/11/30``, ``2026-11-30-09``) compare as dates, whatever the type says.

    A text field, or one whose type is not known (None), compares as numbers when every value is one, since months and
    hours are often written as text and ``10`` comes before ``9`` as such; as dates when every value is one; and else
    as text. Where some values are numbers or dates that text would put in another order, the others have no place.

    Dates with the day first have no place either: as text they go by the day, as numbers (``30112026``), too.
    Warnings say where any of this may surprise.

    >>> order = order_values(["10", "9", "x"], field="month", field_type="int")
    >>> sorted(order.keys, key=order.keys.__getitem__), order.strays
    (['9', '10'], frozenset({'x'}))
    """
    typed = _typed_parser(values, field_type=field_type)
    if typed is None:
        return _order_of_texts(values, field=field, field_type=field_type)
    compared_as, parse = typed
    keys = _keys(values, parse=parse)
    strays = frozenset(set(values) - keys.keys())
    if not strays:
        return _misread(values, field=field) or ValueOrder(field=field, compared_as=compared_as, keys=keys)
    dates = _keys(values, parse=_year_first)
    if len(dates) == len(values):
        warning = (
            f"the values of partition field {field!r} are not {compared_as}, which its type {field_type} asks for, "
            f"but dates with the year first, and compare as such: {some_of(strays)}"
        )
        return ValueOrder(field=field, compared_as="dates", keys=dates, warnings=(warning,))
    if keys:
        which = f"{len(strays)} of {len(values)} values are none, so these neither expire nor count"
    else:
        which = "no value is one, so nothing expires there by count or size"
    warning = f"partition field {field!r} compares as {compared_as}, but {which}: {some_of(strays)}"
    return ValueOrder(field=field, compared_as=compared_as, keys=keys, strays=strays, warnings=(warning,))


def _order_of_texts(values: Collection[str], *, field: str, field_type: str | None) -> ValueOrder:
    as_number = _decimal if field_type is None else _whole
    numbers, dates = _keys(values, parse=as_number), _keys(values, parse=_year_first)
    if (unknown := _misread(values, field=field)) is not None:
        return unknown
    warnings = []
    keys: Mapping[str, SortKey]
    if len(dates) == len(values) and (len(numbers) < len(values) or len({*map(len, values)}) > 1):
        compared_as, keys = "dates", dates  # 202612 and 20261130 as well, which are no numbers of one kind
    elif len(numbers) == len(values):
        compared_as, keys = "numbers", numbers
    else:
        misread = [(name, found) for name, found in (("numbers", numbers), ("dates", dates)) if _swapped(found)]
        if len(misread) > 1:
            return _without_order(values, field=field, why=f"both numbers and dates: {some_of(values)}")
        compared_as, keys = misread[0] if misread else ("text", {value: (0, value) for value in values})
    strays = frozenset(set(values) - keys.keys())
    if field_type is None:
        warnings.append(
            f"the table's schema does not tell the type of partition field {field!r}: "
            f"its values compare as {compared_as}"
        )
    swapped = _swapped(keys)
    if strays and swapped:
        warnings.append(
            f"partition field {field!r} compares as {compared_as}, since {swapped[1]!r} would go before {swapped[0]!r} "
            f"as text, so {len(strays)} of {len(values)} values, which are none, neither expire nor count: "
            f"{some_of(strays)}"
        )
    elif swapped and compared_as == "numbers" and field_type is not None:
        warnings.append(
            f"partition field {field!r} has the type {field_type}, but its values are all whole numbers and compare "
            f"so: {swapped[0]!r} goes before {swapped[1]!r}"
        )
    return ValueOrder(field=field, compared_as=compared_as, keys=keys, strays=strays, warnings=tuple(warnings))


def _without_order(values: Collection[str], *, field: str, why: str) -> ValueOrder:
    warning = (
        f"the values of partition field {field!r} are {why}; in which order they go is not known, so nothing expires "
        "there by count or size; KEEP_BY_TIME goes by no order"
    )
    return ValueOrder(field=field, compared_as="dates", keys={}, strays=frozenset(values), warnings=(warning,))


def _misread(values: Collection[str], *, field: str) -> ValueOrder | None:
    """No order, where several values look like dates with the day first: as text and as numbers they go by the day."""
    found = [value for value in values if _DAY_FIRST.fullmatch(value)]
    if len(found) < 2 or all(map(_YEAR_FIRST_DIGITS.fullmatch, found)):  # noqa: PLR2004 one alone is in no order
        return None
    return _without_order(values, field=field, why=f"dates with the day first: {some_of(found)}")


def _keys(values: Collection[str], *, parse: _Parser) -> dict[str, SortKey]:
    """The sort keys of the values that can be parsed."""
    return {value: (rank, value) for value in values if (rank := parse(value)) is not None}


def _swapped(numbers: Mapping[str, SortKey]) -> tuple[str, str] | None:
    """The first two neighbours by number that text would put the other way round."""
    ordered = sorted(numbers, key=numbers.__getitem__)
    return next(((low, high) for low, high in pairwise(ordered) if low > high), None)


def _typed_parser(values: Collection[str], *, field_type: str | None) -> tuple[str, _Parser] | None:
    """What values of a type are called, and how one is read; None for text and for a type that is not known."""
    kind = (field_type or "").lower()
    if kind == "date" or "timestamp" in kind:
        # Key generators write a date as text or, for some writers, as the number that Avro stores.
        if values and all(_whole(value) is not None for value in values):
            return "numbers", _whole
        return ("dates", _day) if kind == "date" else ("timestamps", _microseconds)
    # A decimal has its precision and scale with it: decimal(10,2).
    return _PARSERS.get(kind.partition("(")[0])


def _boolean(value: str) -> int | None:
    return _BOOLEANS.get(value.lower())


def _whole(value: str) -> int | None:
    return int(value) if _WHOLE_NUMBER.fullmatch(value) else None


def _decimal(value: str) -> Decimal | None:
    return Decimal(value) if _NUMBER.fullmatch(value) else None


def _day(value: str) -> int | None:
    match = _YEAR_FIRST_DATE.fullmatch(value)
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[2]), int(match[3])).toordinal()
    except ValueError:
        return None


def _year_first(value: str) -> int | None:
    """Read a date, with or without its day and hour, also as digits alone."""
    match = _YEAR_FIRST.fullmatch(value) or _YEAR_FIRST_DIGITS.fullmatch(value)
    if match is None:
        return None
    try:
        moment = datetime(int(match[1]), int(match[2]), int(match[3] or 1), int(match[4] or 0))  # noqa: DTZ001 no zone
    except ValueError:
        return None
    return moment.toordinal() * 24 + moment.hour


def _microseconds(value: str) -> int | None:
    try:
        moment = datetime.fromisoformat(value.replace("/", "-"))
    except ValueError:
        return None
    local = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    elapsed = local - _EPOCH
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds


_PARSERS: Mapping[str, tuple[str, _Parser]] = {
    "int": ("numbers", _whole),
    "long": ("numbers", _whole),
    "float": ("numbers", _decimal),
    "double": ("numbers", _decimal),
    "decimal": ("numbers", _decimal),
    "boolean": ("booleans", _boolean),
}
