"""What tests of maintenance share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where a plain directory is to be filled."""
    return tmp_path / "lake"
