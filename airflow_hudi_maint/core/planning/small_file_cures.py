"""The settings that cure each cause of small files, with what they are now and what they should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_hudi_maint.core.model.diagnosis import Cause, Cure, Known
from airflow_hudi_maint.core.model.sizing import (
    AVERAGE_METADATA_SIZE,
    INSERT_AUTO_SPLIT,
    RECORD_SIZE_ESTIMATE,
    SMALL_FILE_CANDIDATES,
    SMALL_FILE_LIMIT,
    EstimatorRule,
    SizingSettings,
)
from airflow_hudi_maint.core.model.units import human_bytes
from airflow_hudi_maint.core.planning.sizing_advice import (
    BLOOM_FILTER_ENABLED,
    BULK_INSERT_PARALLELISM,
    BULK_INSERT_SORT_MODE,
    small_file_limit_for,
)
from airflow_hudi_maint.core.planning.small_file_causes import Reason
from airflow_hudi_maint.core.planning.writer_settings import COMPACT_DELTA_COMMITS

BLOOM_ENTRIES = "hoodie.index.bloom.num_entries"
PARTITION_FIELD = "hoodie.datasource.write.partitionpath.field"
CLUSTERING_INLINE_COMMITS = "hoodie.clustering.inline.max.commits"

_DEFAULTS = {
    SMALL_FILE_LIMIT: str(SizingSettings.small_file_bytes),
    SMALL_FILE_CANDIDATES: str(SizingSettings.small_file_candidates),
    RECORD_SIZE_ESTIMATE: str(SizingSettings.record_bytes_estimate),
    INSERT_AUTO_SPLIT: "true",
    AVERAGE_METADATA_SIZE: "0",
    COMPACT_DELTA_COMMITS: "5",
    BULK_INSERT_SORT_MODE: "NONE",
    BULK_INSERT_PARALLELISM: "that of the input",
    BLOOM_FILTER_ENABLED: "true",
    BLOOM_ENTRIES: "60000",
}
CURE_SETTINGS = frozenset(_DEFAULTS)
"""What a writer may be told to change."""
_FEWER_DELTA_COMMITS = 2
_MORE_CANDIDATES = 3


@dataclass(frozen=True, kw_only=True)
class CureFacts:
    """What cures are worked out from. ``given`` are options known to be the writer's; ``row_bytes`` what a row takes.

    ``filter_bytes`` is the size of a file's Bloom filter and ``rows_per_file`` how many rows such a file has, where
    footers were read.
    """

    settings: SizingSettings
    given: Mapping[str, str]
    rule: EstimatorRule
    partition_fields: tuple[str, ...] = ()
    row_bytes: int | None = None
    filter_bytes: int | None = None
    rows_per_file: int | None = None
    bulk_bytes: int | None = None

    def cure(self, setting: str, *, proposed: str, why: str) -> Cure:
        """A cure with the present value of its setting."""
        given = self.given.get(setting, "").strip()
        return Cure(
            setting=setting,
            present=given or _DEFAULTS[setting],
            known=Known.GIVEN if given else Known.DEFAULT,
            proposed=proposed,
            why=why,
        )


def cures_for(cause: Cause, reasons: Sequence[Reason], *, facts: CureFacts) -> tuple[Cure, ...]:
    """The settings that keep a cause from making more small files; none where no setting does."""
    make = _CURES.get(cause)
    return tuple(make(reasons, facts)) if make else ()


def action_for(cause: Cause) -> str:
    """What to do beside settings."""
    return _ACTIONS.get(cause, "")


def _bulk_insert(reasons: Sequence[Reason], facts: CureFacts) -> Iterator[Cure]:
    del reasons
    yield facts.cure(
        BULK_INSERT_SORT_MODE,
        proposed="GLOBAL_SORT",
        why="unsorted, each task opens a file in every partition that it has a row of",
    )
    if facts.bulk_bytes is not None:
        tasks = max(-(-facts.bulk_bytes // facts.settings.max_file_bytes), 1)
        target = human_bytes(facts.settings.max_file_bytes)
        why = f"one task for each {target} of the {human_bytes(facts.bulk_bytes)} that a bulk insert writes here"
        yield facts.cure(BULK_INSERT_PARALLELISM, proposed=str(tasks), why=why)


def _no_handling(reasons: Sequence[Reason], facts: CureFacts) -> Iterator[Cure]:
    limit = small_file_limit_for(facts.settings.max_file_bytes)
    why = "inserts and upserts then fill files below it first; a bulk insert or an overwrite never does"
    cure = facts.cure(SMALL_FILE_LIMIT, proposed=str(limit), why=why)
    most = [one.limit_at_most for one in reasons if one.limit_at_most is not None]
    if most and cure.known is Known.DEFAULT:
        cure = replace(cure, present=f"{min(most)} or less", known=Known.INFERRED)
    yield cure


def _one_candidate(reasons: Sequence[Reason], facts: CureFacts) -> Iterator[Cure]:
    del reasons
    more = max(_MORE_CANDIDATES, facts.settings.small_file_candidates + 1)
    why = "a commit then fills that many small files of a partition; each costs a rewrite of that file"
    yield facts.cure(SMALL_FILE_CANDIDATES, proposed=str(more), why=why)


def _log_files(reasons: Sequence[Reason], facts: CureFacts) -> Iterator[Cure]:
    del reasons
    why = "file groups take inserts again after each compaction"
    yield facts.cure(COMPACT_DELTA_COMMITS, proposed=str(_FEWER_DELTA_COMMITS), why=why)


def _estimate(reasons: Sequence[Reason], facts: CureFacts) -> Iterator[Cure]:
    if any(one.is_fixed_split for one in reasons):
        yield facts.cure(INSERT_AUTO_SPLIT, proposed="true", why="new files then get as many rows as fill them")
    averages = [one.average for one in reasons if one.average is not None]
    if facts.row_bytes is not None and (not averages or any(one.is_guess for one in averages)):
        why = "what a row takes here; it counts as long as no commit is large enough to be measured"
        yield facts.cure(RECORD_SIZE_ESTIMATE, proposed=str(facts.row_bytes), why=why)
    measured = any(not one.is_guess for one in averages)
    if measured and facts.filter_bytes and facts.rule is not EstimatorRule.NEWEST_LARGE_ENOUGH:
        why = "each file's footer is taken for rows otherwise; half an estimate in small files"
        yield facts.cure(AVERAGE_METADATA_SIZE, proposed=str(facts.filter_bytes), why=why)


def _bloom_filter(reasons: Sequence[Reason], facts: CureFacts) -> Iterator[Cure]:
    del reasons
    why = "no other index than BLOOM and GLOBAL_BLOOM reads the filters"
    yield facts.cure(BLOOM_FILTER_ENABLED, proposed="false", why=why)
    if facts.rows_per_file:
        why = "with a Bloom index: as many entries as a file has rows, and not 431 KB for a few of them"
        yield facts.cure(BLOOM_ENTRIES, proposed=str(facts.rows_per_file), why=why)


def _micro_partition(reasons: Sequence[Reason], facts: CureFacts) -> Iterator[Cure]:
    del reasons
    fields = ",".join(facts.partition_fields)
    if fields:
        yield Cure(
            setting=PARTITION_FIELD,
            present=fields,
            known=Known.TABLE,
            proposed="fewer or coarser fields",
            why="partitions then hold full files; it means writing the table anew",
        )


_CURES: Mapping[Cause, Callable[[Sequence[Reason], CureFacts], Iterator[Cure]]] = {
    Cause.BULK_INSERT: _bulk_insert,
    Cause.NO_HANDLING: _no_handling,
    Cause.ONE_CANDIDATE: _one_candidate,
    Cause.LOG_FILES: _log_files,
    Cause.ESTIMATE_TOO_HIGH: _estimate,
    Cause.ESTIMATE_TOO_LOW: _estimate,
    Cause.BLOOM_FILTER: _bloom_filter,
    Cause.MICRO_PARTITION: _micro_partition,
}
_REWRITE = "rewrite what is there (HudiCompactSmallFilesOperator)"
_ACTIONS = {
    Cause.PENDING_PLAN: "execute the pending plans, or roll them back; file groups take inserts again afterwards",
    Cause.LOG_FILES: "compact the file groups (HudiCompactSmallFilesOperator compacts first), then rewrite",
    Cause.BULK_INSERT: _REWRITE,
    Cause.NO_HANDLING: _REWRITE,
    Cause.ONE_CANDIDATE: _REWRITE,
    Cause.ESTIMATE_TOO_HIGH: _REWRITE,
    Cause.ESTIMATE_TOO_LOW: _REWRITE,
    Cause.MICRO_PARTITION: "a rewrite leaves one small file in each at best: it makes no full ones",
    Cause.REMAINDER: "nothing: a partition's last file is seldom full",
}
