"""How much is asked of storage."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from airflow_hudi_maint.core.model.units import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTotals:
    """Requests up to a moment, or between two of them. Writes include deletions."""

    lists: int = 0
    reads: int = 0
    writes: int = 0
    retries: int = 0

    def __sub__(self, earlier: RequestTotals) -> RequestTotals:
        return RequestTotals(
            lists=self.lists - earlier.lists,
            reads=self.reads - earlier.reads,
            writes=self.writes - earlier.writes,
            retries=self.retries - earlier.retries,
        )

    def __add__(self, other: RequestTotals) -> RequestTotals:
        return RequestTotals(
            lists=self.lists + other.lists,
            reads=self.reads + other.reads,
            writes=self.writes + other.writes,
            retries=self.retries + other.retries,
        )

    def __str__(self) -> str:
        verbs = ((self.lists, "listing"), (self.reads, "read"), (self.writes, "write"))
        retries = f", {self.retries} tried again" if self.retries else ""
        return ", ".join(counted(count, noun) for count, noun in verbs) + retries


@dataclass(slots=True)
class RequestCount:
    """How many requests went to storage, by verb; what was tried again counts each time.

    Every page of a listing counts on S3, where a page has at most 1,000 names. Other storage is asked through its own
    client: one call counts as one, however many requests the client makes of it.

    ``expected_lists`` and ``expected_reads`` count the requests of many files or directories before the first of them
    is made, for a progress bar; single requests are not announced.
    """

    lists: int = 0
    reads: int = 0
    writes: int = 0
    retries: int = 0
    expected_lists: int = 0
    expected_reads: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, verb: str, *, count: int = 1) -> None:
        """Count one request, or ``count`` that are expected; safe from any thread."""
        with self._lock:
            setattr(self, verb, getattr(self, verb) + count)

    @property
    def totals(self) -> RequestTotals:
        """The counts at this moment; the difference of two is what was asked in between."""
        with self._lock:
            return RequestTotals(lists=self.lists, reads=self.reads, writes=self.writes, retries=self.retries)
