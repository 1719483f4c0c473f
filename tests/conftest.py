"""What all tests share: a home for Airflow that is nobody's own, and how Hypothesis searches."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Importing Airflow is enough to make it write into its home, so its home is set before any test imports anything.
import tests.airflow.environment  # noqa: F401

# On a loaded machine a deadline finds the load. CI looks at the same examples every time, so that red means a change.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


_TOGETHER = ("spark", "airflow")
"""Tests that share what is dear: Spark sessions, and a database of Airflow's."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of each kind on one worker; Spark's are the longest, so they begin first."""
    for item in items:
        kind = next((one for one in _TOGETHER if item.get_closest_marker(one)), None)
        if kind is not None:
            item.add_marker(pytest.mark.xdist_group(kind))
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)
