"""Small-file compaction: clustering without a sort, of the partitions whose small files make it worthwhile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.document import JsonObject
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings, PlanBasis
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.clustering import gains_nothing
from airflow_hudi_maint.core.planning.clustering_candidates import Candidate, PartitionFacts
from airflow_hudi_maint.core.planning.clustering_strategies import Cold, SizeBased
from airflow_hudi_maint.core.planning.clustering_strategy import Ranked, Selecting
from airflow_hudi_maint.core.planning.rewrites import plan_rewrites
from airflow_hudi_maint.core.planning.wording import compared_bytes

PURPOSE = "small-files"
SMALL_FILES_STRATEGY = "cheapest_first"
"""How a plan's document names the strategy of small-file compaction."""
_NOTHING_PENDING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Worthwhile:
    """When a partition's small files are worth rewriting, and how much one run rewrites.

    ``max_bytes_per_file_removed`` bounds what one file fewer may cost in bytes rewritten; None takes the settings'
    ``small_file_bytes``: not more than the largest small file. ``max_bytes`` bounds what one run reads, and goes first
    to partitions where a file fewer costs least. ``min_idle_days`` leaves partitions alone whose data changed later
    than that. File groups with log files are compacted before; without ``takes_log_files`` they wait.
    """

    min_files_removed: int = 1
    max_bytes_per_file_removed: int | None = None
    max_bytes: int | None = None
    min_idle_days: float | None = None
    takes_log_files: bool = True

    def __post_init__(self) -> None:
        for name in ("min_files_removed", "max_bytes_per_file_removed", "max_bytes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidSettingError(f"{name}={value} is too small; expected at least 1")
        if self.min_idle_days is not None and not 0 < self.min_idle_days < float("inf"):
            raise InvalidSettingError(f"min_idle_days={self.min_idle_days:g} is out of range; expected more than 0")

    @property
    def strategy(self) -> CheapestFirst:
        """The strategy that spends the budget."""
        return CheapestFirst(budget_bytes=self.max_bytes, min_idle_days=self.min_idle_days)

    @property
    def strategy_options(self) -> JsonObject:
        """What is set of the strategy, as the plan's document keeps it."""
        options: JsonObject = {"max_bytes": self.max_bytes, "min_idle_days": self.min_idle_days}
        return {name: value for name, value in options.items() if value is not None}

    def refusal(self, candidate: Candidate, settings: ClusteringSettings) -> str | None:
        """Say why a partition is not worthwhile, in figures; None when it is."""
        nothing = gains_nothing(candidate, settings)
        if nothing is not None:
            return nothing + _micro(candidate, settings)
        waiting = log_file_groups(candidate)
        if waiting and not self.takes_log_files:
            return f"{counted(waiting, 'file group')} with log files: they wait for compaction"
        removed = counted(candidate.files_removed, "file")
        if candidate.files_removed < self.min_files_removed:
            return f"rewriting would remove {removed}, fewer than min_files_removed={self.min_files_removed}"
        limit = self.max_bytes_per_file_removed or settings.small_file_bytes
        cost = -(-candidate.input_bytes // candidate.files_removed)
        if cost > limit:
            each, bound = compared_bytes(cost, limit=limit)
            return f"removing {removed} would rewrite {each} for each, above max_bytes_per_file_removed={bound}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapestFirst(SizeBased):
    """Partitions where a file fewer costs the fewest bytes come first; those whose data changed lately stay out."""

    # Not max_bytes: that is the property of every strategy.
    budget_bytes: int | None = None
    min_idle_days: float | None = None

    @property
    def needs_history(self) -> bool:
        """Only to leave out what is not cold."""
        return self.min_idle_days is not None

    @property
    def max_bytes(self) -> int | None:
        """What one plan may read."""
        return self.budget_bytes

    def exclude(self, partitions: Sequence[PartitionFacts], *, now: datetime) -> Mapping[str, str]:
        """Exclude what changed less than ``min_idle_days`` ago; just that long is long enough."""
        if self.min_idle_days is None:
            return {}
        found = Cold(idle_days=self.min_idle_days).exclude(partitions, now=now)
        return {path: reason.replace("idle_days=", "min_idle_days=") for path, reason in found.items()}

    def rank(self, candidates: Sequence[Candidate], *, now: datetime) -> Sequence[Ranked]:
        """Put the cheapest in front."""
        del now
        ordered = sorted(candidates, key=lambda one: (_cost(one), -one.files_removed, one.partition_path))
        return [Ranked(partition_path=one.partition_path, remark=_remark(one)) for one in ordered]


def _remark(candidate: Candidate) -> str:
    waiting = log_file_groups(candidate)
    first = (
        f", once {counted(waiting, 'file group')} with log files {'is' if waiting == 1 else 'are'} compacted"
        if waiting
        else ""
    )
    return f"{human_bytes(round(_cost(candidate)))} for each file fewer{first}"


def _cost(candidate: Candidate) -> float:
    return candidate.input_bytes / max(candidate.files_removed, 1)


def log_file_groups(candidate: Candidate) -> int:
    """How many file groups of a candidate have log files."""
    return sum(bool(one.log_files) for group in candidate.groups for one in group.slices)


def _micro(candidate: Candidate, settings: ClusteringSettings) -> str:
    size = candidate.facts.total_bytes
    if candidate.small_file_count != 1 or candidate.file_count != 1 or size >= settings.small_file_bytes:
        return ""
    return f" (a micro-partition: {human_bytes(size)} in all)"


def plan_small_file_compaction(
    slices: Mapping[str, Sequence[FileSlice]],
    settings: ClusteringSettings,
    *,
    basis: PlanBasis,
    partitions: Collection[str] | None = None,
    pending: Mapping[str, str] = _NOTHING_PENDING,
    worthwhile: Worthwhile = Worthwhile(),
    selecting: Selecting | None = None,
) -> ClusteringPlan:
    """Plan which partitions to rewrite into fewer files, as :func:`plan_clustering` does, where that is worthwhile.

    Raises InvalidSettingError for sort columns: sorting is what clustering is for.

    >>> from airflow_hudi_maint.core.model.statistics import Watermark
    >>> basis = PlanBasis(
    ...     base_path="/lake/trips", table_name="trips", table_version=9,
    ...     watermark=Watermark(requested_time="20261130000000000"), created_at="",
    ... )
    >>> plan_small_file_compaction({"day=1": []}, ClusteringSettings(), basis=basis).entries[0].reason
    'no small file: 0 files, none below 300 MiB'
    """
    if settings.sort_columns:
        raise InvalidSettingError(
            f"sort_columns={list(settings.sort_columns)}: small-file compaction does not sort; "
            "leave them out, or cluster"
        )
    return plan_rewrites(
        slices,
        settings,
        basis=basis,
        partitions=partitions,
        pending=pending,
        purpose=PURPOSE,
        refusal=worthwhile.refusal,
        selecting=selecting,
    )
