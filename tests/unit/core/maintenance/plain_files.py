"""Directories of plain files for tests of merges."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow_hudi_maint.core.maintenance.merge_planning import plan_merge
from airflow_hudi_maint.core.maintenance.merge_workspace import MergeWorkspace, open_merge_workspace
from airflow_hudi_maint.core.maintenance.merging import merge_small_files
from airflow_hudi_maint.core.model.merge_settings import MergeSettings

NOW = datetime.now(tz=UTC) + timedelta(hours=1)
SETTINGS = MergeSettings(csv_header="no")
STATE = ".airflow_hudi_maint"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fill(root: Path, files: Mapping[str, bytes]) -> MergeWorkspace:
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return open_merge_workspace(str(root), log=lambda _: None)


def seen(root: Path) -> dict[str, bytes]:
    """The files, without what is ours; a merged file by the name that its digest stands in."""
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {path: found[path].read_bytes() for path in sorted(found) if not path.startswith(STATE)}


def merge(workspace: MergeWorkspace, settings: MergeSettings = SETTINGS, **options: Any) -> Any:
    return merge_small_files(workspace, now=options.pop("now", NOW), settings=settings, **options).report


def reasons(workspace: MergeWorkspace, settings: MergeSettings = SETTINGS, *, now: datetime = NOW) -> dict[str, str]:
    """Why each file or directory is left alone."""
    plan = plan_merge(workspace, now=now, settings=settings).plan
    found = {
        name: one.reason for directory in plan.directories for one in directory.left_alone for name in one.examples
    }
    return {**found, **{f"{one.path}/": one.reason for one in plan.directories if one.reason}}
