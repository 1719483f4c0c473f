"""The sensors: poking, deferring and coming back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred

from airflow_hudi_maint.core.errors import StorageError
from airflow_hudi_maint.sensors.commit import HudiCommitSensor
from airflow_hudi_maint.sensors.idle import HudiTableIdleSensor
from airflow_hudi_maint.triggers.timeline import HudiCommitTrigger, HudiTableIdleTrigger
from tests.airflow.fakes import FakeEvent, context
from tests.airflow.tables import TableBuilder

if TYPE_CHECKING:
    from pathlib import Path

YESTERDAY = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    return TableBuilder(base_path=str(tmp_path / "trips"))


def sensor(cls: Any, builder: TableBuilder, **arguments: Any) -> Any:
    return cls(task_id="wait", hudi_conn_id=None, base_path=builder.base_path, **arguments)


def test_a_commit_that_is_there_is_returned_at_once(builder: TableBuilder) -> None:
    """A deferrable sensor looks once before it pays for the triggerer."""
    instant = builder.create().commit({"day=1": [10]}, at=YESTERDAY)
    result = sensor(HudiCommitSensor, builder, deferrable=True).execute({})
    assert result["instants"] == [instant]
    assert sensor(HudiCommitSensor, builder, deferrable=False).execute({}) == result


def test_a_deferred_sensor_hands_its_question_to_the_trigger(builder: TableBuilder) -> None:
    """Arguments rendered from templates arrive there checked and JSON-native."""
    instant = builder.create().commit({"day=1": [10]}, at=YESTERDAY)
    waiting = sensor(
        HudiCommitSensor, builder, since=instant, include_rewrites="true", deferrable=True, poke_interval=5, timeout=60
    )
    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute({})
    trigger = deferred.value.trigger
    assert isinstance(trigger, HudiCommitTrigger)
    assert trigger.serialize()[1] == {
        "hudi_conn_id": None,
        "base_path": builder.base_path,
        "poll_interval": 5.0,
        "max_failures": 10,
        "since": instant,
        "partition": None,
        "include_rewrites": True,
    }
    assert deferred.value.timeout == timedelta(seconds=60)
    assert deferred.value.method_name == "execute_complete"


def test_since_may_be_the_number_that_native_rendering_makes_of_it(builder: TableBuilder) -> None:
    """With ``render_template_as_native_obj`` an instant arrives as an int."""
    first = builder.create().commit({"day=1": [10]}, at=YESTERDAY)
    second = builder.commit({"day=1": [10]}, at=YESTERDAY + timedelta(hours=1))
    result = sensor(HudiCommitSensor, builder, since=int(first), deferrable=False).execute({})
    assert result["instants"] == [second]


def test_an_outlet_gets_the_result_at_once_and_after_a_deferral(builder: TableBuilder) -> None:
    """The asset event carries what the sensor returns."""
    builder.create().commit({"day=1": [10]}, at=YESTERDAY)
    asset = Asset("trips")
    for deferrable in (True, False):
        event = FakeEvent()
        waiting = sensor(HudiCommitSensor, builder, deferrable=deferrable, outlets=[asset])
        result = waiting.execute(context(outlet_events={asset: event}))
        assert event.extra == result
    event = FakeEvent()
    found = {"status": "found", "result": {"instants": ["1"]}}
    waiting.execute_complete(context(outlet_events={asset: event}), found)
    assert event.extra == {"instants": ["1"]}


def test_a_table_that_does_not_exist_yet_is_waited_for(builder: TableBuilder) -> None:
    """It is no error that nobody has written it."""
    assert not sensor(HudiCommitSensor, builder).poke({})
    assert not sensor(HudiTableIdleSensor, builder).poke({})


def test_a_table_is_idle_after_its_quiet_time(builder: TableBuilder) -> None:
    """The quiet time may be a timedelta, seconds or a rendered text."""
    builder.create().commit({"day=1": [10]}, at=YESTERDAY)
    for quiet_for in (timedelta(hours=20), 20 * 3600, "72000.0"):
        assert sensor(HudiTableIdleSensor, builder, quiet_for=quiet_for).poke({})
    waiting = sensor(HudiTableIdleSensor, builder, quiet_for=timedelta(hours=25), deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute({})
    assert isinstance(deferred.value.trigger, HudiTableIdleTrigger)
    assert deferred.value.trigger.quiet_seconds == 25 * 3600


@pytest.mark.parametrize(
    "arguments", [{"since": "yesterday"}, {"include_rewrites": "perhaps"}, {"partition": "None"}, {"since": True}]
)
def test_wrong_arguments_fail_without_a_retry(builder: TableBuilder, arguments: dict[str, Any]) -> None:
    """They are found before anything is waited for, even when there is no table yet."""
    with pytest.raises(AirflowFailException, match="InvalidSettingError"):
        sensor(HudiCommitSensor, builder, deferrable=True, **arguments).execute({})


def test_transient_errors_are_survived_until_there_are_too_many(builder: TableBuilder) -> None:
    """A storage that fails now and then is no reason to fail; one that always does is."""

    class Failing(HudiCommitSensor):
        def answer(self, table: object) -> Any:
            raise StorageError("503 Slow Down")

    builder.create()
    waiting = sensor(Failing, builder, max_failures=2)
    assert not waiting.poke({})
    assert not waiting.poke({})
    with pytest.raises(StorageError, match="503"):
        waiting.poke({})


def test_the_trigger_s_event_becomes_the_result_or_an_error(builder: TableBuilder) -> None:
    """A terminal error takes no retry, another one does."""
    waiting = sensor(HudiCommitSensor, builder)
    assert waiting.execute_complete({}, {"status": "found", "result": {"instants": ["1"]}}) == {"instants": ["1"]}
    with pytest.raises(AirflowFailException, match="no base path"):
        waiting.execute_complete({}, {"status": "error", "terminal": True, "message": "no base path"})
    with pytest.raises(AirflowException, match="503") as raised:
        waiting.execute_complete({}, {"status": "error", "terminal": False, "message": "503"})
    assert not isinstance(raised.value, AirflowFailException)
