"""Bring dropped partitions back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_bool
from airflow_hudi_maint.hooks.plan_settings import partition_paths
from airflow_hudi_maint.hooks.undo_window import as_drop
from airflow_hudi_maint.operators.job import HudiJobOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context


class HudiRestorePartitionsOperator(HudiJobOperator):
    """Bring dropped partitions back as they were right before the drop, while their files are still there.

    Spark reads the table as of the instant before the drop and inserts what the partitions held; counts and a digest of
    the record keys are compared, and a difference fails the task. Hudi's cleaner ends what can be undone: the report of
    the drop says until when, and HudiUndoWindowSensor fires before. Rows that come back have the commit time of the
    restore. A second run finds what the first one did. A live writer makes the task fail, to be retried.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``.

    .. seealso:: ``docs/operators.md``

    :param drop: Requested time of the drop, or the result of HudiExpirePartitionsOperator when it made one drop; None
        for the newest drop on the timeline. (templated)
    :param partitions: Partition paths to bring back: a list, JSON, or texts apart by commas; None for all of the
        drop's. An empty list is refused. (templated)
    :param keep_new_rows: Whether partitions that got data again are restored, too: rows come back whose keys are not
        there, and the new ones stay. Otherwise such a partition is refused. (templated)
    :param plan_only: Whether to stop before the engine: the report says what would be refused. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiJobOperator.template_fields,
        "drop",
        "partitions",
        "keep_new_rows",
        "plan_only",
    )

    def __init__(
        self,
        *,
        drop: Any = None,
        partitions: Any = None,
        keep_new_rows: bool | str = False,
        plan_only: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.drop = drop
        self.partitions = partitions
        self.keep_new_rows = keep_new_rows
        self.plan_only = plan_only

    def execute(self, context: Context) -> dict[str, Any]:
        """Restore."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Restore partitions") as hook:
            reported = maintenance.restore_partitions(
                self.open(hook),
                now=self.now(),
                job=self.job(context),
                drop=as_drop(self.drop),
                partitions=partition_paths(self.partitions) or (),
                keep_new_rows=as_bool("keep_new_rows", self.keep_new_rows),
                dry_run=as_bool("plan_only", self.plan_only),
            )
        return self.report(context, reported)
