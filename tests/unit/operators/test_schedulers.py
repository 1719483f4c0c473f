"""The way in which an operator's plan reaches the timeline."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi_maint.core.maintenance import open_workspace
from airflow_hudi_maint.core.model.scheduler import PlanOwner
from airflow_hudi_maint.operators.clustering import HudiScheduleClusteringOperator
from tests.airflow.fakes import FakeTaskInstance, context
from tests.airflow.tables import TableBuilder

SIZES = {"target_file_bytes": 1024**2, "small_file_bytes": 64 * 1024, "max_group_bytes": 2 * 1024**2}


def small_days(base_path: str) -> TableBuilder:
    """Two days of two small files each."""
    table = TableBuilder(base_path=base_path).create()
    table.commit({"day=2026-11-01": [100, 100], "day=2026-11-02": [100, 100]}, at=datetime(2026, 11, 2, tzinfo=UTC))
    return table


def run(table: TableBuilder, ti: FakeTaskInstance, **arguments: Any) -> dict[str, Any]:
    operator = HudiScheduleClusteringOperator(
        task_id=ti.task_id, hudi_conn_id=None, base_path=table.base_path, **SIZES, **arguments
    )
    return operator.execute(context(ti=ti))


@pytest.mark.parametrize("arguments", [{}, {"scheduler": "native"}, {"scheduler": " Auto "}, {"scheduler": "None"}])
def test_a_quiet_table_gets_its_plan_without_an_engine(arguments: dict[str, str], tmp_path: Path) -> None:
    """By default and by name; the result says the way, and the plan names the task instance."""
    table, ti = small_days(str(tmp_path / "trips")), FakeTaskInstance()
    result = run(table, ti, **arguments)
    again = run(table, ti, **arguments)
    workspace = open_workspace(table.base_path)
    (plan,) = workspace.table.pending_plans(workspace.table.timeline())

    assert ("done", "native", 0.0) == (result["outcome"], result["scheduler"], result["engine_seconds"])
    assert ("already-done", result["instants"]) == (again["outcome"], again["instants"])
    assert PlanOwner.from_metadata(plan.extra_metadata) == PlanOwner(
        dag_id=ti.dag_id, run_id=ti.run_id, task_id=ti.task_id, map_index=-1
    )


def test_an_unknown_scheduler_fails_for_good(tmp_path: Path) -> None:
    """With those that there are."""
    with pytest.raises(AirflowFailException, match="scheduler='spark' is unknown; expected auto, hudi, native"):
        run(small_days(str(tmp_path / "trips")), FakeTaskInstance(), scheduler="spark")


def test_the_scheduler_is_templated() -> None:
    """It can come from a Param."""
    assert "scheduler" in HudiScheduleClusteringOperator.template_fields
