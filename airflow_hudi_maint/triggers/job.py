"""The trigger that waits for a Spark job on a cluster, so that no worker has to."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_hudi_maint.core.errors import HudiMaintError, TransientError
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.triggers.settling import settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from airflow_hudi_maint.core.engines.base import Engine

KILL_SECONDS = 20.0
SILENT_SECONDS = 900.0
"""How long a cluster may give no answer before the task is woken up to look by itself."""

_WAITING = frozenset(("deferred", "running"))


class HudiJobTrigger(BaseTrigger):
    """Wait until a job has ended; how it ended and what it did is judged by the task, from the table's timeline.

    The cluster is asked in a thread. A triggerer that stops or hands the trigger over leaves the job alone; a person
    who clears the task or marks it has the job killed.

    :param hudi_conn_id: Connection of type ``hudi``, read by the triggerer; its credentials are in no trigger argument.
    :param base_path: Base path of the table; None for the connection's.
    :param job: The job's handle, as JSON.
    :param deadline: When the job is killed, in seconds of the epoch; None for never.
    :param poll_interval: Seconds between two looks.
    """

    def __init__(
        self,
        *,
        hudi_conn_id: str | None,
        base_path: str | None,
        job: dict[str, Any],
        deadline: float | None = None,
        poll_interval: float = 15.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.hudi_conn_id = hudi_conn_id
        self.base_path = base_path
        self.job = job
        self.deadline = deadline
        self.poll_interval = poll_interval
        self._asked: Engine | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and JSON-native arguments that make this trigger again."""
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "hudi_conn_id": self.hudi_conn_id,
            "base_path": self.base_path,
            "job": self.job,
            "deadline": self.deadline,
            "poll_interval": self.poll_interval,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: ``status`` is that of the job, ``timeout`` or ``error``, with a ``message``.

        ``blind`` says that this triggerer cannot look at the job at all, which waiting does not mend.
        """
        started = time.monotonic()
        event = await self._job_ended()
        await settle(started=started)
        yield event

    async def _job_ended(self) -> TriggerEvent:
        from airflow_hudi_maint.core.model.job import JobHandle

        handle, heard = JobHandle.from_json(self.job), time.monotonic()
        while True:
            try:
                engine = await self._engine()
                status = await asyncio.to_thread(engine.status, handle)
                self._asked = engine
                heard = time.monotonic()
                if status.ended:
                    return _event(status=str(status), message=f"Job {handle.job_id} ended: {status}")
                if self.deadline is not None and time.time() >= self.deadline:
                    await asyncio.to_thread(engine.kill, handle, timeout_seconds=KILL_SECONDS)
                    return _event(status="timeout", message=f"Job {handle.job_id} ran too long and was killed")
            except TransientError as error:
                if time.monotonic() - heard >= SILENT_SECONDS:
                    return _event(status="error", message=f"{type(error).__name__}: {error}")
                self.log.warning("Job %s cannot be looked at: %s", handle.job_id, error)
            except (HudiMaintError, OSError) as error:
                return _event(status="error", message=f"{type(error).__name__}: {error}", blind=True)
            await asyncio.sleep(self.poll_interval)

    async def on_kill(self) -> None:
        """Kill the job if a person ended the task; a triggerer that stops or hands triggers over leaves it alone."""
        killing = asyncio.ensure_future(self._kill())
        while not killing.done():
            # The triggerer cancels its trigger again each second until that is gone, and this method with it.
            with suppress(asyncio.CancelledError):
                await asyncio.shield(killing)

    async def _kill(self) -> None:
        from airflow_hudi_maint.core.model.job import JobHandle

        handle = JobHandle.from_json(self.job)
        try:
            if await self._is_waited_for():
                self.log.info("Job %s is waited for elsewhere: it goes on", handle.job_id)
                return
            engine = await self._engine() if self._asked is None else self._asked
            status = await asyncio.to_thread(engine.status, handle)
            if status.ended:
                self.log.info("Job %s has ended already: %s", handle.job_id, status)
                return
            await asyncio.to_thread(engine.kill, handle, timeout_seconds=KILL_SECONDS)
            self.log.info("Killed job %s", handle.job_id)
        except (HudiMaintError, OSError) as error:
            self.log.warning("Job %s was not killed: %s", handle.job_id, error)

    async def _is_waited_for(self) -> bool:
        """Whether the task waits on or runs: another triggerer took the trigger over, for this one was silent for long.

        Airflow does not tell that from an end by a person. A task that was cleared and runs again ends this job itself.
        """
        task = self.task_instance
        if task is None:
            return False
        from airflow.sdk.exceptions import AirflowRuntimeError
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

        try:
            found = await asyncio.to_thread(
                RuntimeTaskInstance.get_task_states,
                dag_id=task.dag_id,
                task_ids=[task.task_id],
                run_ids=[task.run_id],
                map_index=task.map_index,
            )
        except (AirflowRuntimeError, OSError, RuntimeError) as error:
            self.log.warning("How the task is cannot be asked, so it counts as ended: %s", error)
            return False
        return not _WAITING.isdisjoint(found.get(task.run_id, {}).values())

    async def _engine(self) -> Engine:
        hook = HudiHook(self.hudi_conn_id, base_path=self.base_path)
        await hook.aconnect()
        return await asyncio.to_thread(hook.make_engine)


def _event(**payload: Any) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]
