"""Diagnose a table's small files, and foretell what an insert makes; no engine is started."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.sizing import (
    INDEX_TYPE,
    SIZING_KEYS,
    EstimatorRule,
    SizingSettings,
    release_of_table,
)
from airflow_hudi_maint.core.planning.sizing import predict_inserts
from airflow_hudi_maint.core.planning.sizing_estimate import average_record_size
from airflow_hudi_maint.core.planning.small_file_cures import CURE_SETTINGS
from airflow_hudi_maint.core.planning.small_file_diagnosis import DiagnosisFacts
from airflow_hudi_maint.core.planning.small_file_diagnosis import diagnose_small_files as diagnose
from airflow_hudi_maint.core.storage.changes import watermark_of
from airflow_hudi_maint.core.storage.sizing import commit_sizes, partition_files, sampled_files

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.diagnosis import SmallFileDiagnosis
    from airflow_hudi_maint.core.model.file_slice import FileSlice
    from airflow_hudi_maint.core.model.sizing import InsertPrediction
    from airflow_hudi_maint.core.storage.table import TableView

_SAMPLED_FILES = 8
_PRINTED_PARTITIONS = 20


@dataclass(frozen=True, kw_only=True)
class DiagnosedSmallFiles:
    """What was found about a table's small files, and the file that holds it."""

    diagnosis: SmallFileDiagnosis
    path: str


def diagnose_small_files(
    workspace: Workspace,
    *,
    now: datetime,
    partitions: Collection[str] | None = None,
    small_file_bytes: int | None = None,
    writer_options: Mapping[str, str] | None = None,
    hudi_version: str | None = None,
) -> DiagnosedSmallFiles:
    """Find out how many small files each partition has and why, and write it as a document; changes nothing else.

    ``writer_options`` are those of the pipeline that writes the table, which Hudi stores nowhere; they go over the
    workspace's write options. ``hudi_version`` is the pipeline's release, by default the one that goes with the table's
    version. ``small_file_bytes`` is by default the writer's small-file limit, and Hudi's default where that is 0.

    Raises UnknownPartitionError, and InvalidSettingError for options that no writer can have or that a bucket index
    decides.
    """
    if small_file_bytes is not None and small_file_bytes < 1:
        raise InvalidSettingError(f"small_file_bytes={small_file_bytes}; expected at least 1, or None for the writer's")
    table = workspace.table
    timeline = table.timeline()
    view = table.view(timeline, partitions=partitions)
    if partitions is not None:
        table.check_partitions(partitions, known=view.partition_paths)
    slices = view.slices_with_data(named=partitions)
    writes = timeline.completed_writes
    facts = DiagnosisFacts(
        basis=workspace.basis(watermark_of(timeline), now=now),
        hudi_version=hudi_version or release_of_table(table.config.table_version),
        is_merge_on_read=table.config.is_merge_on_read,
        slices=slices,
        writes=tuple(zip(writes, table.commit_metadata_of(writes), strict=True)),
        given=_given(workspace, writer_options),
        partition_fields=table.config.partitions.fields,
    )
    limit = small_file_bytes or facts.settings.small_file_bytes or SizingSettings.small_file_bytes
    samples = sampled_files(table, _to_sample(slices, small_file_bytes=limit))
    found = diagnose(facts.sampled(samples), small_file_bytes=limit)
    path = workspace.documents.write_kept(
        "diagnoses", stem=f"{found.basis.base_instant}-small-files", document=found.to_json()
    )
    workspace.log(f"Small files of {table.config.name} as of {found.basis.base_instant}: {found.describe()}")
    for line in (*_table(found), *found.lines()):
        workspace.log(line)
    return DiagnosedSmallFiles(diagnosis=found, path=path)


def predict_insert(
    workspace: Workspace,
    *,
    partition: str,
    inserts: int,
    operation: str = "insert",
    writer_options: Mapping[str, str] | None = None,
    hudi_version: str | None = None,
) -> InsertPrediction:
    """Say which file groups of a partition grow by the next insert, and how many new ones there will be.

    A partition that the table does not have yet is taken for an empty one. Raises as :func:`diagnose_small_files` does.
    """
    table = workspace.table
    timeline = table.timeline()
    settings = SizingSettings.from_options(_given(workspace, writer_options))
    rule = EstimatorRule.of_release(hudi_version or release_of_table(table.config.table_version))
    view: TableView = table.view(timeline, partitions=[partition])
    return predict_inserts(
        partition_files(view, partition),
        inserts=inserts,
        settings=settings,
        average=average_record_size(commit_sizes(table, timeline), settings=settings, rule=rule),
        is_merge_on_read=table.config.is_merge_on_read,
        operation=operation,
    )


def _given(workspace: Workspace, writer_options: Mapping[str, str] | None) -> dict[str, str]:
    """What is known of the writers' options: those of the call over the workspace's over the table's properties."""
    known = {*SIZING_KEYS, *CURE_SETTINGS, INDEX_TYPE}
    stored = {key: value for key, value in workspace.table.config.properties.items() if key in known}
    return {**stored, **workspace.write_options, **(writer_options or {})}


def _to_sample(slices: Mapping[str, tuple[FileSlice, ...]], *, small_file_bytes: int) -> list[FileSlice]:
    """The smallest file of each of the partitions with most small files."""
    small = [[one for one in found if one.base_file and one.base_bytes < small_file_bytes] for found in slices.values()]
    worst = sorted((found for found in small if found), key=len, reverse=True)[:_SAMPLED_FILES]
    return [min(found, key=lambda one: one.base_bytes) for found in worst]


def _table(found: SmallFileDiagnosis) -> list[str]:
    from airflow_hudi_maint.core.model.diagnosis import PARTITION_HEADINGS

    rows = [PARTITION_HEADINGS, *found.rows(most=_PRINTED_PARTITIONS)]
    if len(rows) == 1:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(PARTITION_HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    left = len(found.worst_first) - _PRINTED_PARTITIONS
    return [*lines, f"and {left:,} more partitions"] if left > 0 else lines
