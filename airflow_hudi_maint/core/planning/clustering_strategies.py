"""The strategies of clustering that go by a partition's name, size or age.

Source of the first four: Hudi's ``ClusteringPlanPartitionFilter``, alike in 0.15.0, 1.0.2 and 1.2.0. Hudi compares
partition paths as texts, by UTF-16, so ``month=10`` comes before ``month=9``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from airflow_hudi_maint.core.errors import InvalidSettingError, UnknownPartitionError
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_duration
from airflow_hudi_maint.core.planning.clustering_candidates import Candidate, PartitionFacts
from airflow_hudi_maint.core.planning.clustering_options import read_count, read_names, read_number, read_text
from airflow_hudi_maint.core.planning.clustering_strategy import Ranked
from airflow_hudi_maint.core.planning.wording import some_of

_HOURS = 24
_DAY_SECONDS = 86_400

Reader = Callable[..., object]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBased:
    """Every partition; those that lose most files first. Hudi's ``SparkSizeBasedClusteringPlanStrategy``.

    The other strategies are made from this one, and yours can be.
    """

    OPTIONS: ClassVar[Mapping[str, Reader]] = {}

    @property
    def needs_history(self) -> bool:
        """Sizes are enough."""
        return False

    @property
    def max_bytes(self) -> int | None:
        """No limit of bytes."""
        return None

    def exclude(self, partitions: Sequence[PartitionFacts], *, now: datetime) -> Mapping[str, str]:
        """Exclude none."""
        del partitions, now
        return {}

    def rank(self, candidates: Sequence[Candidate], *, now: datetime) -> Sequence[Ranked]:
        """Put those in front that lose most files."""
        del now
        ordered = sorted(candidates, key=lambda one: (-one.files_removed, one.partition_path))
        return [Ranked(partition_path=one.partition_path) for one in ordered]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentDays(SizeBased):
    """The ``lookback`` latest partitions by path, after the ``skip_from_latest`` very latest. Hudi's RECENT_DAYS."""

    OPTIONS: ClassVar[Mapping[str, Reader]] = {"lookback": read_count, "skip_from_latest": read_count}

    lookback: int = 2
    skip_from_latest: int = 0

    def __post_init__(self) -> None:
        _check_least("lookback", self.lookback, least=1)
        _check_least("skip_from_latest", self.skip_from_latest, least=0)

    def exclude(self, partitions: Sequence[PartitionFacts], *, now: datetime) -> Mapping[str, str]:
        """Exclude by place in descending order of paths."""
        del now
        reasons = {}
        for place, path in enumerate(_paths(partitions, reverse=True), 1):
            where = f"it is number {place} of {len(partitions)} from the latest"
            if place <= self.skip_from_latest:
                reasons[path] = f"{where}, and skip_from_latest={self.skip_from_latest}"
            elif place > self.skip_from_latest + self.lookback:
                skipped = f" after skip_from_latest={self.skip_from_latest}" if self.skip_from_latest else ""
                reasons[path] = f"{where}, beyond lookback={self.lookback}{skipped}"
        return reasons

    def rank(self, candidates: Sequence[Candidate], *, now: datetime) -> Sequence[Ranked]:
        """Put the latest in front."""
        del now
        by_path = sorted(candidates, key=lambda one: utf16(one.partition_path), reverse=True)
        return [Ranked(partition_path=one.partition_path) for one in by_path]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedPartitions(SizeBased):
    """Partitions by list or by regular expression, and from ``begin`` to ``end``. Hudi's SELECTED_PARTITIONS.

    Both ends are included and compared as texts; the expression has to match the whole relative path.
    """

    OPTIONS: ClassVar[Mapping[str, Reader]] = {
        "partitions": read_names, "begin": read_text, "end": read_text, "regex": read_text,
    }  # fmt: skip

    partitions: tuple[str, ...] = ()
    begin: str | None = None
    end: str | None = None
    regex: str | None = None

    def __post_init__(self) -> None:
        if not (self.partitions or self.begin or self.end or self.regex):
            raise InvalidSettingError("strategy selected_partitions needs partitions, begin, end or regex")
        if self.partitions and self.regex:
            raise InvalidSettingError("strategy selected_partitions takes partitions or regex, not both, as Hudi does")
        if self.begin and self.end and utf16(self.begin) > utf16(self.end):
            raise InvalidSettingError(f"begin={self.begin!r} is after end={self.end!r}: no partition lies between")
        try:
            re.compile(self.regex or "")
        except re.error as error:
            raise InvalidSettingError(f"regex={self.regex!r} is no regular expression: {error}") from error

    def exclude(self, partitions: Sequence[PartitionFacts], *, now: datetime) -> Mapping[str, str]:
        """Exclude what is not selected; raises UnknownPartitionError for a name in the list that there is not."""
        del now
        paths = _paths(partitions)
        unknown = set(self.partitions) - set(paths)
        if unknown:
            raise UnknownPartitionError(
                f"strategy selected_partitions names {counted(len(unknown), 'partition')} that cannot be chosen: "
                f"{some_of(unknown)}; there is {some_of(paths) if paths else 'none at all'}"
            )
        return {path: reason for path in paths for reason in [next(self._reasons(path), None)] if reason}

    def _reasons(self, path: str) -> Iterator[str]:
        if self.partitions and path not in self.partitions:
            yield f"not one of the {counted(len(self.partitions), 'selected partition')}"
        if self.begin and utf16(path) < utf16(self.begin):
            yield f"before begin={self.begin}"
        if self.end and utf16(path) > utf16(self.end):
            yield f"after end={self.end}"
        if self.regex and re.fullmatch(self.regex, path) is None:
            yield f"its path does not match regex={self.regex}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRolling(SizeBased):
    """One of 24 parts of the table in each hour of the day. Hudi's DAY_ROLLING.

    In ascending order of paths, partition number ``n`` (from 0 on) has its turn at hour ``n % 24`` of the table's time
    zone; Hudi takes the zone of its JVM.
    """

    def exclude(self, partitions: Sequence[PartitionFacts], *, now: datetime) -> Mapping[str, str]:
        """Exclude those whose hour it is not."""
        return {
            path: f"its turn is at {number % _HOURS}:00, and the plan was made at {now:%H:%M}"
            for number, path in enumerate(_paths(partitions))
            if number % _HOURS != now.hour
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest(SizeBased):
    """The ``count`` partitions with most bytes."""

    OPTIONS: ClassVar[Mapping[str, Reader]] = {"count": read_count}

    count: int = 2

    def __post_init__(self) -> None:
        _check_least("count", self.count, least=1)

    def exclude(self, partitions: Sequence[PartitionFacts], *, now: datetime) -> Mapping[str, str]:
        """Exclude by place in descending order of bytes."""
        del now
        ordered = sorted(partitions, key=lambda one: (-one.total_bytes, one.partition_path))
        return {
            one.partition_path: (
                f"with {human_bytes(one.total_bytes)} it is number {place} of {len(ordered)} by size, "
                f"beyond count={self.count}"
            )
            for place, one in enumerate(ordered, 1)
            if place > self.count
        }

    def rank(self, candidates: Sequence[Candidate], *, now: datetime) -> Sequence[Ranked]:
        """Put the largest in front."""
        del now
        ordered = sorted(candidates, key=lambda one: (-one.facts.total_bytes, one.partition_path))
        return [Ranked(partition_path=one.partition_path) for one in ordered]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cold(SizeBased):
    """Partitions whose data has not changed for ``idle_days``; clustering and compaction are no change of data."""

    OPTIONS: ClassVar[Mapping[str, Reader]] = {"idle_days": read_number}

    idle_days: float

    def __post_init__(self) -> None:
        if self.idle_days <= 0:
            raise InvalidSettingError(f"idle_days={self.idle_days:g} is too small; expected more than 0")

    @property
    def needs_history(self) -> bool:
        """It goes by the last change."""
        return True

    def exclude(self, partitions: Sequence[PartitionFacts], *, now: datetime) -> Mapping[str, str]:
        """Exclude what changed less than ``idle_days`` ago; just that long is long enough."""
        reasons = {}
        for one in partitions:
            if not one.file_count:
                continue  # grouping says that there is nothing
            if one.last_change is None:
                reasons[one.partition_path] = "when its data changed last is not known"
                continue
            idle = (now - one.last_change).total_seconds()
            if idle < self.idle_days * _DAY_SECONDS:
                ago = human_duration(max(idle, 0))
                reasons[one.partition_path] = f"its data changed {ago} ago, less than idle_days={self.idle_days:g}"
        return reasons

    def rank(self, candidates: Sequence[Candidate], *, now: datetime) -> Sequence[Ranked]:
        """Put the longest untouched in front."""
        ordered = sorted(candidates, key=lambda one: (one.facts.last_change or now, one.partition_path))
        return [Ranked(partition_path=one.partition_path) for one in ordered]


def utf16(text: str) -> bytes:
    r"""A key that sorts texts as Java does.

    >>> sorted(["\uffff", "\U00010000"], key=utf16) == ["\U00010000", "\uffff"]
    True
    """
    return text.encode("utf-16-be", "surrogatepass")


def _paths(partitions: Sequence[PartitionFacts], *, reverse: bool = False) -> list[str]:
    return sorted((one.partition_path for one in partitions), key=utf16, reverse=reverse)


def _check_least(name: str, value: int, *, least: int) -> None:
    if value < least:
        raise InvalidSettingError(f"{name}={value} is too small; expected at least {least}")
