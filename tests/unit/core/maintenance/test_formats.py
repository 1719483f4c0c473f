"""Tables whose base files are not Parquet: what is done for them, and what is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.engines.base import Engine
from airflow_hudi_maint.core.errors import UnsupportedTableError
from airflow_hudi_maint.core.maintenance import Workspace
from airflow_hudi_maint.core.model.plan import ClusteringSettings
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.statistics import gather_statistics
from tests.unit.core.storage.builders import TableBuilder, at
from tests.unit.core.storage.gathering import NOW, ONE


def _no_engine() -> Engine:
    raise AssertionError("a plan needs no engine")


@pytest.mark.parametrize("planner", [maintenance.plan_clustering, maintenance.plan_small_files])
def test_rewrites_of_orc_files_are_refused_and_statistics_are_not(tmp_path: Path, planner: object) -> None:
    """Clustering and small-file plans name the format; the statistics of the same table count its files."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"), settings={"hoodie.table.base.file.format": "ORC"})
    builder.commit(at(1))
    builder.metafile(ONE)
    for number in (1, 2):
        builder.put(f"{ONE}/f{number}-0_0-1-2_{at(1)}.orc", b"x" * 9)
    table = builder.open()
    workspace = Workspace(table=table, documents=DocumentStore(builder.storage), engine=_no_engine)

    with pytest.raises(UnsupportedTableError, match="base files of format ORC; only tables of Parquet files"):
        planner(workspace, now=NOW, settings=ClusteringSettings())  # type: ignore[operator]
    (row,) = gather_statistics(table, now=NOW).partitions
    assert (row.file_group_count, row.total_bytes) == (2, 18)
