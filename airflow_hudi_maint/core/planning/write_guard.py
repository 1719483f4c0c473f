"""What goes with every engine call so that the table stays what it is, and who else may be writing to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from airflow_hudi_maint.core.errors import InvalidSettingError, PendingActionError
from airflow_hudi_maint.core.model.commit import PendingPlan
from airflow_hudi_maint.core.model.instant import WRITE_ACTIONS, Action, Instant
from airflow_hudi_maint.core.model.table_config import TableConfig
from airflow_hudi_maint.core.model.timeline import Timeline

CONCURRENCY_MODE_KEY = "hoodie.write.concurrency.mode"
LOCK_PROVIDER_KEY = "hoodie.write.lock.provider"
PARTITIONED_RECORD_INDEX_KEY = "hoodie.metadata.record.level.index.enable"

_GLOBAL_RECORD_INDEX_KEYS = (
    "hoodie.metadata.record.index.enable",  # up to 1.0
    "hoodie.metadata.global.record.level.index.enable",  # since 1.1, beside one per partition
)
_INDEX_KEYS = {
    "column_stats": "hoodie.metadata.index.column.stats.enable",
    "bloom_filters": "hoodie.metadata.index.bloom.filter.enable",
    "partition_stats": "hoodie.metadata.index.partition.stats.enable",
}
_NO_TABLE_SERVICES = dict.fromkeys(
    (
        "hoodie.clean.automatic",
        "hoodie.clean.async",  # up to 0.15
        "hoodie.clean.async.enabled",
        "hoodie.archive.automatic",
        "hoodie.archive.async",
        "hoodie.compact.inline",
        "hoodie.compact.schedule.inline",
        "hoodie.log.compaction.inline",
        "hoodie.clustering.inline",
        "hoodie.clustering.schedule.inline",
        "hoodie.clustering.async.enabled",
        "hoodie.partition.ttl.inline",
    ),
    "false",
)
"""Hudi cleans and archives after each write, by retention that only the options of the table's own writers have: a job
with Hudi's defaults would delete what the owner keeps for time travel and for undoing."""
_JOB_KEYS = frozenset(
    {
        "hoodie.datasource.write.operation",
        "hoodie.datasource.write.partitions.to.delete",
        "hoodie.metadata.index.drop",
        "hoodie.table.name",
    }
)
_GUARDED_BY = {"hoodie.table.version": "hoodie.write.table.version"}
"""Keys that say of the table what another key says to a writer."""
_ALONE_ACTIONS = frozenset({Action.RESTORE, Action.INDEXING})
"""Pending actions that nothing may be written beside, whatever lock provider there is."""
_LIVE_ACTIONS = WRITE_ACTIONS | _ALONE_ACTIONS | {Action.ROLLBACK}
_PLAN_ACTIONS = frozenset({Action.CLUSTERING, Action.COMPACTION, Action.LOG_COMPACTION})
_MULTI_WRITER_MODES = frozenset({"OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"})
_LOCKS_OF_ONE_PROCESS = ("InProcessLockProvider", "NoopLockProvider")


def table_write_options(config: TableConfig, *, extra: Mapping[str, str]) -> dict[str, str]:
    """Return the Hudi options that keep a table's version and its set of metadata-table partitions, and the user's own.

    Hudi adds metadata partitions that its defaults ask for and deletes those that they do not: each has its option.
    Services that Hudi would run after a write (cleaning, archival, …) are off, unless ``extra`` has them on.

    Raises InvalidSettingError for an extra option that is no Hudi option, contradicts a guarding one, or is the job's
    own.

    >>> config = TableConfig.from_properties(
    ...     {"hoodie.table.version": "6", "hoodie.table.metadata.partitions": "files"}, base_path="/lake/trips"
    ... )
    >>> options = table_write_options(config, extra={})
    >>> options["hoodie.write.table.version"], options["hoodie.metadata.index.column.stats.enable"]
    ('6', 'false')
    """
    options = {
        "hoodie.write.auto.upgrade": "false",
        "hoodie.write.table.version": str(config.table_version),
        **_metadata_options(config, extra=extra),
    }
    for key, value in extra.items():
        _check_extra(key, value, guarding=options)
    merged = {**_NO_TABLE_SERVICES, **options, **extra}
    if _is_multi_writer(merged) and not merged.get(LOCK_PROVIDER_KEY):
        raise InvalidSettingError(
            f"{CONCURRENCY_MODE_KEY}={merged[CONCURRENCY_MODE_KEY]} needs {LOCK_PROVIDER_KEY}; "
            "name the provider that the table's other writers use"
        )
    return merged


def has_lock_provider(options: Mapping[str, str]) -> bool:
    """Whether these options make writers of other processes wait for each other.

    A mode for several writers and a provider are both needed; Hudi's in-process provider locks within one JVM only.
    """
    provider = options.get(LOCK_PROVIDER_KEY, "").strip()
    return _is_multi_writer(options) and bool(provider) and not provider.endswith(_LOCKS_OF_ONE_PROCESS)


def live_writers(
    timeline: Timeline, plans: Iterable[PendingPlan], *, ignore: Collection[str] = ()
) -> tuple[Instant, ...]:
    """Find the pending writes: pending instants that change files or indexes, and are no clustering or compaction plan.

    Rollbacks, restores and index builds are among them; cleans are not. A writer that died looks the same as one that
    works. ``ignore`` has requested times that the caller knows about. On table version 6 only ``plans`` tell a
    clustering from an overwrite.
    """
    known = {plan.instant.requested_time for plan in plans} | set(ignore)
    return tuple(
        one
        for one in timeline.pending
        if one.action in _LIVE_ACTIONS and one.action not in _PLAN_ACTIONS and one.requested_time not in known
    )


def check_no_live_writer(
    timeline: Timeline,
    plans: Iterable[PendingPlan],
    *,
    options: Mapping[str, str],
    ignore: Collection[str] = (),
    config: TableConfig | None = None,
) -> None:
    """Raise PendingActionError when somebody writes to the table and no lock provider keeps the two apart.

    Without one, Hudi takes the other writer's pending instant for a failed write and rolls it back. A restore and an
    index build forbid writing in any case; the latter is also seen by the metadata partitions that ``config`` has as
    inflight.
    """
    building = config.inflight_metadata_partitions if config else ()
    if building:
        raise PendingActionError(
            f"an index of the table is being built: its metadata partitions {', '.join(building)} are inflight "
            "(hoodie.table.metadata.partitions.inflight). Try again when that is done; if it died, build the index "
            "again or drop it with Hudi"
        )
    writers = live_writers(timeline, plans, ignore=ignore)
    alone = [one for one in writers if one.action in _ALONE_ACTIONS]
    if alone:
        named = ", ".join(map(str, alone))
        raise PendingActionError(
            f"nothing may be written beside a restore or an index build: {named}. Try again when it is done; if it "
            "died, run it again, or roll it back, with Hudi"
        )
    if writers and not has_lock_provider(options):
        named = ", ".join(map(str, writers))
        raise PendingActionError(
            f"another writer is at work on the table: {named}. Try again when it is done; if it died, the table's next "
            "successful write rolls it back. To run beside writers, give "
            f"{CONCURRENCY_MODE_KEY}=optimistic_concurrency_control and the {LOCK_PROVIDER_KEY} that they use"
        )


def _metadata_options(config: TableConfig, *, extra: Mapping[str, str]) -> dict[str, str]:
    present = config.metadata_partitions
    options = {"hoodie.metadata.enable": _flag(bool(present))}
    # Since 1.1 the partition statistics follow the column statistics, whatever their own option says.
    options |= {key: _flag(partition in present) for partition, key in _INDEX_KEYS.items()}
    # hoodie.properties does not tell a record index over the table from one per partition: the user's option does.
    by_partition = "record_index" in present and extra.get(PARTITIONED_RECORD_INDEX_KEY, "").strip().lower() == "true"
    options |= {key: _flag("record_index" in present and not by_partition) for key in _GLOBAL_RECORD_INDEX_KEYS}
    options[PARTITIONED_RECORD_INDEX_KEY] = _flag(by_partition)
    return options


def _flag(value: bool) -> str:  # noqa: FBT001 the value itself, not a switch
    return "true" if value else "false"


def _check_extra(key: str, value: str, *, guarding: Mapping[str, str]) -> None:
    if not key.startswith("hoodie."):
        raise InvalidSettingError(f"write option {key!r} is no Hudi option: its name has to start with 'hoodie.'")
    if key in _JOB_KEYS:
        raise InvalidSettingError(f"write option {key!r} is set by the job itself; leave it out")
    guard = _GUARDED_BY.get(key, key)
    if guard in guarding and value.strip().lower() != guarding[guard]:
        raise InvalidSettingError(
            f"write option {key}={value} contradicts {guard}={guarding[guard]}, "
            "which keeps the table as it is; leave it out"
        )


def _is_multi_writer(options: Mapping[str, str]) -> bool:
    return options.get(CONCURRENCY_MODE_KEY, "").strip().upper() in _MULTI_WRITER_MODES
