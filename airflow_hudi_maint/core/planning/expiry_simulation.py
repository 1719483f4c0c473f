"""What-if: replay stored statistics day by day and say what would have expired, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.expiry_guards import ExpiryGuards
from airflow_hudi_maint.core.model.instant import instant_moment
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.plan import ExpiryEntry, PlanBasis
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.expiry import plan_expiry
from airflow_hudi_maint.core.planning.expiry_guards import guard_problems

_NOTHING: Mapping[str, str] = {}
_ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedDay:
    """What one day would have dropped. ``as_of_instant`` names the statistics that stood for the table on it.

    ``refused`` are the guards that would have stopped the run, in figures; what it names would have stayed then.
    """

    day: date
    as_of_instant: str
    expired: tuple[ExpiryEntry, ...]
    kept_count: int
    refused: tuple[str, ...] = ()

    @property
    def expired_bytes(self) -> int:
        """Bytes of what would have been dropped."""
        return sum(entry.total_bytes for entry in self.expired)

    def __str__(self) -> str:
        verb = "would have been refused" if self.refused else "would have expired"
        return (
            f"{self.day}: {counted(len(self.expired), 'partition')} {verb} ({human_bytes(self.expired_bytes)}), "
            f"{self.kept_count} kept"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedDifference:
    """A partition that two sets of policies would have dropped on different days; None for not at all."""

    partition_path: str
    before: date | None
    after: date | None
    total_bytes: int


def simulate(  # noqa: PLR0913 the inputs of a plan, without a table
    history: Sequence[TableStatistics],
    policies: PolicySet,
    *,
    since: date,
    scheme: PartitionScheme,
    zone: tzinfo,
    until: date | None = None,
    field_types: Mapping[str, str] = _NOTHING,
    created: Mapping[str, str] = _NOTHING,
    guards: ExpiryGuards = ExpiryGuards(),  # noqa: B008 a frozen value
) -> tuple[SimulatedDay, ...]:
    """Say day by day, from ``since`` to ``until``, what the policies would have dropped.

    ``until`` None is the day of the last statistics.

    A day is judged at its end (UTC) by the newest statistics that had been gathered by then; days before the first are
    left out. What a day would have dropped is gone on the days after it, until it is written again. A day whose plan a
    guard would have stopped drops nothing. ``history`` may come in any order.

    Raises InvalidSettingError without any statistics, and InvalidPolicyError as :func:`plan_expiry`.
    """
    if not history:
        msg = "there are no stored statistics to replay; gather statistics daily, or give the files of another table"
        raise InvalidSettingError(msg)
    ordered = sorted(history, key=_gathered_at)
    last = until or _gathered_at(ordered[-1]).date()
    dropped: dict[str, datetime] = {}
    previous: int | None = None
    days = []
    for day, statistics in _days(ordered, since=since, until=last):
        now = datetime.combine(day, time.max, tzinfo=UTC)
        left = replace(
            statistics,
            partitions=tuple(
                row
                for row in statistics.partitions
                if row.partition_path not in dropped
                or _written_after(row.last_modified_instant, dropped[row.partition_path], zone=zone)
            ),
        )
        plan = plan_expiry(
            left,
            policies,
            scheme=scheme,
            field_types=field_types,
            pending={},
            basis=_basis(left),
            zone=zone,
            now=now,
            guards=guards,
            created=created,
            previous_expired=previous,
        )
        refused = guard_problems(plan, guards)
        expired = plan.expired
        if expired and not refused:
            dropped.update(dict.fromkeys((entry.partition_path for entry in expired), now))
            previous = len(expired)
        days.append(
            SimulatedDay(
                day=day,
                as_of_instant=statistics.as_of_instant,
                expired=expired,
                kept_count=len(plan.entries) - len(expired),
                refused=refused,
            )
        )
    return tuple(days)


def compare_simulations(
    before: Sequence[SimulatedDay], after: Sequence[SimulatedDay]
) -> tuple[SimulatedDifference, ...]:
    """The partitions that two simulations over the same statistics drop on different days, in path order.

    A partition that is dropped again, since it was written anew, counts by its first drop.
    """
    first, second = _first_drops(before), _first_drops(after)
    return tuple(
        SimulatedDifference(
            partition_path=path,
            before=first[path][0] if path in first else None,
            after=second[path][0] if path in second else None,
            total_bytes=(second.get(path) or first[path])[1],
        )
        for path in sorted(first.keys() | second.keys())
        if first.get(path, (None,))[0] != second.get(path, (None,))[0]
    )


def _first_drops(days: Sequence[SimulatedDay]) -> dict[str, tuple[date, int]]:
    found: dict[str, tuple[date, int]] = {}
    for day in days:
        for entry in () if day.refused else day.expired:
            found.setdefault(entry.partition_path, (day.day, entry.total_bytes))
    return found


def _days(ordered: Sequence[TableStatistics], *, since: date, until: date) -> Iterator[tuple[date, TableStatistics]]:
    """Each day with the newest statistics that were gathered by its end."""
    for number in range((until - since).days + 1):
        day = since + number * _ONE_DAY
        known = [one for one in ordered if _gathered_at(one).date() <= day]
        if known:
            yield day, known[-1]


def _gathered_at(statistics: TableStatistics) -> datetime:
    try:
        moment = datetime.fromisoformat(statistics.gathered_at)
    except ValueError:
        msg = f"statistics as of {statistics.as_of_instant} were gathered at {statistics.gathered_at!r}, no moment"
        raise InvalidSettingError(f"{msg}; leave that file out") from None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _written_after(instant_time: str, moment: datetime, *, zone: tzinfo) -> bool:
    try:
        return instant_moment(instant_time, zone=zone) > moment
    except ValueError:
        return False


def _basis(statistics: TableStatistics) -> PlanBasis:
    return PlanBasis(
        base_path=statistics.base_path,
        table_name=statistics.table_name,
        table_version=statistics.table_version,
        watermark=statistics.watermark,
        created_at=statistics.gathered_at,
    )
