"""Why a table has small files: causes with evidence, and the settings that cure them.

The JSON form is version 1 of the document that docs/small-files.md describes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from airflow_hudi_maint.core.model.document import JsonObject
from airflow_hudi_maint.core.model.plan_basis import PlanBasis
from airflow_hudi_maint.core.model.sizing import InsertPrediction
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_count

PARTITION_HEADINGS = ("partition", "files", "small", "size", "wasted opens", "causes")
"""The columns of :meth:`SmallFileDiagnosis.rows`."""


class Cause(StrEnum):
    """The classes of reasons; a small file belongs to at most one, a partition to any number."""

    PENDING_PLAN = "pending-plan"
    LOG_FILES = "log-files"
    BULK_INSERT = "bulk-insert-parallelism"
    NO_HANDLING = "no-small-file-handling"
    ONE_CANDIDATE = "one-candidate"
    ESTIMATE_TOO_HIGH = "estimate-too-high"
    ESTIMATE_TOO_LOW = "estimate-too-low"
    BLOOM_FILTER = "bloom-filter-floor"
    MICRO_PARTITION = "micro-partition"
    REMAINDER = "remainder"
    UNKNOWN = "unknown"


class Certainty(StrEnum):
    """How sure a finding is.

    ``certain``: the timeline or the files show it. ``likely``: they show the effect, and a writer's setting that is
    stored nowhere is the common reason. ``possible``: nothing speaks against it. ``unknown``: they do not tell.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"
    UNKNOWN = "unknown"


class Known(StrEnum):
    """Where the present value of a setting comes from."""

    GIVEN = "given"
    TABLE = "table"
    DEFAULT = "hudi-default"
    INFERRED = "inferred"


_WHERE = {
    Known.GIVEN: "",
    Known.TABLE: ", in the table",
    Known.DEFAULT: ", Hudi's default",
    Known.INFERRED: ", by what was written",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cure:
    """A setting, what it is now and what it should be. ``known`` says where ``present`` comes from.

    Writers keep these settings nowhere: a value that is neither given nor in the table is Hudi's default, which a
    writer may have changed, or is inferred from what writes did.
    """

    setting: str
    present: str
    known: Known
    proposed: str
    why: str

    def describe(self) -> str:
        """Say it in one line."""
        where = _WHERE[self.known]
        return f"{self.setting}={self.proposed} (now {self.present}{where}): {self.why}"

    def to_json(self) -> JsonObject:
        """The row of the JSON document."""
        return {
            "setting": self.setting,
            "present": self.present,
            "present_known": str(self.known),
            "proposed": self.proposed,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause, over all partitions that it is seen in. ``evidence`` are sentences with figures.

    ``small_files`` are those that the cause accounts for; 0 where it makes other causes worse. ``action`` is what
    helps beside settings; empty where nothing else does.
    """

    cause: Cause
    certainty: Certainty
    statement: str
    small_files: int
    partitions: tuple[str, ...]
    evidence: tuple[str, ...]
    instants: tuple[str, ...] = ()
    cures: tuple[Cure, ...] = ()
    action: str = ""

    def to_json(self) -> JsonObject:
        """The row of the JSON document."""
        return {
            "cause": str(self.cause),
            "certainty": str(self.certainty),
            "statement": self.statement,
            "small_files": self.small_files,
            "partitions": list(self.partitions),
            "evidence": list(self.evidence),
            "instants": list(self.instants),
            "cures": [one.to_json() for one in self.cures],
            "action": self.action,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDiagnosis:
    """A partition's files. ``wasted_opens`` is how many files fewer a reader would open, were they of the target size.

    ``causes`` are (cause, small files that it accounts for), the most first.
    """

    partition_path: str
    files: int
    small_files: int
    bytes: int
    small_bytes: int
    wasted_opens: int
    causes: tuple[tuple[Cause, int], ...] = ()

    def to_json(self) -> JsonObject:
        """The row of the JSON document."""
        return {
            "partition": self.partition_path,
            "files": self.files,
            "small_files": self.small_files,
            "bytes": self.bytes,
            "small_bytes": self.small_bytes,
            "wasted_opens": self.wasted_opens,
            "causes": [{"cause": str(cause), "small_files": count} for cause, count in self.causes],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledFile:
    """What a small file's footer says: how much of the file is its Bloom filter, and how many rows it has."""

    partition_path: str
    file_id: str
    file_bytes: int
    filter_bytes: int
    records: int


@dataclass(frozen=True, kw_only=True)
class SmallFileDiagnosis:
    """Everything found about a table's small files. ``partitions`` are all that were looked at, in path order."""

    KIND: ClassVar[str] = "small-file-diagnosis"
    VERSION: ClassVar[int] = 1

    basis: PlanBasis
    hudi_version: str
    small_file_bytes: int
    target_file_bytes: int
    partitions: tuple[PartitionDiagnosis, ...]
    findings: tuple[Finding, ...]
    prediction: InsertPrediction | None = None

    @property
    def small_files(self) -> int:
        """Small files over all partitions."""
        return sum(one.small_files for one in self.partitions)

    @property
    def wasted_opens(self) -> int:
        """Files fewer to open over all partitions."""
        return sum(one.wasted_opens for one in self.partitions)

    @property
    def worst_first(self) -> tuple[PartitionDiagnosis, ...]:
        """The partitions with small files, those with most wasted opens first."""
        found = (one for one in self.partitions if one.small_files)
        return tuple(sorted(found, key=lambda one: (-one.wasted_opens, -one.small_files, one.partition_path)))

    def summary(self) -> JsonObject:
        """Counts and bytes."""
        return {
            "partitions": len(self.partitions),
            "partitions_with_small_files": sum(one.small_files > 0 for one in self.partitions),
            "files": sum(one.files for one in self.partitions),
            "small_files": self.small_files,
            "bytes": sum(one.bytes for one in self.partitions),
            "small_bytes": sum(one.small_bytes for one in self.partitions),
            "wasted_opens": self.wasted_opens,
            "causes": [str(one.cause) for one in self.findings],
        }

    def describe(self) -> str:
        """Say it in one sentence."""
        files = sum(one.files for one in self.partitions)
        if not self.small_files:
            return f"{counted(files, 'file')}, none below {human_bytes(self.small_file_bytes)}"
        causes = ", ".join(f"{one.cause} ({one.certainty})" for one in self.findings) or "none told"
        return (
            f"{human_count(self.small_files)} of {counted(files, 'file')} below {human_bytes(self.small_file_bytes)}, "
            f"{counted(self.wasted_opens, 'wasted open')}; causes: {causes}"
        )

    def rows(self, *, most: int | None = None) -> Iterable[tuple[str, ...]]:
        """A row of text for each partition with small files, worst first."""
        for one in self.worst_first[:most]:
            yield (
                one.partition_path or "(no partition)",
                human_count(one.files),
                human_count(one.small_files),
                human_bytes(one.bytes),
                human_count(one.wasted_opens),
                ", ".join(f"{cause} {count}" if count else str(cause) for cause, count in one.causes),
            )

    def lines(self) -> Iterable[str]:
        """The findings as text: cause, evidence and cure."""
        for one in self.findings:
            yield f"{one.cause} ({one.certainty}): {one.statement}"
            yield from (f"  {text}" for text in one.evidence)
            yield from (f"  cure: {cure.describe()}" for cure in one.cures)
            if one.action:
                yield f"  do: {one.action}"

    def to_json(self) -> JsonObject:
        """The whole document."""
        return {
            "kind": self.KIND,
            "version": self.VERSION,
            "basis": self.basis.to_json(),
            "hudi_version": self.hudi_version,
            "small_file_bytes": self.small_file_bytes,
            "target_file_bytes": self.target_file_bytes,
            "summary": self.summary(),
            "findings": [one.to_json() for one in self.findings],
            "partitions": [one.to_json() for one in self.partitions],
            "prediction": None if self.prediction is None else self.prediction.to_json(),
        }
