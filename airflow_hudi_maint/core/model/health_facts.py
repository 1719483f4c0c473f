"""What was seen of a table in one look, before anybody judges it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from airflow_hudi_maint.core.model.commit import PendingPlan
from airflow_hudi_maint.core.model.instant import Instant
from airflow_hudi_maint.core.model.orphan import OrphanFile
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.model.table_config import TableConfig
from airflow_hudi_maint.core.model.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTotals:
    """A number of files and their bytes."""

    count: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanFacts:
    """The last completed clean on the active timeline.

    ``earliest_retained`` is Hudi's ``earliestCommitToRetain``: the oldest instant whose file versions are kept. None
    where the policy keeps a number of file versions, or where the clean does not say. ``failed_file_count`` counts the
    files that it could not delete.
    """

    instant: Instant
    earliest_retained: str | None
    failed_file_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The sign of life of one writer: its instant, and when it last beat; None where the storage does not tell."""

    instant_time: str
    last_beat: datetime | None


@dataclass(frozen=True, kw_only=True)
class HealthFacts:
    """A table as one listing of its timeline showed it, and what lies beside the timeline.

    ``doubly_completed`` are instants with more than one completed file. ``recent_operations`` are those of the newest
    completed writes, read only where nothing was cleaned for long. ``metadata_timeline`` is None without a metadata
    table. ``marker_instants`` are the instants that have a folder of markers. ``orphans`` are None
    where nobody looked for them, which takes a listing of every partition. ``write_options`` are those of the
    connection; ``bundle_problem`` says why the bundle must not write the table. ``unread`` has what could not be read,
    by what it was: ``plans``, ``clean`` or ``statistics``.
    """

    base_path: str
    config: TableConfig
    zone: tzinfo
    timeline: Timeline
    doubly_completed: tuple[str, ...] = ()
    plans: tuple[PendingPlan, ...] = ()
    last_clean: CleanFacts | None = None
    recent_operations: tuple[str | None, ...] = ()
    metadata_timeline: Timeline | None = None
    archive: FileTotals = field(default_factory=lambda: FileTotals(count=0, bytes=0))
    marker_instants: tuple[str, ...] = ()
    heartbeats: tuple[Heartbeat, ...] = ()
    orphans: tuple[OrphanFile, ...] | None = None
    statistics: TableStatistics | None = None
    write_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    bundle: str = ""
    bundle_problem: str | None = None
    unread: Mapping[str, str] = field(default_factory=dict)
