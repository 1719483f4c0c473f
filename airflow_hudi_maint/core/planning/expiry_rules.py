"""The three rules that TTL policies keep by, each over the partitions that one policy decides about.

Source: RFC-65, "TTL policy definition". A *sub-partition* is a distinct value of the field below a policy's spec, under
one combination of the values before it, with all its leaf partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from airflow_hudi_maint.core.model.instant import instant_moment
from airflow_hudi_maint.core.model.policy import PolicyKind, TTLPolicy
from airflow_hudi_maint.core.model.statistics import PartitionStatistics
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.partition_values import ValueOrder
from airflow_hudi_maint.core.planning.wording import compared_bytes, ordinal


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a partition expires, and why or why not."""

    expires: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubPartition:
    """One value of a group's field, with the leaf partitions that have it."""

    value: str
    rows: tuple[PartitionStatistics, ...]

    @property
    def total_bytes(self) -> int:
        """Bytes of the latest file slices of all its leaf partitions."""
        return sum(row.total_bytes for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubPartitionGroup:
    """The sub-partitions that a policy counts together, the smallest value first."""

    policy: TTLPolicy
    field: str
    prefix: str
    children: tuple[SubPartition, ...]

    @classmethod
    def of(
        cls, rows: Mapping[str, Sequence[PartitionStatistics]], *, policy: TTLPolicy, prefix: str, order: ValueOrder
    ) -> SubPartitionGroup:
        """Put rows, by the value of the field that is ordered, into order."""
        values = sorted(rows, key=order.keys.__getitem__)
        children = tuple(SubPartition(value=value, rows=tuple(rows[value])) for value in values)
        return cls(policy=policy, field=order.field, prefix=prefix, children=children)

    def __str__(self) -> str:
        return f"{counted(len(self.children), 'value')} of {self.field}{f' under {self.prefix}' if self.prefix else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeClock:
    """Turns last-modified instants into ages. ``since`` is how a reason names the moment that is measured from."""

    measured_from: datetime
    since: str
    zone: tzinfo

    def age(self, instant_time: str) -> timedelta:
        """How long before the measured moment an instant is; raises ValueError for a text that is no instant."""
        return self.measured_from - instant_moment(instant_time, zone=self.zone)


def keep_by_time(
    rows: Sequence[PartitionStatistics], *, policy: TTLPolicy, clock: AgeClock
) -> Iterator[tuple[str, Verdict]]:
    """Judge each leaf partition by its own age: it expires when that is more than the policy's days, not at exactly."""
    kept = timedelta(days=policy.value) if policy.value <= timedelta.max.days else timedelta.max
    for row in rows:
        try:
            age = clock.age(row.last_modified_instant)
        except ValueError:
            reason = (
                f"kept: its last modified instant {row.last_modified_instant!r} is no moment, so its age is not known"
            )
            yield row.partition_path, Verdict(expires=False, reason=reason)
            continue
        days = _days(age, kept=kept)
        reason = f"modified {days} days {clock.since}, kept {counted(policy.value, 'day')}"
        yield row.partition_path, Verdict(expires=age > kept, reason=reason)


def keep_by_count(group: SubPartitionGroup) -> Iterator[tuple[str, Verdict]]:
    """Judge the sub-partitions of a group: the smallest values expire until the policy's number is left."""
    count, allowed = len(group.children), group.policy.value
    surplus = max(count - allowed, 0)
    for place, child in enumerate(group.children, start=1):
        expires = place <= surplus
        if expires:
            reason = f"{ordinal(place)} smallest of {group}, {allowed} kept"
        elif surplus:
            reason = f"kept: newest {allowed} of {group}"
        else:
            reason = f"kept: {group}, {allowed} allowed"
        for row in child.rows:
            yield row.partition_path, Verdict(expires=expires, reason=reason)


def keep_by_size(group: SubPartitionGroup) -> Iterator[tuple[str, Verdict]]:
    """Judge the sub-partitions of a group: the smallest values expire until the rest fits into the policy's bytes.

    The newest sub-partition stays even when it alone is larger.
    """
    budget = group.policy.value
    remaining = sum(child.total_bytes for child in group.children)
    newest = len(group.children)
    for place, child in enumerate(group.children, start=1):
        expires = remaining > budget and place < newest
        together, limit = compared_bytes(remaining, limit=budget)
        if expires:
            reason = f"{ordinal(place)} smallest of {group}: it and the newer ones hold {together}, {limit} kept"
        elif remaining > budget:
            reason = f"kept: the newest of {group} stays, although it alone holds {together} of {limit} kept"
        else:
            reason = f"kept: it and the newer ones of {group} hold {human_bytes(remaining)}, {human_bytes(budget)} kept"
        remaining -= child.total_bytes
        for row in child.rows:
            yield row.partition_path, Verdict(expires=expires, reason=reason)


GROUP_RULES = {PolicyKind.KEEP_BY_COUNT: keep_by_count, PolicyKind.KEEP_BY_SIZE: keep_by_size}


def _days(age: timedelta, *, kept: timedelta) -> str:
    """Write an age so that it does not round to the limit that it misses or exceeds."""
    # A writer's clock may be a little ahead of ours.
    days = max(age / timedelta(days=1), 0.0)
    text = f"{days:.1f}"
    return f"{days:.5f}" if age != kept and float(text) == kept / timedelta(days=1) else text
