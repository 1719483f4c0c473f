"""The example of a pipeline: a real ingestion, and maintenance after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_hudi_maint.core.storage.table import HudiTable
from tests.airflow.marks import AIRFLOW

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [*AIRFLOW, pytest.mark.spark]


def states(run: Any) -> dict[str, str]:
    return {ti.task_id.removeprefix("hudi_maintenance."): str(ti.state) for ti in run.get_task_instances()}


def test_two_ingestions_leave_small_files_that_the_second_run_merges(
    dag_bag: Any, run_dag: Callable[..., Any], tmp_path: Path
) -> None:
    """After the first run there is one file per partition and nothing to do; after the second there are two."""
    dag, base_path = dag_bag.dags["ingest_then_maintain"], str(tmp_path / "trips")
    first = run_dag(dag, base_path=base_path, rows=300)
    assert (str(first.state), states(first)["execute_clustering"]) == ("success", "skipped")
    second = run_dag(dag, base_path=base_path, rows=300)
    assert (str(second.state), states(second)["execute_clustering"]) == ("success", "success")

    table = HudiTable.open(base_path)
    timeline = table.timeline()
    actions = [str(one.action) for one in timeline.completed]
    assert (actions, timeline.pending) == (["commit", "commit", "replacecommit"], ())
    view = table.view(timeline)
    assert {path: len(view.latest_slices(path)) for path in view.partition_paths} == dict.fromkeys(
        view.partition_paths, 1
    )
    records = [
        stat.records for stats in table.commit_metadata(timeline.completed[-1]).written.values() for stat in stats
    ]
    assert sum(records) == 600
