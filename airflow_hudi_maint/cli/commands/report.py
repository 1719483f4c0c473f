"""``airflow hudi report``: the HTML page about a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import hudi_command
from airflow_hudi_maint.cli.gathering import now
from airflow_hudi_maint.cli.opening import absolute, open_table
from airflow_hudi_maint.cli.output import print_record
from airflow_hudi_maint.cli.progress import progress
from airflow_hudi_maint.core.errors import InvalidSettingError

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_hudi_maint.core.maintenance import Workspace

_STDOUT = "-"


@hudi_command
def report(args: Namespace) -> None:
    """Write the page: where a task would, or into ``--output-file`` and nothing else anywhere."""
    from airflow_hudi_maint.core import maintenance

    workspace = open_table(args, writes=args.output_file is None)
    before, expiry_plan, clustering_plan = (
        _document(workspace, name) for name in (args.before, args.expiry_plan, args.clustering_plan)
    )
    steps = [_document(workspace, name) for name in args.step_report or ()]
    with progress(workspace.table.storage.requests):
        written = maintenance.write_report(
            workspace,
            now=now(),
            title=args.title,
            before_statistics_path=before,
            report_paths=tuple(filter(None, steps)),
            expiry_plan_path=expiry_plan,
            clustering_plan_path=clustering_plan,
        )
    if args.output_file == _STDOUT:
        sys.stdout.write(written.page)
        return
    path = _written(args.output_file, page=written.page) if args.output_file else written.path
    print_record({"report_path": path, "summary": written.summary}, output=args.output)


def _document(workspace: Workspace, name: str | None) -> str | None:
    """Check a document that the command line names: a task leaves a broken one out, a person wants to hear of it."""
    if name is None:
        return None
    path = absolute(name) if Path(name).exists() else name  # else below the place of the documents, or a URL
    workspace.documents.read(path)
    return path


def _written(name: str, *, page: str) -> str:
    path = Path(name).absolute()
    try:
        path.write_bytes(page.encode("utf-8", "backslashreplace"))
    except OSError as error:
        msg = f"--output-file={name} cannot be written: {error}"
        raise InvalidSettingError(msg) from error
    return str(path)
