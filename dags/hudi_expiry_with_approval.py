"""Expire partitions of one Apache Hudi table, once a person has agreed.

Plan expiry → approve → expire partitions → clean (if asked for).

The plan stands as a table under *Required Actions* of the task `approve`. A plan within the limits of the form needs
nobody; without an answer in a day the plan is rejected and nothing is dropped. Who approved it, and when, is in the
report of the drop. A savepoint keeps the dropped files until `release_savepoints` lets them go: until then the
partitions can be brought back with HudiRestorePartitionsOperator.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, Param

from airflow_hudi_maint.operators.approval import HudiApproveExpiryOperator
from airflow_hudi_maint.operators.clean import HudiCleanOperator, HudiReleaseSavepointsOperator
from airflow_hudi_maint.operators.expiry import HudiExpirePartitionsOperator, HudiPlanExpiryOperator

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
    "policies": Param(
        default=None,
        type=["array", "null"],
        items={"type": "object"},
        title="Policies",
        description_md="RFC-65 policies as JSON. Empty: those in the table's `hoodie.properties`.",
        section="Expiry",
    ),
    "guards": Param(
        default=None,
        type=["object", "null"],
        title="Guards",
        description_md='Limits of one run as JSON, for example `{"max_partition_share": 0.5}`. An approval does not '
        "lift them. Empty: the defaults.",
        section="Expiry",
    ),
    "auto_approve_partitions": Param(
        default=3,
        type=["integer", "null"],
        minimum=0,
        title="Partitions without approval",
        description_md="A plan that drops no more partitions needs nobody. Empty: every plan needs somebody.",
        section="Approval",
    ),
    "auto_approve_mib": Param(
        default=1024,
        type=["integer", "null"],
        minimum=0,
        title="MiB without approval",
        description_md="And no more bytes than this. Empty: no limit.",
        section="Approval",
    ),
    "savepoint": Param(
        default=True,
        type="boolean",
        title="Savepoint",
        description_md="Keep the dropped files from Hudi's cleaner, so that the drop can be undone.",
        section="Undo",
    ),
    "undo_days": Param(
        default=7,
        type="integer",
        minimum=0,
        title="Days to undo",
        description_md="Savepoints of this DAG are released after these days.",
        section="Undo",
    ),
    "clean": Param(
        default=False,
        type="boolean",
        title="Clean",
        description_md="Run Hudi's cleaner afterwards, by the retention of the connection's write options.",
        section="Undo",
    ),
}
TABLE = {"hudi_conn_id": "{{ params.hudi_conn_id or '' }}", "base_path": "{{ params.base_path or '' }}"}
PLAN_PATH = "{{ (ti.xcom_pull(task_ids='plan') or {}).get('plan_path', '') }}"

with DAG(
    dag_id="hudi_expiry_with_approval",
    description="Partition expiry of one Hudi table that a person approves",
    doc_md=__doc__,
    schedule=None,
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["hudi", "maintenance"],
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    params=PARAMS,
) as dag:
    guards = "{{ params.guards | tojson }}"
    plan = HudiPlanExpiryOperator(task_id="plan", **TABLE, policies="{{ params.policies | tojson }}", guards=guards)
    approve = HudiApproveExpiryOperator(
        task_id="approve",
        **TABLE,
        plan_path=PLAN_PATH,
        guards=guards,
        auto_approve_partitions="{{ params.auto_approve_partitions if params.auto_approve_partitions is not none }}",
        auto_approve_bytes="{{ params.auto_approve_mib * 1048576 if params.auto_approve_mib is not none }}",
        response_timeout=timedelta(hours=24),
    )
    expire = HudiExpirePartitionsOperator(
        task_id="expire",
        **TABLE,
        plan_path=PLAN_PATH,
        guards=guards,
        savepoint="{{ params.savepoint }}",
        approval="{{ ti.xcom_pull(task_ids='approve') | tojson }}",
    )
    release = HudiReleaseSavepointsOperator(
        task_id="release_savepoints",
        **TABLE,
        older_than="{{ params.undo_days * 86400 }}",
        trigger_rule="none_failed",
    )
    clean = HudiCleanOperator(
        task_id="clean",
        **TABLE,
        enabled="{{ params.clean }}",
        whole_table=True,
        trigger_rule="none_failed",
    )
    plan >> approve >> expire >> release >> clean
