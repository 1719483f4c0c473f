"""Why a write left a small file: the rules, one write at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from airflow_hudi_maint.core.model.diagnosis import Cause, Certainty
from airflow_hudi_maint.core.model.sizing import (
    SMALL_FILE_CANDIDATES,
    SMALL_FILE_LIMIT,
    AverageRecordSize,
    SizingSettings,
)
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.sizing import insert_split
from airflow_hudi_maint.core.planning.small_file_origins import BULK_INSERTS, OVERWRITES, SERVICES, PartitionWrite

LEAVES_IDLE = (Cause.NO_HANDLING, Cause.ONE_CANDIDATE)
"""Causes that keep small what was there before, too."""
_AGREES = 0.15
"""How far the rows in a new file may be from the estimate's to be its doing: keys are dealt out by their hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A cause, how sure it is, and the sentence that shows it.

    ``limit_at_most`` is what the writer's small-file limit cannot have been above.
    """

    cause: Cause
    certainty: Certainty
    evidence: str
    instant: str = ""
    is_fixed_split: bool = False
    average: AverageRecordSize | None = None
    limit_at_most: int | None = None


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules under a writer's settings; ``average_before`` is what that writer took a record for at an instant.

    ``limit_is_given`` says that the small-file limit is known to be the writer's.
    """

    settings: SizingSettings
    is_merge_on_read: bool
    average_before: Callable[[str], AverageRecordSize]
    limit_is_given: bool = False
    small_file_bytes: int

    def of(self, write: PartitionWrite, *, overflows: bool = False) -> Reason | None:
        """Say why ``write`` left its new file groups small; None where the write gives no reason.

        ``overflows`` asks of those that a bucket went on in, when its first file was full.
        """
        needed = write.needed(self.settings.max_file_bytes)
        if write.operation in BULK_INSERTS:
            return self._bulk_insert(write, needed=needed)
        if write.operation in SERVICES:
            return None
        if write.bucket_count > needed:
            return self._estimate_too_high(write, needed=needed)
        if overflows and len(write.created) > write.bucket_count:
            return self._estimate_too_low(write)
        return None if write.operation in OVERWRITES else self._left_idle(write)

    def _bulk_insert(self, write: PartitionWrite, *, needed: int) -> Reason | None:
        made = len(write.created)
        said = f"{_named(write)} made {counted(made, 'file')} of {human_bytes(write.created_bytes)} in all"
        if made > needed:
            evidence = f"{said}, where {needed} would do"
            return Reason(
                cause=Cause.BULK_INSERT, certainty=Certainty.CERTAIN, evidence=evidence, instant=write.requested_time
            )
        idle = self._idle(write)
        if not idle:
            return None
        evidence = f"{said}, beside {counted(len(idle), 'small file')} that a bulk insert never looks at"
        return Reason(
            cause=Cause.NO_HANDLING, certainty=Certainty.CERTAIN, evidence=evidence, instant=write.requested_time
        )

    def _estimate_too_high(self, write: PartitionWrite, *, needed: int) -> Reason:
        rows = max(one.records for one in write.created)
        real = write.created_bytes // max(write.created_records, 1)
        average = self.average_before(write.requested_time)
        expected = insert_split(self.settings, average)
        agrees = abs(rows - expected) <= _AGREES * expected
        split = f"{counted(rows, 'row')} a file at most; a row takes {real:,} bytes in them"
        why = (
            f"the estimate of {average.bytes:,} bytes a row ({_source(average)}) gives {expected:,} a file"
            if self.settings.auto_split
            else f"a split of {expected:,} rows is set"
        )
        return Reason(
            cause=Cause.ESTIMATE_TOO_HIGH,
            certainty=Certainty.CERTAIN if agrees else Certainty.LIKELY,
            evidence=f"{_named(write)} made {counted(len(write.created), 'file')} of "
            f"{human_bytes(write.created_bytes)} in all, where {needed} would do: {split}"
            + (f", and {why}" if agrees else f", where {why}: the writer is set otherwise than what is known here"),
            instant=write.requested_time,
            is_fixed_split=agrees and not self.settings.auto_split,
            average=average,
        )

    def _estimate_too_low(self, write: PartitionWrite) -> Reason:
        spilt = len(write.created) - write.bucket_count
        evidence = (
            f"{_named(write)} planned {counted(write.bucket_count, 'new file')} and had to go on in {spilt} more: its "
            f"rows took {write.created_bytes // max(write.created_records, 1):,} bytes each, more than was estimated"
        )
        return Reason(
            cause=Cause.ESTIMATE_TOO_LOW,
            certainty=Certainty.CERTAIN,
            evidence=evidence,
            instant=write.requested_time,
            average=self.average_before(write.requested_time),
        )

    def _left_idle(self, write: PartitionWrite) -> Reason | None:
        """Why new file groups were begun beside small ones that did not grow."""
        idle = self._idle(write)
        if not idle:
            return None
        free = [file_id for file_id in idle if not write.before[file_id].has_log_files]
        said = f"{_named(write)} began {counted(len(write.created), 'file')} beside {counted(len(idle), 'small file')}"
        if not free:
            evidence = f"{said}, all with log files, which take no inserts before they are compacted"
            return self._reason(Cause.LOG_FILES, Certainty.CERTAIN, write, evidence)
        if self.is_merge_on_read and write.grown:
            evidence = (
                f"{said} and filled {len(write.grown)} of them: {SMALL_FILE_CANDIDATES}"
                f"={self.settings.small_file_candidates} is all that a merge-on-read commit looks at"
            )
            return self._reason(Cause.ONE_CANDIDATE, Certainty.CERTAIN, write, evidence)
        average = self.average_before(write.requested_time)
        largest = max(self.settings.max_file_bytes - write.before[file_id].bytes for file_id in free)
        if self.limit_is_given and self.settings.small_file_bytes and largest < average.bytes:
            evidence = (
                f"{said}, none of which had room for a row of {average.bytes:,} bytes, as estimated "
                f"({_source(average)})"
            )
            return self._reason(Cause.ESTIMATE_TOO_HIGH, Certainty.LIKELY, write, evidence, average=average)
        smallest = min(write.before[file_id].bytes for file_id in free)
        evidence = f"{said} that took none of its rows, the smallest of {human_bytes(smallest)}"
        off = self.limit_is_given and self.settings.small_file_bytes <= smallest
        if off:
            evidence += f": {SMALL_FILE_LIMIT}={self.settings.small_file_bytes}"
        certainty = Certainty.CERTAIN if off else Certainty.LIKELY
        return replace(self._reason(Cause.NO_HANDLING, certainty, write, evidence), limit_at_most=smallest)

    def _idle(self, write: PartitionWrite) -> list[str]:
        """The file groups that were small, and did not grow though new ones were begun."""
        return [
            file_id
            for file_id, one in write.before.items()
            if one.bytes < self.small_file_bytes and file_id not in write.grown
        ]

    @staticmethod
    def _reason(
        cause: Cause,
        certainty: Certainty,
        write: PartitionWrite,
        evidence: str,
        *,
        average: AverageRecordSize | None = None,
    ) -> Reason:
        return Reason(
            cause=cause, certainty=certainty, evidence=evidence, instant=write.requested_time, average=average
        )


def _named(write: PartitionWrite) -> str:
    operation = write.operation.lower() or "a write of unknown operation"
    return f"{write.requested_time} ({operation}) in {write.partition_path!r}"


def _source(average: AverageRecordSize) -> str:
    if average.is_guess:
        return "no commit is large enough to be measured"
    return f"measured on {', '.join(average.instants[-2:])}"
