"""The use cases: one function each, the only place that joins storage, planning and engines."""

from __future__ import annotations

from airflow_hudi_maint.core.maintenance.attaching import JobDeferred
from airflow_hudi_maint.core.maintenance.cleaning import clean
from airflow_hudi_maint.core.maintenance.cluster import cluster
from airflow_hudi_maint.core.maintenance.clustering_planning import (
    PlannedClustering,
    plan_clustering,
    plan_small_files,
)
from airflow_hudi_maint.core.maintenance.compaction import schedule_compaction
from airflow_hudi_maint.core.maintenance.compaction_execution import execute_compaction
from airflow_hudi_maint.core.maintenance.compaction_planning import PlannedCompaction, plan_compaction
from airflow_hudi_maint.core.maintenance.diagnosis import DiagnosedSmallFiles, diagnose_small_files, predict_insert
from airflow_hudi_maint.core.maintenance.dropping import DropSettings
from airflow_hudi_maint.core.maintenance.execution import execute_clustering
from airflow_hudi_maint.core.maintenance.expiry import (
    PlannedExpiry,
    expire_partitions,
    plan_expiry,
    read_expiry_plan,
)
from airflow_hudi_maint.core.maintenance.health import CheckedHealth, check_health, refuse_unhealthy
from airflow_hudi_maint.core.maintenance.merge_chunks import Chunk, chunks_of, merge_chunk, undo_plan
from airflow_hudi_maint.core.maintenance.merge_planning import (
    PlannedMerge,
    plan_merge,
    read_merge_plan,
    small_file_counts,
)
from airflow_hudi_maint.core.maintenance.merge_workspace import MergeWorkspace, open_merge_workspace
from airflow_hudi_maint.core.maintenance.merge_writers import SparkMerging
from airflow_hudi_maint.core.maintenance.merging import (
    MergeReported,
    current_files,
    merge_small_files,
    undo_merge,
)
from airflow_hudi_maint.core.maintenance.policies import (
    ChangedPolicies,
    apply_policy_file,
    drop_policy,
    empty_policies,
    read_policy_file,
    set_policies,
    set_policy,
    show_policies,
)
from airflow_hudi_maint.core.maintenance.policy_trials import PolicyReplay, explain_partition, replay_statistics
from airflow_hudi_maint.core.maintenance.report import WrittenReport, write_report
from airflow_hudi_maint.core.maintenance.resolving import resolve_pending
from airflow_hudi_maint.core.maintenance.savepoints import release_savepoints
from airflow_hudi_maint.core.maintenance.scheduling import schedule_clustering
from airflow_hudi_maint.core.maintenance.small_files import SmallFileSettings, compact_small_files
from airflow_hudi_maint.core.maintenance.statistics import Gathered, gather_statistics
from airflow_hudi_maint.core.maintenance.steps import StepReported, credit
from airflow_hudi_maint.core.maintenance.table_small_files import table_small_file_counts
from airflow_hudi_maint.core.maintenance.undo import restore_partitions
from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace, open_workspace

__all__ = [
    "ChangedPolicies",
    "CheckedHealth",
    "Chunk",
    "DiagnosedSmallFiles",
    "DropSettings",
    "Gathered",
    "JobControl",
    "JobDeferred",
    "MergeReported",
    "MergeWorkspace",
    "PlannedClustering",
    "PlannedCompaction",
    "PlannedExpiry",
    "PlannedMerge",
    "PolicyReplay",
    "SmallFileSettings",
    "SparkMerging",
    "StepReported",
    "Workspace",
    "WrittenReport",
    "apply_policy_file",
    "check_health",
    "chunks_of",
    "clean",
    "cluster",
    "compact_small_files",
    "credit",
    "current_files",
    "diagnose_small_files",
    "drop_policy",
    "empty_policies",
    "execute_clustering",
    "execute_compaction",
    "expire_partitions",
    "explain_partition",
    "gather_statistics",
    "merge_chunk",
    "merge_small_files",
    "open_merge_workspace",
    "open_workspace",
    "plan_clustering",
    "plan_compaction",
    "plan_expiry",
    "plan_merge",
    "plan_small_files",
    "predict_insert",
    "read_expiry_plan",
    "read_merge_plan",
    "read_policy_file",
    "refuse_unhealthy",
    "release_savepoints",
    "replay_statistics",
    "resolve_pending",
    "restore_partitions",
    "schedule_clustering",
    "schedule_compaction",
    "set_policies",
    "set_policy",
    "show_policies",
    "small_file_counts",
    "table_small_file_counts",
    "undo_merge",
    "undo_plan",
    "write_report",
]
