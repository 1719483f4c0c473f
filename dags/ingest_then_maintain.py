"""Ingest into a Hudi table, then maintain it.

The task `append_trips` appends a few generated rows with Hudi's own Spark writer (`include/append_trips.py`; replace
it by your ingestion), and the task group `hudi_maintenance` keeps the table healthy afterwards.

A table that is written all day is better maintained when nobody writes: put a `HudiTableIdleSensor` between the two.
"""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Param

from airflow_hudi_maint.task_groups.maintenance import hudi_maintenance

MIB = 1024 * 1024
SCRIPT = Path(__file__).parent / "include" / "append_trips.py"

with DAG(
    dag_id="ingest_then_maintain",
    description="Append to a Hudi table and maintain it afterwards",
    doc_md=__doc__,
    schedule=None,
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["hudi", "example"],
    default_args={"retries": 1, "retry_delay": timedelta(minutes=1)},
    params={
        "base_path": Param(
            "/tmp/hudi/trips",  # noqa: S108 an example that runs anywhere
            type="string",
            title="Base path",
            description_md="Local path of the table; it is made when it is not there.",
        ),
        "rows": Param(1000, type="integer", minimum=1, title="Rows to append"),
    },
) as dag:
    append_trips = BashOperator(
        task_id="append_trips",
        # Values reach the script by the environment, so that no value of a form becomes a part of the command.
        bash_command=f"exec {shlex.quote(sys.executable)} {shlex.quote(str(SCRIPT))}",
        env={"TRIPS_BASE_PATH": "{{ params.base_path }}", "TRIPS_ROWS": "{{ params.rows }}"},
        append_env=True,
    )
    append_trips >> hudi_maintenance(
        hudi_conn_id=None,
        base_path="{{ params.base_path }}",
        policies=[{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 30, "default": True}],
        clustering={"target_file_bytes": 128 * MIB, "small_file_bytes": 32 * MIB, "max_group_bytes": 512 * MIB},
    )
