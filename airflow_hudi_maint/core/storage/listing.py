"""Which way a table is listed: by its directories, or by its metadata table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from airflow_hudi_maint.core.errors import CorruptTableError, InvalidSettingError, MetadataTableError
from airflow_hudi_maint.core.model.table_config import TableConfig
from airflow_hudi_maint.core.storage.entries import Listing
from airflow_hudi_maint.core.storage.metadata_table import FILES_PARTITION

AUTO = "auto"
DIRECTORY = "directory"
METADATA = "metadata"
LISTINGS = (AUTO, DIRECTORY, METADATA)

FEW_PARTITIONS = 96
"""Up to here, directories of remote storage are listed although there is a metadata table, which is one piece: six
rounds of 16 requests at a time take no longer than its two rounds and the decoding (0.2 s of CPU for 40,000 files)."""

_log = logging.getLogger(__name__)

_Listings: TypeAlias = Iterable[tuple[str, Listing]]


@dataclass(frozen=True, kw_only=True)
class PartitionListings:
    """Partitions and what lies in each, to be gone through once.

    ``way`` is ``directory`` or ``metadata``. ``fallback`` says why the directories were listed although a metadata
    table is there; None where they were chosen.
    """

    way: str
    listings: _Listings
    fallback: str | None = None

    def reason(self, text: str) -> str:
        """A sentence on what was listed, with why it was listed by directory where that is worth saying."""
        return f"{text}; listed by directory, because {self.fallback}" if self.fallback else text


def choose_listing(
    listing: str,
    *,
    config: TableConfig,
    is_local: bool,
    partitions: Collection[str] | None,
    by_directory: Callable[[], _Listings],
    by_metadata: Callable[[], _Listings],
) -> PartitionListings:
    """List the one way or the other.

    ``auto`` takes the metadata table where the table's settings say that its ``files`` partition is complete, storage
    is remote, and more than a few ``partitions`` (None: all) are wanted. A metadata table that turns out to be behind,
    ahead or broken is passed over with a warning, and the directories are listed. ``metadata`` raises instead.

    Raises InvalidSettingError for another word, MetadataTableError, CorruptTableError and StorageError.
    """
    if listing not in LISTINGS:
        raise InvalidSettingError(f"listing {listing!r} is unknown; expected one of {', '.join(LISTINGS)}")
    if listing == METADATA:
        if not is_listed_by_metadata(config):
            msg = (
                f"Table {config.name} cannot be listed by its metadata table: hoodie.table.metadata.partitions has no "
            )
            raise MetadataTableError(f"{msg}{FILES_PARTITION!r}; list it by directory")
        return PartitionListings(way=METADATA, listings=by_metadata())
    few = partitions is not None and len(partitions) <= FEW_PARTITIONS
    if listing == DIRECTORY or is_local or few or not is_listed_by_metadata(config):
        return PartitionListings(way=DIRECTORY, listings=by_directory())
    try:
        return PartitionListings(way=METADATA, listings=by_metadata())
    except (MetadataTableError, CorruptTableError) as error:
        _log.warning("Table %s is listed by its directories: %s", config.name, error)
        return PartitionListings(way=DIRECTORY, listings=by_directory(), fallback=str(error))


def is_listed_by_metadata(config: TableConfig) -> bool:
    """Whether the table's settings say that the metadata table has all files, and nobody is building that anew."""
    return FILES_PARTITION in config.metadata_partitions and FILES_PARTITION not in config.inflight_metadata_partitions
