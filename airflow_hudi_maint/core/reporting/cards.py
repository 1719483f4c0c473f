"""The figures of a table before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.model.units import human_bytes, human_change, human_count

_LABELS = {
    "partitions": "partitions",
    "file_groups": "file groups",
    "data_files": "data files",
    "small_files": "small files",
    "log_files": "log files",
    "records": "records",
    "bytes": "bytes",
    "median_file_bytes": "median file",
    "p90_file_bytes": "90 % of files up to",
}


_OPTIONAL = frozenset({"log_files", "records"})
_BETTER = {"small_files": False, "median_file_bytes": True, "p90_file_bytes": True}
"""Whether more of it is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a table; ``before`` is None without earlier statistics or without files."""

    key: str
    before: int | None
    after: int | None

    @property
    def label(self) -> str:
        """What the figure counts."""
        return _LABELS[self.key]

    @property
    def before_text(self) -> str:
        """The figure before, for people."""
        return self._text(self.before)

    @property
    def after_text(self) -> str:
        """The figure after, for people."""
        return self._text(self.after)

    @property
    def change(self) -> str:
        """The change in percent."""
        return human_change(self.before, self.after)

    @property
    def verdict(self) -> str:
        """Whether the change is ``better`` or ``worse`` by itself; empty where it may be either."""
        if self.before is None or self.after is None or self.before == self.after or self.key not in _BETTER:
            return ""
        return "better" if (self.after > self.before) is _BETTER[self.key] else "worse"

    def _text(self, value: int | None) -> str:
        return human_bytes(value) if self.key.endswith("bytes") else human_count(value)


def figures(*, before: TableStatistics | None, after: TableStatistics) -> tuple[Figure, ...]:
    """The totals of both statistics, in the order of pages; log files only where there are any, records where known."""
    old, new = before.totals() if before else {}, after.totals()
    made = (
        Figure(key=key, before=cast("int | None", old.get(key)), after=cast("int | None", new[key])) for key in _LABELS
    )
    return tuple(
        one
        for one in made
        if one.key not in _OPTIONAL or (one.after if one.key == "records" else one.before or one.after)
    )
