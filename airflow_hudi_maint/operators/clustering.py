"""Schedule and execute clustering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_bool, as_instants, as_result_field
from airflow_hudi_maint.hooks.execution_settings import (
    check_same_table,
    execution_settings,
    file_settings,
    over_file,
)
from airflow_hudi_maint.hooks.plan_settings import (
    SIZES,
    clustering_settings,
    clustering_strategy,
    partition_paths,
    scheduler_of,
)
from airflow_hudi_maint.operators.job import HudiJobOperator, plan_owner, step_result
from airflow_hudi_maint.operators.rewriting import HudiRewritingOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context


class HudiScheduleClusteringOperator(HudiJobOperator):
    """Put a clustering plan on the timeline, to be executed by HudiExecuteClusteringOperator or by Hudi itself.

    File groups are looked at without an engine. Where nobody else can be writing, the plan is put on the timeline
    without one, too; else Hudi is asked, and given the partitions by name. A pending plan of ours is returned, not made
    again, so a second run before the execution changes nothing. Partitions that another pending plan holds are left out
    and reported; a live writer without a lock provider fails the task, to be retried.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``; ``instants`` are the pending ones.
    With a new plan also ``scheduler``, the way that was taken.

    .. seealso:: ``docs/operators.md``

    :param target_file_bytes: Size that rewritten files grow to; None for Hudi's default of 1 GiB. (templated)
    :param small_file_bytes: Base files below this size are rewritten; must be below the target; None for Hudi's
        default of 300 MiB. (templated)
    :param max_group_bytes: Most bytes of one clustering group, at least the target; None for Hudi's default of 2 GiB.
        (templated)
    :param max_groups: Most groups of one plan; None for as many as there are. (templated)
    :param min_input_files: Partitions with fewer eligible files are left alone; None for the default of 2. (templated)
    :param sort_columns: Columns to sort by: a list, JSON or names apart by commas. (templated)
    :param layout: ``linear``, ``zorder`` or ``hilbert``; the latter two need sort columns; None for linear. (templated)
    :param execution_strategy: How files are rewritten: ``sort_and_size``, ``single_file_sort`` (each file for itself;
        needs sort columns) or ``binary_copy`` (without decoding rows or sorting; bundles from 1.1 on). (templated)
    :param strategy: Which partitions come into question, and which first: ``size_based`` (all), ``recent_days``,
        ``selected_partitions``, ``day_rolling``, ``largest``, ``cold``, ``benefit``, or the import path of a class of
        yours. (templated)
    :param strategy_options: Options of the strategy: a mapping, or JSON of one. (templated)
    :param partitions: Partition paths to consider, as Hudi writes them; None for all. (templated)
    :param plan_only: Whether to stop before the engine and report the plan. (templated)
    :param scheduler: ``native`` writes the plan as it was shown, without an engine, and refuses where that is not safe;
        ``hudi`` has Hudi make it; ``auto`` takes native where that is safe. (templated)
    :param settings_file: Path or URL of a properties file of settings, as Hudi's own clustering job takes one; what is
        given as an argument wins over it. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiJobOperator.template_fields, *SIZES, "sort_columns", "layout", "execution_strategy", "strategy",
        "strategy_options", "partitions", "plan_only", "scheduler", "settings_file",
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
        plan_only: bool | str = False,
        scheduler: str = "auto",
        settings_file: str | None = None,
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
        self.plan_only = plan_only
        self.scheduler = scheduler
        self.settings_file = settings_file

    def execute(self, context: Context) -> dict[str, Any]:
        """Schedule the plan."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Schedule clustering") as hook:
            named = (*SIZES, "sort_columns", "layout", "execution_strategy")
            file = file_settings(hook, self.settings_file)
            asked = over_file(file, **{name: getattr(self, name) for name in named})
            if file.options:
                self.log.info("%s: for the execution alone: %s", self.settings_file, ", ".join(sorted(file.options)))
            reported = maintenance.schedule_clustering(
                self.open(hook),
                now=self.now(),
                settings=clustering_settings(**{**dict.fromkeys(SIZES), **asked}),
                job=self.job(context),
                partitions=partition_paths(self.partitions),
                dry_run=as_bool("plan_only", self.plan_only),
                scheduler=scheduler_of(self.scheduler),
                owner=plan_owner(context),
                **clustering_strategy(strategy=self.strategy, strategy_options=self.strategy_options),
            )
        return self.report(context, reported)


class HudiExecuteClusteringOperator(HudiRewritingOperator):
    """Execute pending clustering plans, and verify the result.

    A retry or a second run reads the timeline first: a completed instant is success, a pending one is finished, and
    nothing is done twice. Rows are the same afterwards, in other files, which is verified; a difference fails the task
    for good and says how to roll back. An update of a file group under rewriting is decided by Hudi's conflict
    resolution; when the plan loses, the task fails and can be retried.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``; ``instants`` are what was executed.

    .. seealso:: ``docs/execution.md``

    :param instants: Instants to execute: a list, JSON, texts apart by commas, or the result of
        HudiScheduleClusteringOperator. Nothing (also the result of a task that was skipped) stands for the oldest
        pending plan of ours. (templated)
    :param sort_columns: The plan's sort columns, to be sure of them: a contradiction fails the task. (templated)
    :param layout: The plan's layout, likewise. For a plan that is not ours it is chosen here. (templated)
    :param execution_strategy: The plan's execution strategy, likewise. (templated)
    :param plan_only: Whether to execute nothing: after a dry run of the schedule there is no plan to execute, so the
        task has nothing to do. Its result then has no report. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiRewritingOperator.template_fields, "instants", "sort_columns", "layout", "execution_strategy", "plan_only",
    )  # fmt: skip

    def __init__(
        self,
        *,
        instants: Any = None,
        sort_columns: Sequence[str] | str | None = None,
        layout: str | None = None,
        execution_strategy: str | None = None,
        plan_only: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.instants = instants
        self.sort_columns = sort_columns
        self.layout = layout
        self.execution_strategy = execution_strategy
        self.plan_only = plan_only

    def execute(self, context: Context) -> dict[str, Any]:
        """Execute the plans."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Execute clustering") as hook:
            instants = as_instants("instants", as_result_field("instants", self.instants, field="instants"))
            check_same_table("instants", self.instants, base_path=hook.base_path)
            if not as_bool("plan_only", self.plan_only):
                file = file_settings(hook, self.settings_file)
                named = ("sort_columns", "layout", "execution_strategy")
                asked = over_file(file, **{name: getattr(self, name) for name in named})
                reported = maintenance.execute_clustering(
                    self.open(hook),
                    now=self.now(),
                    job=self.job(context),
                    instants=instants,
                    settings=execution_settings(
                        **{name: asked.get(name) for name in (*named, "target_file_bytes")},
                        parallelism=self.parallelism,
                        read_parallelism=self.read_parallelism,
                        options=self.options,
                        file=file,
                    ),
                    verify=self.verification,
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
