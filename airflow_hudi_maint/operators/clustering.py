"""Schedule and execute clustering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_bool, as_instants, as_result_field
from airflow_hudi_maint.hooks.plan_settings import SIZES, clustering_settings, partition_paths
from airflow_hudi_maint.operators.job import HudiJobOperator, step_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context


class HudiScheduleClusteringOperator(HudiJobOperator):
    """Put a clustering plan on the timeline, to be executed by HudiExecuteClusteringOperator or by Hudi itself.

    File groups are looked at without an engine; one is started only when some are worth rewriting, and is given their
    partitions by name. A pending plan of ours is returned, not made again, so a second run before the execution changes
    nothing. Partitions that another pending plan holds are left out and reported; a live writer without a lock provider
    fails the task, to be retried.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``; ``instants`` are the pending ones.

    .. seealso:: ``docs/operators.md``

    :param target_file_bytes: Size that rewritten files grow to; None for Hudi's default of 1 GiB. (templated)
    :param small_file_bytes: Base files below this size are rewritten; must be below the target; None for Hudi's
        default of 300 MiB. (templated)
    :param max_group_bytes: Most bytes of one clustering group, at least the target; None for Hudi's default of 2 GiB.
        (templated)
    :param max_groups: Most groups of one plan; None for as many as there are. (templated)
    :param min_input_files: Partitions with fewer eligible files are left alone; None for the default of 2. (templated)
    :param sort_columns: Columns to sort by: a list, JSON or names apart by commas. (templated)
    :param layout: ``linear``, ``zorder`` or ``hilbert``; the latter two need sort columns. (templated)
    :param partitions: Partition paths to consider, as Hudi writes them; None for all. (templated)
    :param plan_only: Whether to stop before the engine and report the plan. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiJobOperator.template_fields, *SIZES, "sort_columns", "layout", "partitions", "plan_only",
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
        layout: str = "linear",
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
        self.sort_columns = sort_columns
        self.layout = layout
        self.partitions = partitions
        self.plan_only = plan_only

    def execute(self, context: Context) -> dict[str, Any]:
        """Schedule the plan."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Schedule clustering") as hook:
            sizes = {name: getattr(self, name) for name in SIZES}
            reported = maintenance.schedule_clustering(
                self.open(hook),
                now=self.now(),
                settings=clustering_settings(**sizes, sort_columns=self.sort_columns, layout=self.layout),
                job=self.job(context),
                partitions=partition_paths(self.partitions),
                dry_run=as_bool("plan_only", self.plan_only),
            )
        return self.report(context, reported)


class HudiExecuteClusteringOperator(HudiJobOperator):
    """Execute pending clustering plans.

    A retry or a second run reads the timeline first: a completed instant is success, a pending one is finished, and
    nothing is done twice. Rows are the same afterwards, in other files. An update of a file group under rewriting is
    decided by Hudi's conflict resolution; when the plan loses, the task fails and can be retried.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``; ``instants`` are what was executed.

    .. seealso:: ``docs/operators.md``

    :param instants: Instants to execute: a list, JSON, texts apart by commas, or the result of
        HudiScheduleClusteringOperator. Nothing (also the result of a task that was skipped) stands for the oldest
        pending plan of ours. (templated)
    :param plan_only: Whether to execute nothing: after a dry run of the schedule there is no plan to execute, so the
        task has nothing to do. Its result then has no report. (templated)
    """

    template_fields: Sequence[str] = (*HudiJobOperator.template_fields, "instants", "plan_only")

    def __init__(self, *, instants: Any = None, plan_only: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.instants = instants
        self.plan_only = plan_only

    def execute(self, context: Context) -> dict[str, Any]:
        """Execute the plans."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Execute clustering") as hook:
            instants = as_instants("instants", as_result_field("instants", self.instants, field="instants"))
            if not as_bool("plan_only", self.plan_only):
                reported = maintenance.execute_clustering(
                    self.open(hook), now=self.now(), job=self.job(context), instants=instants
                )
                return self.report(context, reported)
            result = _dry_run_result(hook.base_path, instants=instants)
        return self.hand_on(context, result, idle=result["message"])


def _dry_run_result(base_path: str, *, instants: tuple[str, ...]) -> dict[str, Any]:
    from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport

    report = StepReport(
        step=Step.EXECUTE_CLUSTERING,
        outcome=Outcome.DRY_RUN,
        message="Dry run: no clustering plan is executed",
        base_path=base_path,
        base_instant="",
        instants=instants,
    )
    return step_result(report, path=None)
