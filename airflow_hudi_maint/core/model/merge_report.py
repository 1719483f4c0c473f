"""Reports of merges of small files in plain directories, and counts of such files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from airflow_hudi_maint.core.model.document import Json, JsonObject
from airflow_hudi_maint.core.model.report import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedGroup:
    """What became of one group.

    ``swap_seconds`` is how long a listing could show the merged file beside inputs of it. ``rows`` is None for text,
    which is compared by its bytes.
    """

    directory: str
    output: str
    input_files: int
    input_bytes: int
    output_bytes: int
    rows: int | None
    method: str
    reason: str = ""
    seconds: float = 0.0
    swap_seconds: float = 0.0
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """The object of the JSON document."""
        return {
            "directory": self.directory,
            "output": self.output,
            "input_files": self.input_files,
            "input_bytes": self.input_bytes,
            "output_bytes": self.output_bytes,
            "rows": self.rows,
            "method": self.method,
            "reason": self.reason,
            "seconds": round(self.seconds, 3),
            "swap_seconds": round(self.swap_seconds, 4),
            "skipped": list(self.skipped),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, kw_only=True)
class MergeReport:
    """One run on one directory. ``run`` is what an undo takes; None when nothing was swapped.

    ``engine`` is who wrote the merged files: ``embedded`` for the process itself, ``spark`` for a job.
    """

    KIND: ClassVar[str] = "merge-report"
    VERSION: ClassVar[int] = 1

    root: str
    action: str
    outcome: Outcome
    message: str
    started_at: datetime
    run: str | None = None
    engine: str = "embedded"
    plan_path: str | None = None
    seconds: float = 0.0
    groups: tuple[MergedGroup, ...] = ()
    recovered: tuple[str, ...] = ()
    purged: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def files_before(self) -> int:
        """Inputs that were merged."""
        return sum(one.input_files for one in self.groups)

    @property
    def files_after(self) -> int:
        """Merged files."""
        return len(self.groups)

    @property
    def bytes_before(self) -> int:
        """Bytes of the inputs."""
        return sum(one.input_bytes for one in self.groups)

    @property
    def bytes_after(self) -> int:
        """Bytes of the merged files."""
        return sum(one.output_bytes for one in self.groups)

    def summary(self) -> JsonObject:
        """What an operator returns: small enough for XCom."""
        return {
            "action": self.action,
            "outcome": str(self.outcome),
            "message": self.message,
            "root": self.root,
            "run": self.run,
            "groups": len(self.groups),
            "files_before": self.files_before,
            "files_after": self.files_after,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "seconds": round(self.seconds, 3),
            "warnings": len(self.warnings),
            "plan_path": self.plan_path,
        }

    def to_json(self) -> dict[str, Json]:
        """The whole document."""
        return {
            "kind": self.KIND,
            "version": self.VERSION,
            "started_at": self.started_at.isoformat(),
            "engine": self.engine,
            **self.summary(),
            "warnings": list(self.warnings),
            "recovered": list(self.recovered),
            "purged": list(self.purged),
            "merged": [one.to_json() for one in self.groups],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallFileCounts:
    """How many files of a plain directory are small, of those whose format is known."""

    root: str
    directories: int
    files: int
    small_files: int
    bytes: int
    small_bytes: int

    @property
    def ratio(self) -> float:
        """The share of files that are small, from 0 to 1; 0 where there are none."""
        return self.small_files / self.files if self.files else 0.0

    def to_json(self) -> JsonObject:
        """The object for XCom and triggers."""
        return {
            "root": self.root,
            "directories": self.directories,
            "files": self.files,
            "small_files": self.small_files,
            "bytes": self.bytes,
            "small_bytes": self.small_bytes,
            "ratio": round(self.ratio, 4),
        }
