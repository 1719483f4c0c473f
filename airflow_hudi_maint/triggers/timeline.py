"""Triggers that wait for a table's timeline in the triggerer."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_hudi_maint.core.errors import TableNotFoundError, TerminalError, TransientError
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.hooks.pending import PendingQuestion, pending_answer
from airflow_hudi_maint.hooks.plan_settings import cleaner_settings
from airflow_hudi_maint.hooks.timeline import (
    CommitQuestion,
    commits_result,
    find_commits,
    idle_result,
    read_activity,
)
from airflow_hudi_maint.hooks.undo_window import UndoQuestion, closing_window
from airflow_hudi_maint.triggers.settling import settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from airflow_hudi_maint.core.maintenance import Workspace

DEFAULT_MAX_FAILURES = 10


class LookTrigger(BaseTrigger):
    """Look again and again until there is an answer.

    Storage is read in a thread, so the loop that all triggers share never waits for it. A table that does not exist yet
    is waited for; transient errors are survived, up to ``max_failures`` in a row; any other error of ours ends the
    trigger with an error event. Nothing is kept: a trigger that another triggerer takes over looks again.

    :param hudi_conn_id: Connection of type ``hudi``, read by the triggerer; its credentials are in no trigger argument.
    :param base_path: Base path of the table; None for the connection's.
    :param poll_interval: Seconds between two looks.
    :param max_failures: Looks that may fail in a row for a transient reason.
    """

    def __init__(
        self,
        *,
        hudi_conn_id: str | None,
        base_path: str | None,
        poll_interval: float = 60.0,
        max_failures: int = DEFAULT_MAX_FAILURES,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.hudi_conn_id = hudi_conn_id
        self.base_path = base_path
        self.poll_interval = poll_interval
        self.max_failures = max_failures

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and JSON-native arguments that make this trigger again."""
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "hudi_conn_id": self.hudi_conn_id,
            "base_path": self.base_path,
            "poll_interval": self.poll_interval,
            "max_failures": self.max_failures,
            **self._question(),
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event, of status ``found`` with a ``result`` or ``error`` with ``terminal`` and ``message``."""
        started = time.monotonic()
        event = await self._outcome()
        await settle(started=started)
        yield event

    async def _outcome(self) -> TriggerEvent:
        hook = HudiHook(self.hudi_conn_id, base_path=self.base_path)
        failures = 0
        while True:
            try:
                result = await self.look(hook)
                failures = 0
            except TableNotFoundError as error:
                self.log.info("Waiting for the table: %s", error)
                result = None
            except TerminalError as error:
                return _error(error, terminal=True)
            except (TransientError, FileNotFoundError) as error:  # an instant's file may be archived while it is read
                failures += 1
                if failures > self.max_failures:
                    return _error(error, terminal=False)
                self.log.warning("Look %d of %d failed: %s", failures, self.max_failures, error)
                result = None
            if result is not None:
                return _event(status="found", result=result)
            await asyncio.sleep(self.poll_interval)

    @abstractmethod
    async def look(self, hook: HudiHook) -> dict[str, Any] | None:
        """Look once; None means not yet."""

    @abstractmethod
    def _question(self) -> dict[str, Any]:
        """Return the arguments that a subclass adds."""


class _TimelineTrigger(LookTrigger):
    """Look at a table's timeline."""

    async def look(self, hook: HudiHook) -> dict[str, Any] | None:
        """Look once, in a thread."""
        await hook.aconnect()
        return await asyncio.to_thread(lambda: self.answer(hook.workspace()))

    @abstractmethod
    def answer(self, workspace: Workspace) -> dict[str, Any] | None:
        """Look at the table; None means not yet."""


def _error(error: Exception, *, terminal: bool) -> TriggerEvent:
    return _event(status="error", terminal=terminal, message=f"{type(error).__name__}: {error}")


def _event(**payload: Any) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]


class HudiCommitTrigger(_TimelineTrigger):
    """Wait for a completed commit after ``since``.

    :param since: An instant of the table; None for any commit.
    :param partition: Partition path that the commit has to touch; None for any.
    :param include_rewrites: Whether clustering and compaction count as well.
    """

    def __init__(
        self, *, since: str | None = None, partition: str | None = None, include_rewrites: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.since = since
        self.partition = partition
        self.include_rewrites = include_rewrites

    def answer(self, workspace: Workspace) -> dict[str, Any] | None:
        """Return the commits that are there, or None."""
        question = CommitQuestion(since=self.since, partition=self.partition, include_rewrites=self.include_rewrites)
        found = find_commits(workspace.table, question)
        return commits_result(workspace.table, found) if found else None

    def _question(self) -> dict[str, Any]:
        return {"since": self.since, "partition": self.partition, "include_rewrites": self.include_rewrites}


class HudiTableIdleTrigger(_TimelineTrigger):
    """Wait until nothing is pending on a table and nothing has completed for a time.

    :param quiet_seconds: For how long nothing may have completed.
    """

    def __init__(self, *, quiet_seconds: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.quiet_seconds = quiet_seconds

    def answer(self, workspace: Workspace) -> dict[str, Any] | None:
        """Return when the table was last busy, or None while it is."""
        activity = read_activity(workspace.table)
        if activity.is_idle(now=datetime.now(UTC), quiet_for=timedelta(seconds=self.quiet_seconds)):
            return idle_result(workspace.table, activity)
        self.log.info("Not idle: %s", activity)
        return None

    def _question(self) -> dict[str, Any]:
        return {"quiet_seconds": self.quiet_seconds}


class HudiUndoWindowTrigger(_TimelineTrigger):
    """Wait until a drop of partitions can soon be undone no more.

    :param drop: Requested time of the drop; None for the newest.
    :param cleaner: Fields of CleanerSettings that differ from what the connection's write options say.
    :param margin_commits: How many commits before the window closes to fire.
    :param margin_seconds: How long before, where the cleaner retains by hours.
    """

    def __init__(
        self,
        *,
        drop: str | None = None,
        cleaner: dict[str, Any] | None = None,
        margin_commits: int = 2,
        margin_seconds: float = 3600.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.drop = drop
        self.cleaner = cleaner or {}
        self.margin_commits = margin_commits
        self.margin_seconds = margin_seconds

    def answer(self, workspace: Workspace) -> dict[str, Any] | None:
        """Return the window that closes, or None while it is wide open."""
        question = UndoQuestion(
            drop=self.drop,
            cleaner=cleaner_settings(self.cleaner, options=workspace.write_options),
            margin_commits=self.margin_commits,
            margin=timedelta(seconds=self.margin_seconds),
        )
        return closing_window(workspace.table, question, now=datetime.now(UTC))

    def _question(self) -> dict[str, Any]:
        return {
            "drop": self.drop,
            "cleaner": self.cleaner,
            "margin_commits": self.margin_commits,
            "margin_seconds": self.margin_seconds,
        }


class HudiPendingPlanTrigger(_TimelineTrigger):
    """Wait until no pending plan is left, or until there is one.

    :param question: What :class:`~airflow_hudi_maint.hooks.pending.PendingQuestion` says of itself as JSON.
    """

    def __init__(self, *, question: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.question = question

    def answer(self, workspace: Workspace) -> dict[str, Any] | None:
        """Return what the sensor hands on, or None while there is something to wait for."""
        question = PendingQuestion.from_json(self.question)
        return pending_answer(workspace, question, now=datetime.now(UTC), say=self.log.info)

    def _question(self) -> dict[str, Any]:
        return {"question": self.question}
