"""Foretell what an insert does to the files of a partition, as Hudi's own partitioner decides it.

Source: Hudi's ``UpsertPartitioner.assignInserts`` and, for merge-on-read, ``SparkUpsertDeltaCommitPartitioner``; alike
in 0.15.0, 1.0.2 and 1.2.0. Both ``insert`` and ``upsert`` go this way; ``insert_overwrite`` passes small files over,
and ``bulk_insert`` does not size files at all. A bucket index has a way of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.sizing import (
    SMALL_FILE_CANDIDATES,
    SMALL_FILE_LIMIT,
    AverageRecordSize,
    GrownFile,
    InsertPrediction,
    NewFile,
    PartitionFiles,
    SizingSettings,
)
from airflow_hudi_maint.core.planning.sizing_advice import WrittenData, recommended_write_options
from airflow_hudi_maint.core.planning.sizing_estimate import average_record_size
from airflow_hudi_maint.core.planning.sizing_order import hash_set_order

__all__ = [
    "FORESEEN_OPERATIONS",
    "WrittenData",
    "average_record_size",
    "insert_split",
    "predict_inserts",
    "recommended_write_options",
    "sized_bytes",
]

INSERT_OVERWRITE = "insert_overwrite"
FORESEEN_OPERATIONS = ("insert", "upsert", INSERT_OVERWRITE)
_MOST_BUCKETS = 100_000
"""More new files in one partition than any writer survives: Hudi keeps a record of each in the driver."""


def predict_inserts(
    files: PartitionFiles,
    *,
    inserts: int,
    settings: SizingSettings,
    average: AverageRecordSize,
    is_merge_on_read: bool = False,
    operation: str = "insert",
) -> InsertPrediction:
    """Say which file groups of a partition grow when ``inserts`` new records come, and how many new files there are.

    Small files are filled first, each with ``(max_file_bytes - its bytes) / average`` records; the rest goes to new
    files of ``insert_split_records`` each or, with ``auto_split``, of ``max_file_bytes / average``.

    Raises InvalidSettingError for an operation that does not size files, and for settings that no file can meet.

    >>> from airflow_hudi_maint.core.model.file_slice import BaseFile
    >>> from airflow_hudi_maint.core.model.sizing import EstimatorRule
    >>> def file_slice(name: str, size: int) -> FileSlice:
    ...     file = BaseFile(name=name, file_id=name, instant="20261130000000000", bytes=size)
    ...     return FileSlice(partition_path="day=1", file_id=name, base_instant=file.instant, base_file=file)
    >>> files = PartitionFiles(partition_path="day=1", slices=(file_slice("a", 700), file_slice("b", 950)))
    >>> average = AverageRecordSize(bytes=10, rule=EstimatorRule.NEWEST_OF_RECENT, instants=("20261130000000000",))
    >>> settings = SizingSettings(max_file_bytes=1000, small_file_bytes=900)
    >>> predicted = predict_inserts(files, inserts=180, settings=settings, average=average)
    >>> [(one.file_id, one.records, one.expected_bytes) for one in predicted.grown]
    [('a', 30, 1000)]
    >>> [(one.records, one.expected_bytes) for one in predicted.new]
    [(100, 1000), (50, 500)]
    """
    if operation not in FORESEEN_OPERATIONS:
        raise InvalidSettingError(f"operation={operation!r} does not size files; expected one of {FORESEEN_OPERATIONS}")
    if inserts < 0:
        raise InvalidSettingError(f"inserts={inserts} is negative")
    takers, ignored = _takers(files, settings=settings, is_merge_on_read=is_merge_on_read, operation=operation)
    left = inserts
    grown = []
    for taker in takers:
        before = sized_bytes(taker, settings=settings)
        records = min(_quotient(settings.max_file_bytes - before, average.bytes), left)
        if records > 0:
            grown.append(
                GrownFile(
                    file_id=taker.file_id,
                    bytes_before=before,
                    records=records,
                    expected_bytes=before + records * average.bytes,
                )
            )
            left -= records
        elif left:
            room = f"its {settings.max_file_bytes - before} bytes of room hold no record of {average.bytes}"
            ignored[taker.file_id] = room
    return InsertPrediction(
        partition_path=files.partition_path,
        inserts=inserts,
        average=average,
        grown=tuple(grown),
        new=tuple(_new_files(left, settings=settings, average=average)),
        ignored=tuple(sorted(ignored.items())),
    )


def sized_bytes(file_slice: FileSlice, *, settings: SizingSettings) -> int:
    """A slice's size as Hudi counts it: the base file, and log files as what they will be in Parquet."""
    return file_slice.base_bytes + int(file_slice.log_bytes * settings.log_to_parquet_ratio)


def insert_split(settings: SizingSettings, average: AverageRecordSize) -> int:
    """How many records a new file is to have.

    >>> from airflow_hudi_maint.core.model.sizing import EstimatorRule
    >>> insert_split(SizingSettings(), AverageRecordSize(bytes=1024, rule=EstimatorRule.NEWEST_OF_RECENT))
    122880
    """
    if not settings.auto_split:
        return settings.insert_split_records
    return -(-settings.max_file_bytes // average.bytes)


def _new_files(records: int, *, settings: SizingSettings, average: AverageRecordSize) -> Iterator[NewFile]:
    if records <= 0:
        return
    split = insert_split(settings, average)
    count = -(-records // split)
    if count > _MOST_BUCKETS:
        raise InvalidSettingError(
            f"{records:,} inserts would make {count:,} new files of {split} records each, which no writer survives: "
            f"max_file_bytes={settings.max_file_bytes} against an average record of {average.bytes} bytes"
        )
    for number in range(count):
        size = split if number < count - 1 else records - (count - 1) * split
        yield NewFile(records=size, expected_bytes=size * average.bytes)


def _takers(
    files: PartitionFiles, *, settings: SizingSettings, is_merge_on_read: bool, operation: str
) -> tuple[tuple[FileSlice, ...], dict[str, str]]:
    """The slices that Hudi offers inserts to, in its order, and the other small ones with why not."""
    ignored: dict[str, str] = {}
    small = [one for one in files.slices if sized_bytes(one, settings=settings) < settings.max_file_bytes]
    if operation == INSERT_OVERWRITE:
        return (), {one.file_id: "insert_overwrite writes new files only" for one in small}
    if settings.small_file_bytes <= 0 and not (is_merge_on_read and settings.appends_to_log_files):
        limit = f"{SMALL_FILE_LIMIT}={settings.small_file_bytes}"
        return (), {one.file_id: f"{limit} turns small-file handling off" for one in small}
    order = _order(files)
    if is_merge_on_read:
        candidates = _merge_on_read(order, files=files, settings=settings, ignored=ignored)
    else:
        candidates = [one for one in order if one.base_file and one.base_bytes < settings.small_file_bytes]
    for one in candidates:
        # After the choice of candidates: on merge-on-read, one that a plan holds leaves its place to no other.
        if one.file_id in files.clustering:
            ignored[one.file_id] = "a pending clustering holds it"
    return tuple(one for one in candidates if one.file_id not in files.clustering), ignored


def _merge_on_read(
    order: Collection[FileSlice], *, files: PartitionFiles, settings: SizingSettings, ignored: dict[str, str]
) -> list[FileSlice]:
    """The candidates of a merge-on-read writer: the smallest without log files, as many as its limit says."""
    free = []
    for one in order:
        if one.file_id in files.compaction:
            ignored[one.file_id] = "a pending compaction holds it"
        else:
            free.append(one)
    if settings.appends_to_log_files:
        return [one for one in free if sized_bytes(one, settings=settings) < settings.max_file_bytes]
    small = []
    for one in free:
        if one.base_file is None or one.base_bytes >= settings.small_file_bytes:
            continue
        if one.log_files:
            ignored[one.file_id] = "it has log files, and takes no inserts before they are compacted"
        else:
            small.append(one)
    small.sort(key=lambda one: one.base_bytes)
    for one in small[settings.small_file_candidates :]:
        ignored[one.file_id] = f"{SMALL_FILE_CANDIDATES}={settings.small_file_candidates}: a smaller one comes first"
    return small[: settings.small_file_candidates]


def _order(files: PartitionFiles) -> list[FileSlice]:
    """The slices in the order in which Hudi's file-system view yields them: that of a hash set of file ids."""
    by_id = {one.file_id: one for one in files.slices}
    bases = sum(one.base_file is not None for one in files.slices)
    ordered = hash_set_order(
        by_id,
        filled_with=bases if files.base_group_count is None else files.base_group_count,
        grown_to=len(by_id) if files.group_count is None else files.group_count,
        arrivals=files.listing_order,
    )
    return [by_id[file_id] for file_id in ordered]


def _quotient(dividend: int, divisor: int) -> int:
    """Divide as Java does: towards zero."""
    return dividend // divisor if dividend >= 0 else -(-dividend // divisor)
