"""JSON as people write it: a key that stands twice, NaN and numbers without end are refused, not resolved silently."""

from __future__ import annotations

import json
from collections.abc import Sequence

MOST_DIGITS = 18
_SHOWN_CHARACTERS = 200


def load_strictly(text: str) -> object:
    """Read a JSON text; a number of more than 18 digits comes as its text, for its reader to refuse by name.

    Raises ValueError that names a key which stands twice in one object, and for all that is no JSON.

    >>> load_strictly('{"policy": 1, "policy": 2}')
    Traceback (most recent call last):
    ValueError: the key 'policy' stands twice in one object; keep one of them
    """
    try:
        value: object = json.loads(
            text, object_pairs_hook=_object, parse_int=_whole_number, parse_constant=_no_constant
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def shown(value: object) -> str:
    """Write what somebody gave so that an error can show it: as Python would, cut to 200 characters."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write a number of thousands of digits
        return f"a number of more than {MOST_DIGITS} digits"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… ({len(text):,} characters)"


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands twice in one object; keep one of them")
        found[key] = value
    return found


def _whole_number(digits: str) -> int | str:
    # Python itself refuses to read a number of thousands of digits.
    return int(digits) if len(digits.removeprefix("-")) <= MOST_DIGITS else digits


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")
