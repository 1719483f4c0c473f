"""What tests of storage share: where a table lies, and its version."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(params=["file", "memory"])
def base_path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "trips") if request.param == "file" else f"memory://{tmp_path.name}/trips"


@pytest.fixture(params=[6, 9])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)
