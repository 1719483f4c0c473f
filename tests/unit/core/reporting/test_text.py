"""The summary in a task's log, and numbers as people read them."""

from __future__ import annotations

import doctest
import sys
from datetime import UTC
from pathlib import Path

import pytest

from airflow_hudi_maint.core.model import units
from airflow_hudi_maint.core.model.units import human_bytes, human_change, human_count, human_instant, human_seconds
from airflow_hudi_maint.core.reporting import facts, forecast_chart, history_chart, inks, partition_chart
from airflow_hudi_maint.core.reporting.text import render_text_summary

sys.path.insert(0, str(Path(__file__).parent))
import flights


def test_the_summary_is_a_table_of_figures_and_a_line_per_step() -> None:
    text = render_text_summary(before=flights.BEFORE, after=flights.AFTER, reports=flights.REPORTS[:1])
    assert text.splitlines() == [
        "flights (COPY_ON_WRITE, table version 9)",
        "                                  before              after  change",
        "  partitions                          36                 27   -25 %",
        "  file groups                        144                 27   -81 %",
        "  data files                         144                 27   -81 %",
        "  small files                        144                  0  -100 %",
        "  bytes                           77 MiB             22 MiB   -71 %",
        "  median file                    545 KiB            841 KiB   +54 %",
        "  90 % of files up to            581 KiB            932 KiB   +60 %",
        "  as of                20261130061204117  20261130061533871",
        "",
        "  expire  done  9 partitions dropped; the cleaner reclaims their bytes [20261130061502250] (21.4 s)",
    ]


def test_without_earlier_statistics_there_is_a_dash() -> None:
    lines = render_text_summary(before=None, after=flights.BEFORE, reports=()).splitlines()
    assert lines[2].split() == ["partitions", "–", "36"]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "1 B"),
        (1024, "1 KiB"),
        (10 * 1024 - 1, "10 KiB"),
        (1024**2 - 1, "1 MiB"),
        (128 * 1024**2, "128 MiB"),
        (-1536, "-1.5 KiB"),
        (2**70, "1024 EiB"),
    ],
)
def test_bytes_have_at_most_three_digits_that_matter(count: int, text: str) -> None:
    assert human_bytes(count) == text


def test_counts_are_exact_up_to_ten_million() -> None:
    assert human_count(9_999_999) == "9,999,999"
    assert human_count(10_000_000) == "10.0 million"


def test_changes_below_one_percent_have_a_decimal() -> None:
    assert human_change(1000, 995) == "-0.5 %"


def test_durations_round_to_what_matters() -> None:
    assert human_seconds(59.94) == "59.9 s"
    assert human_seconds(59.97) == "1 min 0 s"
    assert human_seconds(3599.7) == "1 h 0 min"


def test_what_is_no_instant_has_no_moment() -> None:
    assert human_instant("0" * 17, zone=UTC) == ""


@pytest.mark.parametrize("module", [units, facts, partition_chart, forecast_chart, history_chart, inks])
def test_the_examples_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0
