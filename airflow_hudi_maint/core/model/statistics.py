"""Partition statistics: RFC-65's row, and what planning needs beside it.

The JSON form is version 2 of the document that docs/statistics.md describes: rows are written by column, which is
half the text and three times as fast to read. Version 1, with an object for each row, can still be read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, ClassVar

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.distribution import Quantiles, Skew, quantile
from airflow_hudi_maint.core.model.document import Json, JsonObject, checked_document

__all__ = ["PartitionStatistics", "TableStatistics", "Watermark", "quantile"]

_NOTHING = type(None)
_TEXT, _COUNT = frozenset({str}), frozenset({int})
_COLUMNS = {
    "relative_path": ("partition_path", _TEXT),
    "last_modified_instant": ("last_modified_instant", _TEXT),
    "last_instant": ("last_instant", _TEXT | {_NOTHING}),
    "total_bytes": ("total_bytes", _COUNT),
    "records": ("record_count", _COUNT | {_NOTHING}),
    "file_groups": ("file_group_count", _COUNT),
    "data_files": ("data_file_count", _COUNT),
    "log_files": ("log_file_count", _COUNT),
    "log_bytes": ("log_file_bytes", _COUNT),
    "oldest_base_instant": ("oldest_base_instant", _TEXT | {_NOTHING}),
    "newest_base_instant": ("newest_base_instant", _TEXT | {_NOTHING}),
    "pending_instant": ("pending_instant", _TEXT | {_NOTHING}),
}
"""The columns of the document with the attribute that each holds and the types that a value may have."""
_FOR_READERS = ("data_files",)
"""Columns that are counted again when a document is read back, as the small files are."""
_YOUNGER = ("last_instant", "records", "oldest_base_instant", "newest_base_instant", "pending_instant")
"""Columns that documents of version 1 lack."""
_VERSION_OF_ROWS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatistics:
    """The latest file slices of one partition, summed up.

    ``last_modified_instant`` is the requested time of the last instant that changed data; clustering and compaction
    move rows without changing them and do not count. ``total_bytes`` sums base and log files of the latest slices (of
    the merged slice where a compaction is pending). ``base_file_bytes`` holds the size of each latest base file,
    ascending. ``last_instant`` is the last instant of any kind that touched the partition; ``record_count`` is None
    where it is not known exactly; ``pending_instant`` is the pending plan that holds file groups of the partition.
    """

    partition_path: str
    last_modified_instant: str
    total_bytes: int
    file_group_count: int
    log_file_count: int
    log_file_bytes: int
    base_file_bytes: tuple[int, ...]
    last_instant: str | None = None
    record_count: int | None = None
    oldest_base_instant: str | None = None
    newest_base_instant: str | None = None
    pending_instant: str | None = None

    def __post_init__(self) -> None:
        if self.total_bytes < 0 or self.file_group_count < 0:
            msg = (
                f"statistics of partition {self.partition_path!r} are negative: {self.total_bytes} bytes, "
                f"{self.file_group_count} file groups"
            )
            raise ValueError(msg)

    @property
    def data_file_count(self) -> int:
        """Number of latest base files."""
        return len(self.base_file_bytes)

    def small_file_count(self, small_file_bytes: int) -> int:
        """How many latest base files are smaller than ``small_file_bytes``."""
        return bisect_left(self.base_file_bytes, small_file_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """How much of the timeline a reader has seen.

    ``seen`` holds the requested times of all completed instants that were active: an instant is new when it is
    completed and not among them, whatever its writer's clock said. ``requested_time`` and ``completion_time`` are the
    greatest of a completed instant; they decide where ``seen`` is empty: nothing was complete then, or the document
    is one that does not tell.
    """

    requested_time: str
    completion_time: str | None = None
    pending: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        times = (self.requested_time, self.completion_time or "", *self.pending, *self.seen)
        if not _TEXT.issuperset(map(type, times)):
            msg = f"a watermark at {self.requested_time!r} holds times that are no texts"
            raise TypeError(msg)

    def to_json(self) -> JsonObject:
        """The object of the JSON document."""
        return {
            "requested_time": self.requested_time,
            "completion_time": self.completion_time,
            "pending": list(self.pending),
            "seen": list(self.seen),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Watermark:
        """Read what :meth:`to_json` wrote."""
        return cls(
            requested_time=value["requested_time"],
            completion_time=value["completion_time"],
            pending=tuple(value["pending"]),
            seen=tuple(value.get("seen", ())),
        )


@dataclass(frozen=True, kw_only=True)
class TableStatistics:
    """Statistics of every partition that has a latest file slice, as of one state of the timeline.

    ``gathered`` is ``full`` or ``incremental`` and ``reason`` says why. ``gathered_at`` is ISO 8601 in UTC.
    """

    KIND: ClassVar[str] = "statistics"
    VERSION: ClassVar[int] = 2

    base_path: str
    table_name: str
    table_version: int
    table_type: str
    watermark: Watermark
    gathered: str
    reason: str
    gathered_at: str
    small_file_bytes: int
    partitions: tuple[PartitionStatistics, ...]

    @property
    def as_of_instant(self) -> str:
        """The instant that names the statistics file."""
        return self.watermark.requested_time

    @cached_property
    def by_path(self) -> Mapping[str, PartitionStatistics]:
        """The rows by partition path."""
        return {row.partition_path: row for row in self.partitions}

    @property
    def total_bytes(self) -> int:
        """Bytes of all latest file slices."""
        return sum(row.total_bytes for row in self.partitions)

    @property
    def file_group_count(self) -> int:
        """Number of file groups."""
        return sum(row.file_group_count for row in self.partitions)

    @property
    def data_file_count(self) -> int:
        """Number of latest base files."""
        return sum(row.data_file_count for row in self.partitions)

    @property
    def log_file_count(self) -> int:
        """Number of log files of latest slices."""
        return sum(row.log_file_count for row in self.partitions)

    @property
    def small_file_count(self) -> int:
        """Number of latest base files below ``small_file_bytes``."""
        return sum(row.small_file_count(self.small_file_bytes) for row in self.partitions)

    @cached_property
    def base_file_bytes(self) -> tuple[int, ...]:
        """Sizes of all latest base files, ascending."""
        return tuple(sorted(size for row in self.partitions for size in row.base_file_bytes))

    @property
    def record_count(self) -> int | None:
        """Records of all partitions; None unless each knows its own exactly."""
        counts = [row.record_count for row in self.partitions]
        return None if None in counts else sum(filter(None, counts))

    @property
    def file_bytes(self) -> Quantiles | None:
        """Quantiles of the bytes of all latest base files; None without any."""
        return Quantiles.of(self.base_file_bytes)

    @property
    def skew(self) -> Skew | None:
        """How unevenly bytes lie over partitions; None without bytes."""
        return Skew.of(row.total_bytes for row in self.partitions)

    def totals(self) -> JsonObject:
        """The totals of the table: counts, bytes, and the median and 90th percentile of base file bytes."""
        return {
            "partitions": len(self.partitions),
            "file_groups": self.file_group_count,
            "data_files": self.data_file_count,
            "small_files": self.small_file_count,
            "log_files": self.log_file_count,
            "records": self.record_count,
            "bytes": self.total_bytes,
            "median_file_bytes": quantile(self.base_file_bytes, 0.5),
            "p90_file_bytes": quantile(self.base_file_bytes, 0.9),
        }

    def to_json(self) -> JsonObject:
        """The whole document."""
        return {
            "kind": self.KIND,
            "version": self.VERSION,
            "base_path": self.base_path,
            "table_name": self.table_name,
            "table_version": self.table_version,
            "table_type": self.table_type,
            "as_of": self.watermark.to_json(),
            "gathered": self.gathered,
            "reason": self.reason,
            "gathered_at": self.gathered_at,
            "small_file_bytes": self.small_file_bytes,
            "totals": self.totals(),
            "file_bytes": self.file_bytes.to_json() if self.file_bytes else None,
            "skew": self.skew.to_json() if self.skew else None,
            "partitions": self._columns(),
        }

    def _columns(self) -> dict[str, list[Json]]:
        rows = self.partitions
        columns: dict[str, list[Json]] = {key: [*map(attrgetter(name), rows)] for key, (name, _) in _COLUMNS.items()}
        columns["small_files"] = [row.small_file_count(self.small_file_bytes) for row in rows]
        columns["data_file_bytes"] = [list(row.base_file_bytes) for row in rows]
        return columns

    @classmethod
    def from_json(cls, value: object, *, name: str) -> TableStatistics:
        """Read a document; ``name`` is the file's, for errors.

        Raises CorruptTableError for another kind or version, and for a document that lacks something.
        """
        is_old = isinstance(value, Mapping) and value.get("version") == _VERSION_OF_ROWS
        document: Mapping[str, Any] = checked_document(
            value, kind=cls.KIND, version=_VERSION_OF_ROWS if is_old else cls.VERSION, name=name
        )
        try:
            partitions = document["partitions"]
            return cls(
                base_path=document["base_path"],
                table_name=document["table_name"],
                table_version=document["table_version"],
                table_type=document["table_type"],
                watermark=Watermark.from_json(document["as_of"]),
                gathered=document["gathered"],
                reason=document["reason"],
                gathered_at=document["gathered_at"],
                small_file_bytes=document["small_file_bytes"],
                partitions=_rows(_by_column(partitions) if is_old else partitions),
            )
        except (KeyError, TypeError, ValueError) as error:
            msg = f"{name} is a broken statistics document ({error!r}); delete it and gather statistics in full"
            raise CorruptTableError(msg) from error


def _by_column(rows: Sequence[Mapping[str, Json]]) -> Mapping[str, Sequence[Any]]:
    """The rows of a document of version 1, turned to columns."""
    required = [key for key in (*_COLUMNS, "data_file_bytes") if key not in _YOUNGER]
    columns = {key: [row[key] for row in rows] for key in required}
    return {**columns, **{key: [row.get(key) for row in rows] for key in _YOUNGER}}


def _rows(columns: Mapping[str, Sequence[Any]]) -> tuple[PartitionStatistics, ...]:
    """The rows of a document; checked by column, since an incremental gather reads back thousands of them.

    Raises TypeError for a value of a wrong type, ValueError for columns of different lengths.
    """
    wrong = [key for key, (_, known) in _COLUMNS.items() if not known.issuperset(map(type, columns[key]))]
    sizes = columns["data_file_bytes"]
    if wrong or not _COUNT.issuperset(map(type, chain.from_iterable(sizes))):
        msg = f"values of a wrong type in {', '.join(wrong) or 'data_file_bytes'}"
        raise TypeError(msg)
    read = [columns[key] for key in _COLUMNS if key not in _FOR_READERS]
    return tuple(
        # Named one by one, not from a dictionary: that takes more than twice as long.
        PartitionStatistics(
            partition_path=path,
            last_modified_instant=last_modified,
            last_instant=last,
            total_bytes=total_bytes,
            record_count=records,
            file_group_count=file_groups,
            log_file_count=log_files,
            log_file_bytes=log_bytes,
            oldest_base_instant=oldest,
            newest_base_instant=newest,
            pending_instant=pending,
            base_file_bytes=base_file_bytes,
        )
        for (
            path,
            last_modified,
            last,
            total_bytes,
            records,
            file_groups,
            log_files,
            log_bytes,
            oldest,
            newest,
            pending,
            base_file_bytes,
        ) in zip(*read, map(tuple, sizes), strict=True)
    )
