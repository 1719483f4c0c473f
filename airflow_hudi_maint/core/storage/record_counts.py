"""Count the records of partitions exactly: from the commits that wrote their files, or from the files' footers.

A partition with log files is never counted: how many of their records replace one of a base file, only a merge tells.
"""

from __future__ import annotations

from collections import defaultdict

from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.dating import COMMIT_ACTIONS, decoded_commits
from airflow_hudi_maint.core.storage.footers import record_counts
from airflow_hudi_maint.core.storage.latest_files import LatestFiles
from airflow_hudi_maint.core.storage.table import HudiTable

RECORD_SOURCES = ("auto", "known", "commits", "footers")
"""``known`` reads nothing; ``commits`` the active commits of latest base files; ``footers`` those of the rest, too.
``auto`` reads commits while they are few and so are the files."""

FEW_COMMITS = 100
"""Hudi archives from 30 commits on, unless its writers are told otherwise."""
FEW_FILES = 20_000


class RecordCounts:
    """Collects the latest base files of partitions, and then finds out how many records each partition has."""

    def __init__(self, *, table: HudiTable, timeline: Timeline, source: str) -> None:
        self._table = table
        self._timeline = timeline
        commits = sum(1 for one in timeline.completed if one.action in COMMIT_ACTIONS)
        self._is_sparing = source == "auto"
        self._source = "known" if self._is_sparing and commits > FEW_COMMITS else source
        self._count = 0
        self._files: dict[str, list[str]] = {}
        self._by_instant: dict[str, set[str]] = defaultdict(set)

    def add(self, partition_path: str, *, files: LatestFiles) -> None:
        """Remember a partition that is to be counted; one with log files is not."""
        if self._source == "known" or files.logs:
            return
        prefix = f"{partition_path}/" if partition_path else ""
        self._files[partition_path] = [prefix + name for _, name, _ in files.bases]
        for instant, name, _ in files.bases:
            self._by_instant[instant].add(prefix + name)
        self._count += len(files.bases)
        if self._is_sparing and self._count > FEW_FILES:
            self._source = "known"
            self._files.clear()
            self._by_instant.clear()

    def resolve(self) -> dict[str, int]:
        """The records of each partition all of whose files tell. Opens each commit once, footers 16 at a time."""
        known: dict[str, int | None] = {**self._from_commits()}
        if self._source == "footers":
            missing = [path for paths in self._files.values() for path in paths if path not in known]
            known.update(record_counts(self._table.storage, paths=missing))
        counts = {partition: [known.get(path) for path in paths] for partition, paths in self._files.items()}
        return {partition: sum(filter(None, found)) for partition, found in counts.items() if None not in found}

    def _from_commits(self) -> dict[str, int]:
        """Records by file. A count of zero is left out: that may be a writer that did not note it."""
        instants = [
            one
            for one in self._timeline.completed
            if one.requested_time in self._by_instant and one.action in COMMIT_ACTIONS
        ]
        known: dict[str, int] = {}
        for instant, metadata in decoded_commits(self._table, instants, files=True):
            wanted = self._by_instant[instant.requested_time]
            for stats in metadata.written.values() if metadata else ():
                known.update((one.path, one.records) for one in stats if one.records and one.path in wanted)
        return known
