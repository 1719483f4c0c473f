"""What every command does around its own work: open the table, say errors in a line, end with an exit code."""

from __future__ import annotations

import functools
import io
import os
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.exit_codes import ExitCode
from airflow_hudi_maint.core.errors import HudiMaintError, TransientError

if TYPE_CHECKING:
    from argparse import Namespace


class UsageError(Exception):
    """The arguments do not go together; argparse could not see that."""


def hudi_command(work: Callable[[Namespace], ExitCode | None]) -> Callable[[Namespace], None]:
    """Run a command's work; end the process with its exit code unless that is 0.

    An error is one line on stderr, the traceback goes with ``--verbose``. Anything that is no error of ours is a bug:
    its traceback is shown.
    """

    @functools.wraps(work)
    def command(args: Namespace) -> None:
        code = _run(work, args)
        if code:
            sys.exit(int(code))

    return command


def _run(work: Callable[[Namespace], ExitCode | None], args: Namespace) -> ExitCode | None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # The name of a partition need not be text in the terminal's encoding.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = work(args)
        sys.stdout.flush()
    except (UsageError, HudiMaintError, FileNotFoundError) as error:
        return _failed(args, error)
    except BrokenPipeError:
        # Whoever read the output has enough (``| head``). Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.BROKEN_PIPE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    return code


def _failed(args: Namespace, error: Exception) -> ExitCode:
    said = str(error)
    if isinstance(error, UsageError):
        code = ExitCode.USAGE
    elif isinstance(error, HudiMaintError):
        code = ExitCode.TRY_AGAIN if isinstance(error, TransientError) else ExitCode.FAILED
    else:
        # Archived, cleaned or rolled back since it was listed; what is missing for good has an error of ours.
        code, said = ExitCode.TRY_AGAIN, f"{said}: it went away while it was looked at; try again"
    if args.verbose:
        traceback.print_exception(error, file=sys.stderr)
    else:
        print(f"Error: {said}", file=sys.stderr)  # noqa: T201 a command talks to a person
    return code
