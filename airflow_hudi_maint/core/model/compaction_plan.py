"""A compaction plan: which file groups get their log files merged, why, why not, and on which state that rests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.document import JsonObject, checked_document
from airflow_hudi_maint.core.model.plan_basis import Decision, PlanBasis, broken_plan
from airflow_hudi_maint.core.model.rewrite_group import PlannedInput


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """When log files are worth merging into base files. Every limit has to be reached; 0, 1 and None mean no limit.

    ``min_delta_commits`` counts the delta commits of the whole table since its last compaction. ``min_log_files`` and
    ``min_log_bytes`` are for each file group. ``min_log_ratio`` is for each partition: bytes of log files divided by
    bytes of base files, of the file groups that reach the other limits. ``max_input_bytes`` bounds what one plan reads.
    """

    min_delta_commits: int = 0
    min_log_files: int = 1
    min_log_bytes: int = 0
    min_log_ratio: float = 0.0
    max_input_bytes: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("min_delta_commits", 0), ("min_log_files", 1), ("min_log_bytes", 0), ("min_log_ratio", 0)):
            value = getattr(self, name)
            if not value >= least:
                raise InvalidSettingError(f"{name}={value} is too small; expected at least {least}")
        if self.min_log_ratio == float("inf"):
            raise InvalidSettingError("min_log_ratio is infinite; expected for example 0.5")
        if self.max_input_bytes is not None and self.max_input_bytes < 1:
            raise InvalidSettingError(f"max_input_bytes={self.max_input_bytes} is too small; expected at least 1")

    def to_json(self) -> JsonObject:
        """The object of the JSON document."""
        return {
            "min_delta_commits": self.min_delta_commits,
            "min_log_files": self.min_log_files,
            "min_log_bytes": self.min_log_bytes,
            "min_log_ratio": self.min_log_ratio,
            "max_input_bytes": self.max_input_bytes,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CompactionSettings:
        """Read what :meth:`to_json` wrote."""
        return cls(
            min_delta_commits=value["min_delta_commits"],
            min_log_files=value["min_log_files"],
            min_log_bytes=value["min_log_bytes"],
            min_log_ratio=value["min_log_ratio"],
            max_input_bytes=value["max_input_bytes"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEntry:
    """One partition in a compaction plan, with the file groups that are compacted: none unless it is chosen."""

    partition_path: str
    decision: Decision
    reason: str
    inputs: tuple[PlannedInput, ...] = ()
    blocked_by: str | None = None

    @property
    def file_ids(self) -> tuple[str, ...]:
        """The file groups that are compacted."""
        return tuple(one.file_id for one in self.inputs)

    @property
    def input_bytes(self) -> int:
        """The bytes that are read: base and log files."""
        return sum(one.total_bytes for one in self.inputs)

    @property
    def log_file_count(self) -> int:
        """How many log files are merged."""
        return sum(len(one.log_file_names) for one in self.inputs)

    @property
    def log_bytes(self) -> int:
        """The bytes of those."""
        return sum(one.log_bytes for one in self.inputs)

    def to_json(self) -> JsonObject:
        """The row of the JSON document."""
        return {
            "partition": self.partition_path,
            "decision": str(self.decision),
            "reason": self.reason,
            "input_bytes": self.input_bytes,
            "log_files": self.log_file_count,
            "log_bytes": self.log_bytes,
            "file_groups": [one.to_json() for one in self.inputs],
            "blocked_by": self.blocked_by,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> CompactionEntry:
        """Read what :meth:`to_json` wrote."""
        return cls(
            partition_path=row["partition"],
            decision=Decision(row["decision"]),
            reason=row["reason"],
            inputs=tuple(PlannedInput.from_json(one) for one in row["file_groups"]),
            blocked_by=row["blocked_by"],
        )


@dataclass(frozen=True, kw_only=True)
class CompactionPlan:
    """Which partitions are compacted. Every partition that was considered has an entry, in path order.

    ``delta_commits`` counts those of the table since its last compaction.
    """

    KIND: ClassVar[str] = "compaction-plan"
    VERSION: ClassVar[int] = 1

    basis: PlanBasis
    settings: CompactionSettings
    entries: tuple[CompactionEntry, ...]
    delta_commits: int
    warnings: tuple[str, ...] = field(default=())

    @property
    def chosen(self) -> tuple[CompactionEntry, ...]:
        """The partitions to compact."""
        return tuple(entry for entry in self.entries if entry.decision is Decision.COMPACT)

    @property
    def file_groups(self) -> frozenset[tuple[str, str]]:
        """The file groups to compact, as partition path and file id."""
        return frozenset((entry.partition_path, file_id) for entry in self.chosen for file_id in entry.file_ids)

    def summary(self) -> JsonObject:
        """Counts and bytes."""
        return {
            "delta_commits": self.delta_commits,
            "partitions": len(self.entries),
            "chosen": len(self.chosen),
            "kept": sum(entry.decision is Decision.KEEP for entry in self.entries),
            "blocked": sum(entry.decision is Decision.BLOCKED for entry in self.entries),
            "file_groups": len(self.file_groups),
            "log_files": sum(entry.log_file_count for entry in self.chosen),
            "log_bytes": sum(entry.log_bytes for entry in self.chosen),
            "input_bytes": sum(entry.input_bytes for entry in self.chosen),
        }

    def to_json(self) -> JsonObject:
        """The whole document."""
        return {
            "kind": self.KIND,
            "version": self.VERSION,
            "basis": self.basis.to_json(),
            "settings": self.settings.to_json(),
            "summary": self.summary(),
            "warnings": list(self.warnings),
            "entries": [entry.to_json() for entry in self.entries],
        }

    @classmethod
    def from_json(cls, value: object, *, name: str) -> CompactionPlan:
        """Read a document; raises CorruptTableError that names the file."""
        document: Mapping[str, Any] = checked_document(value, kind=cls.KIND, version=cls.VERSION, name=name)
        try:
            return cls(
                basis=PlanBasis.from_json(document["basis"]),
                settings=CompactionSettings.from_json(document["settings"]),
                entries=tuple(CompactionEntry.from_json(row) for row in document["entries"]),
                delta_commits=document["summary"]["delta_commits"],
                warnings=tuple(document["warnings"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise broken_plan(name, error) from error
