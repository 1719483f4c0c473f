"""Where documents may lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.maintenance.workspace import open_workspace
from tests.unit.core.storage.builders import TableBuilder


@pytest.mark.parametrize("location", ["{}", "{}/day=2026-11-01", "file://{}/./documents"])
def test_documents_among_the_data_of_their_table_are_refused(location: str, tmp_path: Path) -> None:
    """Each listing of the table would go through them."""
    base_path = TableBuilder(base_path=str(tmp_path / "trips")).storage.root
    with pytest.raises(InvalidSettingError, match=f"lies in the table {base_path}, where only data belongs"):
        open_workspace(base_path, documents_location=location.format(base_path))


def test_documents_in_another_table_are_refused(tmp_path: Path) -> None:
    """A base path in the wrong field."""
    base_path = TableBuilder(base_path=str(tmp_path / "trips")).storage.root
    other = TableBuilder(base_path=str(tmp_path / "trips2")).storage.root
    with pytest.raises(InvalidSettingError, match="is the base path of a table, where only data belongs"):
        open_workspace(base_path, documents_location=other)


@pytest.mark.parametrize("location", ["trips2", "trips/.hoodie/documents", "trips-documents"])
def test_documents_beside_the_data_are_kept(location: str, tmp_path: Path) -> None:
    """A name that begins with the table's is another place."""
    base_path = TableBuilder(base_path=str(tmp_path / "trips")).storage.root
    workspace = open_workspace(base_path, documents_location=str(tmp_path / location))
    assert workspace.documents.location.startswith(f"{tmp_path / location}/trips-")
