"""Gather what the sizes of files depend on: what commits wrote, what partitions hold, what footers say."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.commit import PlanKind
from airflow_hudi_maint.core.model.diagnosis import SampledFile
from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice, LogFile
from airflow_hudi_maint.core.model.sizing import CommitSizes, PartitionFiles
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.footers import read_footer
from airflow_hudi_maint.core.storage.listing import DIRECTORY
from airflow_hudi_maint.core.storage.table import HudiTable, TableView

_BLOOM_FILTER = b"org.apache.hudi.bloomfilter"

_log = logging.getLogger(__name__)


def commit_sizes(table: HudiTable, timeline: Timeline) -> tuple[CommitSizes, ...]:
    """What each completed write of the active timeline wrote, in order of requested time.

    Raises CorruptTableError for metadata that cannot be read, where a writer passes over it in silence.
    """
    writes = timeline.completed_writes
    metadata = table.commit_metadata_of(writes)
    return tuple(CommitSizes.of(instant, one) for instant, one in zip(writes, metadata, strict=True))


def partition_files(view: TableView, partition_path: str) -> PartitionFiles:
    """A partition's latest slices, and which of them pending plans hold; one without any where it is not listed."""
    if partition_path not in view.listings:
        return PartitionFiles(partition_path=partition_path, slices=())
    names = [entry.name for entry in view.listings[partition_path]]
    listed = [one.file_id for name in names if (one := BaseFile.parse(name, size_bytes=0))]
    bases = set(listed)
    logs = {log.file_id for name in names if (log := LogFile.parse(name, size_bytes=0))}
    return PartitionFiles(
        partition_path=partition_path,
        slices=view.latest_slices(partition_path),
        clustering=_held(view, partition_path, PlanKind.CLUSTERING),
        compaction=_held(view, partition_path, PlanKind.COMPACTION),
        base_group_count=len(bases),
        group_count=len(bases | logs),
        # The metadata table lists in an order of its own.
        listing_order=tuple(dict.fromkeys(listed)) if view.way == DIRECTORY else (),
    )


def sampled_files(table: HudiTable, slices: Sequence[FileSlice]) -> tuple[SampledFile, ...]:
    """What the footers of these slices' base files say, in the threads of the storage.

    A file that is gone or broken is left out, with a warning: it must not stop a diagnosis.
    """
    found = table.storage.concurrently(lambda one: _sampled(table, one), [one for one in slices if one.base_file])
    return tuple(one for one in found if one is not None)


def _sampled(table: HudiTable, file_slice: FileSlice) -> SampledFile | None:
    base = file_slice.base_file
    if base is None or not base.name.endswith(".parquet"):
        return None
    folder = f"{file_slice.partition_path}/" if file_slice.partition_path else ""
    try:
        footer = read_footer(table.storage, path=f"{folder}{base.name}")
    except (CorruptTableError, FileNotFoundError) as error:
        _log.warning("Passed over a footer: %s", error)
        return None
    texts: Mapping[bytes, bytes] = footer.metadata or {}
    return SampledFile(
        partition_path=file_slice.partition_path,
        file_id=base.file_id,
        file_bytes=base.bytes,
        filter_bytes=len(texts.get(_BLOOM_FILTER, b"")),
        records=int(footer.num_rows),
    )


def _held(view: TableView, partition_path: str, kind: PlanKind) -> frozenset[str]:
    plans = (plan for plan in view.plans if plan.kind is kind)
    return frozenset(one.file_id for plan in plans for one in plan.inputs if one.partition_path == partition_path)
