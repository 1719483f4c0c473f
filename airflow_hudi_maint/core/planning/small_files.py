"""Small-file compaction: clustering without a sort, of the partitions whose small files make it worthwhile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings, PlanBasis
from airflow_hudi_maint.core.model.units import counted
from airflow_hudi_maint.core.planning.clustering import gains_nothing
from airflow_hudi_maint.core.planning.rewrites import Candidate, plan_rewrites
from airflow_hudi_maint.core.planning.wording import compared_bytes

PURPOSE = "small-files"
_NOTHING_PENDING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Worthwhile:
    """When a partition's small files are worth rewriting.

    ``max_bytes_per_file_removed`` bounds what one file fewer may cost in bytes rewritten; None takes the settings'
    ``small_file_bytes``: not more than the largest small file.
    """

    min_files_removed: int = 1
    max_bytes_per_file_removed: int | None = None

    def __post_init__(self) -> None:
        for name in ("min_files_removed", "max_bytes_per_file_removed"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidSettingError(f"{name}={value} is too small; expected at least 1")

    def refusal(self, candidate: Candidate, settings: ClusteringSettings) -> str | None:
        """Say why a partition is not worthwhile, in figures; None when it is."""
        nothing = gains_nothing(candidate, settings)
        if nothing is not None:
            return nothing
        removed = counted(candidate.files_removed, "file")
        if candidate.files_removed < self.min_files_removed:
            return f"rewriting would remove {removed}, fewer than min_files_removed={self.min_files_removed}"
        limit = self.max_bytes_per_file_removed or settings.small_file_bytes
        cost = -(-candidate.input_bytes // candidate.files_removed)
        if cost > limit:
            each, bound = compared_bytes(cost, limit=limit)
            return f"removing {removed} would rewrite {each} for each, above max_bytes_per_file_removed={bound}"
        return None


def plan_small_file_compaction(
    slices: Mapping[str, Sequence[FileSlice]],
    settings: ClusteringSettings,
    *,
    basis: PlanBasis,
    partitions: Collection[str] | None = None,
    pending: Mapping[str, str] = _NOTHING_PENDING,
    worthwhile: Worthwhile = Worthwhile(),
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
    )
