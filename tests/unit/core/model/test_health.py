"""What the health document is, and how it is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.health import HealthSignal, Severity, TableHealth, Unit, quantity
from airflow_hudi_maint.core.model.units import human_duration

OLD_WRITE = HealthSignal(
    name="last_write_seconds",
    value=700_000.5,
    unit=Unit.SECONDS,
    severity=Severity.WARNING,
    found="The last write was 8 d ago.",
    advice="Look at the feed.",
    threshold=604_800,
    details=("20261122000000000",),
)
FILES = HealthSignal(name="archive_files", value=3, unit=Unit.COUNT, severity=Severity.OK, found="3 files.")
UNTOLD = HealthSignal(
    name="small_file_ratio",
    value=None,
    unit=Unit.SHARE,
    severity=Severity.UNKNOWN,
    found="No statistics.",
    advice="x|y",
)


def health(*signals: HealthSignal) -> TableHealth:
    return TableHealth(
        base_path="/lake/trips",
        table_name="trips",
        table_version=9,
        table_type="COPY_ON_WRITE",
        as_of_instant="20261130000000000",
        statistics_instant="20261129000000000",
        checked_at="2026-11-30T00:00:00.000+00:00",
        signals=signals,
    )


def test_a_document_reads_back_as_it_was_written() -> None:
    """Through real JSON text."""
    written = health(FILES, OLD_WRITE, UNTOLD)
    assert TableHealth.from_json(json.loads(json.dumps(written.to_json())), name="h.json") == written


def test_the_document_says_severity_and_counts_for_readers_without_this_package() -> None:
    """They need not know how severities are ordered."""
    document = health(FILES, OLD_WRITE, UNTOLD).to_json()
    assert (document["kind"], document["version"], document["severity"]) == ("health", 1, "warning")
    assert document["counts"] == {"ok": 1, "unknown": 1, "warning": 1, "critical": 0}


@pytest.mark.parametrize(
    ("severities", "worst"),
    [((), "ok"), (("ok", "unknown"), "unknown"), (("warning", "unknown"), "warning"), (("critical", "ok"), "critical")],
)
def test_the_worst_signal_decides(severities: tuple[str, ...], worst: str) -> None:
    """Unknown is worse than ok and better than a warning."""
    signals = [replace(FILES, name=f"signal_{n}", severity=Severity(one)) for n, one in enumerate(severities)]
    assert str(health(*signals).severity) == worst


def test_the_worst_comes_first_and_equals_keep_their_order() -> None:
    """So the eye falls on what is to be done."""
    shown = health(FILES, UNTOLD, replace(FILES, name="archive_bytes"), OLD_WRITE)
    assert [row[1] for row in shown.rows()] == [
        "last_write_seconds",
        "small_file_ratio",
        "archive_files",
        "archive_bytes",
    ]
    assert [row[1] for row in shown.rows(only_findings=True)] == ["last_write_seconds", "small_file_ratio"]


def test_text_has_advice_below_what_is_not_ok() -> None:
    """Lines for a log."""
    assert health(FILES, OLD_WRITE).to_text().splitlines() == [
        "trips (COPY_ON_WRITE, table version 9): warning; 1 ok, 1 warning",
        "  warning   last_write_seconds  8 d 2 h  The last write was 8 d ago.",
        "                                         → Look at the feed.",
        "  ok        archive_files             3  3 files.",
    ]


def test_markdown_keeps_bars_apart_from_cells() -> None:
    """A bar in a text would open another column."""
    lines = health(UNTOLD).to_markdown().splitlines()
    assert lines[2] == "| unknown | small_file_ratio | – | – | – | No statistics. | x\\|y |"
    assert lines[0].count("|") == lines[1].count("|") == 8


def test_two_signals_of_one_name_are_refused() -> None:
    """Metrics of one name would overwrite each other."""
    with pytest.raises(ValueError, match="two signals 'archive_files'"):
        health(FILES, FILES)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True])
def test_a_value_that_is_no_number_is_refused(value: float) -> None:
    """JSON has no words for these."""
    with pytest.raises(ValueError, match="health signal 'archive_files' has"):
        replace(FILES, value=value)


@pytest.mark.parametrize(
    "change",
    [{"version": 2}, {"kind": "statistics"}, {"signals": [{}]}, {"signals": ["x"]}, {"signals": None}],
)
def test_a_document_of_another_shape_is_refused_by_name(change: dict[str, Any]) -> None:
    """The name of the file is what the reader can act on."""
    with pytest.raises(CorruptTableError, match=r"h\.json"):
        TableHealth.from_json({**health(FILES).to_json(), **change}, name="h.json")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, Unit.BYTES, "–"),
        (1536, Unit.BYTES, "1.5 KiB"),
        (0.525, Unit.SHARE, "52 %"),
        (45.0, Unit.COUNT, "45"),
        (7.5, Unit.COUNT, "7.5"),
        (90, Unit.SECONDS, "1 min 30 s"),
    ],
)
def test_quantities(value: float | None, unit: Unit, text: str) -> None:
    """Each unit as people read it."""
    assert quantity(value, unit=unit) == text


def test_durations_show_two_units_that_are_neighbours() -> None:
    """A day and five minutes is a day: the hours between would be missed."""
    assert [human_duration(n) for n in (86_700, 86_400 + 3600, 3599, 1.9)] == ["1 d", "1 d 1 h", "59 min 59 s", "1 s"]
