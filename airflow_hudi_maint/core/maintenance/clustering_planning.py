"""Plan clustering and small-file compaction: what the table says is worth rewriting, as a document."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import UnsupportedTableError
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings
from airflow_hudi_maint.core.model.units import human_bytes
from airflow_hudi_maint.core.planning.clustering import plan_clustering as plan_clustering_slices
from airflow_hudi_maint.core.planning.small_files import Worthwhile, plan_small_file_compaction
from airflow_hudi_maint.core.storage.changes import watermark_of
from airflow_hudi_maint.core.storage.schema import table_schema
from airflow_hudi_maint.core.storage.table import HudiTable

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class PlannedClustering:
    """A clustering plan of ours (not yet Hudi's), and the file that holds it."""

    plan: ClusteringPlan
    path: str


def plan_clustering(
    workspace: Workspace, *, now: datetime, settings: ClusteringSettings, partitions: Collection[str] | None = None
) -> PlannedClustering:
    """Plan which partitions are clustered and write the plan; changes nothing on the table.

    Raises UnknownColumnError for a sort column, and UnknownPartitionError for a partition, that the table lacks.
    """
    return _plan(workspace, now=now, settings=settings, partitions=partitions, planner=plan_clustering_slices)


def plan_small_files(
    workspace: Workspace,
    *,
    now: datetime,
    settings: ClusteringSettings,
    partitions: Collection[str] | None = None,
    worthwhile: Worthwhile | None = None,
) -> PlannedClustering:
    """Plan which partitions have small files that are worth rewriting, without a sort; changes nothing on the table."""
    planner = partial(plan_small_file_compaction, worthwhile=worthwhile or Worthwhile())
    return _plan(workspace, now=now, settings=settings, partitions=partitions, planner=planner)


def _plan(
    workspace: Workspace,
    *,
    now: datetime,
    settings: ClusteringSettings,
    partitions: Collection[str] | None,
    planner: Callable[..., ClusteringPlan],
) -> PlannedClustering:
    table = workspace.table
    _check_format(table)
    timeline = table.timeline()
    if settings.sort_columns:
        table_schema(table, timeline=timeline).check_columns(settings.sort_columns)
    view = table.view(timeline)
    if partitions is not None:
        table.check_partitions(partitions, known=view.partition_paths)
    plan = planner(
        {path: view.merged_slices(path) for path in view.partition_paths},
        settings,
        basis=workspace.basis(watermark_of(timeline), now=now),
        partitions=partitions,
    )
    path = workspace.documents.write_kept(
        "plans", stem=f"{plan.basis.base_instant}-{plan.purpose}", document=plan.to_json()
    )
    workspace.log(describe(plan))
    return PlannedClustering(plan=plan, path=path)


def _check_format(table: HudiTable) -> None:
    if table.config.base_file_format != "PARQUET":
        msg = (
            f"Table {table.base_path} has base files of format {table.config.base_file_format}; only tables of Parquet "
            "files are clustered and have small files rewritten. Statistics and expiry take this table, too"
        )
        raise UnsupportedTableError(msg)


def describe(plan: ClusteringPlan) -> str:
    """Say in one sentence what a plan rewrites."""
    files = sum(len(entry.file_ids) for entry in plan.chosen)
    size = sum(entry.input_bytes for entry in plan.chosen)
    outputs = sum(entry.output_file_count for entry in plan.chosen)
    return (
        f"{plan.purpose.capitalize()} plan on {plan.basis.base_instant}: "
        f"{len(plan.chosen)} of {len(plan.entries)} partitions, "
        f"{files} files ({human_bytes(size)}) into about {outputs}, in {plan.group_count} groups"
    )
