"""Plans: what would be done, why, why not, and on which state of the table that rests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from airflow_hudi_maint.core.errors import CorruptTableError, InvalidSettingError
from airflow_hudi_maint.core.model.document import JsonObject, checked_document
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.statistics import Watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBasis:
    """The state of the table that a plan rests on; applying a plan checks it again.

    ``statistics_path`` names the statistics file that was used, if one was. ``created_at`` is ISO 8601 in UTC.
    """

    base_path: str
    table_name: str
    table_version: int
    watermark: Watermark
    created_at: str
    statistics_path: str | None = None

    @property
    def base_instant(self) -> str:
        """The last completed instant that the plan knows."""
        return self.watermark.requested_time

    def to_json(self) -> JsonObject:
        """The object of the JSON document."""
        return {
            "base_path": self.base_path,
            "table_name": self.table_name,
            "table_version": self.table_version,
            "watermark": self.watermark.to_json(),
            "created_at": self.created_at,
            "statistics_path": self.statistics_path,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PlanBasis:
        """Read what :meth:`to_json` wrote."""
        return cls(
            base_path=value["base_path"],
            table_name=value["table_name"],
            table_version=value["table_version"],
            watermark=Watermark.from_json(value["watermark"]),
            created_at=value["created_at"],
            statistics_path=value["statistics_path"],
        )


class Decision(StrEnum):
    """What a plan does with a partition."""

    EXPIRE = "expire"
    CLUSTER = "cluster"
    KEEP = "keep"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryEntry:
    """One partition in an expiry plan. ``policy`` is the policy that decided, as text; None where none applies.

    ``blocked_by`` is the pending instant that holds a partition which would expire; None where its name blocks it.
    """

    partition_path: str
    decision: Decision
    reason: str
    policy: str | None
    last_modified_instant: str
    total_bytes: int
    data_file_count: int
    log_file_count: int
    blocked_by: str | None = None

    def to_json(self) -> JsonObject:
        """The row of the JSON document."""
        return {
            "partition": self.partition_path,
            "decision": str(self.decision),
            "reason": self.reason,
            "policy": self.policy,
            "last_modified_instant": self.last_modified_instant,
            "bytes": self.total_bytes,
            "data_files": self.data_file_count,
            "log_files": self.log_file_count,
            "blocked_by": self.blocked_by,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> ExpiryEntry:
        """Read what :meth:`to_json` wrote."""
        return cls(
            partition_path=row["partition"],
            decision=Decision(row["decision"]),
            reason=row["reason"],
            policy=row["policy"],
            last_modified_instant=row["last_modified_instant"],
            total_bytes=row["bytes"],
            data_file_count=row["data_files"],
            log_file_count=row["log_files"],
            blocked_by=row["blocked_by"],
        )


@dataclass(frozen=True, kw_only=True)
class ExpiryPlan:
    """Which partitions expire. Every partition with data has an entry, in path order.

    ``clock`` is what ages were measured by: ``table`` (its newest data) or ``wall``.
    """

    KIND: ClassVar[str] = "expiry-plan"
    VERSION: ClassVar[int] = 1

    basis: PlanBasis
    policies: PolicySet
    entries: tuple[ExpiryEntry, ...]
    warnings: tuple[str, ...] = ()
    clock: str = "table"

    def having(self, decision: Decision) -> tuple[ExpiryEntry, ...]:
        """The entries with this decision, in path order."""
        return tuple(entry for entry in self.entries if entry.decision is decision)

    @property
    def expired(self) -> tuple[ExpiryEntry, ...]:
        """The partitions to drop."""
        return self.having(Decision.EXPIRE)

    @property
    def blocked(self) -> tuple[ExpiryEntry, ...]:
        """The partitions that would be dropped if no pending plan held them and Hudi could be given their names."""
        return self.having(Decision.BLOCKED)

    def summary(self) -> JsonObject:
        """Counts and bytes."""
        return {
            "partitions": len(self.entries),
            "expired": len(self.expired),
            "kept": len(self.having(Decision.KEEP)),
            "blocked": len(self.blocked),
            "expired_bytes": sum(entry.total_bytes for entry in self.expired),
            "total_bytes": sum(entry.total_bytes for entry in self.entries),
        }

    def to_json(self) -> JsonObject:
        """The whole document."""
        return {
            "kind": self.KIND,
            "version": self.VERSION,
            "basis": self.basis.to_json(),
            "clock": self.clock,
            "policies": [dict(policy) for policy in self.policies.to_json()],
            "summary": self.summary(),
            "warnings": list(self.warnings),
            "entries": [entry.to_json() for entry in self.entries],
        }

    @classmethod
    def from_json(cls, value: object, *, name: str) -> ExpiryPlan:
        """Read a document; raises CorruptTableError that names the file."""
        document: Mapping[str, Any] = checked_document(value, kind=cls.KIND, version=cls.VERSION, name=name)
        try:
            return cls(
                basis=PlanBasis.from_json(document["basis"]),
                policies=PolicySet.from_json(document["policies"], source=name),
                entries=tuple(ExpiryEntry.from_json(row) for row in document["entries"]),
                warnings=tuple(document["warnings"]),
                clock=document["clock"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _broken(name, error) from error


class Layout(StrEnum):
    """How clustering orders rows over the sort columns."""

    LINEAR = "linear"
    ZORDER = "zorder"
    HILBERT = "hilbert"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringSettings:
    """What a clustering plan is made with; sizes in bytes. The defaults are Hudi's own, but for ``max_groups``.

    ``max_groups`` None means as many as the plan needs: Hudi's default of 30 leaves the rest out silently.
    """

    target_file_bytes: int = 1024 * 1024 * 1024
    small_file_bytes: int = 300 * 1024 * 1024
    max_group_bytes: int = 2 * 1024 * 1024 * 1024
    max_groups: int | None = None
    sort_columns: tuple[str, ...] = ()
    layout: Layout = Layout.LINEAR
    min_input_files: int = 2

    def __post_init__(self) -> None:
        if self.target_file_bytes <= self.small_file_bytes:
            msg = (
                f"target_file_bytes={self.target_file_bytes} is not above small_file_bytes={self.small_file_bytes}: "
                "each output would be a candidate again; raise the target or lower the small-file limit"
            )
            raise InvalidSettingError(msg)
        if self.max_group_bytes < self.target_file_bytes:
            msg = (
                f"max_group_bytes={self.max_group_bytes} is below target_file_bytes={self.target_file_bytes}: "
                "no group could fill a file; raise the group size"
            )
            raise InvalidSettingError(msg)
        for name in ("small_file_bytes", "min_input_files", "max_groups"):
            value = getattr(self, name)
            if value is not None and value < 1:
                msg = f"{name}={value} is too small; expected at least 1"
                raise InvalidSettingError(msg)
        if self.layout is not Layout.LINEAR and not self.sort_columns:
            msg = f"layout={self.layout} needs sort_columns; name the columns that queries filter on"
            raise InvalidSettingError(msg)

    def to_json(self) -> JsonObject:
        """The object of the JSON document."""
        return {
            "target_file_bytes": self.target_file_bytes,
            "small_file_bytes": self.small_file_bytes,
            "max_group_bytes": self.max_group_bytes,
            "max_groups": self.max_groups,
            "sort_columns": list(self.sort_columns),
            "layout": str(self.layout),
            "min_input_files": self.min_input_files,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ClusteringSettings:
        """Read what :meth:`to_json` wrote."""
        return cls(
            target_file_bytes=value["target_file_bytes"],
            small_file_bytes=value["small_file_bytes"],
            max_group_bytes=value["max_group_bytes"],
            max_groups=value["max_groups"],
            sort_columns=tuple(value["sort_columns"]),
            layout=Layout(value["layout"]),
            min_input_files=value["min_input_files"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringEntry:
    """One partition in a clustering plan: its eligible file groups, and the groups that Hudi is expected to make."""

    partition_path: str
    decision: Decision
    reason: str
    file_ids: tuple[str, ...] = ()
    input_bytes: int = 0
    group_count: int = 0
    output_file_count: int = 0
    blocked_by: str | None = None

    def to_json(self) -> JsonObject:
        """The row of the JSON document."""
        return {
            "partition": self.partition_path,
            "decision": str(self.decision),
            "reason": self.reason,
            "file_ids": list(self.file_ids),
            "input_bytes": self.input_bytes,
            "groups": self.group_count,
            "output_files": self.output_file_count,
            "blocked_by": self.blocked_by,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> ClusteringEntry:
        """Read what :meth:`to_json` wrote."""
        return cls(
            partition_path=row["partition"],
            decision=Decision(row["decision"]),
            reason=row["reason"],
            file_ids=tuple(row["file_ids"]),
            input_bytes=row["input_bytes"],
            group_count=row["groups"],
            output_file_count=row["output_files"],
            blocked_by=row["blocked_by"],
        )


@dataclass(frozen=True, kw_only=True)
class ClusteringPlan:
    """Which partitions are clustered. Every partition that was considered has an entry, in path order.

    ``purpose`` is ``clustering`` or ``small-files``.
    """

    KIND: ClassVar[str] = "clustering-plan"
    VERSION: ClassVar[int] = 1

    basis: PlanBasis
    settings: ClusteringSettings
    entries: tuple[ClusteringEntry, ...]
    purpose: str = "clustering"
    warnings: tuple[str, ...] = field(default=())

    @property
    def chosen(self) -> tuple[ClusteringEntry, ...]:
        """The partitions to cluster."""
        return tuple(entry for entry in self.entries if entry.decision is Decision.CLUSTER)

    @property
    def group_count(self) -> int:
        """Clustering groups over all chosen partitions."""
        return sum(entry.group_count for entry in self.chosen)

    def summary(self) -> JsonObject:
        """Counts and bytes."""
        return {
            "partitions": len(self.entries),
            "chosen": len(self.chosen),
            "kept": sum(entry.decision is Decision.KEEP for entry in self.entries),
            "blocked": sum(entry.decision is Decision.BLOCKED for entry in self.entries),
            "groups": self.group_count,
            "input_files": sum(len(entry.file_ids) for entry in self.chosen),
            "input_bytes": sum(entry.input_bytes for entry in self.chosen),
            "output_files": sum(entry.output_file_count for entry in self.chosen),
        }

    def to_json(self) -> JsonObject:
        """The whole document."""
        return {
            "kind": self.KIND,
            "version": self.VERSION,
            "purpose": self.purpose,
            "basis": self.basis.to_json(),
            "settings": self.settings.to_json(),
            "summary": self.summary(),
            "warnings": list(self.warnings),
            "entries": [entry.to_json() for entry in self.entries],
        }

    @classmethod
    def from_json(cls, value: object, *, name: str) -> ClusteringPlan:
        """Read a document; raises CorruptTableError that names the file."""
        document: Mapping[str, Any] = checked_document(value, kind=cls.KIND, version=cls.VERSION, name=name)
        try:
            return cls(
                basis=PlanBasis.from_json(document["basis"]),
                settings=ClusteringSettings.from_json(document["settings"]),
                entries=tuple(ClusteringEntry.from_json(row) for row in document["entries"]),
                purpose=document["purpose"],
                warnings=tuple(document["warnings"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> CorruptTableError:
    return CorruptTableError(f"{name} is a broken plan document ({error!r}); delete it and plan again")
