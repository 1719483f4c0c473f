"""Keep one Apache Hudi table healthy.

Gather statistics → plan expiry → expire partitions → compact (merge-on-read tables) → schedule clustering → execute
clustering → gather statistics → report.

Runs daily on the table of the connection `hudi_default`. Trigger it by hand to choose another table or other settings:
every one is in the form. A step with nothing to do skips itself and says why in its log; then no Spark is started.

The report's address is on the task `report`, under *Hudi report*.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, Param

from airflow_hudi_maint.task_groups.maintenance import hudi_maintenance

MIB = 1024 * 1024
STEPS = ["expire", "compact", "schedule_clustering", "execute_clustering", "report"]

TABLE = {
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
    "statistics_mode": Param(
        default="auto",
        type="string",
        enum=["auto", "full", "incremental"],
        title="Statistics",
        description_md="`full` lists every partition, `incremental` those touched since the last statistics, "
        "`auto` chooses.",
        section="Table",
    ),
}
WHAT_TO_DO = {
    "steps": Param(
        default=STEPS,
        type="array",
        items={"type": "string", "enum": STEPS},
        examples=STEPS,
        title="Steps",
        description_md="Leave `execute_clustering` out to schedule a plan that another DAG, or Hudi, executes.",
        section="What to do",
    ),
    "dry_run": Param(
        default=False,
        type="boolean",
        title="Dry run",
        description_md="Write plans and report, and change nothing on the table.",
        section="What to do",
    ),
    "report_title": Param(
        default=None,
        type=["string", "null"],
        title="Title of the report",
        description_md="Empty: one with the table's name.",
        section="What to do",
    ),
    "job_timeout_seconds": Param(
        default=None,
        type=["integer", "null"],
        minimum=1,
        title="Job timeout (s)",
        description_md="A Spark job that runs longer is killed and its task retried. Empty: no limit.",
        section="What to do",
    ),
}
EXPIRY = {
    "policies": Param(
        default=None,
        type=["array", "null"],
        items={"type": "object"},
        title="Policies",
        description_md="RFC-65 policies as JSON, for example "
        '`[{"partitionSpec": "origin=*/", "policy": "KEEP_BY_COUNT", "policyValue": 10, "default": true}]`. '
        "Empty: those in the table's `hoodie.properties`. `[]`: none, so that nothing expires.",
        section="Expiry",
    ),
    "guards": Param(
        default=None,
        type=["object", "null"],
        title="Guards",
        description_md='Limits of one run as JSON, for example `{"max_partition_share": 0.5}`: a plan over a limit '
        "is written and refused. Empty: the defaults.",
        section="Expiry",
    ),
}
CLUSTERING = {
    "partitions": Param(
        default=[],
        type="array",
        title="Partitions",
        description_md="Partition paths to consider as Hudi writes them, one per line, such as `origin=EWR/month=9`. "
        "Empty: all.",
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
        description_md="Files below this size are rewritten, and are counted as small in the statistics.",
        section="Clustering",
    ),
    "max_group_bytes": Param(
        default=2048 * MIB,
        type="integer",
        minimum=1,
        title="Group size (bytes)",
        description_md="Most bytes that one clustering group reads; at least the target file size.",
        section="Clustering",
    ),
    "max_groups": Param(
        default=None,
        type=["integer", "null"],
        minimum=1,
        title="Groups",
        description_md="Most groups in one plan. Empty: as many as there are, so that no partition is left out.",
        section="Clustering",
    ),
    "min_input_files": Param(
        default=2,
        type="integer",
        minimum=1,
        title="Files at least",
        description_md="Partitions with fewer files to rewrite are left alone.",
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
        description_md="How rows are ordered over the sort columns; `zorder` and `hilbert` serve filters on any.",
        section="Clustering",
    ),
}

with DAG(
    dag_id="hudi_table_maintenance",
    description="Statistics, partition expiry and clustering of one Hudi table",
    doc_md=__doc__,
    schedule="@daily",
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["hudi", "maintenance"],
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    params={**TABLE, **WHAT_TO_DO, **EXPIRY, **CLUSTERING},
) as dag:
    hudi_maintenance(
        prefix_group_id=False,
        hudi_conn_id="{{ params.hudi_conn_id or '' }}",
        base_path="{{ params.base_path or '' }}",
        statistics_mode="{{ params.statistics_mode }}",
        expire="{{ 'expire' in params.steps }}",
        compact="{{ 'compact' in params.steps }}",
        schedule_clustering="{{ 'schedule_clustering' in params.steps }}",
        execute_clustering="{{ 'execute_clustering' in params.steps }}",
        report="{{ 'report' in params.steps }}",
        plan_only="{{ params.dry_run }}",
        job_timeout="{{ params.job_timeout_seconds or '' }}",
        policies="{{ params.policies | tojson }}",
        guards="{{ params.guards | tojson }}",
        report_title="{{ params.report_title or '' }}",
        clustering={
            "target_file_bytes": "{{ params.target_file_bytes }}",
            "small_file_bytes": "{{ params.small_file_bytes }}",
            "max_group_bytes": "{{ params.max_group_bytes }}",
            "max_groups": "{{ params.max_groups or '' }}",
            "min_input_files": "{{ params.min_input_files }}",
            "sort_columns": "{{ params.sort_columns | tojson }}",
            "layout": "{{ params.layout }}",
            "partitions": "{{ params.partitions | tojson if params.partitions else '' }}",
        },
    )
