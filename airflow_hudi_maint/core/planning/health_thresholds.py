"""From which value on a health signal is a warning, and from which on it is critical."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.document import JsonObject
from airflow_hudi_maint.core.model.health import Severity

_HOUR = 3600
_DAY = 24 * _HOUR
_GIB = 1024**3
_KEYS = ("warning", "critical")
_EXAMPLE = '{"warning": 3600, "critical": 86400}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The value from which on a signal is a warning, and the one from which on it is critical; None for never.

    >>> Limits(warning=10, critical=20).judge(10), Limits().judge(10)
    (<Severity.WARNING: 'warning'>, <Severity.OK: 'ok'>)
    """

    warning: float | None = None
    critical: float | None = None

    def __post_init__(self) -> None:
        for name in _KEYS:
            limit = getattr(self, name)
            is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
            # A limit of 0 would make a warning of every value; NaN is above nothing.
            if limit is not None and not (is_number and 0 < limit < float("inf")):
                raise InvalidSettingError(f"{name} from {limit!r} on is no limit; write a number above 0, or null")
        if self.warning is not None and self.critical is not None and self.warning > self.critical:
            raise InvalidSettingError(
                f"warning from {self.warning:g} on lies above critical from {self.critical:g} on; exchange them"
            )

    def judge(self, value: float) -> Severity:
        """The severity of a value; one that is exactly at a limit has reached it."""
        if self.critical is not None and value >= self.critical:
            return Severity.CRITICAL
        return Severity.WARNING if self.warning is not None and value >= self.warning else Severity.OK

    def times(self, factor: float) -> Limits:
        """The limits multiplied: for those that are set as a multiple of a setting of the table."""
        return Limits(
            warning=None if self.warning is None else self.warning * factor,
            critical=None if self.critical is None else self.critical * factor,
        )

    def to_json(self) -> JsonObject:
        """The object that :meth:`from_json` reads."""
        return {"warning": self.warning, "critical": self.critical}

    @classmethod
    def from_json(cls, value: object, *, name: str) -> Limits:
        """Read ``{"warning": 1, "critical": 2}``, each of them optional and null for never; null alone for no limit.

        Raises InvalidSettingError that names the signal (``name``).
        """
        if value is None:
            return cls()
        if not isinstance(value, Mapping) or not set(value) <= set(_KEYS):
            raise InvalidSettingError(f"thresholds: {name}={value!r} are no limits; write for example {_EXAMPLE}")
        try:
            return cls(**value)
        except InvalidSettingError as error:
            raise InvalidSettingError(f"thresholds: {name}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthThresholds:
    """The limits of every signal, by the signal's name and in its unit; docs/health.md says why they are what they are.

    Three limits are multiples of what the table is set to, not values: ``active_instants`` of
    ``hoodie.keep.max.commits``, ``delta_commits_since_compaction`` of ``hoodie.compact.inline.max.delta.commits`` and
    ``metadata_delta_commits_since_compaction`` of ``hoodie.metadata.compact.max.delta.commits``.
    """

    pending_write_seconds: Limits = Limits(warning=6 * _HOUR, critical=_DAY)
    pending_replace_seconds: Limits = Limits(warning=6 * _HOUR, critical=_DAY)
    pending_clustering_seconds: Limits = Limits(warning=_DAY, critical=3 * _DAY)
    pending_compaction_seconds: Limits = Limits(warning=_DAY, critical=3 * _DAY)
    pending_log_compaction_seconds: Limits = Limits(warning=_DAY, critical=3 * _DAY)
    pending_clean_seconds: Limits = Limits(warning=6 * _HOUR, critical=2 * _DAY)
    pending_rollback_seconds: Limits = Limits(warning=_HOUR, critical=_DAY)
    pending_restore_seconds: Limits = Limits(warning=_HOUR, critical=6 * _HOUR)
    pending_savepoint_seconds: Limits = Limits(warning=_HOUR, critical=_DAY)
    pending_indexing_seconds: Limits = Limits(warning=12 * _HOUR, critical=2 * _DAY)
    active_instants: Limits = Limits(warning=1.5, critical=5)
    delta_commits_since_compaction: Limits = Limits(warning=4, critical=20)
    metadata_delta_commits_since_compaction: Limits = Limits(warning=2, critical=10)
    metadata_partitions_inflight: Limits = Limits(warning=1)
    archive_files: Limits = Limits(warning=500, critical=5000)
    archive_bytes: Limits = Limits(warning=_GIB, critical=10 * _GIB)
    last_clean_seconds: Limits = Limits(warning=7 * _DAY, critical=30 * _DAY)
    commits_since_clean: Limits = Limits(warning=20)
    clean_failed_files: Limits = Limits(warning=1)
    small_file_ratio: Limits = Limits(warning=0.5, critical=0.9)
    micro_partition_ratio: Limits = Limits(warning=0.5)
    last_write_seconds: Limits = Limits(warning=7 * _DAY)
    clock_ahead_seconds: Limits = Limits(warning=60, critical=_HOUR)
    doubly_completed_instants: Limits = Limits(warning=1)
    dead_writer_leftovers: Limits = Limits(warning=10)
    orphan_files: Limits = Limits(warning=1)

    def of(self, signal: str) -> Limits:
        """The limits of a signal."""
        limits: Limits = getattr(self, signal)
        return limits

    def to_json(self) -> JsonObject:
        """The object that :meth:`from_json` reads."""
        return {one.name: self.of(one.name).to_json() for one in fields(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> HealthThresholds:
        """Read an object from signals to limits; signals that it leaves out keep their defaults.

        Raises InvalidSettingError that names an unknown signal and those that come near it.

        >>> HealthThresholds.from_json({"last_write_seconds": {"warning": 7200}}).last_write_seconds.warning
        7200
        """
        known = [one.name for one in fields(cls)]
        unknown = next((name for name in value if name not in known), None)
        if unknown is not None:
            near = difflib.get_close_matches(str(unknown), known, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
            raise InvalidSettingError(f"thresholds has no signal {unknown!r}; {hint}")
        return cls(**{name: Limits.from_json(one, name=name) for name, one in value.items()})
