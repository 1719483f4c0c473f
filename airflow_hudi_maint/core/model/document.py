"""What statistics, plans and reports share: JSON with a version that is checked by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from airflow_hudi_maint.core.errors import CorruptTableError

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"
JsonMapping: TypeAlias = "Mapping[str, Json]"
"""A JSON object that is only read."""


def checked_document(value: object, *, kind: str, version: int, name: str) -> Mapping[str, object]:
    """Return ``value`` as the object of a document of this kind and version.

    Raises CorruptTableError that names the file (``name``), what it holds, and what was expected.
    """
    if not isinstance(value, Mapping):
        msg = f"{name} holds no JSON object but {type(value).__name__}; expected a {kind} document"
        raise CorruptTableError(msg)
    if value.get("kind") != kind or value.get("version") != version:
        msg = (
            f"{name} is a {value.get('kind')!r} document of version {value.get('version')!r}; "
            f"this package reads {kind!r} documents of version {version}"
        )
        raise CorruptTableError(msg)
    return cast("Mapping[str, object]", value)
