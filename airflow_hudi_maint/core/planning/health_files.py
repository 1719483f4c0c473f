"""Signals about files: small ones, micro-partitions, the archive, and what dead writers left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from airflow_hudi_maint.core.model.health import HealthSignal, Unit
from airflow_hudi_maint.core.model.health_facts import HealthFacts
from airflow_hudi_maint.core.model.orphan import OrphanFile
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.model.table_config import TIMELINE_LAYOUT_2_SINCE
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_count
from airflow_hudi_maint.core.planning.health_signals import judged, seconds_since, some_details, untold
from airflow_hudi_maint.core.planning.health_thresholds import HealthThresholds
from airflow_hudi_maint.core.planning.writer_settings import FAILED_WRITES_POLICY, key_for

LEAST_REMOVABLE_FILES = 10
"""With fewer small files to get rid of, or fewer micro-partitions, a table is as it is: a rewrite would not show."""
_DEAD_AFTER = timedelta(hours=1)
"""Hudi takes a writer for dead after two missed beats, by default two minutes; markers have no beat at all."""


def file_signals(facts: HealthFacts, *, now: datetime, thresholds: HealthThresholds) -> Iterator[HealthSignal]:
    """All signals that statistics and the folders beside the timeline give."""
    yield _small_files(facts, thresholds=thresholds)
    if facts.config.partitions.fields:
        yield _micro_partitions(facts, thresholds=thresholds)
    yield from _archive(facts, thresholds=thresholds)
    yield _leftovers(facts, now=now, thresholds=thresholds)
    if facts.orphans is not None:
        yield _orphans(facts.orphans, thresholds=thresholds)


def _small_files(facts: HealthFacts, *, thresholds: HealthThresholds) -> HealthSignal:
    name, unit, limits = "small_file_ratio", Unit.SHARE, thresholds.small_file_ratio
    statistics = facts.statistics
    if statistics is None:
        return untold(name, unit=unit, limits=limits, found=_no_statistics(facts), advice=_GATHER)
    files, small = statistics.data_file_count, statistics.small_file_count
    # One small file to a partition cannot be merged with another: files never cross partitions.
    counts = (row.small_file_count(statistics.small_file_bytes) for row in statistics.partitions)
    removable = sum(max(count - 1, 0) for count in counts)
    return judged(
        name,
        value=small / files if files else 0,
        unit=unit,
        limits=limits,
        found=f"{human_count(small)} of {counted(files, 'base file')} below "
        f"{human_bytes(statistics.small_file_bytes)}, {human_count(removable)} of which could be merged into others",
        advice="merge them (HudiCompactSmallFilesOperator), then look for the cause: bulk inserts with many partitions "
        "per task, or hoodie.parquet.small.file.limit=0 on the writers",
        harmless="too few to be worth a rewrite" if removable < LEAST_REMOVABLE_FILES else None,
    )


def _micro_partitions(facts: HealthFacts, *, thresholds: HealthThresholds) -> HealthSignal:
    name, unit, limits = "micro_partition_ratio", Unit.SHARE, thresholds.micro_partition_ratio
    statistics = facts.statistics
    if statistics is None:
        return untold(name, unit=unit, limits=limits, found=_no_statistics(facts), advice=_GATHER)
    micro, partitions = _micro_count(statistics), len(statistics.partitions)
    return judged(
        name,
        value=micro / partitions if partitions else 0,
        unit=unit,
        limits=limits,
        found=f"{human_count(micro)} of {counted(partitions, 'partition')} hold less than one full file "
        f"({human_bytes(statistics.small_file_bytes)}) in all",
        advice="partition the table more coarsely (hoodie.datasource.write.partitionpath.field), by writing it anew: "
        "no rewrite of files cures too many partitions for the data",
        harmless="too few partitions to matter" if micro < LEAST_REMOVABLE_FILES else None,
    )


def _micro_count(statistics: TableStatistics) -> int:
    return sum(row.total_bytes < statistics.small_file_bytes for row in statistics.partitions)


_GATHER = "gather statistics (HudiGatherStatisticsOperator)"


def _no_statistics(facts: HealthFacts) -> str:
    return facts.unread.get("statistics", "there are no statistics of the table")


def _archive(facts: HealthFacts, *, thresholds: HealthThresholds) -> Iterator[HealthSignal]:
    count, size = facts.archive.count, facts.archive.bytes
    found = f"{counted(count, 'file')} of {human_bytes(size)} in the archive of the timeline"
    if facts.config.table_version >= TIMELINE_LAYOUT_2_SINCE:
        advice = (
            "look whether a writer still archives and compacts the archive (hoodie.timeline.compaction.batch.size): "
            "whoever reads old history reads all of it"
        )
    else:
        advice = (
            "merge the archive's files (hoodie.archive.merge.enable=true): whoever reads old history reads all of them"
        )
    for name, value, unit in (("archive_files", count, Unit.COUNT), ("archive_bytes", size, Unit.BYTES)):
        yield judged(name, value=value, unit=unit, limits=thresholds.of(name), found=found, advice=advice)


def _leftovers(facts: HealthFacts, *, now: datetime, thresholds: HealthThresholds) -> HealthSignal:
    policy = key_for(FAILED_WRITES_POLICY, table_version=facts.config.table_version)
    markers, beats = _dead_markers(facts, now=now), _dead_heartbeats(facts, now=now)
    found = (
        f"{counted(len(markers), 'folder')} of markers and {counted(len(beats), 'heartbeat')} of writers that are gone"
    )
    return judged(
        "dead_writer_leftovers",
        value=len(markers) + len(beats),
        unit=Unit.COUNT,
        limits=thresholds.dead_writer_leftovers,
        found=found if markers or beats else "nothing is left of writers that are gone",
        advice=f"see why writers die; with {policy}=LAZY the next clean takes heartbeats away, and CALL delete_marker "
        "the markers of an instant",
        details=(*(f"markers of {one}" for one in markers), *(f"heartbeat of {one}" for one in beats)),
    )


def _orphans(orphans: tuple[OrphanFile, ...], *, thresholds: HealthThresholds) -> HealthSignal:
    by_maker = Counter(one.instant or "" for one in orphans)
    size = human_bytes(sum(one.bytes for one in orphans))
    makers = tuple(
        f"{counted(count, 'file')} of {f'instant {maker}' if maker else 'nobody known'}"
        for maker, count in sorted(by_maker.items())
    )
    return judged(
        "orphan_files",
        value=len(orphans),
        unit=Unit.COUNT,
        limits=thresholds.orphan_files,
        found=f"{counted(len(orphans), 'file')} with {size} that nothing of the table refers to"
        if orphans
        else "every file belongs to the table or to a write in progress",
        advice="no reader sees them and no cleaner takes them: see which writer or clustering died at these instants, "
        "and have the files removed once nobody needs them",
        details=some_details(makers),
    )


def _dead_markers(facts: HealthFacts, *, now: datetime) -> tuple[str, ...]:
    """Instants with markers that are not pending any more; a young one may have begun after the timeline was listed."""
    pending = {one.requested_time for one in facts.timeline.pending}
    return tuple(
        time
        for time in sorted(facts.marker_instants)
        if time not in pending
        and (age := seconds_since(time, facts=facts, now=now)) is not None
        and age >= _DEAD_AFTER.total_seconds()
    )


def _dead_heartbeats(facts: HealthFacts, *, now: datetime) -> tuple[str, ...]:
    return tuple(
        sorted(
            one.instant_time
            for one in facts.heartbeats
            if one.last_beat is not None and now - one.last_beat >= _DEAD_AFTER
        )
    )
