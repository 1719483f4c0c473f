"""The sensor of pending plans: poking, deferring and what it says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskDeferred

from airflow_hudi_maint.core.maintenance import open_workspace
from airflow_hudi_maint.hooks.pending import PendingQuestion, pending_answer
from airflow_hudi_maint.sensors.pending import HudiPendingPlanSensor
from airflow_hudi_maint.triggers.timeline import HudiPendingPlanTrigger
from tests.unit.core.maintenance.merge_on_read import FIRST, SECOND, plan_clustering, plan_compaction, two_days
from tests.unit.core.storage.builders import TableBuilder, at

YEARS = 10 * 365 * 24 * 3600


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return two_days(tmp_path)


def _sensor(table: TableBuilder, **arguments: Any) -> HudiPendingPlanSensor:
    return HudiPendingPlanSensor(task_id="wait", hudi_conn_id=None, base_path=table.base_path, **arguments)


def test_without_a_pending_plan_there_is_nothing_to_wait_for(table: TableBuilder) -> None:
    """A pending write is no plan."""
    table.put(f"{table.timeline_folder}/{at(20)}.deltacommit.inflight", b"")
    for deferrable in (True, False):
        result = _sensor(table, deferrable=deferrable).execute({})
        assert result == {"base_path": table.base_path, "instants": [], "plans": []}


def test_each_look_says_which_plan_is_waited_for(table: TableBuilder) -> None:
    """With its age and whose it is."""
    plan_compaction(table, at(30), days=[FIRST])
    said: list[str] = []
    workspace = open_workspace(table.base_path)
    moment = datetime(2026, 12, 1, tzinfo=UTC)
    pending_answer(workspace, PendingQuestion(), now=moment, say=lambda text, *given: said.append(text % given))
    assert said == [
        f"Waiting for 1 pending plan(s) of {table.base_path}: compaction {at(30)} (requested, 13 h 59 min old, other)"
    ]


@pytest.mark.parametrize(
    ("arguments", "counts"),
    [
        ({}, True),
        ({"kinds": "compaction"}, True),
        ({"kinds": '["clustering", "logcompaction"]'}, False),
        ({"partitions": [FIRST]}, True),
        ({"partitions": SECOND}, False),
        ({"older_than": YEARS}, False),
        ({"made_by": "ours"}, False),
    ],
)
def test_only_the_plans_that_are_meant_count(table: TableBuilder, arguments: dict[str, Any], counts: bool) -> None:  # noqa: FBT001
    """By kind, partition, age and maker; the same question waits for one to appear."""
    plan_compaction(table, at(30), days=[FIRST])
    assert bool(_sensor(table, **arguments).poke({})) is not counts
    waiting = _sensor(table, wait_for="some", **arguments).poke({})
    assert bool(waiting) is counts
    if counts:
        assert waiting.xcom_value is not None
        assert waiting.xcom_value["instants"] == [at(30)]
        assert waiting.xcom_value["plans"][0]["kind"] == "compaction"


def test_a_deferred_sensor_hands_its_question_on(table: TableBuilder) -> None:
    """As JSON, from which the trigger makes the same question again."""
    plan_clustering(table, at(30), day=FIRST)
    with pytest.raises(TaskDeferred) as deferred:
        _sensor(table, deferrable=True, kinds=["clustering"], older_than="60", made_by="any").execute({})
    trigger = deferred.value.trigger
    assert isinstance(trigger, HudiPendingPlanTrigger)
    arguments = trigger.serialize()[1]
    question = PendingQuestion(kinds=("clustering",), older_than_seconds=60.0)
    assert PendingQuestion.from_json(arguments["question"]) == question
    assert HudiPendingPlanTrigger(**arguments).serialize() == trigger.serialize()


@pytest.mark.parametrize(
    "arguments",
    [{"wait_for": "all"}, {"kinds": "vacuum"}, {"made_by": "me"}, {"older_than": "long"}, {"partitions": "None"}],
)
def test_wrong_arguments_fail_without_a_retry(table: TableBuilder, arguments: dict[str, Any]) -> None:
    """Before anything is waited for."""
    with pytest.raises(AirflowFailException, match=next(iter(arguments))):
        _sensor(table, deferrable=True, **arguments).execute({})


def test_a_sensor_that_is_switched_off_skips_itself(tmp_path: Path) -> None:
    """There is not even a table."""
    sensor = HudiPendingPlanSensor(
        task_id="wait", hudi_conn_id=None, base_path=str(tmp_path / "nothing"), enabled="False"
    )
    with pytest.raises(AirflowSkipException, match="switched off"):
        sensor.execute({})
