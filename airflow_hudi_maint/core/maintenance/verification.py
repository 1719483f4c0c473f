"""Verify what a clustering left on the table: by its commit, and by the footers of the files it read and wrote."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import CorruptTableError, VerificationError
from airflow_hudi_maint.core.model.instant import WRITE_ACTIONS, Action
from airflow_hudi_maint.core.model.units import counted
from airflow_hudi_maint.core.model.verification import Check, Verdict, Verification, VerifyMode, VerifySettings
from airflow_hudi_maint.core.planning.rewrite_checks import (
    GroupsFacts,
    PartitionFacts,
    check_groups,
    check_keys,
    check_metadata,
    check_nulls,
    check_records,
    check_schema,
    check_sizes,
)
from airflow_hudi_maint.core.planning.sort_effect import sort_effects
from airflow_hudi_maint.core.planning.verify_choice import chosen_mode, chosen_partitions
from airflow_hudi_maint.core.storage.footer_statistics import facts_of
from airflow_hudi_maint.core.storage.key_digest import KEY_COLUMN, KeyDigest, key_digest
from airflow_hudi_maint.core.storage.properties import load_properties
from airflow_hudi_maint.core.storage.schema import META_COLUMNS, TableSchema, table_schema

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.commit import CommitMetadata, PendingPlan
    from airflow_hudi_maint.core.model.file_facts import FileFacts
    from airflow_hudi_maint.core.model.instant import Instant
    from airflow_hudi_maint.core.model.timeline import Timeline

METADATA_PARTITIONS_KEY = "hoodie.table.metadata.partitions"
_BOTH_SIDES = "ConsistentBucket"


@dataclass(frozen=True, kw_only=True)
class Executed:
    """A completed clustering, and what is known of how it was meant.

    ``plan`` None: the request is no longer on the timeline. ``target_bytes`` None: nobody noted what was asked for.
    ``metadata_before`` is what ``hoodie.properties`` had before this execution; None when it was not seen.
    """

    instant: Instant
    commit: CommitMetadata
    plan: PendingPlan | None
    sort_columns: tuple[str, ...] = ()
    target_bytes: int | None = None
    metadata_before: str | None = None


def verify_clustering(
    workspace: Workspace, executed: Executed, *, settings: VerifySettings, timeline: Timeline
) -> Verification:
    """Compare what a clustering wrote with what it was given; the result says what failed, and raises nothing for it.

    ``timeline`` is one that has the completed instant. Reads at most the footers that the settings allow, in the
    storage's threads. Raises StorageError only.
    """
    run = _Verifying(workspace=workspace, executed=executed, settings=settings, timeline=timeline)
    return run.result()


def require_verified(
    verifications: Sequence[Verification], *, workspace: Workspace, timeline: Timeline, evidence: str
) -> None:
    """Raise VerificationError for what failed; it names the instant, each difference, the evidence and the way back."""
    failed = [one for one in verifications if one.failed]
    if not failed:
        return
    said = "; ".join(
        f"clustering {one.instant}: " + ", and ".join(f"{check.name}: {check.message}" for check in one.failed)
        for one in failed
    )
    way_back = _way_back(workspace, timeline, first=min(one.instant for one in failed))
    msg = f"{workspace.table.base_path} is not what it was before: {said}. {way_back} Evidence: {evidence}"
    raise VerificationError(msg)


def _way_back(workspace: Workspace, timeline: Timeline, *, first: str) -> str:
    """How to take a completed clustering back with Hudi.

    By a savepoint, as Hudi's ``rollback_to_instant`` refuses an instant that is older than the last compaction of the
    metadata table. What it leaves is the plan, pending.
    """
    kept = (
        "The files that were rewritten lie on the storage until the cleaner takes them: stop the table's writers and "
        "its cleaner first."
    )
    before = [one.requested_time for one in timeline.completed_writes if one.requested_time < first]
    if not before:
        return f"{kept} No write before it is on the active timeline, so Hudi cannot go back by itself."
    base, path = max(before), workspace.table.base_path
    return (
        f"{kept} Then, in Spark SQL of the table's own Hudi release, CALL create_savepoint(path => '{path}', "
        f"commit_time => '{base}') and CALL rollback_to_savepoint(path => '{path}', instant_time => '{base}') take "
        f"back {first} and everything that was written since. They leave its plan pending: have "
        "HudiResolvePendingOperator roll that back."
    )


@dataclass(frozen=True, kw_only=True)
class _Verifying:
    workspace: Workspace
    executed: Executed
    settings: VerifySettings
    timeline: Timeline
    problems: list[Check] = field(default_factory=list)

    def result(self) -> Verification:
        counts = {path: len(self.input_paths[path]) + len(self.output_paths[path]) for path in self.partition_paths}
        mode = chosen_mode(counts, self.settings)
        chosen = chosen_partitions(counts, self.settings, instant=self.executed.instant.requested_time)
        facts = self._facts(chosen)
        checks = [self._groups(), *self._by_files(facts, mode=mode), self._sizes(), self._metadata(), *self.problems]
        columns = self.executed.sort_columns
        return Verification(
            instant=self.executed.instant.requested_time,
            mode=mode,
            files=sum(counts.values()),
            files_read=sum(len(one.inputs) + len(one.outputs) for one in facts),
            checks=(Check(name="commit", verdict=Verdict.PASSED, message=self._completed()), *checks),
            sorting=sort_effects(facts, columns=columns),
        )

    @property
    def partition_paths(self) -> tuple[str, ...]:
        """Every partition that the clustering read or wrote."""
        return tuple(sorted({*self.input_paths, *self.output_paths}))

    @cached_property
    def input_paths(self) -> Mapping[str, list[str]]:
        """The base files that went in, oldest first, by partition."""
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for one in self.executed.plan.inputs if self.executed.plan else ():
            if one.base_file_name:
                written_at = one.base_file_name.rpartition("_")[2]
                found[one.partition_path].append((written_at, _joined(one.partition_path, one.base_file_name)))
        return defaultdict(list, {path: [name for _, name in sorted(files)] for path, files in found.items()})

    @cached_property
    def output_paths(self) -> Mapping[str, list[str]]:
        """The files that came out, by partition."""
        return defaultdict(
            list, {path: [one.path for one in stats] for path, stats in self.executed.commit.written.items()}
        )

    def _completed(self) -> str:
        instant = self.executed.instant
        return f"completed{f' at {instant.completion_time}' if instant.completion_time else ''}"

    def _groups(self) -> Check:
        plan, commit = self.executed.plan, self.executed.commit
        if plan is None:
            message = "the plan is no longer on the active timeline, so what it named is not known"
            return Check(name="replaced groups", verdict=Verdict.UNKNOWN, message=message)
        planned = frozenset((one.partition_path, one.file_id) for one in plan.inputs)
        replaced = frozenset((path, file_id) for path, ids in commit.replaced.items() for file_id in ids)
        written = frozenset((path, one.file_id) for path, stats in commit.written.items() for one in stats)
        kept = written & planned
        check = check_groups(GroupsFacts(planned=planned, replaced=replaced, kept=kept))
        overtaken = self._overtaken(plan, planned=planned - kept)
        return check if not overtaken else replace(check, verdict=Verdict.FAILED, message=overtaken)

    def _overtaken(self, plan: PendingPlan, *, planned: frozenset[tuple[str, str]]) -> str:
        """Say which write touched a file group of the plan while that was pending; empty when none did.

        That was looked at before the job; Spark takes a while to start, and a writer may have come then. Bucket
        resizing lets writers write to both sides, and is left out.
        """
        if _BOTH_SIDES in plan.strategy_class:
            return ""
        since = self.executed.instant.requested_time
        later = [
            one
            for one in self.timeline.completed_writes
            if one.requested_time != since and (one.completion_time or one.requested_time) > since
        ]
        for one, commit in zip(later, self.workspace.table.commit_metadata_of(later), strict=True):
            touched = {(path, file_id) for path, ids in commit.replaced.items() for file_id in ids}
            touched |= {(path, stat.file_id) for path, stats in commit.written.items() for stat in stats}
            groups = sorted(touched & planned)
            if groups and not commit.rewrites_only:
                return (
                    f"{counted(len(groups), 'file group')} of the plan, such as {groups[0][1]} of partition "
                    f"{groups[0][0]!r}, was changed by {one} ({commit.operation}) after it was planned: what that "
                    "wrote is lost, or what it replaced is back"
                )
        return ""

    def _by_files(self, facts: Sequence[PartitionFacts], *, mode: VerifyMode) -> list[Check]:
        if self.executed.plan is None:
            return []
        if not facts:
            why = "verify=timeline reads no file" if mode is VerifyMode.TIMELINE else "no partition fits verify_files"
            return [Check(name="rows and columns", verdict=Verdict.UNKNOWN, message=why)]
        noted = {one.path: one.records for stats in self.executed.commit.written.values() for one in stats}
        checks = [
            check_records(facts, noted=noted),
            check_nulls(facts),
            check_schema(facts, table_columns=self._table_columns()),
        ]
        return [*checks, self._keys(facts)] if self.settings.keys else checks

    def _sizes(self) -> Check:
        sizes = [one.bytes for stats in self.executed.commit.written.values() for one in stats]
        planned = self.executed.plan.output_file_count if self.executed.plan else len(sizes)
        return check_sizes(sizes, target_bytes=self.executed.target_bytes, planned_files=planned)

    def _metadata(self) -> Check:
        before = self.executed.metadata_before
        after = None if before is None else load_properties(self.workspace.table.storage).get(METADATA_PARTITIONS_KEY)
        return check_metadata(before, after)

    def _facts(self, chosen: Sequence[str]) -> tuple[PartitionFacts, ...]:
        """What the footers of the chosen partitions say; files that are no Parquet or gone are said in ``problems``."""
        if self.executed.plan is None:
            return ()
        logs = {one.partition_path for one in self.executed.plan.inputs if one.log_file_names or not one.base_file_name}
        inputs = self._read([path for one in chosen for path in self.input_paths[one]])
        outputs = self._read([path for one in chosen for path in self.output_paths[one]])
        self._say_what_is_missing(inputs, outputs)
        return tuple(
            PartitionFacts(
                partition_path=one,
                inputs=tuple(found for path in self.input_paths[one] if (found := inputs[path])),
                outputs=tuple(found for path in self.output_paths[one] if (found := outputs[path])),
                has_logs=one in logs,
                lost=sum(inputs[path] is None for path in self.input_paths[one]),
            )
            for one in chosen
            if all(outputs[path] for path in self.output_paths[one])
        )

    def _read(self, paths: Sequence[str]) -> dict[str, FileFacts | None]:
        parquet = [path for path in paths if path.endswith(".parquet")]
        ranged = self.executed.sort_columns
        try:
            facts = facts_of(self.workspace.table.storage, paths=parquet, ranged=ranged)
        except CorruptTableError as error:
            self.problems.append(Check(name="readable files", verdict=Verdict.FAILED, message=str(error)))
            return dict.fromkeys(paths)
        return {**dict.fromkeys(paths), **dict(zip(parquet, facts, strict=True))}

    def _say_what_is_missing(
        self, inputs: Mapping[str, FileFacts | None], outputs: Mapping[str, FileFacts | None]
    ) -> None:
        others = [path for path in (*inputs, *outputs) if not path.endswith(".parquet")]
        if others:
            message = (
                f"{counted(len(others), 'file')} of another format than Parquet, such as {others[0]}, are not read"
            )
            self.problems.append(Check(name="readable files", verdict=Verdict.UNKNOWN, message=message))
        gone = [path for path, found in outputs.items() if found is None and path not in others]
        if gone and not any(one.verdict is Verdict.FAILED for one in self.problems):
            is_cleaned, why = self._may_be_cleaned()
            verdict = Verdict.UNKNOWN if is_cleaned else Verdict.FAILED
            message = f"{counted(len(gone), 'file')} that the commit wrote, such as {gone[0]}, are not there: {why}"
            self.problems.append(Check(name="readable files", verdict=verdict, message=message))

    def _may_be_cleaned(self) -> tuple[bool, str]:
        """Whether what the commit wrote may be gone by right, and why: a clean takes only what a later write replaced.

        A table that cleans after each commit has a clean after every clustering.
        """
        later = [one for one in self.timeline.completed if one.requested_time > self.executed.instant.requested_time]
        if not any(one.action is Action.CLEAN for one in later):
            return False, "and no clean has passed since"
        if not any(one.action in WRITE_ACTIONS for one in later):
            return False, "and no write has completed since that a clean could have passed for"
        return True, "a clean has passed since"

    def _table_columns(self) -> frozenset[str]:
        """The names of the table's columns, nested ones too, as the commit notes them, else as the last commit does."""
        try:
            if self.executed.commit.schema:
                schema = TableSchema.parse(self.executed.commit.schema, source="The schema of the clustering's commit")
            else:
                schema = table_schema(self.workspace.table, timeline=self.timeline)
        except CorruptTableError:  # without one, only the files are compared with each other
            return frozenset()
        # Hudi keeps a column of its own for deletes and moves, which no schema of a table has.
        return frozenset({one.name for one in schema.columns} | {*META_COLUMNS, "_hoodie_operation"})

    def _keys(self, facts: Sequence[PartitionFacts]) -> Check:
        """Digest the keys of the partitions that base files tell."""
        known = [one for one in facts if not one.unknown]
        storage = self.workspace.table.storage
        paths = [file.path for one in known for file in (*one.inputs, *one.outputs)]
        digests = dict(
            zip(paths, storage.concurrently(lambda path: key_digest(storage, path=path), paths), strict=True)
        )
        if any(found is None for found in digests.values()):
            return check_keys({}, partitions=facts, reason=f"a file has no {KEY_COLUMN}")

        def total(files: Sequence[FileFacts]) -> KeyDigest:
            return sum((digests[file.path] or KeyDigest() for file in files), KeyDigest())

        found = {one.partition_path: (total(one.inputs), total(one.outputs)) for one in known}
        return check_keys(found, partitions=facts)


def _joined(partition_path: str, name: str) -> str:
    return f"{partition_path}/{name}" if partition_path else name
