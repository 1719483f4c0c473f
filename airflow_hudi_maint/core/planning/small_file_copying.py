"""Whether files can be put together by copying their row groups, or have to be decoded and encoded again.

Source: Hudi's ``SparkBinaryCopyClusteringExecutionStrategy``, ``ParquetBinaryCopyChecker`` and
``HoodieBinaryCopyHandle`` (from 1.1 on). Hudi decides for a whole plan: one file that does not fit makes it re-encode
all. A group becomes one file, however large, and row groups stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from airflow_hudi_maint.core.model.plan import ClusteringSettings, ExecutionStrategy
from airflow_hudi_maint.core.model.units import counted, human_bytes

DEFAULT_MIN_ROW_GROUP_BYTES = 16 * 1024 * 1024
"""Copied row groups stay as they are. Reading one column of 600 files of 176 KB was 2.5 times faster when they were
stitched together, and 16 times when their row groups were merged as well."""
MOST_FOOTERS = 2_000
"""Files of a plan whose footers are looked at; a plan of more is re-encoded."""
COPIES_SINCE = (1, 1, 0)
UNTYPED = "untyped"
"""A Bloom filter whose footer does not name its type, as simple ones have it: Hudi 1.2.0 fails to merge them when it
copies (``HoodieFileMetadataMerger``: a null pointer)."""

_UNTYPED_FILTERS = "their Bloom filters name no type (SIMPLE ones), which Hudi fails to put together when it copies"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedFile:
    """What a file's footer says that copying depends on. ``row_group_bytes`` are compressed."""

    schema: str
    filter_type: str
    row_group_bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyChoice:
    """How a plan is to be executed, and why."""

    strategy: ExecutionStrategy
    reason: str

    @property
    def copies(self) -> bool:
        """Whether files are copied."""
        return self.strategy is ExecutionStrategy.BINARY_COPY

    def settings(self, settings: ClusteringSettings) -> ClusteringSettings:
        """The settings of the plan to make: what is copied becomes one file, so a group is no larger than that."""
        if not self.copies:
            return replace(settings, execution_strategy=self.strategy)
        return replace(settings, execution_strategy=self.strategy, max_group_bytes=settings.target_file_bytes)


def cannot_copy(*, is_merge_on_read: bool, version: tuple[int, int, int] | None, file_count: int) -> str | None:
    """Why files cannot be copied, as far as no footer has to be read; None when they may be.

    >>> cannot_copy(is_merge_on_read=False, version=(1, 0, 2), file_count=2)
    'Hudi 1.0.2 cannot copy files; 1.1.0 can'
    """
    if is_merge_on_read:
        return "Hudi copies files of copy-on-write tables only"
    if version is None:
        return "the bundle's release is not known"
    if version < COPIES_SINCE:
        used, since = (".".join(map(str, one)) for one in (version, COPIES_SINCE))
        return f"Hudi {used} cannot copy files; {since} can"
    if file_count > MOST_FOOTERS:
        return f"{counted(file_count, 'file')} are too many to look at each footer ({MOST_FOOTERS:,} at most)"
    return None


def copying_fault(files: Sequence[CopiedFile | None]) -> str | None:
    """Why Hudi would fail when it is told to copy these files; None where it copies them, or encodes them itself.

    A part of a plan's files is enough: where the others differ from them, Hudi copies none. None stands for a file that
    could not be read.

    >>> copying_fault([CopiedFile(schema="id", filter_type="DYNAMIC_V0", row_group_bytes=())]) is None
    True
    """
    kinds = {(one.schema, one.filter_type) for one in files if one is not None}
    return _UNTYPED_FILTERS if len(kinds) == 1 and {kind for _, kind in kinds} == {UNTYPED} else None


def choose_copying(
    files: Sequence[CopiedFile | None], *, min_row_group_bytes: int = DEFAULT_MIN_ROW_GROUP_BYTES
) -> CopyChoice:
    """Choose by the footers of all files of a plan; None stands for one that could not be read.

    >>> large = CopiedFile(schema="id", filter_type="", row_group_bytes=(64 * 1024**2,))
    >>> choose_copying([large, large])
    CopyChoice(strategy=<ExecutionStrategy.BINARY_COPY: 'binary_copy'>, reason='one schema, row groups of 64 MiB')
    >>> choose_copying([large, CopiedFile(schema="id, name", filter_type="", row_group_bytes=(1,))]).reason
    'the files have 2 schemas'
    """
    encode = ExecutionStrategy.SORT_AND_SIZE
    known = [one for one in files if one is not None]
    if not known or len(known) < len(files):
        unread = counted(len(files) - len(known), "footer")
        return CopyChoice(strategy=encode, reason=f"{unread} could not be read")
    schemas = {one.schema for one in known}
    if len(schemas) > 1:
        return CopyChoice(strategy=encode, reason=f"the files have {len(schemas)} schemas")
    filters = {one.filter_type for one in known}
    if len(filters) > 1:
        return CopyChoice(strategy=encode, reason=f"the files have Bloom filters of {len(filters)} types")
    if UNTYPED in filters:
        return CopyChoice(strategy=encode, reason=_UNTYPED_FILTERS)
    sizes = [size for one in known for size in one.row_group_bytes]
    mean = sum(sizes) // max(len(sizes), 1)
    if mean < min_row_group_bytes:
        reason = (
            f"row groups of {human_bytes(mean)} on average, which copying would keep; {_bound(min_row_group_bytes)}"
        )
        return CopyChoice(strategy=encode, reason=reason)
    return CopyChoice(strategy=ExecutionStrategy.BINARY_COPY, reason=f"one schema, row groups of {human_bytes(mean)}")


def _bound(min_row_group_bytes: int) -> str:
    return f"they are copied from {human_bytes(min_row_group_bytes)} on"
