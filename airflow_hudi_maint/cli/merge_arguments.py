"""The arguments of ``airflow hudi merge``; imported by every ``airflow`` command, so nothing heavy here."""

from __future__ import annotations

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, Arg

from airflow_hudi_maint.cli.arguments import ARG_EXIT_CODE_SAME, ARG_STORAGE_OPTIONS, arg, at_least, byte_count

FORMATS = ("parquet", "orc", "csv", "json")
ENGINES = ("embedded", "spark")

MERGE_ARGS: tuple[Arg, ...] = (
    arg("directory", help="Directory of plain files: a path or URL"),
    arg("--target-file-bytes", type=byte_count, help="Size that merged files grow to (default: 128MiB)"),
    arg("--small-file-bytes", type=byte_count, help="Files below this size are merged (default: 64MiB)"),
    arg("--min-age-seconds", type=at_least(0), help="Leave files alone that are younger (default: 900)"),
    arg("--format", choices=FORMATS, action="append", help="Merge only this format; may be repeated"),
    arg(
        "--setting",
        action="append",
        metavar="NAME=VALUE",
        help="Any other setting of docs/merging.md; may be repeated",
    ),
    arg(
        "--plan-path",
        metavar="PATH",
        help="Carry out this plan of a dry run, which has its own settings, in place of a new one",
    ),
    arg(
        "--engine",
        choices=ENGINES,
        default="embedded",
        help="embedded merges in this process, spark in one Spark job (default: %(default)s)",
    ),
    arg(
        "--hudi-conn-id",
        metavar="CONN_ID",
        help="With --engine spark: connection of type hudi that says how Spark is run (default: on this machine)",
    ),
    arg(
        "--job-timeout",
        type=at_least(1),
        metavar="SECONDS",
        help="With --engine spark: kill a job that runs longer (default: no limit)",
    ),
    arg(
        "--storage-conn-id",
        metavar="CONN_ID",
        help="Connection with the storage's credentials; --storage-options go over it, key by key",
    ),
    arg(
        "--undo",
        metavar="RUN",
        help="Put the inputs of this run back instead; last for the last one, the path of a plan for all of its runs",
    ),
    arg("--dry-run", action="store_true", help="Print the plan and merge nothing"),
    ARG_EXIT_CODE_SAME,
    ARG_STORAGE_OPTIONS,
    ARG_OUTPUT,
    ARG_VERBOSE,
)
