"""Plans: what would be done, why, why not, and on which state of the table that rests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.document import JsonMapping, JsonObject, checked_document
from airflow_hudi_maint.core.model.expiry_plan import ExpiryEntry, ExpiryPlan
from airflow_hudi_maint.core.model.plan_basis import Decision, PlanBasis, broken_plan
from airflow_hudi_maint.core.model.rewrite_group import PlannedGroup, PlannedInput

__all__ = [
    "ClusteringEntry",
    "ClusteringPlan",
    "ClusteringSettings",
    "Decision",
    "ExecutionStrategy",
    "ExpiryEntry",
    "ExpiryPlan",
    "Layout",
    "PlanBasis",
    "PlannedGroup",
    "PlannedInput",
]


class Layout(StrEnum):
    """How clustering orders rows over the sort columns."""

    LINEAR = "linear"
    ZORDER = "zorder"
    HILBERT = "hilbert"


class ExecutionStrategy(StrEnum):
    """How Hudi rewrites the files of a group. Hudi puts the class into its plan, so it is chosen with the plan.

    ``single_file_sort`` sorts each file for itself; ``binary_copy`` appends files without decoding rows.
    """

    SORT_AND_SIZE = "sort_and_size"
    SINGLE_FILE_SORT = "single_file_sort"
    BINARY_COPY = "binary_copy"

    @property
    def class_name(self) -> str:
        """Hudi's class, as a plan on the timeline names it."""
        return f"org.apache.hudi.client.clustering.run.strategy.{_EXECUTION_CLASSES[self]}"


_EXECUTION_CLASSES = {
    ExecutionStrategy.SORT_AND_SIZE: "SparkSortAndSizeExecutionStrategy",
    ExecutionStrategy.SINGLE_FILE_SORT: "SparkSingleFileSortExecutionStrategy",
    ExecutionStrategy.BINARY_COPY: "SparkBinaryCopyClusteringExecutionStrategy",
}


_MOST = 2**63 - 1
"""What a Java long holds: Hudi keeps sizes and counts in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringSettings:
    """What a clustering plan is made with; sizes in bytes. The defaults are Hudi's own, but for ``max_groups``.

    ``max_groups`` None means as many as the plan needs: Hudi's default of 30 leaves the rest out silently.
    ``keeps_lone_groups`` is how Hudi before 1.2 packs, as :func:`~.planning.clustering_groups.pack_groups` tells.
    """

    target_file_bytes: int = 1024 * 1024 * 1024
    small_file_bytes: int = 300 * 1024 * 1024
    max_group_bytes: int = 2 * 1024 * 1024 * 1024
    max_groups: int | None = None
    sort_columns: tuple[str, ...] = ()
    layout: Layout = Layout.LINEAR
    min_input_files: int = 2
    execution_strategy: ExecutionStrategy = ExecutionStrategy.SORT_AND_SIZE
    keeps_lone_groups: bool = False

    def __post_init__(self) -> None:
        for name in ("target_file_bytes", "small_file_bytes", "max_group_bytes", "min_input_files", "max_groups"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= _MOST:
                bound = "small; expected at least 1" if value < 1 else f"large; expected at most {_MOST}"
                raise InvalidSettingError(f"{name}={value} is too {bound}")
        if len(set(self.sort_columns)) < len(self.sort_columns):
            raise InvalidSettingError(f"sort_columns={', '.join(self.sort_columns)} names a column twice; name it once")
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
        if self.layout is not Layout.LINEAR and not self.sort_columns:
            msg = f"layout={self.layout} needs sort_columns; name the columns that queries filter on"
            raise InvalidSettingError(msg)
        if self.execution_strategy is ExecutionStrategy.SINGLE_FILE_SORT and not self.sort_columns:
            msg = f"execution_strategy={self.execution_strategy} needs sort_columns: each file is sorted for itself"
            raise InvalidSettingError(msg)
        if self.execution_strategy is ExecutionStrategy.BINARY_COPY and self.sort_columns:
            msg = (
                f"execution_strategy={self.execution_strategy} copies rows as they lie and cannot sort by "
                f"{', '.join(self.sort_columns)}; leave sort_columns out, or take {ExecutionStrategy.SORT_AND_SIZE}"
            )
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
            "execution_strategy": str(self.execution_strategy),
            "keeps_lone_groups": self.keeps_lone_groups,
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
            execution_strategy=ExecutionStrategy(value["execution_strategy"]),
            keeps_lone_groups=value["keeps_lone_groups"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringEntry:
    """One partition in a clustering plan, with the groups that its eligible file slices make.

    ``group_limit`` is how far Hudi has to count groups of this partition to make the last of these: it counts those
    that it drops in the end, too. 0 stands for the number of groups.
    """

    partition_path: str
    decision: Decision
    reason: str
    groups: tuple[PlannedGroup, ...] = ()
    blocked_by: str | None = None
    group_limit: int = 0

    @property
    def file_ids(self) -> tuple[str, ...]:
        """The file groups that are rewritten."""
        return tuple(one.file_id for group in self.groups for one in group.inputs)

    @property
    def input_bytes(self) -> int:
        """The bytes that are read."""
        return sum(group.input_bytes for group in self.groups)

    @property
    def output_bytes(self) -> int:
        """About how many bytes are written."""
        return sum(group.output_bytes for group in self.groups)

    @property
    def group_count(self) -> int:
        """How many groups there are."""
        return len(self.groups)

    @property
    def output_file_count(self) -> int:
        """How many files are expected to come out."""
        return sum(group.output_file_count for group in self.groups)

    def to_json(self) -> JsonObject:
        """The row of the JSON document."""
        return {
            "partition": self.partition_path,
            "decision": str(self.decision),
            "reason": self.reason,
            "input_bytes": self.input_bytes,
            "output_files": self.output_file_count,
            "groups": [group.to_json() for group in self.groups],
            "blocked_by": self.blocked_by,
            "group_limit": self.group_limit,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> ClusteringEntry:
        """Read what :meth:`to_json` wrote."""
        return cls(
            partition_path=row["partition"],
            decision=Decision(row["decision"]),
            reason=row["reason"],
            groups=tuple(PlannedGroup.from_json(one, partition_path=row["partition"]) for one in row["groups"]),
            blocked_by=row["blocked_by"],
            group_limit=row["group_limit"],
        )


@dataclass(frozen=True, kw_only=True)
class ClusteringPlan:
    """Which partitions are clustered. Every partition that was considered has an entry, in path order.

    ``purpose`` is ``clustering`` or ``small-files``; ``strategy`` is a name or the import path of a class.
    """

    KIND: ClassVar[str] = "clustering-plan"
    VERSION: ClassVar[int] = 2

    basis: PlanBasis
    settings: ClusteringSettings
    entries: tuple[ClusteringEntry, ...]
    purpose: str = "clustering"
    warnings: tuple[str, ...] = field(default=())
    strategy: str = "size_based"
    strategy_options: JsonMapping = field(default_factory=dict)

    @property
    def chosen(self) -> tuple[ClusteringEntry, ...]:
        """The partitions to cluster."""
        return tuple(entry for entry in self.entries if entry.decision is Decision.CLUSTER)

    @property
    def group_count(self) -> int:
        """Clustering groups over all chosen partitions."""
        return sum(entry.group_count for entry in self.chosen)

    @property
    def group_limit(self) -> int:
        """Hudi's ``max.num.groups`` with which it makes just these groups of the chosen partitions."""
        return max((self.group_count, *(entry.group_limit for entry in self.chosen)))

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
            "output_bytes": sum(entry.output_bytes for entry in self.chosen),
        }

    def to_json(self) -> JsonObject:
        """The whole document."""
        return {
            "kind": self.KIND,
            "version": self.VERSION,
            "purpose": self.purpose,
            "strategy": self.strategy,
            "strategy_options": self.strategy_options,
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
                strategy=document["strategy"],
                strategy_options=document["strategy_options"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise broken_plan(name, error) from error
