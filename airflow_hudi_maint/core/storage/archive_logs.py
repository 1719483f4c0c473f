"""The archive of timeline layout 1 (table version 6): log files of Avro records, one for each state of an instant.

Nothing says which instants a file holds, and merging moves them between files, so every file is read. Source: Hudi's
``ArchivedTimelineLoaderV1`` and ``HoodieArchivedMetaEntry``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.instant import ACTIONS_BY_NAME, Action, Instant, State
from airflow_hudi_maint.core.storage import instants
from airflow_hudi_maint.core.storage.archive import ArchivedInstant
from airflow_hudi_maint.core.storage.avro_records import bare_record
from airflow_hudi_maint.core.storage.filesystem import Entry, Storage
from airflow_hudi_maint.core.storage.log_blocks import BlockType, HeaderKey, read_log_blocks, read_records

_FILE_NAME = re.compile(r"\.commits_\.archive\.([0-9]+).*")
_MERGE_PLAN = "mergeArchivePlan"
_BATCH = 16
_MOST_KEPT_BYTES = 32 * 1024 * 1024
_INDEX_FIELDS = ("commitTime", "actionType", "actionState", "stateTransitionTime")
_METADATA_FIELDS = {
    Action.COMMIT: "hoodieCommitMetadata",
    Action.DELTA_COMMIT: "hoodieCommitMetadata",
    Action.REPLACE_COMMIT: "hoodieReplaceCommitMetadata",
    Action.CLEAN: "hoodieCleanMetadata",
    Action.ROLLBACK: "hoodieRollbackMetadata",
    Action.SAVEPOINT: "hoodieSavePointMetadata",
    Action.INDEXING: "hoodieIndexCommitMetadata",
}
_PLAN_FIELDS = {
    Action.COMMIT: "hoodieCompactionPlan",
    Action.DELTA_COMMIT: "hoodieCompactionPlan",
    Action.REPLACE_COMMIT: "hoodieRequestedReplaceMetadata",
    Action.CLEAN: "hoodieCleanerPlan",
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a record stands: the archive file and the number of the record in it."""

    path: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _StateRecord:
    """What the index fields of a record say, and where it stands."""

    requested_time: str
    action: Action
    state: State
    transition_time: str | None
    place: _Place


class LogArchive:
    """The archive of a table of version 6. Files of up to 32 MiB together are kept in memory."""

    def __init__(self, *, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._kept: dict[str, list[tuple[bytes, bytes]]] = {}
        self._kept_bytes = 0

    def files(self) -> tuple[Entry, ...]:
        """The archive files, oldest first."""
        try:
            entries = self._storage.list(self._folder)
        except FileNotFoundError:
            return ()
        numbered = [(match, one) for one in entries if (match := _FILE_NAME.fullmatch(one.name))]
        return tuple(one for _, one in sorted(numbered, key=lambda pair: (int(pair[0][1]), pair[1].name)))

    def instants(self, *, since: str | None = None, until: str | None = None) -> tuple[ArchivedInstant, ...]:
        """See :class:`~airflow_hudi_maint.core.storage.archive.Archive`."""
        by_instant: dict[tuple[str, Action], dict[State, _StateRecord]] = {}
        for one in self._state_records():
            if (since is None or since <= one.requested_time) and (until is None or one.requested_time <= until):
                key = (one.requested_time, one.action.completed_as)
                by_instant.setdefault(key, {})[one.state] = one
        done = [states for states in by_instant.values() if State.COMPLETED in states]
        found = map(self._archived, done)
        return tuple(sorted(found, key=lambda one: (one.instant.requested_time, one.instant.action)))

    def _archived(self, states: Mapping[State, _StateRecord]) -> ArchivedInstant:
        done = states[State.COMPLETED]
        action = done.action.completed_as
        planned = states.get(State.REQUESTED)
        return ArchivedInstant(
            instant=Instant(
                requested_time=done.requested_time,
                action=action,
                state=State.COMPLETED,
                completion_time=done.transition_time,
                file_name=done.place.path.rpartition("/")[2],
            ),
            name=self._storage.join(done.place.path),
            _metadata=partial(self._field, done, name=_METADATA_FIELDS.get(action)),
            _plan=partial(self._field, planned, name=_PLAN_FIELDS.get(action)),
        )

    def _state_records(self) -> Iterator[_StateRecord]:
        for batch in self._batches():
            for path, data in zip(batch, self._storage.read_many(batch), strict=True):
                try:
                    records = self._records(path, data=data)
                    yield from self._indexed(path, records=records)
                except CorruptTableError as error:
                    if not self._is_being_merged(path):
                        raise
                    _log.warning("Passed over a half-written merge of archive files: %s", error)

    def _batches(self) -> Iterator[list[str]]:
        """The files, as many at a time as are read together: 16, or fewer of more than 32 MiB."""
        batch: list[str] = []
        size = 0
        for one in self.files():
            if batch and (len(batch) == _BATCH or size + one.bytes > _MOST_KEPT_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(f"{self._folder}/{one.name}")
            size += one.bytes
        if batch:
            yield batch

    def _records(self, path: str, *, data: bytes) -> list[tuple[bytes, bytes]]:
        """The schema and content of each record of a file."""
        name = self._storage.join(path)
        records: list[tuple[bytes, bytes]] = []
        for block in read_log_blocks(data, name=name):
            if block.type is not BlockType.AVRO_DATA:
                continue
            schema = block.header.get(HeaderKey.SCHEMA)
            if schema is None:
                msg = f"{name} cannot be read: a block of archived instants has no schema"
                raise CorruptTableError(msg)
            records.extend((schema, record) for record in read_records(block.content, name=name))
        self._keep(path, records=records, size=len(data))
        return records

    def _keep(self, path: str, *, records: list[tuple[bytes, bytes]], size: int) -> None:
        if self._kept_bytes + size > _MOST_KEPT_BYTES:
            self._kept.clear()
            self._kept_bytes = 0
        self._kept[path] = records
        self._kept_bytes += size

    def _indexed(self, path: str, *, records: Iterable[tuple[bytes, bytes]]) -> list[_StateRecord]:
        found = []
        for number, (schema, data) in enumerate(records):
            try:
                fields = bare_record(data, schema=schema, fields=_INDEX_FIELDS)
            except Exception as error:
                raise self._broken(path, number=number, error=error) from error
            action, state = ACTIONS_BY_NAME.get(fields["actionType"]), _STATES.get(fields["actionState"])
            requested = fields["commitTime"]
            if action is not None and state is not None and requested:
                found.append(
                    _StateRecord(
                        requested_time=requested,
                        action=action,
                        state=state,
                        transition_time=fields["stateTransitionTime"],
                        place=_Place(path=path, number=number),
                    )
                )
        return found

    def _field(self, record: _StateRecord | None, *, name: str | None) -> Mapping[str, Any] | None:
        if record is None or name is None:
            return None
        path, number = record.place.path, record.place.number
        records = self._kept.get(path)
        if records is None:
            records = self._records(path, data=self._storage.read_bytes(path))
        schema, data = records[number]
        try:
            found: Mapping[str, Any] | None = bare_record(data, schema=schema).get(name)
        except Exception as error:
            raise self._broken(path, number=number, error=error) from error
        return found

    def _broken(self, path: str, *, number: int, error: Exception) -> CorruptTableError:
        # fastavro raises many kinds for broken input.
        where = f"record {number + 1} of {self._storage.join(path)}"
        return CorruptTableError(f"{where} cannot be decoded: {type(error).__name__}: {error}")

    def _is_being_merged(self, path: str) -> bool:
        """Whether a merge of small archive files stopped while it wrote this one: its sources are all still there."""
        plan = f"{self._folder}/{_MERGE_PLAN}"
        try:
            record = instants.decode(self._storage.read_bytes(plan), name=self._storage.join(plan))
        except (FileNotFoundError, CorruptTableError):
            return False
        return record.get("mergedArchiveFileName") == path.rpartition("/")[2]


# A record without a state is of a writer that archived completed instants only.
_STATES: dict[str | None, State] = {**{one.name: one for one in State}, None: State.COMPLETED}
