"""What is known of a pending plan of a table service, and what is to become of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_hudi_maint.core.model.commit import PendingPlan
from airflow_hudi_maint.core.model.document import JsonObject
from airflow_hudi_maint.core.model.units import human_duration


class Owner(StrEnum):
    """Who made a pending plan, as far as our notes tell."""

    OURS = "ours"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFact:
    """A pending plan, who made it and how it is.

    ``age_seconds`` counts from the requested time, ``idle_seconds`` from the last sign of life: that, the start of an
    execution, its markers or its heartbeat. ``beat_seconds`` is the age of the heartbeat alone, None without one. Each
    age is None where it cannot be told. ``maker`` is the task that asked for a plan of ours, where it was noted.
    """

    plan: PendingPlan
    owner: Owner
    age_seconds: float | None
    idle_seconds: float | None
    beat_seconds: float | None = None
    maker: str = ""

    @property
    def instant(self) -> str:
        """The requested time of the plan."""
        return self.plan.instant.requested_time

    def __str__(self) -> str:
        age = "unknown age" if self.age_seconds is None else f"{human_duration(max(self.age_seconds, 0))} old"
        state = self.plan.instant.state.name.lower()
        by = f", made by {self.maker}" if self.maker else ""
        return f"{self.plan.kind} {self.instant} ({state}, {age}, {self.owner}{by})"

    def to_json(self) -> JsonObject:
        """The row of a result: small and JSON-native."""
        return {
            "instant": self.instant,
            "kind": str(self.plan.kind),
            "state": self.plan.instant.state.name.lower(),
            "owner": str(self.owner),
            "made_by": self.maker,
            "age_seconds": self.age_seconds,
            "idle_seconds": self.idle_seconds,
            "partitions": len(self.plan.partitions),
            "file_groups": len(self.plan.inputs),
        }


class Resolution(StrEnum):
    """What becomes of a pending plan."""

    FINISH = "finish"
    ROLL_BACK = "roll_back"
    LEAVE = "leave"


class ResolveAction(StrEnum):
    """What a user wants of pending plans. ``auto`` finishes those that may be finished and rolls back the overtaken."""

    FINISH = "finish"
    ROLL_BACK = "roll_back"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of one pending plan, and why.

    ``is_overtaken`` says that it is left because it must not be finished, which waiting does not mend.
    """

    fact: PendingFact
    resolution: Resolution
    reason: str
    is_overtaken: bool = False

    def to_json(self) -> JsonObject:
        """The row of the JSON document."""
        return {**self.fact.to_json(), "resolution": str(self.resolution), "reason": self.reason}
