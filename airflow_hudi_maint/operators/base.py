"""What the operators share: the hook, the switch, skipping, and what is handed on."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator, XComArg
from airflow.sdk.exceptions import AirflowSkipException

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_bool
from airflow_hudi_maint.hooks.errors import airflow_errors
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.hooks.outlets import tell_outlets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow.sdk import Context

_WARNING = "Warning: "
"""How the core begins a line that is a warning."""


class MaintenanceOperator(BaseOperator):
    """Do one thing that can be switched off, and that has nothing to do on most days.

    The result is small and JSON-native: it is returned, and every outlet's asset event carries it as ``extra``. A
    step that has nothing to do hands on its result as well, and then skips itself. Terminal errors fail the task
    without a retry; transient ones (storage, a live writer, a job that failed) use the task's retries.

    :param enabled: False skips the task before anything is read. (templated)
    :param skip_when_idle: Whether a task that had nothing to do ends as skipped; otherwise it succeeds. (templated)
    """

    template_fields: Sequence[str] = ("enabled", "skip_when_idle")
    wide_fields: ClassVar[Sequence[str]] = ("base_path", "partitions", "policies", "policy_file", "drop")
    """Arguments whose default is another table, every partition, or other policies."""
    ui_color = "#e3f4f1"

    def __init__(self, *, enabled: bool | str = True, skip_when_idle: bool | str = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.enabled = enabled
        self.skip_when_idle = skip_when_idle
        self._lost: list[str] = []

    def render_template_fields(self, context: Context, jinja_env: Any = None) -> None:
        """Render, and note which wide arguments were to come from a task that left no result."""
        asked = [name for name in self.wide_fields if isinstance(getattr(self, name, None), XComArg)]
        super().render_template_fields(context, jinja_env)
        self._lost = [name for name in asked if getattr(self, name) is None]

    @contextmanager
    def switched_on(self, title: str) -> Iterator[None]:
        """Run a step unless it is switched off; its log is a group, its errors are Airflow's."""
        with airflow_errors():
            if not as_bool("enabled", self.enabled):
                raise AirflowSkipException(f"{self.task_id} is switched off (enabled={self.enabled})")
            as_bool("skip_when_idle", self.skip_when_idle)  # needed at the end, and better refused before
            if self._lost:
                raise InvalidSettingError(
                    f"{', '.join(self._lost)}: the task whose result it is left none. Left out it would mean more than "
                    "was asked for; see what became of that task"
                )
            self.log.info("::group::%s", title)
            try:
                yield
            finally:
                self.log.info("::endgroup::")

    def hand_on(self, context: Context, result: dict[str, Any], *, idle: str | None = None) -> dict[str, Any]:
        """Return the result after giving it to the outlets; skip when the step was idle, for the reason ``idle``."""
        for name, value in result.items():
            if name != "message":  # the step said it already
                self.log.info("%s: %s", name, value)
        with airflow_errors():
            skips = idle is not None and as_bool("skip_when_idle", self.skip_when_idle)
        if skips:
            self.keep_result(context, result)
            raise AirflowSkipException(idle)
        tell_outlets(self.outlets, result, context=context)
        return result

    def keep_result(self, context: Context, result: dict[str, Any]) -> None:
        """Push the result of a task that ends by an exception, which returns nothing: later tasks want what it saw."""
        if self.do_xcom_push and "ti" in context:
            context["ti"].xcom_push(key="return_value", value=result)

    def say(self, line: str) -> None:
        """Log what the core says, a warning as one."""
        level = logging.WARNING if line.startswith(_WARNING) else logging.INFO
        self.log.log(level, "%s", line.removeprefix(_WARNING))

    @staticmethod
    def now() -> datetime:
        """Return the moment that plans and policies are judged at."""
        return datetime.now(UTC)


class HudiTableOperator(MaintenanceOperator):
    """Do one thing to one Hudi table.

    :param hudi_conn_id: Connection of type ``hudi``; None for none. (templated)
    :param base_path: Base path of the table; None for the connection's. (templated)
    """

    template_fields: Sequence[str] = ("hudi_conn_id", "base_path", *MaintenanceOperator.template_fields)

    def __init__(
        self, *, hudi_conn_id: str | None = HudiHook.default_conn_name, base_path: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.hudi_conn_id = hudi_conn_id
        self.base_path = base_path

    @contextmanager
    def step(self, title: str) -> Iterator[HudiHook]:
        """Give the hook to a step that is switched on."""
        with self.switched_on(title):
            yield HudiHook(self.hudi_conn_id, base_path=self.base_path)
