"""``airflow hudi small-files``: how many small files a table has and why, and what the next insert would make."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.command import hudi_command
from airflow_hudi_maint.cli.exit_codes import ExitCode
from airflow_hudi_maint.cli.gathering import now
from airflow_hudi_maint.cli.opening import open_table
from airflow_hudi_maint.cli.output import limited, print_record, print_rows
from airflow_hudi_maint.cli.progress import progress
from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_object

if TYPE_CHECKING:
    from argparse import Namespace

    from airflow_hudi_maint.core.maintenance import Workspace
    from airflow_hudi_maint.core.model.diagnosis import SmallFileDiagnosis
    from airflow_hudi_maint.core.model.document import JsonMapping

_RAW_COLUMNS = ("partition", "files", "small_files", "bytes", "small_bytes", "wasted_opens", "causes")


@hudi_command
def small_files(args: Namespace) -> ExitCode:
    """Diagnose the table's small files and print what was found; the document is stored with ``--write`` only."""
    opened = open_table(args, writes=args.write)
    workspace = replace(opened, log=lambda _: None)  # what a task would log is what is printed here
    options = {key: str(value) for key, value in as_object("--writer-options", args.writer_options).items()}
    if args.predict_inserts is not None:
        return _predict(args, workspace, options=options)
    from airflow_hudi_maint.core import maintenance

    with progress(workspace.table.storage.requests):
        found = maintenance.diagnose_small_files(
            workspace,
            now=now(),
            partitions=args.partition,
            small_file_bytes=args.small_file_bytes,
            writer_options=options,
            hudi_version=args.hudi_version,
        )
    if args.output in ("json", "yaml"):
        path = found.path if args.write else None
        print_record({**found.diagnosis.to_json(), "diagnosis_path": path}, output=args.output)
    elif args.output == "plain":
        rows = [one.to_json() for one in found.diagnosis.worst_first]
        print_rows(limited(rows, args), output="plain", columns=_RAW_COLUMNS)
    else:
        _print_table(args, found.diagnosis)
    return ExitCode.OK


def _print_table(args: Namespace, diagnosis: SmallFileDiagnosis) -> None:
    from airflow_hudi_maint.core.model.diagnosis import PARTITION_HEADINGS

    rows = [dict(zip(PARTITION_HEADINGS, row, strict=True)) for row in diagnosis.rows()]
    if rows:
        print_rows(limited(rows, args), output="table", columns=PARTITION_HEADINGS)
    for line in (f"{diagnosis.basis.table_name}: {diagnosis.describe()}", *diagnosis.lines()):
        sys.stdout.write(line + "\n")


def _predict(args: Namespace, workspace: Workspace, *, options: dict[str, str]) -> ExitCode:
    """Print what an insert into one partition would make."""
    from airflow_hudi_maint.core import maintenance

    partitions = args.partition or []
    if len(partitions) != 1:
        raise InvalidSettingError("--predict-inserts needs one --partition: that which the records go to")
    with progress(workspace.table.storage.requests):
        predicted = maintenance.predict_insert(
            workspace,
            partition=partitions[0],
            inserts=args.predict_inserts,
            writer_options=options,
            hudi_version=args.hudi_version,
        )
    if args.output in ("json", "yaml"):
        print_record(predicted.to_json(), output=args.output)
        return ExitCode.OK
    rows: list[JsonMapping] = [
        {"file": one.file_id, "records": one.records, "bytes": one.expected_bytes} for one in predicted.grown
    ]
    rows += [{"file": "(new)", "records": one.records, "bytes": one.expected_bytes} for one in predicted.new]
    print_rows(limited(rows, args), output=args.output, columns=("file", "records", "bytes"))
    if args.output == "table":
        sys.stdout.write(predicted.describe() + "\n")
    return ExitCode.OK
