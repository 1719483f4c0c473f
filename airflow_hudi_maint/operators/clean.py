"""Run Hudi's cleaner, and release the savepoints that hold files from it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_bool, as_seconds
from airflow_hudi_maint.hooks.plan_settings import cleaner_settings
from airflow_hudi_maint.operators.job import HudiJobOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context


class HudiCleanOperator(HudiJobOperator):
    """Remove the files that no retained commit needs, by Hudi's cleaner, and report the bytes that are free now.

    What is removed is gone for time travel, incremental queries, and the undo of a drop of partitions. A second run
    has nothing to do; it starts no Spark, but for ``whole_table`` and ``KEEP_LATEST_FILE_VERSIONS``. A live writer
    makes the task fail, to be retried; a clean that died is finished first.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``; ``files_before`` and
    ``bytes_before`` are what was deleted.

    .. seealso:: ``docs/operators.md``

    :param cleaner: What to retain, as an object or JSON with ``policy`` (``KEEP_LATEST_COMMITS``,
        ``KEEP_LATEST_BY_HOURS`` or ``KEEP_LATEST_FILE_VERSIONS``) and its ``commits_retained``, ``hours_retained`` or
        ``file_versions_retained``; what is left out is as the connection's write options say, else Hudi's default.
        (templated)
    :param whole_table: Whether to look at every partition, and not only at those written since the last clean: after
        the release of a savepoint. (templated)
    :param plan_only: Whether to stop before the engine. (templated)
    """

    template_fields: Sequence[str] = (*HudiJobOperator.template_fields, "cleaner", "whole_table", "plan_only")
    template_fields_renderers = dict.fromkeys(("cleaner",), "json")

    def __init__(
        self,
        *,
        cleaner: Mapping[str, object] | str | None = None,
        whole_table: bool | str = False,
        plan_only: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cleaner = cleaner
        self.whole_table = whole_table
        self.plan_only = plan_only

    def execute(self, context: Context) -> dict[str, Any]:
        """Clean."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Clean") as hook:
            workspace = self.open(hook)
            reported = maintenance.clean(
                workspace,
                now=self.now(),
                job=self.job(context),
                settings=cleaner_settings(self.cleaner, options=workspace.write_options),
                whole_table=as_bool("whole_table", self.whole_table),
                dry_run=as_bool("plan_only", self.plan_only),
            )
        return self.report(context, reported)


class HudiReleaseSavepointsOperator(HudiJobOperator):
    """Release the savepoints that HudiExpirePartitionsOperator made, once they are old enough; others stay.

    While one stands, neither the cleaner nor archival passes it. A second run has nothing to do and starts no Spark.

    Returns what HudiCleanOperator returns; ``instants`` are the savepoints that were released.

    .. seealso:: ``docs/operators.md``

    :param older_than: For how long a savepoint stands: a timedelta, or seconds. (templated)
    :param plan_only: Whether to stop before the engine. (templated)
    """

    template_fields: Sequence[str] = (*HudiJobOperator.template_fields, "older_than", "plan_only")

    def __init__(
        self, *, older_than: timedelta | float | str = timedelta(days=7), plan_only: bool | str = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.older_than = older_than
        self.plan_only = plan_only

    def execute(self, context: Context) -> dict[str, Any]:
        """Release them."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Release savepoints") as hook:
            reported = maintenance.release_savepoints(
                self.open(hook),
                now=self.now(),
                job=self.job(context),
                older_than=timedelta(seconds=as_seconds("older_than", self.older_than)),
                dry_run=as_bool("plan_only", self.plan_only),
            )
        return self.report(context, reported)
