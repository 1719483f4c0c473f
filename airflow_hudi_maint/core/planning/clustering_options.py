"""Reads the options of strategies, which come from JSON, from templates and from a command line: often as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isfinite
from typing import NoReturn

from airflow_hudi_maint.core.errors import InvalidSettingError


def read_count(name: str, value: object) -> int:
    """A whole number.

    >>> read_count("lookback", " 3 ")
    3
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(str(value).strip()) if isinstance(value, str) else _refuse(name, value, "a whole number")
    except ValueError:
        _refuse(name, value, "a whole number")


def read_number(name: str, value: object) -> float:
    """A number, with a fraction where one is given."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = float("nan")
        return number if isfinite(number) else _refuse(name, value, "a number")
    return _refuse(name, value, "a number")


def read_text(name: str, value: object) -> str:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else _refuse(name, value, "a text")


def read_names(name: str, value: object) -> tuple[str, ...]:
    """A list of texts: one, JSON of one, or names apart by commas.

    >>> read_names("partitions", "day=1, day=2")
    ('day=1', 'day=2')
    """
    given: object = value
    if isinstance(value, str):
        try:
            given = json.loads(value) if value.lstrip().startswith("[") else [one.strip() for one in value.split(",")]
        except ValueError:
            _refuse(name, value, "a list of names")
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        _refuse(name, value, "a list of names")
    if not all(isinstance(one, str) for one in given):
        _refuse(name, value, "a list of names")
    return tuple(dict.fromkeys(str(one) for one in given))


def _refuse(name: str, value: object, wanted: str) -> NoReturn:
    unit = "; sizes are in bytes, without a unit" if name.endswith("bytes") else ""
    raise InvalidSettingError(f"{name}={value!r} is not {wanted}{unit}")
