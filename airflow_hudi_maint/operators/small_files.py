"""Compact small files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_bool
from airflow_hudi_maint.hooks.plan_settings import SIZES, clustering_settings, partition_paths, worthwhile
from airflow_hudi_maint.operators.job import HudiJobOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

_WORTHWHILE = ("min_files_removed", "max_bytes_per_file_removed")


class HudiCompactSmallFilesOperator(HudiJobOperator):
    """Merge small base files into larger ones, where enough of them make it worthwhile.

    This is clustering without a sort: a plan is scheduled and executed in one task. Rows keep their order within a
    file and are the same afterwards. A retry finishes the plan of its forerunner; a second run finds nothing small
    and skips. A live writer without a lock provider fails the task, to be retried; partitions that a pending plan
    holds are left out.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``.

    .. seealso:: ``docs/operators.md``

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
    :param partitions: Partition paths to consider, as Hudi writes them; None for all. (templated)
    :param plan_only: Whether to stop before the engine and report the plan. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiJobOperator.template_fields, *SIZES, *_WORTHWHILE, "partitions", "plan_only",
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
        partitions: Sequence[str] | str | None = None,
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
        self.partitions = partitions
        self.plan_only = plan_only

    def execute(self, context: Context) -> dict[str, Any]:
        """Merge the files."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Compact small files") as hook:
            reported = maintenance.compact_small_files(
                self.open(hook),
                now=self.now(),
                settings=clustering_settings(**{name: getattr(self, name) for name in SIZES}),
                job=self.job(context),
                partitions=partition_paths(self.partitions),
                worthwhile=worthwhile(**{name: getattr(self, name) for name in _WORTHWHILE}),
                dry_run=as_bool("plan_only", self.plan_only),
            )
        return self.report(context, reported)
