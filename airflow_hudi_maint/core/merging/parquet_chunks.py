"""Copy row groups of a file as they are: its footer is read, its column chunks are copied as bytes."""

from __future__ import annotations

from typing import BinaryIO

from airflow_hudi_maint.core.errors import UnreadableFileError
from airflow_hudi_maint.core.merging.parquet_assembly import ParquetAssembly
from airflow_hudi_maint.core.merging.parquet_decode import BrokenInputError
from airflow_hudi_maint.core.merging.parquet_footer import (
    COLUMN_ORDERS,
    ROW_COUNT,
    footer_of,
    is_encrypted,
    number,
    parse_footer,
    row_groups,
)
from airflow_hudi_maint.core.merging.parquet_sources import FileSource
from airflow_hudi_maint.core.merging.parquet_steps import Step
from airflow_hudi_maint.core.merging.parquet_survey import Survey
from airflow_hudi_maint.core.merging.thrift_compact import Struct
from airflow_hudi_maint.core.storage.filesystem import Storage


class NotCopyableError(Exception):
    """A file has something that does not survive a copy into another file; the text says what."""


def copy_step(storage: Storage, *, step: Step, survey: Survey, assembly: ParquetAssembly) -> None:
    """Append the row groups of a step, which are all of one file.

    Raises BrokenInputError for a footer that is not the one of before or points outside of its file, and
    NotCopyableError.
    """
    file = survey.files[step.groups[0].file]
    name = storage.join(file.path)
    with storage.open_input(file.path) as opened:
        try:
            groups, data_ends_at = _groups(opened, step=step, survey=survey, name=name)
            assembly.append(FileSource(file=opened, name=name, data_ends_at=data_ends_at), groups)
        except UnreadableFileError as error:
            raise BrokenInputError(str(error), path=file.path) from error


def _groups(opened: BinaryIO, *, step: Step, survey: Survey, name: str) -> tuple[list[Struct], int]:
    """The row groups of a step, and where the data of its file ends."""
    file = survey.files[step.groups[0].file]
    footer_bytes = footer_of(opened, name=name)
    footer = parse_footer(footer_bytes.data, name=name)
    is_known = footer_bytes.data.startswith(survey.schemas[file.schema].prefix)
    if not is_known or footer_bytes.file_bytes != file.file_bytes:
        raise UnreadableFileError(f"{name} was replaced while it was merged")
    if is_encrypted(footer):
        raise UnreadableFileError(f"{name} has encrypted columns; those are not merged")
    if (footer[COLUMN_ORDERS][1] if COLUMN_ORDERS in footer else None) != survey.schemas[0].column_orders:
        raise NotCopyableError(f"{name} orders its values by other rules than the first file")
    found = row_groups(footer)
    if [number(found[one.group], ROW_COUNT) if one.group < len(found) else None for one in step.groups] != [
        one.rows for one in step.groups
    ]:
        raise UnreadableFileError(f"{name} was replaced while it was merged")
    return [found[one.group] for one in step.groups], footer_bytes.starts_at
