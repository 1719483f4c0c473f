"""Read what the health of a table is judged by, in a few requests whatever its size.

One listing each of the timeline, the metadata table's timeline, the archive, the markers and the heartbeats; one file
for each pending plan, one for the last clean, and three at most for the newest writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.commit import PendingPlan
from airflow_hudi_maint.core.model.health_facts import CleanFacts, FileTotals, HealthFacts, Heartbeat
from airflow_hudi_maint.core.model.instant import Action, Instant, parse_instant_file_name
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage import instants, service_records
from airflow_hudi_maint.core.storage.filesystem import Listing
from airflow_hudi_maint.core.storage.table import HudiTable

MARKERS_FOLDER = ".hoodie/.temp"
HEARTBEATS_FOLDER = ".hoodie/.heartbeat"
METADATA_TABLE_FOLDER = ".hoodie/metadata"

_WRITES = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
_UNCLEANED_WRITES = 10
"""Hudi's cleaner keeps so many commits by default; with fewer since a clean nobody asks what they did."""
_NEWEST_WRITES = 3
_NO_ARCHIVE_FILE = ("manifest_", "_version_", ".manifest_")


def read_health_facts(
    table: HudiTable,
    *,
    statistics: TableStatistics | None,
    write_options: Mapping[str, str],
    bundle: str = "",
    bundle_problem: str | None = None,
    unread: Mapping[str, str] | None = None,
) -> HealthFacts:
    """Look at a table once; ``unread`` has what the caller could not read.

    A broken plan or clean is noted in the result, and the rest is read all the same. Raises StorageError.
    """
    config, problems = table.config, dict(unread or {})
    metadata_timeline = f"{METADATA_TABLE_FOLDER}/{config.timeline_folder}" if config.metadata_partitions else None
    folders = [config.timeline_folder, config.archive_folder, MARKERS_FOLDER, HEARTBEATS_FOLDER]
    listed = table.storage.list_many([*folders, *filter(None, [metadata_timeline])])
    files = tuple(_instants(listed.get(config.timeline_folder, [])))
    timeline = Timeline.of(files)
    last_clean = _last_clean(table, timeline=timeline, problems=problems)
    return HealthFacts(
        base_path=table.base_path,
        config=config,
        zone=table.zone,
        timeline=timeline,
        doubly_completed=_doubly_completed(files),
        plans=_plans(table, timeline=timeline, problems=problems),
        last_clean=last_clean,
        recent_operations=_recent_operations(table, timeline=timeline, last_clean=last_clean),
        metadata_timeline=Timeline.of(_instants(listed.get(metadata_timeline, []))) if metadata_timeline else None,
        archive=_archive(listed.get(config.archive_folder, [])),
        marker_instants=tuple(sorted(one.name for one in listed.get(MARKERS_FOLDER, []) if one.is_directory)),
        heartbeats=tuple(
            Heartbeat(instant_time=one.name, last_beat=one.modified)
            for one in listed.get(HEARTBEATS_FOLDER, [])
            if not one.is_directory and not one.name.startswith(".")
        ),
        statistics=statistics,
        write_options=write_options,
        bundle=bundle,
        bundle_problem=bundle_problem,
        unread=problems,
    )


def _instants(entries: Listing) -> Iterable[Instant]:
    parsed = (parse_instant_file_name(entry.name) for entry in entries)
    return (instant for instant in parsed if instant is not None)


def _doubly_completed(files: Iterable[Instant]) -> tuple[str, ...]:
    """Instants with several completed files, of which a timeline keeps the first."""
    counts = Counter((one.requested_time, one.action.completed_as) for one in files if one.is_completed)
    return tuple(sorted({time for (time, _), count in counts.items() if count > 1}))


def _plans(table: HudiTable, *, timeline: Timeline, problems: dict[str, str]) -> tuple[PendingPlan, ...]:
    try:
        return table.pending_plans(timeline)
    except CorruptTableError as error:
        problems["plans"] = str(error)
        return ()


def _last_clean(table: HudiTable, *, timeline: Timeline, problems: dict[str, str]) -> CleanFacts | None:
    cleans = [one for one in timeline.completed if one.action is Action.CLEAN]
    if not cleans:
        return None
    last = max(cleans, key=lambda one: one.ordering_time)
    path = f"{table.config.timeline_folder}/{last.file_name}"
    name = table.storage.join(path)
    try:
        metadata = service_records.clean_metadata(instants.decode(table.storage.read_bytes(path), name=name), name=name)
    except (CorruptTableError, FileNotFoundError) as error:
        problems["clean"] = str(error)
        return CleanFacts(instant=last, earliest_retained=None)
    return CleanFacts(
        instant=last,
        earliest_retained=metadata.earliest_retained,
        failed_file_count=sum(map(len, metadata.failed.values())),
    )


def _recent_operations(
    table: HudiTable, *, timeline: Timeline, last_clean: CleanFacts | None
) -> tuple[str | None, ...]:
    """What the newest writes were, where so many completed since the last clean that somebody will ask."""
    since = last_clean.instant.requested_time if last_clean else ""
    writes = [one for one in timeline.completed if one.action in _WRITES and one.ordering_time > since]
    if len(writes) <= _UNCLEANED_WRITES:
        return ()
    try:
        return tuple(one.operation for one in table.commit_metadata_of(writes[-_NEWEST_WRITES:]))
    except CorruptTableError:
        return ()


def _archive(entries: Listing) -> FileTotals:
    files = [one for one in entries if not one.is_directory and not one.name.startswith(_NO_ARCHIVE_FILE)]
    files = [one for one in files if not one.name.endswith(".crc")]
    return FileTotals(count=len(files), bytes=sum(one.bytes for one in files))
