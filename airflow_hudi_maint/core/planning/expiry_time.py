"""KEEP_BY_TIME: which partitions are older than their policy keeps, by the clock that the policy names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from airflow_hudi_maint.core.model.expiry_plan import ExpiryOutcome
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.plan_basis import Decision
from airflow_hudi_maint.core.model.policy import PolicyClock, TTLPolicy
from airflow_hudi_maint.core.model.statistics import PartitionStatistics
from airflow_hudi_maint.core.model.units import counted
from airflow_hudi_maint.core.planning.expiry_blocks import Block
from airflow_hudi_maint.core.planning.partition_values import order_values
from airflow_hudi_maint.core.planning.policy_match import describe
from airflow_hudi_maint.core.planning.wording import some_of

_VERBS = {PolicyClock.LAST_MODIFIED: "modified", PolicyClock.CREATED: "created"}
_ONE_DAY = timedelta(days=1)

_Key = str | datetime | None
"""What the age of a partition hangs on: an instant, the end of its period, or a text that is neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeClock:
    """The moment that ages are measured from; ``since`` is how a reason names it. ``moment_of`` reads an instant."""

    measured_from: datetime
    since: str
    moment_of: Callable[[str], datetime | None]


class _Judged(NamedTuple):
    outcome: ExpiryOutcome
    moment: datetime | None


class TimeRule:
    """One KEEP_BY_TIME policy at work: judges blocks of partitions, and remembers what it has judged."""

    def __init__(
        self, policy: TTLPolicy, *, clock: AgeClock, scheme: PartitionScheme, created: Mapping[str, str]
    ) -> None:
        self.policy = policy
        self._clock = clock
        self._created = created
        self._fields = scheme.fields
        self._kept = timedelta(days=policy.value) if policy.value <= timedelta.max.days else timedelta.max
        self._name = describe(policy)
        self._known: dict[_Key, _Judged] = {}
        self._going: dict[_Key, ExpiryOutcome] = {}
        self._read = policy.event_time.reader(scheme) if policy.event_time else None
        self._undated: list[str] = []

    def keys(self, block: Block, *, rows: Sequence[PartitionStatistics]) -> list[_Key]:
        """What each partition's age hangs on."""
        if self._read is not None:
            read = self._read
            pairs = ((read(block.values(number)), place) for number, place in enumerate(block.places))
            return [rows[place].partition_path if end is None else end for end, place in pairs]
        if self.policy.clock is PolicyClock.CREATED:
            created = self._created
            return [created.get(rows[place].partition_path) for place in block.places]
        return [rows[place].last_modified_instant for place in block.places]

    def _learn(self, keys: Iterable[_Key]) -> None:
        """Judge each key once: what hangs on it expires when it is older than the policy's days, not when as old."""
        for key in set(keys).difference(self._known):
            judged = self._known[key] = self._judge(key)
            if judged.outcome.decision is Decision.EXPIRE:
                self._going[key] = judged.outcome

    def judge_blocks(
        self, blocks: Sequence[Block], *, rows: Sequence[PartitionStatistics], outcomes: list[ExpiryOutcome]
    ) -> None:
        """Write the outcome of each partition; the newest of a group stays unless the policy allows emptying it."""
        depth, known = len(self.policy.spec.levels), self._known
        groups: dict[tuple[str, ...], list[tuple[Block, list[_Key]]]] = {}
        for block in blocks:
            keys = self.keys(block, rows=rows)
            self._learn(keys)
            for place, key in zip(block.places, keys, strict=True):
                outcomes[place] = known[key].outcome
            groups.setdefault(block.parents[:depth], []).append((block, keys))
            if self.policy.clock is not PolicyClock.LAST_MODIFIED:
                undated = [place for place, key in zip(block.places, keys, strict=True) if known[key].moment is None]
                self._undated.extend(rows[place].partition_path for place in undated)
        if depth < len(self._fields) and not self.policy.may_empty:
            for prefix, members in groups.items():
                self._spare_newest(prefix, members, outcomes=outcomes)

    def explain(
        self, block: Block, *, why: str, rows: Sequence[PartitionStatistics], outcomes: list[ExpiryOutcome]
    ) -> None:
        """Say of what stays why it does, where this policy alone would let it go."""
        keys, going, keep = self.keys(block, rows=rows), self._going, Decision.KEEP
        self._learn(keys)
        if going.keys().isdisjoint(keys):
            return
        # By identity: partitions that share an outcome go on sharing one.
        explained: dict[tuple[int, _Key], tuple[ExpiryOutcome, ExpiryOutcome]] = {}
        for place, key in zip(block.places, keys, strict=True):
            outcome = outcomes[place]
            if key not in going or outcome.decision is not keep or outcome.why_not is not None:
                continue
            shared = explained.get((id(outcome), key))
            if shared is None:
                shared = outcome, outcome._replace(why_not=f"{going[key].reason}, but {why}")
                explained[id(outcome), key] = shared
            outcomes[place] = shared[1]

    def warnings(self) -> tuple[str, ...]:
        """What could not be dated."""
        if not self._undated:
            return ()
        event_time = self.policy.event_time
        which = f"do not fit its eventTimePattern {event_time.pattern!r}" if event_time else "have no creation instant"
        count = counted(len(self._undated), "partition")
        return (f"{count} under {self._name} {which}, and stay: {some_of(self._undated)}",)

    def _judge(self, key: _Key) -> _Judged:
        if isinstance(key, datetime):
            return self._aged(key, what=f"holds data until {key:%Y-%m-%d %H:%M} UTC,")
        if self._read is not None:
            return self._ageless(f"its values do not fit the event time pattern {self.policy.event_time}")
        verb = _VERBS[self.policy.clock]
        if key is None:
            return self._ageless(
                "when it was created is not known: its .hoodie_partition_metadata is missing or has no commitTime"
            )
        moment = self._clock.moment_of(key)
        if moment is None:
            what = "last modified" if verb == "modified" else verb
            return self._ageless(f"its {what} instant {key!r} is no moment, so its age is not known")
        return self._aged(moment, what=verb)

    def _aged(self, moment: datetime, *, what: str) -> _Judged:
        age = self._clock.measured_from - moment
        days = _days(age, kept=self._kept)
        reason = f"{what} {days} days {self._clock.since}, kept {counted(self.policy.value, 'day')}"
        decision = Decision.EXPIRE if age > self._kept else Decision.KEEP
        return _Judged(ExpiryOutcome(decision, reason, self._name), moment)

    def _ageless(self, why: str) -> _Judged:
        return _Judged(ExpiryOutcome(Decision.KEEP, f"kept: {why}", self._name, why_not=why), None)

    def _spare_newest(
        self, prefix: tuple[str, ...], members: Sequence[tuple[Block, list[_Key]]], *, outcomes: list[ExpiryOutcome]
    ) -> None:
        """Of a group of which everything that has an age expires, keep the youngest; of equals the greatest value."""
        known, expire = self._known, Decision.EXPIRE
        dated = [key for _, keys in members for key in set(keys) if known[key].moment is not None]
        if not dated or any(known[key].outcome.decision is not expire for key in dated):
            return
        newest = max(dated, key=lambda key: known[key].moment or datetime.min)  # noqa: DTZ901 all have a moment
        depth = len(self.policy.spec.levels)
        youngest = [
            (block.values(number)[depth], place, known[key].outcome)
            for block, keys in members
            for number, (place, key) in enumerate(zip(block.places, keys, strict=True))
            if known[key].moment == known[newest].moment
        ]
        greatest = _greatest({value for value, _, _ in youngest}, field=self._fields[depth])
        under = "".join(f"{name}={value}/" for name, value in zip(self._fields, prefix, strict=False)) or "/"
        for value, place, outcome in youngest:
            if value == greatest:
                why = (
                    f"it is the newest of {self._fields[depth]} under {under}, which stays unless allowEmptying is set"
                )
                outcomes[place] = outcome._replace(
                    decision=Decision.KEEP, reason=f"kept: {outcome.reason}, but {why}", why_not=why
                )


def _greatest(values: Iterable[str], *, field: str) -> str:
    found = set(values)
    keys = order_values(found, field=field, field_type=None).keys
    return max(keys, key=keys.__getitem__) if keys else max(found)


def _days(age: timedelta, *, kept: timedelta) -> str:
    """Write an age so that it does not round to the limit that it misses or exceeds."""
    # A writer's clock may be a little ahead of ours, and a period may not have ended.
    days = max(age / _ONE_DAY, 0.0)
    text = f"{days:.1f}"
    return f"{days:.5f}" if age != kept and float(text) == kept / _ONE_DAY else text
