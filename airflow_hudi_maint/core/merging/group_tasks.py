"""What the Spark job ``merge_files`` runs on the executors: some groups of a merge, one after the other.

The order lies beside the staged files. The job's driver reads it and gives each task its part; a task writes its
groups under names of its own attempt, so that a second attempt is in nobody's way, and says what it wrote. Which of
these files are published is decided by the process that asked for the job.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from airflow_hudi_maint.core.errors import HudiMaintError, InvalidSettingError
from airflow_hudi_maint.core.merging.group_writing import write_group, written_to_json
from airflow_hudi_maint.core.model.document import JsonObject
from airflow_hudi_maint.core.model.merge_plan import MergeGroup
from airflow_hudi_maint.core.model.merge_settings import MergeSettings
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.merge_journal import STAGING_FOLDER

ORDER_VERSION = 1


def order_of(
    groups: Mapping[int, MergeGroup], *, settings: MergeSettings, run: str, tasks: Sequence[Sequence[int]]
) -> bytes:
    """The document that asks for these groups, by their numbers; ``tasks`` are the numbers of each task."""
    return json.dumps(
        {
            "version": ORDER_VERSION,
            "run": run,
            "settings": settings.to_json(),
            "tasks": [[{"number": number, "group": groups[number].to_json()} for number in task] for task in tasks],
        }
    ).encode()


def read_order(root: str, path: str, *, storage_options: Mapping[str, object]) -> dict[str, Any]:
    """Read what :func:`order_of` wrote; raises InvalidSettingError for that of another release."""
    with Storage.open(root, storage_options=storage_options) as storage:
        order: dict[str, Any] = json.loads(storage.read_bytes(path))
    if order.get("version") != ORDER_VERSION:
        raise InvalidSettingError(f"{path} has version {order.get('version')!r}; this job reads {ORDER_VERSION}")
    return order


def write_task(
    root: str,
    task: Sequence[Mapping[str, Any]],
    *,
    storage_options: Mapping[str, object],
    settings: Mapping[str, Any],
    run: str,
    attempt: int,
) -> list[JsonObject]:
    """Write the groups of one task, and say of each what was written, or why it was not.

    ``attempt`` is a number that no other attempt of the job has. An error that only this group has is told in its row;
    any other is raised, for Spark to try the task again elsewhere.
    """
    rules = MergeSettings.from_json(settings)
    try:
        storage = Storage.open(root, storage_options=storage_options)
    except HudiMaintError as error:  # the package of that storage is missing here: no other try would find it
        return [_failed(int(one["number"]), error) for one in task]
    with storage:
        return [_row(storage, one, settings=rules, run=run, attempt=attempt) for one in task]


def _row(storage: Storage, asked: Mapping[str, Any], *, settings: MergeSettings, run: str, attempt: int) -> JsonObject:
    started = time.monotonic()
    number = int(asked["number"])
    staged = f"{STAGING_FOLDER}/{run}-{number:06}-{attempt}.staged"
    try:
        group = MergeGroup.from_json(asked["group"])
        written = write_group(storage, group, settings=settings, output=staged, is_elsewhere=True)
    except (HudiMaintError, FileNotFoundError) as error:
        return _failed(number, error)
    seconds = round(time.monotonic() - started, 3)
    return {"number": number, "staged": staged, "seconds": seconds, "written": written_to_json(written)}


def _failed(number: int, error: Exception) -> JsonObject:
    return {"number": number, "error_class": type(error).__name__, "error_message": str(error)}
