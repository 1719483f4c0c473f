"""The strategy of clustering that spends a budget where it gains most, and lets nothing wait for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_duration
from airflow_hudi_maint.core.planning.clustering_candidates import Candidate
from airflow_hudi_maint.core.planning.clustering_options import read_count, read_number
from airflow_hudi_maint.core.planning.clustering_strategies import Reader, SizeBased
from airflow_hudi_maint.core.planning.clustering_strategy import Ranked

_DAY_SECONDS = 86_400
_GIBIBYTE = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Benefit(SizeBased):
    """Most files removed and sorted for each GiB that is rewritten, times how long a partition has waited.

    A file that is sorted for the first time since data was written counts ``sort_weight`` of one that is removed. A
    partition that has waited ``aging_days`` counts double, for twice as long threefold: its score grows without bound
    until it is clustered, and those that were clustered start again, so its turn comes. ``max_bytes`` is what one plan
    may read; groups have a budget in the settings.
    """

    OPTIONS: ClassVar[Mapping[str, Reader]] = {
        "max_bytes": read_count, "aging_days": read_number, "sort_weight": read_number,
    }  # fmt: skip

    # Not max_bytes: that is the property of every strategy.
    budget_bytes: int | None = None
    aging_days: float = 7.0
    sort_weight: float = 0.5

    def __post_init__(self) -> None:
        if self.budget_bytes is not None and self.budget_bytes < 1:
            raise InvalidSettingError(f"max_bytes={self.budget_bytes} is too small; expected at least 1")
        if self.aging_days <= 0:
            raise InvalidSettingError(f"aging_days={self.aging_days:g} is too small; expected more than 0")
        if self.sort_weight < 0:
            raise InvalidSettingError(f"sort_weight={self.sort_weight:g} is negative")

    @property
    def needs_history(self) -> bool:
        """It goes by how long a partition waits."""
        return True

    @property
    def max_bytes(self) -> int | None:
        """What one plan may read."""
        return self.budget_bytes

    def rank(self, candidates: Sequence[Candidate], *, now: datetime) -> Sequence[Ranked]:
        """Put the greatest score in front."""
        scores = {one.partition_path: self.score(one, now=now) for one in candidates}
        ordered = sorted(candidates, key=lambda one: (-scores[one.partition_path], one.partition_path))
        return [
            Ranked(partition_path=one.partition_path, remark=_remark(one, score=scores[one.partition_path], now=now))
            for one in ordered
        ]

    def score(self, candidate: Candidate, *, now: datetime) -> float:
        """Files removed, and sorted in part, for each GiB that is read, times one more for each ``aging_days``."""
        gain = candidate.files_removed + self.sort_weight * candidate.unsorted_file_count
        waited = _waited_seconds(candidate, now=now) / (self.aging_days * _DAY_SECONDS)
        return gain * _GIBIBYTE / max(candidate.input_bytes, 1) * (1 + waited)


def _waited_seconds(candidate: Candidate, *, now: datetime) -> float:
    since = candidate.facts.waiting_since
    return 0.0 if since is None else max((now - since).total_seconds(), 0.0)


def _remark(candidate: Candidate, *, score: float, now: datetime) -> str:
    waited = human_duration(_waited_seconds(candidate, now=now))
    ordered = f" and {candidate.unsorted_file_count} sorted" if candidate.unsorted_file_count else ""
    fewer = counted(candidate.files_removed, "file")
    return f"score {score:.3g}: {fewer} fewer{ordered} for {human_bytes(candidate.input_bytes)}, waiting {waited}"
