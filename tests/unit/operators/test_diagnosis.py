"""The operators that diagnose and compact small files, on tables that need no engine."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi_maint.operators.diagnosis import HudiDiagnoseSmallFilesOperator
from airflow_hudi_maint.operators.small_files import HudiCompactSmallFilesOperator
from tests.airflow.fakes import context
from tests.airflow.tables import TableBuilder


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Two bulk inserts of many files, a day ago and an hour ago."""
    builder = TableBuilder(base_path=str(tmp_path / "trips")).create()
    for day, hours in (("day=1", 24), ("day=2", 1)):
        builder.commit({day: [1000] * 4}, at=datetime.now(UTC) - timedelta(hours=hours), operation="BULK_INSERT")
    return builder


def run(operator: type[Any], table: TableBuilder, **arguments: Any) -> dict[str, Any]:
    made = operator(**{"task_id": "step", "hudi_conn_id": None, "base_path": table.base_path, **arguments})
    result: dict[str, Any] = made.execute(context())
    assert json.loads(json.dumps(result)) == result, "results are JSON-native"
    return result


def test_a_diagnosis_hands_on_causes_and_cures(table: TableBuilder, capsys: pytest.CaptureFixture[str]) -> None:
    """The table and the findings are in the log, the whole document where the result says."""
    result = run(HudiDiagnoseSmallFilesOperator, table)
    assert (result["partitions"], result["small_files"], result["wasted_opens"]) == (2, 8, 6)
    assert result["causes"] == ["bulk-insert-parallelism", "micro-partition"]
    assert result["cures"]["hoodie.bulkinsert.sort.mode"] == "GLOBAL_SORT"
    document = json.loads(Path(result["diagnosis_path"]).read_text())
    assert document["kind"] == "small-file-diagnosis"
    log = capsys.readouterr().out
    assert "made 4 files of 3.9 KiB in all, where 1 would do" in log
    assert "wasted opens" in log


def test_writer_options_are_taken_as_json_and_over_the_defaults(table: TableBuilder) -> None:
    """With a limit below their size the files are not small, and the task skips."""
    with pytest.raises(AirflowSkipException, match="no small file"):
        run(HudiDiagnoseSmallFilesOperator, table, writer_options='{"hoodie.parquet.small.file.limit": 500}')
    result = run(HudiDiagnoseSmallFilesOperator, table, small_file_bytes="2000", partitions="day=1")
    assert (result["partitions"], result["small_files"]) == (1, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"writer_options": {"hoodie.index.type": "BUCKET"}}, "num.buckets"),
        ({"hudi_version": "latest"}, "no release of Hudi"),
        ({"partitions": ["day=9"]}, "has no partition 'day=9'"),
    ],
)
def test_what_cannot_be_diagnosed_fails_without_a_retry(
    table: TableBuilder, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message):
        run(HudiDiagnoseSmallFilesOperator, table, **arguments)


def test_compaction_takes_cold_partitions_within_a_budget(table: TableBuilder) -> None:
    sizes = {"target_file_bytes": 10000, "small_file_bytes": 5000, "max_group_bytes": 20000, "plan_only": True}
    for limits, chosen in (
        ({}, 2),
        ({"min_idle": timedelta(hours=12)}, 1),
        ({"min_idle": "7200"}, 1),
        ({"max_bytes": "4000"}, 1),
        ({"min_idle": timedelta(days=3)}, 0),
    ):
        assert run(HudiCompactSmallFilesOperator, table, **sizes, **limits)["partitions"] == chosen


def test_how_small_files_are_rewritten_is_one_of_three_words(table: TableBuilder) -> None:
    """A sort is what clustering is for."""
    with pytest.raises(AirflowFailException, match="rewritten by auto, sort_and_size or binary_copy"):
        run(HudiCompactSmallFilesOperator, table, execution_strategy="single_file_sort", plan_only=True)
