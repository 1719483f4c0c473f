"""Wait until nobody works on a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_seconds
from airflow_hudi_maint.hooks.timeline import idle_result, read_activity
from airflow_hudi_maint.sensors.base import HudiTimelineSensor
from airflow_hudi_maint.triggers.timeline import HudiTableIdleTrigger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_hudi_maint.core.maintenance import Workspace


class HudiTableIdleSensor(HudiTimelineSensor):
    """Wait until no instant is pending on a table and nothing has completed for a time.

    A pending instant of any action counts: a writer at work, a plan that waits to be executed, the remains of a
    writer that died (those keep the sensor waiting until Hudi rolls them back). That a table is idle now is no lock:
    a writer may begin right after. Completion times are compared with this machine's clock; on table version 6, which
    has none, the modification times of the timeline's files are.

    Returns ``{"base_path", "last_completed_at", "last_completed_instant"}``.

    .. seealso:: ``docs/operators.md``

    :param quiet_for: For how long nothing may have completed: a timedelta, or seconds. (templated)
    """

    template_fields: Sequence[str] = (*HudiTimelineSensor.template_fields, "quiet_for")

    def __init__(self, *, quiet_for: timedelta | float | str = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.quiet_for = quiet_for

    def answer(self, workspace: Workspace) -> dict[str, Any] | None:
        """Return when the table was last busy, or None while it is."""
        activity = read_activity(workspace.table)
        quiet_for = timedelta(seconds=as_seconds("quiet_for", self.quiet_for))
        if activity.is_idle(now=datetime.now(UTC), quiet_for=quiet_for):
            return idle_result(workspace.table, activity)
        self.log.info("Not idle: %s", activity)
        return None

    def make_trigger(self) -> HudiTableIdleTrigger:
        """Make the trigger that looks on in the triggerer."""
        return HudiTableIdleTrigger(
            **self.look_arguments(),
            quiet_seconds=as_seconds("quiet_for", self.quiet_for),
        )
