"""What a Spark job is asked, and what it answers.

The job runs in another process, perhaps on another machine, and shares no code with this package: these values cross as
JSON. Every document carries ``"version"``, and a version that is not known is refused by name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.document import Json, JsonMapping, JsonObject

JOB_VERSION = 1


class JobKind(StrEnum):
    """The jobs there are; each is a script of the same name in ``airflow_hudi_maint/jobs``."""

    DELETE_PARTITIONS = "delete_partitions"
    SCHEDULE_CLUSTERING = "schedule_clustering"
    EXECUTE_CLUSTERING = "execute_clustering"
    CLUSTER = "cluster"
    SCHEDULE_COMPACTION = "schedule_compaction"
    EXECUTE_COMPACTION = "execute_compaction"
    ROLLBACK_PENDING = "rollback_pending"
    CLEAN = "clean"
    RESTORE_PARTITIONS = "restore_partitions"
    RELEASE_SAVEPOINTS = "release_savepoints"
    MERGE_FILES = "merge_files"


class JobStatus(StrEnum):
    """What an engine knows of a job. None of these says what happened to the table: only its timeline does."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    """It ended and its report says that all went well."""
    FAILED = "failed"
    """It ended with a report of an error, or with an exit code other than 0."""
    KILLED = "killed"
    """It was ended from outside."""
    LOST = "lost"
    """It is gone and left neither a report nor an exit code that says why."""

    @property
    def ended(self) -> bool:
        """True unless the job still runs."""
        return self is not JobStatus.RUNNING


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTotals:
    """How much the caller expects the job to handle, for messages about progress; nothing is decided by it."""

    files: int = 0
    bytes: int = 0

    def __post_init__(self) -> None:
        if self.files < 0 or self.bytes < 0:
            raise ValueError(f"Job totals must not be negative: files {self.files}, bytes {self.bytes}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """One job on one table, or on one directory of plain files, whose ``table_name`` then is a name for it.

    ``base_path`` is written as fsspec reads it; an engine turns it into what Spark reads. ``write_options`` are Hudi
    options that hold for every call the job makes, and stay out of the ``repr`` since a lock provider's may be secret.
    ``storage_options`` are what the job's own Python opens the storage with, where it does; they are JSON, may hold
    credentials, and stay out of the ``repr``, too. ``name`` is what Spark shows; empty for one that is derived from the
    request.
    """

    kind: JobKind
    base_path: str
    table_name: str
    write_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    arguments: JsonMapping = field(default_factory=dict)
    storage_options: JsonMapping = field(default_factory=dict, repr=False)
    totals: JobTotals | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if not self.base_path or not self.table_name:
            raise ValueError(
                f"A job needs a base path and a table name, not {self.base_path!r} and {self.table_name!r}"
            )
        object.__setattr__(self, "kind", JobKind(self.kind))
        object.__setattr__(self, "write_options", dict(self.write_options))
        object.__setattr__(self, "arguments", dict(self.arguments))

    @property
    def application_name(self) -> str:
        """The name that Spark shows. Equal requests have equal names, so a retry can find an earlier try's job."""
        if self.name:
            return self.name
        identity = json.dumps([self.kind, self.base_path, self.arguments], sort_keys=True)
        digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
        return f"hudi-maint-{self.kind.replace('_', '-')}-{self.table_name}-{digest}"

    def to_json(self) -> JsonObject:
        """Return the document that a job script reads."""
        totals = self.totals
        return {
            "version": JOB_VERSION,
            "kind": self.kind.value,
            "base_path": self.base_path,
            "table_name": self.table_name,
            "write_options": dict(self.write_options),
            "arguments": dict(self.arguments),
            **({"storage_options": dict(self.storage_options)} if self.storage_options else {}),
            "totals": None if totals is None else {"files": totals.files, "bytes": totals.bytes},
            "application_name": self.application_name,
        }

    @classmethod
    def from_json(cls, document: JsonMapping) -> JobRequest:
        """Read what :meth:`to_json` wrote."""
        _check_version(document, what="job request")
        totals = _object_or_none(document.get("totals"))
        request = cls(
            kind=JobKind(_text(document, "kind")),
            base_path=_text(document, "base_path"),
            table_name=_text(document, "table_name"),
            write_options={key: str(value) for key, value in _object(document.get("write_options")).items()},
            arguments=_object(document.get("arguments")),
            storage_options=_object(document.get("storage_options") or {}),
            totals=None
            if totals is None
            else JobTotals(files=_integer(totals, "files"), bytes=_integer(totals, "bytes")),
        )
        name = _text(document, "application_name")
        return request if name == request.application_name else replace(request, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """What Spark is doing at a moment: its active stages together. ``seconds`` is the job's age."""

    stage: str
    tasks_done: int
    tasks_total: int
    active_stages: int
    seconds: float

    def to_json(self) -> JsonObject:
        """Return the document of this progress."""
        return {
            "version": JOB_VERSION,
            "stage": self.stage,
            "tasks_done": self.tasks_done,
            "tasks_total": self.tasks_total,
            "active_stages": self.active_stages,
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, document: JsonMapping) -> JobProgress:
        """Read the document that a job writes every few seconds."""
        _check_version(document, what="job progress")
        return cls(
            stage=_text(document, "stage"),
            tasks_done=_integer(document, "tasks_done"),
            tasks_total=_integer(document, "tasks_total"),
            active_stages=_integer(document, "active_stages"),
            seconds=_number(document, "seconds"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """What the job says of itself: ``rows`` are those of its SQL call. It is a hint, and the timeline is the truth."""

    ok: bool
    error_class: str | None = None
    error_message: str | None = None
    rows: tuple[JsonMapping, ...] = ()
    seconds: float = 0.0
    spark_version: str = ""
    hudi_version: str = ""

    def to_json(self) -> JsonObject:
        """Return the document of this report."""
        return {
            "version": JOB_VERSION,
            "ok": self.ok,
            "error_class": self.error_class,
            "error_message": self.error_message,
            "rows": [dict(row) for row in self.rows],
            "seconds": self.seconds,
            "spark_version": self.spark_version,
            "hudi_version": self.hudi_version,
        }

    @classmethod
    def from_json(cls, document: JsonMapping) -> JobReport:
        """Read the document that a job leaves behind."""
        _check_version(document, what="job report")
        return cls(
            ok=document.get("ok") is True,
            error_class=_text_or_none(document, "error_class"),
            error_message=_text_or_none(document, "error_message"),
            rows=tuple(_object(row) for row in _array(document.get("rows"))),
            seconds=_number(document, "seconds"),
            spark_version=_text_or_none(document, "spark_version") or "",
            hudi_version=_text_or_none(document, "hudi_version") or "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHandle:
    """Where to find a submitted job again. Store it before polling; a retry then attaches to the job or kills it.

    ``kind`` says which job of its step it is, for those steps that have several; empty when nobody noted it.
    """

    engine: str
    job_id: str
    kind: str = field(default="", compare=False)

    def to_json(self) -> JsonObject:
        """Return the document of this handle; it is small and holds no secret."""
        document: JsonObject = {"version": JOB_VERSION, "engine": self.engine, "job_id": self.job_id}
        return {**document, "kind": self.kind} if self.kind else document

    @classmethod
    def from_json(cls, document: JsonMapping) -> JobHandle:
        """Read what :meth:`to_json` wrote. What another release wrote becomes a handle without an id: a lost job."""
        engine, job_id, kind = (document.get(name) for name in ("engine", "job_id", "kind"))
        known = document.get("version") == JOB_VERSION and isinstance(job_id, str)
        return cls(
            engine=engine if isinstance(engine, str) else "",
            job_id=str(job_id) if known else "",
            kind=kind if isinstance(kind, str) else "",
        )


def _check_version(document: JsonMapping, *, what: str) -> None:
    version = document.get("version")
    if version != JOB_VERSION:
        raise InvalidSettingError(
            f"A {what} of version {version!r} cannot be read; this release reads version {JOB_VERSION}. "
            "Was it written by another release of airflow_hudi_maint?"
        )


def _text(document: JsonMapping, name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str):
        raise InvalidSettingError(f"Field {name!r} of a job document must be a text, not {value!r}")
    return value


def _text_or_none(document: JsonMapping, name: str) -> str | None:
    return None if document.get(name) is None else _text(document, name)


def _number(document: JsonMapping, name: str) -> float:
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSettingError(f"Field {name!r} of a job document must be a number, not {value!r}")
    return float(value)


def _integer(document: JsonMapping, name: str) -> int:
    return int(_number(document, name))


def _object(value: Json) -> JsonMapping:
    if not isinstance(value, Mapping):
        raise InvalidSettingError(f"A job document must hold a JSON object here, not {value!r}")
    return value


def _object_or_none(value: Json) -> JsonMapping | None:
    return None if value is None else _object(value)


def _array(value: Json) -> Sequence[Json]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidSettingError(f"A job document must hold a JSON array here, not {value!r}")
    return value
