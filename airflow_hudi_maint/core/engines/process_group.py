"""Processes as a group: start one in a session of its own, recognise it later, end all of it.

A process id is used again by the system, so a process is known by its id and its start time together. The group is the
session that the first process leads, and whoever has the group's marker in the environment: a JVM that it starts has
both, whatever process group that joins. Once the first process is gone its number proves nothing; then the marker alone
does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PROC = Path("/proc")
_POLL_SECONDS = 0.05
_GRACE_SHARE = 0.6

MARKER_VARIABLE = "AIRFLOW_HUDI_MAINT_JOB"

_children: dict[ProcessId, subprocess.Popen[bytes]] = {}
"""The processes that this one started. They must be waited for, or they stay as zombies and count as alive."""
_children_lock = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """A process that is told apart from a later one with the same number; ``started`` is in the system's own units.

    ``marker`` is what AIRFLOW_HUDI_MAINT_JOB is in the environment of its group, and of no other.
    """

    pid: int
    started: str
    marker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stat:
    pid: int
    state: str
    session: int
    started: str


def start(command: Sequence[str], *, env: Mapping[str, str], cwd: Path, output: Path, marker: str) -> ProcessId:
    """Start a command as the leader of a new session, with both outputs appended to one file and no input.

    ``marker`` must be a text that no other group ever has.
    """
    with output.open("ab") as log:
        child = subprocess.Popen(
            list(command),
            env={**env, MARKER_VARIABLE: marker},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    stat = _stat(child.pid)
    process = ProcessId(pid=child.pid, started=stat.started if stat else "unknown", marker=marker)
    with _children_lock:
        _children[process] = child
    return process


def exit_code(process: ProcessId) -> int | None:
    """Return how a child of ours has ended, negative for a signal; None for others, and while it runs."""
    with _children_lock:
        child = _children.get(process)
    return child.poll() if child else None


def alive(process: ProcessId) -> bool:
    """Tell whether the first process, or any other of its group, still runs."""
    exit_code(process)  # Waits for a child that has ended.
    return bool(_members(process))


def forget(process: ProcessId) -> None:
    """Drop what is kept of a child that has ended."""
    with _children_lock:
        child = _children.get(process)
        if child is not None and child.poll() is not None:
            del _children[process]


def end(process: ProcessId, *, timeout_seconds: float) -> bool:
    """Ask every process of the group to end, then force those that did not; True when none is left in time."""
    started = time.monotonic()
    _signal_all(process, signal.SIGTERM)
    if _gone_before(process, deadline=started + timeout_seconds * _GRACE_SHARE):
        return True
    while time.monotonic() - started < timeout_seconds:
        # Again and again: a process may have been starting another one.
        _signal_all(process, signal.SIGKILL)
        if _gone_before(process, deadline=time.monotonic() + 4 * _POLL_SECONDS):
            return True
    return not alive(process)


def _gone_before(process: ProcessId, *, deadline: float) -> bool:
    while alive(process):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _signal_all(process: ProcessId, number: signal.Signals) -> None:
    for pid in _members(process):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _members(process: ProcessId) -> list[int]:
    """Return the ids of the living processes of the group.

    The session's number counts only while the process that leads it is the one that was started: after its end another
    session may get the number.
    """
    leader = _stat(process.pid)
    led = leader is not None and leader.started == process.started
    if not _PROC.is_dir():
        return [process.pid] if led and leader is not None and leader.state != "Z" else []
    return [
        stat.pid
        for stat in _all_stats()
        if stat.state not in ("Z", "X") and ((led and stat.session == process.pid) or _marked(stat.pid, process.marker))
    ]


def _marked(pid: int, marker: str) -> bool:
    """Tell whether a process was started with this marker; one of another user, which cannot be read, was not."""
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return os.fsencode(f"{MARKER_VARIABLE}={marker}") in environment.split(b"\0")


def _all_stats() -> Iterator[_Stat]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))) is not None:
            yield stat


def _stat(pid: int) -> _Stat | None:
    if not _PROC.is_dir():
        return _stat_from_ps(pid)
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the command in brackets, which may itself hold blanks and brackets.
    fields = text[text.rindex(")") + 2 :].split()
    return _Stat(pid=pid, state=fields[0], session=int(fields[3]), started=fields[19])


def _stat_from_ps(pid: int) -> _Stat | None:
    """Ask ``ps`` where there is no /proc (macOS); the session's other members are not seen there."""
    answer = subprocess.run(
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, started = answer.stdout.strip().partition(" ")
    # Without colons: they separate the parts of a handle.
    return _Stat(pid=pid, state=state[0], session=pid, started=started.strip().replace(":", ".")) if state else None
