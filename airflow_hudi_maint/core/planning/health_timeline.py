"""Signals about the timeline: its length, compaction, cleaning, the last write and the writers' clocks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from airflow_hudi_maint.core.model.health import HealthSignal, Severity, Unit
from airflow_hudi_maint.core.model.health_facts import CleanFacts, HealthFacts
from airflow_hudi_maint.core.model.instant import WRITE_ACTIONS, Action, Instant
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.model.units import counted, human_duration
from airflow_hudi_maint.core.planning.health_signals import completed_writes, judged, seconds_since, untold
from airflow_hudi_maint.core.planning.health_thresholds import HealthThresholds
from airflow_hudi_maint.core.planning.writer_settings import (
    CLEAN_COMMITS_RETAINED,
    COMPACT_DELTA_COMMITS,
    KEEP_MAX_COMMITS,
    METADATA_COMPACT_DELTA_COMMITS,
    WriterSettings,
)

_BULK_INSERTS = frozenset({"BULK_INSERT", "BULK_INSERT_PREPPED"})


def timeline_signals(
    facts: HealthFacts, *, settings: WriterSettings, now: datetime, thresholds: HealthThresholds
) -> Iterator[HealthSignal]:
    """All signals that the timelines of the table and of its metadata table give."""
    yield _active_instants(facts, settings=settings, thresholds=thresholds)
    if facts.config.is_merge_on_read:
        yield _delta_commits(facts, settings=settings, thresholds=thresholds)
    if facts.config.metadata_partitions or facts.metadata_timeline is not None:
        yield _metadata_delta_commits(facts, settings=settings, thresholds=thresholds)
    yield _last_clean(facts, settings=settings, now=now, thresholds=thresholds)
    yield _commits_since_clean(facts, settings=settings, thresholds=thresholds)
    yield _clean_failed_files(facts, thresholds=thresholds)
    yield _last_write(facts, now=now, thresholds=thresholds)
    yield _clock_ahead(facts, now=now, thresholds=thresholds)
    yield _doubly_completed(facts, thresholds=thresholds)


def deltas_since_compaction(timeline: Timeline) -> tuple[int, Instant | None]:
    """How many delta commits completed since the last compaction on the active timeline, and that compaction.

    A completed ``commit`` of a merge-on-read table is a compaction. As in Hudi, what counts is that a delta commit
    completed after the compaction was requested.
    """
    compactions = [one for one in timeline.completed if one.action is Action.COMMIT]
    last = max(compactions, key=lambda one: one.requested_time, default=None)
    deltas = [one for one in timeline.completed if one.action is Action.DELTA_COMMIT]
    return sum(last is None or one.ordering_time > last.requested_time for one in deltas), last


def commits_since_clean(facts: HealthFacts) -> int:
    """How many writes completed since the last clean was requested; all active ones where there is no clean."""
    clean = facts.last_clean
    writes = completed_writes(facts)
    return sum(clean is None or one.ordering_time > clean.instant.requested_time for one in writes)


def _active_instants(facts: HealthFacts, *, settings: WriterSettings, thresholds: HealthThresholds) -> HealthSignal:
    writes = completed_writes(facts)
    pending = next((one for one in facts.timeline.pending if one.action in WRITE_ACTIONS), None)
    savepoint = next((one for one in facts.timeline.completed if one.action is Action.SAVEPOINT), None)
    blockers = [f"the pending {pending}"] * (pending is not None) + [f"the savepoint {savepoint}"] * bool(savepoint)
    blocked = f"; archival stops at {' and '.join(blockers)}" if blockers else ""
    remedy = (
        "finish or roll back what is pending, and delete savepoints that nobody needs (CALL delete_savepoint)"
        if blockers
        else "let a writer archive (hoodie.archive.automatic=true), or call archive_commits; with a metadata table "
        "look at its compaction, which archival waits for"
    )
    return judged(
        "active_instants",
        value=len(writes),
        unit=Unit.COUNT,
        limits=thresholds.active_instants.times(settings.number(KEEP_MAX_COMMITS)),
        found=f"{counted(len(writes), 'completed write')} on the active timeline, with "
        f"{settings.said(KEEP_MAX_COMMITS)}{blocked}",
        advice=remedy,
    )


def _delta_commits(facts: HealthFacts, *, settings: WriterSettings, thresholds: HealthThresholds) -> HealthSignal:
    count, last = deltas_since_compaction(facts.timeline)
    since = f"since the compaction {last.requested_time}" if last else "and no compaction on the active timeline"
    statistics = facts.statistics
    no_logs = statistics is not None and statistics.log_file_count == 0
    return judged(
        "delta_commits_since_compaction",
        value=count,
        unit=Unit.COUNT,
        limits=thresholds.delta_commits_since_compaction.times(settings.number(COMPACT_DELTA_COMMITS)),
        found=f"{counted(count, 'delta commit')} {since}, with {settings.said(COMPACT_DELTA_COMMITS)}",
        advice="compact the table (CALL run_compaction with op => 'scheduleAndExecute'), or set "
        "hoodie.compact.inline=true: each read merges all log files since",
        harmless="there is no log file to compact" if no_logs else None,
    )


def _metadata_delta_commits(
    facts: HealthFacts, *, settings: WriterSettings, thresholds: HealthThresholds
) -> HealthSignal:
    name, unit = "metadata_delta_commits_since_compaction", Unit.COUNT
    limits = thresholds.of(name).times(settings.number(METADATA_COMPACT_DELTA_COMMITS))
    timeline = facts.metadata_timeline
    if timeline is None or not timeline.completed:
        return untold(
            name,
            unit=unit,
            limits=limits,
            found="hoodie.properties names partitions of a metadata table, and there is no timeline of one",
            advice="switch the metadata table off with Hudi (hoodie.metadata.enable=false on a write), and on again",
        )
    count, last = deltas_since_compaction(timeline)
    since = f"since the compaction {last.requested_time}" if last else "and no compaction on its active timeline"
    pending = facts.timeline.pending
    waits = f"; what is pending since {pending[0]} may hold its compaction back" if pending else ""
    return judged(
        name,
        value=count,
        unit=unit,
        limits=limits,
        found=f"{counted(count, 'delta commit')} of the metadata table {since}, with "
        f"{settings.said(METADATA_COMPACT_DELTA_COMMITS)}{waits}",
        advice="finish or roll back what is pending on the table, then write once: writes fail at "
        "hoodie.metadata.max.deltacommits.when_pending (1000)"
        if pending
        else "write once with hoodie.metadata.enable=true, and read in the writer's log why the metadata table is not "
        "compacted: archival of the table waits for it",
    )


def _last_clean(
    facts: HealthFacts, *, settings: WriterSettings, now: datetime, thresholds: HealthThresholds
) -> HealthSignal:
    name, unit, limits = "last_clean_seconds", Unit.SECONDS, thresholds.last_clean_seconds
    if "clean" in facts.unread:
        return untold(
            name,
            unit=unit,
            limits=limits,
            found=facts.unread["clean"],
            advice="run a clean again (CALL run_clean)",
        )
    clean = facts.last_clean
    if clean is None:
        found = "no completed clean on the active timeline: a clean that finds nothing to delete leaves no instant"
        return untold(name, unit=unit, limits=limits, found=found, severity=Severity.OK)
    age = seconds_since(clean.instant.ordering_time, facts=facts, now=now)
    if age is None:
        return untold(name, unit=unit, limits=limits, found=f"{clean.instant} is no date")
    return judged(
        name,
        value=max(age, 0),
        unit=unit,
        limits=limits,
        found=f"the last clean {clean.instant.requested_time} was {human_duration(max(age, 0))} ago"
        f"{_reach(clean, facts=facts)}",
        advice="clean the table (CALL run_clean, or hoodie.clean.automatic=true on its writers): replaced files stay "
        "until then",
        harmless=_nothing_to_clean(facts, settings=settings),
    )


def _reach(clean: CleanFacts, *, facts: HealthFacts) -> str:
    if clean.earliest_retained is None:
        return ""
    kept = sum(one.requested_time >= clean.earliest_retained for one in completed_writes(facts))
    return f" and keeps what is needed since {clean.earliest_retained} ({counted(kept, 'active write')})"


def _commits_since_clean(facts: HealthFacts, *, settings: WriterSettings, thresholds: HealthThresholds) -> HealthSignal:
    count, clean = commits_since_clean(facts), facts.last_clean
    since = f"since the clean {clean.instant.requested_time}" if clean else "and no clean on the active timeline"
    return judged(
        "commits_since_clean",
        value=count,
        unit=Unit.COUNT,
        limits=thresholds.commits_since_clean,
        found=f"{counted(count, 'completed write')} {since}, with {settings.said(CLEAN_COMMITS_RETAINED)}",
        advice="clean the table (CALL run_clean, or hoodie.clean.automatic=true on its writers), unless it is only "
        "ever appended to",
        harmless=_nothing_to_clean(facts, settings=settings),
    )


def _clean_failed_files(facts: HealthFacts, *, thresholds: HealthThresholds) -> HealthSignal:
    clean = facts.last_clean
    count = clean.failed_file_count if clean else 0
    return judged(
        "clean_failed_files",
        value=count,
        unit=Unit.COUNT,
        limits=thresholds.clean_failed_files,
        found=f"the last clean {clean.instant.requested_time} could not delete {counted(count, 'file')}"
        if clean and count
        else "the last clean deleted all that it meant to",
        advice="look for the reason in the log of that clean, such as rights on the storage: an incremental clean may "
        "not come back to these files",
    )


def _nothing_to_clean(facts: HealthFacts, *, settings: WriterSettings) -> str | None:
    """Why a clean would have nothing to delete; None where it might."""
    retained = settings.number(CLEAN_COMMITS_RETAINED)
    if commits_since_clean(facts) <= retained:
        return f"no more than {counted(retained, 'write')} since, which the cleaner keeps anyway"
    operations = facts.recent_operations
    if operations and all((one or "").upper() in _BULK_INSERTS for one in operations):
        return "the newest writes are bulk inserts, which leave nothing to clean"
    return None


def _last_write(facts: HealthFacts, *, now: datetime, thresholds: HealthThresholds) -> HealthSignal:
    name, unit, limits = "last_write_seconds", Unit.SECONDS, thresholds.last_write_seconds
    newest = _newest_data_time(facts)
    if newest is None:
        return untold(name, unit=unit, limits=limits, found="the table has no completed write that changed data")
    age = seconds_since(newest, facts=facts, now=now)
    if age is None:
        return untold(name, unit=unit, limits=limits, found=f"{newest} is no date")
    return judged(
        name,
        value=max(age, 0),
        unit=unit,
        limits=limits,
        found=f"the last write was {human_duration(max(age, 0))} ago, at {newest}",
        advice="look at the job that feeds the table before any partition expires; raise thresholds.last_write_seconds "
        "where the table is written this rarely",
    )


def _newest_data_time(facts: HealthFacts) -> str | None:
    """When data was written last: a completed write, or what statistics say of overwrites and of archived writes.

    A replace commit alone does not tell whether it changed data: a clustering completes as one, too.
    """
    action = Action.DELTA_COMMIT if facts.config.is_merge_on_read else Action.COMMIT
    times = [one.ordering_time for one in facts.timeline.completed if one.action is action]
    completions = {one.requested_time: one.ordering_time for one in facts.timeline.completed}
    rows = facts.statistics.partitions if facts.statistics else ()
    dated = {row.last_modified_instant for row in rows}
    return max([*times, *(completions.get(time, time) for time in dated)], default=None)


def _clock_ahead(facts: HealthFacts, *, now: datetime, thresholds: HealthThresholds) -> HealthSignal:
    times = {time for one in facts.timeline for time in (one.requested_time, one.completion_time) if time}
    newest = max(times, default=None)
    age = None if newest is None else seconds_since(newest, facts=facts, now=now)
    ahead = max(-age, 0) if age is not None else 0
    zone = " in LOCAL time" if facts.config.timeline_zone == "LOCAL" else ""
    return judged(
        "clock_ahead_seconds",
        value=ahead,
        unit=Unit.SECONDS,
        limits=thresholds.clock_ahead_seconds,
        found=f"the timeline's newest instant {newest}{zone} lies {human_duration(ahead)} ahead of this machine's clock"
        if ahead
        else "no instant lies ahead of this machine's clock",
        advice="set the connection's timeline_zone to the zone of the table's writers, and compare their clocks with "
        "this machine's: ages are wrong until they agree",
    )


def _doubly_completed(facts: HealthFacts, *, thresholds: HealthThresholds) -> HealthSignal:
    times = facts.doubly_completed
    return judged(
        "doubly_completed_instants",
        value=len(times),
        unit=Unit.COUNT,
        limits=thresholds.doubly_completed_instants,
        found=f"{counted(len(times), 'instant')} with more than one completed file, the first {times[0]}"
        if times
        else "every completed instant is completed once",
        advice="compare the table with its source at that instant, as after a failed CALL run_ttl, before anything is "
        "archived",
        details=times,
    )
