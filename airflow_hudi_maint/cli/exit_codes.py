"""What a command's exit code means. docs/cli.md promises these numbers to scripts."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended.

    ``USAGE`` is also what argparse ends with, ``TRY_AGAIN`` is ``EX_TEMPFAIL`` of ``sysexits.h``, and the last two are
    what a shell shows of a process that SIGINT or SIGPIPE ended.
    """

    OK = 0
    FAILED = 1
    USAGE = 2
    NOTHING_TO_DO = 3
    WARNING = 4
    CRITICAL = 5
    TRY_AGAIN = 75
    INTERRUPTED = 130
    BROKEN_PIPE = 141
