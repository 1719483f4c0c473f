"""Find pyspark beside a Python, without starting it or importing it here."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from airflow_hudi_maint.core.errors import InvalidSettingError

_FIND = """
import importlib.metadata, importlib.util, json
spec = importlib.util.find_spec("pyspark")
found = spec is not None and spec.origin is not None
print(json.dumps([spec.origin, importlib.metadata.version("pyspark")] if found else None))
"""
_FIND_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PysparkInstallation:
    """A pyspark with its jars: the whole of Spark, as PyPI ships it."""

    home: Path
    version: str

    @property
    def jars(self) -> Path:
        """The folder of Spark's jars, Ivy among them."""
        return self.home / "jars"

    @property
    def release(self) -> str:
        """Major and minor version, as in a bundle's name: ``3.5``."""
        return ".".join(self.version.split(".")[:2])


@cache
def find_pyspark(python: str) -> PysparkInstallation:
    """Return the pyspark that this Python would import.

    Raises:
        InvalidSettingError: The Python does not run, or has no pyspark with jars (pyspark-client has none).
    """
    try:
        answer = subprocess.run(
            [python, "-c", _FIND], capture_output=True, text=True, timeout=_FIND_SECONDS, check=True, cwd="/"
        )
        found = json.loads(answer.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise InvalidSettingError(f"Python {python!r} cannot be asked for its pyspark: {error}") from error
    if found is None:
        raise InvalidSettingError(f"Python {python!r} has no pyspark; install the extra [spark] (pyspark 3.5) there.")
    home = Path(found[0]).parent
    if not (home / "jars").is_dir():
        raise InvalidSettingError(
            f"The pyspark of {python!r} at {home} has no jars; install the full pyspark there, not pyspark-client."
        )
    return PysparkInstallation(home=home, version=found[1])


def spark_at(home: Path) -> PysparkInstallation:
    """Return the Spark that was installed in this folder.

    Raises:
        InvalidSettingError: There is none; its jars tell.
    """
    names = sorted(path.stem for path in (home / "jars").glob("spark-core_*.jar"))
    if not names:
        raise InvalidSettingError(f"There is no Spark at spark_home={str(home)!r}: jars/spark-core_*.jar is missing")
    return PysparkInstallation(home=home, version=names[-1].rpartition("-")[2])
