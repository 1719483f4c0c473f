"""Release savepoints of a Hudi table, so that its cleaner and its archival pass them again.

Arguments: ``instants``, the requested times of the savepoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hudi_maint.jobs.session import Request, Row, call, main, session_options
else:
    from session import call, main, session_options

KIND = "release_savepoints"


def release_savepoints(spark: SparkSession, request: Request) -> list[Row]:
    """Release these savepoints and no other."""
    instants = request.names("instants")
    if not instants:
        raise ValueError("No savepoint is named; Hudi would release the newest one, whoever made it")
    with session_options(spark, options=request.write_options):
        for instant in instants:
            call(spark, procedure="delete_savepoint", arguments={"path": request.base_path, "instant_time": instant})
    return [{"savepoint": instant} for instant in instants]


if __name__ == "__main__":
    main(KIND, job=release_savepoints)
