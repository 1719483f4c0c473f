"""Read arguments as they arrive: literals, texts rendered from templates, values of Params and results of other tasks.

Every function names the argument in its error, and raises InvalidSettingError only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.strict_json import load_strictly

_NOTHING = ("none", "null")
_UNSET = ("", *_NOTHING)
_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


def is_unset(value: object) -> bool:
    """Say whether an argument counts as not given: None, and the texts that a template makes of nothing."""
    return value is None or (isinstance(value, str) and value.strip().lower() in _UNSET)


def as_bool(name: str, value: object) -> bool:
    """Read a switch: a boolean, or a word such as true, no, on or 0."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise InvalidSettingError(f"{name}={value!r} is neither true nor false")


def as_int(name: str, value: object) -> int:
    """Read a whole number, or its digits in a text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    text = str(value).strip().replace("_", "")
    if isinstance(value, str) and text.isascii() and text.removeprefix("-").isdigit():
        return int(text)
    unit = "; sizes are in bytes, without a unit" if name.endswith("bytes") else ""
    raise InvalidSettingError(f"{name}={value!r} is no whole number{unit}")


def as_optional_int(name: str, value: object) -> int | None:
    """Read a whole number; None when the argument is not given."""
    return None if is_unset(value) else as_int(name, value)


def as_optional_float(name: str, value: object) -> float | None:
    """Read a finite number, also as a text; None when the argument is not given."""
    if is_unset(value):
        return None
    try:
        number = float("nan") if isinstance(value, bool) else float(str(value).strip())
    except ValueError:
        number = float("nan")
    if not math.isfinite(number):
        raise InvalidSettingError(f"{name}={value!r} is no number")
    return number


def as_seconds(name: str, value: object) -> float:
    """Read a duration of at least 0: a timedelta, or a number of seconds, also as a text."""
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    else:
        try:
            seconds = float(str(value).strip())
        except ValueError:
            raise InvalidSettingError(f"{name}={value!r} is no duration; write seconds or a timedelta") from None
    if not 0 <= seconds < float("inf"):
        raise InvalidSettingError(f"{name}={value!r} is no duration; expected 0 seconds or more")
    return seconds


def as_optional_memory(name: str, value: object) -> str | None:
    """Read an amount of memory as a JVM takes it, such as 512m or 4g; None when the argument is not given."""
    text = None if is_unset(value) else str(value).strip()
    if text is not None and not re.fullmatch(r"[1-9][0-9]*[kmgt]", text, flags=re.IGNORECASE):
        raise InvalidSettingError(f"{name}={value!r} is no amount of memory; write a whole number and k, m, g or t: 4g")
    return text


def as_optional_text(name: str, value: object) -> str | None:
    """Read a text; None when the argument is not given."""
    if is_unset(value):
        return None
    if not isinstance(value, str):
        raise InvalidSettingError(f"{name}={value!r} is no text")
    return value.strip()


def as_exact_text(name: str, value: object) -> str | None:
    """Read a text whose default widens what a task does; None for None and for an empty text.

    The words None and null are what a template makes of a value that is missing. Taken for the default they would mean
    another table or every partition, so they are refused.
    """
    if isinstance(value, str) and value.strip().lower() in _NOTHING:
        raise InvalidSettingError(
            f"{name}={value!r} is what a template makes of nothing; "
            f"see where its value went, or render an empty text to leave {name} out"
        )
    return as_optional_text(name, value)


def as_optional_instant(name: str, value: object) -> str | None:
    """Read an instant, also as the number that rendering to native objects makes of one; None when not given."""
    return as_optional_text(name, _instant(value))


def as_instants(name: str, value: object) -> tuple[str, ...]:
    """Read instants as :func:`as_texts` reads texts; each may be a number."""
    value = _instant(value)
    if isinstance(value, str) and value.strip().startswith("["):
        value = _from_json(name, value)
    instants = as_texts(name, [_instant(one) for one in value] if isinstance(value, list | tuple) else value)
    wrong = next((one for one in instants if not (one.isascii() and one.isdecimal())), None)
    if wrong is not None:
        raise InvalidSettingError(
            f"{name} holds {wrong!r}, which is no instant; give its time as the timeline has it, "
            "such as 20261130101500000"
        )
    return instants


def as_texts(name: str, value: object) -> tuple[str, ...]:
    """Read a list of texts: a list, a JSON array, or texts apart by commas; empty when not given."""
    if is_unset(value):
        return ()
    if isinstance(value, str):
        text = value.strip()
        value = _from_json(name, text) if text.startswith("[") else [part.strip() for part in text.split(",")]
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise InvalidSettingError(f"{name}={value!r} is no list of texts")
    items = tuple(value)
    wrong = next((item for item in items if not isinstance(item, str) or not item), None)
    if wrong is not None:
        raise InvalidSettingError(f"{name} holds {wrong!r}; expected non-empty texts only")
    return items


def as_objects(name: str, value: object) -> list[object] | None:
    """Read a list of JSON objects, also as JSON text; None when not given. A single object counts as a list of one."""
    if is_unset(value):
        return None
    if isinstance(value, str):
        value = _from_json(name, value)
    if isinstance(value, Mapping):
        return [value]
    if not isinstance(value, list | tuple):
        raise InvalidSettingError(f"{name}={value!r} is no list of JSON objects")
    return list(value)


def as_object(name: str, value: object) -> Mapping[str, object]:
    """Read a JSON object, also as JSON text; empty when not given."""
    if is_unset(value):
        return {}
    if isinstance(value, str):
        value = _from_json(name, value)
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidSettingError(f"{name} is no JSON object but {type(value).__name__}")
    return value


def as_result_field(name: str, value: object, *, field: str) -> object:
    """Take ``field`` of another operator's result; a value that is no such result is returned as it is.

    A result comes as the dict itself, or as its JSON when a template rendered it.
    """
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _from_json(name, value)
    if not isinstance(value, Mapping):
        return value
    if field not in value:
        raise InvalidSettingError(f"{name} is a result without {field!r}; it has {', '.join(map(str, value))}")
    return value[field]


def check_names(name: str, given: Iterable[str], *, known: Iterable[str]) -> None:
    """Raise InvalidSettingError for the first name that is not known, with the names that come near it."""
    import difflib

    expected = sorted(known)
    for one in sorted(set(given) - set(expected)):
        near = difflib.get_close_matches(one, expected, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(expected)}"
        raise InvalidSettingError(f"{name} has no setting {one!r}; {hint}")


def _instant(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _from_json(name: str, text: str) -> object:
    try:
        return load_strictly(text)
    except ValueError as error:
        raise InvalidSettingError(f"{name} is no JSON ({error}): {text[:200]!r}") from None
