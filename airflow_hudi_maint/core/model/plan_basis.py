"""What every plan shares: the state of the table that it rests on, and the words for what it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.document import JsonObject
from airflow_hudi_maint.core.model.statistics import Watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBasis:
    """The state of the table that a plan rests on; applying a plan checks it again.

    ``statistics_path`` names the statistics file that was used, if one was. ``created_at`` is ISO 8601 in UTC.
    """

    base_path: str
    table_name: str
    table_version: int
    watermark: Watermark
    created_at: str
    statistics_path: str | None = None

    @property
    def base_instant(self) -> str:
        """The last completed instant that the plan knows."""
        return self.watermark.requested_time

    def to_json(self) -> JsonObject:
        """The object of the JSON document."""
        return {
            "base_path": self.base_path,
            "table_name": self.table_name,
            "table_version": self.table_version,
            "watermark": self.watermark.to_json(),
            "created_at": self.created_at,
            "statistics_path": self.statistics_path,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PlanBasis:
        """Read what :meth:`to_json` wrote."""
        return cls(
            base_path=value["base_path"],
            table_name=value["table_name"],
            table_version=value["table_version"],
            watermark=Watermark.from_json(value["watermark"]),
            created_at=value["created_at"],
            statistics_path=value["statistics_path"],
        )


class Decision(StrEnum):
    """What a plan does with a partition."""

    EXPIRE = "expire"
    CLUSTER = "cluster"
    COMPACT = "compact"
    KEEP = "keep"
    BLOCKED = "blocked"


def broken_plan(name: str, error: Exception) -> CorruptTableError:
    """The error for a plan document that lacks something, or holds something else."""
    return CorruptTableError(f"{name} is a broken plan document ({error!r}); delete it and plan again")
