"""The use cases: one function each, the only place that joins storage, planning and engines."""

from __future__ import annotations

from airflow_hudi_maint.core.maintenance.clustering import (
    PlannedClustering,
    compact_small_files,
    plan_clustering,
    plan_small_files,
    schedule_clustering,
)
from airflow_hudi_maint.core.maintenance.execution import execute_clustering
from airflow_hudi_maint.core.maintenance.expiry import PlannedExpiry, expire_partitions, plan_expiry
from airflow_hudi_maint.core.maintenance.report import WrittenReport, write_report
from airflow_hudi_maint.core.maintenance.statistics import Gathered, gather_statistics
from airflow_hudi_maint.core.maintenance.steps import StepReported
from airflow_hudi_maint.core.maintenance.workspace import JobControl, Workspace, open_workspace

__all__ = [
    "Gathered",
    "JobControl",
    "PlannedClustering",
    "PlannedExpiry",
    "StepReported",
    "Workspace",
    "WrittenReport",
    "compact_small_files",
    "execute_clustering",
    "expire_partitions",
    "gather_statistics",
    "open_workspace",
    "plan_clustering",
    "plan_expiry",
    "plan_small_files",
    "schedule_clustering",
    "write_report",
]
