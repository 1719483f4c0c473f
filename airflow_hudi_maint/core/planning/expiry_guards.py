"""What an expiry plan would be refused for: its figures against the limits of ``ExpiryGuards``."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_hudi_maint.core.errors import GuardTrippedError
from airflow_hudi_maint.core.model.expiry_guards import (
    DEFAULT_MAX_SHARE,
    ExpiryClock,
    ExpiryGuards,
)
from airflow_hudi_maint.core.model.expiry_plan import ExpiryPlan
from airflow_hudi_maint.core.model.plan_basis import Decision
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_count

__all__ = ["DEFAULT_MAX_SHARE", "ExpiryClock", "ExpiryGuards", "check_guards", "guard_problems"]

_SECONDS_PER_DAY = 86_400
_SECONDS_PER_MINUTE = 60


def guard_problems(plan: ExpiryPlan, guards: ExpiryGuards) -> tuple[str, ...]:
    """Say which guards a plan would trip, in figures, each with the setting that would allow it.

    A plan that drops nothing trips none.
    """
    if not plan.totals[Decision.EXPIRE].partitions:
        return ()
    return (*_shares(plan, guards), *_counts(plan, guards), *_clocks(plan, guards))


def check_guards(plan: ExpiryPlan, guards: ExpiryGuards, *, path: str | None = None) -> None:
    """Raise GuardTrippedError when a plan drops more than the guards allow; the plan itself stays valid to look at.

    ``path`` is where the plan lies, for the error to name.
    """
    problems = guard_problems(plan, guards)
    if problems:
        where = f"; the plan is at {path}" if path else ""
        raise GuardTrippedError(
            f"The expiry plan of table {plan.basis.base_path} is refused: {'; '.join(problems)}. "
            f"Look at the plan, then change a setting if the plan is right{where}"
        )


def _shares(plan: ExpiryPlan, guards: ExpiryGuards) -> Iterator[str]:
    expired = plan.totals[Decision.EXPIRE]
    count, every = expired.partitions, len(plan.entries)
    limit = guards.max_partition_share
    # A quotient, not a product: 0.29 * 100 is less than 29, and exactly the limit is allowed.
    if limit is not None and count / every > limit:
        yield f"it drops {count} of {every} partitions ({count / every:.1%}), above max_partition_share={limit}"
    total = sum(one.bytes for one in plan.totals.values())
    limit = guards.max_byte_share
    if limit is not None and total and expired.bytes / total > limit:
        yield (
            f"it drops {human_bytes(expired.bytes)} of {human_bytes(total)} ({expired.bytes / total:.1%}), "
            f"above max_byte_share={limit}"
        )
    known = [one.records for one in plan.totals.values()]
    limit = guards.max_record_share
    if limit is None or expired.records is None or None in known:
        return
    records = sum(one or 0 for one in known)
    if records and expired.records / records > limit:
        yield (
            f"it drops {human_count(expired.records)} of {human_count(records)} records "
            f"({expired.records / records:.1%}), above max_record_share={limit}"
        )


def _counts(plan: ExpiryPlan, guards: ExpiryGuards) -> Iterator[str]:
    count = plan.totals[Decision.EXPIRE].partitions
    left = len(plan.entries) - count
    if guards.max_partitions is not None and count > guards.max_partitions:
        yield f"it drops {counted(count, 'partition')}, above max_partitions={guards.max_partitions}"
    if guards.min_partitions_left is not None and left < guards.min_partitions_left:
        yield f"it leaves {counted(left, 'partition')}, below min_partitions_left={guards.min_partitions_left}"
    previous = plan.previous_expired
    if guards.max_growth is not None and previous and count / previous > guards.max_growth:
        yield (
            f"it drops {count / previous:.1f} times the {counted(previous, 'partition')} of the run before "
            f"({count}), above max_growth={guards.max_growth:g}"
        )


def _clocks(plan: ExpiryPlan, guards: ExpiryGuards) -> Iterator[str]:
    # By the plan's clock: guards that come with the plan may not say how its ages were measured.
    limit = guards.quiet_days_under(plan.clock)
    if plan.quiet_seconds is None:
        if limit is not None:
            yield (
                "no partition tells when its data was last modified, so whether the feed is dead is not known, with "
                f"max_quiet_days={limit:g}; only max_quiet_days=None goes without"
            )
        return
    days, ahead = plan.quiet_seconds / _SECONDS_PER_DAY, -plan.quiet_seconds / _SECONDS_PER_MINUTE
    if limit is not None and days > limit:
        yield (
            f"the table's newest data is {days:.1f} days old, so its feed looks dead, above "
            f"max_quiet_days={limit:g}; see to the feed, or measure ages from the newest data with "
            f"clock={ExpiryClock.TABLE} and a higher max_quiet_days"
        )
    limit = guards.max_clock_skew_minutes
    if limit is not None and ahead > limit:
        yield (
            f"this machine's clock is {ahead:.1f} minutes behind the table's newest data, above "
            f"max_clock_skew_minutes={limit:g}; check the clocks and the table's time zone"
        )
