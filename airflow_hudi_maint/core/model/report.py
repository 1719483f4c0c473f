"""Reports: what a step did, as the timeline confirms it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.document import JsonObject, checked_document
from airflow_hudi_maint.core.model.verification import Verification


class Step(StrEnum):
    """The steps that report."""

    EXPIRE = "expire"
    SCHEDULE_CLUSTERING = "schedule-clustering"
    EXECUTE_CLUSTERING = "execute-clustering"
    SCHEDULE_COMPACTION = "schedule-compaction"
    EXECUTE_COMPACTION = "execute-compaction"
    RESOLVE_PENDING = "resolve-pending"
    COMPACT_SMALL_FILES = "compact-small-files"
    CLEAN = "clean"
    RESTORE = "restore"
    RELEASE_SAVEPOINTS = "release-savepoints"
    CLUSTER = "cluster"


class Outcome(StrEnum):
    """How a step ended. A failure raises instead; ``failed`` is written as well when the table has a wrong effect."""

    DONE = "done"
    ALREADY_DONE = "already-done"
    NOTHING_TO_DO = "nothing-to-do"
    DRY_RUN = "dry-run"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class StepReport:
    """What one step did to a table.

    ``instants`` are the requested times of the instants that carry the effect, read from the timeline afterwards.
    ``partitions`` are the partitions that were touched. Bytes and files count the latest file slices of those
    partitions before and after; for an expiry, ``bytes_before`` are dropped at once and reclaimed by the cleaner.
    ``scheduler`` is the way in which a clustering plan was put on the timeline (``native`` or ``hudi``, or would have
    been), and ``scheduler_reason`` why that one.
    ``predicted_seconds`` and ``predicted_bytes_after`` are what earlier runs of the table let expect of a rewrite, to
    be compared with ``engine_seconds`` and ``bytes_after``; ``predicted_files_after`` is what its plan expects.
    ``verification`` has one entry for each instant.
    """

    KIND: ClassVar[str] = "step-report"
    VERSION: ClassVar[int] = 1

    step: Step
    outcome: Outcome
    message: str
    base_path: str
    base_instant: str
    plan_path: str | None = None
    instants: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    engine_seconds: float = 0.0
    warnings: tuple[str, ...] = field(default=())
    approval: str | None = None
    scheduler: str | None = None
    scheduler_reason: str | None = None
    predicted_seconds: float | None = None
    predicted_bytes_after: int | None = None
    predicted_files_after: int | None = None
    verification: tuple[Verification, ...] = ()

    def to_json(self) -> JsonObject:
        """The whole document."""
        return {
            "kind": self.KIND,
            "version": self.VERSION,
            "step": str(self.step),
            "outcome": str(self.outcome),
            "message": self.message,
            "base_path": self.base_path,
            "base_instant": self.base_instant,
            "plan_path": self.plan_path,
            "instants": list(self.instants),
            "partitions": list(self.partitions),
            "files_before": self.files_before,
            "files_after": self.files_after,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "engine_seconds": self.engine_seconds,
            "warnings": list(self.warnings),
            **({} if self.approval is None else {"approval": self.approval}),
            **({} if self.scheduler is None else {"scheduler": self.scheduler}),
            **({} if self.scheduler_reason is None else {"scheduler_reason": self.scheduler_reason}),
            **({} if self.predicted_seconds is None else {"predicted_seconds": self.predicted_seconds}),
            **({} if self.predicted_bytes_after is None else {"predicted_bytes_after": self.predicted_bytes_after}),
            **({} if self.predicted_files_after is None else {"predicted_files_after": self.predicted_files_after}),
            **({"verification": [one.to_json() for one in self.verification]} if self.verification else {}),
        }

    @classmethod
    def from_json(cls, value: object, *, name: str) -> StepReport:
        """Read a document; raises CorruptTableError that names the file."""
        document: Mapping[str, Any] = checked_document(value, kind=cls.KIND, version=cls.VERSION, name=name)
        try:
            return cls(
                step=Step(document["step"]),
                outcome=Outcome(document["outcome"]),
                message=document["message"],
                base_path=document["base_path"],
                base_instant=document["base_instant"],
                plan_path=document["plan_path"],
                instants=tuple(document["instants"]),
                partitions=tuple(document["partitions"]),
                files_before=document["files_before"],
                files_after=document["files_after"],
                bytes_before=document["bytes_before"],
                bytes_after=document["bytes_after"],
                engine_seconds=document["engine_seconds"],
                warnings=tuple(document["warnings"]),
                approval=document.get("approval"),
                scheduler=document.get("scheduler"),
                scheduler_reason=document.get("scheduler_reason"),
                predicted_seconds=document.get("predicted_seconds"),
                predicted_bytes_after=document.get("predicted_bytes_after"),
                predicted_files_after=document.get("predicted_files_after"),
                verification=tuple(Verification.from_json(one) for one in document.get("verification", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            msg = f"{name} is a broken step report ({error!r}); run the step again"
            raise CorruptTableError(msg) from error
