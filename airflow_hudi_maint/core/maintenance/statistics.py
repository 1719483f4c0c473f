"""Gather the statistics of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.model.units import human_bytes
from airflow_hudi_maint.core.storage import statistics as reader

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.statistics import TableStatistics


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Statistics, and the file that holds them."""

    statistics: TableStatistics
    path: str


def gather_statistics(
    workspace: Workspace,
    *,
    now: datetime,
    mode: reader.Mode = "auto",
    small_file_bytes: int = reader.DEFAULT_SMALL_FILE_BYTES,
) -> Gathered:
    """Gather statistics and write them as ``<instant>.json``.

    ``mode`` is ``auto`` (incremental since the newest file where the timeline reaches back, else full), ``full`` or
    ``incremental``. A second run on an unchanged table lists no partition and writes the same rows.
    """
    statistics = reader.gather_statistics(
        workspace.table,
        now=now,
        previous=None if mode == "full" else reader.newest_statistics(workspace.documents),
        small_file_bytes=small_file_bytes,
        mode=mode,
    )
    path = reader.write_statistics(workspace.documents, statistics=statistics)
    reader.prune_statistics(workspace.documents)
    requests = workspace.table.storage.requests
    workspace.log(
        f"{statistics.gathered} statistics as of {statistics.as_of_instant} ({statistics.reason}): "
        f"{len(statistics.partitions)} partitions, {statistics.data_file_count} data files, "
        f"{human_bytes(statistics.total_bytes)}; {requests.lists} listings, {requests.reads} reads so far"
    )
    return Gathered(statistics=statistics, path=path)
