"""Read the active timeline and the instants on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_hudi_maint.core.model.commit import CommitMetadata, PendingPlan, PlanKind
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
            entries = self.storage.list(self.folder)
        except FileNotFoundError:
            return Timeline(instants=())
        parsed = (parse_instant_file_name(entry.name) for entry in entries if not entry.is_directory)
        return Timeline.of(instant for instant in parsed if instant is not None)

    def path(self, instant: Instant) -> str:
        """The instant's file, relative to the base path."""
        return f"{self.folder}/{instant.file_name}"

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Decode a completed commit, delta commit or replace commit."""
        (metadata,) = self.commit_metadata_of((instant,))
        return metadata

    def commit_metadata_of(self, wanted: Iterable[Instant]) -> list[CommitMetadata]:
        """Decode several completed commits, read concurrently, in the order given."""
        paths = [self.path(instant) for instant in wanted]
        names = map(self.storage.join, paths)
        contents = self.storage.read_many(paths)
        return [
            instants.commit_metadata(instants.decode(data, name=name), name=name)
            for data, name in zip(contents, names, strict=True)
        ]

    def pending_plans(self, timeline: Timeline) -> tuple[PendingPlan, ...]:
        """The plans of pending clusterings and compactions, in order of requested time."""
        plans = (self._pending_plan(instant) for instant in timeline.pending)
        return tuple(plan for plan in plans if plan is not None)

    def rolled_back_partitions(self, instant: Instant) -> frozenset[str]:
        """The partitions that a completed rollback or restore took files from."""
        name = self.storage.join(self.path(instant))
        return instants.rolled_back_partitions(
            instants.decode(self.storage.read_bytes(self.path(instant)), name=name), name=name
        )

    def requested_operation(self, instant: Instant) -> str | None:
        """The ``operationType`` that a replace commit was requested with; None where the writer did not note it."""
        path = f"{self.folder}/{instant.requested_time}.{instant.action}.{State.REQUESTED.name.lower()}"
        try:
            record = instants.decode(self.storage.read_bytes(path), name=self.storage.join(path))
        except FileNotFoundError:  # completed or rolled back since the listing
            return None
        return record.get("operationType")

    def _pending_plan(self, instant: Instant) -> PendingPlan | None:
        # Hudi writes the plan with the requested state; the inflight file of the same instant is empty.
        if instant.action not in (*_PLAN_KINDS, Action.CLUSTERING, Action.REPLACE_COMMIT):
            return None
        path = f"{self.folder}/{instant.requested_time}.{instant.action}.{State.REQUESTED.name.lower()}"
        name = self.storage.join(path)
        try:
            record = instants.decode(self.storage.read_bytes(path), name=name)
        except FileNotFoundError:  # completed or rolled back since the listing
            return None
        kind = _PLAN_KINDS.get(instant.action)
        if kind is None:
            return instants.clustering_plan(record, instant=instant, name=name)
        return instants.compaction_plan(record, instant=instant, kind=kind, name=name)
