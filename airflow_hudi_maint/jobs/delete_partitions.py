"""Drop partitions of a Hudi table: replace commits that name every partition, a thousand at a time.

Arguments: ``partitions`` (relative partition paths), and what :func:`writing.writer_options` needs. ``savepoint``, when
it is there, holds an ``instant`` that is made a savepoint first, with a ``user`` and ``comments``. ``leftovers`` are
pending instants of earlier tries, rolled back first. ``known_pending`` are all pending instants that the caller saw:
when the write fails, a replace commit beside them is this job's and is rolled back. It is null where other writers may
be at work, whose instants must be left alone.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_hudi_maint.jobs.leftovers import pending_drops, roll_back
    from airflow_hudi_maint.jobs.session import Request, Row, call, comma_separated, main, session_options
    from airflow_hudi_maint.jobs.writing import checked_partitions, data_columns, quoted, writer_options
else:
    from leftovers import pending_drops, roll_back
    from session import call, comma_separated, main, session_options
    from writing import checked_partitions, data_columns, quoted, writer_options

KIND = "delete_partitions"
MOST_PARTITIONS = 1000
"""How many names one commit may carry: they all stand in one option, and in the commit's metadata."""


def delete_partitions(spark: SparkSession, request: Request) -> list[Row]:
    """Make the replace commits; the data files stay until Hudi's cleaner passes."""
    partitions = checked_partitions(request)
    roll_back(spark, request=request, instants=request.names("leftovers"))
    make_savepoint(spark, request)
    frame = empty_frame(spark, request.base_path)
    for start in range(0, len(partitions), MOST_PARTITIONS):
        drop(frame, request=request, partitions=partitions[start : start + MOST_PARTITIONS])
    return [{"partition": partition} for partition in partitions]


def make_savepoint(spark: SparkSession, request: Request) -> None:
    """Keep the files of an instant from the cleaner, when that was asked for."""
    savepoint = request.arguments.get("savepoint")
    if savepoint:
        arguments = {
            "path": request.base_path,
            "commit_time": str(savepoint["instant"]),
            "user": str(savepoint["user"]),
            "comments": str(savepoint["comments"]),
        }
        with session_options(spark, options=request.write_options):
            call(spark, procedure="create_savepoint", arguments=arguments)


def drop(frame: DataFrame, *, request: Request, partitions: list[str]) -> None:
    """Make one replace commit."""
    options = {
        **writer_options(request, operation="delete_partition"),
        "hoodie.datasource.write.partitions.to.delete": comma_separated(partitions, what="Partition"),
    }
    try:
        frame.write.format("hudi").options(**options).mode("append").save(request.base_path)
    except Exception:
        undo_quietly(frame.sparkSession, request)
        raise


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


def empty_frame(spark: SparkSession, base_path: str) -> DataFrame:
    """Return no rows with the table's own columns: Hudi wants a frame, and takes the commit's schema from it."""
    frame = spark.read.format("hudi").load(base_path)
    return frame.select(*quoted(data_columns(frame))).limit(0)


if __name__ == "__main__":
    main(KIND, job=delete_partitions)
