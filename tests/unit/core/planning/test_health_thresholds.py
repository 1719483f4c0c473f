"""Limits from JSON, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.planning.health_thresholds import HealthThresholds, Limits


def test_what_is_left_out_keeps_its_default_and_null_lifts_a_limit() -> None:
    """One key of one signal."""
    given = HealthThresholds.from_json({"archive_files": {"warning": 9}, "last_write_seconds": None})
    assert given.archive_files == Limits(warning=9)
    assert given.last_write_seconds == Limits()
    assert given.pending_write_seconds == HealthThresholds().pending_write_seconds


def test_thresholds_read_back_as_they_were_written() -> None:
    """The defaults, too."""
    assert HealthThresholds.from_json(HealthThresholds().to_json()) == HealthThresholds()


def test_an_unknown_signal_is_refused_with_those_that_come_near() -> None:
    """A typing error never switches an alarm off in silence."""
    with pytest.raises(InvalidSettingError, match="no signal 'small_files_ratio'; did you mean small_file_ratio"):
        HealthThresholds.from_json({"small_files_ratio": {"warning": 0.4}})


def test_a_name_that_comes_near_none_gets_the_list() -> None:
    """All of them."""
    with pytest.raises(InvalidSettingError, match="known are pending_write_seconds, "):
        HealthThresholds.from_json({"xyzzy": None})


@pytest.mark.parametrize(
    "value",
    [
        7,
        [1, 2],
        {"warn": 1},
        {"warning": "1"},
        {"warning": 0},
        {"critical": -1},
        {"warning": True},
        {"warning": float("nan")},
        {"warning": 3, "critical": 2},
    ],
)
def test_wrong_limits_are_refused_by_the_name_of_the_signal(value: Any) -> None:
    """Each with what is wrong."""
    with pytest.raises(InvalidSettingError, match="thresholds: archive_files"):
        HealthThresholds.from_json({"archive_files": value})


def test_limits_that_are_equal_are_critical_at_once() -> None:
    """No warning comes before."""
    assert str(Limits(warning=5, critical=5).judge(5)) == "critical"
