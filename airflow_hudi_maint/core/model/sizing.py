"""How big Hudi's writers make files: what they are set to, what they saw of earlier commits, and what an insert makes.

Source: Hudi's ``UpsertPartitioner``, ``SparkUpsertDeltaCommitPartitioner``, ``AverageRecordSizeUtils`` (0.15) and
``AverageRecordSizeEstimator`` (from 1.0), as they are in 0.15.0, 1.0.2 and 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.commit import CommitMetadata
from airflow_hudi_maint.core.model.document import JsonObject
from airflow_hudi_maint.core.model.file_slice import BASE_FILE_NAME, FileSlice
from airflow_hudi_maint.core.model.instant import Action, Instant
from airflow_hudi_maint.core.model.units import counted, human_bytes

MAX_FILE_BYTES = "hoodie.parquet.max.file.size"
SMALL_FILE_LIMIT = "hoodie.parquet.small.file.limit"
INSERT_SPLIT_SIZE = "hoodie.copyonwrite.insert.split.size"
INSERT_AUTO_SPLIT = "hoodie.copyonwrite.insert.auto.split"
RECORD_SIZE_ESTIMATE = "hoodie.copyonwrite.record.size.estimate"
ESTIMATION_THRESHOLD = "hoodie.record.size.estimation.threshold"
SMALL_FILE_CANDIDATES = "hoodie.merge.small.file.group.candidates.limit"
LOG_TO_PARQUET_RATIO = "hoodie.logfile.to.parquet.compression.ratio"
ESTIMATOR_MAX_COMMITS = "_hoodie.record.size.estimator.max.commits"
AVERAGE_METADATA_SIZE = "hoodie.record.size.estimator.average.metadata.size"
ESTIMATOR_CLASS = "hoodie.record.size.estimator.class"
INDEX_TYPE = "hoodie.index.type"
SIZING_KEYS = (
    MAX_FILE_BYTES,
    SMALL_FILE_LIMIT,
    INSERT_SPLIT_SIZE,
    INSERT_AUTO_SPLIT,
    RECORD_SIZE_ESTIMATE,
    ESTIMATION_THRESHOLD,
    SMALL_FILE_CANDIDATES,
    LOG_TO_PARQUET_RATIO,
    ESTIMATOR_MAX_COMMITS,
    AVERAGE_METADATA_SIZE,
)

_OWN_PARTITIONERS = ("BUCKET",)
_DEFAULT_ESTIMATOR = "org.apache.hudi.estimator.AverageRecordSizeEstimator"
_FIRST_TO_SUM, _FIRST_TO_LIMIT = (1, 0), (1, 1)
_RELEASE_OF_VERSION = {6: "0.15.0", 8: "1.0.2", 9: "1.2.0"}


class EstimatorRule(StrEnum):
    """How a release works out the average size of a record.

    ``newest-large-enough`` (before 1.0): the newest completed commit, delta commit or replace commit that wrote more
    bytes than the threshold; rounded up. ``sum-of-large-enough`` (1.0.x): of the newest five commits and delta commits
    all that wrote more than it, together; rounded down. ``newest-of-recent`` (from 1.1): the newest of those five that
    wrote more than it; rounded up. Of a delta commit, base files alone count; 1.0.x compares each of them.
    """

    NEWEST_LARGE_ENOUGH = "newest-large-enough"
    SUM_OF_LARGE_ENOUGH = "sum-of-large-enough"
    NEWEST_OF_RECENT = "newest-of-recent"

    @classmethod
    def of_release(cls, hudi_version: str) -> EstimatorRule:
        """The rule of a release.

        >>> [str(EstimatorRule.of_release(one)) for one in ("0.15.0", "1.0.2", "1.2.0")]
        ['newest-large-enough', 'sum-of-large-enough', 'newest-of-recent']
        """
        parts = hudi_version.split(".")
        if len(parts) < len(_FIRST_TO_SUM) or not all(part.isdecimal() for part in parts[:2]):
            raise InvalidSettingError(f"hudi_version={hudi_version!r} is no release of Hudi, such as 1.2.0")
        release = (int(parts[0]), int(parts[1]))
        if release < _FIRST_TO_SUM:
            return cls.NEWEST_LARGE_ENOUGH
        return cls.SUM_OF_LARGE_ENOUGH if release < _FIRST_TO_LIMIT else cls.NEWEST_OF_RECENT


def release_of_table(table_version: int) -> str:
    """The release that most likely writes a table of this version, where nobody says which does.

    >>> release_of_table(8)
    '1.0.2'
    """
    return _RELEASE_OF_VERSION[table_version]


@dataclass(frozen=True, kw_only=True)
class SizingSettings:
    """A writer's settings that decide how big files become; sizes in bytes. The defaults are Hudi's own.

    ``appends_to_log_files`` is true for the few indexes that find keys in log files, so that a merge-on-read writer
    puts inserts there, too.
    """

    max_file_bytes: int = 120 * 1024 * 1024
    small_file_bytes: int = 100 * 1024 * 1024
    insert_split_records: int = 500_000
    auto_split: bool = True
    record_bytes_estimate: int = 1024
    estimation_threshold: float = 1.0
    small_file_candidates: int = 1
    log_to_parquet_ratio: float = 0.35
    estimator_max_commits: int = 5
    metadata_bytes: int = 0
    appends_to_log_files: bool = False

    def __post_init__(self) -> None:
        for name in ("max_file_bytes", "insert_split_records", "record_bytes_estimate"):
            if getattr(self, name) < 1:
                raise InvalidSettingError(f"{name}={getattr(self, name)} is too small; expected at least 1")
        for name in ("small_file_candidates", "estimator_max_commits", "metadata_bytes", "estimation_threshold"):
            if getattr(self, name) < 0:
                raise InvalidSettingError(f"{name}={getattr(self, name)} is negative; expected 0 or more")

    @property
    def counted_from_bytes(self) -> int:
        """A commit that wrote no more than this says nothing about the size of a record."""
        return int(self.estimation_threshold * self.small_file_bytes)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> SizingSettings:
        """Read a writer's options; what is not among them is Hudi's default.

        Raises InvalidSettingError for a value that Hudi could not read, for a bucket index (records go to the bucket of
        their key there, whatever its size), and for an estimator that is not Hudi's own.

        >>> SizingSettings.from_options({"hoodie.parquet.small.file.limit": "0"}).small_file_bytes
        0
        """
        index = options.get(INDEX_TYPE, "").strip().upper()
        if index in _OWN_PARTITIONERS:
            raise InvalidSettingError(
                f"{INDEX_TYPE}={index}: records go to the bucket of their key, so file sizes follow from "
                "hoodie.bucket.index.num.buckets and not from small files"
            )
        estimator = options.get(ESTIMATOR_CLASS, "").strip()
        if estimator not in ("", _DEFAULT_ESTIMATOR):
            raise InvalidSettingError(f"{ESTIMATOR_CLASS}={estimator}: only {_DEFAULT_ESTIMATOR} can be foretold")
        read = _Options(options)
        return cls(
            max_file_bytes=read.whole(MAX_FILE_BYTES, cls.max_file_bytes),
            small_file_bytes=read.whole(SMALL_FILE_LIMIT, cls.small_file_bytes),
            insert_split_records=read.whole(INSERT_SPLIT_SIZE, cls.insert_split_records),
            auto_split=read.flag(INSERT_AUTO_SPLIT, default=cls.auto_split),
            record_bytes_estimate=read.whole(RECORD_SIZE_ESTIMATE, cls.record_bytes_estimate),
            estimation_threshold=read.real(ESTIMATION_THRESHOLD, cls.estimation_threshold),
            small_file_candidates=read.whole(SMALL_FILE_CANDIDATES, cls.small_file_candidates),
            log_to_parquet_ratio=read.real(LOG_TO_PARQUET_RATIO, cls.log_to_parquet_ratio),
            estimator_max_commits=read.whole(ESTIMATOR_MAX_COMMITS, cls.estimator_max_commits),
            metadata_bytes=read.whole(AVERAGE_METADATA_SIZE, cls.metadata_bytes),
            appends_to_log_files=index == "INMEMORY",
        )


@dataclass(frozen=True, slots=True)
class _Options:
    given: Mapping[str, str]

    def whole(self, key: str, default: int) -> int:
        text = self.given.get(key, "").strip()
        try:
            return int(text) if text else default
        except ValueError:
            raise InvalidSettingError(f"{key}={text!r} is no whole number") from None

    def real(self, key: str, default: float) -> float:
        text = self.given.get(key, "").strip()
        try:
            return float(text) if text else default
        except ValueError:
            raise InvalidSettingError(f"{key}={text!r} is no number") from None

    def flag(self, key: str, *, default: bool) -> bool:
        text = self.given.get(key, "").strip().lower()
        return text == "true" if text else default


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSizes:
    """What one completed instant wrote, as far as the average record size depends on it.

    ``base_files`` are (bytes, records) of each base file; totals count log files too. ``file_count`` is that of write
    stats.
    """

    requested_time: str
    action: Action
    operation: str | None
    total_bytes: int
    total_records: int
    file_count: int
    base_files: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, instant: Instant, metadata: CommitMetadata) -> CommitSizes:
        """Digest an instant's metadata; it has to have been read with its files."""
        stats = [stat for stats in metadata.written.values() for stat in stats]
        bases = [one for one in stats if BASE_FILE_NAME.fullmatch(one.path.rpartition("/")[2])]
        return cls(
            requested_time=instant.requested_time,
            action=instant.action,
            operation=metadata.operation,
            total_bytes=sum(one.bytes for one in stats),
            total_records=sum(one.records for one in stats),
            file_count=len(stats),
            base_files=tuple((one.bytes, one.records) for one in bases),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AverageRecordSize:
    """The average size of a record as a release of Hudi takes it, in bytes, and where that comes from.

    ``instants`` are the commits that it was worked out from; without any it is the writer's own estimate.
    """

    bytes: int
    rule: EstimatorRule
    instants: tuple[str, ...] = ()

    @property
    def is_guess(self) -> bool:
        """Whether no commit was large enough, so that ``hoodie.copyonwrite.record.size.estimate`` stands in."""
        return not self.instants

    def to_json(self) -> JsonObject:
        """The object of a JSON document."""
        return {"bytes": self.bytes, "rule": str(self.rule), "instants": list(self.instants)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFiles:
    """The latest slices of a partition as an insert finds them.

    ``clustering`` and ``compaction`` are the file ids that a pending plan of that kind holds. ``base_group_count`` and
    ``group_count`` are how many file groups have a base file, and how many there are, in the directory, those that are
    replaced and not yet cleaned included: only the order in which Hudi comes upon small files depends on them. None
    takes the slices for all there is. ``listing_order`` are file ids as the storage lists them, for those that this
    order leaves open; what is not among them comes by name.
    """

    partition_path: str
    slices: tuple[FileSlice, ...]
    clustering: frozenset[str] = frozenset()
    compaction: frozenset[str] = frozenset()
    base_group_count: int | None = None
    group_count: int | None = None
    listing_order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownFile:
    """A file group that takes inserts; ``expected_bytes`` is what its next base file will have, at the average."""

    file_id: str
    bytes_before: int
    records: int
    expected_bytes: int

    def to_json(self) -> JsonObject:
        """The row of a JSON document."""
        return {
            "file_id": self.file_id,
            "bytes_before": self.bytes_before,
            "records": self.records,
            "expected_bytes": self.expected_bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file group that does not exist yet."""

    records: int
    expected_bytes: int

    def to_json(self) -> JsonObject:
        """The row of a JSON document."""
        return {"records": self.records, "expected_bytes": self.expected_bytes}


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertPrediction:
    """What an insert makes of one partition: which file groups grow, and which are new, in the order of Hudi's buckets.

    The records of a bucket are what Hudi aims at: it deals keys out by their hash, so that the real numbers scatter
    around them, and a bucket of a handful of records may stay empty. ``ignored`` are small files that take nothing,
    with why.
    """

    partition_path: str
    inserts: int
    average: AverageRecordSize
    grown: tuple[GrownFile, ...]
    new: tuple[NewFile, ...]
    ignored: tuple[tuple[str, str], ...] = ()

    @property
    def weights(self) -> tuple[float, ...]:
        """The share of the inserts that each bucket gets; the grown files' first."""
        records = [one.records for one in self.grown] + [one.records for one in self.new]
        return tuple(one / self.inserts for one in records)

    def describe(self) -> str:
        """Say it in one sentence."""
        grown = f"{len(self.grown)} {'grows' if len(self.grown) == 1 else 'grow'}" if self.grown else "none grows"
        size = f", of about {human_bytes(self.new[0].expected_bytes)} each" if self.new else ""
        return (
            f"{counted(self.inserts, 'insert')} into {self.partition_path!r}: of its small files {grown}, "
            f"{len(self.new)} new{size} (average record {self.average.bytes:,} bytes)"
        )

    def to_json(self) -> JsonObject:
        """The object of a JSON document."""
        return {
            "partition": self.partition_path,
            "inserts": self.inserts,
            "average_record": self.average.to_json(),
            "grown": [one.to_json() for one in self.grown],
            "new": [one.to_json() for one in self.new],
            "ignored": [{"file_id": file_id, "reason": reason} for file_id, reason in self.ignored],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionAdvice:
    """A writer's option, the value it should have, and why. ``present`` is what it has; None where nobody says."""

    key: str
    value: str
    reason: str
    present: str | None = None

    def to_json(self) -> JsonObject:
        """The row of a JSON document."""
        return {"key": self.key, "value": self.value, "reason": self.reason, "present": self.present}
