"""Count the small files of a Hudi table, as those of a plain directory are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hudi_maint.core.model.merge_report import SmallFileCounts
from airflow_hudi_maint.core.model.plan import ClusteringSettings

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance.workspace import Workspace


def table_small_file_counts(workspace: Workspace, *, small_file_bytes: int | None = None) -> SmallFileCounts:
    """Count base files of latest slices, by a listing alone; ``small_file_bytes`` None means clustering's default."""
    limit = small_file_bytes or ClusteringSettings().small_file_bytes
    view = workspace.table.view(workspace.table.timeline())
    sizes = [
        one.base_bytes for path in view.partition_paths for one in view.merged_slices(path) if one.base_file is not None
    ]
    small = [size for size in sizes if size < limit]
    return SmallFileCounts(
        root=workspace.table.base_path,
        directories=len(view.partition_paths),
        files=len(sizes),
        small_files=len(small),
        bytes=sum(sizes),
        small_bytes=sum(small),
    )
