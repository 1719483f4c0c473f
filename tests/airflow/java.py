"""A Java that counts how often it is started, and hangs instead of running anything."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_SCRIPT = """#!/bin/sh
echo "$$ $@" >> '{log}'
case " $* " in *" -version "*) echo 'openjdk version "17.0.9"' >&2; exit 0;; esac
sleep 600
"""


@dataclass(frozen=True, kw_only=True)
class CountingJava:
    """Its home, and the log of its starts."""

    home: Path
    log: Path

    @classmethod
    def make(cls, folder: Path) -> CountingJava:
        """Write the executable below a folder."""
        java = folder / "java-home" / "bin" / "java"
        java.parent.mkdir(parents=True)
        log = folder / "java-starts"
        java.write_text(_SCRIPT.format(log=log))
        java.chmod(0o755)
        return cls(home=folder / "java-home", log=log)

    def use(self, monkeypatch: pytest.MonkeyPatch) -> CountingJava:
        """Make it the Java that is found, by JAVA_HOME and on PATH."""
        monkeypatch.setenv("JAVA_HOME", str(self.home))
        monkeypatch.setenv("PATH", f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}")
        return self

    @property
    def starts(self) -> list[str]:
        """Arguments of each start, ``-version`` included."""
        return [line.partition(" ")[2] for line in self._lines()]

    @property
    def running(self) -> list[int]:
        """Process ids of those that still run."""
        pids = [int(line.split()[0]) for line in self._lines()]
        return [pid for pid in pids if Path(f"/proc/{pid}").exists() and not _is_zombie(pid)]

    def _lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
