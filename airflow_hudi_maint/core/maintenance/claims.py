"""Of several who are about to execute one plan, let one go on.

A job that runs is noted with its plan, but between the look at the plan and the submission of the job there is nothing
to see. A small document of ours that only one can create stands there meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from airflow_hudi_maint.core.errors import HudiMaintError, PendingActionError, TerminalError

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.commit import PendingPlan
    from airflow_hudi_maint.core.model.document import JsonObject

CLAIM_LASTS: Final = timedelta(minutes=10)
"""So old a claim's maker has submitted its job, which is noted with the plan, or is dead."""

_FOLDER: Final = "scheduled"


@contextmanager
def claimed(workspace: Workspace, plans: Sequence[PendingPlan], *, by: str | None, now: datetime) -> Iterator[None]:
    """Hold the plans for a block in which the job that executes them is submitted.

    ``by`` names the task instance: a claim that an earlier try of it left is its own. None is nobody else's name.

    Raises PendingActionError when another is about to execute one of them.
    """
    name = by or uuid.uuid4().hex
    held: list[str] = []
    try:
        for plan in plans:
            instant = plan.instant.requested_time
            _claim(workspace, instant, by=name, now=now)
            held.append(instant)
        yield
    finally:
        for instant in held:
            with suppress(HudiMaintError):  # it lasts for minutes only
                _release(workspace, instant, by=name)


def _claim(workspace: Workspace, instant: str, *, by: str, now: datetime) -> None:
    document: JsonObject = {
        "kind": "claimed-execution",
        "version": 1,
        "instant": instant,
        "by": by,
        "at": now.isoformat(),
    }
    documents, file = workspace.documents, _file(instant)
    if documents.create(_FOLDER, name=file, document=document):
        return
    found = _found(workspace, instant)
    if found.get("by") == by or _is_stale(found, now=now):
        documents.write(_FOLDER, name=file, document=document)
        found = _found(workspace, instant)
    if found.get("by") != by:
        msg = (
            f"{instant} is about to be executed by another task ({found.get('by')}, since {found.get('at')}): two "
            "executions at once would delete each other's files. Try again when it is done"
        )
        raise PendingActionError(msg)


def _is_stale(found: Mapping[str, object], *, now: datetime) -> bool:
    try:
        return abs(now - datetime.fromisoformat(str(found.get("at")))) >= CLAIM_LASTS
    except (TypeError, ValueError):  # broken, or gone by now
        return True


def _found(workspace: Workspace, instant: str) -> Mapping[str, object]:
    documents = workspace.documents
    try:
        found = documents.read(documents.path(_FOLDER, name=_file(instant)))
    except TerminalError:  # absent or broken
        return {}
    return found if isinstance(found, Mapping) else {}


def _release(workspace: Workspace, instant: str, *, by: str) -> None:
    if _found(workspace, instant).get("by") == by:
        workspace.documents.delete(_FOLDER, name=_file(instant))


def _file(instant: str) -> str:
    return f"{instant}-claim.json"
