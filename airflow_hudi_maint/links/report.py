"""The link from a task to its report."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class HudiReportLink(BaseOperatorLink):
    """Link to the report that a task wrote: HTML for HudiReportOperator, JSON for a step.

    Airflow stores the link after the task has run. It is the report's own address: a path on the worker becomes a
    ``file:`` URL, which a browser opens only on that machine, and an address on an object store is shown as it is.
    """

    name = "Hudi report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002 Airflow calls with it
        """Return the report's address; empty when the task wrote none."""
        path = getattr(operator, "report_path", None)
        return report_url(path) if path else ""


def report_url(path: str) -> str:
    """Return the address of a report.

    >>> report_url("/lake/flights/report.html"), report_url("s3://lake/report.html")
    ('file:///lake/flights/report.html', 's3://lake/report.html')
    """
    return path if "://" in path else PurePosixPath("/", path).as_uri()
