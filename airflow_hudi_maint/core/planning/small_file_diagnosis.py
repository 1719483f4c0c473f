"""Diagnose small files: per partition, how many, what they cost, and why they are there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from airflow_hudi_maint.core.model.commit import CommitMetadata
from airflow_hudi_maint.core.model.diagnosis import (
    Cause,
    Certainty,
    Finding,
    PartitionDiagnosis,
    SampledFile,
    SmallFileDiagnosis,
)
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.instant import Instant
from airflow_hudi_maint.core.model.plan_basis import PlanBasis
from airflow_hudi_maint.core.model.sizing import (
    SMALL_FILE_CANDIDATES,
    SMALL_FILE_LIMIT,
    AverageRecordSize,
    CommitSizes,
    EstimatorRule,
    InsertPrediction,
    SizingSettings,
)
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.sizing_estimate import average_record_size
from airflow_hudi_maint.core.planning.small_file_causes import LEAVES_IDLE, Reason, Rules
from airflow_hudi_maint.core.planning.small_file_cures import CureFacts, action_for, cures_for
from airflow_hudi_maint.core.planning.small_file_origins import (
    BULK_INSERTS,
    PartitionWrite,
    is_base_file,
    partition_writes,
)

_EXAMPLES = 3
_INSTANTS = 10
_FLOOR_SHARE = 0.5
_STATEMENTS = {
    Cause.PENDING_PLAN: "pending plans hold these file groups: no insert fills them and no rewrite takes them",
    Cause.LOG_FILES: "log files lie on these base files: no insert fills them before they are compacted",
    Cause.BULK_INSERT: "bulk inserts wrote with more tasks than files are needed",
    Cause.NO_HANDLING: "new files were begun beside small ones that were not filled",
    Cause.ONE_CANDIDATE: "a merge-on-read commit fills few small files of a partition, and begins new ones beside them",
    Cause.ESTIMATE_TOO_HIGH: "writers take rows for larger than they are, and close files too early",
    Cause.ESTIMATE_TOO_LOW: "writers take rows for smaller than they are: files overflow into small ones",
    Cause.MICRO_PARTITION: "partitions hold less than one full file in all: too many partitions for the data",
    Cause.REMAINDER: "a partition's last file, not full yet",
    Cause.UNKNOWN: "the active timeline does not tell how these came to be",
}
_ORDER = tuple(Cause)


@dataclass(frozen=True, kw_only=True)
class DiagnosisFacts:
    """What a diagnosis rests on.

    ``slices`` are the latest slices by partition, of those partitions that are looked at; ``writes`` all completed
    writes of the active timeline with their files. ``given`` are options known to be the writers'. ``hudi_version``
    is the release that writes. ``samples`` are footers of small files.
    """

    basis: PlanBasis
    hudi_version: str
    is_merge_on_read: bool
    slices: Mapping[str, Sequence[FileSlice]]
    writes: Sequence[tuple[Instant, CommitMetadata]]
    given: Mapping[str, str]
    partition_fields: tuple[str, ...] = ()
    samples: Sequence[SampledFile] = ()

    @cached_property
    def settings(self) -> SizingSettings:
        """The writers' settings, as far as they are given."""
        return SizingSettings.from_options(self.given)

    def sampled(self, samples: Sequence[SampledFile]) -> DiagnosisFacts:
        """The same, with footers."""
        return replace(self, samples=samples)

    @cached_property
    def rule(self) -> EstimatorRule:
        """How the release estimates the size of a record."""
        return EstimatorRule.of_release(self.hudi_version)

    def average_before(self, requested_time: str) -> AverageRecordSize:
        """What a writer took a record for that began at this instant."""
        if requested_time not in self._averages:
            earlier = [one for one in self._sizes if one.requested_time < requested_time]
            found = average_record_size(earlier, settings=self.settings, rule=self.rule)
            self._averages[requested_time] = found
        return self._averages[requested_time]

    @cached_property
    def _averages(self) -> dict[str, AverageRecordSize]:
        return {}

    @cached_property
    def _sizes(self) -> tuple[CommitSizes, ...]:
        return tuple(CommitSizes.of(instant, metadata) for instant, metadata in self.writes)


def diagnose_small_files(
    facts: DiagnosisFacts, *, small_file_bytes: int, prediction: InsertPrediction | None = None
) -> SmallFileDiagnosis:
    """Say of each partition how many files are below ``small_file_bytes``, and of all why they are there.

    Raises InvalidSettingError for options that no writer could have.

    >>> from airflow_hudi_maint.core.model.statistics import Watermark
    >>> basis = PlanBasis(base_path="/lake/trips", table_name="trips", table_version=9, created_at="",
    ...                   watermark=Watermark(requested_time="20261130000000000"))
    >>> facts = DiagnosisFacts(basis=basis, hudi_version="1.2.0", is_merge_on_read=False, slices={"day=1": ()},
    ...                        writes=(), given={})
    >>> diagnose_small_files(facts, small_file_bytes=100).describe()
    '0 files, none below 100 B'
    """
    return _Diagnosing(facts=facts, small_file_bytes=small_file_bytes).diagnosis(prediction)


@dataclass(frozen=True, kw_only=True)
class _SmallFiles:
    """The small files of one partition, and the reasons that rest on them together."""

    path: str
    small: Sequence[FileSlice]
    file_count: int
    bytes: int
    is_micro: bool
    facts: DiagnosisFacts

    def held(self, instant: str) -> Reason:
        evidence = f"{instant} holds file groups of {self.path!r}"
        return Reason(cause=Cause.PENDING_PLAN, certainty=Certainty.CERTAIN, evidence=evidence, instant=instant)

    @cached_property
    def logged(self) -> Reason:
        logs = sum(len(one.log_files) for one in self.small)
        groups = sum(bool(one.log_files) for one in self.small)
        evidence = f"{counted(logs, 'log file')} on {counted(groups, 'small file group')} of {self.path!r}"
        return Reason(cause=Cause.LOG_FILES, certainty=Certainty.CERTAIN, evidence=evidence)

    def without_write(self, write: PartitionWrite | None) -> Reason:
        """The reason of a small file for which no write is to blame."""
        if len(self.small) == 1:
            return self._only_one()
        limit = self.facts.settings.small_file_candidates
        if self.facts.is_merge_on_read and self._free_count > limit:
            said = f"{self.path!r} has {counted(self._free_count, 'small file')} that may grow"
            evidence = f"{said}, and {SMALL_FILE_CANDIDATES}={limit}"
            return Reason(cause=Cause.ONE_CANDIDATE, certainty=Certainty.POSSIBLE, evidence=evidence)
        begun = f"begun by {write.requested_time}" if write else "begun before the active timeline"
        evidence = f"{counted(len(self.small), 'small file')} in {self.path!r}, such as one {begun}"
        return Reason(cause=Cause.UNKNOWN, certainty=Certainty.UNKNOWN, evidence=evidence)

    def _only_one(self) -> Reason:
        if self.is_micro:
            evidence = f"{self.path!r} holds {human_bytes(self.bytes)} in all"
            return Reason(cause=Cause.MICRO_PARTITION, certainty=Certainty.CERTAIN, evidence=evidence)
        evidence = f"{self.path!r} has one small file beside {self.file_count - 1} others"
        return Reason(cause=Cause.REMAINDER, certainty=Certainty.CERTAIN, evidence=evidence)

    @cached_property
    def _free_count(self) -> int:
        return sum(not one.log_files and not one.pending_instant for one in self.small)


@dataclass(frozen=True, kw_only=True)
class _Diagnosing:
    facts: DiagnosisFacts
    small_file_bytes: int

    def diagnosis(self, prediction: InsertPrediction | None) -> SmallFileDiagnosis:
        reasons = {path: self._reasons(path) for path in sorted(self.facts.slices)}
        return SmallFileDiagnosis(
            basis=self.facts.basis,
            hudi_version=self.facts.hudi_version,
            small_file_bytes=self.small_file_bytes,
            target_file_bytes=self.facts.settings.max_file_bytes,
            partitions=tuple(self._partition(path, found) for path, found in reasons.items()),
            findings=tuple(self._findings(reasons)),
            prediction=prediction,
        )

    def _small(self, path: str) -> list[FileSlice]:
        return [one for one in self.facts.slices[path] if one.base_bytes < self.small_file_bytes]

    def _bytes(self, path: str) -> int:
        return sum(one.total_bytes for one in self.facts.slices[path])

    def _is_micro(self, path: str) -> bool:
        return bool(self.facts.partition_fields) and 0 < self._bytes(path) < self.small_file_bytes

    @cached_property
    def _rules(self) -> Rules:
        return Rules(
            settings=self.facts.settings,
            is_merge_on_read=self.facts.is_merge_on_read,
            average_before=self.facts.average_before,
            limit_is_given=SMALL_FILE_LIMIT in self.facts.given,
            small_file_bytes=self.small_file_bytes,
        )

    @cached_property
    def _writes(self) -> dict[str, list[PartitionWrite]]:
        with_small = {path: self.facts.slices[path] for path in self.facts.slices if self._small(path)}
        return partition_writes(with_small, self.facts.writes)

    def _reasons(self, path: str) -> dict[str, Reason]:
        """The reason of each small file of a partition."""
        small = self._small(path)
        if not small:
            return {}
        begun = {one.file_id: write for write in self._writes[path] for one in write.created}
        partition = _SmallFiles(
            path=path,
            small=small,
            file_count=len(self.facts.slices[path]),
            bytes=self._bytes(path),
            is_micro=self._is_micro(path),
            facts=self.facts,
        )
        idle = self._left_idle(path)
        return {one.file_id: self._reason(one, partition, write=begun.get(one.file_id), idle=idle) for one in small}

    def _reason(
        self, one: FileSlice, partition: _SmallFiles, *, write: PartitionWrite | None, idle: Mapping[str, Reason]
    ) -> Reason:
        if one.pending_instant:
            return partition.held(one.pending_instant)
        if one.log_files:
            return partition.logged
        found = self._of(write, overflows=not one.file_id.endswith("-0")) if write else None
        return found or idle.get(one.file_id) or partition.without_write(write)

    def _of(self, write: PartitionWrite, *, overflows: bool = False) -> Reason | None:
        """As the rules say, once for each write: a partition may have many thousand files of one."""
        key = (write.partition_path, write.requested_time, overflows)
        if key not in self._told:
            self._told[key] = self._rules.of(write, overflows=overflows)
        return self._told[key]

    @cached_property
    def _told(self) -> dict[tuple[str, str, bool], Reason | None]:
        return {}

    def _left_idle(self, path: str) -> dict[str, Reason]:
        """By file group the reason of the last write that could have filled it and did not."""
        found = {}
        for write in self._writes[path]:
            reason = self._of(write) if write.created else None
            if reason is not None and reason.cause in LEAVES_IDLE:
                found.update(dict.fromkeys(write.before.keys() - write.grown, reason))
        return found

    def _partition(self, path: str, reasons: Mapping[str, Reason]) -> PartitionDiagnosis:
        slices = self.facts.slices[path]
        size = self._bytes(path)
        needed = -(-size // self.facts.settings.max_file_bytes)
        causes = Counter(one.cause for one in reasons.values())
        if reasons and self._is_micro(path):
            causes.setdefault(Cause.MICRO_PARTITION, 0)
        return PartitionDiagnosis(
            partition_path=path,
            files=len(slices),
            small_files=len(reasons),
            bytes=size,
            small_bytes=sum(one.total_bytes for one in self._small(path)),
            wasted_opens=max(len(slices) - needed, 0),
            causes=tuple(sorted(causes.items(), key=lambda one: (-one[1], _ORDER.index(one[0])))),
        )

    def _findings(self, reasons: Mapping[str, Mapping[str, Reason]]) -> Iterable[Finding]:
        by_cause: dict[Cause, list[tuple[str, Reason]]] = defaultdict(list)
        for path, found in reasons.items():
            for one in found.values():
                by_cause[one.cause].append((path, one))
        micro = tuple(path for path in sorted(self.facts.slices) if self._is_micro(path) and self._small(path))
        findings = [
            self._finding(cause, pairs, partitions=micro if cause is Cause.MICRO_PARTITION else ())
            for cause, pairs in by_cause.items()
        ]
        if micro and Cause.MICRO_PARTITION not in by_cause:
            findings.append(self._finding(Cause.MICRO_PARTITION, [], partitions=micro))
        findings += self._bloom_filter()
        return sorted(findings, key=lambda one: (-one.small_files, _ORDER.index(one.cause)))

    def _finding(
        self, cause: Cause, pairs: Sequence[tuple[str, Reason]], *, partitions: tuple[str, ...] = ()
    ) -> Finding:
        reasons = [one for _, one in pairs]
        evidence = list(dict.fromkeys(one.evidence for one in reasons))
        if cause is Cause.MICRO_PARTITION:
            evidence.insert(0, self._micro_evidence(partitions))
        weakest = max((list(Certainty).index(one.certainty) for one in reasons), default=0)
        instants = sorted({one.instant for one in reasons if one.instant})
        return Finding(
            cause=cause,
            certainty=list(Certainty)[weakest],
            statement=_STATEMENTS[cause],
            small_files=len(pairs),
            partitions=partitions or tuple(sorted({path for path, _ in pairs})),
            evidence=tuple(evidence[:_EXAMPLES]),
            instants=tuple(instants[-_INSTANTS:]),
            cures=cures_for(cause, reasons, facts=self._cure_facts),
            action=action_for(cause),
        )

    def _micro_evidence(self, partitions: Sequence[str]) -> str:
        size = sum(map(self._bytes, partitions))
        return (
            f"{len(partitions):,} of {counted(len(self.facts.slices), 'partition')} hold less than "
            f"{human_bytes(self.small_file_bytes)}, {human_bytes(size)} in all"
        )

    def _bloom_filter(self) -> list[Finding]:
        floored = [one for one in self.facts.samples if one.filter_bytes >= _FLOOR_SHARE * one.file_bytes]
        if not floored:
            return []
        evidence = (
            f"in {len(floored)} of {counted(len(self.facts.samples), 'small file')} read, half or more is filter: "
            f"{human_bytes(floored[0].filter_bytes)} of {human_bytes(floored[0].file_bytes)} for "
            f"{counted(floored[0].records, 'row')}"
        )
        return [
            Finding(
                cause=Cause.BLOOM_FILTER,
                certainty=Certainty.CERTAIN,
                statement="each file carries a Bloom filter of fixed size, whatever its rows; sizes cannot fall below "
                "it, and writers take it for rows when they estimate",
                small_files=0,
                partitions=tuple(sorted({one.partition_path for one in floored})),
                evidence=(evidence,),
                cures=cures_for(Cause.BLOOM_FILTER, (), facts=self._cure_facts),
            )
        ]

    @cached_property
    def _cure_facts(self) -> CureFacts:
        stats = [
            stat
            for _, metadata in self.facts.writes
            for stats in metadata.written.values()
            for stat in stats
            if is_base_file(stat)
        ]
        samples = self.facts.samples
        filter_bytes = max((one.filter_bytes for one in samples), default=0)
        rows = sum(one.records for one in stats)
        size = sum(max(one.bytes - filter_bytes, 0) for one in stats)
        bulk = [
            sum(stat.bytes for stats in metadata.written.values() for stat in stats)
            for _, metadata in self.facts.writes
            if (metadata.operation or "").upper() in BULK_INSERTS
        ]
        return CureFacts(
            settings=self.facts.settings,
            given=self.facts.given,
            rule=self.facts.rule,
            partition_fields=self.facts.partition_fields,
            row_bytes=max(size // rows, 1) if rows else None,
            filter_bytes=filter_bytes or None,
            rows_per_file=max((one.records for one in samples), default=None),
            bulk_bytes=max(bulk, default=None),
        )
