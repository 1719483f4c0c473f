"""Whether a rewrite kept what it was given: files before against files after, partition by partition.

A clustering's commit does not say which outputs came from which inputs, so a partition is the smallest thing that can
be compared. What only log files tell is never guessed: such a partition counts as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_hudi_maint.core.model.file_facts import FileFacts
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_count
from airflow_hudi_maint.core.model.verification import Check, Verdict
from airflow_hudi_maint.core.planning.type_widening import may_become

_SHOWN = 3
_SLACK = 1.25
"""How far above the target an output may be: Hudi closes a file by an estimate of its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """The files of one partition that a clustering read and wrote.

    ``has_logs`` says that an input slice has log files; ``lost`` counts input files that are no longer there. Inputs
    are in the order of the instants that wrote them.
    """

    partition_path: str
    inputs: tuple[FileFacts, ...]
    outputs: tuple[FileFacts, ...]
    has_logs: bool = False
    lost: int = 0

    @property
    def unknown(self) -> str:
        """Why what went in cannot be told from base files; empty where it can."""
        if self.lost:
            return f"{counted(self.lost, 'input file')} cleaned meanwhile"
        return "log files among its inputs" if self.has_logs else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsFacts:
    """The file groups of a plan against those that the commit replaced, as (partition, file id).

    ``kept`` are groups that got a new file under their old id (Hudi's single-file sort), which replaces nothing.
    """

    planned: frozenset[tuple[str, str]]
    replaced: frozenset[tuple[str, str]]
    kept: frozenset[tuple[str, str]]


def check_groups(facts: GroupsFacts) -> Check:
    """Compare the file groups that were replaced with those that the plan named.

    >>> two = frozenset({("day=1", "a"), ("day=1", "b")})
    >>> check_groups(GroupsFacts(planned=two, replaced=two, kept=frozenset())).message
    '2 file groups were replaced, as planned'
    """
    missing = facts.planned - facts.replaced - facts.kept
    more = facts.replaced - facts.planned
    if not missing and not more:
        kept = f", {len(facts.kept)} rewritten under their own id" if facts.kept else ""
        message = f"{counted(len(facts.replaced), 'file group')} were replaced, as planned{kept}"
        return Check(name="replaced groups", verdict=Verdict.PASSED, message=message)
    parts = [
        f"{counted(len(groups), 'file group')} {what} ({_some(f'{path}/{name}' for path, name in groups)})"
        for groups, what in ((missing, "of the plan not replaced"), (more, "replaced that the plan does not name"))
        if groups
    ]
    return Check(name="replaced groups", verdict=Verdict.FAILED, message=" and ".join(parts))


def check_records(partitions: Sequence[PartitionFacts], *, noted: Mapping[str, int]) -> Check:
    """Compare the rows of the files before and after; ``noted`` has the rows that the commit says it wrote, by path."""

    def rows(files: Iterable[FileFacts]) -> int:
        return sum(one.rows for one in files)

    wrong = [
        f"{one.path} has {human_count(one.rows)} rows, and the commit says {human_count(noted[one.path])}"
        for partition in partitions
        for one in partition.outputs
        if noted.get(one.path) and noted[one.path] != one.rows
    ]
    known = [one for one in partitions if not one.unknown]
    wrong += [
        f"{_named(one)} had {human_count(rows(one.inputs))} rows and has {human_count(rows(one.outputs))} "
        f"({_difference(rows(one.outputs) - rows(one.inputs))})"
        for one in known
        if rows(one.inputs) != rows(one.outputs)
    ]
    total = human_count(sum(rows(one.inputs) for one in known))
    check = _judged("record count", wrong, partitions=partitions, passed=f"{total} rows went in and came out")
    told = sum(one.rows for partition in partitions for one in partition.outputs if noted.get(one.path))
    if check.verdict is Verdict.UNKNOWN and told:
        return replace(check, message=f"{check.message}; the {human_count(told)} rows that the commit says came out")
    return check


def check_nulls(partitions: Sequence[PartitionFacts]) -> Check:
    """Compare how many rows have no value, for each column outside of lists and maps.

    A column that an older file does not have yet has no value in all of its rows. When less of them have none
    afterwards, that is noticed and no fault: the column may have had another name (a column that was renamed keeps the
    old one in old files), have a default, or have stood in the path alone.
    """
    wrong: list[str] = []
    noticed: list[str] = []
    columns: set[str] = set()
    silent: set[str] = set()
    for one in partitions:
        if one.unknown:
            continue
        for column in _leaf_columns(one):
            before, after = _nulls(one.inputs, column), _nulls(one.outputs, column)
            if before is None or after is None:
                silent.add(column)
                continue
            columns.add(column)
            if before != after:
                said = f"{human_count(before)} rows without a value and has {human_count(after)}"
                said = f"{column} of {_named(one)} had {said} ({_difference(after - before)})"
                without = sum(file.rows for file in one.inputs if column not in file.null_counts)
                if before - without <= after < before:
                    noticed.append(f"{said}, and older files of {human_count(without)} rows do not have the column")
                else:
                    wrong.append(said)
    columns -= silent
    passed = f"nulls of {counted(len(columns), 'column')} are the same"
    if silent:
        passed += f"; not told by the footers: {_some(silent)}"
    check = _judged("null counts", wrong, partitions=partitions, passed=passed, told=bool(columns))
    if noticed and check.verdict is Verdict.PASSED:
        return replace(check, verdict=Verdict.NOTICED, message=_listed(noticed))
    return check


def check_schema(partitions: Sequence[PartitionFacts], *, table_columns: frozenset[str], name: str = "schema") -> Check:
    """Compare the columns of the new files with those of the old ones, by name and type.

    A new file has the schema of the table: columns that were added since an old file was written are right when the
    table has them, a column that the table has dropped may go, and a type may be one that Hudi widens the old one to.
    """
    wrong: list[str] = []
    added: set[str] = set()
    for one in partitions:
        before: dict[str, str] = {}
        for file in one.inputs:
            before.update(file.types)  # the newest file that has the column decides on its type
        for file in one.outputs:
            wrong += [
                f"column {column} ({kind}) is missing from {file.path}"
                for column, kind in before.items()
                if column not in file.types and (column in table_columns or not table_columns)
            ]
            wrong += [
                f"column {column} was {before[column]} and is {kind} in {file.path}"
                for column, kind in file.types.items()
                if column in before and not may_become(before[column], kind, name=column, columns=table_columns)
            ]
            more = set(file.types) - set(before) if one.inputs and table_columns else set()
            wrong += [f"column {column} is new in {file.path}" for column in sorted(more - table_columns)]
            added |= more & table_columns
    read = [one for one in partitions if one.outputs and one.inputs]
    if not wrong and not read:
        return Check(name=name, verdict=Verdict.UNKNOWN, message="no file of before is left to compare with")
    passed = "the new files have the columns and types of the old ones"
    if added:
        passed += f", and what the table added since: {_some(added)}"
    verdict = Verdict.FAILED if wrong else Verdict.PASSED
    return Check(name=name, verdict=verdict, message=_listed(wrong) if wrong else passed)


def check_sizes(sizes: Sequence[int], *, target_bytes: int | None, planned_files: int) -> Check:
    """Compare the sizes of the new files with the target; being off is noticed, and no fault.

    >>> check_sizes([90, 40], target_bytes=100, planned_files=2).message
    '2 files, as planned; the largest has 90 B, the target is 100 B'
    """
    count = counted(len(sizes), "file")
    said = [
        f"{count}, as planned" if len(sizes) <= planned_files else f"{count}, and the plan expected {planned_files}"
    ]
    noticed = len(sizes) > planned_files
    if sizes and target_bytes is not None:
        said.append(f"the largest has {human_bytes(max(sizes))}, the target is {human_bytes(target_bytes)}")
        above = sum(size > target_bytes * _SLACK for size in sizes)
        if above:
            noticed = True
            said.append(f"{counted(above, 'file')} above the target by more than a quarter")
    verdict = Verdict.NOTICED if noticed else Verdict.PASSED
    return Check(name="file sizes", verdict=verdict, message="; ".join(said))


def check_metadata(before: str | None, after: str | None) -> Check:
    """Compare the metadata table's partitions, as ``hoodie.properties`` lists them; None: it was not seen before."""
    name = "metadata partitions"
    if before is None:
        return Check(name=name, verdict=Verdict.UNKNOWN, message="not seen before the execution")
    old, new = (frozenset(filter(None, (text or "").split(","))) for text in (before, after))
    if old == new:
        return Check(name=name, verdict=Verdict.PASSED, message=f"unchanged: {', '.join(sorted(old)) or 'none'}")
    gone, more = sorted(old - new), sorted(new - old)
    parts = [f"{', '.join(names)} {what}" for names, what in ((gone, "disappeared"), (more, "appeared")) if names]
    return Check(name=name, verdict=Verdict.FAILED, message=" and ".join(parts))


def check_keys(
    digests: Mapping[str, tuple[object, object]], *, partitions: Sequence[PartitionFacts], reason: str = ""
) -> Check:
    """Compare the digests of all record keys, before and after, by partition; ``reason``: why there are none."""
    if reason:
        return Check(name="record keys", verdict=Verdict.UNKNOWN, message=reason)
    wrong = [
        f"the keys of partition {path!r} are others than before" for path, (old, new) in digests.items() if old != new
    ]
    passed = f"the same keys in {counted(len(digests), 'partition')}"
    return _judged("record keys", wrong, partitions=partitions, passed=passed)


def _judged(
    name: str, wrong: Sequence[str], *, partitions: Sequence[PartitionFacts], passed: str, told: bool = True
) -> Check:
    """Fail for anything that is wrong; say which partitions could not be told."""
    unknown = [one for one in partitions if one.unknown]
    left = f"; not told: {_some(f'{_named(one)} ({one.unknown})' for one in unknown)}" if unknown else ""
    if wrong:
        return Check(name=name, verdict=Verdict.FAILED, message=f"{_listed(wrong)}{left}")
    if len(unknown) == len(partitions) or not told:
        message = left.removeprefix("; ") or "no file that was read tells"
        return Check(name=name, verdict=Verdict.UNKNOWN, message=message)
    return Check(name=name, verdict=Verdict.PASSED, message=f"{passed}{left}")


def _leaf_columns(one: PartitionFacts) -> list[str]:
    """The columns of the new files, and those that only old files have and that nothing says were dropped."""
    names = (name for file in (*one.outputs, *one.inputs) for name in file.null_counts)
    kept = {name for file in one.outputs for name in file.types}
    return [name for name in dict.fromkeys(names) if name.partition(".")[0] in kept]


def _nulls(files: Sequence[FileFacts], column: str) -> int | None:
    counts = [file.null_counts.get(column, file.rows) for file in files]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _named(one: PartitionFacts) -> str:
    return f"partition {one.partition_path!r}" if one.partition_path else "the table"


def _difference(count: int) -> str:
    return f"{human_count(abs(count))} {'more' if count > 0 else 'fewer'}"


def _listed(wrong: Sequence[str]) -> str:
    more = len(wrong) - _SHOWN
    return "; ".join(wrong[:_SHOWN]) + (f"; and {human_count(more)} more" if more > 0 else "")


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:_SHOWN]) + (
        f" and {human_count(len(listed) - _SHOWN)} more" if len(listed) > _SHOWN else ""
    )
