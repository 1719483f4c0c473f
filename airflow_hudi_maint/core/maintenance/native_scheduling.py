"""Put a clustering plan on the timeline without a JVM, where nobody can be at work that would not see it.

The plan is written only beside a quiet timeline, or under the lock file of the table's writers; the timeline is listed
again afterwards, and the plan is withdrawn when somebody else's instant came meanwhile.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from airflow_hudi_maint.core.engines.spark_settings import spark_path
from airflow_hudi_maint.core.errors import HudiMaintError, InvalidSettingError, PendingActionError
from airflow_hudi_maint.core.maintenance.steps import check_writable
from airflow_hudi_maint.core.model.scheduler import LAYOUT_KEY, PLAN_PATH_KEY, SCHEDULER_KEY, PlanOwner, Scheduler
from airflow_hudi_maint.core.planning.clustering_properties import SORT_COLUMNS_KEY
from airflow_hudi_maint.core.planning.lock_settings import FileLock, file_lock
from airflow_hudi_maint.core.planning.schedule_guard import (
    appeared,
    changed_input,
    disturbance,
    file_groups_of,
    overlapping,
    planned_slices,
)
from airflow_hudi_maint.core.planning.write_guard import live_writers
from airflow_hudi_maint.core.storage.changes import instants_since
from airflow_hudi_maint.core.storage.clustering_plan import PlanFile, RequestedClustering
from airflow_hudi_maint.core.storage.instants import new_instant_time
from airflow_hudi_maint.core.storage.table_lock import TableLock

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.commit import PendingPlan, PlannedSlice
    from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings
    from airflow_hudi_maint.core.model.rewrite_group import PlannedGroup
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.storage.table import HudiTable

_TRIES = 4
_PAUSE_SECONDS = 0.3
_StillHeld: TypeAlias = Callable[[], bool]


def _pause(number: int) -> None:
    """Wait before another try; two who stood in each other's way have to come apart."""
    time.sleep(_PAUSE_SECONDS * number * (0.5 + random.random()))  # noqa: S311 no secret


@dataclass(frozen=True, kw_only=True)
class NativeScheduling:
    """One plan of ours, and what is needed to write it where Hudi looks for it.

    ``now`` is the moment at which ``started`` (a reading of the monotonic clock) was taken.
    """

    workspace: Workspace
    plan: ClusteringPlan
    plan_path: str
    now: datetime
    started: float
    owner: PlanOwner | None = None
    pause: Callable[[int], None] = _pause

    def objection(self, timeline: Timeline) -> HudiMaintError | None:
        """Why the plan is not to be written by us, as far as can be told beforehand; None when it may."""
        try:
            spark_path(self._table.base_path)
            lock = _writers_lock(self.workspace)
            if lock is not None:
                self._table_lock(lock)
        except InvalidSettingError as error:
            return error
        if lock is not None and lock.is_optimistic:
            return None
        writers = live_writers(timeline, self._table.pending_plans(timeline))
        if not writers:
            return None
        named = ", ".join(map(str, writers))
        return PendingActionError(
            f"another writer is inflight: {named}, and no lock file with optimistic concurrency control keeps the two "
            "apart. Try again when it is done"
        )

    def reason(self) -> str:
        """Why nothing is against it, for the report."""
        if _writers_lock(self.workspace) is not None:
            return "the lock file of the table's writers is held meanwhile"
        return "no other writer is inflight"

    def schedule(self) -> PendingPlan:
        """Write the plan, and return it as the timeline shows it.

        Raises PendingActionError when the table changed since it was planned, when others kept coming in between, or
        when the lock stays taken; InvalidSettingError when the clock is behind the table; StorageError. Nothing is
        left on the timeline then, unless storage fails once more: the next try finds that and takes it up.
        """
        problem = ""
        for number in range(1, _TRIES + 1):
            if number > 1:
                self.workspace.log(f"Withdrew the clustering plan, because {problem}: trying again")
                self.pause(number - 1)
            with self._locked() as still_held:
                made = self._attempt(still_held)
            if not isinstance(made, str):
                return made
            problem = made
        msg = f"No clustering plan was written to {self._table.base_path}: {_TRIES} times {problem}. Try again later"
        raise PendingActionError(msg)

    @property
    def _table(self) -> HudiTable:
        return self.workspace.table

    @property
    def _groups(self) -> tuple[PlannedGroup, ...]:
        return tuple(group for entry in self.plan.chosen for group in entry.groups)

    @contextmanager
    def _locked(self) -> Iterator[_StillHeld]:
        lock = _writers_lock(self.workspace)
        if lock is None:
            yield lambda: True
            return
        with self._table_lock(lock).held() as still_held:
            yield still_held

    def _table_lock(self, lock: FileLock) -> TableLock:
        return _table_lock(self.workspace, lock, owner=self.owner)

    def _attempt(self, still_held: _StillHeld) -> PendingPlan | str:
        """Write the plan once, and return it; or say why it was withdrawn."""
        before = self._table.timeline()
        objection = self.objection(before)
        if objection is not None:
            raise objection
        check_writable(self.workspace, timeline=before)
        self._check_inputs(before)
        file = PlanFile(table=self._table, requested_time=self._new_instant(before))
        requested = self._requested()
        data = requested.encode(table_version=self._table.config.table_version)
        try:
            if not file.create(data):
                return f"another plan has the instant {file.requested_time}"
            after = self._table.timeline()
            problem = self._disturbance(before, after, own=file.requested_time)
            if not problem and not still_held():
                problem = "the table's lock expired and was taken by another"
            # Some object stores know no conditional put, and a few take it for a plain one.
            if not problem and not self._table.storage.is_local and file.content() != data:
                problem = f"another plan took the instant {file.requested_time}"
        except Exception:
            with suppress(HudiMaintError):  # the next try finds what is left; what went wrong before says more
                file.withdraw(self._table.timeline(), data=data)
            raise
        if problem:
            file.withdraw(after, data=data)
            return problem
        return file.pending(requested, timeline=after)

    def _check_inputs(self, timeline: Timeline) -> None:
        """Raise PendingActionError unless every input is free and still the latest slice of its file group."""
        inputs = planned_slices(self._groups)
        rival = overlapping(self._table.pending_plans(timeline), file_groups=file_groups_of(inputs))
        if rival is not None:
            msg = f"the pending plan {rival.instant} came to hold file groups that were chosen; plan again"
            raise PendingActionError(msg)
        if not instants_since(timeline, watermark=self.plan.basis.watermark):
            return  # nothing was completed since the files were listed
        changed = input_change(self._table, timeline, inputs=inputs)
        if changed:
            msg = f"the table changed after it was planned: {changed}; plan again"
            raise PendingActionError(msg)

    def _new_instant(self, timeline: Timeline) -> str:
        archived = None
        if not timeline.completed:  # otherwise what is active is newer than what is archived
            archived = max((one.instant.requested_time for one in self._table.archived()), default=None)
        now = self.now + timedelta(seconds=time.monotonic() - self.started)
        return new_instant_time(timeline, now=now, zone=self._table.zone, archived=archived)

    def _requested(self) -> RequestedClustering:
        settings = self.plan.settings
        return RequestedClustering(
            groups=self._groups,
            engine_path=spark_path(self._table.base_path),
            strategy_class=settings.execution_strategy.class_name,
            parameters=strategy_parameters(settings),
            extra_metadata={
                SCHEDULER_KEY: str(Scheduler.NATIVE),
                PLAN_PATH_KEY: self.plan_path,
                LAYOUT_KEY: str(settings.layout),
                **({} if self.owner is None else self.owner.to_metadata()),
            },
        )

    def _disturbance(self, before: Timeline, after: Timeline, *, own: str) -> str:
        if not appeared(before, after, own=own):
            return ""
        plans = {one.instant.requested_time: one for one in self._table.pending_plans(before)}
        plans |= {one.instant.requested_time: one for one in self._table.pending_plans(after)}
        file_groups = file_groups_of(planned_slices(self._groups))
        return disturbance(before, after, plans=plans.values(), own=own, file_groups=file_groups) or ""


def strategy_parameters(settings: ClusteringSettings) -> dict[str, str]:
    """What Hudi notes for its execution strategy (``strategyParams``): the sort columns, where there are any."""
    return {SORT_COLUMNS_KEY: ",".join(settings.sort_columns)} if settings.sort_columns else {}


def input_change(table: HudiTable, timeline: Timeline, *, inputs: Collection[PlannedSlice]) -> str | None:
    """Which input of a plan is not the latest slice of its file group any more, by a fresh listing of directories."""
    view = table.view(timeline, partitions={one.partition_path for one in inputs}, listing="directory")
    latest = {(path, one.file_id): one for path in view.partition_paths for one in view.merged_slices(path)}
    return changed_input(inputs, latest)


def _writers_lock(workspace: Workspace) -> FileLock | None:
    """The lock of the table's writers, by the table's properties and the write options of its connection."""
    return file_lock({**workspace.table.config.properties, **workspace.write_options})


def _table_lock(workspace: Workspace, lock: FileLock, *, owner: PlanOwner | None) -> TableLock:
    return TableLock.open(
        workspace.table.storage,
        folder=lock.folder,
        expire_minutes=lock.expire_minutes,
        owner="" if owner is None else str(owner),
        storage_options=workspace.storage_options,
    )


def clear_lock(workspace: Workspace, *, owner: PlanOwner | None) -> None:
    """Delete the lock file that a killed try of this task left: every writer of the table would wait for it."""
    if owner is None:
        return
    try:
        lock = _writers_lock(workspace)
        if lock is not None and _table_lock(workspace, lock, owner=owner).clear():
            workspace.log("Deleted the table's lock file, which an earlier try of this task left")
    except InvalidSettingError:  # a lock that we cannot take is none that we left
        return
