"""What a strategy of clustering is: which partitions are looked at, and which come first.

A strategy knows nothing of storage, engines or settings of Hudi: it gets facts and candidates as values. A class of
yours works as one, when its methods are these; docs/clustering.md has an example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.document import JsonMapping
from airflow_hudi_maint.core.planning.clustering_candidates import Candidate, PartitionFacts
from airflow_hudi_maint.core.planning.wording import some_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate at its place; ``remark`` is what its reason says beside the gain, such as its score."""

    partition_path: str
    remark: str = ""


@runtime_checkable
class ClusteringStrategy(Protocol):
    """Filters partitions before they are grouped, and orders candidates before they are capped.

    ``now`` is aware, in the time zone of the table's timeline. Both methods are pure: the same values give the same
    answer, in whatever order partitions come.
    """

    @property
    def needs_history(self) -> bool:
        """Whether the moments of :class:`PartitionFacts` are asked for; gathering them costs a look at the timeline."""
        ...

    @property
    def max_bytes(self) -> int | None:
        """Most bytes that one plan reads; None for no limit."""
        ...

    def exclude(self, partitions: Sequence[PartitionFacts], *, now: datetime) -> Mapping[str, str]:
        """Say of partitions by path why they are not looked at, in figures; those that stay are not named."""
        ...

    def rank(self, candidates: Sequence[Candidate], *, now: datetime) -> Sequence[Ranked]:
        """Order all candidates, the one to be rewritten first in front: budgets are spent in this order."""
        ...


@dataclass(frozen=True, kw_only=True)
class Selecting:
    """A strategy, by which name and options it was asked for, and what it is given; ``facts`` by partition path."""

    strategy: ClusteringStrategy
    now: datetime
    name: str = "size_based"
    options: JsonMapping = field(default_factory=dict)
    facts: Mapping[str, PartitionFacts] = field(default_factory=dict)

    def excluded(self, partitions: Sequence[PartitionFacts]) -> Mapping[str, str]:
        """As the strategy says; raises InvalidSettingError for a name that it was not given, or no reason."""
        reasons = dict(self.strategy.exclude(partitions, now=self.now))
        unknown = set(reasons) - {one.partition_path for one in partitions}
        if unknown:
            raise InvalidSettingError(
                f"strategy {self.name} excludes partitions that there are not: {some_of(unknown)}"
            )
        silent = [path for path, reason in reasons.items() if not reason or not isinstance(reason, str)]
        if silent:
            raise InvalidSettingError(f"strategy {self.name} gives no reason to exclude {some_of(silent)}")
        return reasons

    def ranked(self, candidates: Sequence[Candidate]) -> Sequence[tuple[Candidate, str]]:
        """Candidates in the strategy's order, with its remarks; InvalidSettingError unless it names each once."""
        by_path = {one.partition_path: one for one in candidates}
        order = tuple(self.strategy.rank(candidates, now=self.now))
        paths = [one.partition_path for one in order]
        if sorted(paths) != sorted(by_path):
            wrong = set(paths) ^ set(by_path) or {path for path in paths if paths.count(path) > 1}
            raise InvalidSettingError(
                f"strategy {self.name} has to rank each of {len(by_path)} candidates once; wrong are {some_of(wrong)}"
            )
        return [(by_path[one.partition_path], one.remark) for one in order]
