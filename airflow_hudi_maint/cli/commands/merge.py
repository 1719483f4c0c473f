"""``airflow hudi merge``: merge the small files of a plain directory, print the plan of it, or undo it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import UsageError, hudi_command
from airflow_hudi_maint.cli.exit_codes import ExitCode
from airflow_hudi_maint.cli.gathering import now
from airflow_hudi_maint.cli.opening import absolute, say, say_warning, storage_options
from airflow_hudi_maint.cli.output import print_record, print_rows
from airflow_hudi_maint.hooks.plain_files import merge_settings, open_plain_directory

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from airflow_hudi_maint.core.maintenance import MergeReported
    from airflow_hudi_maint.core.model.document import JsonObject
    from airflow_hudi_maint.core.model.merge_plan import MergePlan
    from airflow_hudi_maint.core.model.merge_settings import MergeSettings

_COLUMNS = ("directory", "output", "input_files", "input_bytes", "reason")


@hudi_command
def merge(args: Namespace) -> ExitCode:
    """Merge, and print what was done."""
    from airflow_hudi_maint.core import maintenance

    workspace = open_plain_directory(
        absolute(args.directory),
        storage_options=storage_options(args.storage_options),
        log=lambda line: say(args, line),
    )
    if args.undo is not None:
        if args.dry_run:
            raise UsageError("--undo cannot be tried out: it moves nothing when it is refused")
        run = None if args.undo == "last" else args.undo
        return _print(args, maintenance.undo_merge(workspace, now=now(), run=run))
    reported = maintenance.merge_small_files(workspace, now=now(), settings=_settings(args), dry_run=args.dry_run)
    if reported.plan is not None:
        return _print_plan(args, reported.plan, path=reported.report.plan_path)
    return _print(args, reported)


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
    print_record({**report.summary(), "report_path": reported.path}, output=args.output)
    return _code(args, idle=report.outcome is Outcome.NOTHING_TO_DO)


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
