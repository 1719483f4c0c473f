"""A binary copy that Hudi would fail on is refused before anything is written, with the reason."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.maintenance import JobControl, StepReported
from airflow_hudi_maint.core.model.plan import ClusteringSettings, ExecutionStrategy
from airflow_hudi_maint.core.model.report import Outcome
from airflow_hudi_maint.core.model.scheduler import Scheduler
from tests.unit.core.maintenance import native
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.fake_hudi import FakeHudi
from tests.unit.core.maintenance.six_days import NOW, workspace_with
from tests.unit.core.storage.builders import TableBuilder, at

COPYING = ClusteringSettings(
    target_file_bytes=1024**2,
    small_file_bytes=64 * 1024,
    max_group_bytes=2 * 1024**2,
    execution_strategy=ExecutionStrategy.BINARY_COPY,
)
FILTER = "org.apache.hudi.bloomfilter"
TYPE = "hoodie_bloom_filter_type_code"
SIMPLE = {FILTER: "x"}
DYNAMIC = {FILTER: "x", TYPE: "DYNAMIC_V0"}


def _file(number: int, footer: Mapping[str, str], *, more: Mapping[str, list[int]] | None = None) -> bytes:
    out = io.BytesIO()
    columns = {"_hoodie_commit_time": [at(1)], "_hoodie_record_key": [str(number)], **(more or {})}
    pq.write_table(pa.table(columns).replace_schema_metadata(dict(footer)), out)
    return out.getvalue()


def _table(path: Path, *files: bytes, table_type: str = "COPY_ON_WRITE") -> TableBuilder:
    table = TableBuilder(base_path=str(path / "trips"), settings={"hoodie.table.type": table_type})
    table.commit(at(1), {"day=1": [(f"file-{number}-0", data) for number, data in enumerate(files)]})
    return table


def _schedule(table: TableBuilder, engine: FakeEngine | None = None) -> StepReported:
    return maintenance.schedule_clustering(
        workspace_with(table, engine or FakeEngine()),
        now=NOW,
        settings=COPYING,
        job=JobControl(),
        scheduler=Scheduler.NATIVE,
    )


def test_simple_bloom_filters_are_refused_when_a_plan_is_made(tmp_path: Path) -> None:
    """Hudi 1.2.0 would die of a null pointer in the middle of the rewrite, and leave the plan inflight."""
    table = _table(tmp_path, _file(1, SIMPLE), _file(2, SIMPLE))
    before = native.names_of(table)

    with pytest.raises(
        InvalidSettingError, match=r"binary_copy would fail on 2 files .*SIMPLE ones.* Take sort_and_size"
    ):
        _schedule(table)

    assert before == native.names_of(table)


@pytest.mark.parametrize(
    "files",
    [
        (_file(1, DYNAMIC), _file(2, DYNAMIC)),
        (_file(1, {}), _file(2, {})),
        (_file(1, SIMPLE), _file(2, DYNAMIC)),
        (_file(1, SIMPLE), _file(2, SIMPLE, more={"tip": [1]})),
    ],
    ids=["typed", "no filter", "two types: Hudi encodes", "two schemas: Hudi encodes"],
)
def test_what_hudi_copies_or_encodes_by_itself_is_planned(tmp_path: Path, files: tuple[bytes, ...]) -> None:
    """Only a plan of which Hudi would copy every file fails."""
    assert Outcome.DONE is _schedule(_table(tmp_path, *files)).report.outcome


def test_a_plan_that_is_pending_is_refused_before_its_execution(tmp_path: Path) -> None:
    """Another release of ours, or Hudi itself, may have made it."""
    table = _table(tmp_path, _file(1, DYNAMIC), _file(2, DYNAMIC))
    engine = FakeEngine(act=FakeHudi(table))
    (instant,) = _schedule(table, engine).report.instants
    view = table.open().view(table.open().timeline(), partitions=["day=1"])
    for one in view.latest_slices("day=1"):
        assert one.base_file
        table.put(f"day=1/{one.base_file.name}", _file(1, SIMPLE))

    with pytest.raises(InvalidSettingError, match=f"Roll clustering plan {instant} back and schedule with sort_and_s"):
        maintenance.execute_clustering(workspace_with(table, engine), now=NOW, job=JobControl(), instants=[instant])

    assert [] == engine.requests


def test_merge_on_read_is_encoded_anyway(tmp_path: Path) -> None:
    """Hudi copies files of copy-on-write tables only."""
    table = _table(tmp_path, _file(1, SIMPLE), _file(2, SIMPLE), table_type="MERGE_ON_READ")
    assert Outcome.DONE is _schedule(table).report.outcome
