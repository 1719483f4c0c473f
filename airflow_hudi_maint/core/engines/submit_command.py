"""The program ``spark-submit``: which one, and a run of it that hands an application over and ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.engines.maven import REPOSITORIES_VARIABLE
from airflow_hudi_maint.core.errors import EngineError, InvalidSettingError

if TYPE_CHECKING:
    from pathlib import Path

_SUBMIT_SECONDS = 600.0
_UNWANTED = re.compile(rf"PYSPARK_SUBMIT_ARGS|AIRFLOW__|AIRFLOW_CONN_|AIRFLOW_VAR_|{REPOSITORIES_VARIABLE}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """How a run ended and what it printed."""

    code: int
    text: str

    @property
    def words(self) -> str:
        """The exit code in words."""
        return f"exit code {self.code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitCommand:
    """A ``spark-submit`` and the environment that it runs in, without what Airflow keeps there."""

    path: str
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float = _SUBMIT_SECONDS

    def run(self, arguments: Sequence[str], *, properties: str, folder: Path) -> Said:
        """Run it to its end, with all settings in a file that only this user can read.

        Raises:
            InvalidSettingError: There is no such program.
            EngineError: It did not end in time, and was ended.
        """
        path = folder / "spark.properties"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(properties)
        inherited = {name: value for name, value in os.environ.items() if not _UNWANTED.match(name)}
        try:
            process = subprocess.Popen(
                [self.path, "--properties-file", str(path), *arguments],
                env={**inherited, **self.environment},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise InvalidSettingError(f"{self.path} does not run: {error}. See spark_home and spark_binary") from error
        try:
            text, _ = process.communicate(timeout=self.timeout_seconds)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                msg = f"{self.path} did not hand the application over within {self.timeout_seconds:.0f} s"
                raise EngineError(msg) from None
            raise
        return Said(code=process.returncode, text=text)
