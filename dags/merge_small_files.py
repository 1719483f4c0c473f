"""Merge the small files of a directory of plain files.

Plan → merge, the directories of the tree shared among mapped tasks in chunks.

Trigger it by hand with a directory; give it a schedule, and a directory of its own, to run it at night. Each directory
of the tree is merged for itself: rows stay in their partition and in their order. The inputs of a merge go to a hidden
trash folder in their directory and can be put back from there: those of one directory by `airflow hudi merge DIRECTORY
--undo last`, all of a run of this DAG by `--undo` with the plan's path, which the task `plan` returns.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_hudi_maint.operators.merge import MergeSmallFilesOperator

MIB = 1024 * 1024

PARAMS = {
    "directory": Param(
        default="",
        type="string",
        title="Directory",
        description_md="Path or URL of the directory, such as `s3://lake/landing/orders`. Not one of a Hudi, Delta, "
        "Iceberg or Paimon table: those are refused by name.",
        section="Files",
    ),
    "storage_conn_id": Param(
        default=None,
        type=["string", "null"],
        title="Storage connection",
        description_md="Connection with the storage's credentials, of type aws, google_cloud_platform, wasb, adls or "
        "webhdfs. Empty: none.",
        section="Files",
    ),
    "formats": Param(
        default=["parquet", "orc", "csv", "json"],
        type="array",
        items={"type": "string", "enum": ["parquet", "orc", "csv", "json"]},
        examples=["parquet", "orc", "csv", "json"],
        title="Formats",
        description_md="JSON means JSON lines. Compressed text (`.csv.gz`, `.json.zst` …) counts as its format.",
        section="Files",
    ),
    "target_file_bytes": Param(
        default=128 * MIB,
        type="integer",
        minimum=1,
        title="Target file size (bytes)",
        description_md="Merged files grow to this size.",
        section="Sizes",
    ),
    "small_file_bytes": Param(
        default=64 * MIB,
        type="integer",
        minimum=1,
        title="Small-file limit (bytes)",
        description_md="Files below this size are merged. At most the target.",
        section="Sizes",
    ),
    "min_age_seconds": Param(
        default=900,
        type="integer",
        minimum=0,
        title="Least age (s)",
        description_md="Files that were written less than this ago are left alone, and so are growing ones.",
        section="Sizes",
    ),
    "settings": Param(
        default=None,
        type=["object", "null"],
        title="Other settings",
        description_md='As JSON, for example `{"csv_header": "yes", "trash_days": 30}`.',
        section="What to do",
    ),
    "engine": Param(
        default="embedded",
        type="string",
        enum=["embedded", "spark"],
        title="Engine",
        description_md="`embedded` merges in the tasks. `spark` merges the whole plan in one Spark job, for what "
        "outgrows one machine.",
        section="What to do",
    ),
    "hudi_conn_id": Param(
        default=None,
        type=["string", "null"],
        title="Connection for Spark",
        description_md="With the engine `spark`: connection of type hudi that says how Spark is run. Empty: beside the "
        "task.",
        section="What to do",
    ),
    "directories_per_chunk": Param(
        default=100,
        type="integer",
        minimum=1,
        title="Directories per task",
        description_md="How many directories one mapped task merges at most.",
        section="What to do",
    ),
    "dry_run": Param(
        default=False,
        type="boolean",
        title="Dry run",
        description_md="Write the plan and merge nothing.",
        section="What to do",
    ),
}


@task
def share_out(plan: dict[str, Any]) -> list[dict[str, int]]:
    """Return the chunks of a plan: a task is mapped over each."""
    chunks: list[dict[str, int]] = plan["chunks"]
    return chunks


with DAG(
    dag_id="merge_small_files",
    description="Merge the small files of a plain directory",
    schedule=None,
    catchup=False,
    max_active_runs=1,
    render_template_as_native_obj=True,
    params=PARAMS,
    tags=["small-files"],
    doc_md=__doc__,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
):
    where = {"directory": "{{ params.directory }}", "storage_conn_id": "{{ params.storage_conn_id }}"}
    plan = MergeSmallFilesOperator(
        task_id="plan",
        **where,
        plan_only=True,
        formats="{{ params.formats }}",
        target_file_bytes="{{ params.target_file_bytes }}",
        small_file_bytes="{{ params.small_file_bytes }}",
        min_age_seconds="{{ params.min_age_seconds }}",
        settings="{{ params.settings }}",
        engine="{{ params.engine }}",
        directories_per_chunk="{{ params.directories_per_chunk }}",
    )
    MergeSmallFilesOperator.partial(
        task_id="merge",
        **where,
        engine="{{ params.engine }}",
        hudi_conn_id="{{ params.hudi_conn_id }}",
        enabled="{{ not params.dry_run }}",
        plan_path="{{ ti.xcom_pull(task_ids='plan')['plan_path'] }}",
        max_active_tis_per_dagrun=4,
    ).expand(chunk=share_out(plan.output))
