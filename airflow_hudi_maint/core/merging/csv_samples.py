"""Read the beginnings of a group's files, to tell its dialect before anything is merged."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_hudi_maint.core.errors import UnreadableFileError
from airflow_hudi_maint.core.merging.text_codecs import BrokenTextError, decoded
from airflow_hudi_maint.core.model.merge_plan import InputFile, MergeGroup
from airflow_hudi_maint.core.model.merge_settings import MergeSettings
from airflow_hudi_maint.core.planning.csv_dialect import CsvSample, detect_dialect
from airflow_hudi_maint.core.planning.merge_kinds import wrong_content
from airflow_hudi_maint.core.storage.filesystem import Storage

SAMPLE_BYTES = 64 * 1024


def detected_in(storage: Storage, group: MergeGroup, *, settings: MergeSettings) -> dict[str, str]:
    """Tell the dialect of a group of CSV files from the first, the middle and the last that are not empty.

    Raises InvalidSettingError that names the setting to give where they leave it open, UnreadableFileError for a file
    that is damaged, unless such files are skipped.
    """
    samples: list[CsvSample] = []
    for one in _chosen(group.inputs):
        try:
            samples.append(_sample(storage, group, one))
        except BrokenTextError as error:
            if settings.on_unreadable == "fail":
                path = storage.join(group.path_of(one.name))
                raise UnreadableFileError(f"{path} cannot be merged: {error}") from error
    return detect_dialect(samples, settings=settings, extension=group.kind.extension).to_json()


def _chosen(inputs: Sequence[InputFile]) -> list[InputFile]:
    filled = [one for one in inputs if one.bytes]
    at = sorted({0, len(filled) // 2, len(filled) - 1}) if filled else []
    return [filled[number] for number in at]


def _sample(storage: Storage, group: MergeGroup, one: InputFile) -> CsvSample:
    path = group.path_of(one.name)
    head = b""
    is_whole = True
    with storage.open_input(path) as file:
        problem = wrong_content(group.kind, head=file.read(12))
        if problem:
            raise BrokenTextError(problem)
        file.seek(0)
        for piece in decoded(file, codec=group.kind.codec, piece_bytes=SAMPLE_BYTES):
            if len(head) >= SAMPLE_BYTES:
                is_whole = False
                break
            head += piece
    return CsvSample(name=one.name, head=head, is_whole=is_whole)
