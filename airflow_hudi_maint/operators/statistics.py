"""Gather partition statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_optional_int
from airflow_hudi_maint.operators.base import HudiTableOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context


class HudiGatherStatisticsOperator(HudiTableOperator):
    """Gather statistics of every partition and write them beside the table; no engine is started.

    Statistics rest on one reading of the timeline, so commits that complete meanwhile are left to the next run. A
    second run on an unchanged table writes the same file again. Two at once leave one valid file.

    Returns ``{"statistics_path", "base_path", "table", "as_of_instant", "gathered", "reason", "partitions",
    "file_groups", "data_files", "small_files", "log_files", "records", "bytes", "median_file_bytes",
    "p90_file_bytes"}``.

    .. seealso:: ``docs/operators.md``

    :param mode: ``full`` lists every partition, ``incremental`` only those that the timeline says were touched since
        the newest statistics, ``auto`` chooses incremental where it can. (templated)
    :param small_file_bytes: Base files below this size count as small; None for the default. (templated)
    :param listing: ``directory`` lists directories, ``metadata`` reads the table's own metadata table instead, ``auto``
        takes what is cheaper and can be trusted; the rows are the same. (templated)
    :param record_source: Where counts of records come from: ``known`` reads nothing for them, ``commits`` the commits
        that wrote the latest files, ``footers`` the footers of the other files, too; ``auto`` reads commits while they
        are few. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiTableOperator.template_fields,
        "mode",
        "small_file_bytes",
        "listing",
        "record_source",
    )

    def __init__(
        self,
        *,
        mode: str = "auto",
        small_file_bytes: int | str | None = None,
        listing: str = "auto",
        record_source: str = "auto",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.mode = mode
        self.small_file_bytes = small_file_bytes
        self.listing = listing
        self.record_source = record_source

    def execute(self, context: Context) -> dict[str, Any]:
        """Gather the statistics."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Gather statistics") as hook:
            gathered = maintenance.gather_statistics(
                hook.workspace(log=self.say),
                now=self.now(),
                mode=self.mode,
                listing=self.listing,
                record_source=self.record_source,
                small_file_bytes=as_optional_int("small_file_bytes", self.small_file_bytes),
            )
        statistics = gathered.statistics
        result = {
            "statistics_path": gathered.path,
            "base_path": statistics.base_path,
            "table": statistics.table_name,
            "as_of_instant": statistics.as_of_instant,
            "gathered": statistics.gathered,
            "reason": statistics.reason,
            **statistics.totals(),
        }
        return self.hand_on(context, result)
