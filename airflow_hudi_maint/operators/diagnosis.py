"""Find out why a table has small files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_object, as_optional_int, as_optional_text
from airflow_hudi_maint.hooks.plan_settings import partition_paths
from airflow_hudi_maint.operators.base import HudiTableOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

_NO_SMALL_FILE = "the table has no small file"


class HudiDiagnoseSmallFilesOperator(HudiTableOperator):
    """Say of each partition how many small files it has, what they cost, and why they are there; no engine is started.

    Reads the timeline, the files' sizes and a few footers; writes one document and prints a table and the findings to
    the log. A second run on an unchanged table finds the same. A table without small files skips the task.

    Returns ``{"diagnosis_path", "base_path", "table", "as_of_instant", "partitions", "partitions_with_small_files",
    "files", "small_files", "bytes", "small_bytes", "wasted_opens", "causes", "cures"}``: ``causes`` by name, those of
    most files first, and ``cures`` as ``{setting: proposed value}``.

    .. seealso:: ``docs/small-files.md``

    :param writer_options: Hudi options of the pipeline that writes the table, which Hudi stores nowhere; they go over
        the connection's write options. What is not given is taken to have Hudi's default. (templated)
    :param hudi_version: Release that the pipeline writes with; None for the one that goes with the table's version:
        0.15.0 for 6, 1.0.2 for 8, 1.2.0 for 9. (templated)
    :param small_file_bytes: Base files below this size are small; None for the writer's small-file limit. (templated)
    :param partitions: Partition paths to look at, as Hudi writes them; None for all. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiTableOperator.template_fields,
        "writer_options",
        "hudi_version",
        "small_file_bytes",
        "partitions",
    )

    def __init__(
        self,
        *,
        writer_options: Any = None,
        hudi_version: str | None = None,
        small_file_bytes: int | str | None = None,
        partitions: Sequence[str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.writer_options = writer_options
        self.hudi_version = hudi_version
        self.small_file_bytes = small_file_bytes
        self.partitions = partitions

    def execute(self, context: Context) -> dict[str, Any]:
        """Diagnose the table's small files."""
        from airflow_hudi_maint.core import maintenance

        with self.step("Diagnose small files") as hook:
            options = as_object("writer_options", self.writer_options)
            found = maintenance.diagnose_small_files(
                hook.workspace(log=self.say),
                now=self.now(),
                partitions=partition_paths(self.partitions),
                small_file_bytes=as_optional_int("small_file_bytes", self.small_file_bytes),
                writer_options={key: str(value) for key, value in options.items()},
                hudi_version=as_optional_text("hudi_version", self.hudi_version),
            )
        diagnosis = found.diagnosis
        result = {
            "diagnosis_path": found.path,
            "base_path": diagnosis.basis.base_path,
            "table": diagnosis.basis.table_name,
            "as_of_instant": diagnosis.basis.base_instant,
            **diagnosis.summary(),
            "cures": {cure.setting: cure.proposed for one in diagnosis.findings for cure in one.cures},
        }
        return self.hand_on(context, result, idle=None if diagnosis.small_files else _NO_SMALL_FILE)
