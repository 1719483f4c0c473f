"""What a clustering left on the table, compared with what it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.document import JsonObject

DEFAULT_VERIFY_FILES = 4000


class VerifyMode(StrEnum):
    """How much is read after a clustering.

    ``timeline`` reads the plan and the commit. ``full`` reads the footers of all input and output files, and
    ``sample`` those of whole partitions up to a number of files. ``auto`` is full up to that number, then sample.
    """

    AUTO = "auto"
    FULL = "full"
    SAMPLE = "sample"
    TIMELINE = "timeline"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySettings:
    """How a clustering is verified: the mode, the most files whose footers a sample reads, and whether keys are read.

    ``keys`` reads the record keys of all rows that are verified: the one column, not the rows.
    """

    mode: VerifyMode = VerifyMode.AUTO
    max_files: int = DEFAULT_VERIFY_FILES
    keys: bool = False

    def __post_init__(self) -> None:
        if self.max_files < 1:
            raise InvalidSettingError(f"verify_files={self.max_files} is too small; expected at least 1")
        if self.keys and self.mode is VerifyMode.TIMELINE:
            raise InvalidSettingError("verify_keys reads files, which verify=timeline does not; leave one of them out")


class Verdict(StrEnum):
    """What a check found. ``unknown``: it could not be told, and why is said; ``noticed``: true, and no fault."""

    PASSED = "passed"
    NOTICED = "noticed"
    UNKNOWN = "unknown"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was compared; ``message`` says it with its figures, in half a sentence."""

    name: str
    verdict: Verdict
    message: str

    def to_json(self) -> JsonObject:
        """The row of the JSON document."""
        return {"check": self.name, "verdict": str(self.verdict), "message": self.message}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Check:
        """Read what :meth:`to_json` wrote."""
        return cls(name=row["check"], verdict=Verdict(row["verdict"]), message=row["message"])


@dataclass(frozen=True, slots=True, kw_only=True)
class SortEffect:
    """How well a column tells files apart, before and after: of how many files a value may be in one of.

    ``depth`` is the mean, over the least and greatest values of all files of a partition, of the number of that
    partition's files whose range holds the value: 1 is perfect, the number of files is none at all.
    """

    column: str
    files_before: int
    files_after: int
    depth_before: float
    depth_after: float

    def to_json(self) -> JsonObject:
        """The row of the JSON document."""
        return {
            "column": self.column,
            "files_before": self.files_before,
            "files_after": self.files_after,
            "depth_before": self.depth_before,
            "depth_after": self.depth_after,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> SortEffect:
        """Read what :meth:`to_json` wrote."""
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was verified of one instant. ``mode`` is what was done: never ``auto``.

    ``files_read`` counts the footers of ``files`` input and output files that there are.
    """

    instant: str
    mode: VerifyMode
    files: int = 0
    files_read: int = 0
    checks: tuple[Check, ...] = ()
    sorting: tuple[SortEffect, ...] = field(default=())

    def of(self, verdict: Verdict) -> tuple[Check, ...]:
        """The checks with this verdict."""
        return tuple(one for one in self.checks if one.verdict is verdict)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that found a difference."""
        return self.of(Verdict.FAILED)

    def to_json(self) -> JsonObject:
        """The object of the JSON document."""
        return {
            "instant": self.instant,
            "mode": str(self.mode),
            "files": self.files,
            "files_read": self.files_read,
            "checks": [one.to_json() for one in self.checks],
            "sorting": [one.to_json() for one in self.sorting],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Verification:
        """Read what :meth:`to_json` wrote."""
        return cls(
            instant=value["instant"],
            mode=VerifyMode(value["mode"]),
            files=value["files"],
            files_read=value["files_read"],
            checks=tuple(Check.from_json(row) for row in value["checks"]),
            sorting=tuple(SortEffect.from_json(row) for row in value["sorting"]),
        )
