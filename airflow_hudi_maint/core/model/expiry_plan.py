"""Expiry plans: which partitions expire and which stay, each with its reason.

A table may have 640,000 partitions, of which most share a reason. So a plan that was just made holds two columns, the
statistics and what was decided of each, and makes an entry only where one is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, ClassVar, NamedTuple, overload

from airflow_hudi_maint.core.model.document import JsonObject, checked_document
from airflow_hudi_maint.core.model.expiry_guards import ExpiryClock
from airflow_hudi_maint.core.model.plan_basis import Decision, PlanBasis, broken_plan
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.statistics import PartitionStatistics
from airflow_hudi_maint.core.model.units import ordinal

_DECISIONS = (Decision.EXPIRE, Decision.KEEP, Decision.BLOCKED)
_TEXT, _TEXT_OR_NONE = frozenset({str}), frozenset({str, type(None)})
_COUNT, _COUNT_OR_NONE = frozenset({int}), frozenset({int, type(None)})
_ROW_TYPES = {
    "partition": _TEXT,
    "reason": _TEXT,
    "policy": _TEXT_OR_NONE,
    "last_modified_instant": _TEXT,
    "bytes": _COUNT,
    "data_files": _COUNT,
    "log_files": _COUNT,
    "records": _COUNT_OR_NONE,
    "blocked_by": _TEXT_OR_NONE,
    "why_not": _TEXT_OR_NONE,
}
"""The types that a value of a row may have; true and false are no counts."""


class ExpiryOutcome(NamedTuple):
    """What was decided of some partitions; shared by all that it is true of.

    ``why_not`` says why a partition stays that one would expect to go. Where a partition has an ordinal beside it, the
    reason goes on from that: ``smallest of 30 values of day``.
    """

    decision: Decision
    reason: str
    policy: str | None = None
    blocked_by: str | None = None
    why_not: str | None = None


def reason_of(outcome: ExpiryOutcome, *, number: int) -> str:
    """The whole reason: with the ordinal, where there is one."""
    return f"{ordinal(number)} {outcome.reason}" if number else outcome.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryEntry:
    """One partition in an expiry plan. ``policy`` is the policy that decided, as text; None where none applies.

    ``blocked_by`` is the pending instant that holds a partition which would expire; None where its name blocks it.
    ``why_not`` says why a partition stays that one would expect to go: a less specific policy would let it go, it is
    protected, or it is the newest. ``record_count`` is None where it is not known exactly.
    """

    partition_path: str
    decision: Decision
    reason: str
    policy: str | None
    last_modified_instant: str
    total_bytes: int
    data_file_count: int
    log_file_count: int
    blocked_by: str | None = None
    record_count: int | None = None
    why_not: str | None = None

    def to_json(self) -> JsonObject:
        """The row of the JSON document."""
        return {
            "partition": self.partition_path,
            "decision": str(self.decision),
            "reason": self.reason,
            "policy": self.policy,
            "last_modified_instant": self.last_modified_instant,
            "bytes": self.total_bytes,
            "data_files": self.data_file_count,
            "log_files": self.log_file_count,
            "records": self.record_count,
            "blocked_by": self.blocked_by,
            "why_not": self.why_not,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> ExpiryEntry:
        """Read what :meth:`to_json` wrote; rows of earlier releases have neither records nor a why-not."""
        return cls(
            partition_path=row["partition"],
            decision=Decision(row["decision"]),
            reason=row["reason"],
            policy=row["policy"],
            last_modified_instant=row["last_modified_instant"],
            total_bytes=row["bytes"],
            data_file_count=row["data_files"],
            log_file_count=row["log_files"],
            blocked_by=row["blocked_by"],
            record_count=row.get("records"),
            why_not=row.get("why_not"),
        )

    @classmethod
    def of(cls, row: PartitionStatistics, outcome: ExpiryOutcome, number: int = 0) -> ExpiryEntry:
        """Put together what the statistics say of a partition and what was decided of it."""
        return cls(
            partition_path=row.partition_path,
            decision=outcome.decision,
            reason=reason_of(outcome, number=number),
            policy=outcome.policy,
            last_modified_instant=row.last_modified_instant,
            total_bytes=row.total_bytes,
            data_file_count=row.data_file_count,
            log_file_count=row.log_file_count,
            blocked_by=outcome.blocked_by,
            record_count=row.record_count,
            why_not=outcome.why_not,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryTotals:
    """Sums over some partitions of a plan. ``records`` is None unless the records of each are known."""

    partitions: int
    bytes: int
    files: int
    records: int | None

    @classmethod
    def of(cls, entries: Sequence[ExpiryEntry]) -> ExpiryTotals:
        """Sum up; files are base files and log files of the latest slices."""
        return cls(
            partitions=len(entries),
            bytes=sum(entry.total_bytes for entry in entries),
            files=sum(entry.data_file_count + entry.log_file_count for entry in entries),
            records=_sum_if_known([entry.record_count for entry in entries]),
        )


def _sum_if_known(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


class ExpiryEntries(Sequence[ExpiryEntry]):
    """The entries of a plan as columns of equal length; equal to any sequence of the same entries.

    ``numbers`` has the place of each partition among those that go before others; 0 where that is no matter.
    """

    def __init__(
        self, rows: Sequence[PartitionStatistics], outcomes: Sequence[ExpiryOutcome], numbers: Sequence[int]
    ) -> None:
        if not len(rows) == len(outcomes) == len(numbers):
            msg = f"{len(rows)} partitions have {len(outcomes)} outcomes and {len(numbers)} numbers; each needs one"
            raise ValueError(msg)
        self.rows = rows
        self.outcomes = outcomes
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ExpiryEntry]:
        return map(ExpiryEntry.of, self.rows, self.outcomes, self.numbers)

    @overload
    def __getitem__(self, index: int) -> ExpiryEntry: ...

    @overload
    def __getitem__(self, index: slice) -> ExpiryEntries: ...

    def __getitem__(self, index: int | slice) -> ExpiryEntry | ExpiryEntries:
        if isinstance(index, slice):
            return ExpiryEntries(self.rows[index], self.outcomes[index], self.numbers[index])
        return ExpiryEntry.of(self.rows[index], self.outcomes[index], self.numbers[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExpiryEntries | tuple | list):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"ExpiryEntries({list(self)!r})"

    def having(self, decision: Decision) -> tuple[ExpiryEntry, ...]:
        """The entries with this decision; the others are not even made."""
        return tuple(self[place] for place, outcome in enumerate(self.outcomes) if outcome.decision is decision)

    @cached_property
    def totals(self) -> Mapping[Decision, ExpiryTotals]:
        """Sums by decision; over the statistics, since an entry for each would take longer than planning."""
        decisions = [outcome.decision for outcome in self.outcomes]
        rows = {one: list(compress(self.rows, [other is one for other in decisions])) for one in _DECISIONS}
        return {
            decision: ExpiryTotals(
                partitions=len(found),
                bytes=sum([row.total_bytes for row in found]),
                files=sum([len(row.base_file_bytes) + row.log_file_count for row in found]),
                records=_sum_if_known([row.record_count for row in found]),
            )
            for decision, found in rows.items()
        }


@dataclass(frozen=True, kw_only=True)
class ExpiryPlan:
    """Which partitions expire. Every partition with data has an entry, in path order.

    ``clock`` is what ages were measured by: ``table`` (its newest data) or ``wall``. ``quiet_seconds`` is how long the
    newest data was behind the plan's moment (negative: ahead of it); None without a dated partition.
    ``previous_expired`` is how many partitions the run before dropped; None where none is known.
    ``has_table_policies`` says that the policies are those that the table itself had, and were not given for the plan.
    """

    KIND: ClassVar[str] = "expiry-plan"
    VERSION: ClassVar[int] = 1

    basis: PlanBasis
    policies: PolicySet
    entries: Sequence[ExpiryEntry]
    warnings: tuple[str, ...] = ()
    clock: str = "table"
    quiet_seconds: float | None = None
    previous_expired: int | None = None
    has_table_policies: bool = False

    def having(self, decision: Decision) -> tuple[ExpiryEntry, ...]:
        """The entries with this decision, in path order."""
        if isinstance(self.entries, ExpiryEntries):
            return self.entries.having(decision)
        return tuple(entry for entry in self.entries if entry.decision is decision)

    @property
    def expired(self) -> tuple[ExpiryEntry, ...]:
        """The partitions to drop."""
        return self.having(Decision.EXPIRE)

    @property
    def blocked(self) -> tuple[ExpiryEntry, ...]:
        """The partitions that would be dropped if no pending plan held them and Hudi could be given their names."""
        return self.having(Decision.BLOCKED)

    @property
    def spared(self) -> tuple[ExpiryEntry, ...]:
        """The partitions that stay although one would expect them to go; each says why not."""
        if isinstance(self.entries, ExpiryEntries):
            outcomes = enumerate(self.entries.outcomes)
            return tuple(self.entries[place] for place, outcome in outcomes if outcome.why_not)
        return tuple(entry for entry in self.entries if entry.why_not)

    @cached_property
    def totals(self) -> Mapping[Decision, ExpiryTotals]:
        """Sums by decision; a decision that no partition has is there, with nothing."""
        if isinstance(self.entries, ExpiryEntries):
            return self.entries.totals
        return {decision: ExpiryTotals.of(self.having(decision)) for decision in _DECISIONS}

    def summary(self) -> JsonObject:
        """Counts and bytes; records are None unless those of each partition are known."""
        totals = self.totals
        every = totals.values()
        records = [one.records for one in every]
        return {
            "partitions": len(self.entries),
            "expired": totals[Decision.EXPIRE].partitions,
            "kept": totals[Decision.KEEP].partitions,
            "blocked": totals[Decision.BLOCKED].partitions,
            "expired_bytes": totals[Decision.EXPIRE].bytes,
            "total_bytes": sum(one.bytes for one in every),
            "expired_files": totals[Decision.EXPIRE].files,
            "expired_records": totals[Decision.EXPIRE].records,
            "total_records": None if None in records else sum(count or 0 for count in records),
        }

    def to_json(self) -> JsonObject:
        """The whole document."""
        return {
            "kind": self.KIND,
            "version": self.VERSION,
            "basis": self.basis.to_json(),
            "clock": self.clock,
            "quiet_seconds": self.quiet_seconds,
            "previous_expired": self.previous_expired,
            "has_table_policies": self.has_table_policies,
            "policies": [dict(policy) for policy in self.policies.to_json()],
            "summary": self.summary(),
            "warnings": list(self.warnings),
            "entries": [entry.to_json() for entry in self.entries],
        }

    @classmethod
    def from_json(cls, value: object, *, name: str) -> ExpiryPlan:
        """Read a document; raises CorruptTableError that names the file."""
        document: Mapping[str, Any] = checked_document(value, kind=cls.KIND, version=cls.VERSION, name=name)
        try:
            return cls(
                basis=PlanBasis.from_json(document["basis"]),
                policies=PolicySet.from_json(document["policies"], source=name),
                entries=_entries(document["entries"]),
                warnings=tuple(_of_type(one, known=_TEXT) for one in document["warnings"]),
                clock=str(ExpiryClock(document["clock"])),
                quiet_seconds=_seconds(document.get("quiet_seconds")),
                previous_expired=_of_type(document.get("previous_expired"), known=_COUNT_OR_NONE),
                has_table_policies=document.get("has_table_policies") is True,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise broken_plan(name, error) from error


def _entries(rows: Sequence[Mapping[str, Any]]) -> tuple[ExpiryEntry, ...]:
    """Read the rows of a document, checked by column.

    Raises KeyError, TypeError or ValueError for what :meth:`ExpiryEntry.to_json` would not have written.
    """
    wrong = [key for key, known in _ROW_TYPES.items() if not known.issuperset(type(row.get(key)) for row in rows)]
    if wrong:
        raise TypeError(f"entries have values of a wrong type in {', '.join(wrong)}")
    entries = tuple(map(ExpiryEntry.from_json, rows))
    for entry in entries:
        if min(entry.total_bytes, entry.data_file_count, entry.log_file_count, entry.record_count or 0) < 0:
            raise ValueError(f"figures of partition {entry.partition_path!r} are negative")
    if len({entry.partition_path for entry in entries}) < len(entries):
        raise ValueError("a partition stands twice in its entries")
    return entries


def _seconds(value: Any) -> float | None:  # noqa: ANN401 JSON
    found: float | None = _of_type(value, known=_COUNT_OR_NONE | {float})
    if found is not None and not math.isfinite(found):
        raise ValueError(f"{value!r} is no amount of seconds")
    return found


def _of_type(value: Any, *, known: frozenset[type]) -> Any:  # noqa: ANN401 JSON
    if type(value) not in known:
        raise TypeError(f"{value!r} is of a wrong type")
    return value
