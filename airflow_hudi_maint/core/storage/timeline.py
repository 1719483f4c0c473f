"""Read the active timeline and the instants on it.

A completed instant whose file is gone when it is read was archived or rolled back since the timeline was listed: that
is a StorageError, since with a fresh timeline there is nothing wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from airflow_hudi_maint.core.errors import CorruptTableError, StorageError
from airflow_hudi_maint.core.model.commit import CommitMetadata, PendingPlan, PlanKind, RollbackMetadata
from airflow_hudi_maint.core.model.instant import Action, Instant, State, parse_instant_file_name
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage import instants
from airflow_hudi_maint.core.storage.filesystem import Storage

_PLAN_KINDS = {
    Action.COMPACTION: PlanKind.COMPACTION,
    Action.LOG_COMPACTION: PlanKind.LOG_COMPACTION,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineReader:
    """Reads the timeline in one folder of a table (``.hoodie`` or ``.hoodie/timeline``)."""

    storage: Storage
    folder: str

    def read(self) -> Timeline:
        """List the active timeline afresh: one listing, no file is opened.

        A missing folder is an empty timeline: Hudi makes it with the first write.
        """
        try:
            names = self.storage.names(self.folder)
        except FileNotFoundError:
            return Timeline(instants=())
        parsed = map(parse_instant_file_name, names)
        return Timeline.of(instant for instant in parsed if instant is not None)

    def path(self, instant: Instant) -> str:
        """The instant's file, relative to the base path."""
        return f"{self.folder}/{instant.file_name}"

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Decode a completed commit, delta commit or replace commit."""
        (metadata,) = self.commit_metadata_of((instant,))
        return metadata

    def commit_metadata_of(self, wanted: Iterable[Instant]) -> list[CommitMetadata]:
        """Decode several completed commits, read concurrently, in the order given.

        Raises CorruptTableError for one that is broken or empty, and StorageError.
        """
        paths = [self.path(instant) for instant in wanted]
        with _vanishing():
            contents = self.storage.read_many(paths)
        return [
            _commit_metadata(data, name=name)
            for data, name in zip(contents, map(self.storage.join, paths), strict=True)
        ]

    def pending_plans(self, timeline: Timeline) -> tuple[PendingPlan, ...]:
        """The plans of pending clusterings and compactions, in order of requested time."""
        plans = (self._pending_plan(instant) for instant in timeline.pending)
        return tuple(plan for plan in plans if plan is not None)

    def rollback_metadata(self, instant: Instant) -> RollbackMetadata:
        """Decode a completed rollback."""
        name = self.storage.join(self.path(instant))
        with _vanishing():
            data = self.storage.read_bytes(self.path(instant))
        return instants.rollback_metadata(instants.decode(data, name=name), name=name)

    def requested_operation(self, instant: Instant) -> str | None:
        """The ``operationType`` of a pending replace commit; None where the writer has not noted it yet.

        Hudi before 1.0 leaves it out of the requested file, and notes it in the inflight one.
        """
        for state in (State.REQUESTED, State.INFLIGHT):
            operation = (self._pending_record(instant, state=state) or {}).get("operationType")
            if operation is not None:
                return str(operation)
        return None

    def rollback_target(self, instant: Instant) -> str | None:
        """The requested time of the instant that a pending rollback is to undo; None where its plan does not say."""
        record = self._pending_record(instant) or {}
        target = record.get("instantToRollback")
        return target.get("commitTime") if isinstance(target, Mapping) else None

    def _pending_plan(self, instant: Instant) -> PendingPlan | None:
        # Hudi writes the plan with the requested state; the inflight file of the same instant is empty.
        if instant.action not in (*_PLAN_KINDS, Action.CLUSTERING, Action.REPLACE_COMMIT):
            return None
        record = self._pending_record(instant)
        if record is None:
            return None
        name = self.storage.join(self._pending_path(instant, state=State.REQUESTED))
        kind = _PLAN_KINDS.get(instant.action)
        if kind is None:
            return instants.clustering_plan(record, instant=instant, name=name)
        return instants.compaction_plan(record, instant=instant, kind=kind, name=name)

    def _pending_path(self, instant: Instant, *, state: State) -> str:
        return f"{self.folder}/{instant.requested_time}.{instant.action}.{state.name.lower()}"

    def _pending_record(self, instant: Instant, *, state: State = State.REQUESTED) -> Mapping[str, Any] | None:
        """What a pending instant's file says; None when it is not there (completed or rolled back since)."""
        path = self._pending_path(instant, state=state)
        try:
            return instants.decode(self.storage.read_bytes(path), name=self.storage.join(path))
        except FileNotFoundError:
            return None


def _commit_metadata(data: bytes, *, name: str) -> CommitMetadata:
    if not data:
        # Read as a record it would say that the commit touched nothing.
        msg = f"{name} is an empty file of a completed instant; roll the instant back with Hudi, or restore the file"
        raise CorruptTableError(msg)
    return instants.commit_metadata(instants.decode(data, name=name), name=name)


@contextmanager
def _vanishing() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        msg = f"An instant vanished while it was read (archived or rolled back): {error}; try again"
        raise StorageError(msg) from error
