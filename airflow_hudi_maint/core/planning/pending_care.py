"""What may become of a pending plan: finished, rolled back, or left to whoever is at work on it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.commit import PlanKind
from airflow_hudi_maint.core.model.pending_care import Owner, PendingFact, Resolution, ResolveAction, Verdict
from airflow_hudi_maint.core.model.units import human_duration

HEARTBEAT_SECONDS = 300.0
"""A younger heartbeat means that the writer lives. Hudi's own limit is two minutes; clocks differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveSettings:
    """What is to become of pending plans, and of which: those without a sign of life for ``older_than`` (or longer).

    ``any_owner`` takes plans of others, too. ``kinds`` are the kinds of plans that are looked at.
    """

    action: ResolveAction
    older_than: timedelta = timedelta(hours=1)
    any_owner: bool = False
    kinds: frozenset[PlanKind] = frozenset({PlanKind.CLUSTERING, PlanKind.COMPACTION})

    def __post_init__(self) -> None:
        if self.older_than < timedelta(0):
            raise InvalidSettingError(f"older_than={self.older_than} is negative; expected a duration from 0 on")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCondition:
    """What only a closer look tells of a pending plan; each text is empty when there is nothing to say.

    ``running_job`` is the job of ours that executes it now, ``overtaken`` which of its inputs changed since it was
    made, ``stranded_log`` a log file that no reader would see any more without the plan.
    """

    running_job: str = ""
    overtaken: str = ""
    stranded_log: str = ""


def resolve(fact: PendingFact, condition: PlanCondition, settings: ResolveSettings) -> Verdict:
    """Say what becomes of one plan. Whoever may still be at work on it keeps it; an overtaken plan is never finished.

    A compaction of table version 6 that log files were written upon cannot be rolled back: their names say that they
    belong to it.
    """
    why_left = _left_alone(fact, condition, settings)
    if why_left:
        return Verdict(fact=fact, resolution=Resolution.LEAVE, reason=why_left)
    wants_back = settings.action is ResolveAction.ROLL_BACK
    if settings.action is ResolveAction.FINISH and condition.overtaken:
        reason = f"overtaken, and must not be finished: {condition.overtaken}. Have it rolled back"
        return Verdict(fact=fact, resolution=Resolution.LEAVE, reason=reason, is_overtaken=True)
    if not wants_back and not condition.overtaken:
        return Verdict(fact=fact, resolution=Resolution.FINISH, reason="its inputs are as they were planned")
    if condition.stranded_log:
        reason = f"log file {condition.stranded_log!r} was written upon it and would be lost"
        advice = " and it is overtaken, so that it cannot be finished either" if condition.overtaken else "; finish it"
        return Verdict(fact=fact, resolution=Resolution.LEAVE, reason=f"cannot be rolled back: {reason}{advice}")
    reason = f"overtaken: {condition.overtaken}" if condition.overtaken else "asked for"
    return Verdict(fact=fact, resolution=Resolution.ROLL_BACK, reason=reason)


def _left_alone(fact: PendingFact, condition: PlanCondition, settings: ResolveSettings) -> str:
    """Say why a plan is nobody's to touch now; empty when it may be resolved."""
    idle, beat = fact.idle_seconds, fact.beat_seconds
    reasons = (
        (fact.plan.kind not in settings.kinds, f"a {fact.plan.kind} is not asked for"),
        (fact.plan.kind is PlanKind.LOG_COMPACTION, "a log compaction is the table's writers' to execute"),
        (
            fact.owner is Owner.OTHER and not settings.any_owner,
            "not made by us, and only plans of ours are asked for",
        ),
        (bool(condition.running_job), f"job {condition.running_job} is executing it"),
        (
            beat is not None and beat < HEARTBEAT_SECONDS,
            f"its writer lives: a heartbeat {human_duration(max(beat or 0, 0))} ago",
        ),
        (idle is None, "its age cannot be told: its instant is no date"),
        (
            idle is not None and idle < settings.older_than.total_seconds(),
            f"its last sign of life is {human_duration(max(idle or 0, 0))} ago, below older_than={settings.older_than}",
        ),
    )
    return next((text for applies, text in reasons if applies), "")
