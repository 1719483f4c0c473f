"""The budget of a clustering plan, of groups and of bytes: what of a candidate still fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from airflow_hudi_maint.core.model.plan import ClusteringSettings
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.clustering_candidates import Candidate
from airflow_hudi_maint.core.planning.clustering_strategy import Selecting


class Granted(NamedTuple):
    """What of a candidate is chosen, if anything, and what is to be said of it."""

    candidate: Candidate | None
    note: str = ""


@dataclass(kw_only=True)
class Budget:
    """Groups and bytes that are left; None for no limit. Candidates are granted one after another."""

    max_groups: int | None
    max_bytes: int | None
    used_groups: int = 0
    used_bytes: int = 0
    closed_by: str | None = None

    @classmethod
    def of(cls, settings: ClusteringSettings, *, selecting: Selecting | None) -> Budget:
        """A whole budget: groups from the settings, bytes from the strategy."""
        return cls(max_groups=settings.max_groups, max_bytes=selecting.strategy.max_bytes if selecting else None)

    @property
    def limits(self) -> str:
        """The limits that there are, by the names of their settings."""
        groups = None if self.max_groups is None else self._groups_limit
        return " and ".join(filter(None, (groups, None if self.max_bytes is None else self._bytes_limit)))

    def grant(self, candidate: Candidate, *, is_worth_it: Callable[[Candidate], bool]) -> Granted:
        """Take a candidate whole where it fits.

        One that is larger than the whole budget would never have its turn: while nothing is granted yet it gets a run
        of its own, as far as the budget goes, where its first groups alone are worth it.
        """
        groups = len(candidate.groups)
        limit = self._broken(groups, candidate.input_bytes)
        if limit is None:
            self.used_groups += groups
            self.used_bytes += candidate.input_bytes
            return Granted(candidate)
        if self.closed_by is None and not self.used_groups:
            return self._part(candidate, is_worth_it=is_worth_it)
        is_of_groups = limit.startswith("max_groups")
        need = counted(groups, "group") if is_of_groups else human_bytes(candidate.input_bytes)
        return Granted(None, f"left for the next run: {limit} reached ({need} needed)")

    def _part(self, candidate: Candidate, *, is_worth_it: Callable[[Candidate], bool]) -> Granted:
        """As many of the first groups as the whole budget takes; Hudi can be told how far to go, not where to begin."""
        if not candidate.is_divisible:
            files = counted(candidate.input_file_count, "file")
            limit = self._broken(len(candidate.groups), candidate.input_bytes)
            return Granted(
                None,
                f"{limit} is too small: its {files} of {human_bytes(candidate.input_bytes)} are sorted in one plan",
            )
        groups, size, limit = len(candidate.groups), 0, None
        kept = 0
        for group in candidate.groups:
            size += group.input_bytes
            limit = self._broken(kept + 1, size)
            if limit is not None:
                break
            kept += 1
        part = replace(candidate, groups=candidate.groups[:kept])
        if not kept:
            return Granted(
                None, f"{limit} is too small: the first of its {counted(groups, 'group')} reads {human_bytes(size)}"
            )
        if not is_worth_it(part):
            return Granted(None, f"{limit} is too small: the first {kept} of its {groups} groups make no files fewer")
        self.closed_by = limit
        return Granted(part, f", the first {counted(kept, 'group')} of {groups}: {limit}")

    def _broken(self, groups: int, size: int) -> str | None:
        """The limit that so many groups more, of so many bytes, would break; None when they fit."""
        if self.closed_by is not None:
            return self.closed_by
        if self.max_groups is not None and self.used_groups + groups > self.max_groups:
            return self._groups_limit
        if self.max_bytes is not None and self.used_bytes + size > self.max_bytes:
            return self._bytes_limit
        return None

    @property
    def _groups_limit(self) -> str:
        return f"max_groups={self.max_groups}"

    @property
    def _bytes_limit(self) -> str:
        return f"max_bytes={human_bytes(self.max_bytes)}"
