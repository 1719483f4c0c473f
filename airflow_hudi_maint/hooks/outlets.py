"""Tell the assets that a task updates what it did."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import Context


def tell_outlets(outlets: Iterable[Any], result: dict[str, Any], *, context: Context) -> None:
    """Make the result the ``extra`` of every outlet's asset event."""
    for outlet in outlets:
        context["outlet_events"][outlet].extra = result
