"""What an execution leaves, by real Spark and Hudi: the layout that was planned, and rows that are verified."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_hudi_maint.core.model.report import StepReport
from airflow_hudi_maint.core.model.verification import Verdict, VerifyMode
from airflow_hudi_maint.operators.cluster import HudiClusterOperator
from tests.airflow.fakes import context
from tests.spark.tables import DAYS
from tests.spark.writer import HudiWriter

pytestmark = pytest.mark.spark

SMALL_FOOTERS = {"hoodie.bloom.index.filter.type": "SIMPLE", "hoodie.index.bloom.num_entries": "100"}
"""As the writer of these tests has it: Hudi's default Bloom filter takes 430 KiB of each file."""
SIDE = 16
FILES = 8
CHECKS = {
    "commit",
    "replaced groups",
    "record count",
    "null counts",
    "schema",
    "record keys",
    "file sizes",
    "metadata partitions",
}


def grid(number: int) -> list[list[object]]:
    """Every eighth point of a square: a file of them spreads over all of both columns.

    Hudi interleaves the bits of the columns from the highest on: here both tell their values apart by these.
    """
    points = [(x, y) for x in range(SIDE) for y in range(SIDE)]
    return [[f"{x}-{y}", DAYS[0], 2.0 ** (64 * x - 512), y << 59] for x, y in points[number::FILES]]


def test_a_z_order_is_one_and_everything_is_verified(writer_of: Callable[[int], HudiWriter], tmp_path: Path) -> None:
    """One task and one application; both columns tell files apart afterwards, where a linear sort leaves one in all."""
    writer = writer_of(9)
    path = tmp_path / "grid"
    for number in range(FILES):
        writer.insert(path, grid(number))
    before = writer.rows(path)
    largest = max(file.stat().st_size for file in path.glob("*/*.parquet"))
    operator = HudiClusterOperator(
        task_id="cluster",
        hudi_conn_id=None,
        base_path=str(path),
        target_file_bytes=2 * largest,
        small_file_bytes=largest + 1,
        max_group_bytes=2 * FILES * largest,
        sort_columns=["value", "ts"],
        layout="zorder",
        scheduler="hudi",
        options=SMALL_FOOTERS,
        verify_keys=True,
    )

    result = operator.execute(context())

    document = json.loads(Path(result["report_path"]).read_text(encoding="utf-8"))
    (verification,) = StepReport.from_json(document, name=result["report_path"]).verification
    assert ("done", VerifyMode.FULL) == (result["outcome"], verification.mode)
    assert CHECKS == {one.name for one in verification.checks}
    assert ((), ()) == (verification.failed, verification.of(Verdict.UNKNOWN))
    assert before == writer.rows(path)
    assert [one.column for one in verification.sorting] == ["value", "ts"]
    assert all(one.files_after >= 4 for one in verification.sorting)
    assert all(one.depth_after < one.files_after - 0.5 for one in verification.sorting)
