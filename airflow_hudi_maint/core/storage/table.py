"""Open a Hudi table and see its timeline, partitions and file slices, without a JVM."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo

from airflow_hudi_maint.core.errors import UnknownPartitionError, UnsupportedTableError
from airflow_hudi_maint.core.model.commit import CommitMetadata, PendingPlan, RollbackMetadata
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.instant import Action, Instant
from airflow_hudi_maint.core.model.table_config import TableConfig
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.filesystem import Listing, Storage
from airflow_hudi_maint.core.storage.properties import load_properties
from airflow_hudi_maint.core.storage.slices import FileHistory, PartitionSlices, assemble_slices
from airflow_hudi_maint.core.storage.timeline import TimelineReader
from airflow_hudi_maint.core.storage.zone import machine_zone

_METAFILE = ".hoodie_partition_metadata"
_METAFILES = frozenset({_METAFILE, f"{_METAFILE}.parquet", f"{_METAFILE}.orc"})
_NAMES_SHOWN = 5


class HudiTable:
    """A table at a base path. Holds its settings; timeline and files are read from storage at each call."""

    def __init__(self, *, storage: Storage, config: TableConfig, zone: tzinfo) -> None:
        self.storage = storage
        self.config = config
        self.zone = zone
        self._reader = TimelineReader(storage=storage, folder=config.timeline_folder)

    @classmethod
    def open(
        cls, base_path: str, *, storage_options: Mapping[str, object] | None = None, local_zone: tzinfo | None = None
    ) -> HudiTable:
        """Open the table at a path or URL.

        ``local_zone`` is the zone of the writers' machines, for tables that stamp instants in ``LOCAL`` time; by
        default this machine's. Tables that stamp in UTC ignore it.

        Raises TableNotFoundError, UnsupportedTableError or StorageError.
        """
        storage = Storage.open(base_path, storage_options=storage_options)
        config = TableConfig.from_properties(load_properties(storage), base_path=storage.root)
        if not config.name:
            msg = f"Table {storage.root} has no hoodie.table.name in hoodie.properties; every table of Hudi's has one"
            raise UnsupportedTableError(msg)
        zone = UTC if config.timeline_zone == "UTC" else local_zone or machine_zone()
        return cls(storage=storage, config=config, zone=zone)

    def __repr__(self) -> str:
        return f"HudiTable({self.base_path!r})"

    @property
    def base_path(self) -> str:
        """Where the table lies; a local path without scheme."""
        return self.storage.root

    def timeline(self) -> Timeline:
        """The active timeline, listed afresh."""
        return self._reader.read()

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """What a completed commit, delta commit or replace commit says."""
        return self._reader.commit_metadata(instant)

    def commit_metadata_of(self, instants: Collection[Instant]) -> list[CommitMetadata]:
        """What several completed commits say, in the order given."""
        return self._reader.commit_metadata_of(instants)

    def pending_plans(self, timeline: Timeline) -> tuple[PendingPlan, ...]:
        """The clustering and compaction plans that are not executed yet."""
        return self._reader.pending_plans(timeline)

    def requested_operation(self, instant: Instant) -> str | None:
        """The operation that a pending replace commit was requested with; None where its writer did not note it."""
        return self._reader.requested_operation(instant)

    def rollback_target(self, instant: Instant) -> str | None:
        """The requested time of the instant that a pending rollback is to undo."""
        return self._reader.rollback_target(instant)

    def rollback_metadata(self, instant: Instant) -> RollbackMetadata:
        """What a completed rollback says."""
        return self._reader.rollback_metadata(instant)

    def partition_paths(self) -> tuple[str, ...]:
        """Every partition that has a partition metafile, in path order; ``""`` for a table without partitions.

        A partition whose files are all replaced still counts until the cleaner removes its directory.
        """
        return tuple(sorted(self._walk()))

    def view(self, timeline: Timeline, *, partitions: Collection[str] | None = None) -> TableView:
        """List partitions (None: all) and see their slices as of ``timeline``.

        A partition that is not there is left out: the cleaner may have removed it.
        """
        listings = self._walk() if partitions is None else self.storage.list_many(sorted(partitions))
        plans = self.pending_plans(timeline)
        history = FileHistory.of(
            timeline,
            plans=plans,
            replaced=self._replaced(timeline),
            has_completion_times=self.config.has_completion_times,
        )
        return TableView(timeline=timeline, plans=plans, history=history, listings=listings)

    def check_partitions(self, names: Collection[str], *, known: Collection[str]) -> None:
        """Raise UnknownPartitionError unless each name is one of ``known``."""
        unknown = sorted(set(names) - set(known))
        if unknown:
            shown = ", ".join(map(repr, unknown[:_NAMES_SHOWN])) + (" …" if len(unknown) > _NAMES_SHOWN else "")
            example = f"; partitions look like {min(known)!r}" if known else "; it has no partition"
            msg = f"Table {self.base_path} has no partition {shown} ({len(unknown)} unknown){example}"
            raise UnknownPartitionError(msg)

    def _replaced(self, timeline: Timeline) -> Iterator[tuple[str, str]]:
        completed = [one for one in timeline.completed if one.action is Action.REPLACE_COMMIT]
        for metadata in self.commit_metadata_of(completed):
            for partition, file_ids in metadata.replaced.items():
                for file_id in file_ids:
                    yield partition, file_id

    def _walk(self) -> dict[str, Listing]:
        """Listings of all partitions: directories level by level, down to those with a metafile."""
        partitions: dict[str, Listing] = {}
        level = [""]
        while level:
            below: list[str] = []
            for path, entries in self.storage.list_many(level).items():
                if any(entry.name in _METAFILES for entry in entries):
                    partitions[path] = entries
                    continue
                names = (entry.name for entry in entries if entry.is_directory and not entry.name.startswith("."))
                below.extend(f"{path}/{name}" if path else name for name in names)
            level = below
        return partitions


@dataclass(frozen=True, kw_only=True)
class TableView:
    """Partitions as one listing showed them, seen with one timeline."""

    timeline: Timeline
    plans: tuple[PendingPlan, ...]
    history: FileHistory
    listings: Mapping[str, Listing]

    @property
    def partition_paths(self) -> tuple[str, ...]:
        """The partitions that were listed, in path order."""
        return tuple(sorted(self.listings))

    def slices(self, partition_path: str) -> PartitionSlices:
        """Latest and merged slices of a partition; KeyError for one that was not listed."""
        return assemble_slices(partition_path, self.listings[partition_path], history=self.history)

    def latest_slices(self, partition_path: str) -> tuple[FileSlice, ...]:
        """The latest slice of each file group: Hudi's ``getLatestFileSlices``."""
        return self.slices(partition_path).latest

    def merged_slices(self, partition_path: str) -> tuple[FileSlice, ...]:
        """As :meth:`latest_slices`, but whole where a compaction is pending: what a reader of the table reads."""
        return self.slices(partition_path).merged
