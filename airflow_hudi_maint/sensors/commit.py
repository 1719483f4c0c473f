"""Wait for a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_bool, as_exact_text, as_optional_instant
from airflow_hudi_maint.hooks.timeline import CommitQuestion, commits_result, find_commits
from airflow_hudi_maint.sensors.base import HudiTimelineSensor
from airflow_hudi_maint.triggers.timeline import HudiCommitTrigger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_hudi_maint.core.maintenance import Workspace


class HudiCommitSensor(HudiTimelineSensor):
    """Wait for a completed commit after a given instant, optionally one that touches a partition.

    Commits are ordered by completion time on table version 8 and later, so a commit that was requested before ``since``
    and completed after it counts; on version 6 by requested time. Only the active timeline is searched: a commit that
    was archived before the sensor looked is not seen. A second run looks afresh and may return more commits.

    Returns ``{"base_path", "instants", "last_instant", "last_completion_time"}``, the instants in the order in which
    they took effect. Give ``last_instant`` as ``since`` to wait for the next.

    .. seealso:: ``docs/operators.md``

    :param since: An instant of the table, or a time of the same form in the table's time zone; None for any commit.
        An instant itself does not count, only what completed after it. (templated)
    :param partition: Partition path that a commit has to touch, as Hudi writes it (``origin=EWR/month=9``). (templated)
    :param include_rewrites: Whether clustering and compaction, which change no data, count as well. (templated)
    """

    template_fields: Sequence[str] = (*HudiTimelineSensor.template_fields, "since", "partition", "include_rewrites")

    def __init__(
        self,
        *,
        since: str | int | None = None,
        partition: str | None = None,
        include_rewrites: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.since = since
        self.partition = partition
        self.include_rewrites = include_rewrites

    def answer(self, workspace: Workspace) -> dict[str, Any] | None:
        """Return the commits that are there, or None."""
        found = find_commits(workspace.table, self._question())
        return commits_result(workspace.table, found) if found else None

    def make_trigger(self) -> HudiCommitTrigger:
        """Make the trigger that looks on in the triggerer."""
        question = self._question()
        return HudiCommitTrigger(
            **self.look_arguments(),
            since=question.since,
            partition=question.partition,
            include_rewrites=question.include_rewrites,
        )

    def _question(self) -> CommitQuestion:
        return CommitQuestion(
            since=as_optional_instant("since", self.since),
            partition=as_exact_text("partition", self.partition),
            include_rewrites=as_bool("include_rewrites", self.include_rewrites),
        )
