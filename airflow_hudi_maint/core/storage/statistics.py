"""Gather partition statistics, in full or since earlier ones, and keep them as documents.

What may be left out of an incremental gather, and how a partition is dated, is told in docs/statistics.md.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter

from airflow_hudi_maint.core.errors import CorruptTableError, InvalidSettingError
from airflow_hudi_maint.core.model.commit import PendingPlan
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.changes import changes_since, foreign, watermark_of
from airflow_hudi_maint.core.storage.dating import Clues, Dating
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.entries import Listing
from airflow_hudi_maint.core.storage.latest_files import LatestFiles, LatestFilesReader
from airflow_hudi_maint.core.storage.record_counts import RECORD_SOURCES, RecordCounts
from airflow_hudi_maint.core.storage.slices import FileHistory
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
    record_source: str = "known",
    listing: str = "auto",
) -> TableStatistics:
    """Sum up the latest file slices of every partition, as of the last completed instant.

    ``auto`` and ``incremental`` list only the partitions that instants since ``previous`` touched, and the whole table
    where that cannot be trusted to be complete; ``reason`` in the result says which and why. ``full`` lists the
    whole table; ``previous`` then only helps to date partitions whose history is archived.

    ``record_source`` says where counts of records come from: ``known`` takes over what earlier statistics say of
    partitions that are not listed again, ``commits`` also opens the active commits that wrote latest base files, and
    ``footers`` the footers of the other base files, too. ``auto`` is ``commits`` while there are no more than 100 of
    them and 20,000 files. What is not known exactly stays None.

    ``listing`` says how partitions are listed: ``directory``, ``metadata`` (by the metadata table), or ``auto``, which
    chooses; ``reason`` tells when the metadata table had to be passed over. The rows are the same.

    Reads only. A commit that completes meanwhile is left to the next gather. On merge-on-read tables of version 6, log
    bytes of a delta commit in flight may be counted already.

    Raises InvalidSettingError for an unknown mode, source or listing or a limit below 1, CorruptTableError for a broken
    instant that decides which files count, MetadataTableError for ``listing="metadata"`` where the metadata table
    cannot be used, and StorageError.
    """
    if mode not in MODES:
        raise InvalidSettingError(f"mode {mode!r} is unknown; expected one of {', '.join(MODES)}")
    if record_source not in RECORD_SOURCES:
        msg = f"record_source {record_source!r} is unknown; expected one of {', '.join(RECORD_SOURCES)}"
        raise InvalidSettingError(msg)
    if small_file_bytes < 1:
        raise InvalidSettingError(f"small_file_bytes={small_file_bytes}; expected at least 1")
    timeline = table.timeline()
    counts = RecordCounts(table=table, timeline=timeline, source=record_source)
    rows = _gather(table, timeline=timeline, previous=previous, mode=mode, counts=counts, listing=listing)
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
        partitions=tuple(sorted(rows.rows, key=attrgetter("partition_path"))),
    )


def write_statistics(documents: DocumentStore, *, statistics: TableStatistics) -> str:
    """Write ``<instant>.json`` and return its full path; statistics as of the same instant are replaced."""
    return documents.write("statistics", name=f"{statistics.as_of_instant}.json", document=statistics.to_json())


def newest_statistics(documents: DocumentStore) -> TableStatistics | None:
    """Read the newest statistics; a broken file is skipped with a warning, and the one before is read."""
    tried: set[str] = set()
    # Listed again before giving up: another gatherer may have written a newer one and pruned all of these meanwhile.
    while names := [name for name in _statistics_names(documents) if name not in tried]:
        tried.update(names)
        for name in reversed(names):
            path = documents.path("statistics", name=name)
            try:
                return TableStatistics.from_json(documents.read(path), name=path)
            except FileNotFoundError:
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


def _gather(
    table: HudiTable,
    *,
    timeline: Timeline,
    previous: TableStatistics | None,
    mode: str,
    counts: RecordCounts,
    listing: str,
) -> _Gathered:
    plans = table.pending_plans(timeline)
    changes = "it was asked for" if mode == "full" else changes_since(previous, table=table, timeline=timeline)
    if isinstance(changes, str):
        earlier = None if previous is None or foreign(previous, table=table) else previous
        dating = Dating(table=table, timeline=timeline, earlier=earlier)
        history = table.history(timeline, plans=plans)
        listed = table.listed(timeline, listing=listing)
        rows = _rows(listed.listings, history=history, dating=dating, counts=counts)
        return _Gathered(rows=_held(rows, plans=plans), gathered="full", reason=listed.reason(changes))
    earlier, touched = changes.earlier, changes.partitions
    dating = Dating(
        table=table, timeline=timeline, earlier=earlier, last_writes=changes.last_writes, rewrites=changes.rewrites
    )
    rows = [row for row in earlier.partitions if row.partition_path not in touched]
    reason = changes.reason
    if touched:
        history = table.history(timeline, plans=plans)
        listed = table.listed(timeline, partitions=touched, listing=listing)
        rows += _rows(listed.listings, history=history, dating=dating, counts=counts)
        reason = listed.reason(reason)
    return _Gathered(rows=_held(rows, plans=plans), gathered="incremental", reason=reason)


def _held(rows: Iterable[PartitionStatistics], *, plans: Iterable[PendingPlan]) -> list[PartitionStatistics]:
    """The rows, each with the oldest pending plan that holds file groups of its partition: earlier rows are stale."""
    holders: dict[str, str] = {}
    for plan in plans:
        for path in plan.partitions:
            holders[path] = min(plan.instant.requested_time, holders.get(path, plan.instant.requested_time))
    return [
        row
        if row.pending_instant == holders.get(row.partition_path)
        else replace(row, pending_instant=holders.get(row.partition_path))
        for row in rows
    ]


def _rows(
    listings: Iterable[tuple[str, Listing]], *, history: FileHistory, dating: Dating, counts: RecordCounts
) -> list[PartitionStatistics]:
    """Rows of the partitions, one listing after the other. What names alone do not tell is asked at the end."""
    reader = LatestFilesReader(history)
    rows: list[PartitionStatistics] = []
    undated: dict[str, Clues] = {}
    for path, entries in listings:
        files = reader.read(path, entries)
        if files is None:
            continue
        clues = dating.clues(path, files=files)
        if clues.is_open:
            undated[path] = clues
        counts.add(path, files=files)
        rows.append(_row(path, files=files, last_modified=clues.last_known))
    dates, records = dating.resolve(undated), counts.resolve()
    return [
        row
        if path not in dates and path not in records
        else _completed(row, date=dates.get(path), records=records.get(path))
        for path, row in ((row.partition_path, row) for row in rows)
    ]


def _completed(row: PartitionStatistics, *, date: str | None, records: int | None) -> PartitionStatistics:
    date = date or row.last_modified_instant
    last = max(date, row.last_instant or "")
    return replace(row, last_modified_instant=date, last_instant=last, record_count=records)


def _row(path: str, *, files: LatestFiles, last_modified: str) -> PartitionStatistics:
    sizes = sorted([size_bytes for _, _, size_bytes in files.bases])
    log_bytes = sum([one.bytes for one in files.logs])
    oldest, newest = min(files.base_instants, default=None), max(files.base_instants, default=None)
    return PartitionStatistics(
        partition_path=path,
        last_modified_instant=last_modified,
        last_instant=max(last_modified, newest or ""),
        total_bytes=sum(sizes) + log_bytes,
        file_group_count=files.file_group_count,
        log_file_count=len(files.logs),
        log_file_bytes=log_bytes,
        base_file_bytes=tuple(sizes),
        oldest_base_instant=oldest,
        newest_base_instant=newest,
    )
