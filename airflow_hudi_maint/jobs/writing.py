"""What a job tells Hudi's writer about the table, so that a write fits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from airflow_hudi_maint.jobs.session import Request, comma_separated
else:
    from session import comma_separated

META_PREFIX = "_hoodie_"


def writer_options(request: Request, *, operation: str) -> dict[str, str]:
    """Return the writer's options: the caller's, and over them what the table is and what to do.

    The arguments ``record_key_fields``, ``ordering_fields``, ``partition_fields``, ``hive_style``, ``url_encode``,
    ``table_type`` and ``keygenerator`` (a class name or null) are as the table's hoodie.properties has them.
    """
    arguments = request.arguments
    # Hudi 1.1 and later refuse to write a table of a complex key generator with one record key, for fear of keys that
    # an older release encoded otherwise (HUDI-7001). A drop writes no key, and a restore writes what was read.
    options = {"hoodie.write.complex.keygen.validation.enable": "false", **request.write_options}
    options.update(
        {
            "hoodie.table.name": request.table_name,
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": ",".join(request.names("record_key_fields")),
            "hoodie.datasource.write.precombine.field": ",".join(request.names("ordering_fields")),
            "hoodie.datasource.write.partitionpath.field": ",".join(request.names("partition_fields")),
            "hoodie.datasource.write.hive_style_partitioning": _flag(arguments.get("hive_style")),
            "hoodie.datasource.write.partitionpath.urlencode": _flag(arguments.get("url_encode")),
            "hoodie.datasource.write.table.type": arguments.get("table_type") or "COPY_ON_WRITE",
            "hoodie.datasource.write.keygenerator.class": arguments.get("keygenerator") or "",
        }
    )
    # An empty text is not "unset" to Hudi: a table without record keys or ordering must not be given blank ones.
    return {name: str(value) for name, value in options.items() if value != ""}


def checked_partitions(request: Request) -> list[str]:
    """Return the argument ``partitions``; refuse what Hudi would read as something else than these names."""
    partitions = request.names("partitions")
    if not partitions:
        raise ValueError("No partition is named; an empty list must not reach Hudi")
    for partition in partitions:
        for wildcard in ("*", "%2A"):
            if wildcard in partition:
                raise ValueError(f"Partition {partition!r} holds {wildcard!r}, which Hudi takes for a wildcard")
    comma_separated(partitions, what="Partition")
    return partitions


def data_columns(frame: DataFrame) -> list[str]:
    """Return the columns of the table itself, without Hudi's own."""
    return [name for name in frame.columns if not name.startswith(META_PREFIX)]


def quoted(names: Sequence[str]) -> list[str]:
    """Quote column names for Spark: a dot in one is no field of a struct."""
    return [f"`{name}`" for name in names]


def _flag(value: object) -> str:
    return "true" if value else "false"
