"""The average size of a record, as each release of Hudi works it out from the commits of the timeline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.sizing import AverageRecordSize, CommitSizes, EstimatorRule, SizingSettings

_COUNTED = {
    EstimatorRule.NEWEST_LARGE_ENOUGH: frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT}),
    EstimatorRule.SUM_OF_LARGE_ENOUGH: frozenset({Action.COMMIT, Action.DELTA_COMMIT}),
    EstimatorRule.NEWEST_OF_RECENT: frozenset({Action.COMMIT, Action.DELTA_COMMIT}),
}


def average_record_size(
    commits: Iterable[CommitSizes], *, settings: SizingSettings, rule: EstimatorRule
) -> AverageRecordSize:
    """Work out the average record size from the completed instants of the active timeline, in any order.

    ``settings.record_bytes_estimate`` stands in where none of the commits that count wrote enough.

    >>> def commit(time: str, size: int, records: int) -> CommitSizes:
    ...     return CommitSizes(requested_time=time, action=Action.COMMIT, operation="INSERT", total_bytes=size,
    ...                        total_records=records, file_count=1, base_files=((size, records),))
    >>> commits = [commit("1", 2000, 30), commit("2", 3001, 60), commit("3", 999, 1)]
    >>> settings = SizingSettings(small_file_bytes=1000)
    >>> [average_record_size(commits, settings=settings, rule=rule).bytes for rule in EstimatorRule]
    [51, 55, 51]
    >>> average_record_size(commits[2:], settings=settings, rule=EstimatorRule.NEWEST_OF_RECENT).bytes
    1024
    """
    newest_first = sorted(commits, key=lambda one: one.requested_time, reverse=True)
    considered = [one for one in newest_first if one.action in _COUNTED[rule]]
    if rule is not EstimatorRule.NEWEST_LARGE_ENOUGH:
        considered = considered[: settings.estimator_max_commits]
    if rule is EstimatorRule.SUM_OF_LARGE_ENOUGH:
        return _sum(considered, settings=settings)
    for one in considered:
        metadata = 0 if rule is EstimatorRule.NEWEST_LARGE_ENOUGH else settings.metadata_bytes
        size, records = _written(one, metadata_bytes=metadata)
        if size > settings.counted_from_bytes and records > 0:
            return AverageRecordSize(bytes=math.ceil(size / records), rule=rule, instants=(one.requested_time,))
    return AverageRecordSize(bytes=settings.record_bytes_estimate, rule=rule)


def _written(commit: CommitSizes, *, metadata_bytes: int) -> tuple[int, int]:
    """The bytes and records that a commit speaks for: of a delta commit, those in base files."""
    if commit.action is not Action.DELTA_COMMIT:
        return commit.total_bytes - commit.file_count * metadata_bytes, commit.total_records
    sizes = sum(size for size, _ in commit.base_files)
    return sizes - len(commit.base_files) * metadata_bytes, sum(records for _, records in commit.base_files)


def _sum(considered: Iterable[CommitSizes], *, settings: SizingSettings) -> AverageRecordSize:
    total_bytes = total_records = 0
    instants = []
    for one in considered:
        for size, records in _parts(one):
            # Hudi 1.0 takes the metadata off once for each of these, and not once for each file of a commit.
            if size > settings.counted_from_bytes and size > settings.metadata_bytes and records > 0:
                total_bytes += size - settings.metadata_bytes
                total_records += records
                instants.append(one.requested_time)
    rule = EstimatorRule.SUM_OF_LARGE_ENOUGH
    if not total_records:
        return AverageRecordSize(bytes=settings.record_bytes_estimate, rule=rule)
    return AverageRecordSize(bytes=total_bytes // total_records, rule=rule, instants=tuple(sorted(set(instants))))


def _parts(commit: CommitSizes) -> Iterator[tuple[int, int]]:
    if commit.action is Action.DELTA_COMMIT:
        yield from commit.base_files
    else:
        yield commit.total_bytes, commit.total_records
