"""The steps that keep one table healthy, as a task group for any DAG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import TaskGroup, TriggerRule, chain

from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.operators.clustering import HudiExecuteClusteringOperator, HudiScheduleClusteringOperator
from airflow_hudi_maint.operators.compaction import HudiExecuteCompactionOperator, HudiScheduleCompactionOperator
from airflow_hudi_maint.operators.expiry import HudiExpirePartitionsOperator, HudiPlanExpiryOperator
from airflow_hudi_maint.operators.report import HudiReportOperator
from airflow_hudi_maint.operators.statistics import HudiGatherStatisticsOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Asset, BaseOperator


def hudi_maintenance(
    group_id: str = "hudi_maintenance",
    *,
    hudi_conn_id: str | None = HudiHook.default_conn_name,
    base_path: str | None = None,
    expire: bool | str = True,
    compact: bool | str = True,
    schedule_clustering: bool | str = True,
    execute_clustering: bool | str = True,
    report: bool | str = True,
    plan_only: bool | str = False,
    statistics_mode: str = "auto",
    policies: Sequence[Mapping[str, object]] | str | None = None,
    guards: Mapping[str, object] | str | None = None,
    savepoint: bool | str = False,
    on_changed: str = "refuse",
    policy_file: str | None = None,
    compaction: Mapping[str, Any] | None = None,
    clustering: Mapping[str, Any] | None = None,
    job_timeout: object = None,
    report_title: str | None = None,
    outlets: Sequence[Asset] = (),
    default_args: dict[str, Any] | None = None,
    prefix_group_id: bool = True,
) -> TaskGroup:
    """Statistics → plan expiry → expire → compact → schedule clustering → execute clustering → statistics → report.

    A step that is switched off or has nothing to do skips itself and says why; the steps after it run all the same.
    When a task before the group is skipped, or a branch goes elsewhere, the whole group is skipped. When a step fails,
    the later ones do not run, but the report is written, and the task ``done``, which comes last, fails the group;
    without the first statistics there is no report. Every setting may be a template. A step refuses to
    start beside a write of another run that it sees, and beside a running job on the same plan; what starts in the
    same second is not seen, so give the DAG ``max_active_runs=1``, and a table one such DAG. Compaction comes before
    clustering, which leaves file groups alone that a pending plan holds; on a copy-on-write table it skips itself.

    :param group_id: Id of the group.
    :param hudi_conn_id: Connection of type ``hudi``; None for none.
    :param base_path: Base path of the table; None for the connection's.
    :param expire: Whether to plan and apply partition expiry.
    :param compact: Whether to schedule and execute compaction, of a merge-on-read table.
    :param schedule_clustering: Whether to put a clustering plan on the timeline.
    :param execute_clustering: Whether to execute the plan, or the oldest pending one of ours.
    :param report: Whether to write the report.
    :param plan_only: Whether to plan only, and change nothing on the table.
    :param statistics_mode: ``auto``, ``full`` or ``incremental``.
    :param policies: RFC-65 policies; None for those in the table's ``hoodie.properties``.
    :param guards: Limits of an expiry run.
    :param savepoint: Whether a drop makes a savepoint first, to be undone by; release it with
        HudiReleaseSavepointsOperator, which is not part of the group.
    :param on_changed: What becomes of partitions that changed since the plan: ``refuse`` or ``leave_out``.
    :param policy_file: Path or URL of a policy file instead of ``policies``; its guards and holds count as well.
    :param compaction: Arguments of HudiScheduleCompactionOperator: its limits and partitions.
    :param clustering: Arguments of HudiScheduleClusteringOperator: sizes in bytes, sort columns, layout, partitions.
    :param job_timeout: Longest time of one Spark job, a timedelta or seconds; None for no limit.
    :param report_title: Title of the report; None for one with the table's name.
    :param outlets: Assets that the report's task updates.
    :param default_args: Arguments of every task, such as ``retries`` or ``pool``.
    :param prefix_group_id: Whether task ids begin with the group's.
    """
    table: dict[str, Any] = {"hudi_conn_id": hudi_conn_id, "base_path": base_path}
    step = {**table, "trigger_rule": TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS}
    job = {**step, "job_timeout": job_timeout, "plan_only": plan_only}
    small_file_bytes = (clustering or {}).get("small_file_bytes")
    defaults: Any = default_args or {}
    with TaskGroup(group_id, prefix_group_id=prefix_group_id, default_args=defaults) as group:
        before = HudiGatherStatisticsOperator(
            task_id="gather_statistics", mode=statistics_mode, small_file_bytes=small_file_bytes, **table
        )
        limits: dict[str, Any] = {"guards": guards, "policy_file": policy_file}
        # A guard that trips is the next task's: it has the plan, enforces the same guards, and the report follows it.
        plan = HudiPlanExpiryOperator(
            task_id="plan_expiry", enabled=expire, policies=policies, on_guard="warn", **limits, **step
        )
        expired = HudiExpirePartitionsOperator(
            task_id="expire_partitions",
            enabled=expire,
            plan_path=plan.output,
            savepoint=savepoint,
            on_changed=on_changed,
            **limits,
            **job,
        )
        compacting = HudiScheduleCompactionOperator(
            task_id="schedule_compaction", enabled=compact, **(compaction or {}), **job
        )
        compacted = HudiExecuteCompactionOperator(
            task_id="execute_compaction", enabled=compact, instants=compacting.output, **job
        )
        scheduled = HudiScheduleClusteringOperator(
            task_id="schedule_clustering", enabled=schedule_clustering, **(clustering or {}), **job
        )
        executed = HudiExecuteClusteringOperator(
            task_id="execute_clustering", enabled=execute_clustering, instants=scheduled.output, **job
        )
        after = HudiGatherStatisticsOperator(
            task_id="gather_statistics_after", small_file_bytes=small_file_bytes, **step
        )
        written = HudiReportOperator(
            task_id="report",
            enabled=report,
            title=report_title,
            before_statistics=_result_of(before),
            step_reports=[_result_of(one) for one in (expired, compacting, compacted, scheduled, executed)],
            watched_tasks=[one.task_id for one in (plan, expired, compacting, compacted, scheduled, executed, after)],
            expiry_plan=_result_of(plan),
            clustering_plan=_result_of(scheduled),
            policies=policies,
            **limits,
            outlets=list(outlets),
            trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
            **table,
        )
        # The report succeeds after failures as well; if it came last, a failed run would look fine.
        done = EmptyOperator(task_id="done", trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS)
        steps = (plan, expired, compacting, compacted, scheduled, executed, after)
        _order(before, steps=steps, report=written, done=done)
    return group


def _order(before: BaseOperator, *, steps: Sequence[BaseOperator], report: BaseOperator, done: BaseOperator) -> None:
    """Chain the steps, each directly behind ``before`` as well.

    That one never skips itself. So each step sees one success at least when the group runs, and none when something
    before the group was skipped, which tells that skip from the skips of steps with nothing to do.
    """
    chain(before, *steps)
    [before, steps[-1]] >> report
    before >> [*steps[1:], done]
    [*steps, report] >> done


def _result_of(task: BaseOperator) -> str:
    """Return a template of the task's result as JSON, null without one.

    ``task.output`` would put the task directly before the report, whose trigger rule lets no skipped task stand there.
    """
    return f"{{{{ ti.xcom_pull(task_ids='{task.task_id}', map_indexes=ti.map_index) | tojson }}}}"
