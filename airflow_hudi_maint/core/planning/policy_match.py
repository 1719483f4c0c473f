"""Which policy decides about a partition, and which ones lose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import compress

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.policy import PolicySet, TTLPolicy

_Shape = tuple[bool, ...]
_Literals = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyMatch:
    """The policies whose specs select a partition: the one that decides, and the others, strongest first."""

    winner: TTLPolicy | None
    losers: tuple[TTLPolicy, ...] = ()

    def explanations(self) -> tuple[str, ...]:
        """One sentence for the winner and one for each loser."""
        if self.winner is None:
            return ("no policy covers it",)
        why_not = tuple(f"{describe(loser)} loses: {self.why_not(loser)}" for loser in self.losers)
        return (f"{describe(self.winner)} decides", *why_not)

    def why_not(self, loser: TTLPolicy) -> str:
        """Why a policy that covers the partition does not decide."""
        if loser.is_default:
            return "an explicit policy beats the default one"
        winning = self.winner.spec.literal_count if self.winner else 0
        return f"its spec names fewer values ({loser.spec.literal_count} against {winning})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyMatcher:
    """A set of policies, indexed by which levels their specs name: a look-up costs one step per kind of spec."""

    by_shape: tuple[tuple[_Shape, Mapping[_Literals, TTLPolicy]], ...]
    default: TTLPolicy | None
    all_policies: tuple[TTLPolicy, ...] = ()

    @classmethod
    def of(cls, policies: PolicySet) -> PolicyMatcher:
        """Index policies; raises InvalidPolicyError for two explicit ones that could both win, naming both."""
        shapes: dict[_Shape, dict[_Literals, TTLPolicy]] = {}
        for policy in policies.explicit:
            shape = tuple(value is not None for _, value in policy.spec.levels)
            literals = tuple(value for _, value in policy.spec.levels if value is not None)
            shapes.setdefault(shape, {})[literals] = policy
        ordered = tuple(sorted(shapes.items(), key=lambda item: (-sum(item[0]), item[0])))
        _check_unambiguous(ordered)
        return cls(by_shape=ordered, default=policies.default, all_policies=policies.all())

    def literals_at(self, depth: int) -> frozenset[str]:
        """The values that specs name at a level, counted from 0: only these tell partitions apart that differ there."""
        levels = [policy.spec.levels for policy in self.all_policies]
        return frozenset(found for one in levels if len(one) > depth and (found := one[depth][1]) is not None)

    def match(self, values: tuple[str, ...]) -> PolicyMatch:
        """Find the policies of a partition with these values, in field order."""
        found = tuple(self._covering(values))
        return PolicyMatch(winner=found[0] if found else None, losers=found[1:])

    def winner(self, values: tuple[str, ...]) -> TTLPolicy | None:
        """Find the policy that decides about a partition with these values; cheaper than :meth:`match`."""
        return next(self._covering(values), None)

    def _covering(self, values: tuple[str, ...]) -> Iterator[TTLPolicy]:
        for shape, by_literals in self.by_shape:
            if len(shape) <= len(values):
                policy = by_literals.get(tuple(compress(values, shape)))
                if policy is not None:
                    yield policy
        if self.default is not None and self.default.spec.matches(values):
            yield self.default


def match_policy(values: tuple[str, ...], policies: PolicySet) -> PolicyMatch:
    """Find the policy that decides about a partition: explicit before default, then the one that names more values.

    Raises InvalidPolicyError when two explicit policies could both win, for this partition or any other.

    >>> from airflow_hudi_maint.core.model.policy import PolicySet
    >>> policies = PolicySet.from_json([
    ...     {"partitionSpec": "user_id=*/", "policy": "KEEP_BY_TIME", "policyValue": 30, "default": True},
    ...     {"partitionSpec": "user_id=1/", "policy": "KEEP_BY_COUNT", "policyValue": 10},
    ... ])
    >>> for sentence in match_policy(("1", "2026-11-30"), policies).explanations():
    ...     print(sentence)
    KEEP_BY_COUNT 10 on user_id=1/ decides
    KEEP_BY_TIME 30 on user_id=*/ (default) loses: an explicit policy beats the default one
    """
    return PolicyMatcher.of(policies).match(values)


def check_policies(policies: PolicySet, *, scheme: PartitionScheme) -> None:
    """Raise InvalidPolicyError unless policies fit a table partitioned by ``scheme`` and no two could both win."""
    policies.check(scheme)
    PolicyMatcher.of(policies)


def describe(policy: TTLPolicy) -> str:
    """Write a policy as plans name it."""
    return f"{policy} (default)" if policy.is_default else str(policy)


def _check_unambiguous(shapes: tuple[tuple[_Shape, Mapping[_Literals, TTLPolicy]], ...]) -> None:
    """Compare specs of different shape that name equally many values: of one shape, only equal specs can meet."""
    for place, (shape, policies) in enumerate(shapes):
        for other_shape, other_policies in shapes[place + 1 :]:
            if sum(shape) != sum(other_shape):
                continue
            common = tuple(left and right for left, right in zip(shape, other_shape, strict=False))
            seen = {_projected(policy, common): policy for policy in policies.values()}
            for policy in other_policies.values():
                rival = seen.get(_projected(policy, common))
                if rival is not None:
                    msg = (
                        f"{policy.source}: policies '{rival}' and '{policy}' could both win for one partition, since "
                        f"both name {sum(shape)} value(s); drop one, or name one more value in the spec that is to win"
                    )
                    raise InvalidPolicyError(msg)


def _projected(policy: TTLPolicy, positions: tuple[bool, ...]) -> tuple[str | None, ...]:
    return tuple(value for (_, value), wanted in zip(policy.spec.levels, positions, strict=False) if wanted)
