"""Doing something to a running job at the moment that its instant reaches a state on the timeline."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from airflow_hudi_maint.core.model.job import JobHandle

WAIT_SECONDS = 300.0


class TimelineWatch:
    """Follows one job: :meth:`follow` is what a step calls with the handle of what it submitted."""

    def __init__(self, table: Path, *, sees: str, does: Callable[[int], object]) -> None:
        """Call ``does`` with the job's process group once a file of the timeline matches the pattern ``sees``."""
        self._table = table
        self._sees = sees
        self._does = does
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self.handle: JobHandle | None = None

    def follow(self, handle: JobHandle) -> None:
        """Watch from now on."""
        self.handle = handle
        self._thread = threading.Thread(target=self._watch, args=(_group(handle),), daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise what went wrong while watching."""
        assert self._thread is not None, "no job was submitted"
        self._thread.join(WAIT_SECONDS)
        if self._failure is not None:
            raise self._failure

    def _watch(self, group: int) -> None:
        try:
            wait_for(self._table, sees=self._sees)
            self._does(group)
        except BaseException as error:  # noqa: BLE001 raised by check(), in the test's own thread
            self._failure = error


def matching(table: Path, pattern: str) -> set[Path]:
    """The files of the timeline with such names; those of requested and inflight instants stay when they complete."""
    return set((table / ".hoodie" / "timeline").glob(pattern))


def wait_for(table: Path, *, sees: str, besides: Collection[Path] = ()) -> None:
    """Return at the moment that the timeline has another file that matches a pattern."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not matching(table, sees).difference(besides):
        assert time.monotonic() < deadline, f"no {sees} appeared"
        time.sleep(0.001)


def kill(group: int) -> None:
    """End a process group without a word."""
    os.killpg(group, signal.SIGKILL)


@contextmanager
def suspended(group: int, *, lock: Path) -> Iterator[None]:
    """Hold a process group still meanwhile; never at a moment when it holds this lock file, or others would wait."""
    os.killpg(group, signal.SIGSTOP)
    try:
        while lock.exists():
            os.killpg(group, signal.SIGCONT)
            time.sleep(0.01)
            os.killpg(group, signal.SIGSTOP)
        yield
    finally:
        os.killpg(group, signal.SIGCONT)


def _group(handle: JobHandle) -> int:
    """The local engine's job is the leader of a process group of its own, and first in its id."""
    return int(handle.job_id.split(":")[0])
