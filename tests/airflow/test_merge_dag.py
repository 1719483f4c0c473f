"""The DAG that merges small files of a plain directory, run from the first task to the last."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.airflow.marks import AIRFLOW

if TYPE_CHECKING:
    from airflow.sdk import Param

pytestmark = AIRFLOW

DAYS = ("day=1", "day=2", "day=3")


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """Three days of three files each, an hour old."""
    root = tmp_path / "landing"
    for day in DAYS:
        (root / day).mkdir(parents=True)
        for number in range(3):
            file = root / day / f"{number}.json"
            file.write_text(json.dumps({"row": number}) + "\n")
            os.utime(file, (time.time() - 3600,) * 2)
    return root


def visible(landing: Path) -> int:
    return len(list(landing.glob("day=*/[!.]*.json")))


def states(run: Any) -> list[tuple[str, int, str]]:
    return sorted((ti.task_id, ti.map_index, str(ti.state)) for ti in run.get_task_instances())


def test_directories_are_shared_among_mapped_tasks(dag_bag: Any, landing: Path) -> None:
    dag = dag_bag.dags["merge_small_files"]
    run = dag.test(run_conf={"directory": str(landing), "directories_per_chunk": 2})
    assert states(run) == [
        ("merge", 0, "success"),
        ("merge", 1, "success"),
        ("plan", -1, "success"),
        ("share_out", -1, "success"),
    ]
    assert visible(landing) == 3


def test_a_dry_run_plans_and_merges_nothing(dag_bag: Any, landing: Path) -> None:
    dag = dag_bag.dags["merge_small_files"]
    run = dag.test(run_conf={"directory": str(landing), "dry_run": True})
    assert states(run) == [("merge", 0, "skipped"), ("plan", -1, "success"), ("share_out", -1, "success")]
    assert visible(landing) == 9


def test_every_setting_is_explained_in_the_form(dag_bag: Any) -> None:
    params = dag_bag.dags["merge_small_files"].params
    for name in params:
        param: Param = params.get_param(name)
        assert {"title", "description_md", "section", "type"} <= set(param.schema), name
