"""Clustering in one task, settings from a file, and what an execution may be told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.operators.cluster import HudiClusterOperator
from airflow_hudi_maint.operators.clustering import HudiExecuteClusteringOperator, HudiScheduleClusteringOperator
from tests.airflow.fakes import context
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.fake_hudi import DAYS, FakeHudi, three_days_of_rows
from tests.unit.core.storage.builders import TableBuilder

SIZES = {"target_file_bytes": 1024**2, "small_file_bytes": 64 * 1024, "max_group_bytes": 2 * 1024**2}
FILE = """\
hoodie.clustering.async.enabled=true
hoodie.clustering.plan.strategy.target.file.max.bytes=1048576
hoodie.clustering.plan.strategy.small.file.limit=65536
hoodie.clustering.plan.strategy.max.bytes.per.group=2097152
hoodie.clustering.plan.strategy.sort.columns=fare
hoodie.clustering.max.parallelism=3
hoodie.memory.merge.max.size=1000
"""


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return three_days_of_rows(str(tmp_path / "trips"))


def _operator(cls: Any, table: TableBuilder, engine: FakeEngine, **arguments: Any) -> Any:
    """An operator on a table whose engine is a fake; the hook that made it is kept."""

    class Faked(cls):  # type: ignore[misc]
        def make_engine(self, hook: HudiHook) -> Any:
            cls.make_engine(self, hook)
            self.made_by = hook
            return engine

    return Faked(task_id="step", hudi_conn_id=None, base_path=table.base_path, **arguments)


def test_one_task_schedules_executes_and_verifies(table: TableBuilder) -> None:
    """The result is that of a step; a second run has nothing to do and skips itself."""
    engine = FakeEngine(act=FakeHudi(table))
    result = _operator(HudiClusterOperator, table, engine, **SIZES).execute(context())

    assert ("cluster", "done", 3, 6, 3) == (
        result["step"],
        result["outcome"],
        result["partitions"],
        result["files_before"],
        result["files_after"],
    )
    assert Path(result["report_path"]).is_file()
    with pytest.raises(AirflowSkipException, match="Nothing to cluster"):
        _operator(HudiClusterOperator, table, engine, **SIZES).execute(context())
    assert 1 == len(engine.requests)


def test_a_settings_file_counts_and_arguments_win_over_it(table: TableBuilder, tmp_path: Path) -> None:
    """Sizes and columns become the plan's, other keys go with the job, and an argument has the last word."""
    file = tmp_path / "job.properties"
    file.write_text(FILE, encoding="utf-8")
    engine = FakeEngine(act=FakeHudi(table))
    arguments = {"settings_file": f"file://{file}", "sort_columns": ["trip_id"], "parallelism": "5"}

    _operator(HudiClusterOperator, table, engine, scheduler="hudi", **arguments).execute(context())

    asked = engine.requests[0].arguments
    assert ["trip_id"] == asked["sort_columns"]
    options = asked["execute_options"]
    assert {
        "hoodie.clustering.max.parallelism": "5",
        "hoodie.memory.merge.max.size": "1000",
        "hoodie.clustering.plan.strategy.sort.columns": "trip_id",
        "hoodie.clustering.plan.strategy.target.file.max.bytes": "1048576",
    }.items() <= options.items()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"settings_file": "/nowhere/job.properties"}, "There is no properties file at /nowhere/job.properties"),
        ({"settings_file": "None"}, "settings_file='None' is what a template makes of nothing"),
        ({"verify": "some"}, "verify='some' is unknown; known are auto, full, sample, timeline"),
        ({"verify_files": 0}, "verify_files=0 is too small"),
        ({"verify": "timeline", "verify_keys": True}, "leave one of them out"),
        ({"parallelism": "many"}, "parallelism='many' is no whole number"),
        ({"options": {"hoodie.table.name": "x"}}, "hoodie.table.name' is set by the job itself"),
        ({"options": {"hoodie.x": [1]}}, "options.hoodie.x=.1. is no text"),
        ({"layout": "spiral"}, "layout='spiral' is unknown"),
    ],
)
def test_a_wrong_argument_fails_without_a_retry(table: TableBuilder, arguments: dict[str, Any], words: str) -> None:
    """The message has the argument's name, and nothing was started or scheduled."""
    engine = FakeEngine()
    scheduled = _operator(HudiScheduleClusteringOperator, table, engine, **SIZES).execute(context())
    with pytest.raises(AirflowFailException, match=words):
        _operator(HudiExecuteClusteringOperator, table, engine, **arguments).execute(context())
    assert [] == engine.requests
    pending = [one.requested_time for one in table.open().timeline().pending]
    assert scheduled["instants"] == pending


def test_the_line_of_a_wrong_setting_is_named(table: TableBuilder, tmp_path: Path) -> None:
    """File, line, key and value."""
    file = tmp_path / "job.properties"
    file.write_text("# sizes\nhoodie.clustering.plan.strategy.small.file.limit=300 MB\n", encoding="utf-8")
    with pytest.raises(AirflowFailException, match=r"job.properties, line 2: .*small.file.limit=300 MB is no whole"):
        _operator(HudiClusterOperator, table, FakeEngine(), settings_file=str(file)).execute(context())


def test_the_result_of_a_step_on_another_table_is_refused(table: TableBuilder) -> None:
    """An instant alone does not say whose it is, and another table may have one of the same time."""
    other = {"instants": ["20261130100000000"], "base_path": "/lake/other"}
    with pytest.raises(AirflowFailException, match="is the result of a step on /lake/other, and this table is"):
        _operator(HudiExecuteClusteringOperator, table, FakeEngine(), instants=other).execute(context())


def test_a_schedule_is_executed_by_its_result_with_the_memory_asked_for(table: TableBuilder) -> None:
    """The memory of the task goes over that of the connection."""
    engine = FakeEngine(act=FakeHudi(table))
    scheduled = _operator(HudiScheduleClusteringOperator, table, engine, **SIZES, partitions=DAYS[:1]).execute(
        context()
    )
    operator = _operator(
        HudiExecuteClusteringOperator, table, engine, instants=scheduled, driver_memory="3g", verify_keys="true"
    )

    result = operator.execute(context())

    assert ("done", scheduled["instants"]) == (result["outcome"], result["instants"])
    assert "3g" == operator.made_by.settings.driver_memory


@pytest.mark.parametrize("cls", [HudiClusterOperator, HudiExecuteClusteringOperator])
def test_every_template_field_is_an_argument(cls: Any) -> None:
    """Mapping a task over a field and rendering it need both."""
    operator = cls(task_id="step", **dict.fromkeys(cls.template_fields))
    assert [] == [name for name in cls.template_fields if not hasattr(operator, name)]
