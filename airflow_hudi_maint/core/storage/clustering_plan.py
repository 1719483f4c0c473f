"""Put a requested clustering plan on a table's timeline, and take it away again.

A requested plan is a proposal that Hudi executes, never a commit: it changes no row and no file. It is the only kind of
instant that this package writes.

Source: Hudi's ``ClusteringPlanStrategy``, ``PartitionAwareClusteringPlanStrategy``, ``FileSliceMetricUtils`` and
``ClusteringPlanActionExecutor``.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from airflow_hudi_maint.core.errors import PendingActionError
from airflow_hudi_maint.core.model.commit import Operation, PendingPlan
from airflow_hudi_maint.core.model.instant import Action, Instant, State
from airflow_hudi_maint.core.model.rewrite_group import PlannedGroup, PlannedInput
from airflow_hudi_maint.core.model.table_config import TIMELINE_LAYOUT_2_SINCE
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.planning.clustering_groups import ASSUMED_BASE_FILE_BYTES
from airflow_hudi_maint.core.storage.clustering_plan_schema import (
    PLAN_RECORD,
    notes_missing_partitions,
    requested_replace_schema,
)
from airflow_hudi_maint.core.storage.instants import clustering_plan
from airflow_hudi_maint.core.storage.table import HudiTable

_PLAN_VERSION = 1
_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedClustering:
    """What a requested plan says.

    ``engine_path`` is the table's base path as the engine reads it (``s3a://…``). ``strategy_class`` is Hudi's
    execution strategy by its full class name, and ``parameters`` are its ``strategyParams``. ``extra_metadata`` says
    who asked for the plan; Hudi keeps it as it is.
    """

    groups: tuple[PlannedGroup, ...]
    engine_path: str
    strategy_class: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    extra_metadata: Mapping[str, str] = field(default_factory=dict)

    def record(self, *, table_version: int) -> dict[str, Any]:
        """The record as Hudi itself would write it for these groups (``HoodieRequestedReplaceMetadata``)."""
        plan: dict[str, Any] = {
            "inputGroups": [self._group(one) for one in self.groups],
            "strategy": {
                "strategyClassName": self.strategy_class,
                "strategyParams": dict(self.parameters),
                "version": _PLAN_VERSION,
            },
            "extraMetadata": {},
            "version": _PLAN_VERSION,
            "preserveHoodieMetadata": True,
        }
        if notes_missing_partitions(table_version):
            plan["missingSchedulePartitions"] = []
        return {
            "operationType": str(Operation.CLUSTER),
            "clusteringPlan": plan,
            "extraMetadata": dict(self.extra_metadata),
            "version": _PLAN_VERSION,
        }

    def encode(self, *, table_version: int) -> bytes:
        """The content of the requested file: an Avro container, uncompressed as Hudi's are."""
        import fastavro

        buffer = io.BytesIO()
        record = _with_branches(self.record(table_version=table_version))
        fastavro.writer(buffer, _parsed_schema(table_version), [record])
        return buffer.getvalue()

    def _group(self, group: PlannedGroup) -> dict[str, Any]:
        return {
            "slices": [self._slice(one, partition_path=group.partition_path) for one in group.inputs],
            "metrics": _metrics(group),
            "numOutputFileGroups": group.output_file_count,
            "extraMetadata": None,
            "version": _PLAN_VERSION,
        }

    def _slice(self, one: PlannedInput, *, partition_path: str) -> dict[str, Any]:
        folder = f"{self.engine_path}/{partition_path}" if partition_path else self.engine_path
        return {
            "dataFilePath": f"{folder}/{one.base_file_name}" if one.base_file_name else "",
            # Hudi keeps the log files of a slice newest first, and writes them so.
            "deltaFilePaths": [f"{folder}/{name}" for name in reversed(one.log_file_names)],
            "fileId": one.file_id,
            "partitionPath": partition_path,
            "bootstrapFilePath": "",
            "version": _PLAN_VERSION,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """The requested file of one clustering plan."""

    table: HudiTable
    requested_time: str

    @property
    def path(self) -> str:
        """The file, relative to the base path; table version 6 has no action of its own for clustering."""
        config = self.table.config
        is_new = config.table_version >= TIMELINE_LAYOUT_2_SINCE
        action = Action.CLUSTERING if is_new else Action.REPLACE_COMMIT
        return f"{config.timeline_folder}/{self.requested_time}.{action}.requested"

    def create(self, data: bytes) -> bool:
        """Write the file unless there is one, and say whether it is there now with this content.

        Storage may have written it and lost the answer; then what lies there is ours.
        """
        return self.table.storage.write_new(self.path, data) or self.content() == data

    def withdraw(self, timeline: Timeline, *, data: bytes) -> None:
        """Delete the file with this content, as long as nobody executes the plan; what is gone is withdrawn.

        Raises PendingActionError for a plan that is being executed or was, by ``timeline``, and StorageError.
        """
        instant = self._instant(timeline)
        state = None if instant is None else instant.state
        if state is not None and state is not State.REQUESTED:
            msg = (
                f"Clustering plan {self.requested_time} cannot be withdrawn: it is {state.name.lower()}, so another "
                "job executes it. Wait until it is done, then run this again"
            )
            raise PendingActionError(msg)
        if self.content() != data:  # never written, withdrawn already, or another's of the same millisecond
            return
        with suppress(FileNotFoundError):
            self.table.storage.delete(self.path)

    def pending(self, requested: RequestedClustering, *, timeline: Timeline) -> PendingPlan:
        """The plan as it stands on ``timeline``, which was listed after :meth:`create`.

        Raises PendingActionError when it is no longer pending.
        """
        instant = self._instant(timeline)
        record = requested.record(table_version=self.table.config.table_version)
        plan = (
            None
            if instant is None or instant.is_completed
            else clustering_plan(record, instant=instant, name=self.table.storage.join(self.path))
        )
        if plan is None:
            msg = (
                f"Clustering plan {self.requested_time} was written, and is no longer pending: somebody executed it or "
                "rolled it back at once. Run this again"
            )
            raise PendingActionError(msg)
        return plan

    def _instant(self, timeline: Timeline) -> Instant | None:
        """The plan's own instant: a writer may have taken the same millisecond for a commit."""
        return next(
            (
                one
                for one in timeline
                if one.requested_time == self.requested_time and one.action.completed_as is Action.REPLACE_COMMIT
            ),
            None,
        )

    def content(self) -> bytes | None:
        """What the file holds; None where there is none."""
        try:
            return self.table.storage.read_bytes(self.path)
        except FileNotFoundError:
            return None


def _with_branches(record: dict[str, Any]) -> dict[str, Any]:
    """Name the branch of each large union: fastavro would find it by going through all that is in it, at each level."""
    plan = record["clusteringPlan"]
    groups = [{**group, "slices": ("array", group["slices"])} for group in plan["inputGroups"]]
    return {**record, "clusteringPlan": (PLAN_RECORD, {**plan, "inputGroups": ("array", groups)})}


def _metrics(group: PlannedGroup) -> dict[str, float]:
    """The figures that Hudi notes with a group: whole mebibytes, but for the bytes of log files."""
    log_bytes = sum(one.log_bytes for one in group.inputs)
    base_bytes = sum(one.base_bytes for one in group.inputs)
    written = sum(one.base_bytes or ASSUMED_BASE_FILE_BYTES for one in group.inputs)
    read_mb, write_mb = (base_bytes + log_bytes) // _MEBIBYTE, written // _MEBIBYTE
    return {
        "TOTAL_IO_READ_MB": float(read_mb),
        "TOTAL_IO_WRITE_MB": float(write_mb),
        "TOTAL_IO_MB": float(read_mb + write_mb),
        "TOTAL_LOG_FILES_SIZE": float(log_bytes),
        "TOTAL_LOG_FILES": float(sum(len(one.log_file_names) for one in group.inputs)),
    }


@lru_cache(maxsize=4)
def _parsed_schema(table_version: int) -> Any:  # noqa: ANN401 as fastavro has it
    import fastavro

    return fastavro.parse_schema(requested_replace_schema(table_version=table_version))
