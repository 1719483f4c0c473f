"""What an instant did, or is to do, as a row for ``airflow hudi timeline``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from airflow_hudi_maint.cli.moments import moment
from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.instant import WRITE_ACTIONS, Action, Instant
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.model.units import counted

if TYPE_CHECKING:
    from airflow_hudi_maint.core.model.commit import (
        CleanMetadata,
        CommitMetadata,
        IndexPlan,
        RestoreMetadata,
        RollbackMetadata,
        SavepointMetadata,
    )
    from airflow_hudi_maint.core.model.document import JsonObject
    from airflow_hudi_maint.core.storage.archive import ArchivedInstant
    from airflow_hudi_maint.core.storage.table import HudiTable

COLUMNS = (
    "requested_time", "action", "state", "requested_at", "completed_at", "operation", "partitions", "files",
    "replaced", "records", "bytes", "detail",
)  # fmt: skip
_UNTOLD = dict.fromkeys((*COLUMNS[5:], "problem"))


def active_rows(table: HudiTable, instants: Sequence[Instant]) -> list[JsonObject]:
    """Rows of instants of the active timeline, in the order given; what commits say is read at once."""
    commits = _commits(table, [one for one in instants if one.is_completed and one.action in WRITE_ACTIONS])
    written = {} if table.config.has_completion_times else _written(table)
    rows = []
    for one in instants:
        said = _Active(table=table, instant=one, commit=commits.get(one))
        counts = _counts(one.action, said) if one.is_completed else _planned(said)
        row = {**_row(one, table=table), **counts}
        if one.is_completed and one.file_name in written:
            row["completed_at"] = written[one.file_name].astimezone(table.zone).isoformat(timespec="milliseconds")
        rows.append(row)
    return rows


def archived_rows(table: HudiTable, instants: Sequence[ArchivedInstant]) -> list[JsonObject]:
    """Rows of archived instants, in the order given."""
    return [{**_row(one.instant, table=table), **_counts(one.instant.action, one)} for one in instants]


def _row(instant: Instant, *, table: HudiTable) -> JsonObject:
    return {
        "requested_time": instant.requested_time,
        "completion_time": instant.completion_time,
        "action": str(instant.action),
        "state": instant.state.name.lower(),
        "requested_at": moment(instant.requested_time, zone=table.zone),
        "completed_at": moment(instant.completion_time, zone=table.zone),
        **_UNTOLD,
    }


class _Said(Protocol):
    """A completed instant of either timeline; each method decodes what it did."""

    def commit_metadata(self) -> CommitMetadata: ...
    def clean_metadata(self) -> CleanMetadata: ...
    def rollback_metadata(self) -> RollbackMetadata: ...
    def restore_metadata(self) -> RestoreMetadata: ...
    def savepoint_metadata(self) -> SavepointMetadata: ...
    def index_plan(self) -> IndexPlan | None: ...


@dataclass(frozen=True, kw_only=True)
class _Active:
    """An instant of the active timeline, with its commit metadata where that has been read already."""

    table: HudiTable
    instant: Instant
    commit: CommitMetadata | None

    def commit_metadata(self) -> CommitMetadata:
        return self.commit or self.table.commit_metadata(self.instant)

    def clean_metadata(self) -> CleanMetadata:
        return self.table.instants.clean_metadata(self.instant)

    def rollback_metadata(self) -> RollbackMetadata:
        return self.table.instants.rollback_metadata(self.instant)

    def restore_metadata(self) -> RestoreMetadata:
        return self.table.instants.restore_metadata(self.instant)

    def savepoint_metadata(self) -> SavepointMetadata:
        return self.table.instants.savepoint_metadata(self.instant)

    def index_plan(self) -> IndexPlan | None:
        return self.table.instants.index_plan(self.instant)


def _counts(action: Action, said: _Said) -> JsonObject:
    """What a completed instant did; a broken one says why it is not known, so that the others are shown."""
    try:
        if action in WRITE_ACTIONS:
            return _commit(said.commit_metadata())
        return _SERVICES[action](said)
    except CorruptTableError as error:
        return {"problem": str(error)}


def _commit(metadata: CommitMetadata) -> JsonObject:
    written = [stat for stats in metadata.written.values() for stat in stats]
    return {
        "operation": metadata.operation,
        "partitions": len(metadata.touched_partitions),
        "files": len(written),
        "replaced": sum(map(len, metadata.replaced.values())),
        "records": sum(stat.records for stat in written),
        "bytes": sum(stat.bytes for stat in written),
    }


def _clean(said: _Said) -> JsonObject:
    metadata = said.clean_metadata()
    detail = f"deleted {counted(metadata.deleted_file_count, 'file')}"
    failed = sum(map(len, metadata.failed.values()))
    return {"partitions": len(metadata.deleted), "detail": f"{detail}, failed at {failed}" if failed else detail}


def _undoing(metadata: RollbackMetadata | RestoreMetadata) -> JsonObject:
    return {"partitions": len(metadata.partitions), "detail": f"undid {', '.join(metadata.undone)}"}


def _savepoint(said: _Said) -> JsonObject:
    metadata = said.savepoint_metadata()
    return {"partitions": len(metadata.partitions), "detail": metadata.comments or None}


def _indexing(said: _Said) -> JsonObject:
    plan = said.index_plan()
    return {"detail": f"built {', '.join(plan.up_to)}" if plan else None}


_SERVICES = {
    Action.CLEAN: _clean,
    Action.ROLLBACK: lambda said: _undoing(said.rollback_metadata()),
    Action.RESTORE: lambda said: _undoing(said.restore_metadata()),
    Action.SAVEPOINT: _savepoint,
    Action.INDEXING: _indexing,
}


def _planned(said: _Active) -> JsonObject:
    """What a pending instant is to do, where a plan says so; a broken one says why it is not known."""
    table, instant = said.table, said.instant
    try:
        for plan in table.pending_plans(Timeline(instants=(instant,))):
            return {"partitions": len(plan.partitions), "detail": f"holds {counted(len(plan.inputs), 'file group')}"}
        target = table.rollback_target(instant) if instant.action is Action.ROLLBACK else None
    except CorruptTableError as error:
        return {"problem": str(error)}
    return {"detail": f"undoes {target}"} if target else {}


def _commits(table: HudiTable, instants: Sequence[Instant]) -> Mapping[Instant, CommitMetadata]:
    """What commits say, read concurrently; none where one of them is broken, to be read one by one then."""
    try:
        return dict(zip(instants, table.commit_metadata_of(instants), strict=True))
    except CorruptTableError:
        return {}


def _written(table: HudiTable) -> Mapping[str, datetime]:
    """When each file of the timeline was written: the completion time of table version 6, whose names have none."""
    try:
        entries = table.storage.list(table.config.timeline_folder)
    except FileNotFoundError:
        return {}
    return {entry.name: entry.modified for entry in entries if entry.modified is not None}
