"""Clustering: which partitions Hudi is asked to rewrite, each with its reason.

The rules for users are in docs/clustering.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings, ExecutionStrategy, PlanBasis
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.clustering_strategy import Selecting
from airflow_hudi_maint.core.planning.rewrites import Candidate, Refusal, plan_rewrites

_NOTHING_PENDING: Mapping[str, str] = {}
_SINGLE_FILE_PLAN = "org.apache.hudi.client.clustering.plan.strategy.SparkSingleFileSortPlanStrategy"


def plan_clustering(
    slices: Mapping[str, Sequence[FileSlice]],
    settings: ClusteringSettings,
    *,
    basis: PlanBasis,
    partitions: Collection[str] | None = None,
    pending: Mapping[str, str] = _NOTHING_PENDING,
    purpose: str = "clustering",
    selecting: Selecting | None = None,
) -> ClusteringPlan:
    """Plan which partitions to cluster, with the groups that Hudi makes of each: filter, then group, then cap.

    A partition is worth it from ``min_input_files`` small files on, and when fewer files come out than go in: also with
    sort columns, since nothing in a file says that it is sorted already, and each run would sort it again. Single-file
    sort, which makes no files fewer, leaves a partition alone that was sorted so after its last change, unless it is
    named. ``partitions`` None means all; ``pending`` names the pending plan that holds a partition, beside the ones
    that its slices name; ``selecting`` is the strategy (None: every partition, by files removed). Every partition that
    was considered has an entry.

    Raises UnknownPartitionError for a name without data, and InvalidSettingError for an empty list of names.

    >>> from airflow_hudi_maint.core.model.file_slice import BaseFile
    >>> from airflow_hudi_maint.core.model.statistics import Watermark
    >>> def file_slice(partition_path: str, name: str) -> FileSlice:
    ...     file = BaseFile(name=name, file_id=name, instant="20261130000000000", bytes=1024 * 1024)
    ...     return FileSlice(partition_path=partition_path, file_id=name, base_instant=file.instant, base_file=file)
    >>> basis = PlanBasis(
    ...     base_path="/lake/trips", table_name="trips", table_version=9,
    ...     watermark=Watermark(requested_time="20261130000000000"), created_at="",
    ... )
    >>> slices = {"day=1": [file_slice("day=1", "a"), file_slice("day=1", "b")], "day=2": [file_slice("day=2", "c")]}
    >>> for entry in plan_clustering(slices, ClusteringSettings(), basis=basis).entries:
    ...     print(entry.partition_path, entry.decision, "-", entry.reason)
    day=1 cluster - 2 small files of 2 MiB become 1 in 1 group
    day=2 keep - 1 small file: one file rewritten to one gains nothing
    """
    refusal: Refusal = gains_nothing
    if settings.execution_strategy is ExecutionStrategy.SINGLE_FILE_SORT:
        refusal = partial(_has_nothing_to_sort, is_named=partitions is not None)
    return plan_rewrites(
        slices,
        settings,
        basis=basis,
        partitions=partitions,
        pending=pending,
        purpose=purpose,
        refusal=refusal,
        selecting=selecting,
    )


def gains_nothing(candidate: Candidate, settings: ClusteringSettings) -> str | None:
    """Say why rewriting a partition would not leave it with fewer files; None when it would."""
    small = counted(candidate.small_file_count, "small file")
    if candidate.small_file_count == 0:
        limit = human_bytes(settings.small_file_bytes)
        return f"no small file: {counted(candidate.file_count, 'file')}, none below {limit}"
    if candidate.small_file_count == 1:
        return f"{small}: one file rewritten to one gains nothing"
    if candidate.small_file_count < settings.min_input_files:
        return f"{small}, fewer than min_input_files={settings.min_input_files}"
    if candidate.files_removed < 1:
        return f"{small} stay as many: max_group_bytes and target_file_bytes leave no two of them to merge"
    return None


def _has_nothing_to_sort(candidate: Candidate, settings: ClusteringSettings, *, is_named: bool) -> str | None:
    if not candidate.groups:
        limit = human_bytes(settings.small_file_bytes)
        return f"no file to sort: {counted(candidate.file_count, 'file')}, none below {limit}"
    if candidate.facts.is_sorted and not is_named:
        when = f"{candidate.facts.last_sorted:%Y-%m-%d %H:%M}"
        return f"sorted on {when}, and nothing was written since; name the partition to sort it again"
    return None


def clustering_options(settings: ClusteringSettings, *, group_count: int) -> dict[str, str]:
    """Return the Hudi options that make Hudi's plan the one that was shown.

    ``group_count`` is the plan's ``group_limit``, so that Hudi's limit (30 by default, over all partitions) leaves none
    out.
    Partitions, sort columns and layout go by the procedure's named arguments.

    >>> clustering_options(ClusteringSettings(), group_count=36)["hoodie.clustering.plan.strategy.max.num.groups"]
    '36'
    """
    if group_count < 1:
        raise InvalidSettingError(f"group_count={group_count}: a clustering plan needs at least one group")
    strategy = "hoodie.clustering.plan.strategy"
    options = {
        f"{strategy}.small.file.limit": str(settings.small_file_bytes),
        f"{strategy}.target.file.max.bytes": str(settings.target_file_bytes),
        f"{strategy}.max.bytes.per.group": str(settings.max_group_bytes),
        f"{strategy}.max.num.groups": str(group_count),
        # Since 1.0 a plan otherwise looks only at partitions that were written since the last clustering.
        "hoodie.table.services.incremental.enabled": "false",
    }
    if settings.execution_strategy is not ExecutionStrategy.SORT_AND_SIZE:
        options["hoodie.clustering.execution.strategy.class"] = settings.execution_strategy.class_name
    if settings.execution_strategy is ExecutionStrategy.SINGLE_FILE_SORT:
        options[f"{strategy}.class"] = _SINGLE_FILE_PLAN
    if not settings.sort_columns:
        options[f"{strategy}.single.group.clustering.enabled"] = "false"
    return options
