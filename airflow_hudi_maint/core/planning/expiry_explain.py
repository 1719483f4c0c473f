"""Explain which policy decides about one partition, which ones lose, and which do not reach it."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_hudi_maint.core.errors import UnknownPartitionError
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.plan import ExpiryEntry, ExpiryPlan
from airflow_hudi_maint.core.model.policy import PolicySet, TTLPolicy
from airflow_hudi_maint.core.planning.policy_match import PolicyMatcher, describe


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What each policy means for one partition. ``losers`` and ``others`` (which do not cover it) come with the reason.

    ``values`` is None for a path that does not fit the partition fields: no policy decides about it then.
    """

    partition_path: str
    values: tuple[str, ...] | None
    winner: TTLPolicy | None
    losers: tuple[tuple[TTLPolicy, str], ...] = ()
    others: tuple[tuple[TTLPolicy, str], ...] = ()
    entry: ExpiryEntry | None = None

    def lines(self) -> tuple[str, ...]:
        """The explanation for people, a sentence a line."""
        if self.values is None:
            return (f"{self.partition_path!r} does not fit the partition fields, so no policy decides about it",)
        decides = f"{describe(self.winner)} decides ({self.winner.source})" if self.winner else "no policy covers it"
        found = [decides]
        if self.entry is not None:
            found.append(f"{self.entry.decision}: {self.entry.reason}")
            found += [f"why not: {self.entry.why_not}"] * bool(self.entry.why_not)
        found += [f"{describe(policy)} loses: {why} ({policy.source})" for policy, why in self.losers]
        found += [f"{describe(policy)} does not cover it: {why} ({policy.source})" for policy, why in self.others]
        return tuple(found)


def explain(
    partition_path: str, policies: PolicySet, *, scheme: PartitionScheme, plan: ExpiryPlan | None = None
) -> Explanation:
    """Explain one partition of a table, which need not be there; ``plan`` adds what was decided and why.

    Raises InvalidPolicyError for policies that do not fit the table or could both win, and UnknownPartitionError for a
    partition that ``plan`` does not have.

    >>> policies = PolicySet.from_json([
    ...     {"partitionSpec": "user_id=*/", "policy": "KEEP_BY_TIME", "policyValue": 30, "default": True},
    ...     {"partitionSpec": "user_id=1/", "policy": "KEEP_BY_COUNT", "policyValue": 10},
    ...     {"partitionSpec": "user_id=2/", "policy": "KEEP_BY_COUNT", "policyValue": 5},
    ... ])
    >>> scheme = PartitionScheme(fields=("user_id", "ts"), hive_style=True)
    >>> for line in explain("user_id=1/ts=2026-11-30", policies, scheme=scheme).lines():
    ...     print(line)
    KEEP_BY_COUNT 10 on user_id=1/ decides (argument)
    KEEP_BY_TIME 30 on user_id=*/ (default) loses: an explicit policy beats the default one (argument)
    KEEP_BY_COUNT 5 on user_id=2/ does not cover it: its spec asks for user_id=2, which is '1' (argument)
    """
    policies.check(scheme)
    matcher = PolicyMatcher.of(policies)
    path = partition_path.strip("/")
    entry = None if plan is None else _entry(plan, path)
    values = scheme.values(path)
    if values is None:
        return Explanation(partition_path=path, values=None, winner=None, entry=entry)
    match = matcher.match(values)
    reaching = (match.winner, *match.losers)
    others = [policy for policy in policies.all() if not any(policy is one for one in reaching)]
    return Explanation(
        partition_path=path,
        values=values,
        winner=match.winner,
        losers=tuple((loser, match.why_not(loser)) for loser in match.losers),
        others=tuple((policy, _difference(policy, values)) for policy in others),
        entry=entry,
    )


def _entry(plan: ExpiryPlan, path: str) -> ExpiryEntry:
    found = next((entry for entry in plan.entries if entry.partition_path == path), None)
    if found is None:
        example = f"; partitions look like {plan.entries[0].partition_path!r}" if plan.entries else "; it has none"
        raise UnknownPartitionError(f"Table {plan.basis.base_path} has no partition {path!r}{example}")
    return found


def _difference(policy: TTLPolicy, values: tuple[str, ...]) -> str:
    for (name, wanted), value in zip(policy.spec.levels, values, strict=False):
        if wanted is not None and wanted != value:
            return f"its spec asks for {name}={wanted}, which is {value!r}"
    return f"its spec {policy.spec} names more levels than the partition has"
