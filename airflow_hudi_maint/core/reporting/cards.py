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
    "bytes": "bytes",
    "median_file_bytes": "median file",
    "p90_file_bytes": "90 % of files up to",
}


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

    def _text(self, value: int | None) -> str:
        return human_bytes(value) if self.key.endswith("bytes") else human_count(value)


def figures(*, before: TableStatistics | None, after: TableStatistics) -> tuple[Figure, ...]:
    """The totals of both statistics, in the order of pages; log files only where there are any."""
    old, new = before.totals() if before else {}, after.totals()
    made = (
        Figure(key=key, before=cast("int | None", old.get(key)), after=cast("int | None", new[key])) for key in _LABELS
    )
    return tuple(one for one in made if one.key != "log_files" or one.before or one.after)
