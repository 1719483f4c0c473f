"""Read the active timeline and the instants on it.

A completed instant whose file is gone when it is read was archived or rolled back since the timeline was listed: that
is a StorageError, since with a fresh timeline there is nothing wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from airflow_hudi_maint.core.errors import CorruptTableError, StorageError
from airflow_hudi_maint.core.model.commit import (
    CleanMetadata,
    CleanPlan,
    CommitMetadata,
    IndexPlan,
    PendingPlan,
    PlanKind,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    SavepointMetadata,
)
from airflow_hudi_maint.core.model.instant import Action, Instant, State, parse_instant_file_name
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage import instants, service_records
from airflow_hudi_maint.core.storage.filesystem import Storage

_Plan = TypeVar("_Plan")

_PLAN_KINDS = {
    Action.COMPACTION: PlanKind.COMPACTION,
    Action.LOG_COMPACTION: PlanKind.LOG_COMPACTION,
}
_COMPLETED_AS = {"inflight": str(Action.COMMIT)} | {
    f"{action}.{state.name.lower()}": str(action.completed_as)
    for action in Action
    for state in (State.REQUESTED, State.INFLIGHT)
    if action is not Action.LOG_COMPACTION  # only its earlier files tell it from a delta commit
}
"""The action of a completed file by what stands behind the time in the names of the files before it."""


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
        return Timeline.of(_furthest(names))

    def path(self, instant: Instant) -> str:
        """The instant's file, relative to the base path."""
        return f"{self.folder}/{instant.file_name}"

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Decode a completed commit, delta commit or replace commit."""
        (metadata,) = self.commit_metadata_of((instant,))
        return metadata

    def commit_metadata_of(self, wanted: Iterable[Instant], *, files: bool = True) -> list[CommitMetadata]:
        """Decode several completed commits, read concurrently, in the order given.

        Without ``files`` the partitions that were written are told, but not what was written to them.

        Raises CorruptTableError for one that is broken or empty, and StorageError.
        """
        paths = [self.path(instant) for instant in wanted]
        with _vanishing():
            contents = self.storage.read_many(paths)
        return [
            _commit_metadata(data, name=name, files=files)
            for data, name in zip(contents, map(self.storage.join, paths), strict=True)
        ]

    def pending_plans(self, timeline: Timeline) -> tuple[PendingPlan, ...]:
        """The plans of pending clusterings and compactions, in order of requested time."""
        plans = (self._pending_plan(instant) for instant in timeline.pending)
        return tuple(plan for plan in plans if plan is not None)

    def rollback_metadata(self, instant: Instant) -> RollbackMetadata:
        """Decode a completed rollback."""
        return service_records.rollback_metadata(self._done(instant), name=self._name(instant))

    def clean_metadata(self, instant: Instant) -> CleanMetadata:
        """Decode a completed clean."""
        return service_records.clean_metadata(self._done(instant), name=self._name(instant))

    def restore_metadata(self, instant: Instant) -> RestoreMetadata:
        """Decode a completed restore."""
        return service_records.restore_metadata(self._done(instant), name=self._name(instant))

    def savepoint_metadata(self, instant: Instant) -> SavepointMetadata:
        """Decode a completed savepoint."""
        return service_records.savepoint_metadata(self._done(instant), name=self._name(instant))

    def clean_plan(self, instant: Instant) -> CleanPlan | None:
        """Decode what a clean was requested to do; None where the request is gone."""
        return self._requested(instant, service_records.clean_plan)

    def rollback_plan(self, instant: Instant) -> RollbackPlan | None:
        """Decode what a rollback was requested to undo; None where the request is gone."""
        return self._requested(instant, service_records.rollback_plan)

    def restore_plan(self, instant: Instant) -> RestorePlan | None:
        """Decode what a restore was requested to undo; None where the request is gone."""
        return self._requested(instant, service_records.restore_plan)

    def index_plan(self, instant: Instant) -> IndexPlan | None:
        """Decode what an indexing was requested to build; None where the request is gone."""
        return self._requested(instant, service_records.index_plan)

    def clustering_plan(self, instant: Instant) -> PendingPlan | None:
        """The plan that a clustering, pending or completed, was requested with; None where it is gone or was no such.

        The request stays beside the completed instant until both are archived.
        """
        for action in (Action.CLUSTERING, Action.REPLACE_COMMIT):  # the latter on table version 6
            path = f"{self.folder}/{instant.requested_time}.{action}.requested"
            try:
                data = self.storage.read_bytes(path)
            except FileNotFoundError:
                continue
            name = self.storage.join(path)
            return instants.clustering_plan(instants.decode(data, name=name), instant=instant, name=name)
        return None

    def requested_operation(self, instant: Instant) -> str | None:
        """The ``operationType`` of a pending write; None where the writer has not noted it yet.

        Commits, and replace commits before Hudi 1.0, have it in the inflight file only.
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
        if not record:
            # Hudi fails on it, too; without its file groups their newest log files would go unseen.
            msg = f"{name} is an empty file where a plan of {kind} belongs; roll the instant back with Hudi"
            raise CorruptTableError(msg)
        return instants.compaction_plan(record, instant=instant, kind=kind, name=name)

    def _done(self, instant: Instant) -> Mapping[str, Any]:
        with _vanishing():
            data = self.storage.read_bytes(self.path(instant))
        return instants.decode(data, name=self._name(instant))

    def _name(self, instant: Instant) -> str:
        return self.storage.join(self.path(instant))

    def _requested(self, instant: Instant, read: Callable[..., _Plan]) -> _Plan | None:
        record = self._pending_record(instant)
        # Hudi before 0.11 requested a rollback with an empty file.
        name = self.storage.join(self._pending_path(instant, state=State.REQUESTED))
        return read(record, name=name) if record else None

    def _pending_path(self, instant: Instant, *, state: State) -> str:
        if instant.action is Action.COMMIT and state is State.INFLIGHT:  # the one whose name Hudi leaves out
            return f"{self.folder}/{instant.requested_time}.inflight"
        return f"{self.folder}/{instant.requested_time}.{instant.action}.{state.name.lower()}"

    def _pending_record(self, instant: Instant, *, state: State = State.REQUESTED) -> Mapping[str, Any] | None:
        """What a pending instant's file says; None when it is not there (completed or rolled back since)."""
        path = self._pending_path(instant, state=state)
        try:
            return instants.decode(self.storage.read_bytes(path), name=self.storage.join(path))
        except FileNotFoundError:
            return None


def _furthest(names: Iterable[str]) -> Iterator[Instant]:
    """The instants of file names, but for the earlier states of those that are complete: two files of three."""
    earlier: list[tuple[str, str, str]] = []
    done: set[tuple[str, str]] = set()
    for name in names:
        time, _, kind = name.partition(".")
        if kind in _COMPLETED_AS:
            earlier.append((time, _COMPLETED_AS[kind], name))
            continue
        instant = parse_instant_file_name(name)
        if instant is not None:
            if instant.is_completed:
                done.add((instant.requested_time, instant.action))
            yield instant
    for time, action, name in earlier:
        instant = None if (time, action) in done else parse_instant_file_name(name)
        if instant is not None:
            yield instant


def _commit_metadata(data: bytes, *, name: str, files: bool) -> CommitMetadata:
    if not data:
        # Read as a record it would say that the commit touched nothing.
        msg = f"{name} is an empty file of a completed instant; roll the instant back with Hudi, or restore the file"
        raise CorruptTableError(msg)
    return instants.commit_metadata(instants.decode(data, name=name, files=files), name=name, files=files)


@contextmanager
def _vanishing() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        msg = f"An instant vanished while it was read (archived or rolled back): {error}; try again"
        raise StorageError(msg) from error
