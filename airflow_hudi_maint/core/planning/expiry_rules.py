"""The three rules that TTL policies keep by, each over the partitions that one policy decides about.

Source: RFC-65, "TTL policy definition". A *sub-partition* is a distinct value of the field below a policy's spec, under
one combination of the values before it, with all its leaf partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

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
    """Turns last-modified instants into ages.

    ``moments`` has the moment of each instant that is one; ``since`` is how a reason names the one measured from.
    """

    measured_from: datetime
    since: str
    moments: Mapping[str, datetime]

    def age(self, instant_time: str) -> timedelta | None:
        """How long before the measured moment an instant is; None for a text that is no instant."""
        moment = self.moments.get(instant_time)
        return None if moment is None else self.measured_from - moment


def keep_by_time(
    rows: Iterable[PartitionStatistics], *, policy: TTLPolicy, clock: AgeClock
) -> Iterator[tuple[str, Verdict]]:
    """Judge each leaf partition by its own age: it expires when that is more than the policy's days, not at exactly."""
    kept = timedelta(days=policy.value) if policy.value <= timedelta.max.days else timedelta.max
    allowed = f"kept {counted(policy.value, 'day')}"
    known: dict[str, Verdict] = {}
    for row in rows:
        instant = row.last_modified_instant
        verdict = known.get(instant)
        if verdict is None:
            age = clock.age(instant)
            if age is None:
                reason = f"kept: its last modified instant {instant!r} is no moment, so its age is not known"
                verdict = Verdict(expires=False, reason=reason)
            else:
                reason = f"modified {_days(age, kept=kept)} days {clock.since}, {allowed}"
                verdict = Verdict(expires=age > kept, reason=reason)
            known[instant] = verdict
        yield row.partition_path, verdict


def keep_by_count(group: SubPartitionGroup) -> Iterator[tuple[str, Verdict]]:
    """Judge the sub-partitions of a group: the smallest values expire until the policy's number is left."""
    count, allowed, of_group = len(group.children), group.policy.value, str(group)
    surplus = max(count - allowed, 0)
    kept = f"kept: newest {allowed} of {of_group}" if surplus else f"kept: {of_group}, {allowed} allowed"
    stays = Verdict(expires=False, reason=kept)
    for place, child in enumerate(group.children, start=1):
        verdict = stays
        if place <= surplus:
            verdict = Verdict(expires=True, reason=f"{ordinal(place)} smallest of {of_group}, {allowed} kept")
        for row in child.rows:
            yield row.partition_path, verdict


def keep_by_size(group: SubPartitionGroup) -> Iterator[tuple[str, Verdict]]:
    """Judge the sub-partitions of a group: the smallest values expire until the rest fits into the policy's bytes.

    The newest sub-partition stays even when it alone is larger.
    """
    budget = group.policy.value
    remaining = sum(child.total_bytes for child in group.children)
    newest, of_group = len(group.children), str(group)
    for place, child in enumerate(group.children, start=1):
        expires = remaining > budget and place < newest
        together, limit = compared_bytes(remaining, limit=budget)
        if expires:
            reason = f"{ordinal(place)} smallest of {of_group}: it and the newer ones hold {together}, {limit} kept"
        elif remaining > budget:
            reason = f"kept: the newest of {of_group} stays, although it alone holds {together} of {limit} kept"
        else:
            reason = (
                f"kept: it and the newer ones of {of_group} hold {human_bytes(remaining)}, {human_bytes(budget)} kept"
            )
        remaining -= child.total_bytes
        verdict = Verdict(expires=expires, reason=reason)
        for row in child.rows:
            yield row.partition_path, verdict


GROUP_RULES = {PolicyKind.KEEP_BY_COUNT: keep_by_count, PolicyKind.KEEP_BY_SIZE: keep_by_size}


def _days(age: timedelta, *, kept: timedelta) -> str:
    """Write an age so that it does not round to the limit that it misses or exceeds."""
    # A writer's clock may be a little ahead of ours.
    days = max(age / timedelta(days=1), 0.0)
    text = f"{days:.1f}"
    return f"{days:.5f}" if age != kept and float(text) == kept / timedelta(days=1) else text
