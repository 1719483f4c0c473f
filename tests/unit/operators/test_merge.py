"""The operators of plain directories: merging, in chunks too, and undoing."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi_maint.operators.merge import MergeSmallFilesOperator, UndoMergeOperator
from tests.airflow.fakes import context
from tests.airflow.marks import AIRFLOW

pytestmark = AIRFLOW

DAYS = ("day=1", "day=2", "day=3")


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """Three days of four files of JSON lines each, an hour old."""
    root = tmp_path / "landing"
    for day in DAYS:
        (root / day).mkdir(parents=True)
        for number in range(4):
            file = root / day / f"part-{number}.json"
            file.write_text(json.dumps({"day": day, "row": number}) + "\n")
            os.utime(file, (time.time() - 3600,) * 2)
    return root


def merging(landing: Path, **arguments: Any) -> MergeSmallFilesOperator:
    return MergeSmallFilesOperator(task_id="merge", directory=str(landing), **arguments)


def rows(landing: Path) -> dict[str, list[int]]:
    """What a reader finds: the rows of each day, in order."""
    return {
        day: [json.loads(line)["row"] for file in visible(landing, day) for line in file.read_text().splitlines()]
        for day in DAYS
    }


def visible(landing: Path, day: str) -> list[Path]:
    return sorted(one for one in (landing / day).glob("*") if one.is_file() and one.name[0] not in "._")


def test_each_directory_is_merged_for_itself(landing: Path) -> None:
    before = rows(landing)
    result = merging(landing).execute(context())
    assert (result["outcome"], result["files_before"], result["files_after"]) == ("done", 12, 3)
    assert rows(landing) == before
    assert [len(visible(landing, day)) for day in DAYS] == [1, 1, 1]


def test_a_second_run_skips_and_hands_on_why(landing: Path) -> None:
    merging(landing).execute(context())
    ran = context()
    with pytest.raises(AirflowSkipException, match="Nothing to merge"):
        merging(landing).execute(ran)
    assert ran["ti"].pushed["return_value"]["outcome"] == "nothing-to-do"


def test_a_plan_is_carried_out_in_chunks_by_mapped_tasks(landing: Path) -> None:
    before = rows(landing)
    plan = merging(landing, plan_only=True, directories_per_chunk="2").execute(context())
    assert plan["outcome"] == "dry-run"
    assert plan["chunks"] == [{"number": 0, "of": 2}, {"number": 1, "of": 2}]
    assert all(len(visible(landing, day)) == 4 for day in DAYS)
    done = [merging(landing, plan_path=plan, chunk=chunk).execute(context()) for chunk in plan["chunks"]]
    assert [(one["groups"], one["files_before"]) for one in done] == [(2, 8), (1, 4)]
    assert rows(landing) == before
    assert [len(visible(landing, day)) for day in DAYS] == [1, 1, 1]


def test_a_chunk_that_is_run_again_changes_nothing(landing: Path) -> None:
    """A retry: what its forerunner did is seen, and its files are no longer there to be merged."""
    plan = merging(landing, plan_only=True).execute(context())
    merging(landing, plan_path=plan["plan_path"], chunk=plan["chunks"][0]).execute(context())
    before = rows(landing)
    with pytest.raises(AirflowSkipException):
        merging(landing, plan_path=plan["plan_path"], chunk=plan["chunks"][0]).execute(context())
    assert rows(landing) == before


def test_all_chunks_of_a_plan_are_undone_at_once(landing: Path) -> None:
    """Each of them was a run of its own, in the directory that it merged; a second undo finds nothing."""
    before = {day: [one.name for one in visible(landing, day)] for day in DAYS}
    plan = merging(landing, plan_only=True, directories_per_chunk=1).execute(context())
    for chunk in plan["chunks"]:
        merging(landing, plan_path=plan, chunk=chunk).execute(context())
    undo = UndoMergeOperator(task_id="undo", directory=str(landing), plan_path=plan)
    result = undo.execute(context())
    assert (result["action"], result["outcome"], result["message"][:13]) == ("undo", "done", "Undid 3 runs ")
    assert {day: [one.name for one in visible(landing, day)] for day in DAYS} == before
    with pytest.raises(AirflowFailException, match=r"Nothing of .* is in a trash"):
        undo.execute(context())
    both = UndoMergeOperator(task_id="undo", directory=str(landing), plan_path=plan, run="x")
    with pytest.raises(AirflowFailException, match="both given"):
        both.execute(context())


def test_undo_puts_the_inputs_back(landing: Path) -> None:
    before = {day: [one.name for one in visible(landing, day)] for day in DAYS}
    result = merging(landing).execute(context())
    UndoMergeOperator(task_id="undo", directory=str(landing), run=result).execute(context())
    assert {day: [one.name for one in visible(landing, day)] for day in DAYS} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": {"trash_day": 3}}, "trash_days"),
        ({"formats": "avro"}, "formats has 'avro'"),
        ({"target_file_bytes": "10", "small_file_bytes": "20"}, "target_file_bytes=10 is below"),
        ({"chunk": {"number": 0, "of": 1}}, "give plan_path"),
        ({"chunk": {"number": 2, "of": 2}, "plan_path": "x"}, "expected a number from 0 to 1"),
        ({"plan_path": "None"}, "what a template makes of nothing"),
    ],
)
def test_bad_arguments_are_named_and_nothing_is_touched(landing: Path, arguments: Any, message: str) -> None:
    with pytest.raises(AirflowFailException, match=message):
        merging(landing, **arguments).execute(context())
    assert not (landing / ".airflow_hudi_maint").exists()


def test_a_hudi_table_is_refused_with_the_operator_to_use(tmp_path: Path) -> None:
    (tmp_path / "trips" / ".hoodie").mkdir(parents=True)
    (tmp_path / "trips" / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=trips\n")
    with pytest.raises(AirflowFailException, match="HudiCompactSmallFilesOperator"):
        merging(tmp_path / "trips").execute(context())


def test_a_task_that_is_switched_off_reads_nothing(landing: Path) -> None:
    with pytest.raises(AirflowSkipException, match="switched off"):
        merging(landing, enabled="False").execute(context())
    assert not (landing / ".airflow_hudi_maint").exists()
