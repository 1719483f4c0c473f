"""Compact small files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_bool
from airflow_hudi_maint.hooks.execution_settings import execution_settings, file_settings, over_file
from airflow_hudi_maint.hooks.plan_settings import SIZES, clustering_settings, partition_paths, scheduler_of
from airflow_hudi_maint.hooks.small_file_settings import AUTO, WORTHWHILE, copying, min_row_group_bytes, worthwhile
from airflow_hudi_maint.operators.job import plan_owner
from airflow_hudi_maint.operators.rewriting import HudiRewritingOperator

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from airflow.sdk import Context

    from airflow_hudi_maint.core.maintenance import SmallFileSettings
    from airflow_hudi_maint.core.planning.clustering_properties import PropertiesSettings


class HudiCompactSmallFilesOperator(HudiRewritingOperator):
    """Merge small base files into larger ones, where enough of them make it worthwhile.

    On merge-on-read the log files of what is merged are compacted first. The rewrite is clustering without a sort: a
    plan is scheduled and executed in one task, and the result is verified. Row groups are copied without decoding where
    Hudi can do that and they are large enough; the log says which, and why. Rows keep their order within a file and are
    the same afterwards. A retry goes on with the plans of its forerunner; a second run finds nothing small, skips, and
    starts no Spark. A live writer without a lock provider fails the task, to be retried; partitions that a pending plan
    holds are left out.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``; the report also has how many files
    were foretold.

    .. seealso:: ``docs/small-files.md``

    :param target_file_bytes: Size that merged files grow to; None for Hudi's default of 1 GiB. (templated)
    :param small_file_bytes: Base files below this size are merged; must be below the target; None for Hudi's default of
        300 MiB. (templated)
    :param max_group_bytes: Most bytes of one group, at least the target; None for Hudi's default of 2 GiB. (templated)
    :param max_groups: Most groups of one plan; None for as many as there are. (templated)
    :param min_input_files: Partitions with fewer small files are left alone; None for the default of 2. (templated)
    :param min_files_removed: How many files fewer a rewrite of a partition has to leave; None for the default of 1.
        (templated)
    :param max_bytes_per_file_removed: Most bytes to rewrite for each file fewer; None for ``small_file_bytes``.
        (templated)
    :param max_bytes: Most bytes that one run reads; they go to partitions first where a file fewer costs least. None
        for no limit. (templated)
    :param min_idle: Partitions whose data changed later than so long ago are left alone: a timedelta or seconds; None
        for no limit. (templated)
    :param execution_strategy: ``auto`` copies row groups where it can, ``sort_and_size`` always decodes and encodes
        again, ``binary_copy`` has Hudi copy and decide for itself. (templated)
    :param min_row_group_bytes: ``auto`` copies row groups of at least this size on average, for copies keep them; None
        for 16 MiB. (templated)
    :param compact_first: Whether log files are compacted first on merge-on-read; False leaves partitions alone where
        files to be merged have some. (templated)
    :param partitions: Partition paths to consider, as Hudi writes them; None for all. (templated)
    :param scheduler: Who writes the clustering plan: ``native``, ``hudi`` or ``auto``. (templated)
    :param plan_only: Whether to stop before the engine and report the plan. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiRewritingOperator.template_fields, *SIZES, *WORTHWHILE, "execution_strategy", "min_row_group_bytes",
        "compact_first", "partitions", "scheduler", "plan_only",
    )  # fmt: skip

    def __init__(
        self,
        *,
        target_file_bytes: int | str | None = None,
        small_file_bytes: int | str | None = None,
        max_group_bytes: int | str | None = None,
        max_groups: int | str | None = None,
        min_input_files: int | str | None = None,
        min_files_removed: int | str | None = None,
        max_bytes_per_file_removed: int | str | None = None,
        max_bytes: int | str | None = None,
        min_idle: timedelta | float | str | None = None,
        execution_strategy: str = AUTO,
        min_row_group_bytes: int | str | None = None,
        compact_first: bool | str = True,
        partitions: Sequence[str] | str | None = None,
        scheduler: str = "auto",
        plan_only: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.target_file_bytes = target_file_bytes
        self.small_file_bytes = small_file_bytes
        self.max_group_bytes = max_group_bytes
        self.max_groups = max_groups
        self.min_input_files = min_input_files
        self.min_files_removed = min_files_removed
        self.max_bytes_per_file_removed = max_bytes_per_file_removed
        self.max_bytes = max_bytes
        self.min_idle = min_idle
        self.execution_strategy = execution_strategy
        self.min_row_group_bytes = min_row_group_bytes
        self.compact_first = compact_first
        self.partitions = partitions
        self.scheduler = scheduler
        self.plan_only = plan_only

    def execute(self, context: Context) -> dict[str, Any]:
        """Merge the files."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Compact small files") as hook:
            file = file_settings(hook, self.settings_file)
            asked = over_file(file, **{name: getattr(self, name) for name in SIZES})
            reported = maintenance.compact_small_files(
                self.open(hook),
                now=self.now(),
                settings=clustering_settings(**{name: asked.get(name) for name in SIZES}),
                job=self.job(context),
                partitions=partition_paths(self.partitions),
                how=self._how(file),
                dry_run=as_bool("plan_only", self.plan_only),
                owner=plan_owner(context),
            )
        return self.report(context, reported)

    def _how(self, file: PropertiesSettings) -> SmallFileSettings:
        from airflow_hudi_maint.core.maintenance import SmallFileSettings

        return SmallFileSettings(
            worthwhile=worthwhile(**{name: getattr(self, name) for name in WORTHWHILE}),
            execution=copying(self.execution_strategy),
            min_row_group_bytes=min_row_group_bytes(self.min_row_group_bytes),
            compacts_first=as_bool("compact_first", self.compact_first),
            scheduler=scheduler_of(self.scheduler),
            verify=self.verification,
            executing=execution_settings(
                parallelism=self.parallelism,
                read_parallelism=self.read_parallelism,
                options=self.options,
                file=file,
            ),
        )
