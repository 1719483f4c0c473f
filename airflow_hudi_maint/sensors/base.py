"""What the sensors of a table's timeline share: poke or defer, and what an error means."""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue, conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_hudi_maint.core.errors import TableNotFoundError, TransientError
from airflow_hudi_maint.hooks.arguments import as_exact_text
from airflow_hudi_maint.hooks.errors import airflow_errors
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.hooks.outlets import tell_outlets
from airflow_hudi_maint.triggers.timeline import DEFAULT_MAX_FAILURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context
    from airflow.triggers.base import BaseTrigger

    from airflow_hudi_maint.core.maintenance import Workspace


class LookSensor(BaseSensorOperator):
    """Look at storage again and again: here, or in the triggerer.

    A table that does not exist yet is waited for. Transient errors are survived, up to ``max_failures`` in a row, and
    then left to the task's retries; terminal ones fail the task at once. The result is returned, and every outlet's
    asset event carries it as ``extra``.

    :param hudi_conn_id: Connection of type ``hudi``; None for none. (templated)
    :param base_path: Base path of the table; None for the connection's. (templated)
    :param max_failures: Looks that may fail in a row for a transient reason. In mode ``reschedule`` each look counts
        for itself.
    :param deferrable: Whether to wait in the triggerer; by default what ``[operators] default_deferrable`` says.
    """

    template_fields: Sequence[str] = ("hudi_conn_id", "base_path")
    ui_color = "#e3f4f1"

    def __init__(
        self,
        *,
        hudi_conn_id: str | None = HudiHook.default_conn_name,
        base_path: str | None = None,
        max_failures: int = DEFAULT_MAX_FAILURES,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hudi_conn_id = hudi_conn_id
        self.base_path = base_path
        self.max_failures = max_failures
        self.deferrable = deferrable
        self._failures = 0

    def execute(self, context: Context) -> Any:
        """Look once; if there is no answer yet, go on looking here or, when deferrable, in the triggerer."""
        if not self.deferrable:
            return self._hand_on(context, super().execute(context))
        with airflow_errors():
            trigger = self.make_trigger()
        now = self.poke(context)
        if not now.is_done:
            self._defer(trigger)
        return self._hand_on(context, now.xcom_value)

    def _defer(self, trigger: BaseTrigger) -> None:
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Return what the trigger found, or raise the error that it met."""
        if event["status"] == "found":
            result: dict[str, Any] = event["result"]
            self.log.info("Found %s", result)
            self._hand_on(context, result)
            return result
        if event["terminal"]:
            raise AirflowFailException(event["message"])
        raise AirflowException(event["message"])  # takes retries, and soft_fail turns it into a skip

    def _hand_on(self, context: Context, result: Any) -> Any:
        if result is not None:  # silent_fail and never_fail end without one
            tell_outlets(self.outlets, result, context=context)
        return result

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once."""
        try:
            with airflow_errors():
                result = self.look()
            self._failures = 0
        except (TransientError, FileNotFoundError) as error:
            self._failures += 1
            if self._failures > self.max_failures:
                raise
            self.log.warning("Look %d of %d failed: %s", self._failures, self.max_failures, error)
            result = None
        return PokeReturnValue(is_done=result is not None, xcom_value=result)

    def look_arguments(self) -> dict[str, Any]:
        """Return the arguments of every trigger: where to look, how often, how many failures to survive."""
        return {
            "hudi_conn_id": as_exact_text("hudi_conn_id", self.hudi_conn_id),
            "base_path": as_exact_text("base_path", self.base_path),
            "poll_interval": self.poke_interval,
            "max_failures": self.max_failures,
        }

    @abstractmethod
    def look(self) -> dict[str, Any] | None:
        """Look once; None means not yet."""

    @abstractmethod
    def make_trigger(self) -> BaseTrigger:
        """Make the trigger that looks on in the triggerer."""


class HudiTimelineSensor(LookSensor):
    """Wait for something on a table's timeline."""

    def look(self) -> dict[str, Any] | None:
        """Open the table and look at it; None while there is none."""
        hook = HudiHook(self.hudi_conn_id, base_path=self.base_path)
        try:
            workspace = hook.workspace()
        except TableNotFoundError as error:
            self.log.info("Waiting for the table: %s", error)
            return None
        return self.answer(workspace)

    @abstractmethod
    def answer(self, workspace: Workspace) -> dict[str, Any] | None:
        """Look at the table; None means not yet."""
