"""Wait until the drop of partitions is about to become final."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_int, as_object, as_seconds
from airflow_hudi_maint.hooks.plan_settings import cleaner_settings
from airflow_hudi_maint.hooks.undo_window import UndoQuestion, as_drop, closing_window
from airflow_hudi_maint.sensors.base import HudiTimelineSensor
from airflow_hudi_maint.triggers.timeline import HudiUndoWindowTrigger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_hudi_maint.core.maintenance import Workspace


class HudiUndoWindowSensor(HudiTimelineSensor):
    """Wait until a drop of partitions can soon be undone no more: the last moment to look, or to restore.

    Counts the commits since the drop against what the table's cleaner retains; a savepoint keeps the window open. The
    cleaner runs with the table's writers, whose settings the table does not tell: state them in the connection's write
    options, or as ``cleaner``, where they are not Hudi's defaults. Without a drop on the timeline the sensor waits for
    one; a named drop that is no longer there ends it at once.

    Returns ``{"base_path", "drop", "as_of", "partitions", "commits_left", "closes_at", "message"}``.

    .. seealso:: ``docs/operators.md``

    :param drop: Requested time of the drop, or the result of HudiExpirePartitionsOperator when it made one drop; None
        for the newest. (templated)
    :param cleaner: As in HudiCleanOperator. (templated)
    :param margin_commits: How many commits before the window closes to fire. (templated)
    :param margin: How long before, where the cleaner retains by hours: a timedelta, or seconds. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiTimelineSensor.template_fields,
        "drop",
        "cleaner",
        "margin_commits",
        "margin",
    )

    def __init__(
        self,
        *,
        drop: Any = None,
        cleaner: Mapping[str, object] | str | None = None,
        margin_commits: int | str = 2,
        margin: timedelta | float | str = timedelta(hours=1),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.drop = drop
        self.cleaner = cleaner
        self.margin_commits = margin_commits
        self.margin = margin

    def answer(self, workspace: Workspace) -> dict[str, Any] | None:
        """Return the window that closes, or None while it is wide open."""
        question = UndoQuestion(
            drop=as_drop(self.drop),
            cleaner=cleaner_settings(self.cleaner, options=workspace.write_options),
            margin_commits=as_int("margin_commits", self.margin_commits),
            margin=timedelta(seconds=as_seconds("margin", self.margin)),
        )
        return closing_window(workspace.table, question, now=datetime.now(UTC))

    def make_trigger(self) -> HudiUndoWindowTrigger:
        """Make the trigger that looks on in the triggerer."""
        cleaner_settings(self.cleaner, options={})  # a wrong one fails here, not in the triggerer
        return HudiUndoWindowTrigger(
            **self.look_arguments(),
            drop=as_drop(self.drop),
            cleaner=dict(as_object("cleaner", self.cleaner)),
            margin_commits=as_int("margin_commits", self.margin_commits),
            margin_seconds=as_seconds("margin", self.margin),
        )
