"""The arguments of ``airflow hudi merge``; imported by every ``airflow`` command, so nothing heavy here."""

from __future__ import annotations

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, Arg

from airflow_hudi_maint.cli.arguments import ARG_EXIT_CODE_SAME, ARG_STORAGE_OPTIONS, arg, at_least, byte_count

FORMATS = ("parquet", "orc", "csv", "json")

MERGE_ARGS: tuple[Arg, ...] = (
    arg("directory", help="Directory of plain files: a path or URL"),
    arg("--target-file-bytes", type=byte_count, help="Size that merged files grow to, such as 256MiB"),
    arg("--small-file-bytes", type=byte_count, help="Files below this size are merged"),
    arg("--min-age-seconds", type=at_least(0), help="Leave files alone that are younger (default: 900)"),
    arg("--format", choices=FORMATS, action="append", help="Merge only this format; may be repeated"),
    arg(
        "--setting",
        action="append",
        metavar="NAME=VALUE",
        help="Any other setting of docs/merging.md; may be repeated",
    ),
    arg("--undo", metavar="RUN", help="Put the inputs of this run back instead; last for the last one"),
    arg("--dry-run", action="store_true", help="Print the plan and merge nothing"),
    ARG_EXIT_CODE_SAME,
    ARG_STORAGE_OPTIONS,
    ARG_OUTPUT,
    ARG_VERBOSE,
)
