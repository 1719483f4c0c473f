"""What the plan commands share: how a plan is printed, and what its exit code is."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.cli.exit_codes import ExitCode
from airflow_hudi_maint.cli.opening import say_warning
from airflow_hudi_maint.cli.output import print_record, print_rows

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_hudi_maint.core.model.document import JsonObject

_LEFT_ALONE = "keep"


def print_plan(
    args: Namespace, document: Mapping[str, Any], *, columns: Sequence[str], does_something: bool, path: str
) -> ExitCode:
    """Print a plan and return the exit code.

    ``json`` and ``yaml`` are the whole document. ``table`` has what the plan comes to and then its partitions,
    ``plain`` the partitions alone: those chosen and those that something holds back, with ``--all`` every one.
    Warnings go to stderr. ``path`` is where the plan was written, if it was.
    """
    for warning in document["warnings"]:
        say_warning(warning)
    plan_path = path if args.write else None
    if args.output in ("json", "yaml"):
        print_record({**_as_written(document, written=args.write), "plan_path": plan_path}, output=args.output)
    else:
        rows = [row for row in map(_row, document["entries"]) if args.all or row["decision"] != _LEFT_ALONE]
        if args.output == "table":
            instant = document["basis"]["watermark"]["requested_time"]
            stored = {"plan_path": path} if args.write else {}
            print_record({"base_instant": instant, **document["summary"], **stored}, output="table")
        if rows or args.output == "plain":
            print_rows(rows, output=args.output, columns=columns)
        else:
            sys.stdout.write("The plan leaves every partition as it is; --all prints why.\n")
    return ExitCode.NOTHING_TO_DO if args.exit_code and not does_something else ExitCode.OK


def _as_written(document: Mapping[str, Any], *, written: bool) -> JsonObject:
    """The document as it is stored; one that is not rests on statistics that are not stored either."""
    return dict(document) if written else {**document, "basis": {**document["basis"], "statistics_path": None}}


def _row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with counts of groups and of their files, instead of the groups themselves."""
    groups = entry.get("groups")
    if groups is None:
        return dict(entry)
    return {**entry, "groups": len(groups), "input_files": sum(len(group["inputs"]) for group in groups)}
