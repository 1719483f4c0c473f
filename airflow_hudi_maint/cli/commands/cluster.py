"""``airflow hudi cluster``: schedule and execute clustering, by the flags of Hudi's own clustering job.

Source: Hudi's ``HoodieClusteringJob`` of 0.15.0 to 1.2.0 (``hudi-utilities``).
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.cli.command import UsageError, hudi_command
from airflow_hudi_maint.cli.exit_codes import ExitCode
from airflow_hudi_maint.cli.gathering import now
from airflow_hudi_maint.cli.opening import absolute, say, say_warning, storage_options
from airflow_hudi_maint.cli.output import print_record
from airflow_hudi_maint.core.errors import InvalidSettingError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from airflow_hudi_maint.core.maintenance import StepReported, Workspace
    from airflow_hudi_maint.core.model.commit import PendingPlan
    from airflow_hudi_maint.core.model.plan import ClusteringSettings
    from airflow_hudi_maint.core.planning.execution_settings import ExecutionSettings

_OF_THE_DOCUMENT = ("kind", "version", "warnings")
_OF_AN_EXECUTION = ("layout", "execution_strategy", "target_file_bytes")
"""Settings of a properties file that Hudi reads when a plan is executed, beside when it is scheduled."""
SCHEDULE, EXECUTE, BOTH = "schedule", "execute", "scheduleAndExecute"


@hudi_command
def cluster(args: Namespace) -> ExitCode:
    """Schedule, execute, or both, and print what the step reports."""
    mode = _mode(args)
    fields, options = _properties(args)
    workspace = _open(args, options=options)
    _check_name(args.table_name, workspace=workspace)
    if mode != EXECUTE and args.instant_time:
        say_warning(f"--instant-time counts with --mode execute only; {mode} ignores it")
    if mode == SCHEDULE:
        reported = _schedule(args, workspace, settings=_settings(fields))
    elif mode == EXECUTE:
        reported = _execute(workspace, instant=args.instant_time, fields=fields)
    else:
        reported = _schedule_and_execute(args, workspace, fields=fields)
    return _print(args, reported)


def _mode(args: Namespace) -> str:
    """Take the mode as Hudi's job does: ``--mode`` goes over ``--schedule``, and without both it executes."""
    if args.mode is None:
        return SCHEDULE if args.schedule else EXECUTE
    known = {one.lower(): one for one in (SCHEDULE, EXECUTE, BOTH)}
    if args.mode.lower() not in known:
        raise UsageError(f"--mode {args.mode} is unknown; known are {', '.join(known.values())}")
    return known[args.mode.lower()]


def _open(args: Namespace, *, options: Mapping[str, str]) -> Workspace:
    """Open the table with an engine of the memory that is asked for."""
    base_path = args.base_path_flag or args.base_path
    if args.base_path_flag and args.base_path:
        raise UsageError(f"Two tables: {args.base_path} and --base-path {args.base_path_flag}")
    if not base_path and not args.conn_id:
        raise UsageError("No table: give --base-path, or --conn-id with a connection of type hudi that names one")
    if args.conn_id:
        # As Airflow's own commands that read connections do: else those of the metadata database are not looked at.
        os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
    from airflow_hudi_maint.hooks.hudi import HudiHook

    hook = HudiHook(args.conn_id, base_path=absolute(base_path) if base_path else None)
    settings = hook.settings
    memory = (
        {"driver_memory": args.spark_memory}  # one JVM does everything
        if settings.engine == "local"
        else {"spark_conf": {**settings.spark_conf, "spark.executor.memory": args.spark_memory}}
    )
    changed: dict[str, Any] = memory if args.spark_memory else {}
    hook.settings = replace(
        settings,
        storage_options={**settings.storage_options, **storage_options(args.storage_options)},
        timeline_zone=args.timezone or settings.timeline_zone,
        write_options={**settings.write_options, **options},
        master=args.spark_master or settings.master,
        **changed,
    )
    return hook.workspace(log=lambda line: say(args, line))


def _check_name(given: str | None, *, workspace: Workspace) -> None:
    """Raise InvalidSettingError for a table of another name: the path is then probably wrong, too."""
    actual = workspace.table.config.name
    if given is not None and given != actual:
        raise InvalidSettingError(
            f"--table-name {given} is not the name of the table at {workspace.table.base_path}, which is {actual}; "
            "is it the right path?"
        )


def _properties(args: Namespace) -> tuple[dict[str, object], dict[str, str]]:
    """Read ``--props`` and, over it, each ``--hoodie-conf``: fields of ClusteringSettings, and options of the job."""
    from airflow_hudi_maint.core.planning.clustering_properties import clustering_settings_from_properties
    from airflow_hudi_maint.core.storage.properties_files import read_properties_file

    fields: dict[str, object] = {}
    options: dict[str, str] = {}
    if args.props:
        file = read_properties_file(absolute(args.props), storage_options=storage_options(args.storage_options))
        found = clustering_settings_from_properties(file.as_dict(), name=args.props, lines=file.lines())
        fields, options = dict(found.settings), dict(found.options)
    pairs = dict(_pair(text) for text in args.hoodie_conf or ())
    more = clustering_settings_from_properties(pairs, name="--hoodie-conf")
    return {**fields, **more.settings}, {**options, **more.options}


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--hoodie-conf {text!r} is no key=value")
    return key.strip(), value.strip()


def _settings(fields: Mapping[str, Any]) -> ClusteringSettings:
    from airflow_hudi_maint.core.model.plan import ClusteringSettings

    return ClusteringSettings(**fields)


def _schedule(args: Namespace, workspace: Workspace, *, settings: ClusteringSettings) -> StepReported:
    from airflow_hudi_maint.core import maintenance

    job = maintenance.JobControl()
    return maintenance.schedule_clustering(workspace, now=now(), settings=settings, job=job, partitions=args.partition)


def _execute(workspace: Workspace, *, instant: str | None, fields: Mapping[str, Any]) -> StepReported:
    """Execute this plan, or the earliest that is pending, whoever made it, as Hudi's job does."""
    from airflow_hudi_maint.core import maintenance

    pending = _clusterings(workspace)
    plans = [one for one in pending if one.instant.requested_time == instant] if instant else pending[:1]
    return maintenance.execute_clustering(
        workspace,
        now=now(),
        job=maintenance.JobControl(),
        instants=[instant] if instant else [one.instant.requested_time for one in plans],
        settings=_executing(fields, plans=plans),
    )


def _executing(fields: Mapping[str, Any], *, plans: Sequence[PendingPlan]) -> ExecutionSettings:
    """What an execution takes of the properties, as Hudi's job does: layout, strategy and target, not the sort columns.

    Hudi sorts by the columns of the plan, whatever the properties say then; that they say another thing is warned of.
    """
    from airflow_hudi_maint.core.planning.execution_settings import ExecutionSettings, sort_columns_of

    asked = fields.get("sort_columns")
    for plan in plans:
        planned = sort_columns_of(plan)
        if asked is not None and asked != planned:
            said = ", ".join(planned) or "no column"
            say_warning(
                f"clustering plan {plan.instant.requested_time} sorts by {said}, as it was scheduled; the sort columns "
                f"{', '.join(asked) or '(none)'} count when a plan is scheduled"
            )
    chosen: dict[str, Any] = {name: fields.get(name) for name in _OF_AN_EXECUTION}
    if not all(map(sort_columns_of, plans)):
        chosen["layout"] = None  # without a column there is nothing to lay out, and Hudi does not ask for it
    return ExecutionSettings(**chosen)


def _schedule_and_execute(args: Namespace, workspace: Workspace, *, fields: Mapping[str, Any]) -> StepReported:
    from airflow_hudi_maint.core import maintenance
    from airflow_hudi_maint.core.maintenance.cluster import cluster as cluster_at_once
    from airflow_hudi_maint.core.model.instant import State

    inflight = [one for one in _clusterings(workspace) if one.instant.state is State.INFLIGHT]
    if args.retry_last_failed_clustering_job and inflight:
        after = timedelta(milliseconds=args.job_max_processing_time_ms)
        return _retry(workspace, plan=inflight[-1], after=after, fields=fields)
    return cluster_at_once(
        workspace, now=now(), settings=_settings(fields), job=maintenance.JobControl(), partitions=args.partition
    )


def _retry(workspace: Workspace, *, plan: PendingPlan, after: timedelta, fields: Mapping[str, Any]) -> StepReported:
    """Execute a clustering again that died, in place of planning another: Hudi rolls back what it left first."""
    from airflow_hudi_maint.core import maintenance
    from airflow_hudi_maint.core.model.pending_care import ResolveAction
    from airflow_hudi_maint.core.planning.pending_care import ResolveSettings

    return maintenance.resolve_pending(
        workspace,
        now=now(),
        settings=ResolveSettings(action=ResolveAction.FINISH, older_than=after, any_owner=True),
        job=maintenance.JobControl(),
        instants=[plan.instant.requested_time],
        execution=_executing(fields, plans=[plan]),
    )


def _clusterings(workspace: Workspace) -> list[PendingPlan]:
    from airflow_hudi_maint.core.model.commit import PlanKind

    plans = workspace.table.pending_plans(workspace.table.timeline())
    return [one for one in plans if one.kind is PlanKind.CLUSTERING]


def _print(args: Namespace, reported: StepReported) -> ExitCode:
    from airflow_hudi_maint.core.model.report import Outcome

    report = reported.report
    for warning in report.warnings:
        say_warning(warning)
    record = {name: value for name, value in report.to_json().items() if name not in _OF_THE_DOCUMENT}
    if args.output == "table":
        record["partitions"] = len(report.partitions)
    print_record({**record, "report_path": reported.path}, output=args.output)
    idle = args.exit_code and report.outcome is Outcome.NOTHING_TO_DO
    return ExitCode.NOTHING_TO_DO if idle else ExitCode.OK
