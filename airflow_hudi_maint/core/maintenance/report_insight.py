"""Look at a table for its report: what is to come, what happened lately, and how the table is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import CorruptTableError, TerminalError
from airflow_hudi_maint.core.maintenance.expiry_planning import table_policies
from airflow_hudi_maint.core.maintenance.health import check_health
from airflow_hudi_maint.core.model.health_facts import FileTotals
from airflow_hudi_maint.core.model.instant import WRITE_ACTIONS, Action, Instant, known_moment, parse_instant_file_name
from airflow_hudi_maint.core.model.policy import PolicyKind, PolicySet
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.planning.expiry import partitions_by_creation
from airflow_hudi_maint.core.planning.expiry_forecast import ExpiryForecast, forecast_expiry
from airflow_hudi_maint.core.reporting.insight import OrphanTotals, PastInstant, TableInsight
from airflow_hudi_maint.core.storage.partition_metadata import creation_instants
from airflow_hudi_maint.core.storage.schema import table_schema

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.commit import CommitMetadata, PendingPlan
    from airflow_hudi_maint.core.model.health import TableHealth
    from airflow_hudi_maint.core.model.orphan import OrphanFile
    from airflow_hudi_maint.core.model.statistics import TableStatistics
    from airflow_hudi_maint.core.planning.expiry import ExpiryGuards
    from airflow_hudi_maint.core.storage.filesystem import Entry
    from airflow_hudi_maint.core.storage.table import HudiTable

MAX_INSTANTS = 40
"""So many of the last completed instants are shown; pending ones all."""
MAX_METADATA_BYTES = 16 * 1024**2
"""Of the newest instants so much commit metadata is read, for what they did and to how many partitions."""


class InsightReader:
    """Reads a table for its report; what is broken is left out and named, so that the rest is shown all the same.

    Errors that a retry may cure (StorageError) are raised.
    """

    def __init__(self, workspace: Workspace, *, statistics: TableStatistics, now: datetime) -> None:
        self._workspace = workspace
        self._table: HudiTable = workspace.table
        self._statistics = statistics
        self._now = now
        self._problems: list[str] = []

    def read(
        self,
        *,
        policies: PolicySet | None,
        guards: ExpiryGuards,
        health: TableHealth | None,
        forecast: bool,
        orphans: bool,
    ) -> TableInsight:
        """Look at the table: a few requests, and with ``orphans`` a listing of every partition.

        ``policies`` None are those of the table. ``health`` None checks it now, on the statistics that are there.
        """
        entries = self._timeline_entries()
        timeline = Timeline.of(filter(None, (parse_instant_file_name(entry.name) for entry in entries)))
        plans = self._pending_plans(timeline)
        return TableInsight(
            forecast=self._forecast(policies, guards=guards, timeline=timeline, plans=plans) if forecast else None,
            history=self._history(timeline, entries=entries, plans=plans),
            health=health or self._health(),
            active_instants=len(timeline),
            archive=self._archive(),
            orphans=self._orphans(timeline) if orphans else None,
            problems=tuple(self._problems),
        )

    def _left_out(self, what: str, error: TerminalError) -> None:
        self._problems.append(f"{what}: {error}")
        self._workspace.log(f"Warning: left out of the report: {what}: {error}")

    def _timeline_entries(self) -> Sequence[Entry]:
        try:
            return self._table.storage.list(self._table.config.timeline_folder)
        except FileNotFoundError:  # before the first write
            return ()

    def _pending_plans(self, timeline: Timeline) -> tuple[PendingPlan, ...]:
        try:
            return self._table.pending_plans(timeline)
        except CorruptTableError as error:
            self._left_out("What the pending plans hold", error)
            return ()

    def _forecast(
        self, policies: PolicySet | None, *, guards: ExpiryGuards, timeline: Timeline, plans: Sequence[PendingPlan]
    ) -> ExpiryForecast | None:
        table, statistics = self._table, self._statistics
        scheme = table.config.partitions
        try:
            chosen = table_policies(self._workspace) if policies is None else policies
            chosen.check(scheme)
            compares_values = any(policy.kind is not PolicyKind.KEEP_BY_TIME for policy in chosen.all())
            field_types: Mapping[str, str] = {}
            if compares_values and statistics.partitions:
                field_types = table_schema(table, timeline=timeline).partition_field_types(scheme)
            by_creation = partitions_by_creation(statistics, chosen, scheme=scheme)
            return forecast_expiry(
                statistics,
                chosen,
                scheme=scheme,
                field_types=field_types,
                pending={name: plan.instant.requested_time for plan in plans for name in plan.partitions},
                zone=table.zone,
                now=self._now,
                guards=guards,
                created=creation_instants(table, partitions=by_creation) if by_creation else {},
            )
        except TerminalError as error:
            self._left_out("What will expire, and when", error)
            return None

    def _health(self) -> TableHealth | None:
        try:
            return check_health(self._workspace, now=self._now, statistics=self._statistics).health
        except TerminalError as error:
            self._left_out("The table's health", error)
            return None

    def _archive(self) -> FileTotals | None:
        try:
            files = self._table.archive_files()
        except TerminalError as error:
            self._left_out("The size of the archived timeline", error)
            return None
        return FileTotals(count=len(files), bytes=sum(entry.bytes for entry in files))

    def _orphans(self, timeline: Timeline) -> OrphanTotals | None:
        try:
            view = self._table.view(timeline, listing="directory")
            found = {path: view.orphans(path) for path in sorted(view.listings)}
        except TerminalError as error:
            self._left_out("Orphan files", error)
            return None
        by_instant: dict[str, list[OrphanFile]] = defaultdict(list)
        for one in (one for files in found.values() for one in files):
            by_instant[one.instant or ""].append(one)
        return OrphanTotals(by_partition=_totals(found), by_instant=_totals(by_instant))

    def _history(
        self, timeline: Timeline, *, entries: Sequence[Entry], plans: Sequence[PendingPlan]
    ) -> tuple[PastInstant, ...]:
        """The last instants with what they did, and all pending ones with what they hold."""
        last = sorted(timeline.completed, key=lambda one: one.ordering_time)[-MAX_INSTANTS:]
        files = {entry.name: entry for entry in entries}
        said = self._said(last, files=files)
        held: dict[Instant, list[PendingPlan]] = defaultdict(list)
        for plan in plans:
            held[plan.instant].append(plan)
        shown = sorted({*last, *timeline.pending}, key=lambda one: (one.requested_time, one.action))
        return tuple(
            self._past(one, said=said.get(one), plans=held[one], file=files.get(one.file_name)) for one in shown
        )

    def _past(
        self, instant: Instant, *, said: CommitMetadata | None, plans: Sequence[PendingPlan], file: Entry | None
    ) -> PastInstant:
        zone = self._table.zone
        started = known_moment(instant.requested_time, zone=zone)
        completed = known_moment(instant.completion_time, zone=zone)
        if completed is None and instant.is_completed and file is not None and not instant.completion_time:
            # Table version 6 has no completion times; the file was written then. A copied table has later ones.
            completed = file.modified
        operation = said.operation if said else None
        if not instant.is_completed and not plans and instant.action is Action.REPLACE_COMMIT:
            operation = self._requested_operation(instant)
        touched = {name for plan in plans for name in plan.partitions}
        return PastInstant(
            instant=instant,
            operation=operation,
            started=started,
            completed=completed,
            partitions=len(said.touched_partitions) if said else len(touched) if plans else None,
            file_groups=sum(len(plan.inputs) for plan in plans) if plans else None,
        )

    def _requested_operation(self, instant: Instant) -> str | None:
        try:
            return self._table.requested_operation(instant)
        except CorruptTableError:
            return None

    def _said(self, instants: Sequence[Instant], *, files: Mapping[str, Entry]) -> dict[Instant, CommitMetadata]:
        """The metadata of the newest writes, as far as it is not too large together; nothing where one is broken."""
        chosen, total = [], 0
        for instant in reversed(instants):
            file = files.get(instant.file_name)
            if instant.action not in WRITE_ACTIONS or file is None:
                continue
            total += file.bytes
            if total > MAX_METADATA_BYTES:
                break
            chosen.append(instant)
        try:
            return dict(zip(chosen, self._table.commit_metadata_of(chosen, files=False), strict=True))
        except CorruptTableError as error:
            self._left_out("What the last instants did", error)
            return {}


def _totals(groups: Mapping[str, Collection[OrphanFile]]) -> tuple[tuple[str, FileTotals], ...]:
    """How many files each group has, and their bytes, in order of the groups' names; empty groups are left out."""
    return tuple(
        (name, FileTotals(count=len(files), bytes=sum(one.bytes for one in files)))
        for name, files in sorted(groups.items())
        if files
    )
