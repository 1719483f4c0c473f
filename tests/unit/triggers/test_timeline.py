"""The triggers, as the triggerer runs them."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk._shared.module_loading import import_string

from airflow_hudi_maint.core.errors import StorageError
from airflow_hudi_maint.triggers import settling
from airflow_hudi_maint.triggers.timeline import HudiCommitTrigger, HudiTableIdleTrigger
from tests.airflow.tables import TableBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.triggers.base import BaseTrigger

YESTERDAY = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    return TableBuilder(base_path=str(tmp_path / "trips"))


def trigger(cls: Any, builder: TableBuilder, **arguments: Any) -> Any:
    defaults = {"hudi_conn_id": None, "base_path": builder.base_path, "poll_interval": 0.01}
    return cls(**{**defaults, **arguments})


async def first_event(waiting: BaseTrigger, *, within: float = 10.0) -> Any:
    async with asyncio.timeout(within):
        return (await anext(waiting.run())).payload


def test_a_trigger_is_made_again_from_what_it_serializes(builder: TableBuilder) -> None:
    """Its arguments survive JSON, and hold the id of a connection instead of its credentials."""
    for waiting in (
        trigger(HudiCommitTrigger, builder, since="20260101000000000", partition="day=1", include_rewrites=True),
        trigger(HudiTableIdleTrigger, builder, quiet_seconds=5.0, hudi_conn_id="hudi_default"),
    ):
        path, arguments = waiting.serialize()
        again = import_string(path)(**json.loads(json.dumps(arguments)))
        assert again.serialize() == (path, arguments)


def test_a_table_that_appears_later_is_found(builder: TableBuilder) -> None:
    """The trigger waits for a table that nobody has written yet."""

    async def scenario() -> Any:
        waiting = asyncio.create_task(first_event(trigger(HudiCommitTrigger, builder)))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        builder.create().commit({"day=1": [10]}, at=YESTERDAY)
        return await waiting

    event = asyncio.run(scenario())
    assert event["status"] == "found"
    assert len(event["result"]["instants"]) == 1
    assert json.loads(json.dumps(event)) == event


def test_an_idle_table_ends_the_wait(builder: TableBuilder) -> None:
    """A table that is quiet for long enough is found at the first look."""
    builder.create().commit({"day=1": [10]}, at=YESTERDAY)
    event = asyncio.run(first_event(trigger(HudiTableIdleTrigger, builder, quiet_seconds=60.0)))
    assert event["result"]["base_path"] == builder.base_path


def test_terminal_errors_end_the_wait(builder: TableBuilder) -> None:
    """A table that can never be read is not looked at for ever."""
    builder.create(hoodie__table__version="5")
    event = asyncio.run(first_event(trigger(HudiCommitTrigger, builder)))
    assert (event["status"], event["terminal"]) == ("error", True)
    assert "table version 5" in event["message"]


class Flaky(HudiCommitTrigger):
    """Fails as often as told before it answers."""

    failures = 3

    def answer(self, table: object) -> dict[str, Any] | None:
        self.failures -= 1
        if self.failures >= 0:
            raise StorageError("503 Slow Down")
        return {"instants": ["1"]}


def test_transient_errors_are_survived_within_bounds(builder: TableBuilder) -> None:
    """Three failures in a row are one too many for a bound of two."""
    builder.create()
    assert asyncio.run(first_event(trigger(Flaky, builder, max_failures=3)))["status"] == "found"
    event = asyncio.run(first_event(trigger(Flaky, builder, max_failures=2)))
    assert (event["status"], event["terminal"]) == ("error", False)
    assert "503" in event["message"]


class Slow(HudiCommitTrigger):
    """Takes half a second in storage."""

    def answer(self, table: object) -> dict[str, Any] | None:
        time.sleep(0.5)
        return {"instants": ["1"]}


def test_the_loop_goes_on_while_storage_is_slow(builder: TableBuilder) -> None:
    """All triggers share a loop: it ticks on while one of them waits for storage."""
    builder.create()

    async def scenario() -> float:
        waiting = asyncio.create_task(first_event(trigger(Slow, builder)))
        longest, last = 0.0, time.monotonic()
        while not waiting.done():
            await asyncio.sleep(0.01)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        assert waiting.result()["status"] == "found"
        return longest

    assert asyncio.run(scenario()) < 0.4


def test_what_is_found_at_once_wakes_its_task_up_a_little_later(
    builder: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow takes a task for lost that runs again before its executor has reported the process that deferred it."""
    monkeypatch.setattr(settling, "SETTLE_SECONDS", 0.3)
    builder.create().commit({"day=1": [10]}, at=YESTERDAY)
    started = time.monotonic()
    assert asyncio.run(first_event(trigger(HudiCommitTrigger, builder)))["status"] == "found"
    assert time.monotonic() - started >= 0.3
