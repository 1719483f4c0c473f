"""Write a compaction plan (an instant in state requested) on a merge-on-read Hudi table.

Arguments: ``options``, the Hudi options of this plan; they say which partitions and which file groups, since the
procedure has no argument for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hudi_maint.jobs.session import Request, Row, call, main, session_options
else:
    from session import call, main, session_options

KIND = "schedule_compaction"


def schedule_compaction(spark: SparkSession, request: Request) -> list[Row]:
    """Plan, and return the procedure's row; none when Hudi found nothing to compact."""
    given = request.arguments.get("options") or {}
    options = {**request.write_options, **{str(name): str(value) for name, value in given.items()}}
    with session_options(spark, options=options):
        return call(spark, procedure="run_compaction", arguments={"path": request.base_path, "op": "schedule"})


if __name__ == "__main__":
    main(KIND, job=schedule_compaction)
