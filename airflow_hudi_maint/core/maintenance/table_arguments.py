"""What every job that writes is told about the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_hudi_maint.core.model.document import JsonObject
    from airflow_hudi_maint.core.model.table_config import TableConfig


def writer_arguments(config: TableConfig) -> JsonObject:
    """Return the table's keys, partitioning and type, by which Hudi's writer recognises it."""
    return {
        "record_key_fields": list(config.record_key_fields),
        "ordering_fields": list(config.ordering_fields),
        # As the table has it: a custom key generator wants the kind behind each field (``ts:timestamp``).
        "partition_fields": config.properties.get("hoodie.table.partition.fields", "").split(","),
        "hive_style": config.partitions.hive_style,
        "url_encode": config.partitions.url_encoded,
        "table_type": str(config.table_type),
        "keygenerator": config.key_generator_class,
    }
