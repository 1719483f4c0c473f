"""The use cases: one function each, the only place that joins storage, planning and engines."""

from __future__ import annotations

from airflow_hudi_maint.core.maintenance.cleaning import clean
from airflow_hudi_maint.core.maintenance.clustering_planning import (
    PlannedClustering,
    plan_clustering,
    plan_small_files,
)
from airflow_hudi_maint.core.maintenance.dropping import DropSettings
from airflow_hudi_maint.core.maintenance.execution import execute_clustering
from airflow_hudi_maint.core.maintenance.expiry import (
    PlannedExpiry,
    expire_partitions,
    plan_expiry,
    read_expiry_plan,
)
from airflow_hudi_maint.core.maintenance.health import CheckedHealth, check_health, refuse_unhealthy
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
from airflow_hudi_maint.core.maintenance.savepoints import release_savepoints
from airflow_hudi_maint.core.maintenance.scheduling import schedule_clustering
from airflow_hudi_maint.core.maintenance.small_files import compact_small_files
from airflow_hudi_maint.core.maintenance.statistics import Gathered, gather_statistics
from airflow_hudi_maint.core.maintenance.steps import StepReported
from airflow_hudi_maint.core.maintenance.undo import restore_partitions
from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace, open_workspace

__all__ = [
    "ChangedPolicies",
    "CheckedHealth",
    "DropSettings",
    "Gathered",
    "JobControl",
    "PlannedClustering",
    "PlannedExpiry",
    "PolicyReplay",
    "StepReported",
    "Workspace",
    "WrittenReport",
    "apply_policy_file",
    "check_health",
    "clean",
    "compact_small_files",
    "drop_policy",
    "empty_policies",
    "execute_clustering",
    "expire_partitions",
    "explain_partition",
    "gather_statistics",
    "open_workspace",
    "plan_clustering",
    "plan_expiry",
    "plan_small_files",
    "read_expiry_plan",
    "read_policy_file",
    "refuse_unhealthy",
    "release_savepoints",
    "replay_statistics",
    "restore_partitions",
    "schedule_clustering",
    "set_policies",
    "set_policy",
    "show_policies",
    "write_report",
]
