"""What Hudi's cleaner keeps, and until when a drop of partitions can still be undone.

Source: Hudi's ``CleanPlanner`` and ``HoodieCleanConfig``; the figures were tried on table versions 6 and 9.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.instant import Action, Instant, moment_instant
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.model.units import counted

_DATA_ACTIONS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})


class CleanPolicy(StrEnum):
    """What the cleaner keeps beside the latest state; Hudi's ``HoodieCleaningPolicy``."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


_KEYS = {
    "policy": ("hoodie.clean.policy", "hoodie.cleaner.policy"),
    "commits_retained": ("hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained"),
    "hours_retained": ("hoodie.clean.hours.retained", "hoodie.cleaner.hours.retained"),
    "file_versions_retained": ("hoodie.clean.fileversions.retained", "hoodie.cleaner.fileversions.retained"),
}
"""Each field's keys of Hudi: the one since 1.1, and the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """The retention of a clean; only the number that belongs to ``policy`` counts. The defaults are Hudi's."""

    policy: CleanPolicy = CleanPolicy.KEEP_LATEST_COMMITS
    commits_retained: int = 10
    hours_retained: int = 24
    file_versions_retained: int = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", _policy(self.policy))
        for name in ("commits_retained", "hours_retained", "file_versions_retained"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidSettingError(f"{name}={value!r} of the cleaner; expected a whole number of at least 1")

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> CleanerSettings:
        """Read the retention that Hudi options (a connection's write options) state; Hudi's defaults for the rest.

        Raises InvalidSettingError for a value that is none.
        """
        given: dict[str, str] = {}
        for field, keys in _KEYS.items():
            found = next((options[key] for key in keys if key in options), None)
            if found is not None:
                given[field] = found
        try:
            numbers = {field: int(text) for field, text in given.items() if field != "policy"}
        except ValueError:
            raise InvalidSettingError(f"the cleaner's options {given} hold what is no whole number") from None
        return cls(policy=_policy(given.get("policy", cls().policy)), **numbers)

    def to_options(self) -> dict[str, str]:
        """The Hudi options that say this, for every release."""
        return {key: str(getattr(self, field)) for field, keys in _KEYS.items() for key in keys}

    def __str__(self) -> str:
        number = {
            CleanPolicy.KEEP_LATEST_COMMITS: counted(self.commits_retained, "commit"),
            CleanPolicy.KEEP_LATEST_BY_HOURS: counted(self.hours_retained, "hour"),
            CleanPolicy.KEEP_LATEST_FILE_VERSIONS: counted(self.file_versions_retained, "file version"),
        }[self.policy]
        return f"{self.policy} ({number})"


def _policy(value: str) -> CleanPolicy:
    try:
        return CleanPolicy(str(value).strip().upper())
    except ValueError:
        msg = f"policy={value!r} of the cleaner is unknown; expected {', '.join(CleanPolicy)}"
        raise InvalidSettingError(msg) from None


def earliest_retained(timeline: Timeline, settings: CleanerSettings, *, zone: tzinfo, now: datetime) -> str | None:
    """The requested time of the oldest commit that a clean now would retain; None when it would keep every commit.

    Under KEEP_LATEST_FILE_VERSIONS no commit is retained for its own sake; then, too, it is None.
    """
    commits = data_commits(timeline)
    if settings.policy is CleanPolicy.KEEP_LATEST_COMMITS:
        return commits[-settings.commits_retained].requested_time if len(commits) > settings.commits_retained else None
    if settings.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
        border = moment_instant(now - timedelta(hours=settings.hours_retained), zone=zone)
        younger = [one.requested_time for one in commits if one.requested_time >= border]
        return younger[0] if younger and len(younger) < len(commits) else None
    return None


def data_commits(timeline: Timeline) -> tuple[Instant, ...]:
    """The completed instants that the cleaner counts as commits, in order of requested time."""
    return tuple(one for one in timeline.completed if one.action in _DATA_ACTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoWindow:
    """How long a drop of partitions can still be undone.

    ``commits_left`` is how many more commits a clean with these settings leaves the files untouched; 0 when the next
    clean may take them, and None where commits do not decide. ``closes_at`` is set where hours decide.
    ``held_by`` names the savepoint that holds the files whatever the cleaner's settings say.
    """

    drop: str
    as_of: str
    settings: CleanerSettings
    commits_left: int | None
    closes_at: datetime | None
    held_by: str | None

    def is_closing(self, *, now: datetime, margin_commits: int, margin: timedelta) -> bool:
        """Whether the window closes within the margin, or may close with the next clean."""
        if self.held_by is not None:
            return False
        if self.closes_at is not None:
            return now + margin >= self.closes_at
        return self.commits_left is None or self.commits_left <= margin_commits

    def __str__(self) -> str:
        if self.held_by is not None:
            return f"undo is possible while savepoint {self.held_by} stands"
        if self.closes_at is not None:
            return f"undo is possible until a clean after {self.closes_at:%Y-%m-%d %H:%M %Z} ({self.settings})"
        if self.commits_left:
            return f"undo is possible for {self.commits_left} more commits ({self.settings})"
        return f"undo is possible until the next clean ({self.settings})"


def undo_window(
    timeline: Timeline,
    drop: Instant,
    *,
    settings: CleanerSettings,
    moment: datetime,
    elsewhere: Collection[str] = (),
) -> UndoWindow:
    """Work out the window of one completed drop; ``moment`` is when it was requested.

    The cleaner takes replaced files once the replacing commit is older than the oldest commit that it retains.
    ``elsewhere`` are requested times of commits that did not touch the partitions: what a savepoint from before them
    holds of these partitions is what was there at the drop.
    """
    before = [one for one in timeline.completed if one.requested_time < drop.requested_time]
    commits = [one for one in before if one.action in _DATA_ACTIONS]
    as_of = commits[-1].requested_time if commits else _just_before(drop.requested_time)
    since = sum(1 for one in data_commits(timeline) if one.requested_time > drop.requested_time)
    # A savepoint holds the files of its own instant; one further back may hold older ones.
    last_change = max((one.requested_time for one in commits if one.requested_time not in elsewhere), default="")
    saved = [one.requested_time for one in before if one.action is Action.SAVEPOINT]
    by_hours = settings.policy is CleanPolicy.KEEP_LATEST_BY_HOURS
    by_commits = settings.policy is CleanPolicy.KEEP_LATEST_COMMITS
    return UndoWindow(
        drop=drop.requested_time,
        as_of=as_of,
        settings=settings,
        commits_left=max(settings.commits_retained - since - 1, 0) if by_commits else None,
        closes_at=moment + timedelta(hours=settings.hours_retained) if by_hours else None,
        held_by=next((one for one in reversed(saved) if one >= last_change), None),
    )


def _just_before(instant_time: str) -> str:
    """The greatest text of digits below an instant's; time travel takes any, also one that was no instant."""
    return str(int(instant_time) - 1).rjust(len(instant_time), "0")
