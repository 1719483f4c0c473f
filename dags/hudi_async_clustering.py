"""Cluster one Apache Hudi table asynchronously: one task schedules a plan, another executes it later, in a pool.

`schedule` puts a clustering plan on the timeline, or finds the one that is pending. `wait_for_compactions` then waits,
in the triggerer and without a worker, until no compaction is pending that could run beside it. `execute` runs the plan;
its instant comes from `schedule` by XCom. Switch *Schedule* off to execute the oldest pending plan of ours instead,
which is then found on the timeline: so another run, or another DAG, executes what this one scheduled.

Make the pool once, with as many slots as clusterings may run at a time on your workers or cluster:

    airflow pools set hudi_clustering 1 "Spark jobs that rewrite Hudi tables"

Until a plan is executed, upserts to its file groups fail: do not let it wait for long. With nothing to do every task
skips itself and no Spark is started.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, Param, TriggerRule

from airflow_hudi_maint.operators.clustering import HudiExecuteClusteringOperator, HudiScheduleClusteringOperator
from airflow_hudi_maint.sensors.pending import HudiPendingPlanSensor

MIB = 1024 * 1024
POOL = "hudi_clustering"

TABLE = {
    "hudi_conn_id": "{{ params.hudi_conn_id or '' }}",
    "base_path": "{{ params.base_path or '' }}",
}
PARAMS = {
    "hudi_conn_id": Param(
        default="hudi_default",
        type=["string", "null"],
        title="Connection",
        description_md="Connection of type `hudi`. Empty: none, and every setting of the engine is at its default.",
        section="Table",
    ),
    "base_path": Param(
        default=None,
        type=["string", "null"],
        title="Base path",
        description_md="Path or URL of the table, such as `s3://lake/db/flights`. Empty: the connection's.",
        section="Table",
    ),
    "schedule": Param(
        default=True,
        type="boolean",
        title="Schedule",
        description_md="Whether to plan. If not, the oldest pending plan of ours is executed.",
        section="What to do",
    ),
    "execute": Param(
        default=True,
        type="boolean",
        title="Execute",
        description_md="Whether to execute the plan in this run. If not, another run or another DAG does.",
        section="What to do",
    ),
    "dry_run": Param(
        default=False,
        type="boolean",
        title="Dry run",
        description_md="Write the plan, and change nothing on the table.",
        section="What to do",
    ),
    "compactions_first": Param(
        default=True,
        type="boolean",
        title="Wait for compactions",
        description_md="Whether to wait until no compaction of the partitions below (none: of the table) is pending.",
        section="What to do",
    ),
    "partitions": Param(
        default=[],
        type="array",
        title="Partitions",
        description_md="Partition paths to consider as Hudi writes them, one per line. Empty: all.",
        section="Clustering",
    ),
    "target_file_bytes": Param(
        default=1024 * MIB,
        type="integer",
        minimum=1,
        title="Target file size (bytes)",
        description_md="Rewritten files grow to this size. Must be above the small-file limit.",
        section="Clustering",
    ),
    "small_file_bytes": Param(
        default=300 * MIB,
        type="integer",
        minimum=1,
        title="Small-file limit (bytes)",
        description_md="Files below this size are rewritten.",
        section="Clustering",
    ),
    "sort_columns": Param(
        default=[],
        type="array",
        title="Sort columns",
        description_md="One per line. Name what queries filter on; none keeps the order of the rows.",
        section="Clustering",
    ),
    "layout": Param(
        default="linear",
        type="string",
        enum=["linear", "zorder", "hilbert"],
        title="Layout",
        description_md="How rows are ordered over the sort columns.",
        section="Clustering",
    ),
}

with DAG(
    dag_id="hudi_async_clustering",
    description="Schedule a clustering plan, wait, and execute it in a pool",
    doc_md=__doc__,
    schedule=None,
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["hudi", "clustering"],
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    params=PARAMS,
) as dag:
    schedule = HudiScheduleClusteringOperator(
        task_id="schedule",
        enabled="{{ params.schedule }}",
        plan_only="{{ params.dry_run }}",
        target_file_bytes="{{ params.target_file_bytes }}",
        small_file_bytes="{{ params.small_file_bytes }}",
        sort_columns="{{ params.sort_columns | tojson }}",
        layout="{{ params.layout }}",
        partitions="{{ params.partitions | tojson if params.partitions else '' }}",
        **TABLE,
    )
    wait = HudiPendingPlanSensor(
        task_id="wait_for_compactions",
        enabled="{{ params.compactions_first and params.execute and not params.dry_run and "
        "(not params.schedule or (ti.xcom_pull(task_ids='schedule') or {}).get('instants', []) | length > 0) }}",
        kinds=["compaction", "logcompaction"],
        partitions="{{ params.partitions | tojson if params.partitions else '' }}",
        deferrable=True,
        poke_interval=30,
        timeout=6 * 60 * 60,
        trigger_rule=TriggerRule.NONE_FAILED,
        **TABLE,
    )
    execute = HudiExecuteClusteringOperator(
        task_id="execute",
        enabled="{{ params.execute }}",
        plan_only="{{ params.dry_run }}",
        instants=schedule.output,
        pool=POOL,
        job_timeout=timedelta(hours=6),
        trigger_rule=TriggerRule.NONE_FAILED,
        **TABLE,
    )
    schedule >> wait >> execute
