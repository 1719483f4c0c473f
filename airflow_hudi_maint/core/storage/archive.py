"""The archived timeline: completed instants that left the active one.

It has two forms, ``archive_logs`` and ``archive_history``, which answer alike: instants are found first, without
decoding what they did, and what they did is decoded when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.commit import (
    CleanMetadata,
    CleanPlan,
    CommitMetadata,
    IndexPlan,
    PendingPlan,
    PlanKind,
    RestoreMetadata,
    RollbackMetadata,
    SavepointMetadata,
)
from airflow_hudi_maint.core.model.instant import WRITE_ACTIONS, Action, Instant
from airflow_hudi_maint.core.storage import instants, service_records
from airflow_hudi_maint.core.storage.filesystem import Entry

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedInstant:
    """A completed instant of the archive; ``instant.file_name`` is the archive file that holds it.

    On layout 1, whose instant files lack it, the completion time is the time that the archiver noted for it. Each
    method decodes what the instant did or was planned to do; it raises CorruptTableError that names the archive file
    when that is not there or broken, and StorageError.
    """

    instant: Instant
    name: str
    _metadata: Callable[[], Record | None] = field(repr=False, compare=False)
    _plan: Callable[[], Record | None] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return str(self.instant)

    def commit_metadata(self) -> CommitMetadata:
        """What a commit, delta commit or replace commit says."""
        return instants.commit_metadata(self._done(), name=self.name)

    def clean_metadata(self) -> CleanMetadata:
        """What a clean deleted."""
        return service_records.clean_metadata(self._done(), name=self.name)

    def rollback_metadata(self) -> RollbackMetadata:
        """What a rollback undid."""
        return service_records.rollback_metadata(self._done(), name=self.name)

    def restore_metadata(self) -> RestoreMetadata:
        """What a restore undid."""
        return service_records.restore_metadata(self._done(), name=self.name)

    def savepoint_metadata(self) -> SavepointMetadata:
        """What a savepoint holds."""
        return service_records.savepoint_metadata(self._done(), name=self.name)

    def index_plan(self) -> IndexPlan:
        """What an indexing built."""
        return service_records.index_plan(self._done(), name=self.name)

    def clean_plan(self) -> CleanPlan | None:
        """What a clean was planned to delete; None where the plan was not archived."""
        plan = self._plan()
        return None if plan is None else service_records.clean_plan(plan, name=self.name)

    def plan(self) -> PendingPlan | None:
        """The plan of a clustering, compaction or log compaction; None for an instant that had none."""
        plan = None if self.instant.action not in _PLANNED_AS else self._plan()
        if plan is None:
            return None
        kind = _PLANNED_AS[self.instant.action]
        if kind is PlanKind.CLUSTERING:
            return instants.clustering_plan(plan, instant=self.instant, name=self.name)
        return instants.compaction_plan(plan, instant=self.instant, kind=kind, name=self.name)

    def _done(self) -> Record:
        record = self._metadata()
        if record is None:
            msg = f"{self.name} does not say what instant {self.instant} did"
            raise CorruptTableError(msg)
        return record


_PLANNED_AS = {
    Action.REPLACE_COMMIT: PlanKind.CLUSTERING,
    Action.COMMIT: PlanKind.COMPACTION,
    Action.DELTA_COMMIT: PlanKind.LOG_COMPACTION,
}


class Archive(Protocol):
    """An archived timeline; both forms answer alike."""

    def files(self) -> tuple[Entry, ...]:
        """The files that hold archived instants, by name; none when nothing was archived yet."""

    def instants(self, *, since: str | None = None, until: str | None = None) -> tuple[ArchivedInstant, ...]:
        """The completed instants requested from ``since`` to ``until``, both included, in order of requested time.

        None leaves a side open. Raises CorruptTableError that names the file which is broken or missing.
        """


class ArchivedCompletions:
    """When archived writes completed; the archive is opened when one is asked for, no further back than that."""

    def __init__(self, archive: Archive, *, until: str) -> None:
        self._archive = archive
        self._since = until
        self._times: dict[str, str] = {}

    def __call__(self, instant_time: str) -> str | None:
        """The completion time of an archived write; None for one that the archive does not have.

        Raises CorruptTableError that names the file which is broken or missing.
        """
        if instant_time < self._since:
            for one in self._archive.instants(since=instant_time, until=self._since):
                if one.instant.action in WRITE_ACTIONS:
                    self._times[one.instant.requested_time] = one.instant.ordering_time
            self._since = instant_time
        return self._times.get(instant_time)
