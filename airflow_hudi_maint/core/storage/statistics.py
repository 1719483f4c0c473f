"""Gather partition statistics, in full or since earlier ones, and keep them as documents.

What may be left out of an incremental gather, and how a partition is dated, is told in docs/statistics.md.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from airflow_hudi_maint.core.errors import CorruptTableError, InvalidSettingError
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.changes import changes_since, foreign, watermark_of
from airflow_hudi_maint.core.storage.dating import Clues, Dating
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.table import HudiTable

MODES = ("auto", "full", "incremental")
DEFAULT_SMALL_FILE_BYTES = 100 * 1024 * 1024
DEFAULT_KEPT_STATISTICS = 30

_FILE_NAME = re.compile(r"\d{14}(?:\d{3})?\.json")

_log = logging.getLogger(__name__)


def gather_statistics(
    table: HudiTable,
    *,
    now: datetime,
    previous: TableStatistics | None = None,
    small_file_bytes: int = DEFAULT_SMALL_FILE_BYTES,
    mode: str = "auto",
) -> TableStatistics:
    """Sum up the latest file slices of every partition, as of the last completed instant.

    ``auto`` and ``incremental`` list only the partitions that instants since ``previous`` touched, and the whole table
    where that cannot be trusted to be complete; ``reason`` in the result says which and why. ``full`` lists the
    whole table; ``previous`` then only helps to date partitions whose history is archived.

    Reads only. A commit that completes meanwhile is left to the next gather. On merge-on-read tables of version 6, log
    bytes of a delta commit in flight may be counted already.

    Raises InvalidSettingError for an unknown mode or a limit below 1, CorruptTableError for a broken instant that
    decides which files count, and StorageError.
    """
    if mode not in MODES:
        raise InvalidSettingError(f"mode {mode!r} is unknown; expected one of {', '.join(MODES)}")
    if small_file_bytes < 1:
        raise InvalidSettingError(f"small_file_bytes={small_file_bytes}; expected at least 1")
    timeline = table.timeline()
    rows = _gather(table, timeline=timeline, previous=previous, mode=mode)
    return TableStatistics(
        base_path=table.base_path,
        table_name=table.config.name,
        table_version=table.config.table_version,
        table_type=str(table.config.table_type),
        watermark=watermark_of(timeline),
        gathered=rows.gathered,
        reason=rows.reason,
        gathered_at=now.astimezone(UTC).isoformat(),
        small_file_bytes=small_file_bytes,
        partitions=tuple(sorted(rows.rows, key=lambda row: row.partition_path)),
    )


def write_statistics(documents: DocumentStore, *, statistics: TableStatistics) -> str:
    """Write ``<instant>.json`` and return its full path; statistics as of the same instant are replaced."""
    return documents.write("statistics", name=f"{statistics.as_of_instant}.json", document=statistics.to_json())


def newest_statistics(documents: DocumentStore) -> TableStatistics | None:
    """Read the newest statistics; a broken file is skipped with a warning, and the one before is read."""
    for name in reversed(_statistics_names(documents)):
        path = documents.path("statistics", name=name)
        try:
            return TableStatistics.from_json(documents.read(path), name=path)
        except FileNotFoundError:  # pruned by another gatherer
            continue
        except CorruptTableError as error:
            _log.warning("Skipped broken statistics: %s", error)
    return None


def prune_statistics(documents: DocumentStore, *, keep: int = DEFAULT_KEPT_STATISTICS) -> tuple[str, ...]:
    """Delete all but the newest ``keep`` statistics files and return the names of the deleted ones.

    Raises InvalidSettingError for ``keep`` below 1: the newest file always stays.
    """
    if keep < 1:
        raise InvalidSettingError(f"keep {keep} statistics files; the newest one always stays, so expected at least 1")
    old = _statistics_names(documents)[:-keep]
    for name in old:
        documents.delete("statistics", name=name)
    return old


def _statistics_names(documents: DocumentStore) -> tuple[str, ...]:
    return tuple(name for name in documents.names("statistics") if _FILE_NAME.fullmatch(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gathered:
    """The rows in no order, how they were gathered, and why so."""

    rows: Sequence[PartitionStatistics]
    gathered: str
    reason: str


def _gather(table: HudiTable, *, timeline: Timeline, previous: TableStatistics | None, mode: str) -> _Gathered:
    changes = "it was asked for" if mode == "full" else changes_since(previous, table=table, timeline=timeline)
    if isinstance(changes, str):
        earlier = None if previous is None or foreign(previous, table=table) else previous
        dating = Dating(table=table, timeline=timeline, earlier=earlier)
        rows = _rows(table, timeline=timeline, partitions=None, dating=dating)
        return _Gathered(rows=rows, gathered="full", reason=changes)
    earlier, touched = changes.earlier, changes.partitions
    dating = Dating(table=table, timeline=timeline, earlier=earlier, last_writes=changes.last_writes)
    kept = [row for row in earlier.partitions if row.partition_path not in touched]
    renewed = _rows(table, timeline=timeline, partitions=touched, dating=dating)
    return _Gathered(rows=kept + renewed, gathered="incremental", reason=changes.reason)


def _rows(
    table: HudiTable, *, timeline: Timeline, partitions: Collection[str] | None, dating: Dating
) -> list[PartitionStatistics]:
    if partitions is not None and not partitions:
        return []
    view = table.view(timeline, partitions=partitions)
    rows: list[PartitionStatistics] = []
    undated: dict[str, Clues] = {}
    for path in view.partition_paths:
        slices = view.merged_slices(path)
        if not slices:
            continue
        clues = dating.clues(path, slices=slices)
        if clues.is_open:
            undated[path] = clues
        rows.append(_row(path, slices=slices, last_modified=clues.last_known))
    dates = dating.resolve(undated)
    return [
        replace(row, last_modified_instant=dates[row.partition_path]) if row.partition_path in dates else row
        for row in rows
    ]


def _row(path: str, *, slices: Sequence[FileSlice], last_modified: str) -> PartitionStatistics:
    sizes = sorted(one.base_file.bytes for one in slices if one.base_file is not None)
    log_files = [log_file.bytes for one in slices if one.log_files for log_file in one.log_files]
    return PartitionStatistics(
        partition_path=path,
        last_modified_instant=last_modified,
        total_bytes=sum(sizes) + sum(log_files),
        file_group_count=len(slices),
        log_file_count=len(log_files),
        log_file_bytes=sum(log_files),
        base_file_bytes=tuple(sizes),
    )
