"""Which row groups are copied and which are encoded again, together with which others."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal, TypeAlias

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.merging.parquet_survey import Survey
from airflow_hudi_maint.core.merging.schemas import UnifiedSchema

Method: TypeAlias = Literal["auto", "chunk copy", "re-encode"]

OLD_WRITER = re.compile(
    rb"parquet-mr version 1\.[0-9](\.|rc|$|-|\s)|^parquet-mr$|^impala version [01]\.", re.IGNORECASE
)
"""Writers before parquet-mr 1.10: readers distrust some of their statistics, by the name in the footer."""

_NEARLY = 0.9
"""An even share of the rows closes a row group although its bytes are a little below their even share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRef:
    """A row group: of which input, which one, its rows and its bytes before compression."""

    file: int
    group: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Neighbouring row groups that are copied one by one, or encoded again as one."""

    groups: tuple[GroupRef, ...]
    is_copy: bool

    def by_file(self) -> Iterator[tuple[int, list[GroupRef]]]:
        """The row groups of each file, in order."""
        for file, groups in groupby(self.groups, key=lambda one: one.file):
            yield file, list(groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large row groups become. ``decoded_ratio`` is how many bytes in memory one of a row group's bytes becomes."""

    row_group_rows: int
    row_group_bytes: int
    copy_row_group_bytes: int
    workers: int
    decoded_ratio: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """All steps, in the order of the rows, and why they are as they are."""

    steps: tuple[Step, ...]
    reason: str
    is_copy: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_copy", all(step.is_copy for step in self.steps))


def plan_steps(
    survey: Survey, *, schema: UnifiedSchema, limits: Limits, method: Method, codec: str | None, cannot_copy: str | None
) -> StepPlan:
    """Decide: a row group is copied when its columns fit as they are, and it is large or has no small neighbour.

    ``cannot_copy`` is why an earlier try to copy failed. Raises InvalidSettingError where the method was given and
    does not fit.
    """
    obstacle = cannot_copy or _obstacle(survey, schema=schema, codec=codec)
    refs = [
        GroupRef(file=place, group=number, rows=group.rows, bytes=group.bytes)
        for place, file in enumerate(survey.files)
        for number, group in enumerate(file.groups)
        if group.rows
    ]
    if method == "chunk copy":
        if obstacle:
            raise InvalidSettingError(f"method='chunk copy' does not fit: {obstacle}; use 'auto' or 're-encode'")
        return StepPlan(steps=_copies(refs), reason=f"asked for; all {len(refs)} row groups are kept as they are")
    if method == "re-encode":
        return StepPlan(steps=_encodes(refs, limits=limits), reason="asked for")
    if obstacle and not _fits_in_part(survey, schema=schema, codec=codec, cannot_copy=cannot_copy):
        return StepPlan(steps=_encodes(refs, limits=limits), reason=obstacle)
    return _mixed(refs, survey=survey, schema=schema, limits=limits, obstacle=obstacle)


def _mixed(
    refs: Sequence[GroupRef], *, survey: Survey, schema: UnifiedSchema, limits: Limits, obstacle: str | None
) -> StepPlan:
    def fits(one: GroupRef) -> bool:
        return schema.is_same[survey.files[one.file].schema]

    def is_large(one: GroupRef) -> bool:
        return one.bytes >= limits.copy_row_group_bytes or one.rows >= limits.row_group_rows

    steps: list[Step] = []
    for stays, run in groupby(refs, key=lambda one: fits(one) and is_large(one)):
        groups = list(run)
        if stays or (len(groups) == 1 and fits(groups[0])):
            steps.extend(_copies(groups))
        else:
            steps.extend(_encodes(groups, limits=limits))
    copied = sum(len(step.groups) for step in steps if step.is_copy)
    floor = f"{limits.copy_row_group_bytes / 2**20:g} MiB"
    if copied == len(refs):
        return StepPlan(
            steps=tuple(steps),
            reason=f"all schemas are equal, and the {copied} row groups have {floor} or more, or no small neighbour",
        )
    why = obstacle or f"{len(refs) - copied} of {len(refs)} row groups have less than {floor}"
    kept = f"; the other {copied} were copied as they are" if copied else ""
    return StepPlan(steps=tuple(steps), reason=why + kept)


def _obstacle(survey: Survey, *, schema: UnifiedSchema, codec: str | None) -> str | None:
    """Why not every row group can be copied; None where each can."""
    if codec is not None:
        return f"the codec {codec} was asked for"
    if len(survey.created_by) > 1 and any(OLD_WRITER.search(one) for one in survey.created_by):
        return "the files come from several writers, some of them older than parquet-mr 1.10"
    if any(one.column_orders != survey.schemas[0].column_orders for one in survey.schemas):
        return "the files order their values by different rules"
    if not all(schema.is_same):
        return "the schemas differ: " + "; ".join(schema.changes or ("the columns stand in another order",))
    return None


def _fits_in_part(survey: Survey, *, schema: UnifiedSchema, codec: str | None, cannot_copy: str | None) -> bool:
    """Whether only the schemas of some files are in the way."""
    everywhere = _obstacle(survey, schema=_all_same(schema), codec=codec)
    return cannot_copy is None and everywhere is None and any(schema.is_same)


def _all_same(schema: UnifiedSchema) -> UnifiedSchema:
    return UnifiedSchema(
        root=schema.root, sources=schema.sources, is_same=(True,) * len(schema.is_same), changes=schema.changes
    )


def _copies(refs: Sequence[GroupRef]) -> tuple[Step, ...]:
    """One step for each file."""
    return tuple(Step(groups=tuple(groups), is_copy=True) for _, groups in groupby(refs, key=lambda one: one.file))


def _encodes(refs: Sequence[GroupRef], *, limits: Limits) -> tuple[Step, ...]:
    """Row groups of about equal size below both limits; where several are needed, as many as keep all workers busy."""
    rows = sum(one.rows for one in refs)
    total = sum(one.bytes for one in refs) * limits.decoded_ratio
    count = max(math.ceil(rows / limits.row_group_rows), math.ceil(total / limits.row_group_bytes), 1)
    if count > 1:
        count = math.ceil(count / limits.workers) * limits.workers
    rows_each, bytes_each = rows / count, total / count
    steps: list[Step] = []
    gathered: list[GroupRef] = []
    gathered_rows, gathered_bytes = 0, 0.0
    for one in refs:
        own_bytes = one.bytes * limits.decoded_ratio
        too_many = gathered_rows + one.rows > limits.row_group_rows
        if gathered and (too_many or gathered_bytes + own_bytes > limits.row_group_bytes):
            steps.append(Step(groups=tuple(gathered), is_copy=False))
            gathered, gathered_rows, gathered_bytes = [], 0, 0.0
        gathered.append(one)
        gathered_rows += one.rows
        gathered_bytes += own_bytes
        if gathered_rows >= rows_each and gathered_bytes >= bytes_each * _NEARLY:
            steps.append(Step(groups=tuple(gathered), is_copy=False))
            gathered, gathered_rows, gathered_bytes = [], 0, 0.0
    if gathered:
        steps.append(Step(groups=tuple(gathered), is_copy=False))
    return tuple(steps)
