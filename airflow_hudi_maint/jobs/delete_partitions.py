"""Drop partitions of a Hudi table: one replace commit that names every partition.

Arguments: ``partitions`` (relative partition paths), ``record_key_fields``, ``ordering_fields``, ``partition_fields``,
``hive_style``, ``url_encode``, ``table_type``, ``keygenerator`` (a class name or null), as the table's
hoodie.properties has them. ``leftovers`` are pending instants of earlier tries, rolled back first. ``known_pending``
are all pending instants that the caller saw: when the write fails, a replace commit beside them is this job's and is
rolled back. It is null where other writers may be at work, whose instants must be left alone.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_hudi_maint.jobs.leftovers import pending_drops, roll_back
    from airflow_hudi_maint.jobs.session import Request, Row, comma_separated, main
else:
    from leftovers import pending_drops, roll_back
    from session import comma_separated, main

KIND = "delete_partitions"


def delete_partitions(spark: SparkSession, request: Request) -> list[Row]:
    """Make one replace commit; the data files stay until Hudi's cleaner passes."""
    partitions = checked_partitions(request)
    roll_back(spark, request=request, instants=request.names("leftovers"))
    frame = empty_frame(spark, request.base_path)
    options = delete_options(request, partitions=partitions)
    try:
        frame.write.format("hudi").options(**options).mode("append").save(request.base_path)
    except Exception:
        undo_quietly(spark, request)
        raise
    return [{"partition": partition} for partition in partitions]


def undo_quietly(spark: SparkSession, request: Request) -> None:
    """Roll back the drop that a failed write requested, so that nothing stays on the timeline.

    When that fails, too, it is printed: the report has to say why the write failed.
    """
    if request.arguments.get("known_pending") is None:
        return
    known = {*request.names("known_pending"), *request.names("leftovers")}
    try:
        pending = pending_drops(
            spark, base_path=request.base_path, timeline_folder=request.arguments["timeline_folder"]
        )
        roll_back(spark, request=request, instants=[instant for instant in pending if instant not in known])
    except Exception as error:  # noqa: BLE001 the error before it is the one to tell
        print(f"What the failed drop left behind was not rolled back: {error}", file=sys.stderr, flush=True)


def checked_partitions(request: Request) -> list[str]:
    """Return the partitions to delete; refuse what Hudi would read as something else than these names."""
    partitions = request.names("partitions")
    if not partitions:
        raise ValueError("No partition is named; an empty list must not reach Hudi")
    for partition in partitions:
        for wildcard in ("*", "%2A"):
            if wildcard in partition:
                raise ValueError(f"Partition {partition!r} holds {wildcard!r}, which Hudi takes for a wildcard")
    comma_separated(partitions, what="Partition")
    return partitions


def empty_frame(spark: SparkSession, base_path: str) -> DataFrame:
    """Return no rows with the table's own columns: Hudi wants a frame, and takes the commit's schema from it."""
    frame = spark.read.format("hudi").load(base_path)
    columns = [name for name in frame.columns if not name.startswith("_hoodie_")]
    return frame.select(*[f"`{name}`" for name in columns]).limit(0)


def delete_options(request: Request, *, partitions: list[str]) -> dict[str, str]:
    """Return the writer's options: the caller's, and over them what the table is and what to delete."""
    arguments = request.arguments
    # Hudi 1.1 and later refuse to write a table of a complex key generator with one record key, for fear of keys that
    # an older release encoded otherwise (HUDI-7001). This commit writes no key.
    options = {"hoodie.write.complex.keygen.validation.enable": "false", **request.write_options}
    options.update(
        {
            "hoodie.table.name": request.table_name,
            "hoodie.datasource.write.operation": "delete_partition",
            "hoodie.datasource.write.partitions.to.delete": comma_separated(partitions, what="Partition"),
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


def _flag(value: object) -> str:
    return "true" if value else "false"


if __name__ == "__main__":
    main(KIND, job=delete_partitions)
