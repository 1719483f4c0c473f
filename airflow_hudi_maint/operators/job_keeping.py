"""What every operator that runs a Spark job keeps of it: its name, its handle across tries, and how to kill it."""

from __future__ import annotations

import hashlib
import re
import threading
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import EngineKilledError, HudiMaintError
from airflow_hudi_maint.hooks.arguments import as_seconds, is_unset
from airflow_hudi_maint.operators.base import MaintenanceOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from airflow_hudi_maint.core.engines.base import Engine
    from airflow_hudi_maint.core.model.job import JobHandle

JOB_KEY = "hudi_maint_job"
"""Key of the job's handle in the task state store; a retry of an older release looks for it, so it never changes."""

KILL_SECONDS = 4.0
"""Airflow's supervisor ends a task with SIGKILL 5 seconds after it asked it to stop."""

_NAME_LENGTH = 80


class JobKeepingOperator(MaintenanceOperator):
    """Keep the handle of a job in the task state store, so that a retry finds it, and kill the job with the task.

    :param job_timeout: Longest time that a job may run, a timedelta or seconds; None for no limit. A job that runs
        longer is killed and the task fails, with its retries. (templated)
    """

    template_fields: Sequence[str] = (*MaintenanceOperator.template_fields, "job_timeout")

    def __init__(self, *, job_timeout: object = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.job_timeout = job_timeout
        self._engine: Engine | None = None
        self._handle: JobHandle | None = None
        self._stopped = False
        self._store: Any = None

    def on_kill(self) -> None:
        """Kill the running job, if any, and let no other start.

        Airflow calls this in a signal handler, while ``execute`` stands still: the work is done in another thread,
        which can take locks that ``execute`` does not hold, and is waited for no longer than Airflow allows.
        """
        self._stopped = True
        engine, handle = self._engine, self._handle
        if engine is None or handle is None:
            return
        killer = threading.Thread(target=self._kill, args=(engine, handle), daemon=True)
        killer.start()
        killer.join(KILL_SECONDS)

    def _reachable(self, engine: Engine) -> Engine:
        """Keep an engine for :meth:`on_kill`, and return it; a task that was asked to stop gets none."""
        self._refuse_when_stopped()
        self._engine = engine
        return engine

    def _previous(self, context: Context) -> JobHandle | None:
        """Return the job that an earlier try of this task instance submitted, and did not report on."""
        from airflow_hudi_maint.core.model.job import JobHandle

        self._store = context.get("task_state_store")
        stored = self._recall(JOB_KEY)
        return JobHandle.from_json(stored) if isinstance(stored, dict) else None

    def _timeout_seconds(self) -> float | None:
        return None if is_unset(self.job_timeout) else as_seconds("job_timeout", self.job_timeout)

    def _on_submitted(self, handle: JobHandle) -> None:
        self._remember(JOB_KEY, dict[str, Any](handle.to_json()))
        self._handle = handle
        self._refuse_when_stopped()

    def _recall(self, key: str) -> Any:
        return None if self._store is None else self._store.get(key)

    def _remember(self, key: str, value: Any) -> None:
        if self._store is not None:
            self._store.set(key, value)

    def _forget(self, key: str) -> None:
        if self._store is not None:
            self._store.delete(key)

    def _refuse_when_stopped(self) -> None:
        if self._stopped:
            raise EngineKilledError(f"{self.task_id} was asked to stop; its job is not run")

    def _kill(self, engine: Engine, handle: JobHandle) -> None:
        # The log may need a lock that the interrupted execute holds, so it comes last.
        try:
            engine.kill(handle, timeout_seconds=KILL_SECONDS)
        except (HudiMaintError, OSError) as error:
            self.log.warning("Job %s was not killed: %s", handle.job_id, error)
        else:
            self.log.info("Killed job %s", handle.job_id)


def application_name(context: Context, *, task_id: str) -> str:
    """Name a job after its task instance: the same in every try, another for every task instance.

    The readable part is cut to what cluster managers show; the digest at its end tells long names apart.
    """
    ti = context.get("ti")
    parts = [task_id] if ti is None else [ti.dag_id, ti.task_id, ti.run_id]
    if ti is not None and ti.map_index is not None and ti.map_index >= 0:
        parts.append(str(ti.map_index))
    text = "/".join(parts)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", "-".join(parts))[:_NAME_LENGTH]
    return f"hudi-maint-{readable}-{digest}"
