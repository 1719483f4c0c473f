"""Limits on what one expiry plan may drop, and the clock that ages are measured by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from airflow_hudi_maint.core.errors import GuardTrippedError, InvalidSettingError
from airflow_hudi_maint.core.model.plan import ExpiryPlan
from airflow_hudi_maint.core.model.units import human_bytes

DEFAULT_MAX_SHARE = 0.5


class ExpiryClock(StrEnum):
    """From when KEEP_BY_TIME counts days backwards."""

    TABLE = "table"
    """From the table's newest data: when the feed dies, what is there stays."""
    WALL = "wall"
    """From now: when the feed dies, everything expires in the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryGuards:
    """The safety net of an expiry plan.

    The shares are of all partitions, and of all bytes, that one plan may drop; exactly the share is allowed, and None
    allows everything.
    """

    max_partition_share: float | None = DEFAULT_MAX_SHARE
    max_byte_share: float | None = DEFAULT_MAX_SHARE
    clock: ExpiryClock = ExpiryClock.TABLE

    def __post_init__(self) -> None:
        for name in ("max_partition_share", "max_byte_share"):
            share = getattr(self, name)
            # NaN is in no range; True would mean 1.
            if share is not None and (isinstance(share, bool) or not 0 <= share <= 1):
                raise InvalidSettingError(
                    f"{name}={share!r} is no share: write a number from 0 to 1, or None for no limit"
                )
        try:
            object.__setattr__(self, "clock", ExpiryClock(self.clock))
        except ValueError:
            raise InvalidSettingError(f"clock={self.clock!r} is unknown; expected {' or '.join(ExpiryClock)}") from None


def guard_problems(plan: ExpiryPlan, guards: ExpiryGuards) -> tuple[str, ...]:
    """Say which guards a plan would trip, in figures, each with the setting that would allow it."""
    return tuple(_problems(plan, guards))


def check_guards(plan: ExpiryPlan, guards: ExpiryGuards) -> None:
    """Raise GuardTrippedError when a plan drops more than the guards allow; the plan itself stays valid to look at."""
    problems = guard_problems(plan, guards)
    if problems:
        raise GuardTrippedError(f"The expiry plan of table {plan.basis.base_path} is refused: {'; '.join(problems)}")


def _problems(plan: ExpiryPlan, guards: ExpiryGuards) -> Iterator[str]:
    expired, every = len(plan.expired), len(plan.entries)
    limit = guards.max_partition_share
    if limit is not None and expired > limit * every:
        yield (
            f"it drops {expired} of {every} partitions ({expired / every:.1%}), above max_partition_share={limit}; "
            "look at the plan, then raise that setting if it is right"
        )
    expired_bytes = sum(entry.total_bytes for entry in plan.expired)
    total_bytes = sum(entry.total_bytes for entry in plan.entries)
    limit = guards.max_byte_share
    if limit is not None and expired_bytes > limit * total_bytes:
        yield (
            f"it drops {human_bytes(expired_bytes)} of {human_bytes(total_bytes)} ({expired_bytes / total_bytes:.1%}), "
            f"above max_byte_share={limit}; look at the plan, then raise that setting if it is right"
        )
