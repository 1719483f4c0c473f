"""What ``hoodie.properties`` says of a table, and the keys that say it.

Source: Hudi's ``HoodieTableConfig``; key names are Hudi's, verbatim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from airflow_hudi_maint.core.errors import UnsupportedTableError
from airflow_hudi_maint.core.model.partition import PartitionScheme

SUPPORTED_TABLE_VERSIONS = (6, 8, 9)
BASE_FILE_FORMATS = ("PARQUET", "ORC", "HFILE")
TIMELINE_LAYOUT_2_SINCE = 8
"""First table version with completion times in file names and the timeline in a folder of its own."""


class TableType(StrEnum):
    """Hudi's two table types."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConfig:
    """The settings of a table that maintenance needs, checked.

    ``timeline_folder`` and ``archive_folder`` are relative to the base path. ``timeline_zone`` is ``LOCAL`` (the zone
    of the writers' machines, which the table does not name) or ``UTC``.
    """

    name: str
    table_type: TableType
    table_version: int
    partitions: PartitionScheme
    record_key_fields: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    key_generator_class: str | None
    timeline_folder: str
    archive_folder: str
    timeline_zone: str
    metadata_partitions: tuple[str, ...]
    base_file_format: str
    create_schema: str | None
    properties: Mapping[str, str]

    @property
    def has_completion_times(self) -> bool:
        """Whether instant file names carry completion times."""
        return self.table_version >= TIMELINE_LAYOUT_2_SINCE

    @property
    def is_merge_on_read(self) -> bool:
        """Whether the table has log files."""
        return self.table_type is TableType.MERGE_ON_READ

    @property
    def inflight_metadata_partitions(self) -> tuple[str, ...]:
        """The metadata-table partitions that somebody is building; not among ``metadata_partitions`` yet."""
        return tuple(sorted(_names(self.properties.get("hoodie.table.metadata.partitions.inflight"))))

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], *, base_path: str) -> TableConfig:
        """Read a table's properties; ``base_path`` is named in errors only.

        Raises UnsupportedTableError for a table version or type that is not handled, by name.
        """
        version = _version(properties, base_path=base_path)
        _refuse_bootstrapped(properties, base_path=base_path)
        new_layout = version >= TIMELINE_LAYOUT_2_SINCE
        folder = ".hoodie/" + properties.get("hoodie.timeline.path", "timeline") if new_layout else ".hoodie"
        # Version 8 and later keep hoodie.archivelog.folder too, and read this key instead.
        archive_key, archive = (
            ("hoodie.timeline.history.path", "history") if new_layout else ("hoodie.archivelog.folder", "archived")
        )
        ordering = properties.get("hoodie.table.ordering.fields") or properties.get("hoodie.table.precombine.field")
        return cls(
            name=properties.get("hoodie.table.name", ""),
            table_type=_table_type(properties, base_path=base_path),
            table_version=version,
            partitions=PartitionScheme.from_properties(properties),
            record_key_fields=_names(properties.get("hoodie.table.recordkey.fields")),
            ordering_fields=_names(ordering),
            key_generator_class=properties.get("hoodie.table.keygenerator.class"),
            timeline_folder=folder,
            archive_folder=f"{folder}/{properties.get(archive_key) or archive}",
            timeline_zone=properties.get("hoodie.table.timeline.timezone", "LOCAL").upper(),
            metadata_partitions=tuple(sorted(_names(properties.get("hoodie.table.metadata.partitions")))),
            base_file_format=_base_file_format(properties, base_path=base_path),
            create_schema=properties.get("hoodie.table.create.schema"),
            properties=dict(properties),
        )


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _version(properties: Mapping[str, str], *, base_path: str) -> int:
    text = properties.get("hoodie.table.version", "")
    supported = ", ".join(map(str, SUPPORTED_TABLE_VERSIONS))
    if not text.strip().isdecimal():
        msg = f"Table {base_path} has hoodie.table.version={text!r} in hoodie.properties; expected one of {supported}"
        raise UnsupportedTableError(msg)
    version = int(text)
    if version not in SUPPORTED_TABLE_VERSIONS:
        msg = (
            f"Table {base_path} has table version {version}; versions {supported} are maintained. "
            "Upgrade the table with Hudi itself first; this package never upgrades one"
        )
        raise UnsupportedTableError(msg)
    return version


def _refuse_bootstrapped(properties: Mapping[str, str], *, base_path: str) -> None:
    source = properties.get("hoodie.bootstrap.base.path")
    if source:
        msg = (
            f"Table {base_path} was bootstrapped from {source} (hoodie.bootstrap.base.path): the rows of its base "
            "files may lie there, so neither their bytes nor what a dropped partition frees can be told. Bootstrapped "
            "tables are not maintained; write the rows to a new table first"
        )
        raise UnsupportedTableError(msg)


def _base_file_format(properties: Mapping[str, str], *, base_path: str) -> str:
    text = properties.get("hoodie.table.base.file.format", "PARQUET").upper()
    if text not in BASE_FILE_FORMATS:
        # Unknown base files would be passed over, and every partition would seem to be empty.
        msg = f"Table {base_path} has base files of format {text}; expected one of {', '.join(BASE_FILE_FORMATS)}"
        raise UnsupportedTableError(msg)
    return text


def _table_type(properties: Mapping[str, str], *, base_path: str) -> TableType:
    text = properties.get("hoodie.table.type", TableType.COPY_ON_WRITE)
    try:
        return TableType(text)
    except ValueError:
        msg = f"Table {base_path} has hoodie.table.type={text!r}; expected {' or '.join(TableType)}"
        raise UnsupportedTableError(msg) from None
