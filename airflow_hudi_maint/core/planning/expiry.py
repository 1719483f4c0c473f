"""Expiry: which partitions a table's TTL policies drop, each with its reason.

The rules for users are in docs/expiry.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from functools import cache
from types import MappingProxyType

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.expiry_guards import ExpiryClock, ExpiryGuards
from airflow_hudi_maint.core.model.expiry_plan import ExpiryEntries, ExpiryOutcome, ExpiryPlan, reason_of
from airflow_hudi_maint.core.model.instant import instant_moment
from airflow_hudi_maint.core.model.partition import (
    ENCODED_WILDCARD,
    NULL_PARTITION_VALUE,
    WILDCARD,
    PartitionScheme,
    naming_problem,
)
from airflow_hudi_maint.core.model.plan_basis import Decision, PlanBasis
from airflow_hudi_maint.core.model.policy import PolicyClock, PolicyKind, PolicySet, TTLPolicy
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics
from airflow_hudi_maint.core.planning.expiry_blocks import Block, PartitionBlocks
from airflow_hudi_maint.core.planning.expiry_groups import Columns, GroupRule, null_first
from airflow_hudi_maint.core.planning.expiry_guards import check_guards, guard_problems
from airflow_hudi_maint.core.planning.expiry_holds import HoldIndex
from airflow_hudi_maint.core.planning.expiry_time import AgeClock, TimeRule
from airflow_hudi_maint.core.planning.partition_values import ValueOrder, order_values
from airflow_hudi_maint.core.planning.policy_match import PolicyMatch, PolicyMatcher, describe
from airflow_hudi_maint.core.planning.wording import some_of

__all__ = [
    "ExpiryClock",
    "ExpiryGuards",
    "check_guards",
    "guard_problems",
    "partitions_by_creation",
    "plan_expiry",
]

_TOLERATED_SKEW = timedelta(minutes=5)
_ONE_DAY = timedelta(days=1)
_MISSING_NAMED = 20
_RESERVED = (",", WILDCARD, ENCODED_WILDCARD)
"""What Hudi's list of partitions to delete gives a meaning of its own."""

_NOTHING_KNOWN: Mapping[str, str] = MappingProxyType({})
_UNCOVERED = ExpiryOutcome(Decision.KEEP, "no policy covers it")


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
    created: Mapping[str, str] = _NOTHING_KNOWN,
    previous_expired: int | None = None,
) -> ExpiryPlan:
    """Plan which partitions expire, and say for every partition why or why not.

    ``field_types`` has the Avro type of each partition field that the table's schema names; ``pending`` the instant of
    the pending plan that holds a partition, which is then blocked instead of expired, as is one whose name Hudi would
    read as something else. ``zone`` is the zone that the table's writers stamp instants with. ``created`` has the
    creation instant of the partitions that :func:`partitions_by_creation` names; ``previous_expired`` is how many
    partitions the run before dropped. A tripped guard is a warning here; :func:`check_guards` makes it an error. The
    same arguments give the same plan, in whatever order the partitions come.

    Raises InvalidPolicyError for policies that do not fit the table or could both win, and InvalidSettingError for a
    protected spec or a hold that could hold nothing.

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
    holds = HoldIndex.of(guards, scheme=scheme)
    blocks = PartitionBlocks.of(statistics.partitions, scheme=scheme)
    clock, quiet = _clock(blocks.rows, guards=guards, zone=zone, now=now)
    judgement = _Judgement(blocks, policies, scheme=scheme, field_types=field_types, clock=clock, created=created)
    warnings = [*_misfits(blocks, scheme=scheme), *judgement.judge()]
    warnings += _hold_back(judgement, holds)
    _block(judgement, pending)
    if any(policy.kind is PolicyKind.KEEP_BY_TIME for policy in policies.all()):
        warnings += _clock_warnings(clock, quiet)
    plan = ExpiryPlan(
        basis=basis,
        policies=policies,
        clock=str(guards.clock),
        entries=ExpiryEntries(blocks.rows, judgement.outcomes, judgement.numbers),
        warnings=tuple(warnings),
        quiet_seconds=None if quiet is None else quiet.total_seconds(),
        previous_expired=previous_expired,
    )
    return replace(plan, warnings=(*plan.warnings, *guard_problems(plan, guards)))


def partitions_by_creation(
    statistics: TableStatistics, policies: PolicySet, *, scheme: PartitionScheme
) -> tuple[str, ...]:
    """The partitions whose policy goes by their creation, in path order: only of these it has to be read."""
    if all(policy.clock is not PolicyClock.CREATED for policy in policies.all()):
        return ()
    blocks = PartitionBlocks.of(statistics.partitions, scheme=scheme)
    matched = _matched(blocks.blocks, PolicyMatcher.of(policies), scheme=scheme)
    chosen = [block for match, block in matched if match.winner and match.winner.clock is PolicyClock.CREATED]
    return tuple(blocks.rows[place].partition_path for place in sorted(one for block in chosen for one in block.places))


def _check(policies: PolicySet, *, scheme: PartitionScheme, now: datetime) -> None:
    if now.tzinfo is None:
        raise ValueError(f"now={now} has no time zone; pass an aware moment in UTC")
    if not scheme.fields and not policies.is_empty:
        named = ", ".join(f"'{policy}'" for policy in policies.all())
        raise InvalidPolicyError(f"the table is not partitioned, so no TTL policy can apply to it; remove {named}")
    policies.check(scheme)


def _clock(
    rows: Sequence[PartitionStatistics], *, guards: ExpiryGuards, zone: tzinfo, now: datetime
) -> tuple[AgeClock, timedelta | None]:
    """Choose the moment that ages are measured from, and say how long the table's data has been quiet.

    The newest data, not the last instant of the timeline: each maintenance run adds an instant of its own, so a table
    whose feed is dead would go on ageing by them.
    """

    @cache
    def moment_of(instant_time: str) -> datetime | None:
        try:
            return instant_moment(instant_time, zone=zone)
        except ValueError:
            return None

    moments = [moment for one in {row.last_modified_instant for row in rows} if (moment := moment_of(one)) is not None]
    wall = AgeClock(measured_from=now, since="ago", moment_of=moment_of)
    if not moments:
        return wall, None
    newest = max(moments)
    quiet = now - newest
    if guards.clock is ExpiryClock.WALL or quiet <= timedelta(0):
        return wall, quiet
    return AgeClock(measured_from=newest, since="before the table's newest data", moment_of=moment_of), quiet


def _clock_warnings(clock: AgeClock, quiet: timedelta | None) -> Iterator[str]:
    if quiet is not None and quiet < -_TOLERATED_SKEW:
        yield f"the newest data is {-quiet} ahead of now: check clocks and the table's time zone"
    elif quiet is not None and quiet > _ONE_DAY and clock.since != "ago":
        yield (
            f"ages are measured from the table's newest data ({clock.measured_from:%Y-%m-%d %H:%M} UTC, "
            f"{quiet / _ONE_DAY:.1f} days ago), not from now; clock={ExpiryClock.WALL} measures from now"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ruled:
    """Partitions that one policy decides about, with the policies that lose."""

    match: PolicyMatch
    block: Block


class _Judgement:
    """Works out the outcome of each partition, in path order."""

    def __init__(
        self,
        blocks: PartitionBlocks,
        policies: PolicySet,
        *,
        scheme: PartitionScheme,
        field_types: Mapping[str, str],
        clock: AgeClock,
        created: Mapping[str, str],
    ) -> None:
        self.scheme = scheme
        self.rows = blocks.rows
        misfit = f"kept: its path does not fit the partition fields {list(scheme.fields)}"
        self.outcomes = [_UNCOVERED] * len(blocks.rows)
        self.numbers = [0] * len(blocks.rows)
        for place in blocks.misfits:
            self.outcomes[place] = ExpiryOutcome(Decision.KEEP, misfit)
        self.ruled = tuple(
            _Ruled(match=match, block=block)
            for match, block in _matched(blocks.blocks, PolicyMatcher.of(policies), scheme=scheme)
            if match.winner
        )
        self.blocks = blocks.blocks
        self._field_types = field_types
        self._times = {
            id(policy): TimeRule(policy, clock=clock, scheme=scheme, created=created)
            for policy in policies.all()
            if policy.kind is PolicyKind.KEEP_BY_TIME
        }

    def judge(self) -> Iterator[str]:
        """Write all outcomes; gives the warnings."""
        free: dict[int, tuple[TTLPolicy, list[Block]]] = {}
        for one in self.ruled:
            if one.match.winner:
                block = self._without_null(one.block, policy=one.match.winner)
                # By identity: hashing a policy for each block would take longer than judging it.
                free.setdefault(id(one.match.winner), (one.match.winner, []))[1].append(block)
        orders = self._orders(free.values())
        with_null: dict[str, ValueOrder] = {}
        columns = Columns(rows=self.rows, outcomes=self.outcomes, numbers=self.numbers)
        for policy, blocks in free.values():
            if policy.kind is PolicyKind.KEEP_BY_TIME:
                self._times[id(policy)].judge_blocks(blocks, rows=self.rows, outcomes=self.outcomes)
                continue
            field = self.scheme.fields[len(policy.spec.levels)]
            order = orders[field]
            if policy.expires_null:
                if field not in with_null:
                    with_null[field] = null_first(order)
                order = with_null[field]
            rule = GroupRule(policy, order=order, scheme=self.scheme)
            rule.judge_blocks(blocks, columns=columns)
        self._explain_losers()
        for order in orders.values():
            yield from order.warnings
        for time in self._times.values():
            yield from time.warnings()

    def hold_back(self, place: int, *, why: str) -> None:
        """Keep a partition that would expire."""
        outcome = self.outcomes[place]
        reason = f"kept: {reason_of(outcome, number=self.numbers[place])}, but {why}"
        self.outcomes[place] = outcome._replace(decision=Decision.KEEP, reason=reason, why_not=why)
        self.numbers[place] = 0

    def block(self, place: int, *, why: str, by: str | None = None) -> None:
        """Block a partition that would expire; ``by`` is the pending instant that holds it."""
        outcome = self.outcomes[place]
        reason = f"{reason_of(outcome, number=self.numbers[place])}; blocked{why}"
        self.outcomes[place] = outcome._replace(decision=Decision.BLOCKED, reason=reason, blocked_by=by)
        self.numbers[place] = 0

    def _without_null(self, block: Block, *, policy: TTLPolicy) -> Block:
        """Leave out, and keep, the partitions whose nulls the policy does not reach."""
        if policy.expires_null:
            return block
        levels, fields = policy.spec.levels, self.scheme.fields
        named = [place < len(levels) and levels[place][1] == NULL_PARTITION_VALUE for place in range(len(fields))]
        for place, value in enumerate(block.parents):
            if value == NULL_PARTITION_VALUE and not named[place]:
                self._keep_null(block, range(len(block.leaves)), field=fields[place], policy=policy)
                return block.picking(())
        if named[-1] or NULL_PARTITION_VALUE not in block.leaves:
            return block
        nulls = [number for number, leaf in enumerate(block.leaves) if leaf == NULL_PARTITION_VALUE]
        self._keep_null(block, nulls, field=fields[-1], policy=policy)
        return block.picking(number for number, leaf in enumerate(block.leaves) if leaf != NULL_PARTITION_VALUE)

    def _keep_null(self, block: Block, numbers: Iterable[int], *, field: str, policy: TTLPolicy) -> None:
        reason = f"kept: a null {field} never expires unless the policy's spec names it or expireNullPartitions is set"
        outcome = ExpiryOutcome(Decision.KEEP, reason, describe(policy))
        rule = self._times.get(id(policy))
        chosen = block.picking(numbers)
        for place in chosen.places:
            self.outcomes[place] = outcome
        if rule:
            rule.explain(chosen, why=f"a null {field} stays", rows=self.rows, outcomes=self.outcomes)

    def _orders(self, ruled: Iterable[tuple[TTLPolicy, list[Block]]]) -> dict[str, ValueOrder]:
        """The order of each field whose values some policy compares, over all values that it has there."""
        compared: dict[str, set[str]] = {}
        last = len(self.scheme.fields) - 1
        for policy, blocks in ruled:
            if policy.kind is PolicyKind.KEEP_BY_TIME:
                continue
            depth = len(policy.spec.levels)
            values = compared.setdefault(self.scheme.fields[depth], set())
            for block in blocks:
                values.update(block.leaves if depth == last else block.parents[depth : depth + 1])
        return {
            field: order_values(
                compared[field] - {NULL_PARTITION_VALUE}, field=field, field_type=self._field_types.get(field)
            )
            for field in self.scheme.fields
            if field in compared
        }

    def _explain_losers(self) -> None:
        """Say of what stays where a policy that loses would let it go by its age."""
        for one in self.ruled:
            for loser in one.match.losers:
                if rule := self._times.get(id(loser)):
                    why = f"{describe(loser)} loses: {one.match.why_not(loser)}"
                    rule.explain(one.block, why=why, rows=self.rows, outcomes=self.outcomes)


def _matched(
    blocks: Iterable[Block], matcher: PolicyMatcher, *, scheme: PartitionScheme
) -> Iterator[tuple[PolicyMatch, Block]]:
    """Each block with its policies; one that differs by its last values is cut by those that specs name."""
    literals = matcher.literals_at(len(scheme.fields) - 1) if scheme.fields else frozenset()
    for block in blocks:
        named: dict[str, list[int]] = {}
        if literals and not literals.isdisjoint(block.leaves):
            for number, leaf in enumerate(block.leaves):
                if leaf in literals:
                    named.setdefault(leaf, []).append(number)
            rest = block.picking(number for number, leaf in enumerate(block.leaves) if leaf not in literals)
        else:
            rest = block
        for numbers in named.values():
            yield matcher.match(block.values(numbers[0])), block.picking(numbers)
        if rest.leaves:
            yield matcher.match(rest.values(0)), rest


def _hold_back(judgement: _Judgement, holds: HoldIndex) -> Iterator[str]:
    """Keep what is protected; gives a warning for each hold that holds nothing."""
    if not holds.names:
        return
    found: set[str] = set()
    for block in judgement.blocks:
        for number, place in enumerate(block.places):
            path, values = judgement.rows[place].partition_path, block.values(number)
            if not (names := holds.all_of(path, values)):
                continue
            found |= names
            if judgement.outcomes[place].decision is Decision.EXPIRE:
                judgement.hold_back(place, why=f"it is {holds.find(path, values)}")
    missing = [name for name in holds.names if name not in found]
    for name in missing[:_MISSING_NAMED]:
        yield f"no partition of the table is {name}; is it spelled right?"
    if len(missing) > _MISSING_NAMED:
        yield f"{len(missing) - _MISSING_NAMED:,} more of what is protected or held name no partition of the table"


def _block(judgement: _Judgement, pending: Mapping[str, str]) -> None:
    """Block what would expire, but is held by a pending plan or cannot be named to Hudi."""
    outcomes = judgement.outcomes
    expiring = [place for place, outcome in enumerate(outcomes) if outcome.decision is Decision.EXPIRE]
    paths = [judgement.rows[place].partition_path for place in expiring]
    together = "\n".join(paths)
    are_nameable = all(text not in together for text in _RESERVED) and all(map(str.strip, paths))
    if are_nameable and pending.keys().isdisjoint(paths):
        return
    for place, path in zip(expiring, paths, strict=True):
        problem = naming_problem(path, reserved=_RESERVED)
        if path in pending:
            by = pending[path]
            judgement.block(place, why=f" by the pending plan {by}, which holds it", by=by)
        elif problem:
            judgement.block(place, why=f": {problem}, so that it cannot be dropped by name; delete its rows instead")


def _misfits(blocks: PartitionBlocks, *, scheme: PartitionScheme) -> tuple[str, ...]:
    paths = [blocks.rows[place].partition_path for place in blocks.misfits]
    if not paths:
        return ()
    fields = list(scheme.fields)
    return (f"{len(paths)} partition(s) do not fit the partition fields {fields} and never expire: {some_of(paths)}",)
