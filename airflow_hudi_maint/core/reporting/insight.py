"""What a report shows beside the run: what is to come, what happened lately, and how the table is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_hudi_maint.core.model.commit import Operation
from airflow_hudi_maint.core.model.health import TableHealth
from airflow_hudi_maint.core.model.health_facts import FileTotals
from airflow_hudi_maint.core.model.instant import Action, Instant
from airflow_hudi_maint.core.planning.expiry_forecast import ExpiryForecast

_BY_OPERATION = {
    str(Operation.CLUSTER): "clustering",
    str(Operation.COMPACT): "compaction",
    str(Operation.LOG_COMPACT): "log compaction",
    str(Operation.DELETE_PARTITION): "drop",
}
_BY_ACTION = {
    Action.COMMIT: "write",
    Action.DELTA_COMMIT: "write",
    Action.REPLACE_COMMIT: "replace",
    Action.CLUSTERING: "clustering",
    Action.COMPACTION: "compaction",
    Action.LOG_COMPACTION: "log compaction",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PastInstant:
    """One instant as a report shows it.

    ``operation`` is Hudi's ``operationType``, None where it was not read. ``started`` and ``completed`` are in UTC; on
    table version 6 ``completed`` is when the instant's file was written. ``partitions`` and ``file_groups`` (of a
    pending plan) are how many it touched, or holds; None where that was not read.
    """

    instant: Instant
    operation: str | None = None
    started: datetime | None = None
    completed: datetime | None = None
    partitions: int | None = None
    file_groups: int | None = None

    @property
    def kind(self) -> str:
        """What it does, in the words of pages: write, clustering, drop (of partitions), clean, and so on."""
        by_operation = _BY_OPERATION.get((self.operation or "").upper())
        return by_operation or _BY_ACTION.get(self.instant.action) or str(self.instant.action)

    @property
    def is_pending(self) -> bool:
        """Whether it is requested or inflight."""
        return not self.instant.is_completed

    @property
    def duration(self) -> timedelta | None:
        """From requested to completed; None while pending, and where it is not known."""
        if self.is_pending or self.started is None or self.completed is None:
            return None
        return max(self.completed - self.started, timedelta(0))

    def age(self, *, now: datetime) -> timedelta | None:
        """How long ago it was requested."""
        return None if self.started is None else max(now - self.started, timedelta(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanTotals:
    """Orphan files of a table by partition path: how many, and their bytes.

    ``by_instant`` has the same files by the requested time that their names say and no timeline knows any more: of a
    clustering or a write that died. Those with a name of another kind are under an empty text.
    """

    by_partition: tuple[tuple[str, FileTotals], ...]
    by_instant: tuple[tuple[str, FileTotals], ...] = ()

    @property
    def count(self) -> int:
        """All orphan files."""
        return sum(totals.count for _, totals in self.by_partition)

    @property
    def bytes(self) -> int:
        """The bytes of all of them."""
        return sum(totals.bytes for _, totals in self.by_partition)


@dataclass(frozen=True, kw_only=True)
class TableInsight:
    """What was seen of a table when its report was made; a part that was not looked at is None or empty.

    ``history`` are the last instants and all pending ones, in order of requested time. ``problems`` say in a sentence
    each what could not be told, and why.
    """

    forecast: ExpiryForecast | None = None
    history: tuple[PastInstant, ...] = ()
    health: TableHealth | None = None
    active_instants: int | None = None
    archive: FileTotals | None = None
    orphans: OrphanTotals | None = None
    problems: tuple[str, ...] = ()

    @property
    def pending(self) -> tuple[PastInstant, ...]:
        """The pending instants, the oldest first."""
        return tuple(one for one in self.history if one.is_pending)


NO_INSIGHT = TableInsight()
"""For a report about a run alone."""
