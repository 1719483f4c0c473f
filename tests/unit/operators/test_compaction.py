"""The operators of compaction and of pending plans, on tables that need no engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi_maint.core.errors import PendingActionError
from airflow_hudi_maint.operators.compaction import HudiExecuteCompactionOperator, HudiScheduleCompactionOperator
from airflow_hudi_maint.operators.resolve import HudiResolvePendingOperator
from tests.airflow.fakes import FakeTaskInstance, context
from tests.unit.core.maintenance.merge_on_read import FIRST, plan_compaction, two_days
from tests.unit.core.maintenance.six_days import six_days
from tests.unit.core.storage.builders import TableBuilder, at


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return two_days(tmp_path)


def _run(cls: Any, table: TableBuilder, **arguments: Any) -> dict[str, Any]:
    operator = cls(**{"task_id": "step", "hudi_conn_id": None, "base_path": table.base_path, **arguments})
    result: dict[str, Any] = operator.execute(context(ti=FakeTaskInstance()))
    return result


def _skipped(cls: Any, table: TableBuilder, **arguments: Any) -> str:
    with pytest.raises(AirflowSkipException) as skip:
        _run(cls, table, **arguments)
    return str(skip.value)


def test_a_dry_run_returns_the_plan(table: TableBuilder) -> None:
    """Limits may come as texts of a template; nothing is on the timeline afterwards."""
    result = _run(
        HudiScheduleCompactionOperator,
        table,
        plan_only="true",
        min_log_files="1",
        min_log_ratio="0.05",
        max_input_bytes="",
        partitions=[FIRST],
    )
    assert (result["outcome"], result["partitions"], result["instants"]) == ("dry-run", 1, [])
    assert Path(result["plan_path"]).is_file()
    assert not table.open().timeline().pending


def test_nothing_to_compact_skips_the_task_and_the_next(table: TableBuilder, tmp_path: Path) -> None:
    """Below the limits, and on a copy-on-write table."""
    assert "Nothing to compact" in _skipped(HudiScheduleCompactionOperator, table, min_log_files=2)
    assert "no compaction plan of ours" in _skipped(HudiExecuteCompactionOperator, table, instants="")
    other = six_days(tmp_path / "other")
    assert "copy-on-write" in _skipped(HudiScheduleCompactionOperator, other)
    assert "copy-on-write" in _skipped(HudiExecuteCompactionOperator, other)
    assert "Dry run" in _skipped(HudiExecuteCompactionOperator, table, plan_only=True)


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (HudiScheduleCompactionOperator, {"min_log_ratio": "half"}),
        (HudiScheduleCompactionOperator, {"min_log_files": 0}),
        (HudiScheduleCompactionOperator, {"partitions": []}),
        (HudiExecuteCompactionOperator, {"instants": {"outcome": "done"}}),
        (HudiResolvePendingOperator, {"action": "delete"}),
        (HudiResolvePendingOperator, {"kinds": ["clean"]}),
        (HudiResolvePendingOperator, {"made_by": "me"}),
        (HudiResolvePendingOperator, {"older_than": -1}),
    ],
)
def test_wrong_arguments_fail_without_a_retry(table: TableBuilder, cls: Any, arguments: dict[str, Any]) -> None:
    """The message names the argument."""
    with pytest.raises(AirflowFailException, match=next(iter(arguments))):
        _run(cls, table, **arguments)


def test_resolving_leaves_others_plans_and_says_so(table: TableBuilder) -> None:
    """Unnamed, the task skips itself; named, it fails, and may be tried again."""
    assert "0 pending plans" in _skipped(HudiResolvePendingOperator, table)
    plan_compaction(table, at(30), days=[FIRST])
    assert "1 left alone" in _skipped(HudiResolvePendingOperator, table)
    with pytest.raises(PendingActionError, match="not made by us"):
        _run(HudiResolvePendingOperator, table, instants={"instants": [at(30)]})
    result = _run(HudiResolvePendingOperator, table, made_by="any", action="roll_back", older_than=0, plan_only=True)
    assert (result["outcome"], result["instants"]) == ("dry-run", [at(30)])
