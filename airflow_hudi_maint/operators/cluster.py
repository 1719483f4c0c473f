"""Schedule and execute clustering in one task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_bool
from airflow_hudi_maint.hooks.execution_settings import execution_settings, file_settings, over_file
from airflow_hudi_maint.hooks.plan_settings import (
    SIZES,
    clustering_settings,
    clustering_strategy,
    partition_paths,
    scheduler_of,
)
from airflow_hudi_maint.operators.job import plan_owner
from airflow_hudi_maint.operators.rewriting import HudiRewritingOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context


class HudiClusterOperator(HudiRewritingOperator):
    """Cluster synchronously: schedule a plan, execute it in the same Spark application, and verify the result.

    What is worth rewriting is found without an engine; a run that finds nothing starts none. The plan is put on the
    timeline as HudiScheduleClusteringOperator does, but where Hudi has to make it, the application that asks for it
    executes it at once. Pending plans of ours are executed, too. A retry goes on with what its forerunner began: it
    finishes that plan, or finds it completed, and schedules no other.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``; ``instants`` are what was executed.

    .. seealso:: ``docs/execution.md``

    :param target_file_bytes: Size that rewritten files grow to; None for Hudi's default of 1 GiB. (templated)
    :param small_file_bytes: Base files below this size are rewritten; must be below the target; None for Hudi's
        default of 300 MiB. (templated)
    :param max_group_bytes: Most bytes of one clustering group, at least the target; None for Hudi's default of 2 GiB.
        (templated)
    :param max_groups: Most groups of one plan; None for as many as there are. (templated)
    :param min_input_files: Partitions with fewer eligible files are left alone; None for the default of 2. (templated)
    :param sort_columns: Columns to sort by: a list, JSON or names apart by commas. (templated)
    :param layout: ``linear``, ``zorder`` or ``hilbert``; the latter two need sort columns. (templated)
    :param execution_strategy: ``sort_and_size``, ``single_file_sort`` or ``binary_copy``. (templated)
    :param strategy: Which partitions come into question, as for HudiScheduleClusteringOperator. (templated)
    :param strategy_options: Options of the strategy: a mapping, or JSON of one. (templated)
    :param partitions: Partition paths to consider, as Hudi writes them; None for all. (templated)
    :param scheduler: ``native``, ``hudi`` or ``auto``: who writes the plan. (templated)
    :param plan_only: Whether to stop before the engine and report the plan. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiRewritingOperator.template_fields, *SIZES, "sort_columns", "layout", "execution_strategy", "strategy",
        "strategy_options", "partitions", "scheduler", "plan_only",
    )  # fmt: skip

    def __init__(
        self,
        *,
        target_file_bytes: int | str | None = None,
        small_file_bytes: int | str | None = None,
        max_group_bytes: int | str | None = None,
        max_groups: int | str | None = None,
        min_input_files: int | str | None = None,
        sort_columns: Sequence[str] | str | None = None,
        layout: str | None = None,
        execution_strategy: str | None = None,
        strategy: str = "size_based",
        strategy_options: Mapping[str, Any] | str | None = None,
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
        self.sort_columns = sort_columns
        self.layout = layout
        self.execution_strategy = execution_strategy
        self.strategy = strategy
        self.strategy_options = strategy_options
        self.partitions = partitions
        self.scheduler = scheduler
        self.plan_only = plan_only

    def execute(self, context: Context) -> dict[str, Any]:
        """Schedule the plan and execute it."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Cluster") as hook:
            file = file_settings(hook, self.settings_file)
            named = (*SIZES, "sort_columns", "layout", "execution_strategy")
            asked = over_file(file, **{name: getattr(self, name) for name in named})
            reported = maintenance.cluster(
                self.open(hook),
                now=self.now(),
                settings=clustering_settings(**{**dict.fromkeys(SIZES), **asked}),
                job=self.job(context),
                partitions=partition_paths(self.partitions),
                scheduler=scheduler_of(self.scheduler),
                owner=plan_owner(context),
                execution=execution_settings(
                    parallelism=self.parallelism,
                    read_parallelism=self.read_parallelism,
                    options=self.options,
                    file=file,
                ),
                verify=self.verification,
                dry_run=as_bool("plan_only", self.plan_only),
                **clustering_strategy(strategy=self.strategy, strategy_options=self.strategy_options),
            )
        return self.report(context, reported)
