"""The limits of an expiry plan, and what is held back from it whatever the policies say."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Literal, TypeAlias

from airflow_hudi_maint.core.errors import InvalidPolicyError, InvalidSettingError
from airflow_hudi_maint.core.model.document import Json
from airflow_hudi_maint.core.model.partition import PartitionScheme, PartitionSpec
from airflow_hudi_maint.core.model.strict_json import shown

DEFAULT_MAX_SHARE = 0.5
DEFAULT_MAX_PARTITIONS = 10_000
DEFAULT_MAX_GROWTH = 10.0
DEFAULT_MAX_SKEW_MINUTES = 5.0
WALL_CLOCK_QUIET_DAYS = 7.0
"""``max_quiet_days`` under the wall clock, where nothing else is given."""

AUTO: Literal["auto"] = "auto"
QuietDays: TypeAlias = "float | Literal['auto'] | None"

_SHARES = ("max_partition_share", "max_byte_share", "max_record_share")
_COUNTS = ("max_partitions", "min_partitions_left")
_MEASURES = ("max_growth", "max_clock_skew_minutes")
_LISTS = ("protected", "legal_hold")
_EXAMPLES = {
    **dict.fromkeys(_SHARES, "0.5"),
    "max_partitions": "10000",
    "min_partitions_left": "1",
    "max_growth": "10",
    "max_clock_skew_minutes": "5",
    "max_quiet_days": "7",
    "clock": "'table'",
    **dict.fromkeys(_LISTS, "['region=eu/', 'region=us/day=2026-11-30']"),
}


class ExpiryClock(StrEnum):
    """From when KEEP_BY_TIME counts days backwards."""

    TABLE = "table"
    """From the table's newest data: when the feed dies, what is there stays."""
    WALL = "wall"
    """From now: when the feed dies, everything expires in the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryGuards:
    """The safety net of an expiry plan. None lifts a limit; exactly the limit is allowed.

    - ``max_partition_share``, ``max_byte_share``, ``max_record_share``: of all partitions, bytes and records, how many
      one plan may drop. Records count only where those of every partition are known.
    - ``max_partitions``: how many partitions one plan may drop; ``min_partitions_left``: how many have to stay.
    - ``max_growth``: how many times the partitions of the previous run this one may drop.
    - ``max_quiet_days``: how old the newest data may be. ``auto`` is no limit while ages are measured from that data
      (``clock`` table), and 7 days where they are measured from now.
    - ``max_clock_skew_minutes``: how far the newest data may be ahead of now.
    - ``protected``, ``legal_hold``: specs (``region=eu/``) and partition paths that stay whatever the policies say.
    """

    max_partition_share: float | None = DEFAULT_MAX_SHARE
    max_byte_share: float | None = DEFAULT_MAX_SHARE
    max_record_share: float | None = DEFAULT_MAX_SHARE
    max_partitions: int | None = DEFAULT_MAX_PARTITIONS
    min_partitions_left: int | None = 1
    max_growth: float | None = DEFAULT_MAX_GROWTH
    max_quiet_days: QuietDays = AUTO
    max_clock_skew_minutes: float | None = DEFAULT_MAX_SKEW_MINUTES
    clock: ExpiryClock = ExpiryClock.TABLE
    protected: tuple[str, ...] = ()
    legal_hold: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _SHARES:
            share = getattr(self, name)
            # NaN is in no range; True would mean 1.
            if share is not None and not (_is_number(share) and 0 <= share <= 1):
                raise _broken(name, share, why="is no share: write a number from 0 to 1, or None for no limit")
        for name in _COUNTS:
            count = getattr(self, name)
            if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
                raise _broken(name, count, why="is no count: write a whole number, or None for no limit")
        for name in (*_MEASURES, "max_quiet_days"):
            value = getattr(self, name)
            is_unlimited = value is None or (name == "max_quiet_days" and value == AUTO)
            if not is_unlimited and not (_is_number(value) and value >= 0):
                raise _broken(name, value, why="is no amount: write a number of at least 0, or None for no limit")
        for name in _LISTS:
            object.__setattr__(self, name, _selectors(name, getattr(self, name)))
        try:
            object.__setattr__(self, "clock", ExpiryClock(self.clock))
        except ValueError:
            raise InvalidSettingError(f"clock={self.clock!r} is unknown; expected {' or '.join(ExpiryClock)}") from None

    def quiet_days_under(self, clock: str) -> float | None:
        """``max_quiet_days`` with ``auto`` resolved, for a plan whose ages were measured by ``clock``."""
        if self.max_quiet_days != AUTO:
            return self.max_quiet_days
        return WALL_CLOCK_QUIET_DAYS if clock == ExpiryClock.WALL else None

    def check(self, scheme: PartitionScheme) -> None:
        """Raise InvalidSettingError unless every protected spec and hold can name something of such a table."""
        for name in _LISTS:
            for text in getattr(self, name):
                PartitionSelector.parse(text, scheme=scheme, name=name)

    def holding_back(self, *, protected: Sequence[str] = (), legal_hold: Sequence[str] = ()) -> ExpiryGuards:
        """The same limits with more that is held back: lists of several places add up."""
        return replace(
            self,
            protected=tuple(dict.fromkeys((*self.protected, *protected))),
            legal_hold=tuple(dict.fromkeys((*self.legal_hold, *legal_hold))),
        )

    def to_json(self) -> dict[str, Json]:
        """The object that :meth:`from_json` reads: the settings that are not the default."""
        found: dict[str, Json] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value != one.default:
                found[one.name] = list(value) if isinstance(value, tuple) else value
        return found

    @classmethod
    def from_json(cls, value: object, *, source: str = "guards") -> ExpiryGuards:
        """Read an object with these fields; null lifts a limit, and what is left out has its default.

        Numbers may come as digits in a text. Raises InvalidSettingError that shows the offending text and an example.
        """
        if not isinstance(value, Mapping):
            msg = f"{source}: {shown(value)} is no object of guards; write for example {{'max_partition_share': 0.5}}"
            raise InvalidSettingError(msg)
        known = [one.name for one in fields(cls)]
        for name in value:
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
                raise InvalidSettingError(f"{source}: {name!r}={shown(value[name])} is no guard{hint}")
        try:
            return cls(**{name: _read(name, one) for name, one in value.items()})  # type: ignore[arg-type]
        except InvalidSettingError as error:
            raise InvalidSettingError(f"{source}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSelector:
    """A protected spec or a hold: a spec, or the path of a partition or of a folder of some.

    It holds what either reading of ``text`` selects: ``path`` is that of a partition or folder, letter by letter (empty
    for the whole table); ``spec`` has the values that the text names, None where it has more levels than the table has
    fields.
    """

    text: str
    path: str
    spec: PartitionSpec | None

    @classmethod
    def parse(cls, text: str, *, scheme: PartitionScheme, name: str) -> PartitionSelector:
        """Read one; raises InvalidSettingError where it can select nothing of a table partitioned by ``scheme``."""
        example = f"write for example {_EXAMPLES[name]}"
        path = text.strip().strip("/")
        if "=" not in text and text.strip() != "/":
            if scheme.hive_style or "*" in text:
                known = list(scheme.fields)
                msg = f"{name}: {shown(text)} names no field of {known}, so it would hold nothing; {example}"
                raise InvalidSettingError(msg)
            return cls(text=text, path=path, spec=scheme.spec_of(path))
        try:
            spec = PartitionSpec.parse(text)
            spec.check(scheme)
        except InvalidPolicyError as error:
            raise InvalidSettingError(f"{name}: {shown(text)} would hold nothing: {error}; {example}") from None
        return cls(text=text, path=path, spec=spec)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _broken(name: str, value: object, *, why: str) -> InvalidSettingError:
    return InvalidSettingError(f"{name}={shown(value)} {why}; for example {_EXAMPLES[name]}")


def _selectors(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _broken(name, value, why="is no list of specs or partition paths")
    for one in value:
        if not isinstance(one, str) or not one.strip():
            raise _broken(name, one, why="holds what is no spec and no partition path")
    return tuple(value)


def _read(name: str, value: object) -> object:
    """Read a value as templates and files give it."""
    if name in _LISTS:
        return () if value is None else value
    if not isinstance(value, str):
        # A count from a Param or a template may come as 10.0.
        is_whole = name in _COUNTS and isinstance(value, float) and value.is_integer()
        return int(value) if is_whole and isinstance(value, float) else value
    text = value.strip().lower()
    if text in ("none", "null"):  # an empty text is refused: a template that finds nothing must not lift a limit
        return None
    if name == "clock" or text == AUTO:
        return text
    try:
        return int(text) if name in _COUNTS else float(text)
    except ValueError:
        return value
