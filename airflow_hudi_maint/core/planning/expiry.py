"""Expiry: which partitions a table's TTL policies drop, each with its reason.

The rules for users are in docs/expiry.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from typing import NamedTuple

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.instant import instant_moment
from airflow_hudi_maint.core.model.partition import (
    ENCODED_WILDCARD,
    NULL_PARTITION_VALUE,
    WILDCARD,
    PartitionScheme,
    naming_problem,
)
from airflow_hudi_maint.core.model.plan import Decision, ExpiryEntry, ExpiryPlan, PlanBasis
from airflow_hudi_maint.core.model.policy import PolicyKind, PolicySet, TTLPolicy
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics
from airflow_hudi_maint.core.planning.expiry_guards import ExpiryClock, ExpiryGuards, check_guards, guard_problems
from airflow_hudi_maint.core.planning.expiry_rules import (
    GROUP_RULES,
    AgeClock,
    SubPartitionGroup,
    Verdict,
    keep_by_time,
)
from airflow_hudi_maint.core.planning.partition_values import ValueOrder, order_values
from airflow_hudi_maint.core.planning.policy_match import PolicyMatcher, describe
from airflow_hudi_maint.core.planning.wording import some_of

__all__ = ["ExpiryClock", "ExpiryGuards", "check_guards", "guard_problems", "plan_expiry"]

_TOLERATED_SKEW = timedelta(minutes=5)
_ONE_DAY = timedelta(days=1)
_RESERVED = (",", WILDCARD, ENCODED_WILDCARD)
"""What Hudi's list of partitions to delete gives a meaning of its own."""


class _Placed(NamedTuple):
    """A partition with its values and the policy that decides about it; None for values that do not fit the scheme."""

    row: PartitionStatistics
    values: tuple[str, ...] | None
    policy: TTLPolicy | None
    protection: str | None


def plan_expiry(  # noqa: PLR0913 each is an input of its own kind, named at the call
    statistics: TableStatistics,
    policies: PolicySet,
    *,
    scheme: PartitionScheme,
    field_types: Mapping[str, str],
    pending: Mapping[str, str],
    basis: PlanBasis,
    zone: tzinfo,
    now: datetime,
    guards: ExpiryGuards = ExpiryGuards(),  # noqa: B008 a frozen value
) -> ExpiryPlan:
    """Plan which partitions expire, and say for every partition why or why not.

    ``field_types`` has the Avro type of each partition field that the table's schema names; ``pending`` the instant of
    the pending plan that holds a partition, which is then blocked instead of expired, as is one whose name Hudi would
    read as something else. ``zone`` is the zone that the table's writers stamp instants with. A tripped guard is a
    warning here; :func:`check_guards` makes it an error. The same arguments give the same plan, in whatever order the
    partitions come.

    Raises InvalidPolicyError for policies that do not fit the table or could both win.

    >>> from datetime import UTC
    >>> from airflow_hudi_maint.core.model.statistics import Watermark
    >>> rows = tuple(
    ...     PartitionStatistics(
    ...         partition_path=f"month={month}", last_modified_instant="20261130000000000", total_bytes=1,
    ...         file_group_count=1, log_file_count=0, log_file_bytes=0, base_file_bytes=(1,),
    ...     )
    ...     for month in (10, 9, 8)
    ... )
    >>> seen = Watermark(requested_time="20261130000000000")
    >>> plan = plan_expiry(
    ...     TableStatistics(
    ...         base_path="/lake/trips", table_name="trips", table_version=9, table_type="COPY_ON_WRITE",
    ...         watermark=seen, gathered="full", reason="", gathered_at="", small_file_bytes=1, partitions=rows,
    ...     ),
    ...     PolicySet.from_json([{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2}]),
    ...     scheme=PartitionScheme(fields=("month",), hive_style=True), field_types={"month": "int"}, pending={},
    ...     basis=PlanBasis(
    ...         base_path="/lake/trips", table_name="trips", table_version=9, watermark=seen, created_at=""
    ...     ),
    ...     zone=UTC, now=datetime(2026, 12, 1, tzinfo=UTC),
    ... )
    >>> [(entry.partition_path, entry.reason) for entry in plan.expired]
    [('month=8', '1st smallest of 3 values of month, 2 kept')]
    """
    _check(policies, scheme=scheme, now=now)
    placed = tuple(_place(statistics.partitions, PolicyMatcher.of(policies), scheme=scheme))
    names = {id(policy): describe(policy) for policy in policies.all()}
    orders = _orders(placed, scheme=scheme, field_types=field_types)
    clock, clock_warnings = _clock(statistics.partitions, guards=guards, zone=zone, now=now)
    verdicts = dict(_judge(placed, orders=orders, clock=clock, scheme=scheme))
    plan = ExpiryPlan(
        basis=basis,
        policies=policies,
        clock=str(guards.clock),
        entries=tuple(
            _entry(one, verdict=verdicts.get(one.row.partition_path), policy=names.get(id(one.policy)), pending=pending)
            for one in placed
        ),
        warnings=(
            *_misfits(placed, scheme=scheme),
            *(warning for order in orders.values() for warning in order.warnings),
            *(clock_warnings if any(policy.kind is PolicyKind.KEEP_BY_TIME for policy in policies.all()) else ()),
        ),
    )
    return replace(plan, warnings=(*plan.warnings, *guard_problems(plan, guards)))


def _check(policies: PolicySet, *, scheme: PartitionScheme, now: datetime) -> None:
    if now.tzinfo is None:
        raise ValueError(f"now={now} has no time zone; pass an aware moment in UTC")
    if not scheme.fields and not policies.is_empty:
        named = ", ".join(f"'{policy}'" for policy in policies.all())
        raise InvalidPolicyError(f"the table is not partitioned, so no TTL policy can apply to it; remove {named}")
    policies.check(scheme)


def _place(
    rows: Iterable[PartitionStatistics], matcher: PolicyMatcher, *, scheme: PartitionScheme
) -> Iterator[_Placed]:
    for row in sorted(rows, key=lambda one: one.partition_path):
        values = scheme.values(row.partition_path)
        policy = None if values is None else matcher.winner(values)
        yield _Placed(row, values, policy, _protection(values, policy=policy, scheme=scheme))


def _protection(values: tuple[str, ...] | None, *, policy: TTLPolicy | None, scheme: PartitionScheme) -> str | None:
    """Why a partition can never expire, whatever its policy keeps."""
    if values is None:
        return f"kept: its path does not fit the partition fields {list(scheme.fields)}"
    if policy is None:
        return "no policy covers it"
    if NULL_PARTITION_VALUE not in values:
        return None
    for place, (field, value) in enumerate(zip(scheme.fields, values, strict=True)):
        levels = policy.spec.levels
        is_named = place < len(levels) and levels[place][1] == NULL_PARTITION_VALUE
        if value == NULL_PARTITION_VALUE and not is_named:
            return f"kept: a null {field} never expires unless the policy's spec names it"
    return None


def _orders(
    placed: Iterable[_Placed], *, scheme: PartitionScheme, field_types: Mapping[str, str]
) -> dict[str, ValueOrder]:
    """The order of each field whose values some policy compares, over all values that it has there."""
    compared: dict[str, set[str]] = {}
    for one in placed:
        if one.policy and one.values and not one.protection and one.policy.kind in GROUP_RULES:
            depth = len(one.policy.spec.levels)
            compared.setdefault(scheme.fields[depth], set()).add(one.values[depth])
    return {
        field: order_values(compared[field], field=field, field_type=field_types.get(field))
        for field in scheme.fields
        if field in compared
    }


def _clock(
    rows: Iterable[PartitionStatistics], *, guards: ExpiryGuards, zone: tzinfo, now: datetime
) -> tuple[AgeClock, tuple[str, ...]]:
    """Choose the moment that ages are measured from.

    The newest data, not the last instant of the timeline: each maintenance run adds an instant of its own, so a table
    whose feed is dead would go on ageing by them.
    """
    instants = {row.last_modified_instant for row in rows}
    moments = {one: moment for one in instants if (moment := _moment(one, zone=zone)) is not None}
    wall = AgeClock(measured_from=now, since="ago", moments=moments)
    if not moments:
        return wall, ()
    newest, instant = max((moment, one) for one, moment in moments.items())
    lag = now - newest
    if lag < -_TOLERATED_SKEW:
        ahead = f"the newest data (instant {instant}) is {-lag} ahead of now: check clocks and the table's time zone"
        return wall, (ahead,)
    if guards.clock is ExpiryClock.WALL or lag <= timedelta(0):
        return wall, ()
    quiet = (
        f"ages are measured from the table's newest data (instant {instant}, {lag / _ONE_DAY:.1f} days ago), "
        f"not from now; clock={ExpiryClock.WALL} measures from now"
    )
    clock = AgeClock(measured_from=newest, since="before the table's newest data", moments=moments)
    return clock, (quiet,) if lag > _ONE_DAY else ()


def _moment(instant_time: str, *, zone: tzinfo) -> datetime | None:
    try:
        return instant_moment(instant_time, zone=zone)
    except ValueError:
        return None


def _judge(
    placed: Sequence[_Placed], *, orders: Mapping[str, ValueOrder], clock: AgeClock, scheme: PartitionScheme
) -> Iterator[tuple[str, Verdict]]:
    by_policy: dict[int, tuple[TTLPolicy, list[_Placed]]] = {}
    for one in placed:
        if one.policy is not None and not one.protection:
            # By identity: hashing a policy for each partition would take longer than judging it.
            by_policy.setdefault(id(one.policy), (one.policy, []))[1].append(one)
    for policy, members in by_policy.values():
        if policy.kind is PolicyKind.KEEP_BY_TIME:
            yield from keep_by_time((one.row for one in members), policy=policy, clock=clock)
        else:
            order = orders[scheme.fields[len(policy.spec.levels)]]
            yield from _judge_groups(members, policy=policy, order=order, scheme=scheme)


def _judge_groups(
    members: Iterable[_Placed], *, policy: TTLPolicy, order: ValueOrder, scheme: PartitionScheme
) -> Iterator[tuple[str, Verdict]]:
    depth = len(policy.spec.levels)
    groups: dict[tuple[str, ...], dict[str, list[PartitionStatistics]]] = {}
    for one in members:
        values = one.values or ()
        value = values[depth]
        if value in order.strays:
            reason = f"kept: {value!r} has no place among the {order.compared_as} of {order.field}"
            yield one.row.partition_path, Verdict(expires=False, reason=reason)
        else:
            groups.setdefault(values[:depth], {}).setdefault(value, []).append(one.row)
    for prefix, by_value in groups.items():
        levels = "".join(f"{field}={value}/" for field, value in zip(scheme.fields, prefix, strict=False))
        group = SubPartitionGroup.of(by_value, policy=policy, prefix=levels, order=order)
        yield from GROUP_RULES[policy.kind](group)


def _entry(one: _Placed, *, verdict: Verdict | None, policy: str | None, pending: Mapping[str, str]) -> ExpiryEntry:
    row = one.row
    decision, reason, blocked_by = Decision.KEEP, one.protection or "kept", None
    if verdict is not None:
        decision, reason = (Decision.EXPIRE if verdict.expires else Decision.KEEP), verdict.reason
    if decision is Decision.EXPIRE:
        problem = naming_problem(row.partition_path, reserved=_RESERVED)
        if row.partition_path in pending:
            decision, blocked_by = Decision.BLOCKED, pending[row.partition_path]
            reason = f"{reason}; blocked by the pending plan {blocked_by}, which holds it"
        elif problem:
            decision = Decision.BLOCKED
            reason = f"{reason}; blocked: {problem}, so that it cannot be dropped by name; delete its rows instead"
    return ExpiryEntry(
        partition_path=row.partition_path,
        decision=decision,
        reason=reason,
        policy=policy,
        last_modified_instant=row.last_modified_instant,
        total_bytes=row.total_bytes,
        data_file_count=row.data_file_count,
        log_file_count=row.log_file_count,
        blocked_by=blocked_by,
    )


def _misfits(placed: Iterable[_Placed], *, scheme: PartitionScheme) -> tuple[str, ...]:
    paths = [one.row.partition_path for one in placed if one.values is None]
    if not paths:
        return ()
    fields = list(scheme.fields)
    return (f"{len(paths)} partition(s) do not fit the partition fields {fields} and never expire: {some_of(paths)}",)
