"""The arguments of the commands; imported by every ``airflow`` command, so nothing heavy here."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, Arg

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgtp])(i?)b?|b)?", re.IGNORECASE)
_POWERS = "kmgtp"

ACTIONS = (
    "commit", "deltacommit", "replacecommit", "clustering", "compaction", "logcompaction", "clean", "rollback",
    "restore", "savepoint", "indexing",
)  # fmt: skip
"""What the core's ``Action`` has, repeated because this module imports nothing; a test compares the two."""

LAYOUTS = ("linear", "zorder", "hilbert")
EXECUTION_STRATEGIES = ("sort_and_size", "single_file_sort", "binary_copy")
LISTINGS = ("auto", "directory", "metadata")
RECORD_SOURCES = ("auto", "known", "commits", "footers")
POLICY_KINDS = ("KEEP_BY_TIME", "KEEP_BY_COUNT", "KEEP_BY_SIZE")
POLICY_CLOCKS = ("last_modified", "created", "event_time")
SORTS = ("path", "bytes", "records", "files", "small-files", "log-files", "modified")


def byte_count(text: str) -> int:
    """Read a number of bytes, also with a unit.

    >>> byte_count("120"), byte_count("128MiB"), byte_count("1.5 GB")
    (120, 134217728, 1500000000)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        msg = f"{text!r} is no number of bytes; write for example 134217728 or 128MiB"
        raise argparse.ArgumentTypeError(msg)
    number, unit, binary = match.groups()
    step = 1024 if binary else 1000
    # No floating-point number: it would round a large one without a word.
    return int(Fraction(number) * step ** (_POWERS.index(unit.lower()) + 1 if unit else 0))


def at_least(least: int) -> Callable[[str], int]:
    """Read a whole number that is not below ``least``."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            msg = f"{text!r} is no whole number from {least} on"
            raise argparse.ArgumentTypeError(msg)
        return int(text)

    return read


def span_of_days(text: str) -> timedelta:
    """Read a number of days, fractions too.

    >>> span_of_days("1.5")
    datetime.timedelta(days=1, seconds=43200)
    """
    try:
        read = timedelta(days=float(text))
    except (ValueError, OverflowError):
        read = timedelta(-1)
    if read < timedelta(0):
        msg = f"{text!r} is no number of days from 0 on; write for example 7 or 0.5"
        raise argparse.ArgumentTypeError(msg)
    return read


def day(text: str) -> date:
    """Read a day, also as a number of days before today (UTC).

    >>> day("2026-11-30"), day("7d") == datetime.now(UTC).date() - timedelta(days=7)
    (datetime.date(2026, 11, 30), True)
    """
    days = text.strip().removesuffix("d")
    try:
        if days.isascii() and days.isdigit() and days != text.strip():
            return datetime.now(UTC).date() - timedelta(days=int(days))
        return date.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        msg = f"{text!r} is no day; write for example 2026-11-30, or 30d for thirty days ago"
        raise argparse.ArgumentTypeError(msg) from None


def arg(*flags: str, **settings: Any) -> Arg:  # noqa: ANN401 what argparse takes, typed there
    """Make an argument as argparse takes it."""
    return Arg(flags, **settings)  # type: ignore[no-untyped-call]


ARG_BASE_PATH = arg(
    "base_path",
    nargs="?",
    help="Base path of the table: a directory or a URL such as s3://lake/flights; with --conn-id it may be left out",
)
ARG_CONN_ID = arg(
    "--conn-id",
    help="Connection of type hudi that names the table and how to reach it; without one, nothing of Airflow is asked",
)
ARG_STORAGE_OPTIONS = arg(
    "--storage-options",
    metavar="JSON",
    help="JSON object for fsspec (credentials, endpoint, region); goes over the connection's, key by key",
)
ARG_TIMEZONE = arg(
    "--timezone",
    help="IANA zone of the table's writers, such as Europe/Berlin, for a table that stamps instants in local time",
)

TABLE_ARGS = (ARG_BASE_PATH, ARG_CONN_ID, ARG_STORAGE_OPTIONS, ARG_TIMEZONE, ARG_VERBOSE)
"""What every command takes that opens a table."""

PRINTING_ARGS = (*TABLE_ARGS, ARG_OUTPUT)
"""The same for commands that print rows: with ``--output`` as Airflow's own commands have it."""

ARG_NO_SIZES = arg(
    "--no-sizes", action="store_true", help="Leave out the totals, which are what needs the table to be listed"
)

ARG_ROWS = arg(
    "--limit", type=at_least(0), help="Most rows to print, 0 for all (default: 20 in a table, all in the other forms)"
)
ARG_ACTION = arg(
    "--action",
    action="append",
    choices=ACTIONS,
    metavar="ACTION",
    help=f"Only instants of this action; may be given several times. Known are {', '.join(ACTIONS)}",
)
ARG_PENDING = arg("--pending", action="store_true", help="Only instants that are not completed")
ARG_ARCHIVED = arg(
    "--archived", action="store_true", help="The instants of the archived timeline instead of the active ones"
)
ARG_SORT = arg(
    "--sort",
    choices=SORTS,
    default="path",
    help=f"What rows are sorted by, figures from the greatest down (default: path). Known are {', '.join(SORTS)}",
)
ARG_MATCH = arg(
    "--match",
    action="append",
    metavar="GLOB",
    help="Only partitions whose whole path matches, such as 'day=2026-*'; may be given several times",
)
ARG_SMALL_FILE_BYTES = arg(
    "--small-file-bytes",
    type=byte_count,
    help="Base files below this size count as small, such as 64MiB (default: as in the newest statistics, else 100MiB)",
)
ARG_FULL = arg("--full", action="store_true", help="List every partition")
ARG_INCREMENTAL = arg(
    "--incremental",
    action="store_true",
    help="List only what changed since the newest statistics, and everything where that cannot be told (the default)",
)
ARG_LISTING = arg(
    "--listing",
    choices=LISTINGS,
    default="auto",
    help="How partitions are listed: by directory, by the metadata table, or as it suits the table (default: auto)",
)
ARG_RECORDS = arg(
    "--records",
    choices=RECORD_SOURCES,
    default="auto",
    help="Where counts of records come from: what earlier statistics know, also the commits of the active timeline, or "
    "also the footers of files (default: auto, which reads commits while they are few)",
)
ARG_DRY_RUN = arg("--dry-run", action="store_true", help="Write nothing")

ARG_WRITE = arg("--write", action="store_true", help="Store the plan where a task would, for a task to apply")
ARG_EXIT_CODE = arg(
    "--exit-code", action="store_true", help="End with 3 when the plan has nothing to do, for scripts that branch on it"
)
ARG_CHOSEN = arg("--all", action="store_true", help="Print the partitions that the plan leaves alone, too, with why")
PLAN_ARGS = (ARG_CHOSEN, ARG_WRITE, ARG_EXIT_CODE)
"""What every plan command takes."""

ARG_POLICIES = arg(
    "--policies",
    metavar="JSON",
    help="RFC-65 policies as a JSON list, as operators take them (default: those in the table's hoodie.properties)",
)
ARG_POLICY_FILE = arg(
    "--policy-file",
    metavar="FILE",
    help="Policy file (YAML or JSON) instead of --policies; its guards count as well, and --guards goes over them",
)
ARG_GUARDS = arg(
    "--guards", metavar="JSON", help="Limits of a run as a JSON object, as operators take them (default: theirs)"
)
ARG_PARTITION = arg(
    "--partition", action="append", metavar="PATH", help="Only this partition; may be given several times"
)
ARG_SIZES = (
    arg("--target-file-bytes", type=byte_count, help="Size that new files grow to (default: 1GiB)"),
    arg("--small-file-bytes", type=byte_count, help="Only files below this size are rewritten (default: 300MiB)"),
    arg("--max-group-bytes", type=byte_count, help="Most bytes of one clustering group (default: 2GiB)"),
    arg("--max-groups", type=at_least(1), help="Most groups of the plan (default: as many as it needs)"),
    arg("--min-input-files", type=at_least(1), help="Leave partitions with fewer small files alone (default: 2)"),
)
ARG_SORT_COLUMN = arg(
    "--sort-column", action="append", metavar="COLUMN", help="Sort rows by this column; may be given several times"
)
ARG_LAYOUT = arg("--layout", choices=LAYOUTS, default="linear", help="Order over the sort columns")
STRATEGY_ARGS = (
    arg(
        "--execution-strategy",
        choices=EXECUTION_STRATEGIES,
        help="How files are rewritten (default: sort_and_size)",
    ),
    arg(
        "--strategy",
        default="size_based",
        metavar="NAME",
        help="Which partitions come into question: size_based (all), recent_days, selected_partitions, day_rolling, "
        "largest, cold, benefit, or the import path of a class (default: %(default)s)",
    ),
    arg(
        "--strategy-option",
        action="append",
        metavar="NAME=VALUE",
        help="Option of the strategy, such as lookback=3; may be given several times",
    ),
)
ARG_MIN_FILES_REMOVED = arg(
    "--min-files-removed", type=at_least(1), help="Rewrite a partition only for this many files fewer (default: 1)"
)
ARG_MAX_BYTES_PER_FILE_REMOVED = arg(
    "--max-bytes-per-file-removed",
    type=byte_count,
    help="Most bytes to rewrite for each file fewer (default: --small-file-bytes)",
)

CLUSTER_ARGS = (
    *PRINTING_ARGS,
    arg(
        "--base-path", "-sp", dest="base_path_flag", metavar="PATH", help="Base path of the table, as Hudi's job has it"
    ),
    arg("--table-name", "-tn", metavar="NAME", help="Name that the table must have"),
    arg("--schedule", "-sc", action="store_true", help="The same as --mode schedule"),
    arg(
        "--mode",
        "-m",
        metavar="MODE",
        help="schedule, execute or scheduleAndExecute (default: execute, or schedule with --schedule)",
    ),
    arg(
        "--instant-time",
        "-it",
        metavar="INSTANT",
        help="Plan to execute (default: the earliest pending clustering, whoever made it)",
    ),
    arg("--props", metavar="FILE", help="Properties file with Hudi's settings of clustering: a path or a URL"),
    arg(
        "--hoodie-conf",
        action="append",
        metavar="KEY=VALUE",
        help="One setting, which goes over the file's; may be given several times",
    ),
    arg("--spark-memory", "-sm", metavar="SIZE", help="Memory of Spark, such as 4g (default: the connection's)"),
    arg("--spark-master", "-ms", metavar="MASTER", help="Spark's master (default: the connection's, else local)"),
    arg(
        "--retry-last-failed-clustering-job",
        "-rc",
        action="store_true",
        help="With scheduleAndExecute: execute a clustering again that is inflight, instead of planning another",
    ),
    arg(
        "--job-max-processing-time-ms",
        "-jt",
        type=at_least(0),
        default=0,
        metavar="MILLISECONDS",
        help="How long such a clustering must have shown no sign of life (default: 0)",
    ),
    arg("--partition", action="append", metavar="PATH", help="Plan only this partition; may be given several times"),
    arg("--exit-code", action="store_true", help="End with 3 when there was nothing to do"),
)
"""What ``cluster`` takes: flags of Hudi's HoodieClusteringJob, and below them two of ours."""

ARG_OUTPUT_FILE = arg(
    "--output-file",
    metavar="FILE",
    help="Write the page into this file, - for standard output, and nothing else anywhere "
    "(default: store it where a task would)",
)
ARG_TITLE = arg("--title", help="Title of the page (default: one with the table's name)")
ARG_BEFORE = arg("--before", metavar="PATH", help="Statistics document to compare with")
ARG_STEP_REPORT = arg(
    "--step-report", action="append", metavar="PATH", help="Report of a step; may be given several times, in order"
)
ARG_EXPIRY_PLAN = arg("--expiry-plan", metavar="PATH", help="Expiry plan to show")
ARG_CLUSTERING_PLAN = arg("--clustering-plan", metavar="PATH", help="Clustering plan to show")

ARG_THRESHOLDS = arg(
    "--thresholds",
    metavar="JSON",
    help="Limits by signal as a JSON object, as HudiTableHealthOperator takes them (default: its own)",
)
ARG_WRITE_HEALTH = arg("--write", action="store_true", help="Store what was found where a task would")
SMALL_FILE_BUDGET_ARGS = (
    arg("--max-bytes", type=byte_count, help="Most bytes of the plan, such as 500GiB (default: no limit)"),
    arg(
        "--min-idle-days",
        type=span_of_days,
        metavar="DAYS",
        help="Leave partitions alone that changed later than that, such as 0.5",
    ),
)
DIAGNOSIS_ARGS = (
    arg("--small-file-bytes", type=byte_count, help="Below this a file is small (default: the writer's limit)"),
    arg(
        "--writer-options",
        metavar="JSON",
        help="JSON object with Hudi options of the pipeline that writes the table; the rest has Hudi's defaults",
    ),
    arg("--hudi-version", help="Release that the pipeline writes with (default: the one of the table's version)"),
    arg("--predict-inserts", type=at_least(0), metavar="N", help="Say what N inserts into --partition would make"),
    ARG_WRITE_HEALTH,
)
ARG_ALL_SIGNALS = arg("--all", action="store_true", help="Print the signals that are fine, too")

ARG_SPEC = arg(
    "--spec", metavar="SPEC", help="Which partitions it is for: 'region=eu/', 'region=*/', or / for the whole table"
)
ARG_DEFAULT = arg("--default", action="store_true", help="The default policy, for what no explicit one covers")
ADD_ARGS = (
    ARG_SPEC,
    arg(
        "--policy",
        required=True,
        type=str.upper,
        choices=POLICY_KINDS,
        metavar="KIND",
        help=f"What is kept by: {', '.join(POLICY_KINDS)}",
    ),
    arg(
        "--value",
        required=True,
        metavar="VALUE",
        help="Days, sub-partitions or bytes (such as 100GiB), by the kind of the policy",
    ),
    ARG_DEFAULT,
    arg(
        "--clock",
        choices=POLICY_CLOCKS,
        help="What KEEP_BY_TIME counts from (default: last_modified)",
    ),
    arg("--event-time-pattern", metavar="PATTERN", help="How values name a time, for --clock event_time"),
    arg("--event-time-zone", metavar="ZONE", help="IANA zone of that time (default: UTC)"),
    arg("--expire-null-partitions", action="store_true", help="Let partitions with a null value expire"),
    arg("--allow-emptying", action="store_true", help="Let the newest sub-partition expire, too"),
)
"""What ``ttl add`` takes beside the table."""

ARG_FILE = arg("file", metavar="FILE", help="Policy file, YAML or JSON: a path or a URL")
ARG_YES = arg("--yes", action="store_true", help="Do not ask, for scripts")
ARG_EXIT_CODE_SAME = arg(
    "--exit-code", action="store_true", help="End with 3 when nothing changes, for scripts that branch on it"
)
ARG_EXPLAINED = arg("partition", metavar="PARTITION", help="Partition path; the table need not have it")
ARG_TRIED_POLICIES = arg(
    "--policies",
    metavar="FILE",
    help="Policy file to try, YAML or JSON (default: the table's own policies)",
)
SIMULATE_ARGS = (
    ARG_TRIED_POLICIES,
    arg(
        "--since",
        required=True,
        type=day,
        metavar="DAY",
        help="First day (UTC), such as 2026-11-01, or 30d for thirty days ago",
    ),
    arg("--until", type=day, metavar="DAY", help="Last day (default: today)"),
    arg(
        "--diff",
        metavar="FILE",
        help="Another policy file: print how its policies differ, and the partitions that it would drop on other days",
    ),
    ARG_GUARDS,
    ARG_ROWS,
)
"""What ``ttl simulate`` takes beside the table."""
