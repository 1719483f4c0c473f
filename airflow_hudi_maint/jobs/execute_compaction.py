"""Execute pending compaction plans of a Hudi table, each named by its instant.

Arguments: ``instants``. A plan whose earlier execution died is rolled back to requested by Hudi itself and executed
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hudi_maint.jobs.session import Request, Row, call, comma_separated, main, session_options
else:
    from session import call, comma_separated, main, session_options

KIND = "execute_compaction"


def execute_compaction(spark: SparkSession, request: Request) -> list[Row]:
    """Execute these plans and no other, and return the procedure's rows."""
    arguments = call_arguments(request)
    with session_options(spark, options=request.write_options):
        return call(spark, procedure="run_compaction", arguments=arguments)


def call_arguments(request: Request) -> dict[str, str]:
    """Return the arguments of the procedure; an empty list is refused, since Hudi would execute every pending plan."""
    instants = request.names("instants")
    if not instants:
        raise ValueError("No instant is named; Hudi would execute every pending plan")
    for instant in instants:
        if not instant.isdigit():
            raise ValueError(f"Instant {instant!r} is not made of digits")
    return {"path": request.base_path, "op": "execute", "instants": comma_separated(instants, what="Instant")}


if __name__ == "__main__":
    main(KIND, job=execute_compaction)
