"""The link to a report."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_hudi_maint.links.report import HudiReportLink, report_url


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/lake/my trips/r.html", "file:///lake/my%20trips/r.html"),
        ("s3://lake/r.html", "s3://lake/r.html"),
        ("https://lake/r.html", "https://lake/r.html"),
    ],
)
def test_a_report_has_an_address(path: str, url: str) -> None:
    """A local path becomes a URL, and a URL stays one."""
    assert report_url(path) == url


def test_a_task_without_a_report_has_no_link() -> None:
    """A task that failed before it wrote one leaves the link empty."""
    link = HudiReportLink()
    key: Any = None
    assert link.get_link(SimpleNamespace(report_path=None), ti_key=key) == ""  # type: ignore[arg-type]
    assert link.get_link(SimpleNamespace(report_path="/r.json"), ti_key=key) == "file:///r.json"  # type: ignore[arg-type]
