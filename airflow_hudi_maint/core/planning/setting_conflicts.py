"""Settings of a table's writers that contradict each other, or themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.health import Severity
from airflow_hudi_maint.core.model.table_config import TableConfig
from airflow_hudi_maint.core.planning.write_guard import (
    CONCURRENCY_MODE_KEY,
    LOCK_PROVIDER_KEY,
    has_lock_provider,
    table_write_options,
)
from airflow_hudi_maint.core.planning.writer_settings import (
    CLEAN_COMMITS_RETAINED,
    CLEAN_POLICY,
    CLUSTERING_GROUP_BYTES,
    CLUSTERING_SMALL_FILE_LIMIT,
    CLUSTERING_TARGET_BYTES,
    DEFAULT_NUMBERS,
    FAILED_WRITES_POLICY,
    KEEP_MAX_COMMITS,
    KEEP_MIN_COMMITS,
    MAX_FILE_SIZE,
    SMALL_FILE_LIMIT,
    WriterSettings,
)

_BELOW = (
    (CLEAN_COMMITS_RETAINED, KEEP_MIN_COMMITS, "instants are archived whose files the cleaner still keeps"),
    (KEEP_MIN_COMMITS, KEEP_MAX_COMMITS, "archival has nothing between the two to take away"),
    (SMALL_FILE_LIMIT, MAX_FILE_SIZE, "a full file still counts as small"),
    (CLUSTERING_SMALL_FILE_LIMIT, CLUSTERING_TARGET_BYTES, "what clustering has written it takes up again"),
)
"""(smaller, greater, what happens otherwise): the first has to be less than the second."""
_NOT_ABOVE = ((CLUSTERING_TARGET_BYTES, CLUSTERING_GROUP_BYTES, "no group can fill a file of the target size"),)
_EITHER = (
    ("hoodie.clustering.inline", "hoodie.clustering.async.enabled"),
    ("hoodie.clustering.inline", "hoodie.clustering.schedule.inline"),
    ("hoodie.compact.inline", "hoodie.compact.schedule.inline"),
    ("hoodie.compact.inline", "hoodie.datasource.compaction.async.enable"),
)
"""Services that are to run within the write and beside it at once."""
_NEEDS = (
    ("hoodie.clean.async.enabled", "hoodie.clean.automatic"),
    ("hoodie.archive.async", "hoodie.archive.automatic"),
)
"""(switch, the switch without which it does nothing)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingConflict:
    """One contradiction: what is set and what comes of it, and what to set."""

    found: str
    advice: str
    severity: Severity = Severity.WARNING


def setting_conflicts(config: TableConfig, *, write_options: Mapping[str, str]) -> tuple[SettingConflict, ...]:
    """Find the contradictions in a table's properties and the write options of its connection, the worst first.

    Hudi's defaults count as set, but two of them never contradict each other. What only the table's other writers are
    set to cannot be seen.

    >>> config = TableConfig.from_properties({"hoodie.table.version": "9"}, base_path="/lake/trips")
    >>> [one.advice for one in setting_conflicts(config, write_options={"hoodie.keep.max.commits": "20"})]
    ['Set hoodie.keep.min.commits below hoodie.keep.max.commits.']
    """
    settings = WriterSettings(given={**config.properties, **write_options}, table_version=config.table_version)
    locks = tuple(_locks(settings))
    found = [*locks, *_sizes(settings), *_switches(settings), *_unreadable(settings)]
    if not any(one.severity is Severity.CRITICAL for one in locks):
        found += _refused(config, write_options=write_options)
    return tuple(sorted(found, key=lambda one: -one.severity.rank))


def _locks(settings: WriterSettings) -> Iterator[SettingConflict]:
    mode, provider = settings.text(CONCURRENCY_MODE_KEY), settings.given.get(LOCK_PROVIDER_KEY, "").strip()
    is_multi_writer = mode not in ("", "SINGLE_WRITER")
    if is_multi_writer and not provider:
        yield SettingConflict(
            found=f"{CONCURRENCY_MODE_KEY}={mode.lower()} is set without {LOCK_PROVIDER_KEY}: nothing keeps two "
            "writers apart",
            advice=f"Set {LOCK_PROVIDER_KEY} to the provider that the table's other writers use.",
            severity=Severity.CRITICAL,
        )
    elif is_multi_writer and not has_lock_provider(settings.given):
        yield SettingConflict(
            found=f"{CONCURRENCY_MODE_KEY}={mode.lower()} is set, and {provider} works within one process only",
            advice=f"Set {LOCK_PROVIDER_KEY} to a provider that all processes share, such as a storage-based one.",
        )
    elif provider and not is_multi_writer:
        yield SettingConflict(
            found=f"{LOCK_PROVIDER_KEY} is set without {CONCURRENCY_MODE_KEY}: a single writer waits for nobody",
            advice=f"Set {CONCURRENCY_MODE_KEY}=optimistic_concurrency_control, or leave the provider out.",
        )
    if is_multi_writer and settings.text(FAILED_WRITES_POLICY) == "EAGER":
        yield SettingConflict(
            found=f"{settings.name(FAILED_WRITES_POLICY)}=EAGER is set with several writers: "
            "each rolls back what another is writing",
            advice=f"Set {settings.name(FAILED_WRITES_POLICY)}=LAZY.",
            severity=Severity.CRITICAL,
        )


def _sizes(settings: WriterSettings) -> Iterator[SettingConflict]:
    for smaller, greater, consequence in _BELOW:
        counts_commits = settings.text(CLEAN_POLICY) == "KEEP_LATEST_COMMITS"
        if smaller == CLEAN_COMMITS_RETAINED and not counts_commits:
            continue
        if settings.number(smaller) >= settings.number(greater):
            yield SettingConflict(
                found=f"{settings.said(smaller)} is not below {settings.said(greater)}: {consequence}",
                advice=f"Set {settings.name(smaller)} below {greater}.",
            )
    for smaller, greater, consequence in _NOT_ABOVE:
        if settings.number(smaller) > settings.number(greater):
            yield SettingConflict(
                found=f"{settings.said(smaller)} is above {settings.said(greater)}: {consequence}",
                advice=f"Set {smaller} to at most {greater}.",
            )


def _switches(settings: WriterSettings) -> Iterator[SettingConflict]:
    for one, other in _EITHER:
        if settings.flag(one) and settings.flag(other):
            yield SettingConflict(
                found=f"{one} and {other} are both true: the same service is to run within the write and beside it",
                advice=f"Set one of {one} and {other} to false.",
            )
    for switch, needed in _NEEDS:
        if settings.flag(switch) and not settings.flag(needed):
            yield SettingConflict(
                found=f"{settings.name(switch)}=true does nothing while {needed}=false",
                advice=f"Set {needed}=true, or leave {settings.name(switch)} out.",
            )


def _unreadable(settings: WriterSettings) -> Iterator[SettingConflict]:
    for key in DEFAULT_NUMBERS:
        if not settings.is_readable(key):
            name = settings.name(key)
            yield SettingConflict(found=f"{name} is no whole number", advice=f"Set {name} to a whole number.")


def _refused(config: TableConfig, *, write_options: Mapping[str, str]) -> list[SettingConflict]:
    """The options that every job on the table would be refused for."""
    try:
        table_write_options(config, extra=write_options)
    except InvalidSettingError as error:
        advice = "Change the write options of the connection: no job runs on the table with them."
        return [SettingConflict(found=str(error), advice=advice, severity=Severity.CRITICAL)]
    return []
