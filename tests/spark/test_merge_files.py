"""Plain files merged by one real Spark job: the same bytes as this process alone would write."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_hudi_maint.core.engines.local import LocalSparkEngine
from airflow_hudi_maint.core.maintenance import JobControl, SparkMerging, merge_small_files, open_merge_workspace
from airflow_hudi_maint.core.model.job import JobHandle
from airflow_hudi_maint.core.model.merge_settings import MergeSettings

pytestmark = pytest.mark.spark

SETTINGS = MergeSettings(target_file_bytes=64 * 1024, small_file_bytes=32 * 1024, csv_header="yes")


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """Two directories of Parquet, with int96, metadata and a column that some lack, and one of CSV; an hour old."""
    root = tmp_path / "o'landing 100%" / "orders"
    for day in (1, 2):
        (root / f"day={day}").mkdir(parents=True)
        for number in range(4):
            columns: dict[str, object] = {
                "id": pa.array(range(number * 500, number * 500 + 500)),
                "at": pa.array([datetime(2026, 11, day, number, tzinfo=UTC)] * 500, pa.timestamp("ns", "UTC")),
            }
            if number:
                columns["city"] = pa.array(["Ōsaka", None, "Köln", "Oslo"] * 125).dictionary_encode()
            table = pa.table(columns).replace_schema_metadata({"writer": f"v{day}"})
            pq.write_table(table, root / f"day={day}" / f"part-{number}.parquet", use_deprecated_int96_timestamps=True)
    (root / "raw").mkdir()
    for number in range(5):
        (root / "raw" / f"{number}.csv").write_text(f'id,"na,me"\n{number},"a\nb"\n', encoding="utf-8")
    for file in root.rglob("*.*"):
        os.utime(file, (time.time() - 3600,) * 2)
    return root


def contents(root: Path) -> dict[str, bytes]:
    """What readers find, by the directory."""
    return {
        f"{path.relative_to(root)}": path.read_bytes()
        for path in sorted(root.rglob("[!._]*.*"))
        if path.is_file() and ".airflow_hudi_maint" not in path.parts
    }


def test_one_job_writes_what_this_process_would_write_byte_for_byte(landing: Path, tmp_path: Path) -> None:
    """Order, types, int96 and metadata included; nothing staged is left, and a second run starts no job."""
    twin = tmp_path / "twin"
    shutil.copytree(landing, twin)
    now, handles = datetime.now(tz=UTC), list[JobHandle]()
    spark = SparkMerging(
        engine=lambda: LocalSparkEngine(master="local[2]", driver_memory="1g"),
        job=JobControl(on_submitted=handles.append, timeout_seconds=240),
    )
    workspace = open_merge_workspace(str(landing))
    report = merge_small_files(workspace, now=now, settings=SETTINGS, spark=spark).report
    alone = merge_small_files(open_merge_workspace(str(twin)), now=now, settings=SETTINGS).report
    assert (3, 13, 3) == (len(report.groups), report.files_before, report.files_after)
    assert [(one.rows, one.method, one.notes) for one in alone.groups] == [
        (one.rows, one.method, one.notes) for one in report.groups
    ]
    assert contents(twin) == contents(landing)
    assert not list((landing / ".airflow_hudi_maint" / "staging").glob("*"))
    again = merge_small_files(workspace, now=now, settings=SETTINGS, spark=spark).report
    assert ("nothing-to-do", 1) == (str(again.outcome), len(handles))
