"""Wait for pending plans of table services: until there are none, or until there is one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from airflow_hudi_maint.hooks.arguments import as_bool
from airflow_hudi_maint.hooks.errors import airflow_errors
from airflow_hudi_maint.hooks.pending import PendingQuestion, pending_answer
from airflow_hudi_maint.sensors.base import HudiTimelineSensor
from airflow_hudi_maint.triggers.timeline import HudiPendingPlanTrigger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from airflow_hudi_maint.core.maintenance import Workspace


class HudiPendingPlanSensor(HudiTimelineSensor):
    """Wait until no pending clustering or compaction plan of a table is left, or until there is one.

    Each look logs which plans are waited for, how old they are and whether we made them. A plan counts while it is
    requested or inflight. Nothing is locked: a plan may appear right after.

    Returns ``{"base_path", "instants", "plans"}``: none when none was waited for, else those that are there, of which
    ``plans`` describes the first five.

    .. seealso:: ``docs/pending.md``

    :param enabled: False skips the task before anything is read. (templated)
    :param wait_for: ``none`` (no such plan is left) or ``some`` (there is one). (templated)
    :param kinds: Kinds that count: ``clustering``, ``compaction``, ``logcompaction``; None for all. (templated)
    :param partitions: Partition paths; a plan that holds file groups of one counts. None for all. (templated)
    :param older_than: Plans younger than this do not count: a timedelta, or seconds. (templated)
    :param made_by: ``any``, or ``ours`` for plans that a step of this package scheduled. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiTimelineSensor.template_fields,
        "enabled",
        "wait_for",
        "kinds",
        "partitions",
        "older_than",
        "made_by",
    )

    def __init__(
        self,
        *,
        enabled: bool | str = True,
        wait_for: str = "none",
        kinds: Sequence[str] | str | None = None,
        partitions: Sequence[str] | str | None = None,
        older_than: timedelta | float | str = 0,
        made_by: str = "any",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.enabled = enabled
        self.wait_for = wait_for
        self.kinds = kinds
        self.partitions = partitions
        self.older_than = older_than
        self.made_by = made_by

    def execute(self, context: Context) -> Any:
        """Wait, unless the task is switched off."""
        with airflow_errors():
            if not as_bool("enabled", self.enabled):
                raise AirflowSkipException(f"{self.task_id} is switched off (enabled={self.enabled})")
        return super().execute(context)

    def answer(self, workspace: Workspace) -> dict[str, Any] | None:
        """Return what is there, or None while there is something to wait for."""
        return pending_answer(workspace, self._question(), now=datetime.now(UTC), say=self.log.info)

    def make_trigger(self) -> HudiPendingPlanTrigger:
        """Make the trigger that looks on in the triggerer."""
        return HudiPendingPlanTrigger(**self.look_arguments(), question=self._question().to_json())

    def _question(self) -> PendingQuestion:
        return PendingQuestion.of(
            wait_for=self.wait_for,
            kinds=self.kinds,
            partitions=self.partitions,
            older_than=self.older_than,
            made_by=self.made_by,
        )
