"""Clustering plans that no JVM wrote, on S3, executed by each release of Hudi."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import JobControl
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.plan import ClusteringSettings
from airflow_hudi_maint.core.model.scheduler import Scheduler
from tests.golden.golden import truth, unpack
from tests.s3_server import S3Server, running_s3_server
from tests.spark.conftest import WRITES_TABLE_VERSION
from tests.spark.s3_writer import s3_writer

pytestmark = [pytest.mark.spark, pytest.mark.s3, pytest.mark.proof]

SETTINGS = ClusteringSettings(
    target_file_bytes=64 * 1024**2,
    small_file_bytes=32 * 1024**2,
    max_group_bytes=128 * 1024**2,
    sort_columns=("trip_id",),
)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server


def _no_engine() -> Any:
    pytest.fail("native scheduling started Spark")


@pytest.mark.parametrize("table_version", [6, 8, 9])
def test_a_release_executes_our_plans_on_s3(table_version: int, s3: S3Server, tmp_path: Path) -> None:
    """Copy-on-write and merge-on-read: one replace commit of the planned file groups, and the rows that were there."""
    writer = s3_writer(WRITES_TABLE_VERSION[table_version], s3=s3, key_id="AKIA-of-the-writer")
    try:
        for name in (f"v{table_version}_cow_plain", f"v{table_version}_mor_plain"):
            bucket = s3.new_bucket()
            s3.put_folder(bucket, unpack(name, tmp_path), prefix="trips")
            workspace = maintenance.open_workspace(
                f"s3://{bucket}/trips", storage_options=s3.storage_options, engine=_no_engine
            )
            scheduled = maintenance.schedule_clustering(
                workspace, now=datetime.now(UTC), settings=SETTINGS, job=JobControl(), scheduler=Scheduler.NATIVE
            ).report
            (instant,) = scheduled.instants
            (plan,) = workspace.table.pending_plans(workspace.table.timeline())
            path = f"s3a://{bucket}/trips"
            writer.sql(f"CALL run_clustering(path => '{path}', op => 'execute', instants => '{instant}')")

            done = [one for one in workspace.table.timeline().completed if one.action is Action.REPLACE_COMMIT]
            assert [instant] == [one.requested_time for one in done], name
            replaced = workspace.table.commit_metadata(done[0]).replaced
            assert {(one.partition_path, one.file_id) for one in plan.inputs} == {
                (partition, file_id) for partition, ids in replaced.items() for file_id in ids
            }, name
            assert truth(name)["rows"]["by_partition"] == writer.counts(path), name
    finally:
        writer.close()
