"""The order of a partition field's values: texts in paths, typed when compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from airflow_hudi_maint.core.planning.wording import some_of

SortKey: TypeAlias = "tuple[int | Decimal, str]"
_Parser: TypeAlias = "Callable[[str], int | Decimal | None]"

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_YEAR_FIRST_DATE = re.compile(r"([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})")
_BOOLEANS = {"false": 0, "true": 1}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 subtracted from moments without a zone


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOrder:
    """How the values of one field compare.

    ``keys`` has the sort key of every value that has a place in the order; ``strays`` has the others.
    """

    field: str
    compared_as: str
    keys: Mapping[str, SortKey]
    strays: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()


def order_values(values: Collection[str], *, field: str, field_type: str | None) -> ValueOrder:
    """Order the values of a partition field by its Avro type; a value that is none of that type has no place.

    Equal values (``9`` and ``09``) are ordered by their text. Dates and timestamps that are all whole numbers (days
    or ticks since an epoch, ``20261130``) compare as numbers. A type that is not known (None) means numbers when every
    value is one and text otherwise, with a warning, since ``10`` comes before ``9`` as text. When no value at all is
    of the field's type, a key generator has rewritten them: they compare as text, with a warning.

    >>> order = order_values(["10", "9", "x"], field="month", field_type="int")
    >>> sorted(order.keys, key=order.keys.__getitem__), order.strays
    (['9', '10'], frozenset({'x'}))
    """
    compared_as, parse = _parser(values, field_type=field_type)
    parsed = {value: parse(value) for value in values}
    keys: dict[str, SortKey] = {value: (rank, value) for value, rank in parsed.items() if rank is not None}
    strays = frozenset(parsed.keys() - keys.keys())
    warnings = []
    if strays and not keys:
        warnings.append(
            f"no value of partition field {field!r} is one of {compared_as}, which its type {field_type} asks for: "
            f"the values compare as text: {some_of(strays)}"
        )
        keys, strays, compared_as = {value: (0, value) for value in values}, frozenset(), "text"
    if field_type is None:
        warnings.append(
            f"the table's schema does not tell the type of partition field {field!r}: "
            f"its values compare as {compared_as}"
        )
    if strays:
        warnings.append(
            f"partition field {field!r} compares as {compared_as}, but {len(strays)} of {len(parsed)} values are none, "
            f"so these neither expire nor count: {some_of(strays)}"
        )
    return ValueOrder(field=field, compared_as=compared_as, keys=keys, strays=strays, warnings=tuple(warnings))


def _parser(values: Collection[str], *, field_type: str | None) -> tuple[str, _Parser]:
    kind = (field_type or "").lower()
    if field_type is None:
        numbers = all(_decimal(value) is not None for value in values)
        return ("numbers", _decimal) if numbers else ("text", _text)
    if kind == "date" or "timestamp" in kind:
        # Key generators write a date as text or, for some writers, as the number that Avro stores.
        if values and all(_whole(value) is not None for value in values):
            return "numbers", _whole
        return ("dates", _day) if kind == "date" else ("timestamps", _microseconds)
    return _PARSERS.get(kind, ("text", _text))


def _boolean(value: str) -> int | None:
    return _BOOLEANS.get(value.lower())


def _text(_: str) -> int:
    return 0


def _whole(value: str) -> int | None:
    return int(value) if _WHOLE_NUMBER.fullmatch(value) else None


def _decimal(value: str) -> Decimal | None:
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _day(value: str) -> int | None:
    match = _YEAR_FIRST_DATE.fullmatch(value)
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[2]), int(match[3])).toordinal()
    except ValueError:
        return None


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
