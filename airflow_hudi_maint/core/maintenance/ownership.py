"""Which pending clustering plans are ours, and which of them is being executed.

A plan that we wrote ourselves names its maker. One that Hudi wrote does not, so small documents in our own folder do:
one before Hudi is asked to schedule (what for), one for each plan that then appeared. A plan that Hudi made just before
its asker died is recognised by the first: newer than it, holding nothing but file groups of it, and only requested
unless the asker was to execute it, too; while that job may run, the plan is left to it.
A plan of ours that is executed notes the job, so that a second execution can see that it runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from airflow_hudi_maint.core.errors import HudiMaintError, InvalidSettingError, TerminalError, TransientError
from airflow_hudi_maint.core.model.commit import PendingPlan, PlanKind
from airflow_hudi_maint.core.model.instant import State
from airflow_hudi_maint.core.model.job import JobHandle, JobStatus
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings
from airflow_hudi_maint.core.model.scheduler import PLAN_PATH_KEY, PlanOwner, is_native

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.document import JsonObject
    from airflow_hudi_maint.core.model.timeline import Timeline

_FOLDER: Final = "scheduled"
_SUFFIX = ".json"
_ASKED = "-asked.json"
_ASKED_LOOKED_AT = 10


def record_asked(workspace: Workspace, plan: ClusteringPlan, *, plan_path: str, job: JobHandle | None = None) -> None:
    """Note, before Hudi is asked to schedule, which of our plans that is for.

    ``job`` is one that goes on to execute what Hudi makes: until it has ended, that plan is nobody else's.
    """
    name = f"{plan.basis.base_instant}{_ASKED}"
    asker = None if job is None else job.to_json()
    document: JsonObject = {"kind": "asked-clustering", "version": 1, "plan_path": plan_path, "job": asker}
    workspace.documents.write(_FOLDER, name=name, document=document)


def forget_asked(workspace: Workspace) -> None:
    """Withdraw the notes of :func:`record_asked`: what Hudi made of them is known. Those of jobs that run are kept."""
    documents = workspace.documents
    for name in documents.names(_FOLDER, suffix=_ASKED):
        if not _may_run(workspace, _handle(_asked(workspace, name).get("job"))):
            documents.delete(_FOLDER, name=name)


def record_ours(
    workspace: Workspace, plan: PendingPlan, *, plan_path: str | None, owner: PlanOwner | None = None
) -> None:
    """Note that a pending plan is ours, which of our plans it came from, and the task that asked for it.

    Hudi's own plans have no place for the last two; those that we write carry them, too.
    """
    made: JsonObject = {} if owner is None else {"owner": owner.to_metadata()}
    _note(workspace, plan, fields={"plan_path": plan_path, **made})


def owner_of(workspace: Workspace, plan: PendingPlan) -> PlanOwner | None:
    """The task that a plan was made for; None where nobody noted one."""
    noted = _noted(workspace, plan).get("owner")
    kept = {key: value for key, value in noted.items() if isinstance(value, str)} if isinstance(noted, Mapping) else {}
    return PlanOwner.from_metadata({**kept, **plan.extra_metadata})


def record_execution(workspace: Workspace, plan: PendingPlan, *, job: JobHandle | None) -> None:
    """Note that a pending plan is executed: before the job is submitted without it (None), and then with it."""
    _note(workspace, plan, fields={"executing": True, "job": None if job is None else job.to_json(), "ended": False})


def record_end(workspace: Workspace, plans: Sequence[PendingPlan]) -> None:
    """Note that the job that executed these plans has ended: its engine, which may be another by then, is not asked."""
    for plan in plans:
        _note(workspace, plan, fields={"ended": True})


def is_executed_by_us(workspace: Workspace, plan: PendingPlan) -> bool:
    """Whether an execution of this plan by us was noted, running or not."""
    return _noted(workspace, plan).get("executing") is True


def executing_job(workspace: Workspace, plan: PendingPlan) -> JobHandle | None:
    """The job that was last noted as executing this plan; None when there is none, or its end was noted."""
    noted = _noted(workspace, plan)
    job = None if noted.get("ended") is True else noted.get("job")
    return _handle(job)


def _handle(job: object) -> JobHandle | None:
    try:
        return JobHandle.from_json(job) if isinstance(job, Mapping) else None
    except InvalidSettingError:  # written by another release
        return None


def executed_by(workspace: Workspace, job: JobHandle | None) -> tuple[str, ...]:
    """Requested times of the plans whose execution by this job was noted, pending or not; none without a job."""
    if job is None:
        return ()
    documents = workspace.documents
    names = [name for name in documents.names(_FOLDER) if name.removesuffix(".json").isdigit()]
    noted = {name: documents.read(documents.path(_FOLDER, name=name)) for name in names}
    handle = job.to_json()
    return tuple(
        name.removesuffix(".json")
        for name, document in noted.items()
        if isinstance(document, Mapping) and document.get("job") == handle
    )


def noted_instants(workspace: Workspace) -> frozenset[str]:
    """Requested times of the plans that were noted as ours, clusterings and compactions, pending or not."""
    return frozenset(name.removesuffix(_SUFFIX) for name in workspace.documents.names(_FOLDER))


def settings_of(workspace: Workspace, plan: PendingPlan) -> ClusteringSettings | None:
    """The settings that a clustering plan of ours was made with; None for others' plans, and where ours is gone."""
    path = _noted(workspace, plan).get("plan_path") or plan.extra_metadata.get(PLAN_PATH_KEY)
    if not isinstance(path, str):
        return None
    try:
        return ClusteringPlan.from_json(workspace.documents.read(path), name=path).settings
    except TerminalError:  # deleted by now, or written by another release
        return None


def _note(workspace: Workspace, plan: PendingPlan, *, fields: JsonObject) -> None:
    instant = plan.instant.requested_time
    head: JsonObject = {"kind": f"scheduled-{plan.kind}", "version": 1, "instant": instant}
    document = {**head, **_noted(workspace, plan), **fields}
    workspace.documents.write(_FOLDER, name=f"{instant}.json", document=document)


def _noted(workspace: Workspace, plan: PendingPlan) -> JsonObject:
    path = workspace.documents.path(_FOLDER, name=f"{plan.instant.requested_time}.json")
    try:
        document = workspace.documents.read(path)
    except TerminalError:  # absent or broken: nothing is noted
        return {}
    return dict(document) if isinstance(document, dict) else {}


def pending_of_ours(
    workspace: Workspace, timeline: Timeline, *, leave: Collection[str] = ()
) -> tuple[PendingPlan, ...]:
    """Pending clustering plans of ours, oldest first. One that was not noted yet is noted now, but for ``leave``."""
    noted = noted_instants(workspace)
    ours = []
    for plan in workspace.table.pending_plans(timeline):
        if plan.kind is not PlanKind.CLUSTERING or plan.instant.requested_time in leave:
            continue
        if plan.instant.requested_time in noted:
            ours.append(plan)
        elif is_native(plan.extra_metadata):
            record_ours(workspace, plan, plan_path=plan.extra_metadata.get(PLAN_PATH_KEY))
            ours.append(plan)
        elif (plan_path := _origin(workspace, plan)) is not None:
            record_ours(workspace, plan, plan_path=plan_path)
            if plan.instant.state is State.INFLIGHT:
                record_execution(workspace, plan, job=None)
            ours.append(plan)
    return tuple(ours)


def comes_from(plan: PendingPlan, ours: ClusteringPlan) -> bool:
    """Whether a plan that nobody noted can be what Hudi made when it was asked for ``ours``: no file group more."""
    held = {(one.partition_path, one.file_id) for one in plan.inputs}
    return _is_later(plan, ours) and bool(held) and held <= _wanted(ours)


def overlaps(plan: PendingPlan, ours: ClusteringPlan) -> bool:
    """Whether a plan that appeared while Hudi was asked for ``ours`` holds a file group of it."""
    return _is_later(plan, ours) and any((one.partition_path, one.file_id) in _wanted(ours) for one in plan.inputs)


def stays_within(plan: PendingPlan, ours: ClusteringPlan) -> bool:
    """Whether a plan holds no partition that ``ours`` did not choose."""
    return plan.partitions <= {entry.partition_path for entry in ours.chosen}


def _wanted(ours: ClusteringPlan) -> set[tuple[str, str]]:
    return {(entry.partition_path, file_id) for entry in ours.chosen for file_id in entry.file_ids}


def _is_later(plan: PendingPlan, ours: ClusteringPlan) -> bool:
    # By what was seen, not by clocks: another writer's may be ahead.
    return plan.instant.requested_time not in ours.basis.watermark.pending


def _origin(workspace: Workspace, plan: PendingPlan) -> str | None:
    """The newest plan of ours that Hudi was asked for and that this one can come from, or None.

    An inflight one only where the job that asked for it was to execute it, too; and none while that job may run.
    """
    documents = workspace.documents
    for name in reversed(documents.names(_FOLDER, suffix=_ASKED)[-_ASKED_LOOKED_AT:]):
        noted = _asked(workspace, name)
        plan_path, job = noted.get("plan_path"), _handle(noted.get("job"))
        if not isinstance(plan_path, str) or (plan.instant.state is not State.REQUESTED and job is None):
            continue
        try:
            ours = ClusteringPlan.from_json(documents.read(plan_path), name=plan_path)
        except HudiMaintError:  # a document that is broken or gone is no reason to claim a plan
            continue
        if comes_from(plan, ours):
            return None if _may_run(workspace, job) else plan_path
    return None


def _asked(workspace: Workspace, name: str) -> Mapping[str, object]:
    documents = workspace.documents
    try:
        asked = documents.read(documents.path(_FOLDER, name=name))
    except HudiMaintError:
        return {}
    return asked if isinstance(asked, Mapping) else {}


def _may_run(workspace: Workspace, job: JobHandle | None) -> bool:
    """Whether a job runs, as far as its engine can tell now."""
    if job is None:
        return False
    try:
        return workspace.engine().status(job) is JobStatus.RUNNING
    except InvalidSettingError:  # of an engine that the connection names no more: it cannot be asked
        return False
    except TransientError:
        return True
