"""The trigger that waits for a Spark job on a cluster, so that no worker has to."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_hudi_maint.core.errors import HudiMaintError, TransientError
from airflow_hudi_maint.core.model.job import JobHandle, JobStatus
from airflow_hudi_maint.hooks.hudi import HudiHook

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from airflow_hudi_maint.core.engines.base import Engine

KILL_SECONDS = 20.0
SILENT_SECONDS = 900.0
"""How long a cluster may give no answer before the task is woken up to look by itself."""


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
        handle, heard = JobHandle.from_json(self.job), time.monotonic()
        while True:
            try:
                engine = await self._engine()
                status = await asyncio.to_thread(engine.status, handle)
                heard = time.monotonic()
                if status.ended:
                    yield _event(status=str(status), message=f"Job {handle.job_id} ended: {status}")
                    return
                if self.deadline is not None and time.time() >= self.deadline:
                    await asyncio.to_thread(engine.kill, handle, timeout_seconds=KILL_SECONDS)
                    yield _event(status="timeout", message=f"Job {handle.job_id} ran too long and was killed")
                    return
            except TransientError as error:
                if time.monotonic() - heard >= SILENT_SECONDS:
                    yield _event(status="error", message=f"{type(error).__name__}: {error}")
                    return
                self.log.warning("Job %s cannot be looked at: %s", handle.job_id, error)
            except (HudiMaintError, OSError) as error:
                yield _event(status="error", message=f"{type(error).__name__}: {error}", blind=True)
                return
            await asyncio.sleep(self.poll_interval)

    async def on_kill(self) -> None:
        """Kill the job: a person ended the task. A triggerer that merely stops does not come here."""
        handle = JobHandle.from_json(self.job)
        try:
            engine = await self._engine()
            if await asyncio.to_thread(engine.status, handle) is JobStatus.RUNNING:
                await asyncio.to_thread(engine.kill, handle, timeout_seconds=KILL_SECONDS)
            self.log.info("Killed job %s", handle.job_id)
        except (HudiMaintError, OSError) as error:
            self.log.warning("Job %s was not killed: %s", handle.job_id, error)

    async def _engine(self) -> Engine:
        hook = HudiHook(self.hudi_conn_id, base_path=self.base_path)
        await hook.aconnect()
        return await asyncio.to_thread(hook.make_engine)


def _event(**payload: Any) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]
