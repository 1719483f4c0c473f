"""Which options give files of a wanted size, and why each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.sizing import (
    AVERAGE_METADATA_SIZE,
    ESTIMATION_THRESHOLD,
    INSERT_AUTO_SPLIT,
    MAX_FILE_BYTES,
    RECORD_SIZE_ESTIMATE,
    SMALL_FILE_CANDIDATES,
    SMALL_FILE_LIMIT,
    EstimatorRule,
    OptionAdvice,
)
from airflow_hudi_maint.core.model.units import counted, human_bytes

BLOOM_FILTER_ENABLED = "hoodie.parquet.bloom.filter.enabled"
BULK_INSERT_SORT_MODE = "hoodie.bulkinsert.sort.mode"
BULK_INSERT_PARALLELISM = "hoodie.bulkinsert.shuffle.parallelism"
ROW_GROUP_BYTES = "hoodie.parquet.block.size"

DEFAULT_ROW_GROUP_BYTES = 120 * 1024 * 1024
_LARGEST_INT = 2**31 - 1
"""Hudi reads the small-file limit as a Java int."""
_SMALL_TO_MAX = (5, 6)
"""Hudi's own defaults: files of up to 120 MB, of which those below 100 MB are small."""
_CANDIDATES = 3
_FLOOR_SHARE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenData:
    """What is known of a table's rows and writes. ``record_bytes`` is the real average of a row on disk.

    ``metadata_bytes`` is what a file has beside its rows (its Bloom filter, above all); ``commit_bytes`` what a common
    commit writes, and ``commit_partitions`` to how many partitions; None where it is not known.
    """

    record_bytes: int
    metadata_bytes: int = 0
    commit_bytes: int | None = None
    commit_partitions: int = 1

    def __post_init__(self) -> None:
        for name, least in (("record_bytes", 1), ("metadata_bytes", 0), ("commit_partitions", 1)):
            if getattr(self, name) < least:
                raise InvalidSettingError(f"{name}={getattr(self, name)} is too small; expected at least {least}")


def recommended_write_options(
    target_file_bytes: int,
    *,
    data: WrittenData,
    rule: EstimatorRule = EstimatorRule.NEWEST_OF_RECENT,
    is_merge_on_read: bool = False,
    bulk_insert: bool = False,
    looks_up_bloom_filters: bool = False,
    present: Mapping[str, str] | None = None,
) -> tuple[OptionAdvice, ...]:
    """Name the options of a writer that is to make files of ``target_file_bytes``, each with its reason.

    ``rule`` is that of the writer's release. ``bulk_insert`` says that the writer bulk-inserts, and
    ``looks_up_bloom_filters`` that its index is a Bloom index, which needs the filters. ``present`` are the options
    that it has now: an option is listed whether or not it already has its value.

    Raises InvalidSettingError for a target that no file can have.

    >>> data = WrittenData(record_bytes=80, metadata_bytes=431_000, commit_bytes=20_000_000)
    >>> for one in recommended_write_options(128 * 1024**2, data=data):
    ...     print(f"{one.key}={one.value}")
    hoodie.parquet.max.file.size=134217728
    hoodie.parquet.small.file.limit=111848106
    hoodie.parquet.block.size=125829120
    hoodie.copyonwrite.insert.auto.split=true
    hoodie.copyonwrite.record.size.estimate=80
    hoodie.record.size.estimation.threshold=1.0
    hoodie.record.size.estimator.average.metadata.size=431000
    """
    if target_file_bytes <= 2 * data.metadata_bytes or target_file_bytes < data.record_bytes:
        raise InvalidSettingError(
            f"target_file_bytes={target_file_bytes}: a file has {data.metadata_bytes} bytes beside its rows, and a row "
            f"{data.record_bytes}; ask for more, or write no Bloom filters ({BLOOM_FILTER_ENABLED}=false)"
        )
    given = present or {}
    sizing = _Sizing(target=target_file_bytes, data=data, rule=rule)
    advice = [*sizing.sizes(), *sizing.estimates()]
    if is_merge_on_read:
        advice.append(sizing.candidates(given))
    if bulk_insert:
        advice.extend(sizing.bulk_insert())
    if not looks_up_bloom_filters and data.metadata_bytes * _FLOOR_SHARE > target_file_bytes:
        advice.append(sizing.no_filters())
    return tuple(
        OptionAdvice(key=key, value=value, reason=reason, present=given.get(key)) for key, value, reason in advice
    )


def small_file_limit_for(target_file_bytes: int) -> int:
    """The small-file limit that goes with a target, as Hudi's defaults have it: five sixths.

    >>> small_file_limit_for(120 * 1024**2) == 100 * 1024**2
    True
    """
    numerator, denominator = _SMALL_TO_MAX
    return min(target_file_bytes * numerator // denominator, _LARGEST_INT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizing:
    target: int
    data: WrittenData
    rule: EstimatorRule

    @property
    def limit(self) -> int:
        return small_file_limit_for(self.target)

    def sizes(self) -> Iterator[tuple[str, str, str]]:
        yield MAX_FILE_BYTES, str(self.target), f"the size that files are filled up to: {human_bytes(self.target)}"
        yield (
            SMALL_FILE_LIMIT,
            str(self.limit),
            (
                f"files below {human_bytes(self.limit)} take the next inserts; five sixths of the target, as in Hudi's "
                "defaults: a file that is nearly full is not rewritten for a few rows. 0 would always make new ones"
            ),
        )
        row_group = min(self.target, DEFAULT_ROW_GROUP_BYTES)
        yield ROW_GROUP_BYTES, str(row_group), f"row groups of {human_bytes(row_group)}: no larger than a file"

    def estimates(self) -> Iterator[tuple[str, str, str]]:
        split = self.target // self.data.record_bytes
        yield (
            INSERT_AUTO_SPLIT,
            "true",
            (
                f"new files get as many rows as fill them ({split:,} now), whatever the average row becomes; "
                "a fixed split ages"
            ),
        )
        yield RECORD_SIZE_ESTIMATE, str(self.data.record_bytes), self._why_estimate()
        yield ESTIMATION_THRESHOLD, "1.0", self._why_threshold()
        if self.rule is not EstimatorRule.NEWEST_LARGE_ENOUGH and self.data.metadata_bytes:
            each = "commit" if self.rule is EstimatorRule.SUM_OF_LARGE_ENOUGH else "file"
            yield (
                AVERAGE_METADATA_SIZE,
                str(self.data.metadata_bytes),
                (
                    f"each file has {human_bytes(self.data.metadata_bytes)} beside its rows, which an estimate takes "
                    f"for rows; this release takes it off once for each {each}"
                ),
            )

    def _why_estimate(self) -> str:
        measured = f"what a row takes on disk here, where Hudi assumes 1,024 bytes: {self.data.record_bytes:,}"
        size = self.data.commit_bytes
        if size is None:
            return f"{measured}. It counts until a commit has written more than {human_bytes(self.limit)}"
        if size > self.limit:
            return f"{measured}. It counts for the first commits only: later ones are large enough to be measured"
        return (
            f"{measured}. Commits here write {human_bytes(size)}, less than {human_bytes(self.limit)}, so that none is "
            "ever measured and this number is all that the writer has"
        )

    def _why_threshold(self) -> str:
        return (
            f"only commits of more than {human_bytes(self.limit)} are measured: with less, a tiny commit whose files "
            "are nearly all footer would make the average row look huge, and new files tiny"
        )

    def candidates(self, given: Mapping[str, str]) -> tuple[str, str, str]:
        present = given.get(SMALL_FILE_CANDIDATES, "")
        value = max(_CANDIDATES, int(present) if present.isdecimal() else 0)
        return (
            SMALL_FILE_CANDIDATES,
            str(value),
            (
                f"a merge-on-read commit fills up to {counted(value, 'small file')} of a partition; Hudi's default "
                "is one; each costs a rewrite of that file"
            ),
        )

    def bulk_insert(self) -> Iterator[tuple[str, str, str]]:
        yield (
            BULK_INSERT_SORT_MODE,
            "PARTITION_SORT" if self.data.commit_partitions == 1 else "GLOBAL_SORT",
            "unsorted, each task of a bulk insert opens a file in every partition that it has a row of",
        )
        if self.data.commit_bytes is not None:
            tasks = max(-(-self.data.commit_bytes // self.target), 1)
            yield (
                BULK_INSERT_PARALLELISM,
                str(tasks),
                (
                    f"{human_bytes(self.data.commit_bytes)} a commit over {human_bytes(self.target)} a file; "
                    "a bulk insert makes at least one file for each task and looks at no small file"
                ),
            )

    def no_filters(self) -> tuple[str, str, str]:
        return (
            BLOOM_FILTER_ENABLED,
            "false",
            (
                f"the Bloom filter of each file takes {human_bytes(self.data.metadata_bytes)} of "
                f"{human_bytes(self.target)}, and no other index than BLOOM reads it"
            ),
        )
