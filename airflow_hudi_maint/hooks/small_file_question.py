"""The question that the sensor of small files asks, of a Hudi table or of a directory of plain files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.units import human_bytes
from airflow_hudi_maint.hooks.plain_files import merge_settings, open_plain_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_hudi_maint.core.model.merge_report import SmallFileCounts
    from airflow_hudi_maint.hooks.hudi import HudiHook

_THRESHOLDS = ("min_small_files", "min_ratio", "min_small_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallFilesQuestion:
    """What is looked at, and from when on there are too many small files: every threshold that is given must be met.

    ``directory`` is one of plain files; without it a Hudi table is meant.
    ``small_file_bytes`` None means the default of what rewrites them: 64 MiB in a plain directory, 300 MiB in a table.
    """

    directory: str | None = None
    small_file_bytes: int | None = None
    min_small_files: int | None = None
    min_ratio: float | None = None
    min_small_bytes: int | None = None

    def __post_init__(self) -> None:
        if all(getattr(self, name) is None for name in _THRESHOLDS):
            raise InvalidSettingError(f"Nothing to wait for: give one or more of {', '.join(_THRESHOLDS)}")
        for name in _THRESHOLDS:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InvalidSettingError(f"{name}={value} is met by nothing at all; expected more than 0")
        if self.min_ratio is not None and self.min_ratio > 1:
            raise InvalidSettingError(f"min_ratio={self.min_ratio} is a share of files, from 0 to 1")

    def to_json(self) -> dict[str, Any]:
        """The arguments of a trigger."""
        return asdict(self)

    def answer(
        self, *, hook: HudiHook, storage_options: Mapping[str, object], say: Callable[[str], None]
    ) -> dict[str, Any] | None:
        """Count, and return the counts when they are over every threshold; None while they are not.

        ``hook`` opens a table, and ``storage_options`` a directory. One that does not exist yet has no small file.
        """
        try:
            counts = self._counts(hook=hook, storage_options=storage_options)
        except FileNotFoundError as error:
            say(f"Waiting for it: {error}")
            return None
        if self._is_met(counts):
            return dict(counts.to_json())
        share = f"{counts.small_files} of {counts.files} files ({counts.ratio:.0%}, {human_bytes(counts.small_bytes)})"
        say(f"Not yet: {share} of {counts.root} are small")
        return None

    def _is_met(self, counts: SmallFileCounts) -> bool:
        found = (counts.small_files, counts.ratio, counts.small_bytes)
        limits = (self.min_small_files, self.min_ratio, self.min_small_bytes)
        return all(limit is None or value >= limit for value, limit in zip(found, limits, strict=True))

    def _counts(self, *, hook: HudiHook, storage_options: Mapping[str, object]) -> SmallFileCounts:
        from airflow_hudi_maint.core import maintenance

        if not self.directory:
            return maintenance.table_small_file_counts(hook.workspace(), small_file_bytes=self.small_file_bytes)
        plain = open_plain_directory(self.directory, storage_options=storage_options)
        settings = merge_settings({}, small_file_bytes=self.small_file_bytes)
        return maintenance.small_file_counts(plain, settings=settings)
