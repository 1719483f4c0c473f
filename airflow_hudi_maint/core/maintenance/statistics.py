"""Gather the statistics of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.model.units import counted, human_bytes
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
    mode: str = "auto",
    small_file_bytes: int | None = None,
    listing: str = "auto",
    record_source: str = "auto",
) -> Gathered:
    """Gather statistics and write them as ``<instant>.json``.

    ``mode`` is ``auto`` (incremental since the newest file where the timeline reaches back, else full), ``full`` or
    ``incremental``. ``small_file_bytes`` None keeps the limit of the newest file, so that counts stay comparable; the
    first file takes Hudi's default of 100 MiB. ``listing`` (``auto``, ``directory`` or ``metadata``) and
    ``record_source`` (``auto``, ``known``, ``commits`` or ``footers``) say how partitions are listed and records
    counted. A second run on an unchanged table lists no partition and writes the same rows.
    """
    before = workspace.requests
    previous = reader.newest_statistics(workspace.documents)
    if small_file_bytes is None:
        small_file_bytes = previous.small_file_bytes if previous else reader.DEFAULT_SMALL_FILE_BYTES
    statistics = reader.gather_statistics(
        workspace.table,
        now=now,
        previous=previous,
        small_file_bytes=small_file_bytes,
        mode=mode,
        listing=listing,
        record_source=record_source,
    )
    path = reader.write_statistics(workspace.documents, statistics=statistics)
    reader.prune_statistics(workspace.documents)
    count = len(statistics.partitions)
    skew = f", {statistics.skew.describe(partitions=count)}" if count > 1 and statistics.skew else ""
    workspace.log(
        f"{statistics.gathered} statistics as of {statistics.as_of_instant} ({statistics.reason}): "
        f"{counted(count, 'partition')}, {counted(statistics.data_file_count, 'data file')}, "
        f"{human_bytes(statistics.total_bytes)}{skew}; {workspace.requests - before}"
    )
    return Gathered(statistics=statistics, path=path)
