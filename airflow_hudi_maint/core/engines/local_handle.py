"""The handles of the local engine: which process, on which machine, since when, and where its work directory is."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from pathlib import Path

from airflow_hudi_maint.core.engines.process_group import ProcessId
from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.job import JobHandle

ENGINE = "local"
WORK_PREFIX = "hudi-maint-"
FOREIGN_SECONDS = 600.0
"""How long a job on another machine counts as one that may run: by then Airflow has noticed that its worker is gone."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where a process id means something: a host, since its last start, and the container on it."""

    host: str
    boot: str

    @classmethod
    def this(cls) -> Machine:
        """Return the machine of this process."""
        return cls(host=socket.gethostname().replace(":", "-"), boot=f"{_boot_id()}.{_pid_namespace()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHandle:
    """A job id, ``PID:START:HOST:BOOT:SUBMITTED:DIRECTORY``, in its parts. ``submitted`` is in seconds of the epoch."""

    process: ProcessId
    machine: Machine
    submitted: int
    work: Path

    @classmethod
    def of(cls, process: ProcessId, *, work: Path) -> LocalHandle:
        """Return the handle of a process that was started on this machine right now."""
        return cls(process=process, machine=Machine.this(), submitted=int(time.time()), work=work)

    @classmethod
    def read(cls, handle: JobHandle) -> LocalHandle | None:
        """Read a job id; None for one that no engine of this release wrote, which names nothing to touch.

        Raises:
            InvalidSettingError: The job is another engine's, and may run there.
        """
        if handle.engine not in (ENGINE, ""):
            raise InvalidSettingError(
                f"Job {handle.job_id} was given to the engine {handle.engine!r}, and this is the engine {ENGINE!r}: "
                "was the connection changed? End that job there, then clear the task's state."
            )
        parts = handle.job_id.split(":", 5)
        if len(parts) != len(("pid", "started", "host", "boot", "submitted", "directory")):
            return None
        pid, started, host, boot, submitted, directory = parts
        work = Path(directory)
        # The directory must be like ours, for close removes it.
        ours = work.is_absolute() and work.name.startswith(WORK_PREFIX) and ".." not in work.parts
        if not (pid.isdecimal() and started and submitted.isdecimal() and ours):
            return None
        return cls(
            process=ProcessId(pid=int(pid), started=started, marker=directory),
            machine=Machine(host=host, boot=boot),
            submitted=int(submitted),
            work=work,
        )

    @property
    def here(self) -> bool:
        """True when the process was started on this machine, and in this container of it."""
        return self.machine == Machine.this()

    @property
    def seconds(self) -> float:
        """The time since the job was submitted, by this machine's clock."""
        return time.time() - self.submitted

    def to_job_id(self) -> str:
        """Return the text that :meth:`read` reads."""
        process, machine = self.process, self.machine
        return f"{process.pid}:{process.started}:{machine.host}:{machine.boot}:{self.submitted}:{self.work}"


def _boot_id() -> str:
    """Return what Linux calls a start of itself; empty elsewhere, where the host's name has to do."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()[:8]
    except OSError:
        return ""


def _pid_namespace() -> str:
    """Return the number of the space that process ids are counted in: each container has its own."""
    try:
        return "".join(filter(str.isdigit, str(_PID_NAMESPACE.readlink())))
    except OSError:
        return ""
