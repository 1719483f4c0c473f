"""One run at a time on a plain directory: a lease that a run holds, and that ends with it or with its heartbeat.

Leases are numbered files, made by an exclusive create; the highest number holds, and its token says who that is. A run
whose lease was taken over while it slept finds another token, or none, before it changes anything, and stops.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from airflow_hudi_maint.core.errors import HudiMaintError, PendingActionError
from airflow_hudi_maint.core.model.merge_plan import MERGE_STATE_FOLDER
from airflow_hudi_maint.core.storage.filesystem import Storage

LEASE_FOLDER = f"{MERGE_STATE_FOLDER}/lease"
LEASE_SECONDS = 600.0
"""A holder without a heartbeat for so long counts as dead; clocks of machines may differ by a part of it."""
_BEAT_SECONDS = 60.0
_TRIES = 3

_alive: set[str] = set()
"""The tokens of leases that runs of this very process hold."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """A lease that is held. Safe to ask from several threads."""

    storage: Storage
    number: int
    run: str
    token: str
    ended: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise PendingActionError when another run took over: nothing may be changed any more."""
        if not self._is_held():
            raise PendingActionError(
                f"Run {self.run} on {self.storage.root} was taken for dead and another took over; what it had not "
                "swapped is as it was; run again when that one is done"
            )

    def beat(self) -> None:
        """Say that the run is alive; a lease that was lost stays lost, also when whoever took it over is done."""
        self.check()
        self.storage.write_atomic(_path(self.number), _content(self.run, token=self.token))

    def release(self) -> None:
        """Give the lease back, unless it is another's by now."""
        if self._is_held():
            self.storage.delete(_path(self.number))

    def _is_held(self) -> bool:
        if max(_numbers(self.storage), default=0) != self.number:
            return False
        try:
            held = json.loads(self.storage.read_bytes(_path(self.number)))
        except (FileNotFoundError, ValueError):
            return False
        return isinstance(held, dict) and held.get("token") == self.token


@contextmanager
def holding_lease(storage: Storage, *, run: str) -> Iterator[Lease]:
    """Hold the lease of a directory for the block.

    Raises PendingActionError when a live run holds it.
    """
    lease = _acquired(storage, run=run)
    _alive.add(lease.token)
    beating = threading.Thread(target=_beat_on, args=(lease,), name="merge-lease", daemon=True)
    beating.start()
    try:
        yield lease
    finally:
        lease.ended.set()
        _alive.discard(lease.token)
        beating.join()
        with suppress(HudiMaintError, FileNotFoundError):  # one that stays counts as dead at once, or soon
            lease.release()


def live_holder(storage: Storage, *, path: str = "") -> str:
    """Who holds the lease of a directory below the root of ``storage``; empty when nobody alive does."""
    folder = f"{path}/{LEASE_FOLDER}" if path else LEASE_FOLDER
    numbers = _numbers(storage, folder=folder)
    return _holder(storage, f"{folder}/{max(numbers):010}.json") if numbers else ""


def _acquired(storage: Storage, *, run: str) -> Lease:
    token = uuid.uuid4().hex
    for _ in range(_TRIES):
        numbers = _numbers(storage)
        holder = _holder(storage, _path(max(numbers))) if numbers else ""
        if holder:
            raise PendingActionError(
                f"{storage.root} is being merged by {holder}; wait for it, or, when it is dead, for its heartbeat to "
                f"be {LEASE_SECONDS:.0f} s old"
            )
        number = max(numbers, default=0) + 1
        if not storage.write_new(_path(number), _content(run, token=token)):
            continue
        after = _numbers(storage)
        if max(after, default=number) != number:  # others came and went between the two looks
            storage.delete(_path(number))
            continue
        for old in after:
            if old != number:
                with suppress(FileNotFoundError):
                    storage.delete(_path(old))
        return Lease(storage=storage, number=number, run=run, token=token)
    raise PendingActionError(f"Several runs try to merge {storage.root} at once; try again")


def _beat_on(lease: Lease) -> None:
    while not lease.ended.wait(_BEAT_SECONDS):
        with suppress(Exception):  # a beat that fails is made up for by the next; check() finds a lost lease
            lease.beat()


def _numbers(storage: Storage, *, folder: str = LEASE_FOLDER) -> list[int]:
    try:
        names = storage.names(folder)
    except FileNotFoundError:
        return []
    return [int(name.removesuffix(".json")) for name in names if name.removesuffix(".json").isdigit()]


def _path(number: int) -> str:
    return f"{LEASE_FOLDER}/{number:010}.json"


def _content(run: str, *, token: str) -> bytes:
    held = {
        "run": run,
        "token": token,
        "host": socket.gethostname(),
        "machine": _machine(),
        "process": os.getpid(),
        "heartbeat": time.time(),
    }
    return json.dumps(held).encode()


def _holder(storage: Storage, path: str) -> str:
    """Who holds a lease, in words; empty when it is dead."""
    try:
        data = storage.read_bytes(path)
    except FileNotFoundError:
        return ""
    try:
        held = json.loads(data)
        run, token, host, process = str(held["run"]), held["token"], str(held["host"]), int(held["process"])
        beat, machine = float(held["heartbeat"]), held.get("machine")
    except (ValueError, KeyError, TypeError):
        return _unreadable_holder(storage, path)
    if host == socket.gethostname() and machine == _machine():
        if process == os.getpid() and token not in _alive:
            return ""
        if not _runs(process):
            return ""
    if time.time() - beat > LEASE_SECONDS:
        return ""
    heard = datetime.fromtimestamp(beat, tz=UTC).isoformat(timespec="seconds")
    return f"run {run} (process {process} on {host}, last heard of at {heard})"


def _machine() -> str:
    """Where numbers of processes are ours: containers that share a host's name have other ones of their own."""
    known: list[str] = []
    with suppress(OSError):
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
    with suppress(OSError):
        known.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(known)


def _unreadable_holder(storage: Storage, path: str) -> str:
    """A lease that is only just being written, or that its maker did not finish writing."""
    folder, _, name = path.rpartition("/")
    written = next((one.modified for one in storage.list(folder) if one.name == name), None)
    if written is not None and time.time() - written.timestamp() > LEASE_SECONDS:
        return ""
    return f"a run that is only just starting ({storage.join(path)})"


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
