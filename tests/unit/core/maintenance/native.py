"""Native scheduling on hand-made tables: a workspace whose engine must not be started, and one call."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import JobControl, StepReported, Workspace
from airflow_hudi_maint.core.maintenance.clustering_planning import PlannedClustering
from airflow_hudi_maint.core.maintenance.scheduling import schedule_planned
from airflow_hudi_maint.core.model.plan import ClusteringSettings
from airflow_hudi_maint.core.model.scheduler import PlanOwner, Scheduler
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.six_days import NOW
from tests.unit.core.storage.builders import TableBuilder

SMALL = ClusteringSettings(target_file_bytes=1024**2, small_file_bytes=64 * 1024, max_group_bytes=2 * 1024**2)
OWNER = PlanOwner(dag_id="nightly", run_id="r1", task_id="cluster", map_index=3)
LOCKS = "org.apache.hudi.client.transaction.lock"
LOCKED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": f"{LOCKS}.FileSystemBasedLockProvider",
}


def no_engine() -> FakeEngine:
    pytest.fail("a plan that we write ourselves needs no engine")


def workspace_of(table: TableBuilder, *, write_options: Mapping[str, str] | None = None) -> Workspace:
    return maintenance.open_workspace(table.base_path, engine=no_engine, write_options=write_options)


def schedule(
    workspace: Workspace,
    *,
    scheduler: Scheduler = Scheduler.NATIVE,
    owner: PlanOwner | None = OWNER,
    now: datetime = NOW,
    settings: ClusteringSettings = SMALL,
    dry_run: bool = False,
) -> StepReported:
    return maintenance.schedule_clustering(
        workspace,
        now=now,
        settings=settings,
        job=JobControl(),
        scheduler=scheduler,
        owner=owner,
        dry_run=dry_run,
    )


def names_of(table: TableBuilder) -> set[str]:
    return set(table.storage.names(table.timeline_folder))


def planned_of(workspace: Workspace) -> PlannedClustering:
    return maintenance.plan_clustering(workspace, now=NOW, settings=SMALL)


def put_on_timeline(workspace: Workspace, planned: PlannedClustering, *, now: datetime = NOW) -> StepReported:
    return schedule_planned(
        workspace, planned, ours=(), job=JobControl(), dry_run=False, scheduler=Scheduler.NATIVE, now=now
    )


def plans_of(workspace: Workspace) -> list[str]:
    plans = workspace.table.pending_plans(workspace.table.timeline())
    file_groups = [(one.partition_path, one.file_id) for plan in plans for one in plan.inputs]
    assert len(set(file_groups)) == len(file_groups), "a file group is in two plans"
    return [plan.instant.requested_time for plan in plans]
