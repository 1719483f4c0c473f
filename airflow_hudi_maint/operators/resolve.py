"""Finish pending plans, or have Hudi roll them back."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_bool, as_instants, as_result_field
from airflow_hudi_maint.hooks.execution_settings import check_same_table
from airflow_hudi_maint.hooks.pending import resolve_settings
from airflow_hudi_maint.operators.job import HudiJobOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context


class HudiResolvePendingOperator(HudiJobOperator):
    """Finish pending clustering and compaction plans, or roll them back and delete them, with Hudi's own means.

    Nothing is touched that somebody may be at work on: a plan of others (unless ``made_by="any"``), one with a sign of
    life within ``older_than``, one with a heartbeat, one that a job of ours is executing. A plan whose inputs were
    replaced since it was made is never finished. What is left alone is reported with its reason; when it was named in
    ``instants``, the task fails. A second run finds nothing to do. A live writer without a lock provider makes the task
    fail, to be retried.

    Returns ``{"step", "outcome", "message", "base_path", "instants", "partitions", "files_before", "files_after",
    "bytes_before", "bytes_after", "engine_seconds", "plan_path", "report_path"}``; ``instants`` are what was resolved.

    .. seealso:: ``docs/pending.md``

    :param action: ``finish`` executes the plans, ``roll_back`` deletes them, ``auto`` rolls back those that are
        overtaken and finishes the others. (templated)
    :param instants: Instants of the plans: a list, JSON, texts apart by commas, or the result of a sensor or of an
        operator that schedules; nothing for all that the other arguments take. (templated)
    :param kinds: Kinds of plans: ``clustering``, ``compaction``; None for both. (templated)
    :param older_than: How long there must have been no sign of life: a timedelta, or seconds. (templated)
    :param made_by: ``ours`` for plans that a step of this package scheduled, or ``any``. (templated)
    :param plan_only: Whether to stop before the engine and report what would become of each plan. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiJobOperator.template_fields, "action", "instants", "kinds", "older_than", "made_by", "plan_only",
    )  # fmt: skip

    def __init__(
        self,
        *,
        action: str = "finish",
        instants: Any = None,
        kinds: Sequence[str] | str | None = None,
        older_than: timedelta | float | str = timedelta(hours=1),
        made_by: str = "ours",
        plan_only: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.action = action
        self.instants = instants
        self.kinds = kinds
        self.older_than = older_than
        self.made_by = made_by
        self.plan_only = plan_only

    def execute(self, context: Context) -> dict[str, Any]:
        """Resolve."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Resolve pending plans") as hook:
            check_same_table("instants", self.instants, base_path=hook.base_path)
            reported = maintenance.resolve_pending(
                self.open(hook),
                now=self.now(),
                settings=resolve_settings(
                    action=self.action, older_than=self.older_than, made_by=self.made_by, kinds=self.kinds
                ),
                job=self.job(context),
                instants=as_instants("instants", as_result_field("instants", self.instants, field="instants")),
                dry_run=as_bool("plan_only", self.plan_only),
            )
        return self.report(context, reported)
