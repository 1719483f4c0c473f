"""Run a command with its whole output in a file and the lines that matter on the screen."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

HEARTBEAT_SECONDS = 20.0
TAIL_LINES = 30
STOP_SECONDS = 30.0


class DemoError(Exception):
    """The demo cannot go on; the message is for the person who started it."""


def run_shown(
    command: Sequence[str | Path],
    *,
    log: Path,
    show: Callable[[str], str | None],
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    """Run a command to its end.

    ``show`` gets every line and returns what to print of it, or None; it may raise DemoError to stop the command. When
    nothing was printed for 20 s, a line says how long the command has been running.

    Raises:
        DemoError: The command failed; the end of its output is in the message.
    """
    process = subprocess.Popen(
        [str(part) for part in command],
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    pump = threading.Thread(target=_pump, args=(process.stdout, lines), daemon=True)
    pump.start()
    try:
        with log.open("a", encoding="utf-8") as file:
            _follow(lines, file=file, show=show)
        code = process.wait()
    except BaseException:
        _stop(process)
        raise
    finally:
        pump.join(STOP_SECONDS)
    if code != 0:
        raise DemoError(f"{Path(command[0]).name} ended with exit code {code}. {tail_of(log)}")


def tail_of(log: Path) -> str:
    """Return the last lines of a log, introduced by its path."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
    return "\n".join([f"The end of {log}:", *(f"  {line[:300]}" for line in lines)])


def _follow(lines: queue.SimpleQueue[str | None], *, file: IO[str], show: Callable[[str], str | None]) -> None:
    """Copy lines into the log and show some, until the output is closed."""
    started = printed = time.monotonic()
    while True:
        try:
            line = lines.get(timeout=1.0)
        except queue.Empty:
            if time.monotonic() - printed >= HEARTBEAT_SECONDS:
                printed = time.monotonic()
                print(f"    … {printed - started:.0f} s", flush=True)
            continue
        if line is None:
            return
        file.write(line)
        file.flush()
        text = show(line.rstrip("\n"))
        if text is not None:
            printed = time.monotonic()
            print(text, flush=True)


def _pump(stream: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def _stop(process: subprocess.Popen[str]) -> None:
    """End the command and what it started: asked first, then forced."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(STOP_SECONDS)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
