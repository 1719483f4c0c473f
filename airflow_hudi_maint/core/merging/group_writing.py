"""Write the merged file of one group, and check it against its inputs: on this machine, or in a task of Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_hudi_maint.core.model.document import JsonObject
from airflow_hudi_maint.core.model.merge_plan import InputFile, MergeGroup
from airflow_hudi_maint.core.model.merge_settings import FileFormat, MergeSettings
from airflow_hudi_maint.core.storage.filesystem import Storage

if TYPE_CHECKING:
    from airflow_hudi_maint.core.merging.orc import MergedOrc
    from airflow_hudi_maint.core.merging.parquet import MergedParquet
    from airflow_hudi_maint.core.merging.text import MergedText

Written: TypeAlias = "MergedParquet | MergedOrc | MergedText"
"""What the code of a format says of the file that it wrote."""


def write_group(
    storage: Storage,
    group: MergeGroup,
    *,
    settings: MergeSettings,
    output: str,
    is_elsewhere: bool = False,
    is_alone: bool = False,
    log: Callable[[str], None] | None = None,
) -> Written:
    """Write the rows of a group's inputs, in their order, to ``output``, a new file.

    ``is_elsewhere`` is for a task beside others of its machine: one thread, and a digest of text, which a caller on
    another machine compares. ``is_alone`` says that no other group is written meanwhile: text takes two threads then.

    Raises UnreadableFileError, SchemaConflictError, VerificationError, StorageError; FileNotFoundError for an input
    that is gone.
    """
    inputs = [(group.path_of(one.name), one.bytes) for one in group.inputs]
    on_unreadable = settings.on_unreadable
    if group.kind.format is FileFormat.PARQUET:
        from airflow_hudi_maint.core.merging.parquet import ParquetMergeSettings, merge_parquet

        parquet = ParquetMergeSettings(on_unreadable=on_unreadable, workers=1 if is_elsewhere else None)
        return merge_parquet(storage, inputs=[path for path, _ in inputs], output=output, settings=parquet, log=log)
    if group.kind.format is FileFormat.ORC:
        from airflow_hudi_maint.core.merging.orc import merge_orc

        return merge_orc(storage, inputs=inputs, output=output, on_unreadable=on_unreadable, log=log)
    from airflow_hudi_maint.core.merging.text import merge_text
    from airflow_hudi_maint.core.merging.text_scan import TextRules

    return merge_text(
        storage,
        inputs=inputs,
        output=output,
        kind=group.kind,
        rules=TextRules.of(settings, format_=group.kind.format, detected=dict(group.detected)),
        on_unreadable=on_unreadable,
        wants_digest=is_elsewhere,
        writes_behind=is_alone,
        log=log,
    )


def verify_group(
    storage: Storage, group: MergeGroup, output: str, *, written: Written, inputs: Sequence[InputFile]
) -> None:
    """Raise VerificationError unless ``output`` holds the rows of ``inputs``, as its format can tell."""
    from airflow_hudi_maint.core.merging import verification
    from airflow_hudi_maint.core.merging.text import MergedText

    paths = [(group.path_of(one.name), one.bytes) for one in inputs]
    if isinstance(written, MergedText):
        verification.verify_text(storage, output, merged=written, codec=group.kind.codec)
    elif group.kind.format is FileFormat.PARQUET:
        verification.verify_parquet(storage, output, inputs=[path for path, _ in paths])
    else:
        verification.verify_orc(storage, output, size=written.bytes, inputs=paths)


def written_to_json(written: Written) -> JsonObject:
    """The object that a task of Spark hands over."""
    return asdict(written)


def written_from_json(value: Mapping[str, Any], *, format_: FileFormat) -> Written:
    """Read what :func:`written_to_json` wrote; TypeError for what another release wrote."""
    read: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in value.items()}
    if format_ is FileFormat.PARQUET:
        from airflow_hudi_maint.core.merging.parquet import MergedParquet

        return MergedParquet(**read)
    if format_ is FileFormat.ORC:
        from airflow_hudi_maint.core.merging.orc import MergedOrc

        return MergedOrc(**read)
    from airflow_hudi_maint.core.merging.text import MergedText

    return MergedText(**read)
