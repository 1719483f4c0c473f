"""Instants in local time are read in the zone of the machine, summer time included."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core.model.instant import instant_moment, moment_instant
from airflow_hudi_maint.core.storage.zone import machine_zone
from tests.unit.core.storage.builders import TableBuilder


@pytest.fixture
def set_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set TZ as the environment of a worker may."""

    def setter(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield setter
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("spelling", ["Europe/Berlin", ":Europe/Berlin", "/usr/share/zoneinfo/Europe/Berlin"])
def test_instants_of_both_halves_of_the_year(set_zone: Callable[[str], None], tmp_path: Path, spelling: str) -> None:
    """An instant of summer is two hours ahead of UTC and one of winter is one, whatever today is."""
    if spelling.startswith("/") and not Path(spelling).exists():
        pytest.skip("this machine has no zoneinfo files")
    set_zone(spelling)
    local = TableBuilder(base_path=str(tmp_path), settings={"hoodie.table.timeline.timezone": "LOCAL"}).open()
    for instant, hour in (("20260701120000000", 10), ("20261201120000000", 11)):
        moment = instant_moment(instant, zone=local.zone)
        assert moment == datetime(int(instant[:4]), int(instant[4:6]), 1, hour, tzinfo=UTC)
        assert moment_instant(moment, zone=local.zone) == instant
    assert str(local.zone) == "Europe/Berlin"


@pytest.mark.parametrize("name", ["Nowhere/Atall", "Europe", "/etc/passwd", "/nowhere", "../UTC"])
def test_zone_that_does_not_exist_is_utc(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A JVM with such a TZ stamps in UTC, too."""
    monkeypatch.setenv("TZ", name)
    assert machine_zone() is UTC


def test_machine_without_tz_has_the_zone_of_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without TZ the C library and /etc/localtime tell the same, at any time of the year."""
    monkeypatch.delenv("TZ", raising=False)
    time.tzset()
    zone = machine_zone()
    for month in (1, 7):
        naive = datetime(2026, month, 1)  # noqa: DTZ001 the time on the wall
        assert naive.replace(tzinfo=zone).utcoffset() == naive.astimezone().utcoffset()


def test_table_in_utc_asks_no_machine(set_zone: Callable[[str], None], tmp_path: Path) -> None:
    """The table's own setting wins."""
    set_zone("Europe/Berlin")
    assert TableBuilder(base_path=str(tmp_path)).open().zone is UTC
