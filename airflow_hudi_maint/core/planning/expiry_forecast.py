"""Forecast: when the partitions of a table will expire by its policies, if nothing more is written to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from functools import cache, cached_property
from typing import NamedTuple

from airflow_hudi_maint.core.model.expiry_guards import ExpiryClock, ExpiryGuards
from airflow_hudi_maint.core.model.expiry_plan import ExpiryEntries, ExpiryOutcome, reason_of
from airflow_hudi_maint.core.model.instant import known_moment
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.plan_basis import Decision, PlanBasis
from airflow_hudi_maint.core.model.policy import PolicyClock, PolicyKind, PolicySet, TTLPolicy
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics
from airflow_hudi_maint.core.planning.expiry import plan_expiry
from airflow_hudi_maint.core.planning.policy_match import describe

WEEK, MONTH = timedelta(days=7), timedelta(days=30)
_FAR = timedelta(days=36_500)
"""What has no date within so long has none that matters."""

_NOTHING: Mapping[str, str] = {}


class Horizon(StrEnum):
    """When a partition goes, the soonest first."""

    NOW = "expires now"
    BLOCKED = "blocked"
    WEEK = "within 7 days"
    MONTH = "within 30 days"
    NEXT = "next to go"
    """No date: it goes when its group gets one more value (KEEP_BY_COUNT), or a tenth more bytes (KEEP_BY_SIZE)."""
    LATER = "later"
    KEPT = "kept"
    """It has a policy, which lets it stay as long as the table does not grow."""
    UNCOVERED = "no policy"

    @property
    def rank(self) -> int:
        """The place in the order of pages."""
        return tuple(Horizon).index(self)


_REACHES = ((Horizon.WEEK, WEEK), (Horizon.MONTH, MONTH))


class ForecastEntry(NamedTuple):
    """What is to come for one partition.

    ``due`` is when it will be older than its policy keeps; None without a date. ``dated`` is the moment that its age
    counts from, by the clock of its policy; None where that is not known. ``reason`` says why it goes or stays now.
    """

    partition_path: str
    horizon: Horizon
    due: datetime | None
    dated: datetime | None
    total_bytes: int
    policy: str | None
    reason: str


class HorizonTotals(NamedTuple):
    """How much goes within one horizon."""

    horizon: Horizon
    partitions: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class ExpiryForecast:
    """What is to come for every partition with data, in path order.

    ``clock`` is what ages are measured from, as in ExpiryGuards: by ``table`` a date holds as long as new data comes.
    """

    made_at: datetime
    policies: PolicySet
    clock: ExpiryClock
    entries: tuple[ForecastEntry, ...]

    @cached_property
    def totals(self) -> tuple[HorizonTotals, ...]:
        """Partitions and bytes by horizon, those that there are, the soonest first."""
        sums = {horizon: [0, 0] for horizon in Horizon}
        for entry in self.entries:
            found = sums[entry.horizon]
            found[0] += 1
            found[1] += entry.total_bytes
        return tuple(HorizonTotals(horizon, *found) for horizon, found in sums.items() if found[0])

    def soonest(self, count: int) -> tuple[ForecastEntry, ...]:
        """The partitions that go first: by horizon, then by date, then the largest; without those that stay."""
        going = [one for one in self.entries if one.horizon not in (Horizon.KEPT, Horizon.UNCOVERED)]
        never = self.made_at + _FAR
        going.sort(key=lambda one: (one.horizon.rank, one.due or never, -one.total_bytes, one.partition_path))
        return tuple(going[:count])


def forecast_expiry(  # noqa: PLR0913 the inputs of a plan
    statistics: TableStatistics,
    policies: PolicySet,
    *,
    scheme: PartitionScheme,
    field_types: Mapping[str, str],
    pending: Mapping[str, str],
    zone: tzinfo,
    now: datetime,
    guards: ExpiryGuards = ExpiryGuards(),  # noqa: B008 a frozen value
    created: Mapping[str, str] = _NOTHING,
) -> ExpiryForecast:
    """Say for every partition when it will expire if nothing more is written; the arguments are those of a plan.

    The planner itself decides, once for now and once for the far future with a little less room in groups, so that
    what is protected, null or the newest stays here as it does there. Guards of a run's size refuse nothing here. A
    date is exact for KEEP_BY_TIME; the other policies go by no time. With the table's clock and no new data, a date may
    pass without effect until there is some.

    Raises InvalidPolicyError and InvalidSettingError as :func:`plan_expiry`.
    """

    def planned(chosen: PolicySet, held: Mapping[str, str], *, at: datetime, clock: ExpiryClock) -> ExpiryEntries:
        plan = plan_expiry(
            statistics,
            chosen,
            scheme=scheme,
            field_types=field_types,
            pending=held,
            basis=_basis(statistics),
            zone=zone,
            now=at,
            guards=replace(guards, clock=clock),
            created=created,
        )
        if not isinstance(plan.entries, ExpiryEntries):
            raise TypeError(f"a new plan has its entries as {type(plan.entries).__name__}, not as columns")
        return plan.entries

    soon = planned(policies, pending, at=now, clock=guards.clock)
    far = planned(_squeezed(policies), {}, at=now + _FAR, clock=ExpiryClock.WALL)
    dates = _Dates(policies, scheme=scheme, zone=zone, created=created)
    pairs = zip(soon.rows, soon.outcomes, soon.numbers, far.outcomes, strict=True)
    entries = tuple(
        _entry(row, (outcome, number), later, dates=dates, now=now) for row, outcome, number, later in pairs
    )
    return ExpiryForecast(made_at=now, policies=policies, clock=guards.clock, entries=entries)


def _entry(
    row: PartitionStatistics,
    planned: tuple[ExpiryOutcome, int],
    later: ExpiryOutcome,
    *,
    dates: _Dates,
    now: datetime,
) -> ForecastEntry:
    outcome, number = planned
    policy = dates.policy(outcome.policy)
    dated = dates.moment(row, policy)
    due = _due(dated, policy) if policy and policy.kind is PolicyKind.KEEP_BY_TIME else None
    horizon = _horizon(outcome, later, due=due, policy=policy, now=now)
    stays = horizon in (Horizon.KEPT, Horizon.UNCOVERED)
    reason = reason_of(outcome, number=number)
    if horizon is Horizon.KEPT and later.why_not and outcome.why_not is None:
        reason = f"{reason}; {later.why_not}"
    return ForecastEntry(
        partition_path=row.partition_path,
        horizon=horizon,
        due=None if stays else due,
        dated=dated,
        total_bytes=row.total_bytes,
        policy=outcome.policy,
        reason=reason,
    )


def _horizon(
    outcome: ExpiryOutcome, later: ExpiryOutcome, *, due: datetime | None, policy: TTLPolicy | None, now: datetime
) -> Horizon:
    if outcome.decision is not Decision.KEEP:
        return Horizon.NOW if outcome.decision is Decision.EXPIRE else Horizon.BLOCKED
    if policy is None:
        return Horizon.UNCOVERED
    if policy.kind is not PolicyKind.KEEP_BY_TIME:
        return Horizon.KEPT if later.decision is Decision.KEEP else Horizon.NEXT
    if due is None or (later.decision is Decision.KEEP and due - now < _FAR):
        return Horizon.KEPT
    return next((horizon for horizon, reach in _REACHES if due - now <= reach), Horizon.LATER)


def _squeezed(policies: PolicySet) -> PolicySet:
    """Policies with a little less room in groups, to see which sub-partitions go next."""
    return PolicySet(
        explicit=tuple(map(_with_less_room, policies.explicit)),
        default=_with_less_room(policies.default) if policies.default else None,
    )


def _with_less_room(policy: TTLPolicy) -> TTLPolicy:
    if policy.kind is PolicyKind.KEEP_BY_SIZE:
        return replace(policy, value=max(policy.value * 9 // 10, 1))
    if policy.kind is not PolicyKind.KEEP_BY_COUNT:
        return policy
    if policy.value > 1:
        return replace(policy, value=policy.value - 1)
    # No policy keeps nothing by count. By size, with room for one byte, everything that has a place in the order goes.
    return replace(policy, kind=PolicyKind.KEEP_BY_SIZE, may_empty=True)


class _Dates:
    """What the age of a partition counts from, by the policy that decides about it."""

    def __init__(
        self, policies: PolicySet, *, scheme: PartitionScheme, zone: tzinfo, created: Mapping[str, str]
    ) -> None:
        self._by_name = {describe(policy): policy for policy in policies.all()}
        self._scheme = scheme
        self._created = created
        self._readers: dict[str, Callable[[tuple[str, ...]], datetime | None]] = {
            describe(policy): policy.event_time.reader(scheme) for policy in policies.all() if policy.event_time
        }
        self._moment_of = cache(lambda instant_time: known_moment(instant_time, zone=zone))

    def policy(self, name: str | None) -> TTLPolicy | None:
        """The policy that a plan names."""
        return None if name is None else self._by_name.get(name)

    def moment(self, row: PartitionStatistics, policy: TTLPolicy | None) -> datetime | None:
        """The moment that the age of a partition counts from."""
        if policy is not None and policy.clock is PolicyClock.EVENT_TIME:
            values = self._scheme.values(row.partition_path)
            return None if values is None else self._readers[describe(policy)](values)
        if policy is not None and policy.clock is PolicyClock.CREATED:
            return self._moment_of(self._created.get(row.partition_path))
        return self._moment_of(row.last_modified_instant)


def _due(dated: datetime | None, policy: TTLPolicy) -> datetime | None:
    if dated is None:
        return None
    try:
        return dated + timedelta(days=policy.value)
    except OverflowError:
        return datetime.max.replace(tzinfo=dated.tzinfo)


def _basis(statistics: TableStatistics) -> PlanBasis:
    return PlanBasis(
        base_path=statistics.base_path,
        table_name=statistics.table_name,
        table_version=statistics.table_version,
        watermark=statistics.watermark,
        created_at=statistics.gathered_at,
    )
