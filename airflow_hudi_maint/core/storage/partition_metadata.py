"""When partitions were created: ``commitTime`` in the metafile that Hudi puts into each partition's directory.

Source: Hudi's ``HoodiePartitionMetadata``. The file is properties; with ``hoodie.partition.metafile.use.base.format``,
a Parquet file whose footer holds them. It is written once: a partition that is dropped and written again before the
cleaner has removed its directory still has its first creation.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.storage.footers import key_values
from airflow_hudi_maint.core.storage.properties import parse_properties
from airflow_hudi_maint.core.storage.table import HudiTable

_METAFILE = ".hoodie_partition_metadata"
_COMMIT_TIME = "commitTime"
_BASE_FORMAT_KEY = "hoodie.partition.metafile.use.base.format"


def creation_instants(table: HudiTable, *, partitions: Sequence[str]) -> dict[str, str]:
    """The instant that created each partition, by path: one small read each.

    A partition whose metafile is missing, is ORC, cannot be understood or has no ``commitTime`` is left out.

    Raises StorageError.
    """
    is_base_format = table.config.properties.get(_BASE_FORMAT_KEY, "").strip().lower() == "true"

    def created(partition: str) -> str | None:
        folder = f"{partition}/" if partition else ""
        readers = (_from_footer, _from_properties) if is_base_format else (_from_properties, _from_footer)
        return next((found for read in readers if (found := read(table, f"{folder}{_METAFILE}"))), None)

    found = table.storage.concurrently(created, partitions)
    return {path: instant for path, instant in zip(partitions, found, strict=True) if instant}


def _from_properties(table: HudiTable, path: str) -> str | None:
    try:
        text = table.storage.read_bytes(path).decode("latin-1")
        return parse_properties(text).get(_COMMIT_TIME, "").strip() or None
    except (FileNotFoundError, CorruptTableError):
        return None


def _from_footer(table: HudiTable, path: str) -> str | None:
    try:
        return key_values(table.storage, path=f"{path}.parquet").get(_COMMIT_TIME) or None
    except (FileNotFoundError, CorruptTableError):
        return None
