"""What the table is at one moment, read from its timeline, its files and their footers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice
from airflow_hudi_maint.core.model.statistics import quantile
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.table import HudiTable


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSnapshot:
    """The latest file slices of one partition; ``rows`` is what the footers of its base files say."""

    file_groups: int
    file_bytes: tuple[int, ...]
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The partitions that have data, by path.

    Replaced files do not count; ``stored_bytes`` has the sizes of all base files on storage, with those among them.
    """

    as_of_instant: str
    partitions: Mapping[str, PartitionSnapshot]
    stored_bytes: tuple[int, ...]

    @property
    def file_groups(self) -> int:
        """Number of file groups."""
        return sum(one.file_groups for one in self.partitions.values())

    @property
    def file_bytes(self) -> tuple[int, ...]:
        """Sizes of all latest base files, ascending."""
        return tuple(sorted(size for one in self.partitions.values() for size in one.file_bytes))

    @property
    def total_bytes(self) -> int:
        """Bytes of all latest base files."""
        return sum(self.file_bytes)

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return sum(one.rows for one in self.partitions.values())

    @property
    def median_file_bytes(self) -> int | None:
        """The size that half of the files do not exceed."""
        return quantile(self.file_bytes, 0.5)

    @property
    def p90_file_bytes(self) -> int | None:
        """The size that nine of ten files do not exceed."""
        return quantile(self.file_bytes, 0.9)


def take_snapshot(table: HudiTable) -> Snapshot:
    """Look at the whole table; the demo's is copy-on-write, so base files are all there is."""
    timeline = table.timeline()
    view = table.view(timeline)
    found = {path: view.latest_slices(path) for path in view.partition_paths}
    return Snapshot(
        as_of_instant=timeline.last_completed_time,
        partitions={path: _partition(table.storage, slices) for path, slices in found.items() if slices},
        stored_bytes=tuple(
            entry.bytes
            for listing in view.listings.values()
            for entry in listing
            if BaseFile.parse(entry.name, size_bytes=entry.bytes)
        ),
    )


def _partition(storage: Storage, slices: tuple[FileSlice, ...]) -> PartitionSnapshot:
    files = [(one.partition_path, one.base_file) for one in slices if one.base_file is not None]
    return PartitionSnapshot(
        file_groups=len(slices),
        file_bytes=tuple(base.bytes for _, base in files),
        rows=sum(_footer_rows(storage, path=f"{partition}/{base.name}") for partition, base in files),
    )


def _footer_rows(storage: Storage, *, path: str) -> int:
    """Count rows with pyarrow alone, so that the count owes nothing to the code whose work it checks."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(storage.join(path)).num_rows)
