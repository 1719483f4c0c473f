"""The commands below ``airflow hudi``. Every ``airflow`` command imports this, so it imports nothing heavy.

A command is a function of a module in ``commands``, named here and imported when it is called.
"""

from __future__ import annotations

from airflow.cli.cli_config import ActionCommand, CLICommand, GroupCommand, lazy_load_command

from airflow_hudi_maint.cli import arguments
from airflow_hudi_maint.cli.arguments import PRINTING_ARGS
from airflow_hudi_maint.cli.merge_arguments import MERGE_ARGS

_COMMANDS = "airflow_hudi_maint.cli.commands"

PLAN_COMMANDS: tuple[CLICommand, ...] = (
    ActionCommand(
        name="expiry",
        help="Which partitions the TTL policies would drop, and why",
        func=lazy_load_command(f"{_COMMANDS}.plan_expiry.plan_expiry"),
        args=(
            *PRINTING_ARGS,
            arguments.ARG_POLICIES,
            arguments.ARG_POLICY_FILE,
            arguments.ARG_GUARDS,
            *arguments.PLAN_ARGS,
        ),
    ),
    ActionCommand(
        name="clustering",
        help="Which partitions clustering would rewrite, and why",
        func=lazy_load_command(f"{_COMMANDS}.plan_clustering.plan_clustering"),
        args=(
            *PRINTING_ARGS,
            *arguments.ARG_SIZES,
            arguments.ARG_SORT_COLUMN,
            arguments.ARG_LAYOUT,
            *arguments.STRATEGY_ARGS,
            arguments.ARG_PARTITION,
            *arguments.PLAN_ARGS,
        ),
    ),
    ActionCommand(
        name="small-files",
        help="Which partitions small-file compaction would rewrite, and why",
        func=lazy_load_command(f"{_COMMANDS}.plan_clustering.plan_small_files"),
        args=(
            *PRINTING_ARGS,
            *arguments.ARG_SIZES,
            arguments.ARG_MIN_FILES_REMOVED,
            arguments.ARG_MAX_BYTES_PER_FILE_REMOVED,
            *arguments.SMALL_FILE_BUDGET_ARGS,
            arguments.ARG_PARTITION,
            *arguments.PLAN_ARGS,
        ),
    ),
)

TTL_COMMANDS: tuple[CLICommand, ...] = (
    ActionCommand(
        name="show",
        help="The policies that decide, and where each is written",
        func=lazy_load_command(f"{_COMMANDS}.ttl.ttl_show"),
        args=PRINTING_ARGS,
    ),
    ActionCommand(
        name="add",
        help="Add a policy; one of the same spec is replaced",
        func=lazy_load_command(f"{_COMMANDS}.ttl.ttl_add"),
        args=(*PRINTING_ARGS, *arguments.ADD_ARGS, arguments.ARG_DRY_RUN),
    ),
    ActionCommand(
        name="drop",
        help="Drop the policy on a spec, or the default one",
        func=lazy_load_command(f"{_COMMANDS}.ttl.ttl_drop"),
        args=(*PRINTING_ARGS, arguments.ARG_SPEC, arguments.ARG_DEFAULT, arguments.ARG_DRY_RUN),
    ),
    ActionCommand(
        name="empty",
        help="Drop every policy, also broken ones; asks before",
        func=lazy_load_command(f"{_COMMANDS}.ttl.ttl_empty"),
        args=(*PRINTING_ARGS, arguments.ARG_YES, arguments.ARG_DRY_RUN),
    ),
    ActionCommand(
        name="apply",
        help="Make the policies of a file the table's; shows the difference and asks before",
        func=lazy_load_command(f"{_COMMANDS}.ttl.ttl_apply"),
        args=(
            arguments.ARG_FILE,
            *PRINTING_ARGS,
            arguments.ARG_YES,
            arguments.ARG_DRY_RUN,
            arguments.ARG_EXIT_CODE_SAME,
        ),
    ),
    ActionCommand(
        name="explain",
        help="Which policy decides about a partition, which ones lose, and why",
        func=lazy_load_command(f"{_COMMANDS}.ttl_explain.ttl_explain"),
        args=(arguments.ARG_EXPLAINED, *PRINTING_ARGS, arguments.ARG_TRIED_POLICIES),
    ),
    ActionCommand(
        name="simulate",
        help="What policies would have dropped, day by day",
        description="Replay the stored statistics and print, day by day, what the policies would have dropped.",
        func=lazy_load_command(f"{_COMMANDS}.ttl_simulate.ttl_simulate"),
        args=(*PRINTING_ARGS, *arguments.SIMULATE_ARGS),
    ),
)

HUDI_COMMANDS: tuple[CLICommand, ...] = (
    ActionCommand(
        name="show",
        help="Show what a table is: version, type, size, last commit, what is pending, its TTL policies",
        func=lazy_load_command(f"{_COMMANDS}.show.show"),
        args=(*PRINTING_ARGS, arguments.ARG_NO_SIZES),
    ),
    ActionCommand(
        name="timeline",
        help="List the instants of a table, newest first",
        func=lazy_load_command(f"{_COMMANDS}.timeline.timeline"),
        args=(*PRINTING_ARGS, arguments.ARG_ROWS, arguments.ARG_PENDING, arguments.ARG_ACTION, arguments.ARG_ARCHIVED),
    ),
    ActionCommand(
        name="partitions",
        help="List the partitions of a table with their statistics",
        func=lazy_load_command(f"{_COMMANDS}.partitions.partitions"),
        args=(
            *PRINTING_ARGS,
            arguments.ARG_SORT,
            arguments.ARG_ROWS,
            arguments.ARG_MATCH,
            arguments.ARG_SMALL_FILE_BYTES,
            arguments.ARG_LISTING,
            arguments.ARG_RECORDS,
        ),
    ),
    ActionCommand(
        name="stats",
        help="Gather partition statistics and print their totals",
        description="Gather partition statistics, write them beside the table, and print their totals.",
        func=lazy_load_command(f"{_COMMANDS}.stats.stats"),
        args=(
            *PRINTING_ARGS,
            arguments.ARG_FULL,
            arguments.ARG_INCREMENTAL,
            arguments.ARG_SMALL_FILE_BYTES,
            arguments.ARG_LISTING,
            arguments.ARG_RECORDS,
            arguments.ARG_DRY_RUN,
        ),
    ),
    ActionCommand(
        name="health",
        help="Check a table's health; the exit code says how bad it is",
        description="Check a table's health. Ends with 4 when the worst finding is a warning, with 5 for critical.",
        func=lazy_load_command(f"{_COMMANDS}.health.health"),
        args=(
            *PRINTING_ARGS,
            arguments.ARG_ALL_SIGNALS,
            arguments.ARG_THRESHOLDS,
            arguments.ARG_WRITE_HEALTH,
        ),
    ),
    ActionCommand(
        name="small-files",
        help="How many small files a table has, why, and what cures it",
        description="Diagnose small files by partition; or, with --predict-inserts, say what an insert makes.",
        func=lazy_load_command(f"{_COMMANDS}.small_files.small_files"),
        args=(*PRINTING_ARGS, arguments.ARG_ROWS, arguments.ARG_PARTITION, *arguments.DIAGNOSIS_ARGS),
    ),
    ActionCommand(
        name="report",
        help="Write a page about a table for people",
        description="Write a self-contained HTML page about the table as it is now.",
        func=lazy_load_command(f"{_COMMANDS}.report.report"),
        args=(
            *PRINTING_ARGS,
            arguments.ARG_OUTPUT_FILE,
            arguments.ARG_TITLE,
            arguments.ARG_BEFORE,
            arguments.ARG_STEP_REPORT,
            arguments.ARG_EXPIRY_PLAN,
            arguments.ARG_CLUSTERING_PLAN,
        ),
    ),
    ActionCommand(
        name="cluster",
        help="Schedule or execute clustering, by the flags of Hudi's clustering job; runs Spark",
        description="Schedule clustering with --schedule, execute a plan without it: flags as Hudi's own job has them.",
        func=lazy_load_command(f"{_COMMANDS}.cluster.cluster"),
        args=arguments.CLUSTER_ARGS,
    ),
    ActionCommand(
        name="merge",
        help="Merge the small files of a plain directory, or undo that",
        description="Merge small Parquet, ORC, CSV and JSON files of a directory tree; --dry-run only prints the plan.",
        func=lazy_load_command(f"{_COMMANDS}.merge.merge"),
        args=MERGE_ARGS,
    ),
    GroupCommand(
        name="plan",
        help="Make a plan and print what it would do and why; nothing is applied",
        description="Make a plan and print it. Nothing is written without --write, and nothing is ever applied.",
        subcommands=PLAN_COMMANDS,
    ),
    GroupCommand(
        name="ttl",
        help="Look at a table's TTL policies, change them, and try some out",
        description="TTL policies, which say when partitions expire. No command here drops a partition.",
        subcommands=TTL_COMMANDS,
    ),
)
"""In the order that ``airflow hudi --help`` lists them."""


def get_hudi_cli_commands() -> list[CLICommand]:
    """Return the provider's commands; Airflow adds them to its own."""
    return [
        GroupCommand(
            name="hudi",
            help="Look after Apache Hudi tables",
            description="Look at Apache Hudi tables and plan their maintenance. Only cluster and merge may run Spark.",
            subcommands=HUDI_COMMANDS,
        )
    ]
