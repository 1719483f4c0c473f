"""What completed instants and pending plans say, in one shape for every table version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from airflow_hudi_maint.core.model.instant import Instant

RESTORES_KEY = "airflow_hudi_maint.restores"
"""The key of a commit's extra metadata by which a restore of ours names the drop of partitions that it undoes."""


class Operation(StrEnum):
    """The write operations that maintenance has to tell apart; Hudi's ``WriteOperationType``."""

    CLUSTER = "CLUSTER"
    COMPACT = "COMPACT"
    LOG_COMPACT = "LOG_COMPACT"
    DELETE_PARTITION = "DELETE_PARTITION"
    INSERT = "INSERT"


REWRITE_OPERATIONS = frozenset({Operation.CLUSTER, Operation.COMPACT, Operation.LOG_COMPACT})
"""Operations that move rows into other files and change no data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStat:
    """One file that an instant wrote. ``path`` is relative to the base path; ``records`` is Hudi's ``numWrites``.

    ``begins_group`` says that the file group is new: the file replaces no earlier version of itself.
    """

    file_id: str
    path: str
    bytes: int
    records: int
    begins_group: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetadata:
    """The metadata of a completed commit, delta commit or replace commit.

    ``operation`` is Hudi's ``operationType`` (None where an old writer left it out). ``written`` and ``replaced`` are
    by partition path. ``schema`` is the table's Avro schema as JSON text, where the writer noted it. ``restores`` is
    the requested time of the drop of partitions that a restore of ours undid.
    """

    operation: str | None
    written: Mapping[str, tuple[WriteStat, ...]]
    replaced: Mapping[str, tuple[str, ...]]
    schema: str | None
    restores: str | None = None

    @property
    def touched_partitions(self) -> frozenset[str]:
        """Partitions whose files the instant added or replaced."""
        return frozenset(self.written) | frozenset(self.replaced)

    @property
    def rewrites_only(self) -> bool:
        """Whether the instant moved rows without changing them (clustering, compaction)."""
        return self.operation in REWRITE_OPERATIONS

    @property
    def drops_partitions(self) -> bool:
        """Whether the instant dropped whole partitions."""
        return self.operation == Operation.DELETE_PARTITION


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackMetadata:
    """The metadata of a completed rollback: the instants that it undid, and the partitions that it took files from."""

    undone: tuple[str, ...]
    partitions: frozenset[str]


class PlanKind(StrEnum):
    """What a pending plan will do to the file groups it holds."""

    CLUSTERING = "clustering"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSlice:
    """One input of a pending plan: the files of a slice, by name, as they were when it was planned.

    ``base_file_name`` is empty for a slice of log files only.
    """

    partition_path: str
    file_id: str
    base_file_name: str = ""
    log_file_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPlan:
    """A plan on the timeline that is not executed yet.

    ``groups`` are the clustering groups (one group with everything for compactions); ``output_file_count`` is what the
    plan expects to write, and ``group_output_file_counts`` what each group does (empty for compactions).
    ``strategy_class`` is the execution strategy by its full class name and ``parameters`` what it gets (Hudi's
    ``strategyParams``): both empty for compactions. ``extra_metadata`` is what the plan's maker noted.
    """

    instant: Instant
    kind: PlanKind
    groups: tuple[tuple[PlannedSlice, ...], ...]
    output_file_count: int
    group_output_file_counts: tuple[int, ...] = ()
    strategy_class: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    extra_metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[PlannedSlice, ...]:
        """The inputs of all groups."""
        return tuple(one for group in self.groups for one in group)

    @property
    def partitions(self) -> frozenset[str]:
        """The partitions that the plan holds file groups of."""
        return frozenset(one.partition_path for one in self.inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanPlan:
    """What a clean will delete: file names by partition, and whole partitions.

    ``earliest_retained`` is the requested time of the oldest instant whose files stay; None where the policy keeps by
    file versions and not by commits.
    """

    policy: str
    earliest_retained: str | None
    files: Mapping[str, tuple[str, ...]]
    emptied_partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanMetadata:
    """What a completed clean deleted, and failed to delete: file names by partition.

    ``earliest_retained`` and ``emptied_partitions`` as in :class:`CleanPlan`.
    """

    earliest_retained: str | None
    deleted: Mapping[str, tuple[str, ...]]
    failed: Mapping[str, tuple[str, ...]]
    emptied_partitions: tuple[str, ...]

    @property
    def deleted_file_count(self) -> int:
        """How many files are gone."""
        return sum(map(len, self.deleted.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPlan:
    """What a rollback is to undo (an instant's requested time and action), and where; the partitions may be unknown."""

    target: str
    target_action: str
    partitions: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """What a restore is to undo, newest first, and the savepoint that it goes back to (None: the plan does not say)."""

    undone: tuple[str, ...]
    savepoint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreMetadata:
    """The metadata of a completed restore: the instants that it undid, and the partitions that it took files from."""

    undone: tuple[str, ...]
    partitions: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointMetadata:
    """Who saved an instant and why, and the files it holds by partition; ``saved_at_ms`` counts from 1970 in UTC."""

    saved_by: str
    saved_at_ms: int
    comments: str
    files: Mapping[str, tuple[str, ...]]

    @property
    def partitions(self) -> frozenset[str]:
        """The partitions that the savepoint holds files of."""
        return frozenset(self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPlan:
    """The metadata partitions that an indexing builds or built, each with the last instant that it covers."""

    up_to: Mapping[str, str]
