"""KEEP_BY_COUNT and KEEP_BY_SIZE: which sub-partitions of a group go, the smallest values first.

Source: RFC-65, "TTL policy definition". A *sub-partition* is a distinct value of the field below a policy's spec, under
one combination of the values before it, with all its leaf partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from operator import lt

from airflow_hudi_maint.core.model.expiry_plan import ExpiryOutcome
from airflow_hudi_maint.core.model.partition import NULL_PARTITION_VALUE, PartitionScheme
from airflow_hudi_maint.core.model.plan_basis import Decision
from airflow_hudi_maint.core.model.policy import PolicyKind, TTLPolicy
from airflow_hudi_maint.core.model.statistics import PartitionStatistics
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.expiry_blocks import Block
from airflow_hudi_maint.core.planning.partition_values import ValueOrder
from airflow_hudi_maint.core.planning.policy_match import describe
from airflow_hudi_maint.core.planning.wording import compared_bytes

Rows = Sequence[PartitionStatistics]
Places = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubPartitionGroup:
    """The sub-partitions that a policy counts together, the smallest value first.

    Where each has one partition, ``singles`` has their places; else ``several`` the places of each.
    """

    policy: TTLPolicy
    field: str
    prefix: str
    singles: Places = ()
    several: Sequence[Places] = ()

    def __len__(self) -> int:
        return len(self.singles) or len(self.several)

    def children(self, first: int, last: int) -> Iterable[Places]:
        """The places of some sub-partitions, one after the other."""
        return zip(self.singles[first:last], strict=True) if self.singles else self.several[first:last]

    def sizes(self, rows: Rows) -> list[int]:
        """The bytes of each sub-partition."""
        if self.singles:
            return [rows[place].total_bytes for place in self.singles]
        return [sum([rows[place].total_bytes for place in places]) for places in self.several]

    def __str__(self) -> str:
        return f"{counted(len(self), 'value')} of {self.field}{f' under {self.prefix}' if self.prefix else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What judging works on: the partitions, and by place what is decided of each; the latter two are written."""

    rows: Rows
    outcomes: list[ExpiryOutcome]
    numbers: list[int]

    def set(self, places: Places, outcome: ExpiryOutcome, *, number: int = 0) -> None:
        """Decide about some partitions."""
        for place in places:
            self.outcomes[place] = outcome
            self.numbers[place] = number


class GroupRule:
    """One KEEP_BY_COUNT or KEEP_BY_SIZE policy at work. ``order`` is that of the field below its spec."""

    def __init__(self, policy: TTLPolicy, *, order: ValueOrder, scheme: PartitionScheme) -> None:
        self.policy = policy
        self._order = order
        self._ranks = order.ranks
        self._fields = scheme.fields
        self._depth = len(policy.spec.levels)
        self._name = describe(policy)

    def judge_blocks(self, blocks: Iterable[Block], *, columns: Columns) -> None:
        """Write the outcome of each partition."""
        keep = _RULES[self.policy.kind]
        is_lowest = self._depth + 1 == len(self._fields)
        for prefix, members in self._grouped(blocks).items():
            if is_lowest:
                singles, several = self._leaves(members, columns=columns)
            else:
                singles, several = (), self._branches(members, columns=columns)
            levels = "".join(f"{name}={value}/" for name, value in zip(self._fields, prefix, strict=False))
            group = SubPartitionGroup(
                policy=self.policy, field=self._order.field, prefix=levels, singles=singles, several=several
            )
            keep(group, self._name, columns)

    def _grouped(self, blocks: Iterable[Block]) -> dict[tuple[str, ...], list[Block]]:
        groups: dict[tuple[str, ...], list[Block]] = {}
        for block in blocks:
            groups.setdefault(block.parents[: self._depth], []).append(block)
        return groups

    def _leaves(self, blocks: Sequence[Block], *, columns: Columns) -> tuple[Places, Sequence[Places]]:
        """The places of each leaf value: of one partition each, or of several where paths write a value differently."""
        leaves = blocks[0].leaves if len(blocks) == 1 else [leaf for block in blocks for leaf in block.leaves]
        places = blocks[0].places if len(blocks) == 1 else [place for block in blocks for place in block.places]
        found = [self._ranks.get(leaf) for leaf in leaves]
        ranks = [rank for rank in found if rank is not None]
        if len(ranks) < len(found):
            for leaf, place in zip(leaves, places, strict=True):
                self._keep_stray(leaf, (place,), columns=columns)
            places = [place for rank, place in zip(found, places, strict=True) if rank is not None]
        if all(map(lt, ranks, islice(ranks, 1, None))):
            return places, ()
        order = sorted(range(len(ranks)), key=ranks.__getitem__)
        if len(set(ranks)) == len(ranks):
            return [places[at] for at in order], ()
        merged: dict[int, list[int]] = {}
        for at in order:
            merged.setdefault(ranks[at], []).append(places[at])
        return (), list(merged.values())

    def _branches(self, blocks: Iterable[Block], *, columns: Columns) -> Sequence[Places]:
        """The places below each value of a field that has others below it."""
        merged: dict[int, list[int]] = {}
        for block in blocks:
            value = block.parents[self._depth]
            rank = self._ranks.get(value)
            if rank is None:
                self._keep_stray(value, block.places, columns=columns)
            else:
                merged.setdefault(rank, []).extend(block.places)
        return [merged[rank] for rank in sorted(merged)]

    def _keep_stray(self, value: str, places: Places, *, columns: Columns) -> None:
        if value not in self._ranks:
            why = f"{value!r} has no place among the {self._order.compared_as} of {self._order.field}"
            columns.set(places, ExpiryOutcome(Decision.KEEP, f"kept: {why}", self._name))


def null_first(order: ValueOrder) -> ValueOrder:
    """The same order with null before every value, for policies that let null partitions expire."""
    return ValueOrder(
        field=order.field,
        compared_as=order.compared_as,
        keys={NULL_PARTITION_VALUE: (float("-inf"), ""), **order.keys},
        strays=order.strays,
        warnings=order.warnings,
    )


def _keep_by_count(group: SubPartitionGroup, name: str, columns: Columns) -> None:
    """The smallest values expire until the policy's number is left."""
    count, allowed, of_group = len(group), group.policy.value, str(group)
    surplus = max(count - allowed, 0)
    goes = ExpiryOutcome(Decision.EXPIRE, f"smallest of {of_group}, {allowed} kept", name)
    outcomes, numbers = columns.outcomes, columns.numbers
    for number, places in enumerate(group.children(0, surplus), start=1):
        for place in places:
            outcomes[place] = goes
            numbers[place] = number
    kept = f"kept: newest {allowed} of {of_group}" if surplus else f"kept: {of_group}, {allowed} allowed"
    stays = ExpiryOutcome(Decision.KEEP, kept, name)
    for places in group.children(surplus, count):
        for place in places:
            outcomes[place] = stays


def _keep_by_size(group: SubPartitionGroup, name: str, columns: Columns) -> None:
    """The smallest values expire until the rest fits into the policy's bytes.

    The newest sub-partition stays even when it alone is larger, unless the policy allows emptying the group.
    """
    budget, of_group, sizes = group.policy.value, str(group), group.sizes(columns.rows)
    together = list(accumulate(reversed(sizes)))[::-1]  # of each sub-partition and the newer ones
    fitting = sum([held <= budget for held in together])
    surplus = len(sizes) - max(fitting, 0 if group.policy.may_empty else 1)
    for number, places in enumerate(group.children(0, max(surplus, 0)), start=1):
        held, limit = compared_bytes(together[number - 1], limit=budget)
        reason = f"smallest of {of_group}: it and the newer ones hold {held}, {limit} kept"
        columns.set(places, ExpiryOutcome(Decision.EXPIRE, reason, name), number=number)
    if 0 <= surplus < len(sizes):
        stays = _kept_by_size(together[surplus], budget=budget, fitting=fitting, of_group=of_group, name=name)
        for places in group.children(surplus, len(sizes)):
            columns.set(places, stays)


def _kept_by_size(left: int, *, budget: int, fitting: int, of_group: str, name: str) -> ExpiryOutcome:
    if fitting:
        reason = f"kept: newest {fitting} of {of_group} hold {human_bytes(left)}, {human_bytes(budget)} kept"
        return ExpiryOutcome(Decision.KEEP, reason, name)
    held, limit = compared_bytes(left, limit=budget)
    why = f"the newest of {of_group} stays unless allowEmptying is set, although it alone holds {held} of {limit} kept"
    return ExpiryOutcome(Decision.KEEP, f"kept: {why}", name, why_not=why)


_Rule = Callable[[SubPartitionGroup, str, Columns], None]
_RULES: Mapping[PolicyKind, _Rule] = {
    PolicyKind.KEEP_BY_COUNT: _keep_by_count,
    PolicyKind.KEEP_BY_SIZE: _keep_by_size,
}
