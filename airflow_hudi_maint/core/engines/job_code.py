"""The job scripts as one archive, for a driver that runs where this package is not, and what such a job is told."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import zipfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import InvalidSettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE = Path(__file__).resolve().parents[2]
JOBS = _PACKAGE / "jobs"
START_SCRIPT = "run_job.py"

PAYLOAD_VARIABLE = "AIRFLOW_HUDI_MAINT_SECRET_JOB_"
"""Beginning of the variables with a payload; Spark does not show the value of a name with the word secret in it."""

_VARIABLE_CHARACTERS = 96 * 1024  # Linux takes 128 KiB for one variable, name and all.
_MOST_VARIABLES = 10
_EPOCH = (1980, 1, 1, 0, 0, 0)
_IN_TASKS = ("merging", "model", "planning", "storage")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeAddress:
    """Where the cluster finds the archive of the jobs, and the script that starts one of them."""

    archive: str
    script: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCode:
    """The archive (a zip that Python runs as it is) and the script, with a digest of both."""

    archive: bytes = field(repr=False)
    script: bytes = field(repr=False)
    digest: str


@cache
def packed_jobs(folder: Path = JOBS) -> JobCode:
    """Pack the job scripts; the same scripts make the same bytes."""
    script = (folder / START_SCRIPT).read_bytes()
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (
            ("__main__.py", script),
            *((path.name, path.read_bytes()) for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"),
        ):
            archive.writestr(zipfile.ZipInfo(name, date_time=_EPOCH), content)
    return JobCode(archive=data.getvalue(), script=script, digest=hashlib.sha256(data.getvalue()).hexdigest()[:16])


@cache
def packed_core(package: Path = _PACKAGE) -> bytes:
    """Pack the common core, for the one job whose tasks use it, as an archive that Python imports from.

    Without engines, reports and use cases, which need what a task has not. The same code makes the same bytes.
    """
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        core = package / "core"
        folders = (core / name for name in _IN_TASKS)
        for path in (
            package / "__init__.py",
            *core.glob("*.py"),
            *(one for folder in folders for one in sorted(folder.rglob("*.py"))),
        ):
            name = f"{package.name}/{path.relative_to(package).as_posix()}"
            entry = zipfile.ZipInfo(name, date_time=_EPOCH)
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return data.getvalue()


def packed_payload(payload: Mapping[str, object]) -> str:
    """Return a payload as a short text."""
    return base64.b64encode(gzip.compress(json.dumps(payload).encode(), mtime=0)).decode("ascii")


def payload_variables(payload: Mapping[str, object]) -> dict[str, str]:
    """Return a payload as variables of the driver's environment, where only its own user reads it.

    Raises:
        InvalidSettingError: It is too long for an environment: some 20,000 partitions with long names.
    """
    text = packed_payload(payload)
    parts = [text[at : at + _VARIABLE_CHARACTERS] for at in range(0, len(text), _VARIABLE_CHARACTERS)]
    if len(parts) > _MOST_VARIABLES:
        raise InvalidSettingError(
            f"The job's request has {len(text):,} characters, too many to hand to a driver on a cluster; "
            "give it less to do at a time, for example fewer partitions"
        )
    return {f"{PAYLOAD_VARIABLE}{number}": part for number, part in enumerate(parts)}
