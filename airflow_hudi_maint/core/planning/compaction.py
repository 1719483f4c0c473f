"""Compaction of a merge-on-read table: which file groups get their log files merged into a new base file.

The rules for users are in docs/compaction.md. What Hudi can be told: ``CompactionStrategy`` and its subclasses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_hudi_maint.core.model.compaction_plan import CompactionEntry, CompactionPlan, CompactionSettings
from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.plan_basis import Decision, PlanBasis
from airflow_hudi_maint.core.model.rewrite_group import PlannedInput
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.named_partitions import considered
from airflow_hudi_maint.core.planning.wording import some_of

_STRATEGIES = "org.apache.hudi.table.action.compact.strategy"
_BY_PARTITION = f"{_STRATEGIES}.PartitionRegexBasedCompactionStrategy"
_BY_LOG_COUNT = f"{_STRATEGIES}.LogFileNumBasedCompactionStrategy"
_BY_LOG_BYTES = f"{_STRATEGIES}.LogFileSizeBasedCompactionStrategy"
_ANY_IO_MB = str(10**12)
"""Hudi stops at 500 GB of reading and writing by default, and leaves the rest out silently."""
_SPECIAL = re.compile(r"([^0-9A-Za-z_\x80-\U0010ffff])")
_ESCAPED = r"\\\1"
_PARTITIONS_SINCE = (1, 0, 0)
"""The first release with a strategy that takes partitions, and with strategies that go together."""


def delta_commits_since_compaction(timeline: Timeline) -> int:
    """Count the completed delta commits since the last completed compaction, as Hudi's trigger does.

    Source: Hudi's ``CompactionUtils.getDeltaCommitsSinceLatestCompaction``. A log compaction, which completes as a
    delta commit, does not count here.
    """
    compactions = [one.requested_time for one in timeline.completed if one.action is Action.COMMIT]
    last = max(compactions, default="")
    return sum(
        one.action is Action.DELTA_COMMIT
        and one.requested_time not in timeline.log_compactions
        and one.ordering_time > last
        for one in timeline.completed
    )


def plan_compaction(
    slices: Mapping[str, Sequence[FileSlice]],
    settings: CompactionSettings,
    *,
    basis: PlanBasis,
    delta_commits: int,
    partitions: Collection[str] | None = None,
) -> CompactionPlan:
    """Plan which file groups to compact; ``slices`` are the merged ones of each partition.

    A file group that a pending plan holds is left out, as Hudi leaves it out; a partition without any other is blocked.
    ``partitions`` None means all. Every partition that was considered has an entry.

    Raises UnknownPartitionError for a name without data, and InvalidSettingError for an empty list of names.

    >>> from airflow_hudi_maint.core.model.file_slice import BaseFile, LogFile
    >>> from airflow_hudi_maint.core.model.statistics import Watermark
    >>> base = BaseFile(name="a", file_id="a", instant="20261130000000000", bytes=4096)
    >>> log = LogFile(name=".a.log", file_id="a", instant=base.instant, version=1, write_token="", bytes=1024)
    >>> known = {"partition_path": "day=1", "file_id": "a", "base_instant": base.instant}
    >>> one = FileSlice(**known, base_file=base, log_files=(log,))
    >>> mark = Watermark(requested_time="20261130000000000", completion_time=None, pending=())
    >>> basis = PlanBasis(base_path="/t", table_name="t", table_version=6, watermark=mark, created_at="2026-11-30")
    >>> plan = plan_compaction({"day=1": [one], "day=2": []}, CompactionSettings(), basis=basis, delta_commits=3)
    >>> for entry in plan.entries:
    ...     print(entry.partition_path, entry.decision, "-", entry.reason)
    day=1 compact - 1 file group with 1 log file of 1 KiB, 0.25 of its base files
    day=2 keep - no log file in 0 file groups
    """
    candidates = [_Candidate.of(path, slices[path], settings) for path in considered(slices, partitions=partitions)]
    too_few = _too_few_commits(settings, delta_commits=delta_commits)
    wanted = [one for one in candidates if one.why_not(settings) is None and one.blocked_by is None and not too_few]
    fitting = _within_budget(wanted, settings)
    return CompactionPlan(
        basis=basis,
        settings=settings,
        entries=tuple(_entry(one, settings, too_few=too_few, fits=one.partition_path in fitting) for one in candidates),
        delta_commits=delta_commits,
        warnings=_left_out(len(wanted), len(fitting), settings),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A partition: its file groups, those with log files, those of them that reach the limits, and what is held."""

    partition_path: str
    group_count: int
    with_logs: tuple[FileSlice, ...]
    due: tuple[FileSlice, ...]
    held: tuple[FileSlice, ...]

    @classmethod
    def of(cls, partition_path: str, slices: Sequence[FileSlice], settings: CompactionSettings) -> _Candidate:
        with_logs = tuple(one for one in slices if one.log_files)
        reaching = [
            one
            for one in with_logs
            if len(one.log_files) >= settings.min_log_files and one.log_bytes >= settings.min_log_bytes
        ]
        return cls(
            partition_path=partition_path,
            group_count=len(slices),
            with_logs=with_logs,
            due=tuple(one for one in reaching if not one.pending_instant),
            held=tuple(one for one in reaching if one.pending_instant),
        )

    @property
    def ratio(self) -> float:
        """Bytes of log files for each byte of base files; infinite without base files."""
        base = sum(one.base_bytes for one in self.due)
        return sum(one.log_bytes for one in self.due) / base if base else float("inf")

    @property
    def input_bytes(self) -> int:
        return sum(one.total_bytes for one in self.due)

    @property
    def log_bytes(self) -> int:
        return sum(one.log_bytes for one in self.due)

    @property
    def blocked_by(self) -> str | None:
        """The pending plan that holds what is due, when nothing else is."""
        return None if self.due or not self.held else self.held[0].pending_instant

    def why_not(self, settings: CompactionSettings) -> str | None:
        groups = counted(self.group_count, "file group")
        if not self.with_logs:
            return f"no log file in {groups}"
        if not self.due and not self.held:
            files = counted(max(len(one.log_files) for one in self.with_logs), "log file")
            size = human_bytes(max(one.log_bytes for one in self.with_logs))
            return (
                f"{counted(len(self.with_logs), 'file group')} with log files, at most {files} and {size} in one: "
                f"below min_log_files={settings.min_log_files} or min_log_bytes={settings.min_log_bytes}"
            )
        if self.due and self.ratio < settings.min_log_ratio:
            return f"{self.gain()}, below min_log_ratio={settings.min_log_ratio:g}"
        return None

    def gain(self) -> str:
        files = counted(sum(len(one.log_files) for one in self.due), "log file")
        share = "without base files" if self.ratio == float("inf") else f"{self.ratio:.2f} of its base files"
        text = f"{counted(len(self.due), 'file group')} with {files} of {human_bytes(self.log_bytes)}, {share}"
        below = len(self.with_logs) - len(self.due) - len(self.held)
        notes = [f"{below} below the limits"] if below else []
        holders = {one.pending_instant for one in self.held if one.pending_instant}
        notes += [f"{len(self.held)} held by the pending plan {some_of(holders)}"] if self.held else []
        return f"{text} ({', '.join(notes)})" if notes else text


def _too_few_commits(settings: CompactionSettings, *, delta_commits: int) -> str:
    if delta_commits >= settings.min_delta_commits:
        return ""
    return f"{counted(delta_commits, 'delta commit')} since the last compaction, below {settings.min_delta_commits}"


def _within_budget(wanted: Iterable[_Candidate], settings: CompactionSettings) -> frozenset[str]:
    """The partitions that fit the budget, those with most bytes in log files first; the first always does.

    A partition larger than the whole budget would never have its turn otherwise.
    """
    fitting: set[str] = set()
    read = 0
    for one in sorted(wanted, key=lambda each: (-each.log_bytes, each.partition_path)):
        within = settings.max_input_bytes is None or read + one.input_bytes <= settings.max_input_bytes
        if within or not fitting:
            fitting.add(one.partition_path)
            read += one.input_bytes
    return frozenset(fitting)


def _entry(candidate: _Candidate, settings: CompactionSettings, *, too_few: str, fits: bool) -> CompactionEntry:
    path = candidate.partition_path
    why_not = candidate.why_not(settings)
    if why_not is not None:
        return CompactionEntry(partition_path=path, decision=Decision.KEEP, reason=why_not)
    if candidate.blocked_by is not None:
        reason = f"{counted(len(candidate.held), 'file group')} due, held by the pending plan {candidate.blocked_by}"
        return CompactionEntry(
            partition_path=path, decision=Decision.BLOCKED, reason=reason, blocked_by=candidate.blocked_by
        )
    if too_few:
        return CompactionEntry(partition_path=path, decision=Decision.KEEP, reason=f"{candidate.gain()}; {too_few}")
    if not fits:
        reason = f"{candidate.gain()}; left for the next run: max_input_bytes={settings.max_input_bytes} reached"
        return CompactionEntry(partition_path=path, decision=Decision.KEEP, reason=reason)
    return CompactionEntry(
        partition_path=path,
        decision=Decision.COMPACT,
        reason=candidate.gain(),
        inputs=tuple(map(PlannedInput.of, candidate.due)),
    )


def _left_out(wanted: int, fitting: int, settings: CompactionSettings) -> tuple[str, ...]:
    if wanted == fitting:
        return ()
    limit = f"max_input_bytes={settings.max_input_bytes}"
    return (f"{fitting} of {wanted} partitions with log files are planned; the rest is left for the next run: {limit}",)


def takes_partitions(release: tuple[int, int, int]) -> bool:
    """Whether this release of Hudi can be told which partitions to compact, and several limits at once."""
    return release >= _PARTITIONS_SINCE


def compaction_options(plan: CompactionPlan, *, release: tuple[int, int, int], is_partitioned: bool) -> dict[str, str]:
    """Return the Hudi options that make Hudi's compaction plan the one that was shown.

    Before 1.0 Hudi takes one strategy and no partitions: it plans by size, or by number, on the whole table. The caller
    has to see to it that this is the plan, too (:func:`takes_partitions`).
    """
    settings = plan.settings
    options = {
        "hoodie.compaction.logfile.num.threshold": str(settings.min_log_files),
        "hoodie.compaction.logfile.size.threshold": str(settings.min_log_bytes),
        "hoodie.compaction.target.io": _ANY_IO_MB,
        # Our plan has the trigger. With 1, log files that an earlier compaction of other partitions left would wait.
        "hoodie.compact.inline.trigger.strategy": "NUM_COMMITS",
        "hoodie.compact.inline.max.delta.commits": "0",
        # Since 1.1 a plan otherwise looks only at partitions that were written since the last compaction.
        "hoodie.table.services.incremental.enabled": "false",
    }
    if not takes_partitions(release):
        strategy = _BY_LOG_COUNT if settings.min_log_files > 1 else _BY_LOG_BYTES
        return {**options, "hoodie.compaction.strategy": strategy}
    chain = [_BY_LOG_COUNT, _BY_LOG_BYTES]
    if is_partitioned:
        chain.insert(0, _BY_PARTITION)
        paths = [entry.partition_path for entry in plan.chosen]
        options["hoodie.compaction.partition.path.regex"] = partition_pattern(paths)
    return {**options, "hoodie.compaction.strategy": ",".join(chain)}


def partition_pattern(paths: Iterable[str]) -> str:
    r"""Return a Java pattern that finds these paths and no other: Hudi looks for a match anywhere in a path.

    Every ASCII character that is no letter, digit or underscore is escaped, which Java takes for the character itself.

    >>> print(partition_pattern(["day=1", "x/a+b"]))
    \A(?:day\=1|x\/a\+b)\z
    """
    return f"\\A(?:{'|'.join(_SPECIAL.sub(_ESCAPED, path) for path in paths)})\\z"
