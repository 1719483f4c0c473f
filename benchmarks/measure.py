"""Measure work in a process of its own, and put figures beside their limits."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
_TO_BYTES = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run: seconds of the measured work, and the peak memory of its whole process. ``facts`` are what it found."""

    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A figure beside its limit; met when it is not above."""

    name: str
    figure: float
    limit: float
    unit: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the limit is kept."""
        return self.figure <= self.limit

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        verdict = "met" if self.is_met else "**not met**"
        return f"| {self.name} | {_number(self.figure)}{unit} | ≤ {_number(self.limit)}{unit} | {verdict} |"


def report_sample(work: Callable[[], Mapping[str, Any]]) -> None:
    """Do the work once and print a sample as JSON, for :func:`run_sample` in the parent process."""
    cpu, wall = _cpu_seconds(), time.perf_counter()
    facts = work()
    cpu, wall = _cpu_seconds() - cpu, time.perf_counter() - wall
    print(json.dumps({"cpu_seconds": cpu, "wall_seconds": wall, "peak_bytes": _peak_bytes(), "facts": facts}))


def run_sample(script: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Sample:
    """Run a script of this folder as a child and read the sample that it prints last."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
    search = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    ended = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": search, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        sys.exit(f"{' '.join(command)} failed with exit code {ended.returncode}:\n{ended.stderr}")
    return Sample(**json.loads(ended.stdout.splitlines()[-1]))


def median_of(samples: Sequence[Sample], *, field: str) -> float:
    """The median of a field over samples."""
    return float(median(getattr(one, field) for one in samples))


def ratio(above: Sequence[Sample], below: Sequence[Sample], *, field: str = "cpu_seconds") -> float:
    """The median of the ratios of runs that came one after the other."""
    return float(median(getattr(one, field) / getattr(other, field) for one, other in zip(above, below, strict=True)))


def print_lines(lines: Sequence[Line]) -> None:
    """Print figures and limits as a Markdown table."""
    print("\n| line | measured | limit | |\n|---|---:|---:|---|")
    for one in lines:
        print(one)


def finish(lines: Sequence[Line]) -> NoReturn:
    """Print figures and limits, and end: with 1 when a limit is not kept."""
    print_lines(lines)
    sys.exit(not all(one.is_met for one in lines))


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_bytes_of(pid: int | str) -> int:
    """The peak memory of a process that runs, by Linux's own account."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(one for one in lines if one.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def _peak_bytes() -> int:
    """The peak memory of this process. Linux's ``ru_maxrss`` also counts the parent's memory at the fork."""
    if Path("/proc/self/status").exists():
        return peak_bytes_of("self")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _TO_BYTES


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:.2f}"  # noqa: PLR2004 for people
