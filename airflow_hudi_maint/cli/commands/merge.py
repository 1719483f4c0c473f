"""``airflow hudi merge``: merge the small files of a plain directory, print the plan of it, or undo it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import UsageError, hudi_command
from airflow_hudi_maint.cli.exit_codes import ExitCode
from airflow_hudi_maint.cli.gathering import now
from airflow_hudi_maint.cli.opening import absolute, say, say_warning, storage_options
from airflow_hudi_maint.cli.output import print_record, print_rows
from airflow_hudi_maint.core.model.units import counted
from airflow_hudi_maint.hooks.plain_files import merge_settings, open_plain_directory, plain_storage_options

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from airflow_hudi_maint.core.maintenance import MergeReported, MergeWorkspace, SparkMerging
    from airflow_hudi_maint.core.model.document import JsonObject
    from airflow_hudi_maint.core.model.merge_plan import MergePlan
    from airflow_hudi_maint.core.model.merge_settings import MergeSettings

_COLUMNS = ("directory", "output", "input_files", "input_bytes", "reason")


_MERGING = ("target_file_bytes", "small_file_bytes", "min_age_seconds", "format", "setting")
_ON_SPARK = ("hudi_conn_id", "job_timeout")
_OF_A_MERGE = ("groups", "files_before", "files_after", "bytes_before", "bytes_after", "plan_path")


@hudi_command
def merge(args: Namespace) -> ExitCode:
    """Merge, and print what was done."""
    from airflow_hudi_maint.core import maintenance

    _check(args)
    workspace = _open(args)
    if args.undo is not None:
        return _undo(args, workspace)
    reported = maintenance.merge_small_files(
        workspace,
        now=now(),
        settings=None if args.plan_path else _settings(args),
        plan_path=_document(args.plan_path) if args.plan_path else None,
        dry_run=args.dry_run,
        spark=_spark(args, workspace) if args.engine == "spark" and not args.dry_run else None,
    )
    if args.dry_run and reported.plan is not None:
        return _print_plan(args, reported.plan, path=reported.report.plan_path)
    return _print(args, reported)


def _undo(args: Namespace, workspace: MergeWorkspace) -> ExitCode:
    from airflow_hudi_maint.core import maintenance

    if not args.undo.endswith(".json"):
        run = None if args.undo == "last" else args.undo
        return _print(args, maintenance.undo_merge(workspace, now=now(), run=run))
    undone = maintenance.undo_plan(workspace, plan_path=_document(args.undo), now=now())
    rows = [one.report.summary() for one in undone]
    print_rows(rows, output=args.output, columns=("root", "run", "message"))
    return ExitCode.OK


def _check(args: Namespace) -> None:
    """Raise UsageError for arguments that would be passed over in silence."""
    merging, on_spark = _given(args, _MERGING), _given(args, _ON_SPARK)
    if args.undo is not None and args.dry_run:
        raise UsageError("--undo cannot be tried out: it moves nothing when it is refused")
    engine = ["--engine"] if args.engine != "embedded" else []
    if args.undo is not None and (merging or engine or args.plan_path):
        raise UsageError(f"--undo takes no {', '.join([*merging, *engine]) or '--plan-path'}")
    if args.plan_path and merging:
        raise UsageError(f"--plan-path names a plan, which has its own settings: leave out {', '.join(merging)}")
    if on_spark and not engine:
        raise UsageError(f"{', '.join(on_spark)} go with --engine spark")


def _given(args: Namespace, names: Sequence[str]) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name in names if getattr(args, name) is not None]


def _open(args: Namespace) -> MergeWorkspace:
    if args.storage_conn_id or args.hudi_conn_id:
        # As Airflow's own commands that read connections do: else those of the metadata database are not looked at.
        os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
    directory = absolute(args.directory)
    options = plain_storage_options(
        directory, storage_conn_id=args.storage_conn_id, storage_options=storage_options(args.storage_options)
    )
    return open_plain_directory(directory, storage_options=options, log=lambda line: say(args, line))


def _document(name: str) -> str:
    return absolute(name) if Path(name).exists() else name  # else below the place of the documents, or a URL


def _spark(args: Namespace, workspace: MergeWorkspace) -> SparkMerging:
    """Say how the job is run; the engine is made when there is something to merge."""
    from airflow_hudi_maint.core.maintenance import JobControl, SparkMerging
    from airflow_hudi_maint.hooks.hudi import HudiHook

    return SparkMerging(
        engine=lambda: HudiHook(args.hudi_conn_id).make_engine_for_files(workspace),
        job=JobControl(timeout_seconds=args.job_timeout),
    )


def _settings(args: Namespace) -> MergeSettings:
    pairs = [pair.partition("=") for pair in args.setting or ()]
    wrong = next((name for name, equals, _ in pairs if not equals), None)
    if wrong is not None:
        raise UsageError(f"--setting {wrong} is not of the form NAME=VALUE")
    return merge_settings(
        {name.strip(): value for name, _, value in pairs},
        target_file_bytes=args.target_file_bytes,
        small_file_bytes=args.small_file_bytes,
        min_age_seconds=args.min_age_seconds,
        formats=args.format,
    )


def _print(args: Namespace, reported: MergeReported) -> ExitCode:
    from airflow_hudi_maint.core.model.report import Outcome

    report = reported.report
    for warning in report.warnings:
        say_warning(warning)
    record = {**report.summary(), "report_path": reported.path}
    if args.output == "table":
        record = _for_people(args, record, plan=reported.plan)
    print_record(record, output=args.output)
    return _code(args, idle=report.outcome is Outcome.NOTHING_TO_DO)


def _for_people(args: Namespace, record: JsonObject, *, plan: MergePlan | None) -> JsonObject:
    """Leave out what an undo has no figures for, and say how a merge is undone."""
    if args.undo is not None:
        return {name: value for name, value in record.items() if name not in _OF_A_MERGE}
    if plan is None or record["run"] is None:
        return record
    days = plan.settings.trash_days
    how = f"airflow hudi merge {shlex.quote(args.directory)} --undo {record['run']}, for {counted(days, 'day')}"
    return {**record, "undo": how if days else "not possible, by trash_days=0"}


def _print_plan(args: Namespace, plan: MergePlan, *, path: str | None) -> ExitCode:
    for warning in plan.warnings:
        say_warning(warning)
    if args.output in ("json", "yaml"):
        print_record({**plan.to_json(), "plan_path": path}, output=args.output)
    else:
        if args.output == "table":
            print_record({**plan.summary(), "plan_path": path}, output="table")
        print_rows(list(_rows(plan)), output=args.output, columns=_COLUMNS)
    return _code(args, idle=not plan.groups)


def _rows(plan: MergePlan) -> Iterator[JsonObject]:
    """A row for each merged file, and for each reason to leave files of a directory alone."""
    for one in plan.directories:
        for group in one.groups:
            yield {
                "directory": one.path,
                "output": group.output_name,
                "input_files": len(group.inputs),
                "input_bytes": group.input_bytes,
                "reason": ", ".join(f"{name}: {value}" for name, value in group.detected.items()),
            }
        for left in one.left_alone:
            yield {
                "directory": one.path,
                "output": None,
                "input_files": left.files,
                "input_bytes": left.bytes,
                "reason": f"left alone: {left.reason}",
            }


def _code(args: Namespace, *, idle: bool) -> ExitCode:
    return ExitCode.NOTHING_TO_DO if args.exit_code and idle else ExitCode.OK
