"""Schedule and execute compaction of merge-on-read tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_bool, as_instants, as_result_field
from airflow_hudi_maint.hooks.compaction_settings import LIMITS, compaction_settings
from airflow_hudi_maint.hooks.execution_settings import check_same_table
from airflow_hudi_maint.hooks.plan_settings import partition_paths
from airflow_hudi_maint.operators.job import HudiJobOperator, plan_owner, step_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context


class HudiScheduleCompactionOperator(HudiJobOperator):
    """Put a compaction plan on the timeline of a merge-on-read table, to be executed by HudiExecuteCompactionOperator.

    File groups are looked at without an engine; one is started only when some have log files that reach the limits, and
    is given their partitions by name. A pending plan of ours is returned, not made again. File groups that another
    pending plan holds are left out and reported. A copy-on-write table has nothing to compact, and the task skips
    itself. A live writer without a lock provider fails the task, to be retried.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``; ``instants`` are the pending ones.

    .. seealso:: ``docs/compaction.md``

    :param min_delta_commits: Delta commits of the table since its last compaction, at least; None for no such limit.
        (templated)
    :param min_log_files: Log files of a file group, at least; None for one. (templated)
    :param min_log_bytes: Bytes of the log files of a file group, at least; None for no such limit. (templated)
    :param min_log_ratio: Bytes of log files divided by bytes of base files, of a partition, at least; None for no such
        limit. (templated)
    :param max_input_bytes: Most bytes that one plan reads; partitions with most bytes in log files go first. None for
        no limit. (templated)
    :param partitions: Partition paths to consider, as Hudi writes them; None for all. (templated)
    :param plan_only: Whether to stop before the engine and report the plan. (templated)
    """

    template_fields: Sequence[str] = (*HudiJobOperator.template_fields, *LIMITS, "partitions", "plan_only")

    def __init__(
        self,
        *,
        min_delta_commits: int | str | None = None,
        min_log_files: int | str | None = None,
        min_log_bytes: int | str | None = None,
        min_log_ratio: float | str | None = None,
        max_input_bytes: int | str | None = None,
        partitions: Sequence[str] | str | None = None,
        plan_only: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.min_delta_commits = min_delta_commits
        self.min_log_files = min_log_files
        self.min_log_bytes = min_log_bytes
        self.min_log_ratio = min_log_ratio
        self.max_input_bytes = max_input_bytes
        self.partitions = partitions
        self.plan_only = plan_only

    def execute(self, context: Context) -> dict[str, Any]:
        """Schedule the plan."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Schedule compaction") as hook:
            reported = maintenance.schedule_compaction(
                self.open(hook),
                now=self.now(),
                settings=compaction_settings(**{name: getattr(self, name) for name in LIMITS}),
                job=self.job(context),
                partitions=partition_paths(self.partitions),
                owner=plan_owner(context),
                dry_run=as_bool("plan_only", self.plan_only),
            )
        return self.report(context, reported)


class HudiExecuteCompactionOperator(HudiJobOperator):
    """Execute pending compaction plans: merge log files into new base files.

    A retry or a second run reads the timeline first: a completed instant is success, a pending one is finished, and
    nothing is done twice. Rows are the same afterwards. Writers may go on meanwhile where a lock provider is
    configured; their log files belong to the new slices. Afterwards the commit has to have written every file group of
    the plan, and none of its log files may be read any more; otherwise the task fails for good.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``; ``instants`` are what was executed.

    .. seealso:: ``docs/compaction.md``

    :param instants: Instants to execute: a list, JSON, texts apart by commas, or the result of
        HudiScheduleCompactionOperator. Nothing (also the result of a task that was skipped) stands for the oldest
        pending plan of ours. (templated)
    :param plan_only: Whether to execute nothing, for a task after a dry run of the schedule. Its result then has no
        report. (templated)
    """

    template_fields: Sequence[str] = (*HudiJobOperator.template_fields, "instants", "plan_only")

    def __init__(self, *, instants: Any = None, plan_only: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.instants = instants
        self.plan_only = plan_only

    def execute(self, context: Context) -> dict[str, Any]:
        """Execute the plans."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Execute compaction") as hook:
            instants = as_instants("instants", as_result_field("instants", self.instants, field="instants"))
            check_same_table("instants", self.instants, base_path=hook.base_path)
            if not as_bool("plan_only", self.plan_only):
                reported = maintenance.execute_compaction(
                    self.open(hook), now=self.now(), job=self.job(context), instants=instants
                )
                return self.report(context, reported)
            result = _dry_run_result(hook.base_path, instants=instants)
        return self.hand_on(context, result, idle=result["message"])


def _dry_run_result(base_path: str, *, instants: tuple[str, ...]) -> dict[str, Any]:
    from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport

    report = StepReport(
        step=Step.EXECUTE_COMPACTION,
        outcome=Outcome.DRY_RUN,
        message="Dry run: no compaction plan is executed",
        base_path=base_path,
        base_instant="",
        instants=instants,
    )
    return step_result(report, path=None)
