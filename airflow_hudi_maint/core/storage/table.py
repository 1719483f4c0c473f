"""Open a Hudi table and see its timeline, partitions and file slices, without a JVM."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

from airflow_hudi_maint.core.errors import InvalidSettingError, UnknownPartitionError, UnsupportedTableError
from airflow_hudi_maint.core.model.commit import CommitMetadata, PendingPlan, RollbackMetadata
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.instant import Action, Instant
from airflow_hudi_maint.core.model.orphan import OrphanFile
from airflow_hudi_maint.core.model.table_config import TableConfig
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.archive import Archive, ArchivedCompletions, ArchivedInstant
from airflow_hudi_maint.core.storage.archive_history import HistoryArchive
from airflow_hudi_maint.core.storage.archive_logs import LogArchive
from airflow_hudi_maint.core.storage.filesystem import DEFAULT_CONCURRENCY, Entry, Listing, Storage
from airflow_hudi_maint.core.storage.listing import DIRECTORY, PartitionListings, choose_listing
from airflow_hudi_maint.core.storage.metadata_table import MetadataTable
from airflow_hudi_maint.core.storage.orphans import find_orphans
from airflow_hudi_maint.core.storage.properties import load_properties
from airflow_hudi_maint.core.storage.slices import FileHistory, PartitionSlices, assemble_slices
from airflow_hudi_maint.core.storage.timeline import TimelineReader
from airflow_hudi_maint.core.storage.zone import machine_zone

_METAFILE = ".hoodie_partition_metadata"
_METAFILES = frozenset({_METAFILE, f"{_METAFILE}.parquet", f"{_METAFILE}.orc"})
_NAMES_SHOWN = 5
_BATCH = 256


class HudiTable:
    """A table at a base path. Holds its settings; timeline and files are read from storage at each call."""

    def __init__(self, *, storage: Storage, config: TableConfig, zone: tzinfo) -> None:
        self.storage = storage
        self.config = config
        self.zone = zone
        self._reader = TimelineReader(storage=storage, folder=config.timeline_folder)
        archive_form = HistoryArchive if config.has_completion_times else LogArchive
        self._archive: Archive = archive_form(storage=storage, folder=config.archive_folder)

    @classmethod
    def open(
        cls,
        base_path: str,
        *,
        storage_options: Mapping[str, object] | None = None,
        storage_concurrency: int = DEFAULT_CONCURRENCY,
        local_zone: tzinfo | None = None,
    ) -> HudiTable:
        """Open the table at a path or URL.

        ``local_zone`` is the zone of the writers' machines, for tables that stamp instants in ``LOCAL`` time; by
        default this machine's. Tables that stamp in UTC ignore it.

        Raises TableNotFoundError, UnsupportedTableError or StorageError.
        """
        storage = Storage.open(base_path, storage_options=storage_options, concurrency=storage_concurrency)
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

    @property
    def instants(self) -> TimelineReader:
        """Reads what the instants of the active timeline did, or are planned to do, by kind."""
        return self._reader

    def archived(self, *, since: str | None = None, until: str | None = None) -> tuple[ArchivedInstant, ...]:
        """The archived instants requested from ``since`` to ``until``, both included, in order of requested time.

        Opens only files of that range from table version 8 on, and all files of the archive on version 6. What an
        instant did is decoded when it is asked for. Raises CorruptTableError that names a broken or missing file.
        """
        return self._archive.instants(since=since, until=until)

    def archive_files(self) -> tuple[Entry, ...]:
        """The files of the archived timeline, with their sizes; none is opened but the manifest that names them."""
        return self._archive.files()

    def may_rewrite(self, instant: Instant) -> bool:
        """Whether a completed instant may have only moved rows: a clustering or, on merge-on-read, a compaction.

        A compaction completes as a commit, which on a copy-on-write table is a write.
        """
        return instant.action is Action.REPLACE_COMMIT or (
            instant.action is Action.COMMIT and self.config.is_merge_on_read
        )

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """What a completed commit, delta commit or replace commit says."""
        return self._reader.commit_metadata(instant)

    def commit_metadata_of(self, instants: Collection[Instant], *, files: bool = True) -> list[CommitMetadata]:
        """What several completed commits say, in the order given.

        Without ``files`` they say which partitions they wrote to, but not which files, in a quarter of the time.
        """
        return self._reader.commit_metadata_of(instants, files=files)

    def pending_plans(self, timeline: Timeline) -> tuple[PendingPlan, ...]:
        """The clustering and compaction plans that are not executed yet."""
        return self._reader.pending_plans(timeline)

    def requested_operation(self, instant: Instant) -> str | None:
        """The operation of a pending write; None where its writer has not noted it (yet)."""
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
        return tuple(sorted(path for path, _ in self.listings()))

    def listings(self, *, partitions: Collection[str] | None = None) -> Iterator[tuple[str, Listing]]:
        """Partitions (None: all) and what lies in the directory of each, in no order and a few at a time.

        A partition that is not there is left out: the cleaner may have removed it.
        """
        return self._walk() if partitions is None else self._listed(sorted(partitions))

    def history(self, timeline: Timeline, *, plans: Collection[PendingPlan]) -> FileHistory:
        """What the timeline and its pending plans say about files; opens the completed replace commits."""
        return FileHistory.of(
            timeline,
            plans=plans,
            replaced=self._replaced(timeline),
            has_completion_times=self.config.has_completion_times,
            archived_completion=ArchivedCompletions(self._archive, until=timeline.start),
        )

    def listed(
        self, timeline: Timeline, *, partitions: Collection[str] | None = None, listing: str = "auto"
    ) -> PartitionListings:
        """As :meth:`listings`, by the directories or by the metadata table: :func:`choose_listing` tells which.

        Raises InvalidSettingError for an unknown ``listing``; for ``metadata`` MetadataTableError or CorruptTableError
        where the metadata table cannot be used, for which ``auto`` takes the directories and says so.
        """
        metadata = MetadataTable(
            storage=self.storage, reader=self._reader, has_completion_times=self.config.has_completion_times
        )
        return choose_listing(
            listing,
            config=self.config,
            is_local=self.storage.is_local,
            partitions=partitions,
            by_directory=lambda: self.listings(partitions=partitions),
            by_metadata=lambda: metadata.listings(timeline, partitions=partitions),
        )

    def view(
        self, timeline: Timeline, *, partitions: Collection[str] | None = None, listing: str = "auto"
    ) -> TableView:
        """List partitions (None: all) and see their slices as of ``timeline``; ``listing`` as in :meth:`listed`.

        A partition that is not there is left out: the cleaner may have removed it.
        """
        listed = self.listed(timeline, partitions=partitions, listing=listing)
        plans = self.pending_plans(timeline)
        history = self.history(timeline, plans=plans)
        listings = dict(listed.listings)
        return TableView(timeline=timeline, plans=plans, history=history, listings=listings, way=listed.way)

    def check_partitions(self, names: Collection[str], *, known: Collection[str]) -> None:
        """Raise UnknownPartitionError unless each name is one of ``known``, which may be those of a narrower view."""
        unknown = sorted(set(names) - set(known))
        if unknown:
            known = known or self.partition_paths()
            shown = ", ".join(map(repr, unknown[:_NAMES_SHOWN])) + (" …" if len(unknown) > _NAMES_SHOWN else "")
            example = f"; partitions look like {min(known)!r}" if known else "; it has no partition"
            msg = f"Table {self.base_path} has no partition {shown} ({len(unknown)} unknown){example}"
            raise UnknownPartitionError(msg)

    def _replaced(self, timeline: Timeline) -> Iterator[tuple[str, str]]:
        completed = [one for one in timeline.completed if one.action is Action.REPLACE_COMMIT]
        for metadata in self.commit_metadata_of(completed, files=False):
            for partition, file_ids in metadata.replaced.items():
                for file_id in file_ids:
                    yield partition, file_id

    def _walk(self) -> Iterator[tuple[str, Listing]]:
        """Listings of all partitions: directories level by level, down to those with a metafile."""
        level = [""]
        while level:
            below: list[str] = []
            for path, entries in self._listed(level):
                if not _METAFILES.isdisjoint([entry.name for entry in entries]):
                    yield path, entries
                    continue
                names = (entry.name for entry in entries if entry.is_directory and not entry.name.startswith("."))
                below.extend(f"{path}/{name}" if path else name for name in names)
            level = sorted(below)  # neighbours by name mostly lie together on disk, and in the page cache

    def _listed(self, paths: Sequence[str]) -> Iterator[tuple[str, Listing]]:
        """List directories, a batch at a time, so that no more than that is held; absent ones are left out.

        Local ones come one by one: listing them together saves nothing, and what is held for long costs more.
        """
        self.storage.requests.add("expected_lists", count=len(paths))
        if self.storage.is_local:
            for path in paths:
                try:
                    entries = self.storage.list(path)
                except FileNotFoundError:
                    continue
                yield path, entries
            return
        for start in range(0, len(paths), _BATCH):
            yield from self.storage.list_many(paths[start : start + _BATCH]).items()


@dataclass(frozen=True, kw_only=True)
class TableView:
    """Partitions as one listing showed them, seen with one timeline; ``way`` says which: directory or metadata."""

    timeline: Timeline
    plans: tuple[PendingPlan, ...]
    history: FileHistory
    listings: Mapping[str, Listing]
    way: str = DIRECTORY

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

    def slices_with_data(self, *, named: Collection[str] | None = None) -> dict[str, tuple[FileSlice, ...]]:
        """The merged slices of each partition that has any, in path order, and of those that are ``named``.

        The directory of a dropped partition, or one that only a failed write made, stays until the cleaner passes.
        """
        found = {path: self.merged_slices(path) for path in self.partition_paths}
        return {path: slices for path, slices in found.items() if slices or path in (named or ())}

    def orphans(self, partition_path: str) -> tuple[OrphanFile, ...]:
        """Files that are no part of the table and of no write in progress, by name: what no cleaner ever takes.

        The metadata table does not know them: raises InvalidSettingError for a view that was listed by it. KeyError
        for a partition that was not listed.
        """
        if self.way != DIRECTORY:
            raise InvalidSettingError(f"orphans are not seen in a view by {self.way}; list the table by directory")
        found = find_orphans(partition_path, self.listings[partition_path], timeline=self.timeline)
        return tuple(sorted(found, key=lambda one: one.name))
