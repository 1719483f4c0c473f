"""The sensor of small files, here and in the triggerer."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_hudi_maint.sensors.small_files import SmallFilesSensor
from airflow_hudi_maint.triggers.small_files import SmallFilesTrigger
from tests.airflow.marks import AIRFLOW
from tests.airflow.tables import TableBuilder

pytestmark = AIRFLOW


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """Three small files and a larger one, beside some that do not count."""
    root = tmp_path / "landing"
    root.mkdir()
    for number in range(3):
        (root / f"{number}.json").write_text("{}\n" * 10)
    (root / "large.json").write_text("{}\n" * 1000)
    (root / "_SUCCESS").touch()
    (root / "notes.txt").write_text("not data")
    return root


def sensor(**arguments: Any) -> SmallFilesSensor:
    return SmallFilesSensor(task_id="wait", **{"hudi_conn_id": None, "small_file_bytes": 100, **arguments})


def test_enough_small_files_are_found_at_once(landing: Path) -> None:
    result = sensor(directory=str(landing), min_small_files=3, deferrable=False).execute({})
    assert result == {
        "root": str(landing),
        "directories": 1,
        "files": 4,
        "small_files": 3,
        "bytes": 3090,
        "small_bytes": 90,
        "ratio": 0.75,
    }


@pytest.mark.parametrize(
    ("thresholds", "found"),
    [
        ({"min_small_files": 4}, False),
        ({"min_ratio": "0.75"}, True),
        ({"min_ratio": 0.8}, False),
        ({"min_small_bytes": 90}, True),
        ({"min_small_files": 3, "min_small_bytes": 91}, False),
    ],
)
def test_every_threshold_that_is_given_must_be_met(landing: Path, thresholds: dict[str, Any], *, found: bool) -> None:
    assert sensor(directory=str(landing), **thresholds).poke({}).is_done is found


def test_a_hudi_table_is_counted_by_its_latest_slices(tmp_path: Path) -> None:
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.create().commit({"day=1": [50, 5000], "day=2": [60]}, at=datetime.now(UTC) - timedelta(days=1))
    result = sensor(base_path=builder.base_path, min_small_files=2, deferrable=False).execute({})
    assert (result["files"], result["small_files"], result["small_bytes"]) == (3, 2, 110)


def test_what_does_not_exist_yet_is_waited_for(tmp_path: Path) -> None:
    for where in ({"directory": str(tmp_path / "no")}, {"base_path": str(tmp_path / "no")}):
        assert sensor(**where, min_small_files=1).poke({}).is_done is False


def test_a_deferred_sensor_goes_on_in_the_triggerer(landing: Path) -> None:
    """The trigger made again from what is stored of it finds what was waited for."""
    with pytest.raises(TaskDeferred) as deferred:
        sensor(directory=str(landing), min_small_files=4, deferrable=True, poke_interval=0.01).execute({})
    path, arguments = deferred.value.trigger.serialize()
    assert path.endswith("SmallFilesTrigger")
    (landing / "4.json").write_text("{}\n")
    event = asyncio.run(anext(SmallFilesTrigger(**arguments).run()))
    assert event.payload["result"]["small_files"] == 4


def test_a_secret_never_lies_in_the_database(landing: Path) -> None:
    waiting = sensor(
        directory=str(landing), min_small_files=9, deferrable=True, storage_options={"key": "a", "secret": "hidden"}
    )
    with pytest.raises(AirflowFailException, match="storage_conn_id") as refused:
        waiting.execute({})
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give one or more of"),
        ({"min_ratio": 1.5}, "from 0 to 1"),
        ({"min_small_files": 0}, "more than 0"),
        ({"min_ratio": "many"}, "is no number"),
        ({"min_small_files": 1, "base_path": "/x"}, "give one of them"),
    ],
)
def test_a_question_without_an_answer_is_refused(landing: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(AirflowFailException, match=message):
        sensor(directory=str(landing), **arguments).poke({})
