"""What a report is made from, and what became of each partition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum
from functools import cached_property

from airflow_hudi_maint.core.model.plan import ClusteringEntry, ClusteringPlan, Decision, ExpiryEntry, ExpiryPlan
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics
from airflow_hudi_maint.core.planning.expiry_forecast import Horizon
from airflow_hudi_maint.core.reporting.insight import NO_INSIGHT, TableInsight

DONE = frozenset({Outcome.DONE, Outcome.ALREADY_DONE})
REWRITES = frozenset({Step.EXECUTE_CLUSTERING, Step.CLUSTER, Step.COMPACT_SMALL_FILES})


class Fate(StrEnum):
    """What happened to a partition, or will when the plan is applied; in the order in which pages list them."""

    EXPIRED = "expired"
    RESTORED = "restored"
    TO_EXPIRE = "would expire"
    CLUSTERED = "clustered"
    TO_CLUSTER = "would be clustered"
    BLOCKED = "blocked"
    GONE = "gone by other means"
    KEPT = "kept"

    @property
    def rank(self) -> int:
        """The place in the order of pages."""
        return tuple(Fate).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFate:
    """One partition before and after. Without earlier statistics ``before`` is None for all of them."""

    partition_path: str
    fate: Fate
    bytes_before: int | None
    bytes_after: int
    files_before: int | None
    files_after: int
    small_files_after: int

    @property
    def largest_bytes(self) -> int:
        """The greater of bytes before and after."""
        return max(self.bytes_before or 0, self.bytes_after)


@dataclass(frozen=True, kw_only=True)
class ReportFacts:
    """The values that one report shows. ``zone`` is the zone of the table's timeline; all times are shown in it.

    ``failed_steps`` are names of steps that failed, and ``unrun_steps`` of those that did not run for that reason: such
    a step leaves no report, and without them a page would say that nothing had to be done.
    """

    before: TableStatistics | None
    after: TableStatistics
    reports: Sequence[StepReport]
    expiry_plan: ExpiryPlan | None
    clustering_plan: ClusteringPlan | None
    title: str
    now: datetime
    zone: tzinfo
    insight: TableInsight = NO_INSIGHT
    failed_steps: Sequence[str] = ()
    unrun_steps: Sequence[str] = ()

    @cached_property
    def expiry_entries(self) -> Mapping[str, ExpiryEntry]:
        """The expiry plan's entries by partition path."""
        return {entry.partition_path: entry for entry in self.expiry_plan.entries} if self.expiry_plan else {}

    @cached_property
    def clustering_entries(self) -> Mapping[str, ClusteringEntry]:
        """The clustering plan's entries by partition path."""
        return {entry.partition_path: entry for entry in self.clustering_plan.entries} if self.clustering_plan else {}

    @cached_property
    def expired(self) -> frozenset[str]:
        """Partitions that an expiry step dropped, as its report says."""
        return _touched(self.reports, steps={Step.EXPIRE})

    @cached_property
    def restored(self) -> frozenset[str]:
        """Partitions that a step brought back after a drop, as its report says."""
        return _touched(self.reports, steps={Step.RESTORE})

    @cached_property
    def clustered(self) -> frozenset[str]:
        """Partitions that a step rewrote, as its report says."""
        return _touched(self.reports, steps=REWRITES)

    def plan_path(self, *steps: Step) -> str | None:
        """Where the plan of the first of these steps lies; None when no report names one."""
        return next((one.plan_path for one in self.reports if one.step in steps and one.plan_path), None)

    @cached_property
    def partitions(self) -> tuple[PartitionFate, ...]:
        """Every partition with data before or after, in natural path order."""
        earlier = self.before.by_path if self.before else {}
        paths = {*self.after.by_path, *earlier}
        return tuple(self._partition(path) for path in in_natural_order(paths))

    def _partition(self, path: str) -> PartitionFate:
        old = self.before.by_path.get(path) if self.before else None
        new = self.after.by_path.get(path)
        return PartitionFate(
            partition_path=path,
            fate=self._fate(path, old=old, new=new),
            bytes_before=_or_zero(old.total_bytes if old else None, known=self.before is not None),
            bytes_after=new.total_bytes if new else 0,
            files_before=_or_zero(old.data_file_count if old else None, known=self.before is not None),
            files_after=new.data_file_count if new else 0,
            small_files_after=new.small_file_count(self.after.small_file_bytes) if new else 0,
        )

    def _fate(self, path: str, *, old: PartitionStatistics | None, new: PartitionStatistics | None) -> Fate:
        known = ((Fate.RESTORED, self.restored), (Fate.EXPIRED, self.expired), (Fate.CLUSTERED, self.clustered))
        done = next((fate for fate, paths in known if path in paths and (new or fate is not Fate.RESTORED)), None)
        if done or (old and not new):
            return done or Fate.GONE
        foreseen = self._foreseen.get(path)
        if foreseen is not None:
            return foreseen
        decisions = {
            entries[path].decision for entries in (self.expiry_entries, self.clustering_entries) if path in entries
        }
        if Decision.BLOCKED in decisions:
            return Fate.BLOCKED
        if Decision.EXPIRE in decisions:
            return Fate.TO_EXPIRE
        return Fate.TO_CLUSTER if Decision.CLUSTER in decisions else Fate.KEPT

    @cached_property
    def _foreseen(self) -> Mapping[str, Fate]:
        """What the forecast says of partitions that would go now; a report with an expiry plan goes by that."""
        forecast = self.insight.forecast
        if forecast is None or self.expiry_plan is not None:
            return {}
        fates = {Horizon.NOW: Fate.TO_EXPIRE, Horizon.BLOCKED: Fate.BLOCKED}
        return {one.partition_path: fates[one.horizon] for one in forecast.entries if one.horizon in fates}


def _or_zero(value: int | None, *, known: bool) -> int | None:
    return (value or 0) if known else None


def _touched(reports: Iterable[StepReport], *, steps: Iterable[Step]) -> frozenset[str]:
    wanted = frozenset(steps)
    return frozenset(
        path
        for one in reports
        if one.step in wanted and one.outcome in DONE and one.instants
        for path in one.partitions
    )


def in_natural_order(paths: Iterable[str]) -> list[str]:
    """Sort paths so that numbers in them count as numbers.

    >>> in_natural_order(["month=10", "month=9"])
    ['month=9', 'month=10']
    """
    return sorted(paths, key=natural_key)


def natural_key(path: str) -> tuple[list[tuple[int, int, str]], str]:
    """The key of :func:`in_natural_order`; equal only for equal paths."""
    parts = (part for part in re.split(r"([0-9]+)", path) if part)
    return [(0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part) for part in parts], path
